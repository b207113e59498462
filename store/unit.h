/*
 * The unit of work of one job. Rows that the job read or wrote are kept in memory and read again
 * from there. Its changes are collected by row and written once, at the end of the job. Where reads
 * are gathered (PostgreSQL), the next job of the transaction can have the rows as well.
 * README.md, "The unit of work", says what is kept and when it is written.
 *
 * A job that fails drops its changes: hfd_unit_begin of the next one forgets them. Memory is
 * bounded. A row that finds no room is read again from the database, or written at once.
 * Thread: writer.
 */
#ifndef HFD_STORE_UNIT_H
#define HFD_STORE_UNIT_H

#include "driver/base/arena.h"
#include "store/number.h"
#include "store/row_io.h"
#include "store/txn.h"

#define HFD_UNIT_BYTES_MAX ((size_t)1 << 20)
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

/** A row has one key, of one text or two. */
struct hfd_unit_key {
    hfd_slice first;
    hfd_slice second; /* or none */
};

struct hfd_kept;

/** How rows of a table are copied, ordered and written. */
struct hfd_unit_form {
    enum hfd_unit_table table;
    const char *what;    /* for messages */
    size_t size;         /* of the row's struct */
    const size_t *texts; /* offsets of its hfd_slice members */
    size_t text_count;
    size_t none_count; /* how many of the first texts may be none; others become empty */
    struct hfd_unit_key (*key_of)(const void *row);
    int (*compare)(const void *a, const void *b); /* the order of lists; NULL = there are none */
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

struct hfd_unit {
    char *mem; /* of rows and keys, not zeroed; the system gives pages as they are used */
    size_t used_bytes;
    struct hfd_kept *buckets[HFD_UNIT_BUCKETS];
    struct hfd_kept *tables[HFD_UNIT_TABLES];
    size_t changes;            /* rows to be written */
    struct hfd_number seqs;    /* of HyperFleet resources */
    struct hfd_number actions; /* of the history */
};

/** Takes its memory once, for all jobs. @return HFD_OK, HFD_NOMEM */
HFD_MUST_CHECK hfd_rc hfd_unit_init(struct hfd_unit *unit, struct hfd_err *err);
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
/** Notes that all rows with this first text are gone from the database. */
void hfd_unit_lose_all(struct hfd_txn *tx, const struct hfd_unit_form *form, hfd_slice first);

/** Writes the changes of one table; the rows stay kept. */
HFD_MUST_CHECK hfd_rc hfd_unit_write_table(struct hfd_txn *tx, enum hfd_unit_table table,
                                           struct hfd_err *err);
/** Writes all changes; the rows stay kept. Without a unit of work there is nothing to do. */
HFD_MUST_CHECK hfd_rc hfd_unit_write(struct hfd_txn *tx, struct hfd_err *err);
/** Forgets all rows. Changes must be written before. */
void hfd_unit_forget(struct hfd_txn *tx);

#endif
