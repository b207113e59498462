/*
 * hyperfleet-driver list: the resources of a server, by trouble. hyperfleet-driver status: what
 * needs attention, or one resource in full. Thread: main.
 */
#include "handlers/cli/ask.h"

#include "driver/base/clock.h"
#include "driver/base/url.h"
#include "driver/core/outcome.h"

#include <sys/ioctl.h>
#include <unistd.h>

#define PATH "api/driver/v1/resources"
#define PATH_MAX_BYTES ((size_t)4096)

/* ---- watching ---- */

/*
 * Makes one picture.
 * @param doc  gives what it shows, to see if there is news; NULL on failure
 */
typedef enum hfd_exit draw_fn(struct hfd_view *v, void *ctx, struct hfd_buf *out, json_t **doc);

#define WATCH_US HFD_US_PER_S
#define COLUMNS_MIN 40

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
    (void)number;
    stopped = 1;
}

/* The columns of the terminal that stdout is; 0 = it is none. */
static size_t columns_of_terminal(void)
{
    struct winsize size;

    if (isatty(STDOUT_FILENO) != 1 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 ||
        size.ws_col == 0)
        return 0;
    return size.ws_col > COLUMNS_MIN ? size.ws_col : COLUMNS_MIN;
}

static enum hfd_exit print_picture(struct hfd_view *v, struct hfd_buf *picture, bool again)
{
    if (v->watch && columns_of_terminal() > 0)
        (void)fputs("\033[H\033[2J", stdout);
    else if (v->watch && again)
        (void)fputc('\n', stdout);
    return hfd_cli_print(v->name, picture);
}

/*
 * Waits for the next picture. The driver holds its answer about a resource with an operation under
 * way. Otherwise, or if the token lacks the scope for that, a second must do.
 */
static void rest(struct hfd_view *v, const json_t *doc, bool *asks)
{
    const struct hfd_http_header prefer = {"Prefer", HFD_SLICE("wait=5")};
    struct hfd_client_request r = {.method = "GET", .headers = {prefer}, .stop = &stopped};
    struct hfd_http_answer a = {.status = 0};
    struct hfd_buf path;
    bool held = false;

    if (*asks && strstr(hfd_json_cstr(doc, "state"), "ing") != NULL) {
        hfd_buf_init(&path, PATH_MAX_BYTES);
        hfd_url_escape(&path, hfd_slice_of(v->place), HFD_URL_PLAIN);
        hfd_buf_addc(&path, '\0');
        r.path = path.p;
        if (path.rc == HFD_OK)
            hfd_client_send(v->http, &r, &a, 1);
        held = hfd_http_header(&a, "Preference-Applied").len > 0;
        *asks = a.status != 401 && a.status != 403;
        hfd_http_answer_fini(&a);
        hfd_buf_fini(&path);
    }
    if (!held)
        hfd_client_wait(v->http, WATCH_US, &stopped);
}

/*
 * Prints one picture. With --watch it looks again each second until Ctrl-C. A terminal is drawn
 * anew each time; elsewhere a picture is printed when there is news.
 */
static enum hfd_exit run(struct hfd_view *v, draw_fn *draw, void *ctx)
{
    json_t *last = NULL, *doc;
    bool asks = v->place != NULL;
    enum hfd_exit status;
    const struct sigaction action = {.sa_handler = on_signal};
    struct hfd_buf b;

    if (v->watch) {
        (void)sigaction(SIGINT, &action, NULL);
        (void)sigaction(SIGTERM, &action, NULL);
    }
    do {
        doc = NULL;
        hfd_buf_init(&b, HFD_VIEW_OUTPUT_MAX_BYTES);
        status = draw(v, ctx, &b, &doc);
        if (doc != NULL && (columns_of_terminal() > 0 || last == NULL || !json_equal(doc, last))) {
            const enum hfd_exit printed = print_picture(v, &b, last != NULL);

            status = printed != HFD_EXIT_OK ? printed : status;
        }
        hfd_buf_fini(&b);
        json_decref(last);
        last = doc;
        if (status == HFD_EXIT_OK && v->watch)
            rest(v, last, &asks);
    } while (status == HFD_EXIT_OK && v->watch && stopped == 0);
    json_decref(last);
    return status;
}

/* ---- texts and tables ---- */

#define GAP 2
#define IDS_COLUMNS_MIN 120 /* of a terminal that shows GUResIDs beside names */

/* Returns a member that is a time, in microseconds; 0 if it is none. */
static int64_t time_of(const json_t *doc, const char *key)
{
    int64_t at_us;

    return hfd_time_parse(hfd_slice_of(hfd_json_cstr(doc, key)), &at_us, NULL) == HFD_OK ? at_us
                                                                                         : 0;
}

