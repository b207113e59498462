/*
 * The yardstick of a durable PUT on PostgreSQL: libpq alone. It commits groups of units. A unit has
 * the rows that one PUT of the server wrote, under other keys. A group is two round trips: reads,
 * then a set for each table, and COMMIT.
 *
 * usage: setwriter --url URL --guresid GURESID --as WHAT --units N --groups N --ms TIME --first N
 *
 * As "prototype" it sends as much as the set writer of the first study: three reads of all
 * GUResIDs. It takes no lock, and leaves no mark of its commit. As "server" it sends as much as the
 * server's writer: the locks, the number, all reads of a PUT, and the mark. Groups
 * have units / groups units in the mean. It prints one JSON object.
 */
#include "driver/base/clock.h"
#include "store/postgres/gather.h"
#include "store/postgres/text.h"
#include "store/postgres/engine.h"
#include "store/postgres/value.h"

#include <getopt.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>

#define COLUMNS_MAX 40
#define SQL_MAX 8192
#define ARRAY_MAX ((size_t)256 << 20)
#define KEY_DIGITS 8
#define KEY_MAX 256
#define SEQ_STEP 1024                /* numbers of a unit */
#define SEQ_FIRST ((int64_t)1 << 50) /* no server of a bench comes so far */

/* The rows of a unit, in the order in which they are written. */
struct table {
    const char *name, *rows; /* rows: of $1, the GUResID */
    const char *conflict;    /* of the INSERT */
    PGresult *unit;
    bool varies[COLUMNS_MAX]; /* otherwise the column is one value, not an array */
};

/* They are found by keys: to look for them must not cost what is measured. */
static struct table tables[] = {
    {.name = "fleet",
     .rows = "part p JOIN fleet t ON t.id = p.fleet_id WHERE p.guresid = $1 ORDER BY t.seq",
     .conflict = ""},
    {.name = "fleet_label",
     .rows = "part p JOIN fleet f ON f.id = p.fleet_id, jsonb_each_text(f.labels::jsonb) AS k,"
             " LATERAL (SELECT * FROM fleet_label WHERE kind = f.kind AND key = k.key"
             " AND value = k.value AND created_us = f.created_us AND fleet_seq = f.seq OFFSET 0)"
             " AS t WHERE p.guresid = $1 ORDER BY f.seq",
     .conflict = ""},
    {.name = "fleet_condition",
     .rows = "part p JOIN fleet f ON f.id = p.fleet_id,"
             " jsonb_array_elements(f.conditions::jsonb) AS k,"
             " LATERAL (SELECT * FROM fleet_condition WHERE kind = f.kind AND type = k->>'type'"
             " AND status = k->>'status' AND created_us = f.created_us AND fleet_seq = f.seq"
             " OFFSET 0) AS t WHERE p.guresid = $1 ORDER BY f.seq",
     .conflict = ""},
    {.name = "resource",
     .rows = "resource t WHERE guresid = $1",
     .conflict = " ON CONFLICT (guresid) DO UPDATE SET state = excluded.state"},
    {.name = "part",
     .rows = "part t WHERE guresid = $1 ORDER BY kind",
     .conflict = " ON CONFLICT (guresid, fleet_id) DO UPDATE SET generation = excluded.generation"},
};
#define TABLES (sizeof(tables) / sizeof(tables[0]))
#define RESOURCE 3

/* A statement with at most one parameter: the GUResIDs of the group, or their roots. */
struct query {
    const char *sql;
    enum {
        NO_PARAMETER,
        IDS,
        ROOTS
    } parameter;
    char name[8]; /* prepared */
};

