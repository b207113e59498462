/*
 * Results that were read in the present transaction, by statement and parameters. A job that runs
 * finds them here; what it does not find is noted as wanted, and read for all jobs at once.
 *
 * A write that may change a result hides it. hfd_known_again shows all results again: then the
 * writes are forgotten, and the jobs run once more. The transaction holds a lock, so that no other
 * connection changes what was read.
 *
 * Thread: that of the connection.
 */
#ifndef HFD_STORE_POSTGRES_KNOWN_H
#define HFD_STORE_POSTGRES_KNOWN_H

#include "driver/base/arena.h"
#include "store/db.h"
#include "store/postgres/value.h"

/* ---- what statements touch ---- */

#define HFD_SHAPE_PARAMS_MAX 40

/** A statement, as the store tells of it. */
struct hfd_shape {
    const struct hfd_db_use *of; /* table NULL = nothing is known of it */
    int params;                  /* the highest number of a parameter */
};

/** Statements with their parameters; values[0] is ?1. */
struct hfd_shape_use {
    const struct hfd_shape *shape;
    const struct hfd_value *values;
};

/** Returns true when both are known to be the same. */
bool hfd_value_is_same(const struct hfd_value *a, const struct hfd_value *b);
/** Copies values and what they point to. @return NULL when out of memory */
struct hfd_value *hfd_values_copy(struct hfd_arena *mem, const struct hfd_value *values, int count);

/**
 * Parameters of a write and of a read whose values differed, so that the write did not touch the
 * read. The next write with the same text is likely to differ there, too.
 */
struct hfd_apart {
    const struct hfd_shape *write; /* its statement; NULL = none yet */
    int of_write, of_read;
};

/* ---- results ---- */

#define HFD_KNOWN_BUCKETS 1024u
#define HFD_KNOWN_TABLES 64u
#define HFD_KNOWN_BYTES_MAX ((size_t)256 << 20)

struct hfd_known_row {
    struct hfd_known_row *next;
    const struct hfd_value *cells; /* columns of the row */
    int count;
};

struct hfd_known {
    struct hfd_known *in_bucket, *in_wanted;
    const char *sql;
    const struct hfd_shape *shape;
    const struct hfd_value *values;
    /*
     * NULL = sql itself is wanted. Else the first column of each row of sql is the parameter of
     * this text, and each of its results is wanted.
     */
    const char *target;
    const struct hfd_shape *target_shape;
    const struct hfd_known *source; /* that found this result; NULL = it was wanted itself */
    bool read;                      /* rows holds the result; else it is wanted */
    bool hidden;                    /* a write may have changed it */
    struct hfd_apart apart[2];      /* for touches, and for fills */
    struct hfd_known_row *rows, *last;
};

#define HFD_KNOWN_USUAL 24u
#define HFD_KNOWN_USUAL_PARAMS 4
#define HFD_KNOWN_USUAL_GROUPS 64 /* a read without use for so many goes */

/**
 * A read that each group repeats, such as the last number of a table: its parameters are numbers,
 * if it has any. It is sent with the first burst.
 */
struct hfd_known_usual {
    const char *sql; /* NULL = a free place */
    const struct hfd_shape *shape;
    struct hfd_value values[HFD_KNOWN_USUAL_PARAMS];
    bool alone;    /* of groups without roots, which do other work */
    uint64_t used; /* the last group that did */
};

/** A place of a result in the list of a table. */
struct hfd_known_place {
    struct hfd_known_place *next;
    struct hfd_known *known;
};

struct hfd_knowns {
    struct hfd_arena mem;
    struct hfd_known *buckets[HFD_KNOWN_BUCKETS];
    struct hfd_known *wanted; /* the newest first */
    size_t wanted_count;
    const char *tables[HFD_KNOWN_TABLES]; /* "" = results that each write may touch */
    struct hfd_known_place *places[HFD_KNOWN_TABLES];
    size_t table_count;
    struct hfd_known_usual usual[HFD_KNOWN_USUAL];
    uint64_t group;
};

/** Sets up; allocates nothing yet. */
void hfd_knowns_init(struct hfd_knowns *k);
/** Frees all. */
void hfd_knowns_fini(struct hfd_knowns *k);
/** A transaction ends: nothing is known. The usual reads stay. */
void hfd_knowns_clear(struct hfd_knowns *k);

/**
 * @param hidden  finds one that a write hides, else one that no write hides
 * @return the result, wanted or read; NULL = not known
 */
struct hfd_known *hfd_known_find(const struct hfd_knowns *k, const char *sql,
                                 const struct hfd_shape_use *use, bool hidden);
/**
 * Notes a result as wanted. Replaces one that is hidden. Copies the values.
 * @return NULL when out of memory
 */
struct hfd_known *hfd_known_want(struct hfd_knowns *k, const char *sql,
                                 const struct hfd_shape_use *use);
/**
 * Wants the results of a text for whatever another one gives as its first column.
 * @param follow  its sql, shape, values, target and target_shape; values are copied
 */
HFD_MUST_CHECK hfd_rc hfd_known_follow(struct hfd_knowns *k, const struct hfd_known *follow,
                                       struct hfd_err *err);
/**
 * Gives the result that a row of a followed read belongs to.
 * @param key  the first column of the other text
 * @param out  NULL = the row is known otherwise
 */
HFD_MUST_CHECK hfd_rc hfd_known_found(struct hfd_knowns *k, const struct hfd_known *follow,
                                      const struct hfd_value *key, struct hfd_known **out,
                                      struct hfd_err *err);
/**
 * Notes that a job has asked for this result, wanted or not.
 * @param alone  the group has no roots
 */
void hfd_known_note_usual(struct hfd_knowns *k, const char *sql, const struct hfd_shape_use *use,
                          bool alone);
/** Wants what groups like this one usually read. @return HFD_OK, HFD_NOMEM */
HFD_MUST_CHECK hfd_rc hfd_known_want_usual(struct hfd_knowns *k, bool alone, struct hfd_err *err);
/** Takes all that are wanted; they are taken as read then, with no rows. */
struct hfd_known *hfd_known_take_wanted(struct hfd_knowns *k);
/** Wants all results anew that have been read: another snapshot begins. Nothing was written. */
void hfd_known_renew(struct hfd_knowns *k);
/** Adds a row to a result; copies the cells. @return HFD_OK, HFD_NOMEM */
HFD_MUST_CHECK hfd_rc hfd_known_add_row(struct hfd_knowns *k, struct hfd_known *known,
                                        const struct hfd_value *cells, int count,
                                        struct hfd_err *err);
/** A statement writes: hides what it may change. */
void hfd_known_write(struct hfd_knowns *k, const struct hfd_shape_use *write);
/** The writes since the last call are forgotten: all results hold again. */
void hfd_known_again(struct hfd_knowns *k);

#endif
