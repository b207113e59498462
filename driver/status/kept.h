/*
 * The stored form of the objects of an instance that has ended: what a query shows of them, without
 * their details. Pure. Thread: any.
 */
#ifndef HFD_STATUS_KEPT_H
#define HFD_STATUS_KEPT_H

#include "driver/base/buf.h"
#include "driver/status/rules.h"

/** Adds an object. */
void hfd_kept_add(struct hfd_buf *b, const struct hfd_object *object);
/**
 * Takes the next object off the text.
 * @param rest  the text, then what is left of it
 * @param out   borrows from the text
 * @return false at the end, or where the text has another form
 */
bool hfd_kept_next(hfd_slice *rest, struct hfd_object *out);

/** A verdict as a number, and back. */
int64_t hfd_kept_verdict_format(const struct hfd_status_verdict *v);
void hfd_kept_verdict_parse(int64_t stored, struct hfd_status_verdict *out);

#endif
