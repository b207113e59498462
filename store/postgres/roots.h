/*
 * Root locks: store/roots.h on PostgreSQL. A group that has roots takes the lock of all writing
 * groups in shared mode, and then one lock for each root. Another group takes that lock alone.
 * Thread: that of the connection.
 */
#ifndef HFD_STORE_POSTGRES_ROOTS_H
#define HFD_STORE_POSTGRES_ROOTS_H

#include "driver/base/arena.h"
#include "store/db.h"

/** Roots of a group. PostgreSQL has room for some thousand locks in all. */
#define HFD_ROOTS_MAX 128u

struct hfd_roots {
    bool alone; /* the group takes the lock of all groups alone */
    size_t count;
    struct hfd_arena mem;
    hfd_slice
        names[HFD_ROOTS_MAX]; /* "r" and a GUResID, or "f" and the id of a HyperFleet resource */
};

/** Forgets all roots, and frees their names. Accepts zeroed memory. */
void hfd_roots_clear(struct hfd_roots *roots);
/** Adds a root; a group with too many of them is alone. @return HFD_OK, HFD_NOMEM */
HFD_MUST_CHECK hfd_rc hfd_roots_add(struct hfd_roots *roots, enum hfd_db_root kind, hfd_slice id,
                                    struct hfd_err *err);
/** Gives the names in the binary form of an array of texts; no pointer when there is no memory. */
hfd_slice hfd_roots_array(const struct hfd_roots *roots, struct hfd_arena *mem);

/**
 * Takes the locks of the roots, in the order of their numbers. $1: hfd_roots_array. It is sent
 * twice: what a resource has may change until its own lock is taken, and then no more.
 */
extern const char hfd_roots_sql[];

#endif