/* Adds "4 min" for the time since at_us; "-" for 0. */
static void add_age(const struct hfd_view *v, struct hfd_buf *b, int64_t at_us)
{
    if (at_us == 0)
        hfd_buf_addc(b, '-');
    else
        hfd_buf_about(b, v->now_us > at_us ? v->now_us - at_us : 0);
}

/* A table of texts, whose columns are as wide as their widest text. */
struct table {
    const char *const *heads;
    size_t columns;
    struct hfd_arena *mem;
    hfd_slice *cells; /* the rows, one after the other */
    size_t count, room;
    bool no_head; /* then an empty cell is empty; otherwise it is "-" */
    bool failed;  /* result: memory is short */
};

static bool begins_character(char c)
{
    return ((unsigned char)c & 0xc0) != 0x80;
}

/* Adds a cell: the text of b, which is emptied. */
static void table_add(struct table *t, struct hfd_buf *b)
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

/* Adds a cell with a text of outside. */
static void table_add_text(struct table *t, struct hfd_buf *cell, const char *text)
{
    hfd_buf_show(cell, hfd_slice_of(text));
    table_add(t, cell);
}

/* ---- resources ---- */

static const char *const item_heads[] = {"STATE", "NAME", "FOR", "CAUSE", "MESSAGE"};
static const char *const item_heads_with_id[] = {"STATE", "NAME",  "GURESID",
                                                 "FOR",   "CAUSE", "MESSAGE"};
#define ITEM_COLUMNS (sizeof(item_heads_with_id) / sizeof(item_heads_with_id[0]))

/* Returns the word for a resource: FAILED, STUCK, DEGRADED, or its state. */
static const char *word_of(const json_t *item)
{
    const char *state = hfd_json_cstr(item, "state");

    if (strcmp(state, "failed") == 0)
        return "FAILED";
    if (json_is_true(json_object_get(item, "stuck")))
        return "STUCK";
    return strcmp(hfd_json_cstr(item, "health"), "Degraded") == 0 ? "DEGRADED" : state;
}

/* Adds "hypershift QuotaExceeded": the cause of an item, or of several; nothing without one. */
static void add_cause(struct hfd_buf *b, const json_t *item)
{
    hfd_view_add(b, item, "who");
    if (hfd_json_cstr(item, "who")[0] != '\0')
        hfd_buf_addc(b, ' ');
    hfd_view_add(b, item, "reason");
}

/* Begins a table of resources in mem. A narrow terminal has no room for GUResIDs. */
static struct table items_table(struct hfd_arena *mem)
{
    const size_t width = columns_of_terminal();
    const bool ids = width == 0 || width >= IDS_COLUMNS_MIN;

    return (struct table){.heads = ids ? item_heads_with_id : item_heads,
                          .columns = ids ? ITEM_COLUMNS : ITEM_COLUMNS - 1,
                          .mem = mem};
}

/* Adds a name; a long one leaves room for the cause on a terminal. */
static void add_name(struct table *t, struct hfd_buf *cell, const char *name)
{
    const size_t width = columns_of_terminal(), max = width / 3;
    size_t len = strlen(name);

    if (width == 0 || len <= max) {
        table_add_text(t, cell, name);
        return;
    }
    for (len = max - 3; len > 0 && !begins_character(name[len]); len--)
        ;
    hfd_buf_show(cell, (hfd_slice){name, len});
    hfd_buf_lit(cell, "...");
    table_add(t, cell);
}

/* Adds the row of a resource. @param cell  empty; for the text of one */
static void add_item(const struct hfd_view *v, struct table *t, const json_t *item,
                     struct hfd_buf *cell)
{
    const char *name = hfd_json_cstr(item, "name"), *words = hfd_json_cstr(item, "words");

    table_add_text(t, cell, word_of(item));
    add_name(t, cell, name[0] != '\0' ? name : hfd_json_cstr(item, "id"));
    if (t->columns == ITEM_COLUMNS)
        table_add_text(t, cell, hfd_json_cstr(item, "id"));
    add_age(v, cell, time_of(item, "since"));
    table_add(t, cell);
    add_cause(cell, item);
    table_add(t, cell);
    /* Without a cause the whole sentence says what there is. */
    table_add_text(
        t, cell, hfd_json_cstr(item, "reason")[0] != '\0' ? words : hfd_json_cstr(item, "message"));
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

static hfd_slice cell_of(const struct table *t, size_t row, size_t column)
{
    return row == 0 ? hfd_slice_of(t->heads[column]) : t->cells[(row - 1) * t->columns + column];
}

/* Adds the table to out. Lines are cut at `width` columns; 0 = never. */
static void table_write(struct table *t, size_t width, struct hfd_buf *out)
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
            const size_t w = hfd_slice_characters(cell_of(t, r, c));

