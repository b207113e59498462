/*
 * The unit of work of one job. Rows that the job read or wrote are kept in memory and read again
 * from there. Its changes are collected by row and written once, at the end of the job. Where reads
 * are gathered (PostgreSQL), the next job of the transaction can have the rows as well.
 * README.md, "The unit of work", says what is kept and when it is written.
 *
 * A job that fails drops its changes: hfd_unit_begin of the next one forgets them. Memory is
 * bounded. A row that finds no room is read again from the database, or written at once.
 * A thread that reads lists on PostgreSQL has one too: the rows of its snapshot.
 * Thread: writer, or that reader.
 */
#ifndef HFD_STORE_UNIT_H
#define HFD_STORE_UNIT_H

#include "driver/base/arena.h"
#include "store/table.h"
#include "store/txn.h"

#define HFD_UNIT_BYTES_MAX ((size_t)1 << 20)
#define HFD_UNIT_READ_BYTES_MAX ((size_t)8 << 20) /* of a thread that reads lists */
#define HFD_UNIT_BUCKETS 64u

/** The tables whose rows are kept, in the order in which they are written. */
enum hfd_unit_table {
    HFD_UNIT_FLEET,
    HFD_UNIT_REPORT,
    HFD_UNIT_RESOURCE,
    HFD_UNIT_PART,
    HFD_UNIT_CHILD, /* never written */
    HFD_UNIT_TABLES
};
#define HFD_UNIT_BIT(table) (1u << (table))
#define HFD_UNIT_ALL (HFD_UNIT_BIT(HFD_UNIT_CHILD) - 1)

struct hfd_kept;

/** How rows of a table are kept, ordered and written. */
struct hfd_unit_form {
    enum hfd_unit_table table;
    const struct hfd_table *rows;
    struct hfd_unit_key (*key_of)(const void *row); /* NULL = that of the table */
    int (*compare)(const void *a, const void *b);   /* the order of lists; NULL = there are none */
    void (*behead)(void *row); /* empties the large texts; NULL = there are none */
    /** Writes a change to the database. */
    hfd_rc (*write)(struct hfd_txn *tx, const struct hfd_kept *kept, struct hfd_err *err);
};

/** A row as the job sees it now. */
struct hfd_kept {
    struct hfd_kept *in_bucket, *in_table; /* the next ones */
    const struct hfd_unit_form *form;
    struct hfd_unit_key key;
    void *row;       /* NULL = there is no such row */
    unsigned change; /* what is to be written: 0 = nothing, else the form's own bits */
    bool fresh;      /* the job has inserted it */
    bool head;       /* the large texts of the row were not read */
    bool all;        /* an entry without second text: all rows with this first text are kept */
};

/** The parsed form of a text of a row. */
struct hfd_unit_parsed {
    struct hfd_unit_parsed *next;
    hfd_slice text;
    void *form;
};

/*
 * Numbers that rise: of HyperFleet resources, and of entries of the history.
 *
 * With one writer a number is the highest one, plus one. Groups of several servers write at the
 * same time, so there each group has numbers of its own: base + (its transaction's number << 16) +
 * n. PostgreSQL gives the transaction its number after it has its locks. So numbers of one root
 * rise in the order of commits. Readers of a feed stop before the first group that is not finished.
 *
 * A number stays below 2^53, as JSON needs it, for 2^37 transactions: 43 years of 100 a second.
 */
/** Numbers that one group may give. */
#define HFD_NUMBERS_MAX 65535

/** Numbers that a group has given. Zeroed = none yet. */
struct hfd_number {
    int64_t first, last; /* before the first one; the last one. 0 = not read yet */
};

struct hfd_unit {
    char *mem; /* of rows and keys, not zeroed; the system gives pages as they are used */
    size_t used_bytes, max_bytes;
    struct hfd_kept *buckets[HFD_UNIT_BUCKETS];
    struct hfd_kept *tables[HFD_UNIT_TABLES];
    struct hfd_unit_parsed *parsed;
    size_t changes;            /* rows to be written */
    struct hfd_number seqs;    /* of HyperFleet resources */
    struct hfd_number actions; /* of the history */
    struct hfd_number dues;    /* of changes: rows_due.h */
};

/** Takes its memory once, for all jobs. @return HFD_OK, HFD_NOMEM */
HFD_MUST_CHECK hfd_rc hfd_unit_init(struct hfd_unit *unit, size_t max_bytes, struct hfd_err *err);
/** Accepts one that was not initialised, in zeroed memory. */
void hfd_unit_fini(struct hfd_unit *unit);
/** A job begins: nothing is kept, and no change is left. */
void hfd_unit_begin(struct hfd_unit *unit);
/**
 * A job begins in the transaction of one that succeeded. Its rows stay kept while there is room;
 * its changes must be written.
 */
void hfd_unit_next(struct hfd_unit *unit);

/** @return the kept row; NULL = not known, or there is no unit of work (readers) */
struct hfd_kept *hfd_unit_find(const struct hfd_txn *tx, const struct hfd_unit_form *form,
                               const struct hfd_unit_key *key);
