/*
 * hyperfleet-driver migrate: moves all data from one database to another, while no server uses
 * either. A move that was cut short goes on when the same command runs again. With --contract it
 * ends the time in which programs of two versions use a PostgreSQL database. Thread: main.
 */
#include "driver/base/arena.h"
#include "driver/base/base.h"
#include "driver/base/clock.h"
#include "driver/base/pgurl.h"
#include "handlers/cli/cli.h"
#include "store/migrate.h"
#include "store/move.h"
#include "store/sqlite/folder.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- places ---- */

struct hfd_move_place {
    struct hfd_store_place place;
    const char *text; /* without a password: "sqlite:/var/lib/hyperfleet" */
};

#define SCHEME "sqlite:"
#define TEXT_MAX ((size_t)8192)
/* Rows come in bulk: an answer may take long. */
#define CONNECT_US INT64_C(10000000)
#define ANSWER_US INT64_C(120000000)

static hfd_rc read_folder(const char *dir, struct hfd_arena *mem, struct hfd_move_place *out,
                          struct hfd_err *err)
{
    char path[PATH_MAX];
    const char *real = realpath(dir, path);

    if (dir[0] == '\0')
        return hfd_fail(err, HFD_INVALID, "expected a folder behind \"" SCHEME "\"");
    out->place.dir = dir;
    out->text = hfd_arena_printf(mem, SCHEME "%s", real != NULL ? real : dir).p;
    return out->text != NULL ? HFD_OK : hfd_fail_nomem(err, "read the name of a folder");
}

static hfd_rc read_url(const char *url, struct hfd_arena *mem, struct hfd_move_place *out,
                       struct hfd_err *err)
{
    struct hfd_buf b;
    hfd_slice text;
    hfd_rc rc = hfd_pgurl_check(hfd_slice_of(url), err);

    if (rc != HFD_OK)
        return rc;
    out->place.url = url;
    out->place.connect_timeout_us = CONNECT_US;
    out->place.answer_timeout_us = ANSWER_US;
    hfd_buf_init(&b, TEXT_MAX);
    hfd_pgurl_mask(&b, hfd_slice_of(url));
    rc = hfd_buf_to_arena(&b, mem, &text, err);
    out->text = text.p;
    return rc;
}

/*
 * Reads "sqlite:FOLDER", or the URL of a PostgreSQL database.
 * @param arg  borrowed as long as `out`
 * @param mem  keeps the text
 * @return HFD_OK, HFD_INVALID, HFD_NOMEM
 */
static hfd_rc move_place_read(const char *arg, struct hfd_arena *mem, struct hfd_move_place *out,
                              struct hfd_err *err)
{
    *out = (struct hfd_move_place){0};
    if (strncmp(arg, SCHEME, sizeof(SCHEME) - 1) == 0)
        return read_folder(arg + sizeof(SCHEME) - 1, mem, out, err);
    if (hfd_pgurl_is(hfd_slice_of(arg)))
        return read_url(arg, mem, out, err);
    return hfd_fail(err, HFD_INVALID,
                    "expected " SCHEME "FOLDER, or postgres://USER@HOST:PORT/DATABASE");
}

/*
 * Checks that a folder has a database. A PostgreSQL database is not looked at.
 * @return HFD_OK, HFD_NOT_FOUND
 */
static hfd_rc move_place_exists(const struct hfd_move_place *place, struct hfd_err *err)
{
    char path[PATH_MAX];
    struct stat st;

    if (place->place.dir == NULL)
        return HFD_OK;
    if (snprintf(path, sizeof(path), "%s/" HFD_FOLDER_DB_NAME, place->place.dir) <
            (int)sizeof(path) &&
        stat(path, &st) == 0)
        return HFD_OK;
    return hfd_fail(err, HFD_NOT_FOUND, "%s has no database (" HFD_FOLDER_DB_NAME ")", place->text);
}

/*
 * Gives the database in a folder to the owner of the folder when root has made it: the server may
 * run as that user.
 * @return HFD_OK, HFD_IO
 */
static hfd_rc move_place_give(const struct hfd_move_place *place, struct hfd_err *err)
{
    static const char *const names[] = {HFD_FOLDER_DB_NAME, HFD_FOLDER_DB_NAME "-wal",
                                        HFD_FOLDER_LOCK_NAME};
    char path[PATH_MAX];
    struct stat folder;

    if (place->place.dir == NULL || geteuid() != 0)
        return HFD_OK;
    if (stat(place->place.dir, &folder) != 0)
        return hfd_fail(err, HFD_IO, "%s: %s", place->text, strerror(errno));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", place->place.dir, names[i]);
        if (lchown(path, folder.st_uid, folder.st_gid) != 0 && errno != ENOENT)
            return hfd_fail(err, HFD_IO, "give %.100s to the owner of its folder: %s", path,
                            strerror(errno));
    }
    return HFD_OK;
}

void hfd_cli_show_move(void *ctx, const struct hfd_move_progress *now)
{
    char what[96];

    (void)snprintf(what, sizeof(what), "%s table %zu of %zu, %s",
                   now->comparing ? "comparing" : "copying", now->table_at, now->table_count,
                   now->table);
    hfd_meter_set(ctx, &(struct hfd_meter_at){what, NULL, now->table_rows, now->table_total});
}

/* ---- exit status ---- */

#define OUTPUT_MAX 16384
#define MEM_MAX ((size_t)65536)

static hfd_rc contract(const struct hfd_store_place *place, struct hfd_schema_version *before,
                       struct hfd_schema_version *after, struct hfd_err *err);

