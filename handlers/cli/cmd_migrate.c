/*
 * hyperfleet-driver migrate: moves all data from one database to another, while no server uses
 * either. A move that was cut short goes on when the same command runs again. With --contract it
 * ends the time in which programs of two versions use a PostgreSQL database. Thread: main.
 */
#include "driver/base/base.h"
#include "driver/base/clock.h"
#include "handlers/cli/cli.h"
#include "handlers/cli/move_place.h"
#include "handlers/client/flags.h"
#include "store/migrate.h"
#include "store/move.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define OUTPUT_MAX 16384
#define MEM_MAX ((size_t)65536)
#define PROGRESS_US INT64_C(2000000)

struct migrate {
    const char *from_arg, *to_arg, *password_file;
    bool json, contract;
    struct hfd_arena mem;
    struct hfd_move_place from, to;
    struct hfd_move_result result;
    int64_t began_us, said_us;
};

static enum hfd_exit fail(hfd_rc rc, const char *msg)
{
    const enum hfd_exit status = rc == HFD_NOMEM     ? HFD_EXIT_INTERNAL
                                 : rc == HFD_AWAY    ? HFD_EXIT_ADDRESS
                                 : rc == HFD_INVALID ? HFD_EXIT_USAGE
                                                     : HFD_EXIT_DATA;

    return hfd_cli_fail(status, "migrate", "%s", msg);
}

/* A line from time to time. */
static void say_progress(void *ctx, const struct hfd_move_progress *now)
{
    struct migrate *m = ctx;
    const int64_t at_us = hfd_clock_mono_us(&hfd_clock_system);

    if (at_us - m->said_us < PROGRESS_US)
        return;
    m->said_us = at_us;
    (void)fprintf(stderr, "%s table %zu of %zu, %s: %lld rows; %lld in all, after %lld s\n",
                  now->comparing ? "comparing" : "copying", now->table_at, now->table_count,
                  now->table, (long long)now->table_rows, (long long)now->rows,
                  (long long)((at_us - m->began_us) / HFD_US_PER_S));
}

/* ---- the result ---- */

static void add_tables(const struct migrate *m, struct hfd_buf *b)
{
    hfd_buf_lit(b, "\"tables\":[");
    for (size_t i = 0; i < m->result.count; i++) {
        const struct hfd_move_sum *sum = &m->result.tables[i].sum;

        hfd_buf_addf(b, "%s{\"name\":\"%s\",\"rows\":%lld,\"hash\":\"%016llx%016llx\"}",
                     i > 0 ? "," : "", m->result.tables[i].name, (long long)sum->rows,
                     (unsigned long long)sum->high, (unsigned long long)sum->low);
    }
    hfd_buf_lit(b, "]");
}

static void add_json(const struct migrate *m, int64_t took_us, struct hfd_buf *b)
{
    hfd_buf_member_str(b, "{\"from\":", hfd_slice_of(m->from.text));
    hfd_buf_member_str(b, ",\"to\":", hfd_slice_of(m->to.text));
    hfd_buf_addf(b,
                 ",\"rows\":%lld,\"rows_of_earlier_runs\":%lld,\"moved_before\":%s,"
                 "\"seconds\":%.3f,",
                 (long long)m->result.rows, (long long)m->result.found_rows,
                 m->result.moved_before ? "true" : "false", (double)took_us / (double)HFD_US_PER_S);
    add_tables(m, b);
    hfd_buf_lit(b, "}\n");
}

static void add_text(const struct migrate *m, int64_t took_us, struct hfd_buf *b)
{
    if (m->result.moved_before)
        hfd_buf_addf(
            b, "An earlier run moved all %lld rows of %zu tables; compared again in %lld s",
            (long long)m->result.rows, m->result.count, (long long)(took_us / HFD_US_PER_S));
    else
        hfd_buf_addf(b, "Moved %lld rows of %zu tables in %lld s", (long long)m->result.rows,
                     m->result.count, (long long)(took_us / HFD_US_PER_S));
    if (m->result.found_rows > 0 && !m->result.moved_before)
        hfd_buf_addf(b, "; %lld of them by an earlier run", (long long)m->result.found_rows);
    hfd_buf_addf(b, ".\nfrom: %s\nto:   %s\n", m->from.text, m->to.text);
    hfd_buf_lit(b, "Both have the same number of rows in each table, with the same hash.\n"
                   "The key ring and the tokens are files beside the database: the servers of the "
                   "new database need the same ones.\n"
                   "Do not start a server on the old database again.\n");
}

static enum hfd_exit report(const struct migrate *m)
{
    const int64_t took_us = hfd_clock_mono_us(&hfd_clock_system) - m->began_us;
    struct hfd_buf b;

    hfd_buf_init(&b, OUTPUT_MAX);
    if (m->json)
        add_json(m, took_us, &b);
    else
        add_text(m, took_us, &b);
    return hfd_cli_print("migrate", &b);
}

/* ---- the move ---- */

static hfd_rc read_places(struct migrate *m, struct hfd_err *err)
{
    struct hfd_err why = {0};
    hfd_rc rc = hfd_move_place_read(m->from_arg, &m->mem, &m->from, &why);

    if (rc != HFD_OK)
        return hfd_fail(err, rc, "--from: %s", why.msg);
    rc = hfd_move_place_read(m->to_arg, &m->mem, &m->to, &why);
    if (rc != HFD_OK)
        return hfd_fail(err, rc, "--to: %s", why.msg);
    if (strcmp(m->from.text, m->to.text) == 0)
        return hfd_fail(err, HFD_INVALID, "--from and --to are the same place");
    m->from.place.password_file = m->password_file;
    m->to.place.password_file = m->password_file;
    return HFD_OK;
}

