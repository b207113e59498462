/* See view.h. */
#include "handlers/cli/view.h"

#include "driver/base/check.h"
#include "driver/base/clock.h"
#include "driver/core/words.h"

#include <curl/curl.h>

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define URL_DEFAULT "http://127.0.0.1:8000/"
#define REQUEST_TIMEOUT_US (INT64_C(60) * HFD_US_PER_S)
#define WATCH_US HFD_US_PER_S
#define COLUMNS_MIN 40
#define SHARED_FLAGS 8
#define FLAGS_MAX 20
#define GAP 2

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
    (void)number;
    stopped = 1;
}

/* ---- the arguments ---- */

static hfd_rc read_form(struct hfd_view *v, struct hfd_err *err)
{
    enum hfd_form form;

    v->form = HFD_VIEW_TEXT;
    if (v->form_name == NULL)
        return HFD_OK;
    if (v->has_wide && strcmp(v->form_name, "wide") == 0) {
        v->form = HFD_VIEW_WIDE;
        return HFD_OK;
    }
    if (hfd_form_read(v->form_name, &form, NULL) != HFD_OK)
        return hfd_fail(err, HFD_INVALID, "-o: expected json, yaml%s",
                        v->has_wide ? ", name or wide" : " or name");
    v->form = form == HFD_FORM_JSON   ? HFD_VIEW_JSON
              : form == HFD_FORM_YAML ? HFD_VIEW_YAML
                                      : HFD_VIEW_NAME;
    return HFD_OK;
}

static enum hfd_exit print_flags(const struct hfd_view *v, const struct hfd_flags *flags)
{
    struct hfd_buf b;

    hfd_buf_init(&b, HFD_VIEW_OUTPUT_MAX_BYTES);
    hfd_buf_addf(&b, "Usage: hyperfleet-driver %s\n\nFlags:\n", v->usage);
    hfd_flags_help(flags, &b);
    hfd_buf_addf(&b, "\nExamples:\n%s", v->examples);
    return hfd_cli_print(v->name, &b);
}

enum hfd_exit hfd_view_wrong_use(const struct hfd_view *v, const char *msg)
{
    (void)hfd_cli_fail(HFD_EXIT_USAGE, v->name, "%s", msg);
    (void)fprintf(stderr, "Usage: hyperfleet-driver %s\n", v->usage);
    return HFD_EXIT_USAGE;
}

static bool read_arguments(struct hfd_view *v, int argc, const char *const *argv,
                           enum hfd_exit *status)
{
    struct hfd_flag table[FLAGS_MAX] = {
        {"--url", "HFD_URL", HFD_FLAG_TEXT, &v->url, "URL", "the server: " URL_DEFAULT " if none"},
        {"--ops-url", "HFD_OPS_URL", HFD_FLAG_TEXT, &v->ops_url, "URL", HFD_OPS_URL_TEXT},
        {"--token-file", "HFD_TOKEN_FILE", HFD_FLAG_TEXT, &v->token_file, "FILE",
         "a bearer token with the scope view"},
        {"--ca-file", NULL, HFD_FLAG_TEXT, &v->ca_file, "FILE", "certificates to trust"},
        {"-o", NULL, HFD_FLAG_TEXT, &v->form_name, "FORM",
         v->has_wide ? "json, yaml, name or wide" : "json, yaml or name"},
        {"--watch", NULL, HFD_FLAG_SWITCH, &v->watch, NULL, "show it again until Ctrl-C"},
        {"-w", NULL, HFD_FLAG_SWITCH, &v->watch, NULL, "the same"},
        {"--help", NULL, HFD_FLAG_SWITCH, &v->help, NULL, "print this text"},
    };
    struct hfd_flags flags = {.table = table, .count = SHARED_FLAGS + v->own_count};
    struct hfd_err err = {0};
    hfd_rc rc;

    HFD_ASSERT(flags.count <= FLAGS_MAX);
    for (size_t i = 0; i < v->own_count; i++)
        table[SHARED_FLAGS + i] = v->own[i];
    rc = hfd_flags_read(&flags, argc, argv, &err);
    if (rc == HFD_OK)
        rc = read_form(v, &err);
    if (rc == HFD_OK && flags.place_count > (v->takes_place ? 1U : 0U))
        rc = hfd_fail(&err, HFD_INVALID, "unexpected argument %.60s",
                      flags.places[v->takes_place ? 1 : 0]);
    v->place = flags.place_count > 0 ? flags.places[0] : NULL;
    v->url = v->url != NULL ? v->url : URL_DEFAULT;
    if (rc != HFD_OK)
        *status = hfd_view_wrong_use(v, err.msg);
    else if (v->help)
        *status = print_flags(v, &flags);
    return rc == HFD_OK && !v->help;
}

