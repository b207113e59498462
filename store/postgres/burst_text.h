/*
 * The texts of bursts. Each is made of a text of the store once for a connection, and prepared once
 * in each of its sessions. Thread: that of the connection.
 */
#ifndef HFD_STORE_POSTGRES_BURST_TEXT_H
#define HFD_STORE_POSTGRES_BURST_TEXT_H

#include "store/postgres/shape.h"
#include "store/postgres/stmt.h"
#include "store/postgres/writes.h"

/** The forms of a text of the store. */
enum hfd_pg_form {
    HFD_PG_ONE,         /* the text itself */
    HFD_PG_ONE_COUNTED, /* a write that fails unless it changes one row */
    HFD_PG_ONE_NEW,     /* the same of an INSERT that skips a row: its unique index refuses it */
    HFD_PG_SET,         /* a write of many: parameters are arrays */
    HFD_PG_SET_COUNTED, /* it fails unless it changes as many rows as it has elements */
    HFD_PG_SET_NEW,
    HFD_PG_SET_READ, /* each row begins with the number of its element, from 1 on */
    HFD_PG_SET_FOLLOW
};

/** The form in which a set is written. */
enum hfd_pg_form hfd_pg_form_of(const struct hfd_write_set *set);
/** Returns true if the count of rows is a parameter behind those of the text. */
bool hfd_pg_form_counts(enum hfd_pg_form form);
/** Returns true if each row of the result begins with the number of its element. */
bool hfd_pg_form_adds_number(enum hfd_pg_form form);

/** The origin of a text. */
struct hfd_pg_source {
    const char *sql;               /* found by its address */
    const char *target;            /* of HFD_PG_SET_FOLLOW: the read that has the result */
    const struct hfd_shape *shape; /* of `sql`; HFD_PG_ONE needs none */
    enum hfd_pg_form form;
    uint64_t fixed; /* of writes in sets: hfd_shape_set */
};

struct hfd_pg_text {
    struct hfd_pg_text *in_bucket;
    const char *sql, *target;
    enum hfd_pg_form form;
    uint64_t fixed;
    uint64_t session; /* in which it is prepared */
    char name[HFD_PG_NAME_MAX];
    char *text;
};

/**
 * Finds or makes a text. It has other parameters fixed, or none, where there are many texts of this
 * form already.
 * @return of the connection; NULL = no memory
 */
struct hfd_pg_text *hfd_pg_text(struct hfd_db *db, const struct hfd_pg_source *from);
/** Frees the texts of a connection. */
void hfd_pg_texts_free(struct hfd_db *db);

#endif