struct migrate {
    const char *from_arg, *to_arg, *password_file;
    bool json, contract;
    struct hfd_arena mem;
    struct hfd_move_place from, to;
    struct hfd_move_result result;
    int64_t began_us;
};

static enum hfd_exit fail(hfd_rc rc, const char *msg)
{
    const enum hfd_exit status = rc == HFD_NOMEM     ? HFD_EXIT_INTERNAL
                                 : rc == HFD_AWAY    ? HFD_EXIT_ADDRESS
                                 : rc == HFD_INVALID ? HFD_EXIT_USAGE
                                                     : HFD_EXIT_DATA;

    return hfd_cli_fail(status, "migrate", "%s", msg);
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
    hfd_buf_addf(
        b, ",\"rows\":%lld,\"rows_of_earlier_runs\":%lld,\"moved_before\":%s,\"seconds\":%.3f,",
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
    hfd_rc rc = move_place_read(m->from_arg, &m->mem, &m->from, &why);

    if (rc != HFD_OK)
        return hfd_fail(err, rc, "--from: %s", why.msg);
    rc = move_place_read(m->to_arg, &m->mem, &m->to, &why);
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
        .from = &m->from.place, .to = &m->to.place, .progress = hfd_cli_show_move};
    struct hfd_meter meter = {0};
    struct hfd_err err = {0};
    hfd_rc rc = hfd_base_init(&err);

    if (rc == HFD_OK)
        rc = read_places(m, &err);
    if (rc == HFD_OK)
        rc = move_place_exists(&m->from, &err);
    m->began_us = hfd_clock_mono_us(&hfd_clock_system);
    config.name = m->from.text;
    config.progress_ctx = &meter;
    if (rc == HFD_OK) {
        hfd_meter_start(&meter);
        rc = hfd_move(&config, &m->result, &err);
    }
    hfd_meter_stop(&meter);
    if (rc == HFD_OK)
        rc = move_place_give(&m->to, &err);
    return rc == HFD_OK ? report(m) : fail(rc, err.msg);
}

/* ---- the end of mixed versions ---- */

static hfd_rc contract(const struct hfd_store_place *place, struct hfd_schema_version *before,
                       struct hfd_schema_version *after, struct hfd_err *err)
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

static enum hfd_exit run_contract(struct migrate *m, const struct hfd_flags *flags)
{
    struct hfd_schema_version before = {0}, after = {0};
    struct hfd_settings *settings = NULL;
    enum hfd_exit status = hfd_cli_settings(flags, &settings);
    struct hfd_store_place place;
    struct hfd_err err = {0};
    struct hfd_buf b;
    hfd_rc rc;

    if (status != HFD_EXIT_OK)
        return status;
    place = hfd_cli_place(settings);
    if (m->password_file != NULL) /* a flag of the command hides the setting */
        place.password_file = m->password_file;
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
                         : "The schema has version %lld. Programs that know less than version %lld "
                           "cannot use the database any more.\n",
                 (long long)after.now, (long long)after.min);
    return hfd_cli_print("migrate", &b);
}

/* ---- the command ---- */

static enum hfd_exit run_move(struct migrate *m, const struct hfd_flags *flags)
{
    enum hfd_exit status;

    if (flags->rest_count > 0) {
        const char *near = hfd_flags_nearest(flags, hfd_slice_of(flags->rest[0]), true);

        return hfd_cli_fail(HFD_EXIT_USAGE, "migrate", "unexpected argument %.60s%s%s%s",
                            flags->rest[0], near != NULL ? "; did you mean " : "",
                            near != NULL ? near : "", near != NULL ? "?" : "");
    }
    if (m->from_arg == NULL || m->to_arg == NULL || flags->place_count > 0)
        return hfd_cli_fail(HFD_EXIT_USAGE, "migrate",
                            "expected --from PLACE and --to PLACE, or --contract; a place is "
                            "sqlite:FOLDER or postgres://USER@HOST:PORT/DATABASE");
    hfd_arena_init(&m->mem, MEM_MAX);
    status = run(m);
    hfd_arena_fini(&m->mem);
    return status;
}

enum hfd_exit hfd_cmd_migrate(int argc, const char **argv)
{
    struct migrate m = {0};
    const struct hfd_flag table[] = {
        {"--from", NULL, HFD_FLAG_TEXT, &m.from_arg, "PLACE",
         "where the data is: sqlite:FOLDER, or postgres://USER@HOST:PORT/DATABASE"},
        {"--to", NULL, HFD_FLAG_TEXT, &m.to_arg, "PLACE",
         "where it goes: an empty database or folder, or that of a move that was cut short"},
        {"--store-password-file", "HFD_STORE_PASSWORD_FILE", HFD_FLAG_TEXT, &m.password_file,
         "FILE", "the password of the PostgreSQL user"},
        {"--contract", NULL, HFD_FLAG_SWITCH, &m.contract, NULL,
         "with PostgreSQL: take away what only older versions use; none of them runs"},
        {"--json", NULL, HFD_FLAG_SWITCH, &m.json, NULL, "print one JSON document"},
    };
    struct hfd_flags flags = {.command = "migrate",
                              HFD_FLAG_TABLE(table),
                              .others = HFD_FLAG_SETTINGS,
                              .place_max = HFD_FLAG_PLACES_MAX};
    enum hfd_exit status;

    hfd_log_set_level(HFD_LOG_ERROR);
    (void)umask(077);
    if (!hfd_cli_read(&flags, argc, argv, &status))
        return status;
    return m.contract && m.from_arg == NULL && m.to_arg == NULL ? run_contract(&m, &flags)
                                                                : run_move(&m, &flags);
}