#define ORPHANS                                                                                    \
    "SELECT x.n, q.* FROM unnest($1) WITH ORDINALITY AS x(k, n) CROSS JOIN LATERAL"                \
    " (SELECT f.id, f.kind, f.owner_id, l.value, f.name, f.generation, f.ready, f.created_us,"     \
    " f.deleted_us, f.created_by FROM fleet_label l JOIN fleet f ON f.seq = l.fleet_seq"           \
    " WHERE l.kind = 1 AND l.key = 'humanitec_guresid' AND l.value = x.k"                          \
    " AND NOT EXISTS (SELECT 1 FROM part p WHERE p.fleet_id = f.id)"                               \
    " ORDER BY l.created_us, l.fleet_seq LIMIT 100 OFFSET 0) AS q"
#define FORECAST                                                                                   \
    "SELECT prior_us, deadline_us, plan FROM forecast WHERE kind = 1 AND op = 1 AND size = 2"

static struct query prototype_reads[] = {
    {"SELECT * FROM resource WHERE guresid = ANY($1)", IDS, ""},
    {ORPHANS, IDS, ""}, /* with = ANY, too, it would read all labels with this key */
    {FORECAST, NO_PARAMETER, ""},
    {NULL, NO_PARAMETER, ""},
};

/* The forms of store/postgres/burst.c. */
#define EACH(columns, rows)                                                                        \
    "SELECT x.n, q.* FROM unnest($1) WITH ORDINALITY AS x(k, n) CROSS JOIN LATERAL"                \
    " (SELECT " columns " FROM " rows " OFFSET 0) AS q"
#define FOLLOW(via, rows)                                                                          \
    "SELECT x.n, d.k1, q.* FROM unnest($1) WITH ORDINALITY AS x(k, n) CROSS JOIN LATERAL"          \
    " (SELECT " via " OFFSET 0) AS d(k1) LEFT JOIN LATERAL (SELECT * FROM " rows                   \
    " OFFSET 0) AS q ON TRUE"
#define PARTS "fleet_id FROM part WHERE guresid = x.k"

static struct query server_reads[] = {
    {HFD_PG_SQL_SHARE, NO_PARAMETER, ""},
    {hfd_roots_sql, ROOTS, ""},
    {hfd_roots_sql, ROOTS, ""},
    {"SELECT pg_current_xact_id()", NO_PARAMETER, ""},
    {EACH("*", "fleet WHERE kind = 1 AND owner_id = '' AND name = x.k AND deleted_us = 0"), IDS,
     ""},
    {ORPHANS, IDS, ""},
    {FORECAST, NO_PARAMETER, ""},
    {"SELECT size, took_us, ending, milestones FROM past WHERE kind = 1 AND op = 1"
     " ORDER BY CASE WHEN size = 2 THEN 0 ELSE 1 END, ended_us DESC, size LIMIT 64",
     NO_PARAMETER, ""},
    {FOLLOW("CAST(x.k AS TEXT)", "part WHERE guresid = d.k1 ORDER BY kind, name, fleet_id"), IDS,
     ""},
    {FOLLOW("CAST(x.k AS TEXT)", "resource WHERE guresid = d.k1"), IDS, ""},
    {FOLLOW(PARTS, "fleet WHERE id = d.k1"), IDS, ""},
    {FOLLOW(PARTS, "report WHERE fleet_id = d.k1 ORDER BY created_us, adapter"), IDS, ""},
    {NULL, NO_PARAMETER, ""},
};

/* The session of a writer: see store/postgres/connect.c. */
static const char session[] =
    "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;"
    " SET plan_cache_mode = force_generic_plan; SET jit = off; SET TimeZone = 'UTC'";
/* PostgreSQL makes the others itself. */
static const char columns_of[] =
    "SELECT string_agg('t.' || attname, ', ' ORDER BY attnum) FROM pg_attribute"
    " WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''";
static const char tombstones[] =
    "DELETE FROM tombstone USING unnest($1) AS x(k) WHERE about = 0 AND id = x.k";
static const char counts_of[] = "SELECT kind, field, name, value FROM fleet_count ORDER BY kind, "
                                "field, name, value LIMIT 9"; /* what a PUT changes */
