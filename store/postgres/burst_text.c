#include "store/postgres/burst_text.h"

#include "store/postgres/conn.h"
#include "store/postgres/text.h"

#include <stdlib.h>

#define TEXT_MAX 20000u
#define BUCKETS 128u

struct hfd_pg_texts {
    struct hfd_pg_text *buckets[BUCKETS];
    unsigned count;
};

void hfd_pg_texts_free(struct hfd_db *db)
{
    for (size_t i = 0; db->texts != NULL && i < BUCKETS; i++)
        while (db->texts->buckets[i] != NULL) {
            struct hfd_pg_text *t = db->texts->buckets[i];

            db->texts->buckets[i] = t->in_bucket;
            free(t->text);
            free(t);
        }
    free(db->texts);
    db->texts = NULL;
}

/* ---- forms ---- */

bool hfd_pg_form_adds_number(enum hfd_pg_form form)
{
    return form == HFD_PG_SET_READ || form == HFD_PG_SET_FOLLOW;
}

/* A write that changes another number of rows fails: what is behind it is not done. */
static void add_counted(struct hfd_buf *b, hfd_slice write, int param)
{
    hfd_buf_lit(b, "WITH w AS (");
    hfd_buf_add(b, write);
    hfd_buf_addf(b, " RETURNING 1) SELECT 1 / CASE WHEN count(*) = $%d THEN 1 ELSE 0 END FROM w",
                 param);
}

/* Adds the text of one statement. @param from  what stands before the number of a parameter */
static void add_one(struct hfd_buf *b, const char *sql, const char *from)
{
    int params;
    char *text = hfd_pg_placeholders(hfd_slice_of(sql), from, &params);

    if (text == NULL)
        b->rc = HFD_NOMEM;
    else
        hfd_buf_add(b, hfd_slice_of(text));
    free(text);
}

/*
 * Adds a read as a part of one of many. The fence keeps the planner from reading the whole table
 * for a join: each element is looked up alone.
 */
static void add_part(struct hfd_buf *b, const char *sql, const char *from)
{
    add_one(b, sql, from);
    if (strstr(sql, " OFFSET ") == NULL)
        hfd_buf_lit(b, " OFFSET 0");
}

/* Adds "$1, $2", or what else `form` is. */
static void add_list(struct hfd_buf *b, int params, const char *form)
{
    for (int i = 1; i <= params; i++)
        hfd_buf_addf(b, "%s%s%d", i > 1 ? ", " : "", form, i);
}

/* The rows of an element stand in their order. */
static void add_set_read(struct hfd_buf *b, const struct hfd_pg_source *from)
{
    hfd_buf_lit(b, "SELECT x.n, q.* FROM unnest(");
    add_list(b, from->params, "$");
    hfd_buf_lit(b, ") WITH ORDINALITY AS x(");
    add_list(b, from->params, "p");
    hfd_buf_lit(b, ", n) CROSS JOIN LATERAL (");
    add_part(b, from->sql, "x.p");
    hfd_buf_lit(b, ") AS q");
}

/*
 * The parameter of each read is the first column of another one. Each row has the number of the
 * element, this column, and the row itself, which is all NULL where there is none.
 */
static void add_set_follow(struct hfd_buf *b, const struct hfd_pg_source *from)
{
    hfd_buf_lit(b, "SELECT x.n, d.k1, q.* FROM unnest($1) WITH ORDINALITY AS x(p1, n)"
                   " CROSS JOIN LATERAL (");
    add_part(b, from->sql, "x.p");
    hfd_buf_lit(b, ") AS d(k1) LEFT JOIN LATERAL (");
    add_part(b, from->target, "d.k");
    hfd_buf_lit(b, ") AS q ON TRUE");
}

static void add_text(struct hfd_buf *b, const struct hfd_pg_source *from)
{
    switch (from->form) {
    case HFD_PG_ONE:
    case HFD_PG_COUNTED:
        add_one(b, from->sql, "$");
        break;
    case HFD_PG_SET_READ:
        add_set_read(b, from);
        break;
    case HFD_PG_SET_FOLLOW:
        add_set_follow(b, from);
        break;
    }
}

static char *make_text(const struct hfd_pg_source *from)
{
    struct hfd_buf inner, b;
    char *text = NULL;

    hfd_buf_init(&inner, TEXT_MAX);
    hfd_buf_init(&b, TEXT_MAX);
    add_text(&inner, from);
    if (from->form == HFD_PG_COUNTED)
        add_counted(&b, hfd_buf_slice(&inner), from->params + 1);
    else
        hfd_buf_add(&b, hfd_buf_slice(&inner));
    hfd_buf_addc(&b, '\0');
    if (inner.rc == HFD_OK && b.rc == HFD_OK)
        text = strdup(b.p);
    hfd_buf_fini(&inner);
    hfd_buf_fini(&b);
    return text;
}

/* ---- the texts of a connection ---- */

static struct hfd_pg_text *new_text(const struct hfd_pg_source *from, unsigned number)
{
    struct hfd_pg_text *t = calloc(1, sizeof(*t));

    if (t != NULL)
        t->text = make_text(from);
    if (t == NULL || t->text == NULL) {
        free(t);
        return NULL;
    }
    t->sql = from->sql;
    t->target = from->target;
    t->form = from->form;
    (void)snprintf(t->name, sizeof(t->name), "b%u", number);
    return t;
}

static bool is_of(const struct hfd_pg_text *t, const struct hfd_pg_source *from)
{
    return t->sql == from->sql && t->target == from->target && t->form == from->form;
}

static struct hfd_pg_text **bucket_of(struct hfd_pg_texts *texts, const struct hfd_pg_source *from)
{
    const uint64_t key = (uint64_t)(uintptr_t)from->sql + 3 * (uint64_t)(uintptr_t)from->target;
    const uint64_t h = (key + (uint64_t)from->form) * UINT64_C(0x9E3779B97F4A7C15);

    return &texts->buckets[(h >> 32) % BUCKETS];
}

struct hfd_pg_text *hfd_pg_text(struct hfd_db *db, const struct hfd_pg_source *from)
{
    struct hfd_pg_text **bucket, *t;

    if (db->texts == NULL)
        db->texts = calloc(1, sizeof(*db->texts));
    if (db->texts == NULL)
        return NULL;
    bucket = bucket_of(db->texts, from);
    t = *bucket;
    while (t != NULL && !is_of(t, from))
        t = t->in_bucket;
    if (t != NULL)
        return t;
    t = new_text(from, db->texts->count);
    if (t == NULL)
        return NULL;
    db->texts->count++;
    t->in_bucket = *bucket;
    *bucket = t;
    return t;
}