            widths[c] = w > widths[c] ? w : widths[c];
        }
    }
    hfd_buf_init(&line, HFD_CLIENT_ANSWER_MAX_BYTES);
    for (size_t r = t->no_head ? 1 : 0; r < rows; r++) {
        for (size_t c = 0; c < t->columns; c++) {
            const hfd_slice cell = cell_of(t, r, c);

            hfd_buf_add(&line, cell);
            if (c + 1 < t->columns)
                hfd_buf_addf(&line, "%*s", (int)(widths[c] + GAP - hfd_slice_characters(cell)), "");
        }
        add_cut(out, hfd_buf_slice(&line), width);
        out->rc = out->rc == HFD_OK ? line.rc : out->rc;
        hfd_buf_reset(&line);
    }
    hfd_buf_fini(&line);
}

/* ---- names and labels ---- */

/* Adds the line of a resource with -o name. */
static void add_id(struct hfd_buf *b, const json_t *item)
{
    hfd_view_add(b, item, "id");
    hfd_buf_addc(b, '\n');
}

/* Adds "app=shop" for each label, behind `between`; `first` is in front of the first one. */
static void add_labels(struct hfd_buf *b, const json_t *labels, const char *first,
                       const char *between)
{
    const char *key, *lead = first;
    json_t *value;

    json_object_foreach ((json_t *)(uintptr_t)labels, key, value) {
        hfd_buf_add(b, hfd_slice_of(lead));
        hfd_buf_show(b, hfd_slice_of(key));
        hfd_buf_addc(b, '=');
        hfd_buf_show(
            b, hfd_slice_of(json_string_value(value) != NULL ? json_string_value(value) : ""));
        lead = between;
    }
}

/* ---- list: the pages ---- */

#define PAGE_SIZE 500
#define LIST_PATH_MAX_BYTES ((size_t)64 * 1024)
/* A server that names page after page is not followed without end. */
#define PAGES_MAX 2000
#define BYTES_MAX ((size_t)128 * 1024 * 1024)
#define TOKEN_MAX_BYTES 4096 /* of the name of a page */

/* The filters of the list. */
struct list {
    bool failed, stuck, degraded, drift;
    const char *type, *search, *order, *who, *reason;
    struct hfd_flag_list labels, states;
};

static void add_parameter(struct hfd_buf *b, const char *name, const char *value)
{
    if (value == NULL)
        return;
    hfd_buf_addf(b, "&%s=", name);
    hfd_url_escape(b, hfd_slice_of(value), HFD_URL_PLAIN);
}

/* @param trouble  a parameter and its value, of one kind of trouble; "" = all resources */
static void write_path(const struct list *l, const char *trouble, const char *after,
                       struct hfd_buf *b)
{
    hfd_buf_addf(b, PATH "?size=%d%s", PAGE_SIZE, trouble);
    for (size_t i = 0; i < l->states.count; i++)
        add_parameter(b, "state", l->states.values[i]);
    for (size_t i = 0; i < l->labels.count; i++)
        add_parameter(b, "label", l->labels.values[i]);
    add_parameter(b, "type", l->type);
    add_parameter(b, "search", l->search);
    add_parameter(b, "who", l->who);
    add_parameter(b, "reason", l->reason);
    add_parameter(b, "order", l->order);
    add_parameter(b, "drift", l->drift ? "true" : NULL);
    add_parameter(b, "after", after);
    hfd_buf_addc(b, '\0');
}

static void add_counts(json_t *sum, const json_t *counts)
{
    const char *state;
    json_t *n;

    json_object_foreach ((json_t *)(uintptr_t)counts, state, n) {
        const json_int_t before = json_integer_value(json_object_get(sum, state));

        (void)json_object_set_new(sum, state, json_integer(before + json_integer_value(n)));
    }
}

/* How far the pages of one question are. */
struct pages {
    json_t *all;
    json_t *tokens; /* the members are those that were followed */
    size_t count, bytes;
};

/* Adds a page to all. @return why no further page is read; NULL when there may be one */
static const char *add_page(struct pages *p, const json_t *page, size_t bytes)
{
    const json_t *next = json_object_get(page, "next");

    if (p->count++ == 0) {
        add_counts(json_object_get(p->all, "counts"), json_object_get(page, "counts"));
        /* An older server has none. */
        (void)json_array_extend(json_object_get(p->all, "causes"), json_object_get(page, "causes"));
    }
    p->bytes += bytes;
    if (json_array_extend(json_object_get(p->all, "items"), json_object_get(page, "items")) != 0)
        return "the answer has no list of items";
    if (!json_is_string(next))
        return NULL;
    if (json_string_length(next) > TOKEN_MAX_BYTES)
        return "the answer names a next page with a name that is too long";
    if (json_object_get(p->tokens, json_string_value(next)) != NULL)
        return "the answer names a page again that was read: the list has no end";
    if (p->count == PAGES_MAX || p->bytes > BYTES_MAX)
        return "the list is too long: expected filters";
    return json_object_set_new(p->tokens, json_string_value(next), json_true()) == 0
               ? NULL
               : "out of memory";
}