static const char counts_add[] =
    "INSERT INTO fleet_count (kind, field, name, value, n) SELECT x.k, x.f, x.m, x.v, $5::bigint"
    " FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[]) AS x(k, f, m, v)"
    " ON CONFLICT (kind, field, name, value) DO UPDATE SET n = fleet_count.n + excluded.n";
static const char mark[] = "INSERT INTO hfd_commit (replica, n) VALUES ('setwriter', $1)"
                           " ON CONFLICT (replica) DO UPDATE SET n = excluded.n";

struct writer {
    PGconn *conn;
    const char *guresid;
    bool as_server;
    struct query *reads;
    PGresult *counts;
};

struct group {
    int64_t first, now_us;
    int size;
};

static _Noreturn void die(PGconn *conn, const char *what)
{
    (void)fprintf(stderr, "setwriter: %s: %s\n", what, conn != NULL ? PQerrorMessage(conn) : "");
    exit(2);
}

static void end(PGconn *conn, PGresult *r, const char *what)
{
    const ExecStatusType status = PQresultStatus(r);

    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        die(conn, what);
    PQclear(r);
}

static bool is_one_of(const char *name, const char *const *names)
{
    while (*names != NULL && strcmp(name, *names) != 0)
        names++;
    return *names != NULL;
}

/* ---- cells ---- */

static hfd_slice bytes_of(const PGresult *r, int row, int column)
{
    return (hfd_slice){PQgetvalue(r, row, column), (size_t)PQgetlength(r, row, column)};
}

static enum hfd_value_kind kind_of(const PGresult *r, int column)
{
    const Oid type = PQftype(r, column);

    return type == HFD_PG_INT8     ? HFD_VALUE_I64
           : type == HFD_PG_FLOAT8 ? HFD_VALUE_F64
           : type == HFD_PG_BYTEA  ? HFD_VALUE_BLOB
                                   : HFD_VALUE_TEXT;
}

static bool is_number(const char *column)
{
    static const char *const numbers[] = {"seq", "fleet_seq", NULL};

    return is_one_of(column, numbers);
}

static bool is_time(const char *column)
{
    static const char *const times[] = {"created_us", "updated_us", NULL};

    return is_one_of(column, times);
}

/* A column that has another value in another unit. */
static bool is_key(const struct writer *w, const struct table *t, int row, int column)
{
    static const char *const keys[] = {"id",         "owner_id", "fleet_id", "guresid",
                                       "cluster_id", "name",     NULL};
    const hfd_slice value = bytes_of(t->unit, row, column);

    return value.len > 0 && (is_one_of(PQfname(t->unit, column), keys) ||
                             hfd_slice_eq(value, hfd_slice_of(w->guresid)));
}

/* Another key of the same length. */
static hfd_slice key_of(hfd_slice was, int64_t n, char *out)
{
    char digits[KEY_DIGITS + 1];
    const size_t keep = was.len > KEY_DIGITS ? was.len - KEY_DIGITS : was.len;

    if (keep + KEY_DIGITS > KEY_MAX || n >> (4 * KEY_DIGITS) != 0)
        die(NULL, "a key of the unit");
    (void)snprintf(digits, sizeof(digits), "%08llx", (long long)n);
    memcpy(out, was.p, keep);
    memcpy(out + keep, digits, KEY_DIGITS);
    return (hfd_slice){out, keep + KEY_DIGITS};
}

/* A value, at a row and column of a table, of the n-th unit. */
struct cell {
    const struct table *table;
    int row, column;
    int64_t n, now_us;
};

