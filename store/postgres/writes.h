/*
 * The writes of a group that are not sent yet, by table. Writes of one table are sent in their
 * order. Neighbours with the same statement are a set, which is sent as one statement.
 *
 * Thread: that of the connection.
 */
#ifndef HFD_STORE_POSTGRES_WRITES_H
#define HFD_STORE_POSTGRES_WRITES_H

#include "driver/base/arena.h"
#include "store/db.h"
#include "store/postgres/known.h"

#define HFD_WRITES_BYTES_MAX ((size_t)256 << 20)
#define HFD_WRITES_BUCKETS 64u

struct hfd_write {
    struct hfd_write *next, *in_bucket;
    const struct hfd_value *values;
};

/** Writes with the same statement, in their order. */
struct hfd_write_set {
    struct hfd_write_set *next;
    const struct hfd_shape *shape;
    struct hfd_write *first, *last;
    size_t count;
    bool expects_one;           /* each is to change one row */
    struct hfd_write **buckets; /* by key; NULL = of one write */
};

/** The writes of one table. */
struct hfd_write_table {
    struct hfd_write_table *next;
    const char *name; /* NULL = of several tables: it stands alone */
    struct hfd_write_set *first, *last;
};

struct hfd_writes {
    struct hfd_arena mem;
    struct hfd_write_table *first, *last;
    struct hfd_write_table *open; /* the first one that takes writes; NULL = none does */
    size_t count;
};

/** Sets up; allocates nothing yet. */
void hfd_writes_init(struct hfd_writes *w);
/** Frees all. hfd_writes_init may follow. */
void hfd_writes_fini(struct hfd_writes *w);

/** One more write. */
struct hfd_write_new {
    struct hfd_shape_use use;
    bool expects_one; /* it is to change one row; else any number */
};

/** Adds a write; copies its values. @return HFD_OK, HFD_NOMEM */
HFD_MUST_CHECK hfd_rc hfd_writes_add(struct hfd_writes *w, const struct hfd_write_new *new,
                                     struct hfd_err *err);

#endif