/* Adds the pages of one question to all. Watching shows the first page. */
static enum hfd_exit add_pages(struct hfd_view *v, const struct list *l, const char *trouble,
                               json_t *all)
{
    struct pages pages = {.all = all, .tokens = json_object()};
    enum hfd_exit status = HFD_EXIT_OK;
    json_t *page = NULL;
    struct hfd_buf path;
    const char *after;

    hfd_buf_init(&path, LIST_PATH_MAX_BYTES);
    do {
        const char *flaw;

        hfd_buf_reset(&path);
        write_path(l, trouble, json_string_value(json_object_get(page, "next")), &path);
        json_decref(page);
        page = NULL;
        if (path.rc != HFD_OK)
            status = hfd_view_wrong_use(v, "the filters are too long");
        else
            status = hfd_view_get(v, path.p, &page);
        flaw = page != NULL ? add_page(&pages, page, v->answer_bytes) : NULL;
        if (flaw != NULL)
            status = hfd_cli_fail(HFD_EXIT_CUT_SHORT, v->name, "%s: %s", v->target.url, flaw);
        after = json_string_value(json_object_get(page, "next"));
    } while (status == HFD_EXIT_OK && after != NULL && !v->watch);
    json_decref(page);
    json_decref(pages.tokens);
    hfd_buf_fini(&path);
    return status;
}

/* ---- list: the table ---- */

static const char *const wide_heads[] = {"GURESID",    "NAME",   "TYPE",   "STATE",
                                         "HEALTH",     "FOR",    "CAUSE",  "DEADLINE",
                                         "CLUSTER-ID", "LABELS", "MESSAGE"};

static void add_wide_row(const struct hfd_view *v, struct table *t, const json_t *item,
                         struct hfd_buf *cell)
{
    table_add_text(t, cell, hfd_json_cstr(item, "id"));
    table_add_text(t, cell, hfd_json_cstr(item, "name"));
    table_add_text(t, cell, hfd_json_cstr(item, "type"));
    table_add_text(t, cell, word_of(item));
    table_add_text(t, cell, hfd_json_cstr(item, "health"));
    add_age(v, cell, time_of(item, "since"));
    table_add(t, cell);
    add_cause(cell, item);
    table_add(t, cell);
    table_add_text(t, cell, hfd_json_cstr(item, "deadline"));
    table_add_text(t, cell, hfd_json_cstr(item, "cluster_id"));
    add_labels(cell, json_object_get(item, "labels"), "", ",");
    table_add(t, cell);
    table_add_text(t, cell, hfd_json_cstr(item, "message"));
}

static void write_table(const struct hfd_view *v, const json_t *items, struct hfd_buf *out)
{
    const bool wide = v->form == HFD_VIEW_WIDE;
    struct hfd_arena mem;
    struct table t = wide ? (struct table){.heads = wide_heads,
                                           .columns = sizeof(wide_heads) / sizeof(wide_heads[0]),
                                           .mem = &mem}
                          : items_table(&mem);
    struct hfd_buf cell;

    if (json_array_size(items) == 0) {
        (void)fprintf(stderr, "there are no such resources\n");
        return;
    }
    hfd_arena_init(&mem, HFD_VIEW_OUTPUT_MAX_BYTES);
    hfd_buf_init(&cell, HFD_CLIENT_ANSWER_MAX_BYTES);
    for (size_t i = 0; i < json_array_size(items); i++)
        (wide ? add_wide_row : add_item)(v, &t, json_array_get(items, i), &cell);
    table_write(&t, wide ? 0 : columns_of_terminal(), out);
    hfd_buf_fini(&cell);
    hfd_arena_fini(&mem);
}

static void write_all(const struct hfd_view *v, const json_t *all, struct hfd_buf *out)
{
    const json_t *items = json_object_get(all, "items");

    if (hfd_view_write(v, all, out))
        return;
    if (v->form != HFD_VIEW_NAME)
        write_table(v, items, out);
    for (size_t i = 0; v->form == HFD_VIEW_NAME && i < json_array_size(items); i++)
        add_id(out, json_array_get(items, i));
}

static enum hfd_exit draw_list(struct hfd_view *v, void *ctx, struct hfd_buf *out, json_t **doc)
{
    const struct list *l = ctx;
    /* No resource has two kinds of trouble, so that none is listed twice. */
    const struct {
        bool asked;
        const char *trouble;
    } questions[] = {{l->failed, "&state=failed"},
                     {l->stuck, "&stuck=true"},
                     {l->degraded, "&degraded=true"},
                     {!l->failed && !l->stuck && !l->degraded, ""}};
    enum hfd_exit status = HFD_EXIT_OK;

