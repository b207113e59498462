/*
 * The schema documents that the program contains: their text, to be served and registered, and
 * their compiled form. Thread: any.
 */
#ifndef HFD_SCHEMAS_DOCUMENTS_H
#define HFD_SCHEMAS_DOCUMENTS_H

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

#endif
