/*
 * The texts of bursts. Each is made of a text of the store once for a connection, and prepared once
 * in each of its sessions. Thread: that of the connection.
 */
#ifndef HFD_STORE_POSTGRES_BURST_TEXT_H
#define HFD_STORE_POSTGRES_BURST_TEXT_H

#include "store/postgres/stmt.h"

/** The forms of a text of the store. */
enum hfd_pg_form {
    HFD_PG_ONE,      /* the text itself */
    HFD_PG_COUNTED,  /* a write that fails unless it changes as many rows as it is to */
    HFD_PG_SET_READ, /* each row begins with the number of its element, from 1 on */
    HFD_PG_SET_FOLLOW
};

/** Returns true if each row of the result begins with the number of its element. */
bool hfd_pg_form_adds_number(enum hfd_pg_form form);

/** The origin of a text. */
struct hfd_pg_source {
    const char *sql;    /* found by its address */
    const char *target; /* of HFD_PG_SET_FOLLOW: the read that has the result */
    enum hfd_pg_form form;
    int params; /* of a set; of HFD_PG_COUNTED, where the count of rows is the next one */
};

struct hfd_pg_text {
    struct hfd_pg_text *in_bucket;
    const char *sql, *target;
    enum hfd_pg_form form;
    uint64_t session; /* in which it is prepared */
    char name[HFD_PG_NAME_MAX];
    char *text;
};

/** Finds or makes a text. @return of the connection; NULL = no memory */
struct hfd_pg_text *hfd_pg_text(struct hfd_db *db, const struct hfd_pg_source *from);
/** Frees the texts of a connection. */
void hfd_pg_texts_free(struct hfd_db *db);

#endif