static void add_cell(struct hfd_buf *b, const struct writer *w, const struct cell *c)
{
    const PGresult *unit = c->table->unit;
    const char *name = PQfname(unit, c->column);
    const hfd_slice bytes = bytes_of(unit, c->row, c->column);
    struct hfd_value v = {.kind = kind_of(unit, c->column),
                          .null = PQgetisnull(unit, c->row, c->column) != 0};
    char key[KEY_MAX];

    v.as.bytes = bytes;
    if (!v.null && v.kind == HFD_VALUE_I64 && !hfd_pg_number(HFD_PG_INT8, bytes, &v.as.i64))
        die(NULL, "a number of the unit");
    if (!v.null && is_number(name))
        v.as.i64 = SEQ_FIRST + c->n * SEQ_STEP + v.as.i64 % SEQ_STEP;
    else if (is_time(name))
        v.as.i64 = c->now_us;
    else if (is_key(w, c->table, c->row, c->column))
        v.as.bytes = key_of(bytes, c->n, key);
    hfd_pg_array_add(b, &v);
}

/* ---- sending ---- */

struct params {
    int count;
    struct hfd_buf bytes[COLUMNS_MAX + 1];
    const char *values[COLUMNS_MAX + 1];
    int lengths[COLUMNS_MAX + 1], formats[COLUMNS_MAX + 1];
};

static struct hfd_buf *add_param(struct params *p)
{
    hfd_buf_init(&p->bytes[p->count], ARRAY_MAX);
    return &p->bytes[p->count++];
}

/* An array's element has its length in front, which a value alone does not have. */
static void take_length_off(struct params *p, int at)
{
    if (p->lengths[at] < 0 || p->bytes[at].len < 4)
        die(NULL, "a value");
    p->values[at] += 4;
    p->lengths[at] -= 4;
    if (p->bytes[at].p[0] == '\xff') /* NULL */
        p->values[at] = NULL;
}

static void add_number(struct params *p, int64_t number)
{
    const struct hfd_value v = {HFD_VALUE_I64, false, {.i64 = number}};

    hfd_pg_array_add(add_param(p), &v);
}

/* @param scalars  which parameters are one value; NULL = none */
static void send(const struct writer *w, const char *name, struct params *p, const bool *scalars)
{
    for (int i = 0; i < p->count; i++) {
        if (p->bytes[i].rc != HFD_OK)
            die(NULL, "no memory");
        p->values[i] = p->bytes[i].p;
        p->lengths[i] = (int)p->bytes[i].len;
        p->formats[i] = 1;
        if (scalars != NULL && scalars[i])
            take_length_off(p, i);
    }
    if (PQsendQueryPrepared(w->conn, name, p->count, p->values, p->lengths, p->formats, 1) == 0)
        die(w->conn, name);
    for (int i = 0; i < p->count; i++)
        hfd_buf_fini(&p->bytes[i]);
}

static void send_plain(const struct writer *w, const char *sql)
{
    if (PQsendQueryParams(w->conn, sql, 0, NULL, NULL, NULL, NULL, 1) == 0)
        die(w->conn, sql);
}

static void await(PGconn *conn)
{
    bool open = true;

    if (PQpipelineSync(conn) == 0)
        die(conn, "send");
    while (open) {
        PGresult *r = PQgetResult(conn);

        if (r == NULL)
            continue; /* between two statements */
        open = PQresultStatus(r) != PGRES_PIPELINE_SYNC;
        if (open)
            end(conn, r, "a statement");
        else
            PQclear(r);
    }
}

/* ---- the unit ---- */

/* The prototype sends one value for a column that is the same in all rows. */
static bool varies(const struct writer *w, const struct table *t, int column)
{
    const char *name = PQfname(t->unit, column);
    bool differs = w->as_server || is_number(name);

    for (int row = 0; !differs && row < PQntuples(t->unit); row++)
        differs = is_key(w, t, row, column) ||
                  PQgetisnull(t->unit, row, column) != PQgetisnull(t->unit, 0, column) ||
                  !hfd_slice_eq(bytes_of(t->unit, row, column), bytes_of(t->unit, 0, column));
    return differs && !(is_time(name) && !w->as_server);
}

