/* hyperfleet-driver list: the resources of a server, by trouble. Thread: main. */
#include "handlers/cli/view.h"

#include <stdlib.h>

#define PATH "api/driver/v1/resources"
#define PAGE_SIZE 500
#define PATH_MAX_BYTES ((size_t)64 * 1024)

/* The filters of the list. */
struct list {
    bool failed, stuck;
    const char *type, *search, *order;
    struct hfd_flag_list labels, states;
};

static void add_parameter(struct hfd_buf *b, const char *name, const char *value)
{
    if (value == NULL)
        return;
    hfd_buf_addf(b, "&%s=", name);
    hfd_view_encode(b, value);
}

/* A list of resources is asked for in one state, or for those that are stuck. */
struct question {
    bool failed, stuck;
};

static void write_path(const struct list *l, const struct question *q, const char *after,
                       struct hfd_buf *b)
{
    hfd_buf_addf(b, PATH "?size=%d", PAGE_SIZE);
    add_parameter(b, "state", q->failed ? "failed" : NULL);
    add_parameter(b, "stuck", q->stuck ? "true" : NULL);
    for (size_t i = 0; i < l->states.count; i++)
        add_parameter(b, "state", l->states.values[i]);
    for (size_t i = 0; i < l->labels.count; i++)
        add_parameter(b, "label", l->labels.values[i]);
    add_parameter(b, "type", l->type);
    add_parameter(b, "search", l->search);
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

/* Adds the pages of one question to all. Watching shows the first page. */
static enum hfd_exit add_pages(struct hfd_view *v, const struct list *l, const struct question *q,
                               json_t *all)
{
    enum hfd_exit status = HFD_EXIT_OK;
    char *after = NULL;
    struct hfd_buf path;

    hfd_buf_init(&path, PATH_MAX_BYTES);
    do {
        const bool first = after == NULL;
        const char *next;
        json_t *page = NULL;

        hfd_buf_reset(&path);
        write_path(l, q, after, &path);
        if (path.rc != HFD_OK)
            status = hfd_view_wrong_use(v, "the filters are too long");
        else
            status = hfd_view_get(v, path.p, &page);
        free(after);
        next = json_string_value(json_object_get(page, "next"));
        after = next != NULL ? strdup(next) : NULL;
        if (page != NULL &&
            json_array_extend(json_object_get(all, "items"), json_object_get(page, "items")) != 0)
            status = hfd_cli_fail(HFD_EXIT_INTERNAL, v->name, "the answer has no list of items");
        if (first)
            add_counts(json_object_get(all, "counts"), json_object_get(page, "counts"));
        json_decref(page);
    } while (status == HFD_EXIT_OK && after != NULL && !v->watch);
    free(after);
    hfd_buf_fini(&path);
    return status;
}

/* ---- the table ---- */

static const char *const heads[] = {"GURESID", "NAME", "STATE", "HEALTH", "FOR", "MESSAGE"};
static const char *const wide_heads[] = {"GURESID", "NAME",     "TYPE",       "STATE",  "HEALTH",
                                         "FOR",     "DEADLINE", "CLUSTER-ID", "LABELS", "MESSAGE"};

static void add_text(struct hfd_view_table *t, struct hfd_buf *cell, const char *text)
{
    hfd_view_add_line(cell, text);
    hfd_view_table_add(t, cell);
}

static void add_labels(struct hfd_view_table *t, struct hfd_buf *cell, const json_t *labels)
{
    const char *key;
    json_t *value;

    json_object_foreach ((json_t *)(uintptr_t)labels, key, value) {
        if (cell->len > 0)
            hfd_buf_addc(cell, ',');
        hfd_view_add_line(cell, key);
        hfd_buf_addc(cell, '=');
        hfd_view_add_line(cell, json_string_value(value) != NULL ? json_string_value(value) : "");
    }
    hfd_view_table_add(t, cell);
}

static void add_row(const struct hfd_view *v, struct hfd_view_table *t, const json_t *item,
                    struct hfd_buf *cell)
{
    const bool wide = v->form == HFD_VIEW_WIDE;

