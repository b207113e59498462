/* See view.h. */
#include "handlers/cli/view.h"

#include "driver/base/check.h"
#include "driver/base/clock.h"

#include <curl/curl.h>

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define WATCH_US HFD_US_PER_S
#define COLUMNS_MIN 40
#define SHARED_FLAGS (HFD_CLI_TARGET_FLAG_COUNT + 4)
#define FLAGS_MAX 20
#define GAP 2
#define IDS_COLUMNS_MIN 120 /* of a terminal that shows GUResIDs beside names */

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

enum hfd_exit hfd_view_wrong_use(const struct hfd_view *v, const char *msg)
{
    return hfd_cli_wrong_use(v->name, v->usage, msg);
}

static bool read_arguments(struct hfd_view *v, int argc, const char **argv, enum hfd_exit *status)
{
    struct hfd_flag table[FLAGS_MAX] = {
        HFD_CLI_TARGET_FLAGS(&v->target, "a bearer token with the scope view"),
        {"-o", NULL, HFD_FLAG_TEXT, &v->form_name, "FORM",
         v->has_wide ? "json, yaml, name or wide" : "json, yaml or name"},
        {"--watch", NULL, HFD_FLAG_SWITCH, &v->watch, NULL, "show it again until Ctrl-C"},
        {"-w", NULL, HFD_FLAG_SWITCH, &v->watch, NULL, "the same"},
        {"--help", NULL, HFD_FLAG_SWITCH, NULL, NULL, "print this text"},
    };
    struct hfd_flags flags = {.command = v->name,
                              .usage = v->usage,
                              .tail = v->examples,
                              .table = table,
                              .count = SHARED_FLAGS + v->own_count,
                              .place_max = HFD_FLAG_PLACES_MAX};
    struct hfd_err err = {0};
    hfd_rc rc;

    HFD_ASSERT(flags.count <= FLAGS_MAX);
    for (size_t i = 0; i < v->own_count; i++)
        table[SHARED_FLAGS + i] = v->own[i];
    if (!hfd_cli_read(&flags, argc, argv, status))
        return false;
    rc = read_form(v, &err);
    if (rc == HFD_OK && flags.place_count > (v->takes_place ? 1U : 0U))
        rc = hfd_fail(&err, HFD_INVALID, "unexpected argument %.60s",
                      flags.places[v->takes_place ? 1 : 0]);
    v->place = flags.places[0];
    if (rc != HFD_OK)
        *status = hfd_view_wrong_use(v, err.msg);
    return rc == HFD_OK;
}

bool hfd_view_open(struct hfd_view *v, int argc, const char **argv, enum hfd_exit *status)
{
    const struct sigaction action = {.sa_handler = on_signal};

    if (!read_arguments(v, argc, argv, status) ||
        !hfd_cli_target_open(&v->target, v->name, &v->http, status))
        return false;
    if (v->watch) {
        (void)sigaction(SIGINT, &action, NULL);
        (void)sigaction(SIGTERM, &action, NULL);
    }
    return true;
}

void hfd_view_close(struct hfd_view *v)
{
    hfd_client_close(&v->http);
    hfd_cli_target_close(&v->target);
}

/* ---- one document ---- */