static enum hfd_exit run(struct migrate *m)
{
    struct hfd_move_config config = {
        .from = &m->from.place, .to = &m->to.place, .progress = say_progress, .progress_ctx = m};
    struct hfd_err err = {0};
    hfd_rc rc = hfd_base_init(&err);

    if (rc == HFD_OK)
        rc = read_places(m, &err);
    if (rc == HFD_OK)
        rc = hfd_move_place_exists(&m->from, &err);
    m->began_us = hfd_clock_mono_us(&hfd_clock_system);
    m->said_us = m->began_us;
    config.name = m->from.text;
    if (rc == HFD_OK)
        rc = hfd_move(&config, &m->result, &err);
    if (rc == HFD_OK)
        rc = hfd_move_place_give(&m->to, &err);
    return rc == HFD_OK ? report(m) : fail(rc, err.msg);
}

/* ---- the end of mixed versions ---- */

static hfd_rc contract(const struct hfd_store_place *place, struct hfd_schema *before,
                       struct hfd_schema *after, struct hfd_err *err)
{
    struct hfd_db *db = NULL;
    hfd_rc rc = hfd_db_open(place, HFD_DB_WRITER, &db, err);

    if (rc == HFD_OK)
        rc = hfd_migrate_schema(db, before, err);
    if (rc == HFD_OK)
        rc = hfd_migrate_contract(db, hfd_migrations, hfd_migrations_count, err);
    if (rc == HFD_OK)
        rc = hfd_migrate_schema(db, after, err);
    hfd_db_close(&db);
    return rc;
}

static enum hfd_exit run_contract(struct migrate *m, struct hfd_cli_args *args)
{
    struct hfd_schema before = {0}, after = {0};
    struct hfd_settings *settings = NULL;
    enum hfd_exit status = hfd_cli_settings("migrate", args, &settings);
    struct hfd_store_place place;
    struct hfd_err err = {0};
    struct hfd_buf b;
    hfd_rc rc;

    if (status != HFD_EXIT_OK)
        return status;
    place = hfd_cli_place(settings);
    rc = hfd_base_init(&err);
    if (rc == HFD_OK && place.url == NULL)
        rc = hfd_fail(&err, HFD_INVALID,
                      "--contract is for PostgreSQL: expected the setting store. With SQLite each "
                      "start brings the schema up to date");
    if (rc == HFD_OK)
        rc = contract(&place, &before, &after, &err);
    hfd_settings_free(settings);
    if (rc != HFD_OK)
        return fail(rc, err.msg);
    hfd_buf_init(&b, OUTPUT_MAX);
    hfd_buf_addf(&b,
                 m->json ? "{\"schema_now\":%lld,\"schema_min\":%lld}\n"
                         : "The schema has version %lld. Programs that know less than version "
                           "%lld cannot use the database any more.\n",
                 (long long)after.now, (long long)after.min);
    return hfd_cli_print("migrate", &b);
}

/* ---- the command ---- */

static enum hfd_exit run_move(struct migrate *m, const struct hfd_flags *flags)
{
    enum hfd_exit status;

    if (flags->rest_count > 0)
        return hfd_cli_fail(HFD_EXIT_USAGE, "migrate", "unexpected argument %.60s", flags->rest[0]);
    if (m->from_arg == NULL || m->to_arg == NULL || flags->place_count > 0)
        return hfd_cli_fail(HFD_EXIT_USAGE, "migrate",
                            "expected --from PLACE and --to PLACE, or --contract; a place is "
                            "sqlite:FOLDER or postgres://USER@HOST:PORT/DATABASE");
    hfd_arena_init(&m->mem, MEM_MAX);
    status = run(m);
    hfd_arena_fini(&m->mem);
    return status;
}

enum hfd_exit hfd_cmd_migrate(int argc, const char *const *argv)
{
    struct migrate m = {0};
    const struct hfd_flag table[] = {
        {"--from", NULL, HFD_FLAG_TEXT, &m.from_arg, "PLACE", "where the data is"},
        {"--to", NULL, HFD_FLAG_TEXT, &m.to_arg, "PLACE", "where it goes"},
        {"--password-file", "HFD_STORE_PASSWORD_FILE", HFD_FLAG_TEXT, &m.password_file, "FILE",
         "the password of the PostgreSQL user"},
        {"--contract", NULL, HFD_FLAG_SWITCH, &m.contract, NULL, "end the use by older programs"},
        {"--json", NULL, HFD_FLAG_SWITCH, &m.json, NULL, "print one JSON document"},
    };
    struct hfd_flags flags = {.table = table,
                              .count = sizeof(table) / sizeof(table[0]),
                              .rest = calloc((size_t)argc + 1, sizeof(char *))};
    struct hfd_err err = {0};
    enum hfd_exit status;

    if (flags.rest == NULL)
        return hfd_cli_fail(HFD_EXIT_INTERNAL, "migrate", "out of memory");
    hfd_log_set_level(HFD_LOG_ERROR);
    (void)umask(077);
    if (hfd_flags_read(&flags, argc, argv, &err) != HFD_OK) {
        status = hfd_cli_fail(HFD_EXIT_USAGE, "migrate", "%s", err.msg);
    } else if (m.contract && m.from_arg == NULL && m.to_arg == NULL) {
        struct hfd_cli_args args = {.argc = flags.rest_count, .argv = flags.rest};

        status = run_contract(&m, &args);
    } else {
        status = run_move(&m, &flags);
    }
    free(flags.rest);
    return status;
}
