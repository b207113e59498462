/*
 * The OpenAPI document of the whole program. The build makes it: openapi.py puts the version and
 * schemas/input.json into schemas/openapi.yaml. Thread: any.
 */
#ifndef HFD_SCHEMAS_OPENAPI_H
#define HFD_SCHEMAS_OPENAPI_H

#include "driver/base/slice.h"

/** The document as JSON. */
hfd_slice hfd_openapi_text(void);

#endif
