/*
 * hyperfleet-driver backup: writes what GET /admin/backup of a running server sends to a file. With
 * PostgreSQL it reads one snapshot of the database itself, and makes the same kind of file. The
 * file gets its name when it is whole and its checksum was compared.
 *
 * hyperfleet-driver restore: makes a data folder, or fills an empty PostgreSQL database, from a
 * backup. It checks the backup in a folder of its own, and moves the data to its place at the end.
 * Thread: main.
 */
#include "driver/base/base.h"
#include "driver/base/clock.h"
#include "driver/base/file.h"
#include "driver/base/steady.h"
#include "driver/core/backup_note.h"
#include "driver/core/keyring.h"
#include "driver/core/ring_check.h"
#include "handlers/cli/ask.h"
#include "store/move.h"
#include "store/row_walk.h"
#include "store/sqlite/folder.h"
#include "store/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define OUTPUT_MAX 16384
#define MEM_MAX ((size_t)65536)
#define MIB INT64_C(1048576)

/* ---- the file of a backup ---- */

#define PIECE_BYTES ((size_t)65536)

/* Reads exactly len bytes. */
static hfd_rc read_at(int fd, char *out, size_t len, int64_t at, struct hfd_err *err)
{
    size_t done = 0;

    while (done < len) {
        const ssize_t n = pread(fd, out + done, len - done, at + (int64_t)done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return hfd_fail(err, HFD_IO, "it cannot be read: %s",
                            n < 0 ? strerror(errno) : "it became shorter");
        done += (size_t)n;
    }
    return HFD_OK;
}

static hfd_rc write_all(int fd, const char *bytes, size_t len, struct hfd_err *err)
{
    size_t done = 0;

    while (done < len) {
        const ssize_t n = write(fd, bytes + done, len - done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return hfd_fail(err, HFD_IO, "its copy cannot be written: %s", strerror(errno));
        done += (size_t)n;
    }
    return HFD_OK;
}

/*
 * Reads the note of a backup.
 * @param mem  keeps its texts
 * @return HFD_OK, HFD_INVALID (it is no backup, or not whole), HFD_IO, HFD_NOMEM
 */
static hfd_rc read_note(int fd, struct hfd_arena *mem, struct hfd_backup_note *out,
                        struct hfd_err *err)
{
    char text[HFD_BACKUP_NOTE_BYTES];
    struct stat st;
    hfd_rc rc;

    if (fstat(fd, &st) != 0)
        return hfd_fail(err, HFD_IO, "it cannot be read: %s", strerror(errno));
    if (!S_ISREG(st.st_mode) || st.st_size <= (int64_t)sizeof(text))
        return hfd_fail(err, HFD_INVALID, "it is no backup of hyperfleet-driver");
    rc = read_at(fd, text, sizeof(text), st.st_size - (int64_t)sizeof(text), err);
    if (rc == HFD_OK)
        rc = hfd_backup_note_parse(text, mem, out, err);
    if (rc == HFD_OK && out->bytes != st.st_size - (int64_t)sizeof(text))
        rc = hfd_fail(err, HFD_INVALID, "it is not whole: %lld bytes instead of %lld",
                      (long long)st.st_size, (long long)out->bytes + (long long)sizeof(text));
    return rc;
}

/*
 * Reads the database in the file, for its checksum.
 * @param to     gets it; -1 = nothing is written
 * @param meter  learns how far it is; NULL = nothing is shown
 */
static hfd_rc read_bytes(int fd, int64_t bytes, int to, struct hfd_meter *meter,
                         struct hfd_backup_sum *sum, struct hfd_err *err)
{
    const char *what = to >= 0 ? "copying the backup" : "comparing the checksum";
    char piece[PIECE_BYTES];
    hfd_rc rc = HFD_OK;
    int64_t at = 0;

    hfd_backup_sum_init(sum);
    while (rc == HFD_OK && at < bytes) {
        const int64_t left = bytes - at;
        const size_t len = left < (int64_t)sizeof(piece) ? (size_t)left : sizeof(piece);

        if (meter != NULL)
            hfd_meter_set(meter, &(struct hfd_meter_at){what, "MiB", at / MIB, bytes / MIB});
        rc = read_at(fd, piece, len, at, err);
        if (rc == HFD_OK && to >= 0)
            rc = write_all(to, piece, len, err);
        hfd_backup_sum_add(sum, piece, len);
        at += (int64_t)len;
    }
    return rc;
}

/*
 * Reads the whole file and compares its checksum; as read_bytes.
 * @param note  of this file
 * @return HFD_OK, HFD_CORRUPT (the checksum does not match), HFD_IO
 */
static hfd_rc copy_backup(int fd, const struct hfd_backup_note *note, int to,
                          struct hfd_meter *meter, struct hfd_err *err)
{
    char text[HFD_BACKUP_NOTE_BYTES];
    struct hfd_backup_sum sum;
    hfd_rc rc = read_bytes(fd, note->bytes, to, meter, &sum, err);

    if (rc == HFD_OK)
        rc = read_at(fd, text, sizeof(text), note->bytes, err);
    if (rc == HFD_OK && !hfd_backup_note_matches(text, &sum))
        rc = hfd_fail(err, HFD_CORRUPT,
                      "it is damaged: its checksum does not match. Use another backup");
    return rc;
}

/*
 * Writes the note behind the database in a file.
 * @param note  its facts; bytes is set
 * @return HFD_OK, HFD_LIMIT, HFD_IO, HFD_NOMEM
 */
static hfd_rc seal(int fd, struct hfd_backup_note *note, struct hfd_err *err)
{
    char text[HFD_BACKUP_NOTE_BYTES];
    struct hfd_backup_sum sum;
    struct stat st;
    hfd_rc rc;

    if (fstat(fd, &st) != 0)
        return hfd_fail(err, HFD_IO, "it cannot be read: %s", strerror(errno));
    note->bytes = st.st_size;
    rc = read_bytes(fd, note->bytes, -1, NULL, &sum, err);
    if (rc == HFD_OK)
        rc = hfd_backup_note_format(note, &sum, text, err);
    if (rc == HFD_OK && lseek(fd, 0, SEEK_END) < 0)
        rc = hfd_fail(err, HFD_IO, "it cannot be written: %s", strerror(errno));
    return rc == HFD_OK ? write_all(fd, text, sizeof(text), err) : rc;
}

/* Starts a text about a backup: "FILE: restored 3 resources as of 2026-11-22T10:02:00Z". */
static void add_facts(struct hfd_buf *b, const char *subject, const char *verb,
                      const struct hfd_backup_note *note, char taken[HFD_TIME_TEXT_MAX])
{
    hfd_buf_init(b, OUTPUT_MAX);
    (void)hfd_time_format_s(note->taken_us, taken);
    hfd_buf_addf(b, "%s: %s%lld resource%s as of %s", subject, verb, (long long)note->resources,
                 note->resources == 1 ? "" : "s", taken);
}

/* ---- a folder for a database ---- */

#define MAKE_TRIES 10

/* Removes the database in it, and the folder. An absent one is no error. */
static void draft_remove(const char *path)
{
    static const char *const names[] = {HFD_FOLDER_DB_NAME, HFD_FOLDER_DB_NAME "-wal",
                                        HFD_FOLDER_DB_NAME "-shm", HFD_FOLDER_LOCK_NAME};
    const int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

    for (size_t i = 0; dir >= 0 && i < sizeof(names) / sizeof(names[0]); i++)
        (void)unlinkat(dir, names[i], 0);
    if (dir >= 0)
        (void)close(dir);
    (void)rmdir(path);
}

/* Makes the folder, mode 0700. A draft of the same name that a kill left behind is removed. */
static hfd_rc draft_make(const char *path, struct hfd_err *err)
{
    draft_remove(path);
    return mkdir(path, 0700) == 0 ? HFD_OK
                                  : hfd_fail(err, HFD_IO, "make %.120s: %s", path, strerror(errno));
}

/* Returns whether the path still names the open folder. */
static bool is_at(int dir, const char *path)
{
    struct stat open_one, named;

    return fstat(dir, &open_one) == 0 && lstat(path, &named) == 0 &&
           open_one.st_dev == named.st_dev && open_one.st_ino == named.st_ino;
}

/* Makes it, and holds it as long as *hold is open: draft_sweep of another process leaves it. */
static hfd_rc draft_make_held(const char *path, int *hold, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    /* A sweep may take the folder before it is held. */
    for (int i = 0; rc == HFD_OK && i < MAKE_TRIES; i++) {
        rc = draft_make(path, err);
        *hold = rc == HFD_OK ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW) : -1;
        if (*hold >= 0 && flock(*hold, LOCK_EX) == 0 && is_at(*hold, path))
            return HFD_OK;
        if (*hold >= 0)
            (void)close(*hold);
        *hold = -1;
    }
    return rc != HFD_OK ? rc : hfd_fail(err, HFD_IO, "make %.120s: it goes away again", path);
}

/* Removes a draft that no process holds, and says so. */
static void sweep_one(const char *path)
{
    const int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    struct stat st;

    if (dir < 0)
        return;
    if (fstat(dir, &st) == 0 && st.st_uid == geteuid() && flock(dir, LOCK_EX | LOCK_NB) == 0) {
        draft_remove(path);
        if (!is_at(dir, path))
            hfd_cli_say("hyperfleet-driver restore: removed %s, which a restore that was cut short "
                        "had left",
                        path);
    }
    (void)close(dir);
}

/*
 * Removes drafts of this user that no process holds: those that a kill left behind.
 * @param path    a draft, PREFIXnumber: the others beside it have another number
 * @param prefix  of its name
 */
static void draft_sweep(const char *path, const char *prefix)
{
    const size_t head = (size_t)(strrchr(path, '/') - path), len = strlen(prefix);
    char other[PATH_MAX];
    struct dirent *entry;
    DIR *dir;

    (void)snprintf(other, sizeof(other), "%.*s", (int)head, path);
    dir = opendir(other);
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        const char *number = entry->d_name + len;

        if (strncmp(entry->d_name, prefix, len) != 0 || number[0] == '\0' ||
            number[strspn(number, "0123456789")] != '\0')
            continue;
        if (snprintf(other, sizeof(other), "%.*s/%s", (int)head, path, entry->d_name) <
            (int)sizeof(other))
            sweep_one(other);
    }
    if (dir != NULL)
        (void)closedir(dir);
}

