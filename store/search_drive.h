/*
 * The set of (seq, at) that drives the query of a list, read from one index. `at` is the time of
 * creation.
 */
#ifndef HFD_STORE_SEARCH_DRIVE_H
#define HFD_STORE_SEARCH_DRIVE_H

#include "store/search_int.h"

enum hfd_drive_by {
    HFD_BY_NOTHING,
    HFD_BY_ID,
    HFD_BY_NAME,
    HFD_BY_OWNER,
    HFD_BY_LABEL,
    HFD_BY_AGE,
    HFD_BY_PENDING,
    HFD_BY_CONDITION,
    HFD_BY_ANY
};

struct hfd_drive {
    enum hfd_drive_by by;
    const struct hfd_filter *f;     /* HFD_BY_AGE: the age; HFD_BY_ANY: the OR */
    const struct hfd_filter *ready; /* HFD_BY_AGE: the part that says what Ready is */
};

/* The filter's top-level AND, taken apart. */
struct hfd_filter_parts {
    const struct hfd_filter **items;
    size_t count;
};

/** How sets are written. */
struct hfd_drive_set {
    enum hfd_kind kind;
    struct hfd_arena *mem;
    bool probing; /* they are only counted: rows may come twice */
};

/** Takes an AND or an OR apart. @return HFD_OK, HFD_NOMEM */
hfd_rc hfd_filter_take_apart(const struct hfd_filter *f, enum hfd_filter_op op,
                             struct hfd_arena *mem, struct hfd_filter_parts *out);
/**
 * Finds up to *count ways to drive a query by some of these parts, likely best ones first.
 * @param count  in: room in out; out: how many there are
 * @return HFD_OK, HFD_NOMEM
 */
hfd_rc hfd_drive_candidates(const struct hfd_filter_parts *parts, struct hfd_arena *mem,
                            struct hfd_drive *out, size_t *count);
/** Returns true when the comparison asks for Ready=True. */
bool hfd_drive_is_true(const struct hfd_filter *ready);
/** Adds the values of a comparison, with commas. */
void hfd_sql_value_list(struct hfd_sql *q, const struct hfd_filter *f);
/** Adds a SELECT of (seq, at). @return HFD_OK, HFD_NOMEM */
hfd_rc hfd_drive_add_set(struct hfd_sql *q, const struct hfd_drive_set *set,
                         const struct hfd_drive *d);

#endif
