/*
 * hyperfleet-driver backup: writes what GET /admin/backup of a running server sends to a file. With
 * PostgreSQL it reads one snapshot of the database itself, and makes the same kind of file. The
 * file gets its name when it is whole and its checksum was compared. Thread: main.
 */
#include "driver/base/base.h"
#include "driver/base/clock.h"
#include "driver/base/file.h"
#include "driver/base/jsonx.h"
#include "handlers/cli/ask.h"
#include "handlers/cli/backup_file.h"
#include "handlers/cli/cmd_migrate.h"
#include "handlers/client/flags.h"
#include "store/move.h"
#include "store/sqlite/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <unistd.h>

#define OUTPUT_MAX 16384
#define MEM_MAX ((size_t)65536)
#define MIB INT64_C(1048576)

struct request {
    const char *file, *ops_url, *token_file, *ca_file;
    struct hfd_settings *settings; /* NULL with --ops-url */
    int fd;                        /* of the part */
    int failed;                    /* errno of a write; 0 = none */
    struct hfd_meter meter;
    struct hfd_client_answer answer; /* of the server */
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
        hfd_draft_remove(draft);
    _exit(HFD_EXIT_CUT_SHORT);
}

/* ---- the file ---- */

static enum hfd_exit open_part(struct request *r)
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
    struct request *r = ctx;
    int64_t total = 0;

    r->got_bytes += (int64_t)piece.len;
    if (hfd_parse_i64(hfd_client_header(&r->answer, "Content-Length"), 0, INT64_MAX, &total,
                      NULL) != HFD_OK)
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
static hfd_rc finish_file(struct request *r, struct hfd_arena *mem, struct hfd_backup_note *note,
                          struct hfd_err *err)
{
    hfd_rc rc = hfd_backup_file_note(r->fd, mem, note, err);

    if (rc == HFD_OK)
        rc = hfd_backup_file_copy(r->fd, note, -1, &r->meter, err);
    if (rc != HFD_OK)
        return rc;
    if (fsync(r->fd) != 0 || rename(part, r->file) != 0 || hfd_file_sync_parent(r->file) != 0)
        return hfd_fail(err, HFD_IO, "it cannot be written: %s", strerror(errno));
    return HFD_OK;
}

/* ---- the request ---- */

static enum hfd_exit refused(const struct hfd_client_answer *answer, bool has_token)
{
    const char *message = NULL;
    json_t *doc = NULL;

    if (hfd_json_parse(hfd_buf_slice(&answer->body), &doc, NULL) == HFD_OK)
        message = json_string_value(json_object_get(doc, "message"));
    if (answer->status == 401 && !has_token)
        message = HFD_CLI_LOGIN_TEXT("admin");
    (void)hfd_cli_fail(HFD_EXIT_CUT_SHORT, "backup", "the server answers %d: %s", answer->status,
                       message != NULL ? message : "is this the URL of its ops listener?");
    json_decref(doc);
    return HFD_EXIT_CUT_SHORT;
}

static enum hfd_exit receive(struct request *r, struct hfd_client_http *http,
                             const struct hfd_client_config *config)
{
    const struct hfd_client_request get = {
        .method = "GET", .path = "admin/backup", .take = take_piece, .take_ctx = r};
    const struct hfd_client_answer *answer = &r->answer;
    enum hfd_exit status = HFD_EXIT_OK;

    hfd_meter_set(&r->meter, &(struct hfd_meter_at){.what = "the server makes a copy"});
    hfd_client_send(http, &(struct hfd_client_batch){&get, &r->answer, 1});
    hfd_meter_clear(&r->meter);
    if (r->failed != 0)
        status = hfd_cli_fail(HFD_EXIT_DATA, "backup", "write %s: %s", part, strerror(r->failed));
    else if (answer->status == 0)
        status = hfd_cli_fail(HFD_EXIT_ADDRESS, "backup", "%s: %s", config->url, answer->why);
    else if (answer->status != 200)
        status = refused(answer, config->token_file != NULL);
    hfd_client_answer_fini(&r->answer);
    return status;
}