static const char *type_of(const PGresult *r, int column)
{
    static const char *const types[] = {[HFD_VALUE_NONE] = "text",
                                        [HFD_VALUE_I64] = "bigint",
                                        [HFD_VALUE_F64] = "float8",
                                        [HFD_VALUE_TEXT] = "text",
                                        [HFD_VALUE_BLOB] = "bytea"};

    return types[kind_of(r, column)];
}

static void add_insert(struct hfd_buf *sql, const struct table *t)
{
    const int columns = PQnfields(t->unit);
    const char *sep = "";

    hfd_buf_addf(sql, "INSERT INTO %s (", t->name);
    for (int c = 0; c < columns; c++)
        hfd_buf_addf(sql, "%s%s", c > 0 ? ", " : "", PQfname(t->unit, c));
    hfd_buf_lit(sql, ") SELECT ");
    for (int c = 0; c < columns; c++)
        hfd_buf_addf(sql, t->varies[c] ? "%sx.p%d" : "%s$%d::%s", c > 0 ? ", " : "", c + 1,
                     type_of(t->unit, c));
    hfd_buf_lit(sql, " FROM unnest(");
    for (int c = 0; c < columns; c++)
        if (t->varies[c]) {
            hfd_buf_addf(sql, "%s$%d::%s[]", sep, c + 1, type_of(t->unit, c));
            sep = ", ";
        }
    hfd_buf_lit(sql, ") AS x(");
    sep = "";
    for (int c = 0; c < columns; c++)
        if (t->varies[c]) {
            hfd_buf_addf(sql, "%sp%d", sep, c + 1);
            sep = ", ";
        }
    hfd_buf_addf(sql, ")%s", t->conflict);
}

/* Reads the rows of the unit: the columns that are written. */
static void read_unit(const struct writer *w, struct table *t)
{
    PGresult *columns = PQexecParams(w->conn, columns_of, 1, NULL, &t->name, NULL, NULL, 0);
    char read[SQL_MAX];

    if (PQresultStatus(columns) != PGRES_TUPLES_OK)
        die(w->conn, t->name);
    (void)snprintf(read, sizeof(read), "SELECT %s FROM %s", PQgetvalue(columns, 0, 0), t->rows);
    PQclear(columns);
    t->unit = PQexecParams(w->conn, read, 1, NULL, &w->guresid, NULL, NULL, 1);
    if (PQresultStatus(t->unit) != PGRES_TUPLES_OK || PQntuples(t->unit) == 0 ||
        PQnfields(t->unit) > COLUMNS_MAX)
        die(w->conn, t->name);
    for (int c = 0; c < PQnfields(t->unit); c++)
        t->varies[c] = varies(w, t, c);
}

static void prepare_table(const struct writer *w, struct table *t)
{
    struct hfd_buf sql;

    read_unit(w, t);
    hfd_buf_init(&sql, SQL_MAX);
    add_insert(&sql, t);
    hfd_buf_addc(&sql, '\0');
    if (sql.rc != HFD_OK)
        die(NULL, "no memory");
    end(w->conn, PQprepare(w->conn, t->name, sql.p, 0, NULL), t->name);
    hfd_buf_fini(&sql);
}

static void prepare_read(const struct writer *w, struct query *q, int n)
{
    const Oid type = hfd_pg_array_type(HFD_VALUE_TEXT);
    int params;
    char *sql = hfd_pg_placeholders(hfd_slice_of(q->sql), "$", &params);

    if (sql == NULL)
        die(NULL, "no memory");
    (void)snprintf(q->name, sizeof(q->name), "r%d", n);
    end(w->conn, PQprepare(w->conn, q->name, sql, q->parameter == NO_PARAMETER ? 0 : 1, &type),
        q->sql);
    free(sql);
}