struct backup {
    const char *file, *ops_url, *token_file, *ca_file;
    struct hfd_settings *settings; /* NULL with --ops-url */
    int fd;                        /* of the part */
    int failed;                    /* errno of a write; 0 = none */
    struct hfd_meter meter;
    struct hfd_http_answer answer; /* of the server */
    int64_t got_bytes;
};

/* The file before it has its name; the handler of signals removes it. */
static char part[PATH_MAX];
/* The folder of a database that is being made; "" = none. */
static char draft[PATH_MAX];

static void on_signal(int number)
{
    (void)number;
    (void)unlink(part);
    if (draft[0] != '\0')
        draft_remove(draft);
    _exit(HFD_EXIT_CUT_SHORT);
}

/* ---- backup: the file ---- */

static enum hfd_exit open_part(struct backup *r)
{
    const struct sigaction action = {.sa_handler = on_signal};
    struct stat st;

    if (stat(r->file, &st) == 0 && !S_ISREG(st.st_mode))
        return hfd_cli_fail(HFD_EXIT_DATA, "backup", "%s: it is not a regular file", r->file);
    if (snprintf(part, sizeof(part), "%s.part", r->file) >= (int)sizeof(part))
        return hfd_cli_fail(HFD_EXIT_USAGE, "backup", "FILE is too long");
    /* Before the file is there: no signal leaves it behind. */
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGHUP, &action, NULL);
    r->fd = hfd_file_make(part);
    if (r->fd < 0)
        return hfd_cli_fail(HFD_EXIT_DATA, "backup", "write %s: %s", part, strerror(errno));
    return HFD_EXIT_OK;
}