    *doc = json_pack("{s:[], s:{}, s:[]}", "items", "counts", "causes");
    for (size_t i = 0; status == HFD_EXIT_OK && i < sizeof(questions) / sizeof(questions[0]); i++)
        if (questions[i].asked)
            status = add_pages(v, l, questions[i].trouble, *doc);
    if (status == HFD_EXIT_OK) {
        write_all(v, *doc, out);
    } else {
        json_decref(*doc);
        *doc = NULL;
    }
    return status;
}

enum hfd_exit hfd_cmd_list(int argc, const char **argv)
{
    struct list l = {.failed = false};
    const struct hfd_flag own[] = {
        {"--failed", NULL, HFD_FLAG_SWITCH, &l.failed, NULL, "only failed resources"},
        {"--stuck", NULL, HFD_FLAG_SWITCH, &l.stuck, NULL, "only those under way for far too long"},
        {"--degraded", NULL, HFD_FLAG_SWITCH, &l.degraded, NULL,
         "only those that are ready and do not work as wanted; two of these three: both"},
        {"--drift", NULL, HFD_FLAG_SWITCH, &l.drift, NULL,
         "only those that are ready and not as they were ordered"},
        {"--who", NULL, HFD_FLAG_TEXT, &l.who, "ADAPTER", "only those that this adapter holds up"},
        {"--reason", NULL, HFD_FLAG_TEXT, &l.reason, "REASON",
         "only those with this reason, as QuotaExceeded"},
        {"--state", NULL, HFD_FLAG_LIST, &l.states, "STATE",
         "only in this state: creating, updating, ready, failed or deleting; repeat it for more"},
        {"--label", NULL, HFD_FLAG_LIST, &l.labels, "KEY=VALUE",
         "only with this label; repeat it for more"},
        {"--type", NULL, HFD_FLAG_TEXT, &l.type, "TYPE", "only of this resource type"},
        {"--search", NULL, HFD_FLAG_TEXT, &l.search, "TEXT", "text in GUResID, name or labels"},
        {"--order", NULL, HFD_FLAG_TEXT, &l.order, "ORDER",
         "trouble (if none is given), created or name"},
    };
    struct hfd_view v = {
        .name = "list",
        .usage = "list [FLAGS]",
        .examples = "Examples:\n  hyperfleet-driver list --failed --stuck --label app=shop\n"
                    "  hyperfleet-driver list --who hypershift --reason QuotaExceeded\n",
        .own = own,
        .own_count = sizeof(own) / sizeof(own[0]),
        .has_wide = true};
    enum hfd_exit status = HFD_EXIT_OK;

    if (hfd_view_open(&v, argc, argv, &status)) {
        if ((l.failed || l.stuck || l.degraded) && l.states.count > 0)
            status = hfd_view_wrong_use(
                &v, "--state: expected without --failed, --stuck and --degraded");
        else
            status = run(&v, draw_list, &l);
    }
    hfd_view_close(&v);
    return status;
}

/* ---- status: all resources ---- */

#define ROWS_OF_CAUSE_MAX 10 /* of one state and cause */

static void write_counts(const json_t *counts, struct hfd_buf *out)
{
    static const char *const states[] = {"ready", "creating", "updating", "deleting", "failed"};

    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
        hfd_buf_addf(out, "%s%s %lld", i > 0 ? "  " : "", states[i],
                     (long long)json_integer_value(json_object_get(counts, states[i])));
    hfd_buf_addc(out, '\n');
}

/* Adds a name in upper case. @param other  in place of what is no letter */
static void add_upper(struct hfd_buf *out, const char *name, char other)
{
    for (const char *s = name; *s != '\0'; s++)
        hfd_buf_addc(out, *s >= 'a' && *s <= 'z' ? (char)(*s - 'a' + 'A') : other);
}

/* "ADAPTER_SILENT dns for 4 min: is required, and has never reported; 3 wait" */
static void write_problems(const struct hfd_view *v, const json_t *problems, struct hfd_buf *out)
{
    for (size_t i = 0; i < json_array_size(problems); i++) {
        const json_t *p = json_array_get(problems, i);
        const long long waiting = json_integer_value(json_object_get(p, "waiting"));

        add_upper(out, hfd_json_cstr(p, "kind"), ' ');
        hfd_buf_add(out, hfd_slice_of(hfd_json_cstr(p, "name")[0] != '\0' ? " " : ""));
        hfd_view_add(out, p, "name");
        hfd_buf_lit(out, " for ");
        add_age(v, out, time_of(p, "since"));
        hfd_buf_lit(out, ": ");
        hfd_view_add(out, p, "message");
        if (waiting > 0)
            hfd_buf_addf(out, "; %lld wait%s", waiting, waiting == 1 ? "s" : "");
        hfd_buf_addc(out, '\n');
    }
    if (json_array_size(problems) > 0)
        hfd_buf_addc(out, '\n');
}