static enum hfd_exit fetch(struct request *r)
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
        return hfd_cli_fail(rc == HFD_NOMEM ? HFD_EXIT_INTERNAL : HFD_EXIT_USAGE, "backup", "%s",
                            err.msg);
    status = receive(r, http, &server.config);
    hfd_client_close(&http);
    return status;
}

/* ---- the database itself ---- */

/* Facts of the snapshot, for the note. */
struct facts {
    struct hfd_arena *mem;
    struct hfd_backup_note *note;
};

static hfd_rc look(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    const struct facts *f = arg;

    return hfd_backup_note_collect(tx, f->mem, f->note, err);
}

/* Makes a SQLite database of the rows of one snapshot, and a backup of it. */
static hfd_rc copy_rows(struct request *r, struct hfd_arena *mem, struct hfd_err *err)
{
    const struct hfd_store_place from = hfd_cli_place(r->settings), to = {.dir = draft};
    struct hfd_backup_note note = {.taken_us = hfd_clock_wall_us(&hfd_clock_system)};
    struct facts facts = {mem, &note};
    const struct hfd_move_config config = {.from = &from,
                                           .to = &to,
                                           .name = hfd_cli_place_text(r->settings),
                                           .online = true,
                                           .look = look,
                                           .look_arg = &facts,
                                           .progress = hfd_move_show,
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
    return rc == HFD_OK ? hfd_backup_file_seal(r->fd, &note, err) : rc;
}

static enum hfd_exit read_database(struct request *r)
{
    struct hfd_err err = {0};
    struct hfd_arena mem;
    hfd_rc rc;

    if (snprintf(draft, sizeof(draft), "%s.draft", r->file) >= (int)sizeof(draft))
        return hfd_cli_fail(HFD_EXIT_USAGE, "backup", "FILE is too long");
    hfd_arena_init(&mem, MEM_MAX);
    rc = hfd_draft_make(draft, &err);
    if (rc == HFD_OK)
        rc = copy_rows(r, &mem, &err);
    hfd_meter_clear(&r->meter);
    hfd_draft_remove(draft);
    hfd_arena_fini(&mem);
    if (rc == HFD_OK)
        return HFD_EXIT_OK;
    return hfd_cli_fail(rc == HFD_AWAY    ? HFD_EXIT_ADDRESS
                        : rc == HFD_NOMEM ? HFD_EXIT_INTERNAL
                                          : HFD_EXIT_DATA,
                        "backup", "%s", err.msg);
}

/* ---- the command ---- */

static enum hfd_exit report(const struct request *r, const struct hfd_backup_note *note)
{
    char taken[HFD_TIME_TEXT_MAX];
    struct hfd_buf b;

    hfd_buf_init(&b, OUTPUT_MAX);
    (void)hfd_time_format_s(note->taken_us, taken);
    hfd_buf_addf(&b, "%s: %lld resource%s as of %s, %lld bytes\n", r->file,
                 (long long)note->resources, note->resources == 1 ? "" : "s", taken,
                 (long long)note->bytes + (long long)HFD_BACKUP_NOTE_BYTES);
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

static enum hfd_exit run(struct request *r)
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
        status = rc == HFD_OK ? report(r, &note)
                              : hfd_cli_fail(HFD_EXIT_DATA, "backup", "%s: %s", r->file, err.msg);
    }
    hfd_meter_stop(&r->meter);
    (void)close(r->fd);
    (void)unlink(part); /* unless it has its name */
    hfd_arena_fini(&mem);
    return status;
}

/* The settings say where the server on this machine is. */
static enum hfd_exit load_settings(struct request *r, const struct hfd_flags *flags)
{
    if (r->ops_url == NULL)
        return hfd_cli_settings(flags, &r->settings);
    return flags->rest_count == 0
               ? HFD_EXIT_OK
               : hfd_cli_fail(HFD_EXIT_USAGE, "backup", "%s: not with --ops-url", flags->rest[0]);
}

enum hfd_exit hfd_cmd_backup(int argc, const char **argv)
{
    struct request r = {.fd = -1};
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
        status = run(&r);
    hfd_settings_free(r.settings);
    return status;
}