static bool take_piece(void *ctx, hfd_slice piece)
{
    struct backup *r = ctx;
    int64_t total = 0;

    r->got_bytes += (int64_t)piece.len;
    if (hfd_parse_i64(hfd_http_header(&r->answer, "Content-Length"), 0, INT64_MAX, &total, NULL) !=
        HFD_OK)
        total = 0;
    hfd_meter_set(&r->meter, &(struct hfd_meter_at){"receiving the copy", "MiB", r->got_bytes / MIB,
                                                    total / MIB});
    while (piece.len > 0) {
        const ssize_t n = write(r->fd, piece.p, piece.len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            r->failed = n < 0 ? errno : EIO;
            return false;
        }
        piece = (hfd_slice){piece.p + n, piece.len - (size_t)n};
    }
    return true;
}

/* Compares the checksum, and gives the file its name, on disk. */
static hfd_rc finish_file(struct backup *r, struct hfd_arena *mem, struct hfd_backup_note *note,
                          struct hfd_err *err)
{
    hfd_rc rc = read_note(r->fd, mem, note, err);

    if (rc == HFD_OK)
        rc = copy_backup(r->fd, note, -1, &r->meter, err);
    if (rc != HFD_OK)
        return rc;
    if (fsync(r->fd) != 0 || rename(part, r->file) != 0 || hfd_file_sync_parent(r->file) != 0)
        return hfd_fail(err, HFD_IO, "it cannot be written: %s", strerror(errno));
    return HFD_OK;
}