    add_text(t, cell, hfd_view_text(item, "id"));
    add_text(t, cell, hfd_view_text(item, "name"));
    if (wide)
        add_text(t, cell, hfd_view_text(item, "type"));
    add_text(t, cell, hfd_view_text(item, "state"));
    add_text(t, cell, hfd_view_text(item, "health"));
    hfd_view_add_age(v, cell, hfd_view_time(item, "since"));
    hfd_view_table_add(t, cell);
    if (wide) {
        add_text(t, cell, hfd_view_text(item, "deadline"));
        add_text(t, cell, hfd_view_text(item, "cluster_id"));
        add_labels(t, cell, json_object_get(item, "labels"));
    }
    add_text(t, cell, hfd_view_text(item, "message"));
}

static void write_table(const struct hfd_view *v, const json_t *items, struct hfd_buf *out)
{
    const bool wide = v->form == HFD_VIEW_WIDE;
    struct hfd_arena mem;
    struct hfd_view_table t = {.heads = wide ? wide_heads : heads,
                               .columns = wide ? sizeof(wide_heads) / sizeof(wide_heads[0])
                                               : sizeof(heads) / sizeof(heads[0]),
                               .mem = &mem};
    struct hfd_buf cell;

    if (json_array_size(items) == 0) {
        (void)fprintf(stderr, "there are no such resources\n");
        return;
    }
    hfd_arena_init(&mem, HFD_VIEW_OUTPUT_MAX_BYTES);
    hfd_buf_init(&cell, HFD_CLIENT_ANSWER_MAX_BYTES);
    for (size_t i = 0; i < json_array_size(items); i++)
        add_row(v, &t, json_array_get(items, i), &cell);
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
        hfd_view_add_line(out, hfd_view_text(json_array_get(items, i), "id"));
        hfd_buf_addc(out, '\n');
    }
}

static enum hfd_exit draw(struct hfd_view *v, void *ctx, struct hfd_buf *out, json_t **doc)
{
    const struct list *l = ctx;
    /* Failed ones are not under way, so that none is in both. */
    const struct question both[] = {{.failed = true}, {.stuck = true}};
    const struct question one = {l->failed, l->stuck};
    const bool two = l->failed && l->stuck;
    enum hfd_exit status = HFD_EXIT_OK;

    *doc = json_pack("{s:[], s:{}}", "items", "counts");
    for (size_t i = 0; status == HFD_EXIT_OK && i < (two ? 2 : 1); i++)
        status = add_pages(v, l, two ? &both[i] : &one, *doc);
    if (status == HFD_EXIT_OK) {
        write_all(v, *doc, out);
    } else {
        json_decref(*doc);
        *doc = NULL;
    }
    return status;
}

enum hfd_exit hfd_cmd_list(int argc, const char *const *argv)
{
    struct list l = {.failed = false};
    const struct hfd_flag own[] = {
        {"--failed", NULL, HFD_FLAG_SWITCH, &l.failed, NULL, "only failed resources"},
        {"--stuck", NULL, HFD_FLAG_SWITCH, &l.stuck, NULL,
         "only those under way for far too long; with --failed: these and those"},
        {"--state", NULL, HFD_FLAG_LIST, &l.states, "STATE",
         "only in this state: creating, updating, ready, failed or deleting; repeat it for more"},
        {"--label", NULL, HFD_FLAG_LIST, &l.labels, "KEY=VALUE",
         "only with this label; repeat it for more"},
        {"--type", NULL, HFD_FLAG_TEXT, &l.type, "TYPE", "only of this resource type"},
        {"--search", NULL, HFD_FLAG_TEXT, &l.search, "TEXT", "text in GUResID, name or labels"},
        {"--order", NULL, HFD_FLAG_TEXT, &l.order, "ORDER",
         "trouble (if none is given), created or name"},
    };
    struct hfd_view v = {.name = "list",
                         .usage = "list [FLAGS]",
                         .examples = "  hyperfleet-driver list --failed --stuck --label app=shop\n"
                                     "  hyperfleet-driver list --state creating -o wide\n"
                                     "  hyperfleet-driver list --search shop -o name\n",
                         .own = own,
                         .own_count = sizeof(own) / sizeof(own[0]),
                         .has_wide = true};
    enum hfd_exit status = HFD_EXIT_OK;

    if (hfd_view_open(&v, argc, argv, &status)) {
        if ((l.failed || l.stuck) && l.states.count > 0)
            status = hfd_view_wrong_use(&v, "--state: expected without --failed and --stuck");
        else
            status = hfd_view_run(&v, draw, &l);
    }
    hfd_view_close(&v);
    return status;
}