static void prepare(struct writer *w)
{
    const Oid ids = hfd_pg_array_type(HFD_VALUE_TEXT), number = HFD_PG_INT8;

    end(w->conn, PQexec(w->conn, session), "session");
    for (size_t i = 0; i < TABLES; i++)
        prepare_table(w, &tables[i]);
    w->reads = w->as_server ? server_reads : prototype_reads;
    for (int i = 0; w->reads[i].sql != NULL; i++)
        prepare_read(w, &w->reads[i], i);
    w->counts = PQexecParams(w->conn, counts_of, 0, NULL, NULL, NULL, NULL, 1);
    if (PQresultStatus(w->counts) != PGRES_TUPLES_OK || PQntuples(w->counts) == 0)
        die(w->conn, "fleet_count");
    end(w->conn, PQprepare(w->conn, "counts", counts_add, 0, NULL), "counts");
    end(w->conn, PQprepare(w->conn, "tombstones", tombstones, 1, &ids), "tombstones");
    end(w->conn, PQprepare(w->conn, "mark", mark, 1, &number), "mark");
}

/* ---- a group ---- */

/* The GUResIDs of a group, each behind a prefix. */
static void add_ids(struct hfd_buf *b, const struct writer *w, const struct group *g,
                    const char *prefix)
{
    char key[KEY_MAX], id[KEY_MAX + 8];

    hfd_pg_array_begin(b, HFD_VALUE_TEXT, (size_t)g->size);
    for (int i = 0; i < g->size; i++) {
        const hfd_slice name = key_of(hfd_slice_of(w->guresid), g->first + i, key);
        struct hfd_value v = {.kind = HFD_VALUE_TEXT};

        (void)snprintf(id, sizeof(id), "%s%.*s", prefix, HFD_SLICE_FMT(name));
        v.as.bytes = hfd_slice_of(id);
        hfd_pg_array_add(b, &v);
    }
}

static void send_reads(const struct writer *w, const struct group *g)
{
    send_plain(w, "BEGIN");
    for (const struct query *q = w->reads; q->sql != NULL; q++) {
        struct params p = {.count = 0};

        if (q->parameter != NO_PARAMETER)
            add_ids(add_param(&p), w, g, q->parameter == ROOTS ? "r" : "");
        send(w, q->name, &p, NULL);
    }
}

static void send_table(const struct writer *w, const struct table *t, const struct group *g)
{
    const int columns = PQnfields(t->unit), rows = PQntuples(t->unit);
    bool scalars[COLUMNS_MAX + 1] = {false};
    struct params p = {.count = 0};

    for (int c = 0; c < columns; c++) {
        struct hfd_buf *b = add_param(&p);
        struct cell cell = {t, 0, c, g->first, g->now_us};

        scalars[c] = !t->varies[c];
        if (scalars[c]) {
            add_cell(b, w, &cell);
            continue;
        }
        hfd_pg_array_begin(b, kind_of(t->unit, c), (size_t)g->size * (size_t)rows);
        for (int i = 0; i < g->size; i++)
            for (cell.n = g->first + i, cell.row = 0; cell.row < rows; cell.row++)
                add_cell(b, w, &cell);
    }
    send(w, t->name, &p, scalars);
}

static void send_counts(const struct writer *w, const struct group *g)
{
    static const bool scalars[COLUMNS_MAX + 1] = {[4] = true};
    const struct table sums = {.name = "", .unit = w->counts};
    struct params p = {.count = 0};

    for (int c = 0; c < PQnfields(w->counts); c++) {
        struct hfd_buf *b = add_param(&p);

        hfd_pg_array_begin(b, kind_of(w->counts, c), (size_t)PQntuples(w->counts));
        for (int row = 0; row < PQntuples(w->counts); row++) {
            struct hfd_value v = {.kind = kind_of(sums.unit, c)};

            v.as.bytes = bytes_of(sums.unit, row, c);
            if (v.kind == HFD_VALUE_I64 && !hfd_pg_number(HFD_PG_INT8, v.as.bytes, &v.as.i64))
                die(NULL, "a number of fleet_count");
            hfd_pg_array_add(b, &v);
        }
    }
    add_number(&p, g->size);
    send(w, "counts", &p, scalars);
}

