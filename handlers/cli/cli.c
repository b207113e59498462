/* See cli.h. */
#include "handlers/cli/cli.h"

#include "driver/base/check.h"
#include "driver/base/file.h"
#include "driver/base/foreign.h"
#include "driver/base/jsonx.h"
#include "driver/base/pgurl.h"
#include "handlers/cli/ask.h"
#include "handlers/http/server.h"
#include "store/sqlite/folder.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#define LINE_MAX_BYTES 4096

/* Prints a line on stderr: one, whatever the texts in it are. */
__attribute__((format(printf, 3, 0))) static void
print_line(const char *program, const char *command, const char *fmt, va_list ap)
{
    char line[LINE_MAX_BYTES], *text = NULL;
    const int n = vasprintf(&text, fmt, ap);
    const hfd_slice whole = n < 0 ? HFD_SLICE("out of memory") : (hfd_slice){text, (size_t)n};
    const size_t len = hfd_foreign_line(whole, sizeof(line), line);

    (void)fprintf(stderr, "%s%s%s%.*s\n", program, command,
                  program[0] != '\0' || command[0] != '\0' ? ": " : "", (int)len, line);
    if (n >= 0)
        free(text);
}

enum hfd_exit hfd_cli_fail(enum hfd_exit status, const char *command, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    print_line(command[0] != '\0' ? "hyperfleet-driver " : "hyperfleet-driver", command, fmt, ap);
    va_end(ap);
    return status;
}

enum hfd_exit hfd_cli_refused(const char *command, const struct hfd_http_answer *answer,
                              bool has_token)
{
    const char *message = NULL;
    json_t *doc = NULL;

    if (hfd_json_parse(hfd_buf_slice(&answer->body), &doc, NULL) == HFD_OK)
        message = json_string_value(json_object_get(doc, "message"));
    if (answer->status == 401 && !has_token)
        message = HFD_CLI_LOGIN_TEXT("admin");
    (void)hfd_cli_fail(HFD_EXIT_CUT_SHORT, command, "the server answers %d: %s", answer->status,
                       message != NULL ? message : "is this the URL of its ops listener?");
    json_decref(doc);
    return HFD_EXIT_CUT_SHORT;
}

void hfd_cli_say(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    print_line("", "", fmt, ap);
    va_end(ap);
}

/* Adds a text by its lines, whose ends are ours. */
static void add_lines(struct hfd_buf *out, hfd_slice text)
{
    while (text.len > 0) {
        const char *end = memchr(text.p, '\n', text.len);
        const size_t len = end != NULL ? (size_t)(end - text.p) : text.len;

        hfd_buf_show(out, (hfd_slice){text.p, len});
        if (end != NULL)
            hfd_buf_addc(out, '\n');
        text = (hfd_slice){text.p + len + (end != NULL), text.len - len - (end != NULL)};
    }
}

enum hfd_exit hfd_cli_print(const char *command, struct hfd_buf *b)
{
    enum hfd_exit status = HFD_EXIT_OK;
    struct hfd_err err = {0};
    struct hfd_buf shown;
    hfd_slice text;

    hfd_buf_init(&shown, HFD_FOREIGN_CHAR_MAX * b->max_bytes);
    add_lines(&shown, hfd_buf_slice(b));
    shown.rc = b->rc != HFD_OK ? b->rc : shown.rc;
    if (hfd_buf_finish(&shown, &text, &err) != HFD_OK)
        status = hfd_cli_fail(HFD_EXIT_INTERNAL, command, "%s", err.msg);
    else if ((text.len > 0 && fwrite(text.p, 1, text.len, stdout) != text.len) ||
             fflush(stdout) != 0)
        status = hfd_cli_fail(HFD_EXIT_CUT_SHORT, command, "write the output: %s", strerror(errno));
    hfd_buf_fini(&shown);
    hfd_buf_fini(b);
    return status;
}

enum hfd_exit hfd_cli_wrong_use(const char *command, const char *usage, const char *msg)
{
    (void)hfd_cli_fail(HFD_EXIT_USAGE, command, "%s", msg);
    (void)fprintf(stderr, "Usage: hyperfleet-driver %s\n", usage);
    return HFD_EXIT_USAGE;
}

enum hfd_exit hfd_cli_settings(const struct hfd_flags *flags, struct hfd_settings **out)
{
    const char *near = NULL, *command = flags->command;
    struct hfd_err err = {0};
    hfd_rc rc = hfd_settings_load(flags->rest_count, (const char *const *)flags->rest,
                                  (const char *const *)environ, out, &err);

