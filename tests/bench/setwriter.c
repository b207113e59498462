/*
 * The yardstick of a durable PUT on PostgreSQL: libpq alone. It commits groups of units. A unit has
 * the rows that one PUT of the server wrote, under other keys. A group is two round trips: lock and
 * reads, then a set for each table, and COMMIT. Prints one JSON object.
 *
 * usage: setwriter --url URL --guresid GURESID --group UNITS --ms TIME --first NUMBER
 */
#include "driver/base/buf.h"
#include "driver/base/clock.h"

#include <getopt.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>

#define COLUMNS_MAX 40
#define SQL_MAX 8192
#define ARRAY_MAX ((size_t)256 << 20)
#define KEY_DIGITS 8
#define SEQ_STEP 1024                /* numbers of a unit */
#define SEQ_FIRST ((int64_t)1 << 50) /* no server of a bench comes so far */

/* The rows of a unit, in the order in which they are written. */
struct table {
    const char *name, *rows; /* rows: of $1, the GUResID */
    PGresult *unit;
    char insert[SQL_MAX];
};

static struct table tables[] = {
    {.name = "fleet", .rows = "id IN (SELECT fleet_id FROM part WHERE guresid = $1)"},
    {.name = "fleet_label",
     .rows = "fleet_seq IN (SELECT seq FROM fleet f JOIN part p ON p.fleet_id = f.id"
             " WHERE p.guresid = $1)"},
    {.name = "fleet_condition",
     .rows = "fleet_seq IN (SELECT seq FROM fleet f JOIN part p ON p.fleet_id = f.id"
             " WHERE p.guresid = $1)"},
    {.name = "part", .rows = "guresid = $1"},
    {.name = "resource", .rows = "guresid = $1"},
};
#define TABLES (sizeof(tables) / sizeof(tables[0]))

/* The reads of a PUT of a new GUResID. $1 are names of clusters, and GUResIDs. */
#define EACH(columns, rows)                                                                        \
    "SELECT q.* FROM unnest($1::text[]) AS x(k), LATERAL (SELECT " columns " FROM " rows           \
    " OFFSET 0) AS q"
static const char *const reads[] = {
    EACH("guresid", "resource WHERE guresid = x.k"),
    EACH("guresid", "part WHERE guresid = x.k"),
    EACH("id", "fleet WHERE kind = 1 AND owner_id = '' AND name = x.k AND deleted_us = 0"),
    EACH("about", "tombstone WHERE about = 0 AND id = x.k"),
};
#define READS (sizeof(reads) / sizeof(reads[0]))

static const char counts[] =
    "INSERT INTO fleet_count (kind, field, name, value, n)"
    " SELECT kind, field, name, value, 1 FROM fleet_count ORDER BY kind, field, name, value LIMIT 8"
    " ON CONFLICT (kind, field, name, value) DO UPDATE SET n = fleet_count.n + excluded.n";
static const char mark[] = "INSERT INTO hfd_commit (replica, n) VALUES ('setwriter', $1)"
                           " ON CONFLICT (replica) DO UPDATE SET n = excluded.n";

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

/* ---- the unit ---- */

static void read_unit(PGconn *conn, const char *guresid)
{
    for (size_t i = 0; i < TABLES; i++) {
        struct table *t = &tables[i];
        struct hfd_buf sql;

        hfd_buf_init(&sql, SQL_MAX);
        hfd_buf_addf(&sql, "SELECT * FROM %s WHERE %s", t->name, t->rows);
        hfd_buf_addc(&sql, '\0');
        t->unit = PQexecParams(conn, sql.p, 1, NULL, &guresid, NULL, NULL, 0);
        if (PQresultStatus(t->unit) != PGRES_TUPLES_OK || PQntuples(t->unit) == 0 ||
            PQnfields(t->unit) > COLUMNS_MAX)
            die(conn, t->name);
        hfd_buf_reset(&sql);
        hfd_buf_addf(&sql, "INSERT INTO %s SELECT * FROM unnest(", t->name);
        for (int c = 0; c < PQnfields(t->unit); c++)
            hfd_buf_addf(&sql, "%s$%d::%s[]", c > 0 ? ", " : "", c + 1,
                         PQftype(t->unit, c) == 20   ? "bigint"
                         : PQftype(t->unit, c) == 25 ? "text"
                                                     : "bytea");
        hfd_buf_lit(&sql, ")");
        hfd_buf_addc(&sql, '\0');
        if (sql.rc != HFD_OK)
            die(NULL, "no memory");
        (void)snprintf(t->insert, sizeof(t->insert), "%s", sql.p);
        hfd_buf_fini(&sql);
        end(conn, PQprepare(conn, t->name, t->insert, 0, NULL), t->name);
    }
}