/* "16 FAILED hypershift QuotaExceeded 6 min": equal troubles are one line. */
static void write_causes(const struct hfd_view *v, const json_t *causes, struct hfd_arena *mem,
                         struct hfd_buf *out)
{
    static const char *const heads[] = {"COUNT", "STATE", "CAUSE", "OLDEST"};
    struct table t = {.heads = heads, .columns = sizeof(heads) / sizeof(heads[0]), .mem = mem};
    struct hfd_buf cell;

    if (json_array_size(causes) == 0)
        return;
    hfd_buf_init(&cell, HFD_CLIENT_ANSWER_MAX_BYTES);
    for (size_t i = 0; i < json_array_size(causes); i++) {
        const json_t *cause = json_array_get(causes, i);

        hfd_buf_addf(&cell, "%lld", (long long)json_integer_value(json_object_get(cause, "count")));
        table_add(&t, &cell);
        add_upper(&cell, hfd_json_cstr(cause, "trouble"), '?');
        table_add(&t, &cell);
        add_cause(&cell, cause);
        table_add(&t, &cell);
        add_age(v, &cell, time_of(cause, "since"));
        table_add(&t, &cell);
    }
    hfd_buf_addc(out, '\n');
    table_write(&t, columns_of_terminal(), out);
    hfd_buf_fini(&cell);
}

/* Returns whether an item is the first, or one of the next few, of its state and cause. */
static bool is_among_first(const json_t *items, size_t at)
{
    const json_t *item = json_array_get(items, at);
    size_t before = 0;

    for (size_t i = 0; i < at; i++) {
        const json_t *other = json_array_get(items, i);

        before += strcmp(word_of(other), word_of(item)) == 0 &&
                  strcmp(hfd_json_cstr(other, "who"), hfd_json_cstr(item, "who")) == 0 &&
                  strcmp(hfd_json_cstr(other, "reason"), hfd_json_cstr(item, "reason")) == 0;
    }
    return before < ROWS_OF_CAUSE_MAX;
}

/* Returns whether a resource is neither ready nor absent, or is degraded. */
static bool is_shown(const json_t *item)
{
    return strcmp(word_of(item), "ready") != 0;
}

static void write_overview(const struct hfd_view *v, const json_t *all, struct hfd_buf *out)
{
    const json_t *items = json_object_get(all, "items");
    bool more = json_is_string(json_object_get(all, "next")), cut = false;
    struct table t;
    struct hfd_arena mem;
    struct hfd_buf cell;

    hfd_arena_init(&mem, HFD_VIEW_OUTPUT_MAX_BYTES);
    hfd_buf_init(&cell, HFD_CLIENT_ANSWER_MAX_BYTES);
    t = items_table(&mem);
    for (size_t i = 0; i < json_array_size(items); i++) {
        const json_t *item = json_array_get(items, i);

        if (!is_shown(item))
            more = false; /* those behind it are ready, too */
        else if (is_among_first(items, i))
            add_item(v, &t, item, &cell);
        else
            cut = true;
    }
    write_problems(v, json_object_get(all, "problems"), out);
    write_counts(json_object_get(all, "counts"), out);
    write_causes(v, json_object_get(all, "causes"), &mem, out);
    if (t.count > 0) {
        hfd_buf_addc(out, '\n');
        table_write(&t, columns_of_terminal(), out);
    }
    if (more || cut)
        hfd_buf_lit(out, "There are more: hyperfleet-driver list --who ADAPTER --reason REASON\n");
    hfd_buf_fini(&cell);
    hfd_arena_fini(&mem);
}

static enum hfd_exit draw_all(struct hfd_view *v, void *ctx, struct hfd_buf *out, json_t **doc)
{
    const json_t *items;
    json_t *problems = NULL;
    enum hfd_exit status = hfd_view_get(v, PATH "?size=500", doc);

    (void)ctx;
    if (status == HFD_EXIT_OK)
        status = hfd_view_get(v, "api/driver/v1/problems", &problems);
    (void)json_object_set(*doc, "problems", json_object_get(problems, "items"));
    json_decref(problems);
    if (status != HFD_EXIT_OK)
        return status;
    items = json_object_get(*doc, "items");
    if (v->form == HFD_VIEW_TEXT)
        write_overview(v, *doc, out);
    else if (!hfd_view_write(v, *doc, out))
        for (size_t i = 0; i < json_array_size(items); i++)
            if (is_shown(json_array_get(items, i)))
                add_id(out, json_array_get(items, i));
    return HFD_EXIT_OK;
}

/* ---- status: one resource ---- */

static bool is_under_way(const char *state)
{
    return strcmp(state, "creating") == 0 || strcmp(state, "updating") == 0 ||
           strcmp(state, "deleting") == 0;
}

/* Adds a lead and a member; nothing without one. */
static void add_member(struct hfd_buf *out, const char *lead, const json_t *d, const char *key)
{
    if (hfd_json_cstr(d, key)[0] == '\0')
        return;
    hfd_buf_add(out, hfd_slice_of(lead));
    hfd_view_add(out, d, key);
}

