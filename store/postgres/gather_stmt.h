/* Shared by gather.c and gather_stmt.c. */
#ifndef HFD_STORE_POSTGRES_GATHER_STMT_H
#define HFD_STORE_POSTGRES_GATHER_STMT_H

#include "store/postgres/gather.h"
#include "store/stmt_slots.h"

#define HFD_GATHER_MAGIC UINT32_C(0x67617374)

enum hfd_gather_mode {
    HFD_GATHER_DIRECT,  /* no transaction, or each statement is sent on its own */
    HFD_GATHER_LOOKING, /* what is not known is noted */
    HFD_GATHER_PLAIN    /* what is not known is read alone */
};

struct hfd_db {
    const struct hfd_engine *engine; /* first */
    struct hfd_db *inner;
    hfd_burst_fn *burst;
    const char *look; /* what a burst of reads counts as */
    enum hfd_gather_mode mode;
    bool in_transaction;
    bool begun;        /* the other engine's transaction has begun */
    bool reads_only;   /* nothing is written: the first burst is a transaction of its own */
    bool ended;        /* it has been; what it did not read needs another one */
    bool missed;       /* looking: a read was not known */
    bool blocked;      /* looking: a read was hidden by a write of this run */
    bool surprised;    /* the transaction is of no use */
    bool alone;        /* the next transaction sends each statement on its own */
    bool leaves_roots; /* the next transaction is alone */
    struct hfd_roots roots;
    int looks; /* of this transaction */
    struct hfd_writes writes;
    struct hfd_knowns knowns;
    struct hfd_gather_counts counts;
    struct hfd_stmt_slots stmts;
};

struct hfd_stmt {
    const struct hfd_engine *engine; /* first */
    uint32_t magic;
    struct hfd_db *db;
    const char *sql;
    struct hfd_shape shape;
    struct hfd_value values[HFD_SHAPE_PARAMS_MAX];
    struct hfd_stmt *inner; /* the other engine's, while it is used */
    bool in_use;
    bool once;
    bool stepped;
    hfd_rc stuck;
    const struct hfd_known_row *next, *row;
};

/** Sends the writes so far, and reads. Both may be none. @return also HFD_BUSY: it runs again */
HFD_MUST_CHECK hfd_rc hfd_gather_send(struct hfd_db *db, struct hfd_known *reads,
                                      struct hfd_err *err);
/** The other engine is used itself: the transaction begins, and the writes so far are sent. */
HFD_MUST_CHECK hfd_rc hfd_gather_go_inside(struct hfd_db *db, struct hfd_err *err);
/** Notes that the group is of no use, and fails. */
HFD_MUST_CHECK hfd_rc hfd_gather_surprised(struct hfd_db *db, struct hfd_err *err);

/* db.h on this engine. */
HFD_MUST_CHECK hfd_rc hfd_gather_follow(struct hfd_db *db, const struct hfd_db_follow *follow,
                                        hfd_slice key, struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_gather_prepare(struct hfd_db *db, const char *sql, struct hfd_stmt **out,
                                         struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_gather_prepare_use(struct hfd_db *db, const struct hfd_db_use *use,
                                             struct hfd_stmt **out, struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_gather_prepare_once(struct hfd_db *db, hfd_slice sql,
                                              struct hfd_stmt **out, struct hfd_err *err);
void hfd_gather_text(struct hfd_stmt *st, int at, hfd_slice v);
void hfd_gather_blob(struct hfd_stmt *st, int at, hfd_slice v);
void hfd_gather_i64(struct hfd_stmt *st, int at, int64_t v);
void hfd_gather_f64(struct hfd_stmt *st, int at, double v);
void hfd_gather_null(struct hfd_stmt *st, int at);
HFD_MUST_CHECK hfd_rc hfd_gather_step(struct hfd_stmt *st, bool *row, struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_gather_run(struct hfd_stmt *st, int64_t *changed, struct hfd_err *err);
void hfd_gather_done(struct hfd_stmt *st);
int64_t hfd_gather_col_i64(struct hfd_stmt *st, int at);
bool hfd_gather_is_stuck(const struct hfd_stmt *st);
bool hfd_gather_col_is_null(struct hfd_stmt *st, int at);
hfd_slice hfd_gather_col_text(struct hfd_stmt *st, int at, struct hfd_arena *mem);

/** Binds values to a statement of any engine. */
void hfd_gather_bind(struct hfd_stmt *to, const struct hfd_value *values, int params);

#endif