bool hfd_view_open(struct hfd_view *v, int argc, const char *const *argv, enum hfd_exit *status)
{
    const struct sigaction action = {.sa_handler = on_signal};
    struct hfd_client_config config = {.timeout_us = REQUEST_TIMEOUT_US};
    struct hfd_err err = {0};
    hfd_rc rc;

    if (!read_arguments(v, argc, argv, status))
        return false;
    config.url = v->url;
    config.token_file = v->token_file;
    config.ca_file = v->ca_file;
    rc = hfd_client_open(&config, &v->http, &err);
    if (rc != HFD_OK) {
        *status = rc == HFD_NOMEM ? hfd_cli_fail(HFD_EXIT_INTERNAL, v->name, "%s", err.msg)
                                  : hfd_view_wrong_use(v, err.msg);
        return false;
    }
    if (v->watch) {
        (void)sigaction(SIGINT, &action, NULL);
        (void)sigaction(SIGTERM, &action, NULL);
    }
    return true;
}

void hfd_view_close(struct hfd_view *v)
{
    hfd_client_close(&v->http);
}

/* ---- one document ---- */

static enum hfd_exit refuse(const struct hfd_view *v, const struct hfd_client_answer *a,
                            const json_t *doc)
{
    const char *why = hfd_view_text(doc, "detail");

    why = why[0] != '\0' ? why : hfd_view_text(doc, "message");
    if (a->status == 404 && hfd_view_text(doc, "code")[0] == '\0')
        return hfd_cli_fail(HFD_EXIT_CUT_SHORT, v->name,
                            "%s is no hyperfleet-driver: expected the URL of the server, without "
                            "the path of a driver",
                            v->url);
    return hfd_cli_fail(a->status == 404   ? HFD_EXIT_ABSENT
                        : a->status == 400 ? HFD_EXIT_USAGE
                                           : HFD_EXIT_CUT_SHORT,
                        v->name, "%s answers %d%s%s", v->url, a->status, why[0] != '\0' ? ": " : "",
                        why);
}

enum hfd_exit hfd_view_get(struct hfd_view *v, const char *path, json_t **out)
{
    const struct hfd_client_request request = {.method = "GET", .path = path};
    struct hfd_client_answer a = {.status = 0};
    const struct hfd_client_batch batch = {&request, &a, 1};
    enum hfd_exit status = HFD_EXIT_OK;
    hfd_slice date;
    char text[64];

    *out = NULL;
    hfd_client_send(v->http, &batch);
    date = hfd_client_header(&a, "Date");
    (void)snprintf(text, sizeof(text), "%.*s", HFD_SLICE_FMT(date));
    v->now_us = (int64_t)curl_getdate(text, NULL) * HFD_US_PER_S;
    if (v->now_us <= 0)
        v->now_us = hfd_clock_wall_us(&hfd_clock_system);
    if (a.status != 0 && a.body.len > 0)
        *out = json_loadb(a.body.p, a.body.len, JSON_REJECT_DUPLICATES, NULL);
    if (a.status == 0)
        status = hfd_cli_fail(HFD_EXIT_ADDRESS, v->name, "%s cannot be reached: %s", v->url, a.why);
    else if (a.status != 200 || !json_is_object(*out))
        status = refuse(v, &a, *out);
    if (status != HFD_EXIT_OK) {
        json_decref(*out);
        *out = NULL;
    }
    hfd_client_answer_fini(&a);
    return status;
}

void hfd_view_encode(struct hfd_buf *b, const char *text)
{
    for (const char *p = text; *p != '\0'; p++) {
        if (hfd_is_alnum(*p) || strchr("-._~", *p) != NULL)
            hfd_buf_addc(b, *p);
        else
            hfd_buf_addf(b, "%%%02X", (unsigned char)*p);
    }
}

/* ---- watching ---- */

size_t hfd_view_columns(void)
{
    struct winsize size;

    if (isatty(STDOUT_FILENO) != 1 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 ||
        size.ws_col == 0)
        return 0;
    return size.ws_col > COLUMNS_MIN ? size.ws_col : COLUMNS_MIN;
}

static enum hfd_exit print_picture(struct hfd_view *v, struct hfd_buf *picture, bool again)
{
    struct hfd_buf b;

    if (!v->watch)
        return hfd_cli_print(v->name, picture);
    hfd_buf_init(&b, HFD_VIEW_OUTPUT_MAX_BYTES);
    if (hfd_view_columns() > 0)
        hfd_buf_lit(&b, "\033[H\033[2J");
    else if (again)
        hfd_buf_addc(&b, '\n');
    hfd_buf_add(&b, hfd_buf_slice(picture));
    b.rc = b.rc == HFD_OK ? picture->rc : b.rc;
    hfd_buf_fini(picture);
    return hfd_cli_print(v->name, &b);
}

enum hfd_exit hfd_view_run(struct hfd_view *v, hfd_view_draw_fn *draw, void *ctx)
{
    json_t *last = NULL, *doc;
    enum hfd_exit status;
    struct hfd_buf b;

