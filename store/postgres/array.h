/* Parameters of libpq that are arrays, in PostgreSQL's binary form. Pure. Thread: any. */
#ifndef HFD_STORE_POSTGRES_ARRAY_H
#define HFD_STORE_POSTGRES_ARRAY_H

#include "driver/base/buf.h"
#include "store/postgres/known.h"

/** Gives the number of a type's array type; 0 = of a value that was not bound. */
unsigned hfd_pg_array_type(enum hfd_value_kind kind);
/**
 * Begins an array of `count` elements.
 * @param kind  of its elements; HFD_VALUE_NONE counts as text
 */
void hfd_pg_array_begin(struct hfd_buf *b, enum hfd_value_kind kind, size_t count);
/** Adds an element. */
void hfd_pg_array_add(struct hfd_buf *b, const struct hfd_value *v);

#endif
