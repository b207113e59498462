/*
 * hyperfleet-driver restore: makes a data folder, or fills an empty PostgreSQL database, from a
 * backup. It checks the backup in a folder of its own, and moves the data to its place at the end.
 * Thread: main.
 */
#include "driver/base/base.h"
#include "driver/base/clock.h"
#include "driver/base/file.h"
#include "driver/base/steady.h"
#include "driver/core/keyring.h"
#include "driver/core/ring_check.h"
#include "handlers/cli/backup_file.h"
#include "handlers/cli/cli.h"
#include "handlers/cli/cmd_migrate.h"
#include "handlers/client/flags.h"
#include "store/move.h"
#include "store/row_walk.h"
#include "store/sqlite/folder.h"
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define OUTPUT_MAX 16384
#define MEM_MAX ((size_t)65536)
#define DRAFT "/restore.tmp"        /* the folder, in the data folder */
#define DRAFT_PREFIX "hfd-restore-" /* the same for PostgreSQL, in TMPDIR, with the process id */
#define FINDINGS_SHOWN 5

struct restore {
    const char *file;
    struct hfd_settings *settings;
    struct hfd_arena mem;
    int fd; /* of FILE */
    struct hfd_backup_note note;
    const char *keys_path;
    struct hfd_keyring *ring; /* NULL = there is none, and no row needs one */
    const char *db_path, *draft, *draft_db;
    bool has_draft;
    int draft_hold; /* -1 = it is not held */
    size_t damaged; /* rows */
    struct hfd_meter meter;
    bool postgres; /* the store is PostgreSQL: the draft is moved into it */
};

static enum hfd_exit fail(hfd_rc rc, const char *subject, const char *msg)
{
    return hfd_cli_fail(rc == HFD_NOMEM ? HFD_EXIT_INTERNAL : HFD_EXIT_DATA, "restore", "%s: %s",
                        subject, msg);
}

/* ---- before anything is written ---- */

static enum hfd_exit set_paths(struct restore *r)
{
    const char *data = r->settings->data.p, *temporary = getenv("TMPDIR");
    struct hfd_err err;

    r->keys_path = hfd_cli_keys_path(r->settings);
    if (r->postgres && temporary == NULL)
        temporary = "/var/tmp";
    r->db_path = hfd_arena_printf(&r->mem, "%s/" HFD_FOLDER_DB_NAME, data).p;
    r->draft = r->postgres
                   ? hfd_arena_printf(&r->mem, "%s/" DRAFT_PREFIX "%d", temporary, (int)getpid()).p
                   : hfd_arena_printf(&r->mem, "%s" DRAFT, data).p;
    r->draft_db = hfd_arena_printf(&r->mem, "%s/" HFD_FOLDER_DB_NAME, r->draft).p;
    if (r->keys_path == NULL || r->db_path == NULL || r->draft == NULL || r->draft_db == NULL)
        return hfd_cli_fail(HFD_EXIT_INTERNAL, "restore", "out of memory");
    return hfd_cli_need(r->settings, HFD_SETTING_keys, &err) == HFD_OK
               ? HFD_EXIT_OK
               : hfd_cli_fail(HFD_EXIT_USAGE, "restore", "%s", err.msg);
}

static enum hfd_exit open_file(struct restore *r)
{
    struct hfd_err err = {0};
    hfd_rc rc;

    r->fd = open(r->file, O_RDONLY | O_CLOEXEC);
    if (r->fd < 0)
        return fail(HFD_IO, r->file, strerror(errno));
    rc = hfd_backup_file_note(r->fd, &r->mem, &r->note, &err);
    return rc == HFD_OK ? HFD_EXIT_OK : fail(rc, r->file, err.msg);
}

/* A database is data, and so is what SQLite reads into one: its log and its journal. */
static enum hfd_exit refuse_data(struct restore *r)
{
    static const char *const suffixes[] = {"", "-wal", "-journal"};

    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        const char *path = hfd_arena_printf(&r->mem, "%s%s", r->db_path, suffixes[i]).p;

        if (path == NULL)
            return hfd_cli_fail(HFD_EXIT_INTERNAL, "restore", "out of memory");
        if (faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT)
            return fail(HFD_CONFLICT, path,
                        "there is data already, and a backup is not restored over it. Stop the "
                        "server and move this file away, or give another folder with --data");
    }
    return HFD_EXIT_OK;
}