    do {
        doc = NULL;
        hfd_buf_init(&b, HFD_VIEW_OUTPUT_MAX_BYTES);
        status = draw(v, ctx, &b, &doc);
        if (doc != NULL && (hfd_view_columns() > 0 || last == NULL || !json_equal(doc, last))) {
            const enum hfd_exit printed = print_picture(v, &b, last != NULL);

            status = printed != HFD_EXIT_OK ? printed : status;
        }
        hfd_buf_fini(&b);
        json_decref(last);
        last = doc;
        if (status == HFD_EXIT_OK && v->watch)
            hfd_client_wait(v->http, WATCH_US, &stopped);
    } while (status == HFD_EXIT_OK && v->watch && stopped == 0);
    json_decref(last);
    return status;
}

/* ---- texts ---- */

const char *hfd_view_text(const json_t *doc, const char *key)
{
    const char *text = json_string_value(json_object_get(doc, key));

    return text != NULL ? text : "";
}

int64_t hfd_view_time(const json_t *doc, const char *key)
{
    int64_t at_us;

    return hfd_time_parse(hfd_slice_of(hfd_view_text(doc, key)), &at_us, NULL) == HFD_OK ? at_us
                                                                                         : 0;
}

void hfd_view_add_line(struct hfd_buf *b, const char *text)
{
    for (const char *p = text; *p != '\0'; p++)
        hfd_buf_addc(b, (unsigned char)*p < ' ' || *p == '\x7f' ? ' ' : *p);
}

void hfd_view_add_age(const struct hfd_view *v, struct hfd_buf *b, int64_t at_us)
{
    if (at_us == 0)
        hfd_buf_addc(b, '-');
    else
        hfd_words_add_duration(b, v->now_us > at_us ? v->now_us - at_us : 0);
}

static bool begins_character(char c)
{
    return ((unsigned char)c & 0xc0) != 0x80;
}

/* A character has one column. */
static size_t width_of(hfd_slice s)
{
    size_t n = 0;

    for (size_t i = 0; i < s.len; i++)
        n += begins_character(s.p[i]);
    return n;
}

void hfd_view_table_add(struct hfd_view_table *t, struct hfd_buf *b)
{
    if (t->count == t->room) {
        const size_t room = t->room == 0 ? 256 : t->room * 2;
        hfd_slice *more = hfd_arena_array(t->mem, room, sizeof(*more));

        if (more == NULL) {
            t->failed = true;
            return;
        }
        if (t->count > 0)
            memcpy(more, t->cells, t->count * sizeof(*more));
        t->cells = more;
        t->room = room;
    }
    t->cells[t->count] =
        b->len > 0 ? hfd_arena_dup(t->mem, hfd_buf_slice(b)) : hfd_slice_of(t->no_head ? "" : "-");
    if (t->cells[t->count].p == NULL || b->rc != HFD_OK)
        t->failed = true;
    t->count++;
    hfd_buf_reset(b);
}

/* Adds a line without its spaces at the end, and cut at a column. */
static void add_cut(struct hfd_buf *out, hfd_slice line, size_t width)
{
    size_t at = 0, n = 0;

    while (line.len > 0 && line.p[line.len - 1] == ' ')
        line.len--;
    while (at < line.len && (width == 0 || n < width || !begins_character(line.p[at])))
        n += begins_character(line.p[at++]);
    hfd_buf_add(out, (hfd_slice){line.p, at});
    hfd_buf_addc(out, '\n');
}

static hfd_slice cell_of(const struct hfd_view_table *t, size_t row, size_t column)
{
    return row == 0 ? hfd_slice_of(t->heads[column]) : t->cells[(row - 1) * t->columns + column];
}

void hfd_view_table_write(struct hfd_view_table *t, size_t width, struct hfd_buf *out)
{
    const size_t rows = t->failed ? 0 : t->count / t->columns + 1;
    size_t *widths = hfd_arena_array(t->mem, t->columns, sizeof(*widths));
    struct hfd_buf line;

    if (widths == NULL || t->failed) {
        out->rc = out->rc == HFD_OK ? HFD_NOMEM : out->rc;
        return;
    }
    for (size_t c = 0; c < t->columns; c++) {
        widths[c] = 0;
        for (size_t r = t->no_head ? 1 : 0; r < rows; r++) {
            const size_t w = width_of(cell_of(t, r, c));

            widths[c] = w > widths[c] ? w : widths[c];
        }
    }
    hfd_buf_init(&line, HFD_CLIENT_ANSWER_MAX_BYTES);
    for (size_t r = t->no_head ? 1 : 0; r < rows; r++) {
        for (size_t c = 0; c < t->columns; c++) {
            const hfd_slice cell = cell_of(t, r, c);

            hfd_buf_add(&line, cell);
            if (c + 1 < t->columns)
                hfd_buf_addf(&line, "%*s", (int)(widths[c] + GAP - width_of(cell)), "");
        }
        add_cut(out, hfd_buf_slice(&line), width);
        out->rc = out->rc == HFD_OK ? line.rc : out->rc;
        hfd_buf_reset(&line);
    }
    hfd_buf_fini(&line);
}
