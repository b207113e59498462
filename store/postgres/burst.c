#include "store/postgres/burst.h"

#include "driver/base/check.h"
#include "store/postgres/engine.h"
#include "store/postgres/stmt.h"
#include "store/postgres/text.h"
#include "store/postgres/value.h"

#include <limits.h>
#include <stdlib.h>

#define BYTES_MAX ((size_t)1 << 30)
#define COLUMNS_MAX 64
#define PARAMS_MAX (HFD_SHAPE_PARAMS_MAX + 1) /* and how many rows are expected */

/*
 * ---- texts ----
 * Each is made of a text of the store once for a connection, and prepared once in each session.
 */

#define TEXT_MAX 20000u
#define BUCKETS 128u

/* The forms of a text of the store. */
enum form {
    FORM_ONE,      /* the text itself */
    FORM_COUNTED,  /* a write that fails unless it changes as many rows as it is to */
    FORM_SET_READ, /* each row begins with the number of its element, from 1 on */
    FORM_SET_FOLLOW
};

/* The origin of a text. */
struct source {
    const char *sql;    /* found by its address */
    const char *target; /* of FORM_SET_FOLLOW: the read that has the result */
    enum form form;
    int params; /* of a set; of FORM_COUNTED, where the count of rows is the next one */
};

struct text {
    struct text *in_bucket;
    const char *sql, *target;
    enum form form;
    uint64_t session; /* in which it is prepared */
    char name[HFD_PG_NAME_MAX];
    char *text;
};

struct hfd_pg_texts {
    struct text *buckets[BUCKETS];
    unsigned count;
};

void hfd_pg_texts_free(struct hfd_db *db)
{
    for (size_t i = 0; db->texts != NULL && i < BUCKETS; i++)
        while (db->texts->buckets[i] != NULL) {
            struct text *t = db->texts->buckets[i];

            db->texts->buckets[i] = t->in_bucket;
            free(t->text);
            free(t);
        }
    free(db->texts);
    db->texts = NULL;
}

/* ---- forms ---- */

