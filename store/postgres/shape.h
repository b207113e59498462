/* A statement with its parameters, as the store tells of it: hfd_db_use. Thread: any. */
#ifndef HFD_STORE_POSTGRES_SHAPE_H
#define HFD_STORE_POSTGRES_SHAPE_H

#include "store/db.h"

#define HFD_SHAPE_PARAMS_MAX 40

struct hfd_shape {
    const struct hfd_db_use *of; /* table NULL = nothing is known of it */
    int params;                  /* the highest number of a parameter */
};

enum hfd_value_kind {
    HFD_VALUE_NONE, /* not bound */
    HFD_VALUE_I64,
    HFD_VALUE_F64,
    HFD_VALUE_TEXT,
    HFD_VALUE_BLOB
};

/** A bound parameter. */
struct hfd_value {
    enum hfd_value_kind kind;
    bool null;
    union {
        int64_t i64;
        double f64;
        hfd_slice bytes; /* of a text or a blob */
    } as;
};

/** Statements with their parameters; values[0] is ?1. */
struct hfd_shape_use {
    const struct hfd_shape *shape;
    const struct hfd_value *values;
};

#endif
