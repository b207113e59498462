/*
 * Values of parameters and results, and their binary form in PostgreSQL. Pure. Thread: any.
 */
#ifndef HFD_STORE_POSTGRES_VALUE_H
#define HFD_STORE_POSTGRES_VALUE_H

#include "driver/base/buf.h"

enum hfd_value_kind {
    HFD_VALUE_NONE, /* not bound */
    HFD_VALUE_I64,
    HFD_VALUE_F64,
    HFD_VALUE_TEXT,
    HFD_VALUE_BLOB
};

/** A bound parameter, or a column of a result. */
struct hfd_value {
    enum hfd_value_kind kind;
    bool null;
    union {
        int64_t i64;
        double f64;
        hfd_slice bytes; /* of a text or a blob */
    } as;
};

/* Numbers of types, as the catalog of each PostgreSQL has them. */
#define HFD_PG_BOOL 16u
#define HFD_PG_BYTEA 17u
#define HFD_PG_INT8 20u
#define HFD_PG_TEXT 25u
#define HFD_PG_FLOAT8 701u

/** Reads a whole number: of an integer type, boolean, or numeric. @return false: it is none */
bool hfd_pg_number(unsigned type, hfd_slice bytes, int64_t *out);
/** Returns true for the types that hold text or bytes. */
bool hfd_pg_is_text(unsigned type);

/* ---- arrays as parameters ---- */

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
