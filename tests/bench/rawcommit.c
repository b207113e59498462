/*
 * The yardstick of a durable PUT: SQLite alone, with WAL and synchronous=FULL. It commits groups of
 * units. A unit has as many rows and bytes as a PUT of a cluster with one nodepool writes. Each
 * table has its primary key and nothing else. Prints one JSON object.
 *
 * usage: rawcommit --data DIR --batch UNITS --ms TIME --rows BYTES,BYTES,...
 */
#include "driver/base/clock.h"
#include "driver/base/slice.h"

#include <getopt.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#define ROWS_MAX 64
#define BYTES_MAX 65536
#define CHECKPOINT_FRAMES 1000 /* as the store does */

struct raw {
    sqlite3 *db;
    sqlite3_stmt *begin, *insert, *commit;
    int64_t bytes[ROWS_MAX];
    size_t rows;
    int64_t next;
    int frames;
    char text[BYTES_MAX];
};

static _Noreturn void die(struct raw *r, const char *what)
{
    (void)fprintf(stderr, "rawcommit: %s%s%s\n", what, r->db != NULL ? ": " : "",
                  r->db != NULL ? sqlite3_errmsg(r->db) : "");
    exit(2);
}

static int64_t number(struct raw *r, hfd_slice text, int64_t max)
{
    int64_t v;

    if (hfd_parse_i64(text, 1, max, &v, NULL) != HFD_OK)
        die(r, "a number is missing or out of range");
    return v;
}

static void take_rows(struct raw *r, const char *text)
{
    while (*text != '\0') {
        size_t n = strcspn(text, ",");

        if (r->rows == ROWS_MAX)
            die(r, "too many rows");
        r->bytes[r->rows++] = number(r, (hfd_slice){text, n}, BYTES_MAX);
        text += n + (text[n] == ',');
    }
}

static sqlite3_stmt *prepare(struct raw *r, const char *sql)
{
    sqlite3_stmt *st;

    if (sqlite3_prepare_v3(r->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &st, NULL) != SQLITE_OK)
        die(r, sql);
    return st;
}

static void step(struct raw *r, sqlite3_stmt *st)
{
    if (sqlite3_step(st) != SQLITE_DONE)
        die(r, "step");
    (void)sqlite3_reset(st);
}

static int on_log(void *ctx, sqlite3 *db, const char *schema, int frames)
{
    (void)db;
    (void)schema;
    ((struct raw *)ctx)->frames = frames;
    return SQLITE_OK;
}

static void open_raw(struct raw *r, const char *dir)
{
    char path[4096];

    (void)snprintf(path, sizeof(path), "%s/raw.db", dir);
    if (sqlite3_open_v2(path, &r->db,
                        SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                        "unix-excl") != SQLITE_OK ||
        sqlite3_exec(r->db,
                     "PRAGMA synchronous=FULL; PRAGMA journal_mode=WAL; PRAGMA "
                     "wal_autocheckpoint=0; PRAGMA cache_size=-16384;"
                     "CREATE TABLE IF NOT EXISTS unit (k TEXT NOT NULL, part BIGINT NOT NULL, v "
                     "TEXT NOT NULL, PRIMARY KEY (k, part))",
                     NULL, NULL, NULL) != SQLITE_OK)
        die(r, "open");
    (void)sqlite3_wal_hook(r->db, on_log, r);
    r->begin = prepare(r, "BEGIN IMMEDIATE");
    r->insert = prepare(r, "INSERT INTO unit (k, part, v) VALUES (?1, ?2, ?3)");
    r->commit = prepare(r, "COMMIT");
}

static void put_unit(struct raw *r)
{
    uint64_t v = (uint64_t)(r->next++) * UINT64_C(0x9E3779B97F4A7C15);
    char key[32];
    int n = snprintf(key, sizeof(key), "bench-%016llx", (unsigned long long)(v ^ (v >> 29)));

    for (size_t i = 0; i < r->rows; i++) {
        (void)sqlite3_bind_text(r->insert, 1, key, n, SQLITE_STATIC);
        (void)sqlite3_bind_int64(r->insert, 2, (sqlite3_int64)i);
        (void)sqlite3_bind_text(r->insert, 3, r->text, (int)r->bytes[i], SQLITE_STATIC);
        step(r, r->insert);
    }
}

int main(int argc, char **argv)
{
    static const struct option names[] = {
        {"data", required_argument, NULL, 'd'},
        {"batch", required_argument, NULL, 'b'},
        {"ms", required_argument, NULL, 't'},
        {"rows", required_argument, NULL, 'r'},
        {NULL, 0, NULL, 0},
    };
    static struct raw r;
    const char *dir = ".";
    int64_t batch = 1, time_us = HFD_US_PER_S, start_us, now_us, units = 0, commits = 0;
    int c;

    while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (c == 'd')
            dir = optarg;
        else if (c == 'b')
            batch = number(&r, hfd_slice_of(optarg), 1000000);
        else if (c == 't')
            time_us = number(&r, hfd_slice_of(optarg), 3600000) * 1000;
        else if (c == 'r')
            take_rows(&r, optarg);
        else
            exit(2);
    }
    memset(r.text, 'x', sizeof(r.text));
    r.next = hfd_clock_wall_us(
        &hfd_clock_system); /* a second run on the same database writes other keys */
    open_raw(&r, dir);
    start_us = now_us = hfd_clock_mono_us(&hfd_clock_system);
    while (now_us - start_us < time_us) {
        step(&r, r.begin);
        for (int64_t i = 0; i < batch; i++)
            put_unit(&r);
        step(&r, r.commit);
        units += batch;
        commits++;
        if (r.frames >= CHECKPOINT_FRAMES &&
            sqlite3_wal_checkpoint_v2(r.db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL) ==
                SQLITE_OK)
            r.frames = 0;
        now_us = hfd_clock_mono_us(&hfd_clock_system);
    }
    (void)printf("{\"rate\": %.1f, \"commits\": %lld, \"units\": %lld}\n",
                 (double)units * HFD_US_PER_S / (double)(now_us - start_us), (long long)commits,
                 (long long)units);
    (void)sqlite3_finalize(r.begin);
    (void)sqlite3_finalize(r.insert);
    (void)sqlite3_finalize(r.commit);
    (void)sqlite3_close(r.db);
    return 0;
}
