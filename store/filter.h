/*
 * The filter of a list as a tree. driver/fleet parses and checks it; store/filter.c turns it into
 * SQL with parameters. Nodes and text live in the arena of the search. Comparisons follow SQL's
 * three-valued logic: an absent label is NULL.
 */
#ifndef HFD_STORE_FILTER_H
#define HFD_STORE_FILTER_H

#include "driver/base/slice.h"

enum hfd_field {
    HFD_FIELD_ID,
    HFD_FIELD_KIND,
    HFD_FIELD_NAME,
    HFD_FIELD_HREF,
    HFD_FIELD_OWNER_ID,
    HFD_FIELD_GENERATION,
    HFD_FIELD_CREATED_TIME,
    HFD_FIELD_UPDATED_TIME,
    HFD_FIELD_DELETED_TIME, /* NULL while it is not being deleted */
    HFD_FIELD_CREATED_BY,
    HFD_FIELD_UPDATED_BY,
    HFD_FIELD_LABEL,                /* name = the key */
    HFD_FIELD_SPEC,                 /* name = the path below spec: "region", "network.cidr" */
    HFD_FIELD_CONDITION,            /* name = the type; the value is "True", "False" or "Unknown" */
    HFD_FIELD_CONDITION_READ,       /* the same, of a type that has no search keys */
    HFD_FIELD_CONDITION_PENDING,    /* Reconciled of a resource is False: a column says so */
    HFD_FIELD_CONDITION_UPDATED,    /* last_updated_time */
    HFD_FIELD_CONDITION_TRANSITION, /* last_transition_time */
    HFD_FIELD_CONDITION_GENERATION, /* observed_generation */
    HFD_FIELD_ADAPTER,              /* of a report, as the next two */
    HFD_FIELD_REPORT_GENERATION,    /* observed_generation */
    HFD_FIELD_REPORT_TIME,          /* last_report_time */
    HFD_FIELD_COUNT
};

enum hfd_filter_op {
    HFD_FILTER_AND,
    HFD_FILTER_OR,
    HFD_FILTER_NOT,
    HFD_FILTER_EQ,
    HFD_FILTER_NE,
    HFD_FILTER_LT,
    HFD_FILTER_LE,
    HFD_FILTER_GT,
    HFD_FILTER_GE,
    HFD_FILTER_LIKE, /* case-sensitive, % and _ */
    HFD_FILTER_ILIKE,
    HFD_FILTER_BETWEEN, /* values[0] and values[1], inclusive */
    HFD_FILTER_IN,      /* values[]; an empty list matches nothing */
    HFD_FILTER_IS_NULL,
    HFD_FILTER_OP_COUNT
};

struct hfd_filter_value {
    enum {
        HFD_VALUE_TEXT,
        HFD_VALUE_INT,
        HFD_VALUE_REAL,
        HFD_VALUE_BOOL /* only while a search is parsed: text "true" or "false" */
    } kind;            /* times are integers: microseconds */
    hfd_slice text;
    int64_t num;
    double real;
};

struct hfd_filter {
    enum hfd_filter_op op;
    const struct hfd_filter *left, *right; /* AND, OR; NOT has left alone */
    enum hfd_field field;                  /* comparisons */
    hfd_slice name;
    const struct hfd_filter_value *values;
    size_t value_count;
};

struct hfd_order {
    enum hfd_field field; /* a column, or a label */
    hfd_slice name;
    bool descending;
};

#endif