/* ---- backup: the request ---- */

static enum hfd_exit receive(struct backup *r, struct hfd_client_http *http,
                             const struct hfd_client_config *config)
{
    const struct hfd_client_request get = {
        .method = "GET", .path = "admin/backup", .take = take_piece, .take_ctx = r};
    const struct hfd_http_answer *answer = &r->answer;
    enum hfd_exit status = HFD_EXIT_OK;

    hfd_meter_set(&r->meter, &(struct hfd_meter_at){.what = "the server makes a copy"});
    hfd_client_send(http, &get, &r->answer, 1);
    hfd_meter_clear(&r->meter);
    if (r->failed != 0)
        status = hfd_cli_fail(HFD_EXIT_DATA, "backup", "write %s: %s", part, strerror(r->failed));
    else if (answer->status == 0)
        status = hfd_cli_fail(HFD_EXIT_ADDRESS, "backup", "%s: %s", config->url, answer->why);
    else if (answer->status != 200)
        status = hfd_cli_refused("backup", answer, config->token_file != NULL);
    hfd_http_answer_fini(&r->answer);
    return status;
}

static enum hfd_exit fetch(struct backup *r)
{
    struct hfd_cli_server server = {
        .config = {.url = r->ops_url, .token_file = r->token_file, .ca_file = r->ca_file}};
    struct hfd_client_http *http = NULL;
    struct hfd_err err = {0};
    enum hfd_exit status;
    hfd_rc rc = HFD_OK;

    if (r->settings != NULL) {
        rc = hfd_cli_find(r->settings, HFD_LISTENER_OPS, &server, &err);
        if (r->token_file != NULL)
            server.config.token_file = r->token_file;
    }
    if (rc == HFD_OK)
        rc = hfd_client_open(&server.config, &http, &err);
    if (rc != HFD_OK)
        return hfd_cli_fail_rc(rc, "backup", &err);
    status = receive(r, http, &server.config);
    hfd_client_close(&http);
    return status;
}

/* ---- backup: the database itself ---- */

/* Facts of the snapshot, for the note. */
struct facts {
    struct hfd_arena *mem;
    struct hfd_backup_note *note;
};

static hfd_rc look_at_snapshot(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    const struct facts *f = arg;

    return hfd_backup_note_collect(tx, f->mem, f->note, err);
}

/* Makes a SQLite database of the rows of one snapshot, and a backup of it. */
static hfd_rc copy_rows(struct backup *r, struct hfd_arena *mem, struct hfd_err *err)
{
    const struct hfd_store_place from = hfd_cli_place(r->settings), to = {.dir = draft};
    struct hfd_backup_note note = {.taken_us = hfd_clock_wall_us(&hfd_clock_system)};
    struct facts facts = {mem, &note};
    const struct hfd_move_config config = {.from = &from,
                                           .to = &to,
                                           .name = hfd_cli_place_text(r->settings),
                                           .online = true,
                                           .look = look_at_snapshot,
                                           .look_arg = &facts,
                                           .progress = hfd_cli_show_move,
                                           .progress_ctx = &r->meter};
    struct hfd_move_result result;
    const char *made = hfd_arena_printf(mem, "%s/" HFD_FOLDER_DB_NAME, draft).p;
    hfd_rc rc = made != NULL ? hfd_move(&config, &result, err) : hfd_fail_nomem(err, "back up");

    note.clock_us = note.taken_us;
    if (rc == HFD_OK && rename(made, part) != 0)
        rc = hfd_fail(err, HFD_IO, "write %.120s: %s", part, strerror(errno));
    if (rc != HFD_OK)
        return rc;
    (void)close(r->fd);
    rc = hfd_file_open_own(part, "backup", O_RDWR, &r->fd, err);
    if (rc == HFD_OK && fchmod(r->fd, 0600) != 0)
        rc = hfd_fail(err, HFD_IO, "write %.120s: %s", part, strerror(errno));
    return rc == HFD_OK ? seal(r->fd, &note, err) : rc;
}