    if (rc == HFD_OK) {
        rc = hfd_server_check(*out, &err);
        if (rc == HFD_OK)
            return HFD_EXIT_OK;
        hfd_settings_free(*out);
        *out = NULL;
    }
    if (rc == HFD_NOMEM)
        return hfd_cli_fail(HFD_EXIT_INTERNAL, command, "out of memory");
    if (err.field[0] == '-')
        near = hfd_flags_nearest(flags, hfd_slice_of(err.field), true);
    if (near != NULL)
        return hfd_cli_fail(HFD_EXIT_USAGE, command, "unknown flag %s; did you mean %s?", err.field,
                            near);
    return hfd_cli_fail(HFD_EXIT_USAGE, command, "%s", err.msg);
}

const char *hfd_cli_path(struct hfd_settings *s, hfd_slice given, const char *name)
{
    if (given.len > 0)
        return hfd_arena_dup(&s->mem, given).p;
    if (hfd_settings_has_postgres(s))
        return "";
    return hfd_arena_printf(&s->mem, "%.*s/%s", HFD_SLICE_FMT(s->data), name).p;
}

struct hfd_store_place hfd_cli_place(const struct hfd_settings *s)
{
    if (!hfd_settings_has_postgres(s))
        return (struct hfd_store_place){.dir = s->data.p};
    return (struct hfd_store_place){
        .url = s->store.p, /* strings of settings end with a NUL */
        .password_file = s->store_password_file.len > 0 ? s->store_password_file.p : NULL,
        .connect_timeout_us = s->store_connect_timeout_us,
        .answer_timeout_us = s->store_answer_timeout_us,
    };
}

const char *hfd_cli_place_text(struct hfd_settings *s)
{
    struct hfd_buf b;
    hfd_slice text = HFD_SLICE_NONE;

    if (!hfd_settings_has_postgres(s))
        return s->data.p;
    hfd_buf_init(&b, 2 * s->store.len + 64);
    hfd_pgurl_mask(&b, s->store);
    return hfd_buf_to_arena(&b, &s->mem, &text, NULL) == HFD_OK ? text.p : "PostgreSQL";
}

hfd_rc hfd_cli_need(const struct hfd_settings *s, enum hfd_setting which, struct hfd_err *err)
{
    const bool keys = which == HFD_SETTING_keys;

    HFD_ASSERT(keys || which == HFD_SETTING_auth_tokens_file);
    if (!hfd_settings_has_postgres(s) || (keys ? s->keys.len : s->auth_tokens_file.len) > 0)
        return HFD_OK;
    if (keys)
        return hfd_settings_refuse(
            s, which, err,
            "expected the file of the key ring with a PostgreSQL store; `hyperfleet-driver keygen "
            "--keys FILE` makes one, once for all replicas");
    return hfd_settings_refuse(s, which, err,
                               "expected the file of the tokens with a PostgreSQL store");
}

hfd_rc hfd_cli_need_store(const struct hfd_settings *s, bool may_begin, struct hfd_err *err)
{
    const hfd_slice from = s->origin[HFD_SETTING_data];
    char path[PATH_MAX], here[PATH_MAX] = "";

    if (hfd_settings_has_postgres(s))
        return HFD_OK;
    (void)snprintf(path, sizeof(path), "%s/" HFD_FOLDER_DB_NAME, s->data.p);
    if (access(path, F_OK) == 0 || errno != ENOENT)
        return HFD_OK;
    if (s->data.p[0] != '/' && getcwd(here, sizeof(here)) == NULL)
        here[0] = '\0';
    return hfd_fail_field(err, HFD_INVALID, "data",
                          "no server has used the data folder %.100s%s%.100s (%.*s); expected that "
                          "of the server: --config FILE or --data FOLDER%s",
                          here, here[0] != '\0' ? "/" : "", s->data.p,
                          HFD_SLICE_FMT(from.len > 0 ? from : HFD_SLICE("the default")),
                          may_begin ? ", or --new before its first start" : "");
}

hfd_rc hfd_cli_make_data(const struct hfd_settings *s, struct hfd_err *err)
{
    const char *path = s->data.p; /* strings of settings end with a NUL */
    struct stat st;

    if (mkdir(path, 0700) == 0) {
        if (hfd_file_sync_parent(path) == 0)
            return HFD_OK;
        (void)hfd_fail(err, HFD_IO, "data folder %.120s: sync its parent: %s", path,
                       strerror(errno));
        (void)rmdir(path); /* the next start would believe that it is on disk */
        return HFD_IO;
    }
    if (errno != EEXIST)
        return hfd_fail(err, HFD_IO, "data folder %.120s: cannot make it: %s", path,
                        strerror(errno));
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
        return hfd_fail(err, HFD_IO, "data folder %.120s: it is not a folder", path);
    return HFD_OK;
}