/* Each row of the result begins with the number of its element. */
static bool adds_number(enum form form)
{
    return form == FORM_SET_READ || form == FORM_SET_FOLLOW;
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
static void add_set_read(struct hfd_buf *b, const struct source *from)
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
static void add_set_follow(struct hfd_buf *b, const struct source *from)
{
    hfd_buf_lit(b, "SELECT x.n, d.k1, q.* FROM unnest($1) WITH ORDINALITY AS x(p1, n)"
                   " CROSS JOIN LATERAL (");
    add_part(b, from->sql, "x.p");
    hfd_buf_lit(b, ") AS d(k1) LEFT JOIN LATERAL (");
    add_part(b, from->target, "d.k");
    hfd_buf_lit(b, ") AS q ON TRUE");
}

static void add_text(struct hfd_buf *b, const struct source *from)
{
    switch (from->form) {
    case FORM_ONE:
    case FORM_COUNTED:
        add_one(b, from->sql, "$");
        break;
    case FORM_SET_READ:
        add_set_read(b, from);
        break;
    case FORM_SET_FOLLOW:
        add_set_follow(b, from);
        break;
    }
}

static char *make_text(const struct source *from)
{
    struct hfd_buf inner, b;
    char *text = NULL;

    hfd_buf_init(&inner, TEXT_MAX);
    hfd_buf_init(&b, TEXT_MAX);
    add_text(&inner, from);
    if (from->form == FORM_COUNTED)
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

static struct text *new_text(const struct source *from, unsigned number)
{
    struct text *t = calloc(1, sizeof(*t));

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

static bool is_of(const struct text *t, const struct source *from)
{
    return t->sql == from->sql && t->target == from->target && t->form == from->form;
}

static struct text **bucket_of(struct hfd_pg_texts *texts, const struct source *from)
{
    const uint64_t key = (uint64_t)(uintptr_t)from->sql + 3 * (uint64_t)(uintptr_t)from->target;
    const uint64_t h = (key + (uint64_t)from->form) * UINT64_C(0x9E3779B97F4A7C15);

    return &texts->buckets[(h >> 32) % BUCKETS];
}

/* Finds or makes a text; NULL = no memory. */
static struct text *text_of(struct hfd_db *db, const struct source *from)
{
    struct text **bucket, *t;

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

/* ---- sending ---- */

enum answer {
    NOTHING,
    WRITTEN, /* counts rows */
    ROWS,
    COMMITTED
};

/* A statement that was sent. */
struct sent {
    enum answer answer;
    const char *what;
    enum form form;           /* of ROWS */
    struct hfd_known **reads; /* of ROWS: by element */
    size_t count;             /* of them */
    struct text *text;        /* that it prepares; NULL = none */
};

struct sending {
    struct hfd_db *db;
    struct hfd_burst *burst;
    struct hfd_arena mem;
    struct sent *list;
    size_t count, cap;
    bool lost; /* libpq refused */
};

/* Parameters of a statement. */
struct params {
    int count;
    const char *values[PARAMS_MAX];
    int lengths[PARAMS_MAX], formats[PARAMS_MAX];
    Oid types[PARAMS_MAX];
};

static hfd_rc note(struct sending *s, const struct sent *sent, struct hfd_err *err)
{
    if (s->count == s->cap) {
        const size_t cap = s->cap == 0 ? 32 : 2 * s->cap;
        struct sent *list = hfd_arena_array(&s->mem, cap, sizeof(*list));

        if (list == NULL)
            return hfd_fail_nomem(err, "statements of the store");
        if (s->count > 0)
            memcpy(list, s->list, s->count * sizeof(*list));
        s->list = list;
        s->cap = cap;
    }
    s->list[s->count++] = *sent;
    return HFD_OK;
}

static hfd_rc send_prepared(struct sending *s, struct text *t, const struct params *p,
                            const struct sent *sent, struct hfd_err *err)
{
    PGconn *conn = s->db->conn;
    hfd_rc rc = HFD_OK;

    if (t->session != s->db->session) {
        s->lost = s->lost || PQsendPrepare(conn, t->name, t->text, p->count, p->types) == 0;
        rc = note(s, &(struct sent){.answer = NOTHING, .what = t->sql, .text = t}, err);
        t->session = s->db->session;
    }
    s->lost = s->lost || PQsendQueryPrepared(conn, t->name, p->count, p->values, p->lengths,
                                             p->formats, 1) == 0;
    return rc == HFD_OK ? note(s, sent, err) : rc;
}

static bool set_param(struct params *p, hfd_slice bytes, Oid type)
{
    if (bytes.len > INT_MAX)
        return false;
    p->values[p->count] = bytes.p;
    p->lengths[p->count] = (int)bytes.len;
    p->formats[p->count] = 1;
    p->types[p->count++] = type;
    return true;
}

/* Eight bytes, the highest first. */
static bool set_number(struct sending *s, struct params *p, const void *number, Oid type)
{
    char *out = hfd_arena_alloc(&s->mem, 8);
    uint64_t bits;

    memcpy(&bits, number, sizeof(bits));
    for (size_t i = 0; out != NULL && i < 8; i++)
        out[i] = (char)(bits >> (56 - 8 * i));
    return out != NULL && set_param(p, (hfd_slice){out, 8}, type);
}

static bool set_value(struct sending *s, struct params *p, const struct hfd_value *v)
{
    if (v->kind == HFD_VALUE_I64)
        return set_number(s, p, &v->as.i64, HFD_PG_INT8);
    if (v->kind == HFD_VALUE_F64)
        return set_number(s, p, &v->as.f64, HFD_PG_FLOAT8);
    return set_param(p, v->null ? HFD_SLICE_NONE : v->as.bytes,
                     v->kind == HFD_VALUE_BLOB   ? HFD_PG_BYTEA
                     : v->kind == HFD_VALUE_TEXT ? HFD_PG_TEXT
                                                 : 0);
}

static bool set_array(struct sending *s, struct params *p, hfd_slice bytes,
                      enum hfd_value_kind kind)
{
    const hfd_slice own = hfd_arena_dup(&s->mem, bytes);

    return own.p != NULL && set_param(p, own, hfd_pg_array_type(kind));
}

/* Sends a statement of ours. @param sql  static */
static hfd_rc send_own(struct sending *s, const char *sql, const struct params *p,
                       enum answer answer, struct hfd_err *err)
{
    const struct source from = {.sql = sql, .form = FORM_ONE};
    struct text *t = text_of(s->db, &from);

    if (t == NULL)
        return hfd_fail_nomem(err, "a statement of the store");
    return send_prepared(s, t, p, &(struct sent){.answer = answer, .what = sql}, err);
}

/* ---- writes ---- */

static enum hfd_value_kind kind_of(const struct hfd_write_set *set, int at)
{
    enum hfd_value_kind kind = HFD_VALUE_NONE;

    for (const struct hfd_write *w = set->first; kind == HFD_VALUE_NONE && w != NULL; w = w->next)
        kind = w->values[at].kind;
    return kind;
}

static bool set_arrays(struct sending *s, const struct hfd_write_set *set, struct params *p)
{
    struct hfd_buf b;
    bool well = true;

    hfd_buf_init(&b, BYTES_MAX);
    for (int i = 0; well && i < set->shape->params; i++) {
        hfd_buf_reset(&b);
        hfd_pg_array_begin(&b, kind_of(set, i), set->count);
        for (const struct hfd_write *w = set->first; w != NULL; w = w->next)
            hfd_pg_array_add(&b, &w->values[i]);
        well = b.rc == HFD_OK && set_array(s, p, hfd_buf_slice(&b), kind_of(set, i));
    }
    hfd_buf_fini(&b);
    return well;
}

static hfd_rc send_set(struct sending *s, const struct hfd_write_set *set, struct hfd_err *err)
{
    const bool many = set->count > 1;
    const int64_t expected = (int64_t)set->count;
    struct text *t =
        text_of(s->db, &(struct source){.sql = many ? set->shape->of->set : set->shape->of->sql,
                                        .form = set->expects_one ? FORM_COUNTED : FORM_ONE,
                                        .params = set->shape->params});
    struct params p = {.count = 0};
    bool well = t != NULL;

    HFD_ASSERT(set->shape->params < PARAMS_MAX);
    if (well && many)
        well = set_arrays(s, set, &p);
    for (int i = 0; well && !many && i < set->shape->params; i++)
        well = set_value(s, &p, &set->first->values[i]);
    if (well && set->expects_one)
        well = set_number(s, &p, &expected, HFD_PG_INT8);
    if (!well)
        return hfd_fail_nomem(err, "a write of the store");
    return send_prepared(s, t, &p, &(struct sent){.answer = WRITTEN, .what = set->shape->of->sql},
                         err);
}

static hfd_rc send_writes(struct sending *s, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    for (const struct hfd_write_table *t = s->burst->writes; rc == HFD_OK && t != NULL; t = t->next)
        for (const struct hfd_write_set *set = t->first; rc == HFD_OK && set != NULL;
             set = set->next)
            rc = send_set(s, set, err);
    return rc;
}

/* ---- reads ---- */

static int by_statement(const void *a, const void *b)
{
    const struct hfd_known *x = *(struct hfd_known *const *)a, *y = *(struct hfd_known *const *)b;

    if (x->sql != y->sql)
        return x->sql < y->sql ? -1 : 1;
    return x->target < y->target ? -1 : x->target > y->target;
}

static bool set_read_arrays(struct sending *s, const struct sent *sent, struct params *p)
{
    const struct hfd_shape *shape = sent->reads[0]->shape;
    struct hfd_buf b;
    bool well = true;

    hfd_buf_init(&b, BYTES_MAX);
    for (int i = 0; well && i < shape->params; i++) {
        const enum hfd_value_kind kind = sent->reads[0]->values[i].kind;

        hfd_buf_reset(&b);
        hfd_pg_array_begin(&b, kind, sent->count);
        for (size_t k = 0; k < sent->count; k++)
            hfd_pg_array_add(&b, &sent->reads[k]->values[i]);
        well = b.rc == HFD_OK && set_array(s, p, hfd_buf_slice(&b), kind);
    }
    hfd_buf_fini(&b);
    return well;
}

/* Reads with the same statement. */
static hfd_rc send_read(struct sending *s, struct hfd_known **reads, size_t count,
                        struct hfd_err *err)
{
    const struct hfd_known *first = reads[0];
    const enum form form = first->target != NULL ? FORM_SET_FOLLOW
                           : count > 1           ? FORM_SET_READ
                                                 : FORM_ONE;
    const struct sent sent = {
        .answer = ROWS, .what = first->sql, .form = form, .reads = reads, .count = count};
    struct text *t =
        text_of(s->db, &(struct source){first->sql, first->target, form, first->shape->params});
    struct params p = {.count = 0};
    bool well = t != NULL;

    if (well && form != FORM_ONE)
        well = set_read_arrays(s, &sent, &p);
    for (int i = 0; well && form == FORM_ONE && i < first->shape->params; i++)
        well = set_value(s, &p, &first->values[i]);
    if (!well)
        return hfd_fail_nomem(err, "a read of the store");
    return send_prepared(s, t, &p, &sent, err);
}

static hfd_rc send_reads(struct sending *s, struct hfd_err *err)
{
    struct hfd_known **all;
    size_t count = 0, end;
    hfd_rc rc = HFD_OK;

    for (const struct hfd_known *k = s->burst->reads; k != NULL; k = k->in_wanted)
        count++;
    all = hfd_arena_array(&s->mem, count + 1, sizeof(struct hfd_known *));
    if (all == NULL)
        return hfd_fail_nomem(err, "reads of the store");
    count = 0;
    for (struct hfd_known *k = s->burst->reads; k != NULL; k = k->in_wanted)
        all[count++] = k;
    qsort(all, count, sizeof(struct hfd_known *), by_statement);
    for (size_t i = 0; rc == HFD_OK && i < count; i = end) {
        for (end = i + 1; end < count && by_statement(&all[end], &all[i]) == 0; end++)
            continue;
        rc = send_read(s, all + i, end - i, err);
    }
    return rc;
}

/* ---- transactions ---- */

static const char sql_begin[] = "BEGIN";
static const char sql_begin_read[] = HFD_PG_SQL_BEGIN_READ;
static const char sql_lock[] = HFD_PG_SQL_LOCK;
static const char sql_share[] = HFD_PG_SQL_SHARE;
static const char sql_mark[] = HFD_PG_SQL_MARK("?1", "?2");
static const char sql_commit[] = "COMMIT";
static const struct params none;

/*
 * The cluster of a part, or of a HyperFleet resource, is the root of the driver resource that has
 * it, else its own. The number of a root has the schema in it: programs in one database do not
 * meet.
 *
 * It notes its snapshot for the transaction. A second run does nothing if no transaction has ended
 * since: each lookup would find the same.
 */
/* clang-format off */
const char hfd_roots_sql[] =
    "WITH named AS MATERIALIZED (SELECT DISTINCT left(n, 1) AS kind, substr(n, 2) AS id FROM unnest(?1) AS n"
    "   WHERE COALESCE(current_setting('hfd.roots', true), '') <> CAST(pg_current_snapshot() AS TEXT)),"
    " fleet_ids AS (SELECT n.id FROM named n WHERE n.kind = 'f'"
    "   UNION SELECT f.owner_id FROM named n JOIN fleet f ON f.id = n.id WHERE n.kind = 'f' AND f.owner_id <> ''"
    "   UNION SELECT f.owner_id FROM named n JOIN part p ON p.guresid = n.id JOIN fleet f ON f.id = p.fleet_id"
    "     WHERE n.kind = 'r' AND f.owner_id <> ''),"
    " roots AS (SELECT 'r' || n.id AS root FROM named n WHERE n.kind = 'r'"
    "   UNION SELECT COALESCE('r' || p.guresid, 'f' || i.id) FROM fleet_ids i LEFT JOIN part p ON p.fleet_id = i.id)"
    " SELECT count(*), set_config('hfd.roots', CAST(pg_current_snapshot() AS TEXT), true) FROM (SELECT pg_advisory_xact_lock(s.h) FROM"
    " (SELECT DISTINCT hashtextextended(root, hashtext(current_schema())) AS h FROM roots ORDER BY 1) AS s OFFSET 0) AS taken";
/* clang-format on */

/* Gives the names in the binary form of an array of texts; no pointer when there is no memory. */
static hfd_slice roots_array(const struct hfd_roots *roots, struct hfd_arena *mem)
{
    struct hfd_buf b;
    hfd_slice out;

    hfd_buf_init(&b, BYTES_MAX);
    hfd_pg_array_begin(&b, HFD_VALUE_TEXT, roots->count);
    for (size_t i = 0; i < roots->count; i++)
        hfd_pg_array_add(&b,
                         &(struct hfd_value){HFD_VALUE_TEXT, false, {.bytes = roots->names[i]}});
    out = b.rc == HFD_OK ? hfd_arena_dup(mem, hfd_buf_slice(&b)) : HFD_SLICE_NONE;
    hfd_buf_fini(&b);
    return out;
}

/* Twice: see hfd_roots_sql. */
static hfd_rc send_roots(struct sending *s, struct hfd_err *err)
{
    const hfd_slice names = roots_array(s->burst->roots, &s->mem);
    struct params p = {.count = 0};
    hfd_rc rc = HFD_OK;

    if (names.p == NULL || !set_param(&p, names, hfd_pg_array_type(HFD_VALUE_TEXT)))
        return hfd_fail_nomem(err, "the locks of a group");
    for (int i = 0; rc == HFD_OK && i < 2; i++)
        rc = send_own(s, hfd_roots_sql, &p, NOTHING, err);
    return rc;
}

static hfd_rc send_begin(struct sending *s, struct hfd_err *err)
{
    const struct hfd_roots *roots = s->burst->roots;
    const bool alone = roots == NULL || roots->alone || roots->count == 0;
    struct hfd_db *db = s->db;
    hfd_rc rc;

    db->unsure = false;
    hfd_pg_note_begin(db);
    if (db->mode != HFD_DB_WRITER)
        return send_own(s, sql_begin_read, &none, NOTHING, err);
    rc = send_own(s, sql_begin, &none, NOTHING, err);
    if (rc == HFD_OK)
        rc = send_own(s, alone ? sql_lock : sql_share, &none, NOTHING, err);
    return rc == HFD_OK && !alone ? send_roots(s, err) : rc;
}

static hfd_rc send_mark(struct sending *s, struct hfd_err *err)
{
    struct params p = {.count = 0};

    if (!set_param(&p, hfd_slice_of(s->db->replica), HFD_PG_TEXT) ||
        !set_number(s, &p, &s->db->commits, HFD_PG_INT8))
        return hfd_fail_nomem(err, "a commit of the store");
    return send_own(s, sql_mark, &p, NOTHING, err);
}

static hfd_rc send_commit(struct sending *s, struct hfd_err *err)
{
    struct hfd_db *db = s->db;
    const bool writes = db->changes != db->changes_before || s->burst->writes != NULL;
    const bool marked = writes && db->marks;
    hfd_rc rc = HFD_OK;

    db->commits += marked;
    if (marked)
        rc = send_mark(s, err);
    db->unsure = rc == HFD_OK && marked;
    return rc == HFD_OK ? send_own(s, sql_commit, &none, COMMITTED, err) : rc;
}

static hfd_rc send_all(struct sending *s, struct hfd_err *err)
{
    hfd_rc rc = s->burst->begins ? send_begin(s, err) : HFD_OK;

    if (rc == HFD_OK)
        rc = send_writes(s, err);
    if (rc == HFD_OK && s->burst->reads != NULL)
        rc = send_reads(s, err);
    if (rc == HFD_OK && s->burst->commits)
        rc = send_commit(s, err);
    return rc;
}

/* ---- answers ---- */

static struct hfd_value cell_of(const PGresult *r, int row, int column)
{
    const hfd_slice bytes = {PQgetvalue(r, row, column), (size_t)PQgetlength(r, row, column)};
    const Oid type = PQftype(r, column);
    struct hfd_value v = {.kind = HFD_VALUE_NONE, .null = PQgetisnull(r, row, column) != 0};

    if (v.null)
        return v;
    if (type == HFD_PG_BYTEA)
        return (struct hfd_value){HFD_VALUE_BLOB, false, {.bytes = bytes}};
    if (hfd_pg_is_text(type))
        return (struct hfd_value){HFD_VALUE_TEXT, false, {.bytes = bytes}};
    if (hfd_pg_number(type, bytes, &v.as.i64))
        v.kind = HFD_VALUE_I64;
    return v;
}

/* A row of a read whose parameter another one gave. It is all NULL where there is no such row. */
static hfd_rc take_followed(struct sending *s, struct hfd_known *follow,
                            const struct hfd_value *cells, int count, struct hfd_err *err)
{
    struct hfd_known *known;
    hfd_rc rc = hfd_known_found(s->burst->knowns, follow, &cells[0], &known, err);
    int nulls = 1;

    if (rc != HFD_OK || known == NULL)
        return rc;
    while (nulls < count && cells[nulls].null)
        nulls++;
    return nulls < count ? hfd_known_add_row(s->burst->knowns, known, cells + 1, count - 1, err)
                         : HFD_OK;
}

static hfd_rc take_rows(struct sending *s, const struct sent *sent, const PGresult *r,
                        struct hfd_err *err)
{
    const int first = adds_number(sent->form), columns = PQnfields(r) - first;
    struct hfd_value cells[COLUMNS_MAX];
    hfd_rc rc = HFD_OK;

    HFD_ASSERT(columns <= COLUMNS_MAX);
    for (int row = 0; rc == HFD_OK && row < PQntuples(r); row++) {
        const struct hfd_value at = cell_of(r, row, 0);
        const size_t element = first ? (size_t)at.as.i64 - 1 : 0;

        if (HFD_NEVER(element >= sent->count))
            return hfd_fail(err, HFD_CORRUPT, "store: a row of no read");
        for (int c = 0; c < columns; c++)
            cells[c] = cell_of(r, row, c + first);
        rc = sent->form == FORM_SET_FOLLOW
                 ? take_followed(s, sent->reads[element], cells, columns, err)
                 : hfd_known_add_row(s->burst->knowns, sent->reads[element], cells, columns, err);
    }
    return rc;
}

static hfd_rc take_answer(struct sending *s, const struct sent *sent, const PGresult *r,
                          struct hfd_err *err)
{
    int64_t changed;
    hfd_rc rc = hfd_pg_judge(s->db, r, sent->what, err);

    if (rc != HFD_OK)
        return rc;
    if (sent->answer == ROWS)
        return take_rows(s, sent, r, err);
    if (sent->answer == WRITTEN &&
        hfd_parse_i64(hfd_slice_of(PQcmdTuples((PGresult *)(uintptr_t)r)), 0, INT64_MAX, &changed,
                      NULL) == HFD_OK)
        s->db->changes += changed;
    if (sent->answer == COMMITTED && strcmp(PQcmdStatus((PGresult *)(uintptr_t)r), "COMMIT") != 0)
        return hfd_fail(err, HFD_BUSY, "store: PostgreSQL undid the transaction");
    return HFD_OK;
}

/* Takes the answers in the order of the statements. The server does nothing behind a failure. */
static hfd_rc take_answers(struct sending *s, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK, next;
    PGresult *r;

    for (size_t i = 0; i < s->count; i++) {
        next = hfd_pg_next(s->db, &r, err);
        if (next != HFD_OK)
            return next;
        if (rc == HFD_OK)
            rc = take_answer(s, &s->list[i], r, err);
        if (s->list[i].text != NULL && PQresultStatus(r) != PGRES_COMMAND_OK)
            s->list[i].text->session = 0; /* it is not prepared */
        PQclear(r);
        next = hfd_pg_next(s->db, &r, err); /* NULL ends a statement's answer */
        PQclear(r);
        if (next != HFD_OK)
            return next;
    }
    next = hfd_pg_next(s->db, &r, err); /* of the end of the burst */
    PQclear(r);
    return next == HFD_OK ? rc : next;
}

static hfd_rc exchange(struct sending *s, struct hfd_err *err)
{
    PGconn *conn = s->db->conn;
    hfd_rc rc;

    if (PQenterPipelineMode(conn) == 0)
        return hfd_pg_lost(s->db, PQerrorMessage(conn), err);
    rc = send_all(s, err);
    if (rc != HFD_OK) { /* a half burst must not be done */
        (void)hfd_pg_lost(s->db, "no memory for a burst", NULL);
        return rc;
    }
    if (s->lost || PQpipelineSync(conn) == 0)
        return hfd_pg_lost(s->db, PQerrorMessage(conn), err);
    rc = hfd_pg_flush(s->db, err);
    if (rc == HFD_OK)
        rc = take_answers(s, err);
    if (!s->db->broken && PQexitPipelineMode(conn) == 0)
        return hfd_pg_lost(s->db, PQerrorMessage(conn), err);
    return rc;
}

hfd_rc hfd_pg_burst(struct hfd_db *db, struct hfd_burst *burst, struct hfd_err *err)
{
    struct sending s = {.db = db, .burst = burst};
    hfd_rc rc;

    hfd_pg_check_owner(db);
    if (db->broken || (db->in_txn && db->fate != HFD_DB_GOES_ON))
        return hfd_pg_fail_before(db, err);
    hfd_arena_init(&s.mem, BYTES_MAX);
    rc = exchange(&s, err);
    if (burst->commits && rc == HFD_OK)
        db->in_txn = false;
    if (burst->commits)
        db->unsure = db->unsure && rc != HFD_OK && db->broken;
    hfd_arena_fini(&s.mem);
    return rc;
}