/* Adds a time without fractions of a second. */
static void add_time(struct hfd_buf *out, const json_t *d, const char *key)
{
    char text[HFD_TIME_TEXT_MAX] = "?";

    if (time_of(d, key) > 0)
        (void)hfd_time_format_s(time_of(d, key), text);
    hfd_buf_add(out, hfd_slice_of(text));
}

/* "my-cluster  creating for 4 min of about 15 min, deadline 2026-11-22T10:02:00Z" */
static void write_head(const struct hfd_view *v, const json_t *d, struct hfd_buf *out)
{
    const char *state = hfd_json_cstr(d, "state");
    const int64_t began_us = time_of(d, "started_time");
    const int64_t guess_us = time_of(d, "first_estimate");

    hfd_view_add(out, d, hfd_json_cstr(d, "name")[0] != '\0' ? "name" : "id");
    hfd_buf_lit(out, "  ");
    hfd_view_add(out, d, "state");
    hfd_buf_lit(out, " for ");
    add_age(v, out, time_of(d, "since"));
    if (is_under_way(state)) {
        if (began_us > 0 && guess_us > began_us) {
            hfd_buf_lit(out, " of about ");
            hfd_buf_about(out, guess_us - began_us);
        }
        hfd_buf_lit(out, ", deadline ");
        add_time(out, d, "deadline");
        if (json_is_true(json_object_get(d, "stuck")))
            hfd_buf_lit(out, ", STUCK");
    } else {
        add_member(out, ", ", d, "health");
    }
    hfd_buf_lit(out, "\nGUResID ");
    hfd_view_add(out, d, "id");
    hfd_buf_lit(out, ", type ");
    hfd_view_add(out, d, "type");
    add_member(out, ", cluster ", d, "cluster_id");
    hfd_buf_addc(out, '\n');
    if (!is_under_way(state) && hfd_json_cstr(d, "message")[0] != '\0') {
        hfd_view_add(out, d, "code");
        if (hfd_json_cstr(d, "code")[0] != '\0')
            hfd_buf_lit(out, ": ");
        hfd_view_add(out, d, "message");
        hfd_buf_addc(out, '\n');
    }
}

static int64_t seconds_us(const json_t *a, const char *key)
{
    const double s = json_number_value(json_object_get(a, key));

    return s > 0 && s < 1e9 ? (int64_t)(s * (double)HFD_US_PER_S) : 0;
}

/* Adds "40 s", or nothing. */
static void add_span(struct table *t, struct hfd_buf *cell, int64_t us)
{
    if (us > 0)
        hfd_buf_about(cell, us);
    table_add(t, cell);
}

/* Adds a condition's reason and message. */
static void add_words(struct hfd_buf *cell, const json_t *a)
{
    hfd_view_add(cell, a, "reason");
    add_member(cell, ": ", a, "message");
}

/* True when the operation is under way for twice an adapter's usual time. */
static bool is_slow(const struct hfd_view *v, const json_t *d, int64_t usual_us)
{
    const int64_t began_us = time_of(d, "started_time");

    return is_under_way(hfd_json_cstr(d, "state")) && usual_us > 0 && began_us > 0 &&
           v->now_us - began_us > 2 * usual_us;
}

/* The row of an adapter: its name, what it does, for how long, its words, its usual time. */
static void add_adapter(const struct hfd_view *v, struct table *t, const json_t *d, const json_t *a)
{
    const bool done = json_is_true(json_object_get(a, "done"));
    const bool reported = time_of(a, "last_report_time") > 0;
    const int64_t since_us = time_of(a, "since");
    const int64_t usual_us = seconds_us(a, "usual_seconds");
    struct hfd_buf cell;

    hfd_buf_init(&cell, HFD_CLIENT_ANSWER_MAX_BYTES);
    hfd_buf_lit(&cell, "    ");
    table_add_text(t, &cell, hfd_json_cstr(a, "adapter"));
    table_add_text(t, &cell, done ? "done" : !reported ? "has not reported" : "waiting");
    if (done)
        add_span(t, &cell, seconds_us(a, "took_seconds"));
    else
        add_span(t, &cell,
                 !reported || since_us == 0 ? 0
                 : v->now_us > since_us     ? v->now_us - since_us
                                            : 1);
    if (usual_us > 0) {
        hfd_buf_lit(&cell, "usually ");
        hfd_buf_about(&cell, usual_us);
    }
    table_add(t, &cell);
    if (!done && is_slow(v, d, usual_us))
        hfd_buf_lit(&cell, "<-- slow  ");
    if (!json_is_true(json_object_get(a, "required")))
        hfd_buf_lit(&cell, "(not required)  ");
    if (!done)
        add_words(&cell, a);
    table_add(t, &cell);
    hfd_buf_fini(&cell);
}