static enum hfd_exit read_database(struct backup *r)
{
    struct hfd_err err = {0};
    struct hfd_arena mem;
    hfd_rc rc;

    if (snprintf(draft, sizeof(draft), "%s.draft", r->file) >= (int)sizeof(draft))
        return hfd_cli_fail(HFD_EXIT_USAGE, "backup", "FILE is too long");
    hfd_arena_init(&mem, MEM_MAX);
    rc = draft_make(draft, &err);
    if (rc == HFD_OK)
        rc = copy_rows(r, &mem, &err);
    hfd_meter_clear(&r->meter);
    draft_remove(draft);
    hfd_arena_fini(&mem);
    if (rc == HFD_OK)
        return HFD_EXIT_OK;
    return hfd_cli_fail(rc == HFD_AWAY    ? HFD_EXIT_ADDRESS
                        : rc == HFD_NOMEM ? HFD_EXIT_INTERNAL
                                          : HFD_EXIT_DATA,
                        "backup", "%s", err.msg);
}

/* ---- backup ---- */

static enum hfd_exit report_backup(const struct backup *r, const struct hfd_backup_note *note)
{
    char taken[HFD_TIME_TEXT_MAX];
    struct hfd_buf b;

    add_facts(&b, r->file, "", note, taken);
    hfd_buf_addf(&b, ", %lld bytes\n", (long long)note->bytes + (long long)HFD_BACKUP_NOTE_BYTES);
    if (note->key_count == 0) {
        hfd_buf_lit(&b, "It needs no key.\n");
    } else {
        hfd_buf_addf(&b, "It needs key%s", note->key_count == 1 ? "" : "s");
        for (size_t i = 0; i < note->key_count; i++) {
            hfd_buf_add(&b, i > 0 ? HFD_SLICE(", ") : HFD_SLICE(" "));
            hfd_buf_show(&b, note->keys[i]);
        }
        hfd_buf_lit(&b, " of the key ring.\nThe key ring is not in it: keep a copy of the key ring "
                        "in another place.\n");
    }
    return hfd_cli_print("backup", &b);
}

static enum hfd_exit run_backup(struct backup *r)
{
    struct hfd_backup_note note;
    struct hfd_err err = {0};
    struct hfd_arena mem;
    enum hfd_exit status;
    hfd_rc rc;

    if (hfd_base_init(&err) != HFD_OK)
        return hfd_cli_fail(HFD_EXIT_INTERNAL, "backup", "%s", err.msg);
    status = open_part(r);
    if (status != HFD_EXIT_OK)
        return status;
    hfd_meter_start(&r->meter);
    status =
        r->settings != NULL && hfd_settings_has_postgres(r->settings) ? read_database(r) : fetch(r);
    hfd_arena_init(&mem, MEM_MAX);
    if (status == HFD_EXIT_OK) {
        rc = finish_file(r, &mem, &note, &err);
        hfd_meter_stop(&r->meter);
        status = rc == HFD_OK ? report_backup(r, &note)
                              : hfd_cli_fail(HFD_EXIT_DATA, "backup", "%s: %s", r->file, err.msg);
    }
    hfd_meter_stop(&r->meter);
    (void)close(r->fd);
    (void)unlink(part); /* unless it has its name */
    hfd_arena_fini(&mem);
    return status;
}

/* The settings say where the server on this machine is. */
static enum hfd_exit load_settings(struct backup *r, const struct hfd_flags *flags)
{
    if (r->ops_url == NULL)
        return hfd_cli_settings(flags, &r->settings);
    return flags->rest_count == 0
               ? HFD_EXIT_OK
               : hfd_cli_fail(HFD_EXIT_USAGE, "backup", "%s: not with --ops-url", flags->rest[0]);
}

enum hfd_exit hfd_cmd_backup(int argc, const char **argv)
{
    struct backup r = {.fd = -1};
    const char *url = NULL;
    const struct hfd_flag table[] = {
        {"--ops-url", "HFD_OPS_URL", HFD_FLAG_TEXT, &r.ops_url, "URL",
         "the ops listener of the server (HFD_OPS_URL); without it, that of the settings"},
        {"--url", NULL, HFD_FLAG_TEXT, &url, "URL", NULL},
        {"--token-file", "HFD_TOKEN_FILE", HFD_FLAG_TEXT, &r.token_file, "FILE",
         "a bearer token with the scope admin"},
        {"--ca-file", NULL, HFD_FLAG_TEXT, &r.ca_file, "FILE", "certificates to trust"},
    };
    struct hfd_flags flags = {.command = "backup",
                              HFD_FLAG_TABLE(table),
                              .others = HFD_FLAG_SETTINGS,
                              .place_max = HFD_FLAG_PLACES_MAX};
    enum hfd_exit status;

