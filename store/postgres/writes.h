/*
 * The writes of a group that are not sent yet. Those with the same statement are gathered into
 * sets, each of which is sent as one statement. A write joins an earlier set only where the order
 * makes no difference.
 *
 * Thread: that of the connection.
 */
#ifndef HFD_STORE_POSTGRES_WRITES_H
#define HFD_STORE_POSTGRES_WRITES_H

#include "driver/base/arena.h"
#include "store/postgres/shape.h"

#define HFD_WRITES_BYTES_MAX ((size_t)256 << 20)
#define HFD_WRITES_BUCKETS 128u

struct hfd_write {
    struct hfd_write *next, *in_bucket;
    const struct hfd_value *values; /* shape->params of them */
    uint64_t hash;                  /* of the values of its equal columns */
};

/** Writes with the same statement, in their order. */
struct hfd_write_set {
    struct hfd_write_set *next, *before;
    const char *sql;
    const struct hfd_shape *shape;
    struct hfd_write *first, *last;
    size_t count;
    bool expects_one; /* each is to change one row */
    bool comparable;  /* no value of an equal column is NULL */
    struct hfd_write *buckets[HFD_WRITES_BUCKETS];
};

struct hfd_writes {
    struct hfd_arena mem;
    struct hfd_write_set *first, *last;
    size_t count;
};

/** Sets up; allocates nothing yet. */
void hfd_writes_init(struct hfd_writes *w);
/** Frees all. hfd_writes_init may follow. */
void hfd_writes_fini(struct hfd_writes *w);
/** Forgets all writes. */
void hfd_writes_clear(struct hfd_writes *w);

/** One more write. */
struct hfd_write_new {
    const char *sql; /* static: its address is compared */
    struct hfd_shape_use use;
    bool expects_one; /* it is to change one row; else any number */
};

/** Adds a write; copies its values. @return HFD_OK, HFD_NOMEM */
HFD_MUST_CHECK hfd_rc hfd_writes_add(struct hfd_writes *w, const struct hfd_write_new *new,
                                     struct hfd_err *err);

/** Copies values and what they point to. @return NULL when out of memory */
struct hfd_value *hfd_values_copy(struct hfd_arena *mem, const struct hfd_value *values, int count);

#endif
