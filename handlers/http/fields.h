/*
 * The `fields` parameter of a list selects members of each item:
 * "name,status.conditions.type,labels.*". id is always included. Source: HyperFleet API. Pure.
 * Thread: any.
 */
#ifndef HFD_HTTP_FIELDS_H
#define HFD_HTTP_FIELDS_H

#include "driver/base/buf.h"
#include "store/kind.h"

struct hfd_fields;

/**
 * Parses a `fields` parameter.
 * @param text  decoded; borrowed as long as the fields are used; blank = all
 * @param out   in mem; NULL for all
 * @return HFD_OK, HFD_INVALID (a field that the kind does not have), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_fields_parse(enum hfd_kind kind, hfd_slice text, struct hfd_arena *mem,
                                       const struct hfd_fields **out, struct hfd_err *err);

/** Adds the selected members of a document to b. A failure is kept in b. */
void hfd_fields_add(struct hfd_buf *b, const struct hfd_fields *fields, hfd_slice document);

#endif