    hfd_log_set_level(HFD_LOG_ERROR);
    if (!hfd_cli_read(&flags, argc, argv, &status))
        return status;
    if (flags.place_count != 1)
        return hfd_cli_fail(HFD_EXIT_USAGE, "backup", "expected the name of one file");
    if (url != NULL && r.ops_url == NULL)
        return hfd_cli_fail(HFD_EXIT_USAGE, "backup",
                            "--url: the ops listener sends backups: give --ops-url");
    r.file = flags.places[0];
    status = load_settings(&r, &flags);
    if (status == HFD_EXIT_OK)
        status = run_backup(&r);
    hfd_settings_free(r.settings);
    return status;
}

/* ---- restore ---- */

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

/* ---- restore: before anything is written ---- */

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
    rc = read_note(r->fd, &r->mem, &r->note, &err);
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

/* ---- restore: the draft ---- */

/* A folder of the data is held by its lock; one in TMPDIR may be beside those of others. */
static hfd_rc make_draft(struct restore *r, struct hfd_err *err)
{
    if (!r->postgres)
        return draft_make(r->draft, err);
    draft_sweep(r->draft, DRAFT_PREFIX);
    return draft_make_held(r->draft, &r->draft_hold, err);
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
    rc = copy_backup(r->fd, &r->note, to, &r->meter, &err);
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
    return rc == HFD_OK ? hfd_rows_check(tx, &findings, err) : rc;
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

/* ---- restore: the place ---- */

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
        (void)fprintf(stderr, "hyperfleet-driver restore: the clock of this machine is years "
                              "behind the backup: set it right before the server starts\n");
    if (rc == HFD_OK)
        rc = hfd_steady_save(&clock, path, &err);
    return rc == HFD_OK ? HFD_EXIT_OK : fail(rc, path, err.msg);
}

/* Gives a file to the owner of the data folder when root has made it: the server may run as it. */
static hfd_rc give_to_owner(const struct hfd_settings *s, const char *path, struct hfd_err *err)
{
    struct stat folder;

    if (geteuid() != 0)
        return HFD_OK;
    if (stat(s->data.p, &folder) == 0 && lchown(path, folder.st_uid, folder.st_gid) == 0)
        return HFD_OK;
    return hfd_fail(err, HFD_IO, "give it to the owner of the data folder: %s", strerror(errno));
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
    if (give_to_owner(r->settings, r->draft_db, &err) != HFD_OK)
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
        .from = &from, .to = &to, .progress = hfd_cli_show_move, .progress_ctx = &r->meter};
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

static enum hfd_exit report_restore(const struct restore *r)
{
    char taken[HFD_TIME_TEXT_MAX];
    struct hfd_buf b;

    add_facts(&b, hfd_cli_place_text(r->settings), "restored ", &r->note, taken);
    hfd_buf_addf(&b, "\nThe backup lacks all changes after %s:\n", taken);
    hfd_buf_lit(&b, "* A resource that was ordered later comes back by its cookie, with the next "
                    "PUT of its orchestrator.\n");
    hfd_buf_lit(&b, "* Until then its clusters at a remote HyperFleet, or made through HyperShift, "
                    "are orphans.\n"
                    "  List them: hyperfleet-driver doctor.\n");
    hfd_buf_lit(&b,
                "* A resource that was changed later has its earlier order until the next PUT.\n");
    hfd_buf_lit(&b, "* A resource that was deleted later is back: delete it again.\n");
    if (r->ring == NULL)
        hfd_buf_addf(&b,
                     "There is no key ring: make one with `hyperfleet-driver keygen --keys %s` "
                     "before the start.\n",
                     r->keys_path);
    return hfd_cli_print("restore", &b);
}

typedef enum hfd_exit step_fn(struct restore *r);

static enum hfd_exit run_restore(struct restore *r)
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
        draft_remove(r->draft);
    if (r->draft_hold >= 0)
        (void)close(r->draft_hold);
    if (status == HFD_EXIT_OK)
        status = report_restore(r);
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
        status = run_restore(&r);
    }
    hfd_settings_free(r.settings);
    return status;
}
