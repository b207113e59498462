/* The OpenAPI document. See openapi.h. */
#include "schemas/openapi.h"

#include "schemas/documents_int.h"

hfd_slice hfd_openapi_text(void)
{
    return (hfd_slice){(const char *)hfd_openapi_json, hfd_openapi_json_len};
}
