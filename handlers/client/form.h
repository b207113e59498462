/* The forms in which commands print a document. Pure. Thread: any. */
#ifndef HFD_CLIENT_FORM_H
#define HFD_CLIENT_FORM_H

#include <jansson.h>

#include "driver/base/buf.h"

enum hfd_form {
    HFD_FORM_JSON,
    HFD_FORM_YAML,
    HFD_FORM_NAME
};

/**
 * Reads "json", "yaml" or "name"; NULL is json.
 * @return HFD_OK, HFD_INVALID
 */
HFD_MUST_CHECK hfd_rc hfd_form_read(const char *text, enum hfd_form *out, struct hfd_err *err);

/**
 * Adds a document.
 * @param name  what HFD_FORM_NAME prints
 */
void hfd_form_write(struct hfd_buf *b, enum hfd_form form, const json_t *doc, const char *name);

#endif
