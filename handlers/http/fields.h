/*
 * The `fields` of a list: which members of each item are wanted.
 * "name,status.conditions.type,labels.*"; id always is. Source: spec/hyperfleet-api.md section 8.
 * Pure. Thread: any.
 */
#ifndef HFD_HTTP_FIELDS_H
#define HFD_HTTP_FIELDS_H

#include "driver/base/buf.h"
#include "store/kind.h"

struct hfd_fields;

/**
 * @param text  decoded, borrowed as long as the fields are used; blank = all
 * @param out   in mem; NULL for all
 * @return HFD_OK, HFD_INVALID (a field that the kind does not have, in HyperFleet's words),
 * HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_fields_parse(enum hfd_kind kind, hfd_slice text, struct hfd_arena *mem,
                                       const struct hfd_fields **out, struct hfd_err *err);

/** Adds what is wanted of a document to b; a failure sticks to b. */
void hfd_fields_add(struct hfd_buf *b, const struct hfd_fields *fields, hfd_slice document);

#endif