/**
 * Keeps a copy of a row instead of what was kept of its key. A change of the old one is forgotten.
 * @return NULL when there is no room or no unit of work: nothing of this key is kept then
 */
struct hfd_kept *hfd_unit_keep(struct hfd_txn *tx, const struct hfd_unit_form *form,
                               const void *row);
/** As keep: there is no row of this key. */
struct hfd_kept *hfd_unit_keep_absent(struct hfd_txn *tx, const struct hfd_unit_form *form,
                                      const struct hfd_unit_key *key);
/** Notes that the row is to be written. @param change  bits of the form, added to those so far */
void hfd_unit_change(struct hfd_txn *tx, struct hfd_kept *kept, unsigned change);

/**
 * Copies a kept row and its texts.
 * @return HFD_OK, HFD_NOT_FOUND (there is no such row), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_unit_give(const struct hfd_kept *kept, struct hfd_arena *mem, void *out,
                                    struct hfd_err *err);

/** Finds the parsed form of a text. It lives as long as the kept rows. @return NULL = not kept */
const void *hfd_unit_parsed_find(const struct hfd_txn *tx, hfd_slice text);
/**
 * Gives memory for the parsed form of a text, which the caller fills at once. Another text is
 * another entry, so a row that changes leaves no stale form.
 * @return NULL when there is no unit of work, or no room
 */
void *hfd_unit_parsed_keep(struct hfd_txn *tx, hfd_slice text, size_t size_bytes);

/** Returns true when all rows with this first text of their keys are kept. */
bool hfd_unit_has_all(const struct hfd_txn *tx, const struct hfd_unit_form *form, hfd_slice first);

/** Rows with the same first text of their keys, to be listed. */
struct hfd_unit_list {
    const struct hfd_unit_form *form;
    hfd_slice first;
    struct hfd_arena *mem; /* of the list */
    bool heads;            /* without the large texts */
    /** Reads them from the database. */
    hfd_rc (*read)(struct hfd_txn *tx, hfd_slice first, struct hfd_arena *mem,
                   struct hfd_row_list *out, struct hfd_err *err);
};

/** Lists the rows as the job sees them now. Reads the database once, where there is room. */
HFD_MUST_CHECK hfd_rc hfd_unit_list(struct hfd_txn *tx, const struct hfd_unit_list *list,
                                    struct hfd_row_list *out, struct hfd_err *err);
/** Rows of many keys that are read together. */
struct hfd_unit_prefetch {
    const struct hfd_unit_form *form;
    struct hfd_query *query; /* its parameter is a JSON array of the first texts */
    const hfd_slice *firsts;
    size_t count;
    bool heads; /* without the large texts */
};

/**
 * Reads rows of many keys by one statement and keeps them, for the reads that follow. It does
 * nothing without a unit of work. Rows that find no room are read again, one by one.
 */
HFD_MUST_CHECK hfd_rc hfd_unit_prefetch(struct hfd_txn *tx, const struct hfd_unit_prefetch *want,
                                        struct hfd_err *err);
/** Notes that all rows with this first text are gone from the database. */
void hfd_unit_lose_all(struct hfd_txn *tx, const struct hfd_unit_form *form, hfd_slice first);

/** Writes the changes of one table; the rows stay kept. */
HFD_MUST_CHECK hfd_rc hfd_unit_write_table(struct hfd_txn *tx, enum hfd_unit_table table,
                                           struct hfd_err *err);
/** Writes all changes; the rows stay kept. Without a unit of work there is nothing to do. */
HFD_MUST_CHECK hfd_rc hfd_unit_write(struct hfd_txn *tx, struct hfd_err *err);
/** Forgets all rows. Changes must be written before. */
void hfd_unit_forget(struct hfd_txn *tx);

/* ---- numbers ---- */

/**
 * Gives the next number.
 * @param n         of the unit of work; NULL = there is none, and the table is read
 * @param sql_last  gives the highest number of one writer
 * @return HFD_OK, HFD_LIMIT (the group has given HFD_NUMBERS_MAX), or as hfd_stmt_step
 * Thread: writer.
 */
HFD_MUST_CHECK hfd_rc hfd_number_next(struct hfd_txn *tx, struct hfd_number *n,
                                      const char *sql_last, int64_t *out, struct hfd_err *err);
/**
 * Gives the lowest number that a group which is not finished may have; INT64_MAX = there is none.
 * @param tx  of a reader: asked before the numbers are read. A writer's is never limited
 */
HFD_MUST_CHECK hfd_rc hfd_number_end(struct hfd_txn *tx, int64_t *out, struct hfd_err *err);

/**
 * Gives a number above all that were given so far; INT64_MAX where hfd_number_end does. It never
 * goes back, as hfd_number_end may.
 */
HFD_MUST_CHECK hfd_rc hfd_number_bound(struct hfd_txn *tx, int64_t *out, struct hfd_err *err);

#endif