static enum hfd_exit miss_keys(const struct restore *r, const char *why)
{
    struct hfd_buf b;
    hfd_slice ids;

    hfd_buf_init(&b, HFD_BACKUP_NOTE_BYTES);
    for (size_t i = 0; i < r->note.key_count; i++)
        hfd_buf_addf(&b, "%s%.*s", i > 0 ? ", " : "", HFD_SLICE_FMT(r->note.keys[i]));
    if (hfd_buf_finish(&b, &ids, NULL) != HFD_OK)
        ids = HFD_SLICE("those of its note");
    (void)hfd_cli_fail(HFD_EXIT_KEYS, "restore",
                       "%s. The backup needs these keys: %.*s. Put a copy of the key ring to %s "
                       "first, or name it with --keys",
                       why, HFD_SLICE_FMT(ids), r->keys_path);
    hfd_buf_fini(&b);
    return HFD_EXIT_KEYS;
}

static bool has_key(const struct hfd_keyring *ring, hfd_slice id)
{
    struct hfd_key_view key;

    for (size_t i = 0; i < hfd_keyring_count(ring); i++) {
        hfd_keyring_view(ring, i, &key);
        if (hfd_slice_is(id, key.name))
            return true;
    }
    return false;
}

static enum hfd_exit check_ids(struct restore *r)
{
    struct hfd_err err = {0};
    hfd_rc rc = hfd_keyring_load(r->keys_path, &r->ring, &err);

    if (rc == HFD_NOT_FOUND)
        return r->note.key_count == 0 ? HFD_EXIT_OK : miss_keys(r, "there is no key ring");
    if (rc != HFD_OK)
        return hfd_cli_fail(rc == HFD_NOMEM ? HFD_EXIT_INTERNAL : HFD_EXIT_KEYS, "restore", "%s",
                            err.msg);
    for (size_t i = 0; i < r->note.key_count; i++)
        if (!has_key(r->ring, r->note.keys[i]))
            return miss_keys(r, "the key ring lacks a key");
    return HFD_EXIT_OK;
}

/* ---- the draft ---- */

static void say_swept(const char *path)
{
    hfd_cli_say(
        "hyperfleet-driver restore: removed %s, which a restore that was cut short had left", path);
}

/* A folder of the data is held by its lock; one in TMPDIR may be beside those of others. */
static hfd_rc make_draft(struct restore *r, struct hfd_err *err)
{
    if (!r->postgres)
        return hfd_draft_make(r->draft, err);
    hfd_draft_sweep(r->draft, DRAFT_PREFIX, say_swept);
    return hfd_draft_make_held(r->draft, &r->draft_hold, err);
}

static enum hfd_exit copy_file(struct restore *r)
{
    struct hfd_err err = {0};
    hfd_rc rc = r->postgres ? HFD_OK : hfd_cli_make_data(r->settings, &err);
    int to;

    if (rc != HFD_OK)
        return hfd_cli_fail(HFD_EXIT_DATA, "restore", "%s", err.msg);
    rc = make_draft(r, &err);
    if (rc != HFD_OK)
        return hfd_cli_fail(HFD_EXIT_DATA, "restore", "%s", err.msg);
    r->has_draft = true;
    to = hfd_file_make(r->draft_db);
    if (to < 0)
        return fail(HFD_IO, r->draft_db, strerror(errno));
    rc = hfd_backup_file_copy(r->fd, &r->note, to, &r->meter, &err);
    if (rc == HFD_OK && fsync(to) != 0)
        rc = hfd_fail(&err, HFD_IO, "its copy cannot be written: %s", strerror(errno));
    (void)close(to);
    return rc == HFD_OK ? HFD_EXIT_OK : fail(rc, r->file, err.msg);
}

static void show_damage(void *ctx, const char *text)
{
    struct restore *r = ctx;

    hfd_meter_clear(&r->meter);
    if (r->damaged++ < FINDINGS_SHOWN)
        (void)hfd_cli_fail(HFD_EXIT_DATA, "restore", "%s: %s", r->file, text);
}

/* Runs in the writer: the checks of a server that stands still. */
static hfd_rc txn_check(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct restore *r = arg;
    struct hfd_row_findings findings = {.found = show_damage, .ctx = r, .meter = &r->meter};
    hfd_rc rc = hfd_txn_check(tx, &r->meter, err);

    r->damaged = 0;
    return rc == HFD_OK ? hfd_txn_check_rows(tx, &findings, err) : rc;
}

