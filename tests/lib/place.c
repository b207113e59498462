/* See place.h. */
#include "tests/lib/place.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include <libpq-fe.h>

#include "tests/lib/tmpdir.h"

#define URL_MAX 512
#define SCHEMA_MAX 64

/* A schema that this process made. */
struct schema {
    struct schema *next;
    pid_t pid;
    char dir[256];
    char name[SCHEMA_MAX];
    char url[URL_MAX + SCHEMA_MAX];
};

static struct schema *schemas;

static void drop_notice(void *ctx, const PGresult *notice)
{
    (void)ctx;
    (void)notice;
}

static const char *url_of_test(void)
{
    const char *url = getenv("HFD_TEST_STORE");

    return url != NULL && strncmp(url, "postgres", 8) == 0 ? url : NULL;
}

bool test_on_postgres(void)
{
    return url_of_test() != NULL;
}

static void run(PGconn *conn, const char *verb, const struct schema *s, const char *end)
{
    char sql[SCHEMA_MAX + 64];
    PGresult *r;

    (void)snprintf(sql, sizeof(sql), "%s \"%s\"%s", verb, s->name, end);
    (void)PQsetNoticeReceiver(conn, drop_notice, NULL);
    r = PQexec(conn, sql);
    if (PQresultStatus(r) != PGRES_COMMAND_OK)
        (void)fprintf(stderr, "%s: %s\n", sql, PQerrorMessage(conn));
    PQclear(r);
}

/* A process that was forked off drops nothing of its parent's. */
static void drop_all(void)
{
    PGconn *conn = schemas != NULL ? PQconnectdb(url_of_test()) : NULL;

    while (schemas != NULL) {
        struct schema *s = schemas;

        schemas = s->next;
        if (s->pid == getpid())
            run(conn, "DROP SCHEMA IF EXISTS", s, " CASCADE");
        free(s);
    }
    PQfinish(conn);
}

static struct schema *make(const char *dir)
{
    struct schema *s = calloc(1, sizeof(*s));
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    PGconn *conn;

    if (s == NULL)
        return NULL;
    for (const char *c = dir; *c != '\0'; c++)
        h = (h ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    s->pid = getpid();
    (void)snprintf(s->dir, sizeof(s->dir), "%s", dir);
    (void)snprintf(s->name, sizeof(s->name), "t%ld_%016llx", (long)s->pid, (unsigned long long)h);
    (void)snprintf(s->url, sizeof(s->url), "%s%soptions=-csearch_path%%3D%s", url_of_test(),
                   strchr(url_of_test(), '?') != NULL ? "&" : "?", s->name);
    conn = PQconnectdb(url_of_test());
    if (PQstatus(conn) != CONNECTION_OK)
        fail_msg("HFD_TEST_STORE: %s", PQerrorMessage(conn));
    run(conn, "CREATE SCHEMA IF NOT EXISTS", s, "");
    PQfinish(conn);
    if (schemas == NULL)
        (void)atexit(drop_all);
    s->next = schemas;
    schemas = s;
    return s;
}

struct hfd_store_place test_place(const char *dir)
{
    struct schema *s = schemas;

    if (!test_on_postgres())
        return (struct hfd_store_place){.dir = dir};
    while (s != NULL && strcmp(s->dir, dir) != 0)
        s = s->next;
    if (s == NULL)
        s = make(dir);
    return (struct hfd_store_place){.url = s != NULL ? s->url : ""};
}

void test_place_remove(const char *dir)
{
    const struct hfd_store_place place = test_place(dir);
    PGconn *conn;

    if (place.url == NULL) {
        tmpdir_remove(dir);
        return;
    }
    conn = PQconnectdb(url_of_test());
    for (struct schema *s = schemas; s != NULL; s = s->next)
        if (strcmp(s->dir, dir) == 0) {
            run(conn, "DROP SCHEMA", s, " CASCADE");
            run(conn, "CREATE SCHEMA", s, "");
        }
    PQfinish(conn);
}

int test_place_cut(int times)
{
    static const char sql[] = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                              " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                              " AND backend_type = 'client backend'";
    PGconn *conn = test_on_postgres() ? PQconnectdb(url_of_test()) : NULL;
    int count = 0;

    for (; conn != NULL && times > 0; times--) {
        PGresult *r = PQexec(conn, sql);

        count += PQntuples(r);
        PQclear(r);
    }
    PQfinish(conn);
    return count;
}

hfd_rc test_db_open(const char *dir, enum hfd_db_mode mode, struct hfd_db **out,
                    struct hfd_err *err)
{
    const struct hfd_store_place place = test_place(dir);

    return hfd_db_open(&place, mode, out, err);
}