static bool is_of(const json_t *part, const json_t *adapter)
{
    return strcmp(hfd_json_cstr(part, "kind"), hfd_json_cstr(adapter, "kind")) == 0 &&
           strcmp(hfd_json_cstr(part, "name"), hfd_json_cstr(adapter, "part")) == 0;
}

static void write_part(const struct hfd_view *v, const json_t *d, const json_t *part,
                       struct hfd_buf *out)
{
    static const char *const heads[] = {"", "", "", "", ""};
    const json_t *adapters = json_object_get(d, "adapters");
    struct hfd_arena mem;
    struct table t = {
        .heads = heads, .columns = sizeof(heads) / sizeof(heads[0]), .mem = &mem, .no_head = true};

    hfd_buf_lit(out, "  ");
    hfd_view_add(out, part, "kind");
    hfd_buf_addc(out, ' ');
    hfd_view_add(out, part, "name");
    if (!json_is_true(json_object_get(part, "exists")))
        hfd_buf_lit(out, ": does not exist");
    else if (json_is_true(json_object_get(part, "deleting")))
        hfd_buf_lit(out, ": is being deleted");
    hfd_buf_addc(out, '\n');
    hfd_arena_init(&mem, HFD_VIEW_OUTPUT_MAX_BYTES);
    for (size_t i = 0; i < json_array_size(adapters); i++)
        if (is_of(part, json_array_get(adapters, i)))
            add_adapter(v, &t, d, json_array_get(adapters, i));
    table_write(&t, columns_of_terminal(), out);
    hfd_arena_fini(&mem);
}

static void write_foot(const struct hfd_view *v, const json_t *d, struct hfd_buf *out)
{
    const json_t *history = json_object_get(d, "history"), *by = json_object_get(d, "ordered_by");
    const json_t *last = NULL;

    for (size_t i = 0; i < json_array_size(history); i++)
        if (time_of(json_array_get(history, i), "time") >= time_of(last, "time"))
            last = json_array_get(history, i);
    if (last != NULL) {
        hfd_buf_lit(out, "last change ");
        add_age(v, out, time_of(last, "time"));
        hfd_buf_lit(out, " ago: ");
        hfd_view_add(out, last, "event");
        hfd_buf_addc(out, '\n');
    }
    if (hfd_json_cstr(by, "identity")[0] == '\0')
        return;
    hfd_buf_lit(out, "ordered ");
    add_time(out, by, "time");
    hfd_buf_lit(out, " by ");
    hfd_view_add(out, by, "identity");
    add_labels(out, json_object_get(d, "labels"), " ", " ");
    hfd_buf_addc(out, '\n');
}

static enum hfd_exit draw_one(struct hfd_view *v, void *ctx, struct hfd_buf *out, json_t **doc)
{
    const json_t *parts;
    enum hfd_exit status;
    struct hfd_buf path;

    (void)ctx;
    hfd_buf_init(&path, PATH_MAX_BYTES);
    hfd_buf_lit(&path, PATH "/");
    hfd_url_escape(&path, hfd_slice_of(v->place), HFD_URL_PLAIN);
    hfd_buf_addc(&path, '\0');
    status = path.rc == HFD_OK ? hfd_view_get(v, path.p, doc)
                               : hfd_view_wrong_use(v, "the GUResID is too long");
    hfd_buf_fini(&path);
    if (status != HFD_EXIT_OK)
        return status;
    parts = json_object_get(*doc, "parts");
    if (v->form == HFD_VIEW_TEXT) {
        write_head(v, *doc, out);
        for (size_t i = 0; i < json_array_size(parts); i++)
            write_part(v, *doc, json_array_get(parts, i), out);
        write_foot(v, *doc, out);
    } else if (!hfd_view_write(v, *doc, out)) {
        hfd_form_write(out, HFD_FORM_NAME, *doc, v->place);
    }
    return strcmp(hfd_json_cstr(*doc, "state"), "absent") == 0 ? HFD_EXIT_ABSENT : HFD_EXIT_OK;
}

enum hfd_exit hfd_cmd_status(int argc, const char **argv)
{
    struct hfd_view v = {.name = "status",
                         .usage = "status [GURESID] [FLAGS]",
                         .examples = "Examples:\n  hyperfleet-driver status\n"
                                     "  hyperfleet-driver status 3c0a194814284345 --watch\n"
                                     "  hyperfleet-driver status 3c0a194814284345 -o json\n",
                         .takes_place = true};
    enum hfd_exit status = HFD_EXIT_OK;

    if (hfd_view_open(&v, argc, argv, &status)) {
        if (v.place != NULL && v.place[0] == '\0')
            status = hfd_view_wrong_use(&v, "expected a GUResID");
        else
            status = run(&v, v.place != NULL ? draw_one : draw_all, NULL);
    }
    hfd_view_close(&v);
    return status;
}