/* Opens the draft as a server does: an older database is brought up to date. */
static enum hfd_exit check_draft(struct restore *r)
{
    const struct hfd_store_config config = {.place.dir = r->draft, .readers = 1};
    struct hfd_ring_call ring = {.ring = r->ring, .path = r->keys_path, .look = true};
    struct hfd_store *store = NULL;
    struct hfd_err err = {0};
    bool keys_differ = false;
    hfd_rc rc;

    hfd_meter_set(&r->meter, &(struct hfd_meter_at){.what = "opening the copy"});
    rc = hfd_store_open(&config, &store, &err);
    if (rc == HFD_OK)
        rc = hfd_store_update_wait(store, txn_check, r, &err);
    if (rc == HFD_OK && r->damaged > 0)
        rc = hfd_fail(&err, HFD_DAMAGED, "%zu damaged rows. Use another backup", r->damaged);
    if (rc == HFD_OK && r->ring != NULL) {
        rc = hfd_store_update_wait(store, hfd_ring_check, &ring, &err);
        keys_differ = rc == HFD_INVALID || rc == HFD_CONFLICT;
    }
    hfd_store_close(&store);
    if (keys_differ)
        return hfd_cli_fail(HFD_EXIT_KEYS, "restore", "%s", err.msg);
    return rc == HFD_OK ? HFD_EXIT_OK : fail(rc, r->file, err.msg);
}

/* ---- the place ---- */

/* The clock of the data is not behind what the rows say. */
static enum hfd_exit set_clock(struct restore *r)
{
    const char *path = hfd_arena_printf(&r->settings->mem, "%s/clock", r->settings->data.p).p;
    struct hfd_steady clock;
    struct hfd_err err = {0};
    hfd_rc rc;

    if (path == NULL)
        return hfd_cli_fail(HFD_EXIT_INTERNAL, "restore", "out of memory");
    hfd_steady_init(&clock, &hfd_clock_boot);
    rc = hfd_steady_resume(&clock, path, &err);
    if (rc == HFD_OK && !hfd_steady_reach(&clock, r->note.clock_us))
        (void)fprintf(stderr,
                      "hyperfleet-driver restore: the clock of this machine is years behind the "
                      "backup: set it right before the server starts\n");
    if (rc == HFD_OK)
        rc = hfd_steady_save(&clock, path, &err);
    return rc == HFD_OK ? HFD_EXIT_OK : fail(rc, path, err.msg);
}

/* Nothing of the draft but the database has content, so that moving it moves all. */
static enum hfd_exit move_draft(struct restore *r)
{
    const char *log = hfd_arena_printf(&r->mem, "%s-wal", r->draft_db).p;
    struct hfd_err err = {0};
    struct stat st;

    if (log == NULL)
        return hfd_cli_fail(HFD_EXIT_INTERNAL, "restore", "out of memory");
    if (stat(log, &st) == 0 && st.st_size > 0)
        return fail(HFD_IO, log, "it could not be copied into the database");
    if (hfd_cli_give_to_owner(r->settings, r->draft_db, &err) != HFD_OK)
        return fail(HFD_IO, r->draft_db, err.msg);
    if (renameat2(AT_FDCWD, r->draft_db, AT_FDCWD, r->db_path, RENAME_NOREPLACE) != 0)
        return fail(HFD_IO, r->db_path,
                    errno == EEXIST ? "a server has made data meanwhile" : strerror(errno));
    if (hfd_file_sync_parent(r->db_path) != 0)
        return fail(HFD_IO, r->db_path, strerror(errno));
    return HFD_EXIT_OK;
}

/*
 * Moves the draft into PostgreSQL, which compares both. A restore that was cut short goes on with
 * the same backup.
 */
static enum hfd_exit move_rows(struct restore *r)
{
    const struct hfd_store_place from = {.dir = r->draft}, to = hfd_cli_place(r->settings);
    char taken[HFD_TIME_TEXT_MAX];
    struct hfd_move_config config = {
        .from = &from, .to = &to, .progress = hfd_move_show, .progress_ctx = &r->meter};
    struct hfd_move_result result;
    struct hfd_err err = {0};
    hfd_rc rc;

