/* The OpenAPI document as it is served. See openapi_api.c. */
#ifndef HFD_HTTP_OPENAPI_API_H
#define HFD_HTTP_OPENAPI_API_H

#include "driver/base/err.h"

struct hfd_openapi;

/**
 * Makes both forms. @param out  gives; free with hfd_openapi_free  @return HFD_OK, HFD_NOMEM.
 * Thread: start-up
 */
HFD_MUST_CHECK hfd_rc hfd_openapi_new(struct hfd_openapi **out, struct hfd_err *err);
/** Takes; *o may be NULL. */
void hfd_openapi_free(struct hfd_openapi **o);

#endif