static void add_quoted(struct hfd_buf *b, const char *text)
{
    hfd_buf_addc(b, '"');
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            hfd_buf_addc(b, '\\');
        hfd_buf_addc(b, *text);
    }
    hfd_buf_addc(b, '"');
}

/* Another key of the same length. */
static void add_key(struct hfd_buf *b, const char *was, int64_t n)
{
    const size_t len = strlen(was);
    char key[256];

    if (len < KEY_DIGITS || len >= sizeof(key)) {
        (void)snprintf(key, sizeof(key), "%s%08llx", len < sizeof(key) ? was : "", (long long)n);
    } else {
        memcpy(key, was, len);
        (void)snprintf(key + len - KEY_DIGITS, KEY_DIGITS + 1, "%08llx", (long long)n);
    }
    add_quoted(b, key);
}

static int64_t number_of(const char *text)
{
    int64_t v;

    if (hfd_parse_i64(hfd_slice_of(text), 0, INT64_MAX, &v, NULL) != HFD_OK)
        die(NULL, "a number of the unit");
    return v;
}

static void add_cell(struct hfd_buf *b, const struct table *t, int row, int column, int64_t n)
{
    static const char *const keys[] = {"id",         "owner_id", "fleet_id", "guresid",
                                       "cluster_id", "name",     NULL};
    static const char *const numbers[] = {"seq", "fleet_seq", NULL};
    const char *value = PQgetvalue(t->unit, row, column);
    const char *name = PQfname(t->unit, column);

    if (PQgetisnull(t->unit, row, column))
        hfd_buf_lit(b, "NULL");
    else if (is_one_of(name, numbers))
        hfd_buf_addf(b, "%lld",
                     (long long)(SEQ_FIRST + n * SEQ_STEP + number_of(value) % SEQ_STEP));
    else if (is_one_of(name, keys) && *value != '\0')
        add_key(b, value, n);
    else
        add_quoted(b, value);
}

/* ---- a group ---- */

static void send(PGconn *conn, const char *sql)
{
    if (PQsendQueryParams(conn, sql, 0, NULL, NULL, NULL, NULL, 1) == 0)
        die(conn, sql);
}

static void send_reads(PGconn *conn, int64_t first, int group)
{
    const struct table *resource = &tables[TABLES - 1];
    const int at = PQfnumber(resource->unit, "guresid");
    struct hfd_buf ids;

    send(conn, "BEGIN");
    send(conn, "SELECT pg_advisory_xact_lock(7, 7)");
    hfd_buf_init(&ids, ARRAY_MAX);
    hfd_buf_addc(&ids, '{');
    for (int i = 0; i < group; i++) {
        hfd_buf_add(&ids, hfd_slice_of(i > 0 ? "," : ""));
        add_cell(&ids, resource, 0, at, first + i);
    }
    hfd_buf_lit(&ids, "}");
    hfd_buf_addc(&ids, '\0');
    for (size_t i = 0; i < READS; i++) {
        char name[8];
        const char *values[] = {ids.p};

        (void)snprintf(name, sizeof(name), "r%zu", i);
        if (ids.rc != HFD_OK || PQsendQueryPrepared(conn, name, 1, values, NULL, NULL, 1) == 0)
            die(conn, reads[i]);
    }
    hfd_buf_fini(&ids);
}