    (void)hfd_time_format_us(r->note.taken_us, taken);
    config.name =
        hfd_arena_printf(&r->mem, "the backup of %s (%lld bytes)", taken, (long long)r->note.bytes)
            .p;
    rc = config.name != NULL ? hfd_move(&config, &result, &err)
                             : hfd_fail_nomem(&err, "restore a backup");
    return rc == HFD_OK ? HFD_EXIT_OK : fail(rc, hfd_cli_place_text(r->settings), err.msg);
}

static enum hfd_exit report(const struct restore *r)
{
    char taken[HFD_TIME_TEXT_MAX];
    struct hfd_buf b;

    hfd_buf_init(&b, OUTPUT_MAX);
    (void)hfd_time_format_s(r->note.taken_us, taken);
    hfd_buf_addf(&b, "%s: restored %lld resource%s as of %s\n", hfd_cli_place_text(r->settings),
                 (long long)r->note.resources, r->note.resources == 1 ? "" : "s", taken);
    hfd_buf_addf(&b, "The backup lacks all changes after %s:\n", taken);
    hfd_buf_lit(&b,
                "* A resource that was ordered later comes back by its cookie, with the next PUT "
                "of its orchestrator.\n");
    hfd_buf_lit(&b, "* Until then its clusters at a remote HyperFleet, or made through HyperShift, "
                    "are orphans.\n"
                    "  List them: hyperfleet-driver doctor.\n");
    hfd_buf_lit(&b, "* A resource that was changed later has its earlier order until the next "
                    "PUT.\n");
    hfd_buf_lit(&b, "* A resource that was deleted later is back: delete it again.\n");
    if (r->ring == NULL)
        hfd_buf_addf(&b,
                     "There is no key ring: make one with `hyperfleet-driver keygen --keys "
                     "%s` before the start.\n",
                     r->keys_path);
    return hfd_cli_print("restore", &b);
}

typedef enum hfd_exit step_fn(struct restore *r);

static enum hfd_exit run(struct restore *r)
{
    static step_fn *const into_folder[] = {set_paths, open_file,  refuse_data,
                                           check_ids, copy_file,  check_draft,
                                           set_clock, move_draft, NULL},
                          *const into_postgres[] = {set_paths,   open_file, check_ids, copy_file,
                                                    check_draft, move_rows, NULL};
    step_fn *const *steps = r->postgres ? into_postgres : into_folder;
    struct hfd_err err = {0};
    enum hfd_exit status = HFD_EXIT_OK;

    if (hfd_base_init(&err) != HFD_OK)
        return hfd_cli_fail(HFD_EXIT_INTERNAL, "restore", "%s", err.msg);
    hfd_arena_init(&r->mem, MEM_MAX);
    hfd_meter_start(&r->meter);
    for (; status == HFD_EXIT_OK && *steps != NULL; steps++) {
        status = (*steps)(r);
        hfd_meter_clear(&r->meter);
    }
    hfd_meter_stop(&r->meter);
    if (r->has_draft)
        hfd_draft_remove(r->draft);
    if (r->draft_hold >= 0)
        (void)close(r->draft_hold);
    if (status == HFD_EXIT_OK)
        status = report(r);
    if (r->fd >= 0)
        (void)close(r->fd);
    hfd_keyring_free(r->ring);
    hfd_arena_fini(&r->mem);
    return status;
}

enum hfd_exit hfd_cmd_restore(int argc, const char **argv)
{
    struct hfd_flags flags = {
        .command = "restore", .others = HFD_FLAG_SETTINGS, .place_max = HFD_FLAG_PLACES_MAX};
    struct restore r = {.fd = -1, .draft_hold = -1};
    enum hfd_exit status;

    hfd_log_set_level(HFD_LOG_ERROR);
    (void)umask(077);
    if (!hfd_cli_read(&flags, argc, argv, &status))
        return status;
    if (flags.place_count != 1)
        return hfd_cli_fail(HFD_EXIT_USAGE, "restore", "expected the name of one file");
    r.file = flags.places[0];
    status = hfd_cli_settings(&flags, &r.settings);
    if (status == HFD_EXIT_OK) {
        r.postgres = hfd_settings_has_postgres(r.settings);
        status = run(&r);
    }
    hfd_settings_free(r.settings);
    return status;
}
