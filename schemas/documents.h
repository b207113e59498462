/*
 * The schema documents that the program contains: their text, to be served and registered, and
 * their compiled form. Thread: any.
 */
#ifndef HFD_SCHEMAS_DOCUMENTS_H
#define HFD_SCHEMAS_DOCUMENTS_H

#include "schemas/spec.h"
#include "schemas/validate.h"

/**
 * The text of schemas/input.json: InputData of the Humanitec Driver API, as this driver accepts it.
 */
hfd_slice hfd_schema_input_text(void);

/**
 * The same, compiled once.
 * @param out lives as long as the program
 * @return HFD_OK, HFD_NOMEM (a later call tries again)
 */
HFD_MUST_CHECK hfd_rc hfd_schema_input(const struct hfd_schema **out, struct hfd_err *err);

/**
 * The schemas of schemas/hypershift.json, compiled anew: what the HyperShift adapter reads in
 * specs.
 * @param out  gives on HFD_OK; free with hfd_spec_schemas_free
 * @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_schema_hypershift(struct hfd_spec_schemas *out, struct hfd_err *err);

#endif
