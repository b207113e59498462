/* hyperfleet-driver list: the resources of a server, by trouble. Thread: main. */
#include "handlers/cli/view.h"

#define PATH "api/driver/v1/resources"
#define PAGE_SIZE 500
#define PATH_MAX_BYTES ((size_t)64 * 1024)
/* A server that names page after page is not followed without end. */
#define PAGES_MAX 2000
#define BYTES_MAX ((size_t)128 * 1024 * 1024)
#define TOKEN_MAX_BYTES 4096 /* of the name of a page */

/* The filters of the list. */
struct list {
    bool failed, stuck, degraded;
    const char *type, *search, *order, *who, *reason;
    struct hfd_flag_list labels, states;
};

static void add_parameter(struct hfd_buf *b, const char *name, const char *value)
{
    if (value == NULL)
        return;
    hfd_buf_addf(b, "&%s=", name);
    hfd_view_encode(b, value);
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

    hfd_buf_init(&path, PATH_MAX_BYTES);
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

/* ---- the table ---- */

static const char *const wide_heads[] = {"GURESID",    "NAME",   "TYPE",   "STATE",
                                         "HEALTH",     "FOR",    "CAUSE",  "DEADLINE",
                                         "CLUSTER-ID", "LABELS", "MESSAGE"};

static void add_labels(struct hfd_view_table *t, struct hfd_buf *cell, const json_t *labels)
{
    const char *key;
    json_t *value;

    json_object_foreach ((json_t *)(uintptr_t)labels, key, value) {
        if (cell->len > 0)
            hfd_buf_addc(cell, ',');
        hfd_buf_show(cell, hfd_slice_of(key));
        hfd_buf_addc(cell, '=');
        hfd_buf_show(
            cell, hfd_slice_of(json_string_value(value) != NULL ? json_string_value(value) : ""));
    }
    hfd_view_table_add(t, cell);
}

static void add_wide_row(const struct hfd_view *v, struct hfd_view_table *t, const json_t *item,
                         struct hfd_buf *cell)
{
    hfd_view_table_add_text(t, cell, hfd_view_text(item, "id"));
    hfd_view_table_add_text(t, cell, hfd_view_text(item, "name"));
    hfd_view_table_add_text(t, cell, hfd_view_text(item, "type"));
    hfd_view_table_add_text(t, cell, hfd_view_word(item));
    hfd_view_table_add_text(t, cell, hfd_view_text(item, "health"));
    hfd_view_add_age(v, cell, hfd_view_time(item, "since"));
    hfd_view_table_add(t, cell);
    hfd_view_add_cause(cell, item);
    hfd_view_table_add(t, cell);
    hfd_view_table_add_text(t, cell, hfd_view_text(item, "deadline"));
    hfd_view_table_add_text(t, cell, hfd_view_text(item, "cluster_id"));
    add_labels(t, cell, json_object_get(item, "labels"));
    hfd_view_table_add_text(t, cell, hfd_view_text(item, "message"));
}

static void write_table(const struct hfd_view *v, const json_t *items, struct hfd_buf *out)
{
    const bool wide = v->form == HFD_VIEW_WIDE;
    struct hfd_arena mem;
    struct hfd_view_table t =
        wide ? (struct hfd_view_table){.heads = wide_heads,
                                       .columns = sizeof(wide_heads) / sizeof(wide_heads[0]),
                                       .mem = &mem}
             : hfd_view_items(&mem);
    struct hfd_buf cell;

    if (json_array_size(items) == 0) {
        (void)fprintf(stderr, "there are no such resources\n");
        return;
    }
    hfd_arena_init(&mem, HFD_VIEW_OUTPUT_MAX_BYTES);
    hfd_buf_init(&cell, HFD_CLIENT_ANSWER_MAX_BYTES);
    for (size_t i = 0; i < json_array_size(items); i++)
        (wide ? add_wide_row : hfd_view_add_item)(v, &t, json_array_get(items, i), &cell);
    hfd_view_table_write(&t, wide ? 0 : hfd_view_columns(), out);
    hfd_buf_fini(&cell);
    hfd_arena_fini(&mem);
}

static void write_all(const struct hfd_view *v, const json_t *all, struct hfd_buf *out)
{
    const json_t *items = json_object_get(all, "items");

    if (v->form == HFD_VIEW_JSON || v->form == HFD_VIEW_YAML) {
        hfd_form_write(out, v->form == HFD_VIEW_JSON ? HFD_FORM_JSON : HFD_FORM_YAML, all, "");
        return;
    }
    if (v->form != HFD_VIEW_NAME) {
        write_table(v, items, out);
        return;
    }
    for (size_t i = 0; i < json_array_size(items); i++) {
        hfd_view_add(out, json_array_get(items, i), "id");
        hfd_buf_addc(out, '\n');
    }
}

static enum hfd_exit draw(struct hfd_view *v, void *ctx, struct hfd_buf *out, json_t **doc)
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
                    "  hyperfleet-driver list --who hypershift --reason QuotaExceeded\n"
                    "  hyperfleet-driver list --search shop -o name\n",
        .own = own,
        .own_count = sizeof(own) / sizeof(own[0]),
        .has_wide = true};
    enum hfd_exit status = HFD_EXIT_OK;

    if (hfd_view_open(&v, argc, argv, &status)) {
        if ((l.failed || l.stuck || l.degraded) && l.states.count > 0)
            status = hfd_view_wrong_use(
                &v, "--state: expected without --failed, --stuck and --degraded");
        else
            status = hfd_view_run(&v, draw, &l);
    }
    hfd_view_close(&v);
    return status;
}