static void send_table(PGconn *conn, const struct table *t, int64_t first, int group)
{
    const int columns = PQnfields(t->unit);
    const char *values[COLUMNS_MAX];
    struct hfd_buf arrays[COLUMNS_MAX];

    for (int c = 0; c < columns; c++) {
        struct hfd_buf *b = &arrays[c];

        hfd_buf_init(b, ARRAY_MAX);
        for (int i = 0; i < group; i++)
            for (int row = 0; row < PQntuples(t->unit); row++) {
                hfd_buf_addc(b, i + row == 0 ? '{' : ',');
                add_cell(b, t, row, c, first + i);
            }
        hfd_buf_lit(b, "}");
        hfd_buf_addc(b, '\0');
        if (b->rc != HFD_OK)
            die(NULL, "no memory");
        values[c] = b->p;
    }
    if (PQsendQueryPrepared(conn, t->name, columns, values, NULL, NULL, 1) == 0)
        die(conn, t->name);
    for (int c = 0; c < columns; c++)
        hfd_buf_fini(&arrays[c]);
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

static void commit_group(PGconn *conn, int64_t first, int group)
{
    char number[24];
    const char *values[] = {number};

    send_reads(conn, first, group);
    await(conn);
    for (size_t i = 0; i < TABLES; i++)
        send_table(conn, &tables[i], first, group);
    send(conn, counts);
    (void)snprintf(number, sizeof(number), "%lld", (long long)first);
    if (PQsendQueryParams(conn, mark, 1, NULL, values, NULL, NULL, 1) == 0)
        die(conn, "mark");
    send(conn, "COMMIT");
    await(conn);
}

static void prepare(PGconn *conn, const char *guresid)
{
    read_unit(conn, guresid);
    for (size_t i = 0; i < READS; i++) {
        char name[8];

        (void)snprintf(name, sizeof(name), "r%zu", i);
        end(conn, PQprepare(conn, name, reads[i], 0, NULL), reads[i]);
    }
}

int main(int argc, char **argv)
{
    static const struct option known[] = {{"url", 1, NULL, 'u'},   {"guresid", 1, NULL, 'i'},
                                          {"group", 1, NULL, 'g'}, {"ms", 1, NULL, 't'},
                                          {"first", 1, NULL, 'f'}, {NULL, 0, NULL, 0}};
    const char *url = "", *guresid = "";
    int64_t group = 1, ms = 1000, first = 0, done = 0, began_us, took_us;
    PGconn *conn;
    int c;

    while ((c = getopt_long(argc, argv, "", known, NULL)) != -1)
        if (c == 'u')
            url = optarg;
        else if (c == 'i')
            guresid = optarg;
        else if (c == '?' || hfd_parse_i64(hfd_slice_of(optarg), 0, INT32_MAX,
                                           c == 'g'   ? &group
                                           : c == 't' ? &ms
                                                      : &first,
                                           NULL) != HFD_OK)
            die(NULL, "usage: see the head of setwriter.c");
    conn = PQconnectdb(url);
    if (PQstatus(conn) != CONNECTION_OK)
        die(conn, "connect");
    end(conn, PQexec(conn, "SET enable_seqscan = off"), "set"); /* as the program does */
    prepare(conn, guresid);
    if (PQenterPipelineMode(conn) == 0)
        die(conn, "pipeline");
    began_us = hfd_clock_mono_us(&hfd_clock_system);
    do {
        commit_group(conn, first + done, (int)group);
        done += group;
        took_us = hfd_clock_mono_us(&hfd_clock_system) - began_us;
    } while (took_us < ms * 1000);
    (void)printf("{\"rate\": %.1f, \"units\": %lld, \"next\": %lld}\n",
                 (double)done * 1e6 / (double)took_us, (long long)done, (long long)(first + done));
    for (size_t i = 0; i < TABLES; i++)
        PQclear(tables[i].unit);
    PQfinish(conn);
    return 0;
}
