/*
 * An engine around another one: it makes few round trips of the many statements of a group. It is
 * for the writer's connection.
 *
 * A transaction begins by looking: the jobs run, and reads that are not known yet are noted.
 * Then hfd_db_look makes all of them in one burst, and forgets what the jobs wrote. The jobs run
 * again, until nothing is wanted. Writes are kept back, and sent in sets with the commit.
 *
 * A job may read, by another statement, rows that it wrote. They cannot be known beforehand. Such a
 * group runs once more without looking: a read that is not known is made alone, behind the writes.
 *
 * A write that changes no row where one was expected, or is refused, undoes the group. It runs
 * again with each statement sent on its own, so that the job itself gets the answer.
 *
 * Thread: that of the connection.
 */
#ifndef HFD_STORE_POSTGRES_GATHER_H
#define HFD_STORE_POSTGRES_GATHER_H

#include "store/engine.h"
#include "store/postgres/known.h"

/*
 * The writes of a group that are not sent yet, by table. Writes of one table are sent in their
 * order. Neighbours with the same statement are a set, which is sent as one statement.
 */
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

/*
 * Root locks: store/rows_resource.h on PostgreSQL. A group that has roots takes the lock of all
 * writing groups in shared mode, and then one lock for each root. Another group takes that lock
 * alone.
 */
/** Roots of a group. PostgreSQL has room for some thousand locks in all. */
#define HFD_ROOTS_MAX 128u

struct hfd_roots {
    bool alone; /* the group takes the lock of all groups alone */
    size_t count;
    struct hfd_arena mem;
    /* "r" and a GUResID, or "f" and the id of a HyperFleet resource */
    hfd_slice names[HFD_ROOTS_MAX];
};

/** Statements that are sent at once, the writes first, and their results. */
struct hfd_burst {
    bool begins;                   /* a transaction, before all of them */
    bool commits;                  /* behind them, if all of them do what is expected */
    const struct hfd_roots *roots; /* of a burst that begins: the locks */
    const struct hfd_write_table *writes;
    struct hfd_known *reads;   /* linked by in_wanted */
    struct hfd_knowns *knowns; /* where rows of the reads are added */
};

/**
 * Sends a burst and waits for all its answers.
 * @return HFD_OK, or as hfd_db_begin, hfd_stmt_step, hfd_db_commit. HFD_CONFLICT: a write is
 * refused, or one that expects it did not change one row.
 */
typedef hfd_rc hfd_burst_fn(struct hfd_db *inner, struct hfd_burst *burst, struct hfd_err *err);

/**
 * Puts the engine around a connection.
 * @param inner  of the engine that does the work; takes, also on failure
 * @param mode   HFD_DB_WRITER, or HFD_DB_POINTS: what its round trips count as
 * @param out    gives; NULL on failure
 * @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_gather_open(struct hfd_db *inner, hfd_burst_fn *burst,
                                      enum hfd_db_mode mode, struct hfd_db **out,
                                      struct hfd_err *err);

/** Binds values to a statement of any engine. */
void hfd_gather_bind(struct hfd_stmt *to, const struct hfd_value *values, int params);

/** Counts since the connection was opened. */
struct hfd_gather_counts {
    int64_t bursts;
    int64_t misses; /* reads made alone */
    int64_t looks;  /* bursts that read for jobs that run again */
    int64_t alone;  /* groups that ran with each statement sent on its own */
};
struct hfd_gather_counts hfd_gather_counts(const struct hfd_db *db);

#endif