static void send_mark(const struct writer *w, const struct group *g)
{
    static const bool scalars[] = {true};
    struct params p = {.count = 0};

    add_number(&p, g->first);
    send(w, "mark", &p, scalars);
}

static void commit_group(const struct writer *w, const struct group *g)
{
    send_reads(w, g);
    await(w->conn);
    for (size_t i = 0; i < TABLES; i++)
        send_table(w, &tables[i], g);
    if (w->as_server) {
        struct params p = {.count = 0};

        add_ids(add_param(&p), w, g, "");
        send(w, "tombstones", &p, NULL);
    }
    send_counts(w, g);
    if (w->as_server)
        send_mark(w, g);
    send_plain(w, "COMMIT");
    await(w->conn);
}

/* ---- the command line ---- */

struct asked {
    const char *url, *guresid, *as;
    int64_t units, groups, ms, first;
};

static struct asked read_options(int argc, char **argv)
{
    static const struct option known[] = {{"url", 1, NULL, 'u'},  {"guresid", 1, NULL, 'i'},
                                          {"as", 1, NULL, 'a'},   {"units", 1, NULL, 0},
                                          {"groups", 1, NULL, 1}, {"ms", 1, NULL, 2},
                                          {"first", 1, NULL, 3},  {NULL, 0, NULL, 0}};
    struct asked o = {"", "", "", 1, 1, 1000, 0};
    int64_t *const numbers[] = {&o.units, &o.groups, &o.ms, &o.first};
    int c;

    while ((c = getopt_long(argc, argv, "", known, NULL)) != -1)
        if (c == 'u')
            o.url = optarg;
        else if (c == 'i')
            o.guresid = optarg;
        else if (c == 'a')
            o.as = optarg;
        else if (c == '?' ||
                 hfd_parse_i64(hfd_slice_of(optarg), 0, INT32_MAX, numbers[c], NULL) != HFD_OK)
            die(NULL, "usage: see the head of setwriter.c");
    if ((strcmp(o.as, "server") != 0 && strcmp(o.as, "prototype") != 0) || o.groups == 0 ||
        o.units < o.groups || o.units / o.groups > (int64_t)HFD_ROOTS_MAX)
        die(NULL, "usage: see the head of setwriter.c");
    return o;
}

int main(int argc, char **argv)
{
    const struct asked o = read_options(argc, argv);
    struct writer w = {.guresid = o.guresid, .as_server = strcmp(o.as, "server") == 0};
    int64_t done = 0, groups = 0, next, began_us, took_us;

    w.conn = PQconnectdb(o.url);
    if (PQstatus(w.conn) != CONNECTION_OK)
        die(w.conn, "connect");
    prepare(&w);
    if (PQenterPipelineMode(w.conn) == 0)
        die(w.conn, "pipeline");
    began_us = hfd_clock_mono_us(&hfd_clock_system);
    do {
        const int64_t goal = (groups + 1) * o.units / o.groups;
        const struct group g = {o.first + done, hfd_clock_wall_us(&hfd_clock_system),
                                (int)(goal - done)};

        commit_group(&w, &g);
        done = goal;
        groups++;
        took_us = hfd_clock_mono_us(&hfd_clock_system) - began_us;
    } while (took_us < o.ms * 1000);
    next = o.first + done;
    (void)printf("{\"rate\": %.1f, \"units\": %lld, \"groups\": %lld, \"next\": %lld}\n",
                 (double)done * 1e6 / (double)took_us, (long long)done, (long long)groups,
                 (long long)next);
    for (size_t i = 0; i < TABLES; i++)
        PQclear(tables[i].unit);
    PQclear(w.counts);
    PQfinish(w.conn);
    return 0;
}