static enum hfd_exit refuse(const struct hfd_view *v, const struct hfd_client_answer *a,
                            const json_t *doc)
{
    const char *why = hfd_view_text(doc, "detail");

    why = why[0] != '\0' ? why : hfd_view_text(doc, "message");
    if (a->status == 401 && v->target.server.config.token_file == NULL)
        why = HFD_CLI_LOGIN_TEXT("view");
    if (a->status == 404 && hfd_view_text(doc, "code")[0] == '\0')
        return hfd_cli_fail(HFD_EXIT_CUT_SHORT, v->name,
                            "%s is no hyperfleet-driver: expected the URL of the server, without "
                            "the path of a driver",
                            v->target.url);
    return hfd_cli_fail(a->status == 404   ? HFD_EXIT_ABSENT
                        : a->status == 400 ? HFD_EXIT_USAGE
                                           : HFD_EXIT_CUT_SHORT,
                        v->name, "%s answers %d%s%s", v->target.url, a->status,
                        why[0] != '\0' ? ": " : "", why);
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
    v->answer_bytes = a.body.len;
    date = hfd_client_header(&a, "Date");
    (void)snprintf(text, sizeof(text), "%.*s", HFD_SLICE_FMT(date));
    v->now_us = (int64_t)curl_getdate(text, NULL) * HFD_US_PER_S;
    if (v->now_us <= 0)
        v->now_us = hfd_clock_wall_us(&hfd_clock_system);
    if (a.status != 0 && a.body.len > 0)
        *out = json_loadb(a.body.p, a.body.len, JSON_REJECT_DUPLICATES, NULL);
    if (a.status == 0)
        status = hfd_cli_fail(HFD_EXIT_ADDRESS, v->name, "%s cannot be reached: %s", v->target.url,
                              a.why);
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
    if (v->watch && hfd_view_columns() > 0)
        (void)fputs("\033[H\033[2J", stdout);
    else if (v->watch && again)
        (void)fputc('\n', stdout);
    return hfd_cli_print(v->name, picture);
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

void hfd_view_add(struct hfd_buf *b, const json_t *doc, const char *key)
{
    hfd_buf_show(b, hfd_slice_of(hfd_view_text(doc, key)));
}

bool hfd_view_write(const struct hfd_view *v, const json_t *doc, struct hfd_buf *out)
{
    if (v->form != HFD_VIEW_JSON && v->form != HFD_VIEW_YAML)
        return false;
    hfd_form_write(out, v->form == HFD_VIEW_JSON ? HFD_FORM_JSON : HFD_FORM_YAML, doc, "");
    return true;
}

void hfd_view_add_age(const struct hfd_view *v, struct hfd_buf *b, int64_t at_us)
{
    if (at_us == 0)
        hfd_buf_addc(b, '-');
    else
        hfd_buf_about(b, v->now_us > at_us ? v->now_us - at_us : 0);
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

void hfd_view_table_add_text(struct hfd_view_table *t, struct hfd_buf *cell, const char *text)
{
    hfd_buf_show(cell, hfd_slice_of(text));
    hfd_view_table_add(t, cell);
}

/* ---- resources ---- */

static const char *const item_heads[] = {"STATE", "NAME", "FOR", "CAUSE", "MESSAGE"};
static const char *const item_heads_with_id[] = {"STATE", "NAME",  "GURESID",
                                                 "FOR",   "CAUSE", "MESSAGE"};
#define ITEM_COLUMNS (sizeof(item_heads_with_id) / sizeof(item_heads_with_id[0]))

const char *hfd_view_word(const json_t *item)
{
    const char *state = hfd_view_text(item, "state");

    if (strcmp(state, "failed") == 0)
        return "FAILED";
    if (json_is_true(json_object_get(item, "stuck")))
        return "STUCK";
    return strcmp(hfd_view_text(item, "health"), "Degraded") == 0 ? "DEGRADED" : state;
}

void hfd_view_add_cause(struct hfd_buf *b, const json_t *item)
{
    hfd_view_add(b, item, "who");
    if (hfd_view_text(item, "who")[0] != '\0')
        hfd_buf_addc(b, ' ');
    hfd_view_add(b, item, "reason");
}

struct hfd_view_table hfd_view_items(struct hfd_arena *mem)
{
    const size_t width = hfd_view_columns();
    const bool ids = width == 0 || width >= IDS_COLUMNS_MIN;

    return (struct hfd_view_table){.heads = ids ? item_heads_with_id : item_heads,
                                   .columns = ids ? ITEM_COLUMNS : ITEM_COLUMNS - 1,
                                   .mem = mem};
}

/* Adds a name; a long one leaves room for the cause on a terminal. */
static void add_name(struct hfd_view_table *t, struct hfd_buf *cell, const char *name)
{
    const size_t width = hfd_view_columns(), max = width / 3;
    size_t len = strlen(name);

    if (width == 0 || len <= max) {
        hfd_view_table_add_text(t, cell, name);
        return;
    }
    for (len = max - 3; len > 0 && !begins_character(name[len]); len--)
        ;
    hfd_buf_show(cell, (hfd_slice){name, len});
    hfd_buf_lit(cell, "...");
    hfd_view_table_add(t, cell);
}

void hfd_view_add_item(const struct hfd_view *v, struct hfd_view_table *t, const json_t *item,
                       struct hfd_buf *cell)
{
    const char *name = hfd_view_text(item, "name"), *words = hfd_view_text(item, "words");

    hfd_view_table_add_text(t, cell, hfd_view_word(item));
    add_name(t, cell, name[0] != '\0' ? name : hfd_view_text(item, "id"));
    if (t->columns == ITEM_COLUMNS)
        hfd_view_table_add_text(t, cell, hfd_view_text(item, "id"));
    hfd_view_add_age(v, cell, hfd_view_time(item, "since"));
    hfd_view_table_add(t, cell);
    hfd_view_add_cause(cell, item);
    hfd_view_table_add(t, cell);
    /* Without a cause the whole sentence says what there is. */
    hfd_view_table_add_text(
        t, cell, hfd_view_text(item, "reason")[0] != '\0' ? words : hfd_view_text(item, "message"));
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
