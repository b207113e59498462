/*
 * The OpenAPI document of the whole program: schemas/openapi.yaml, with this program's version and
 * the driver's input put in. Thread: any.
 */
#ifndef HFD_SCHEMAS_OPENAPI_H
#define HFD_SCHEMAS_OPENAPI_H

#include <jansson.h>

#include "driver/base/err.h"

/**
 * Makes the document anew.
 * @param out  gives
 * @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_openapi_document(json_t **out, struct hfd_err *err);

#endif
