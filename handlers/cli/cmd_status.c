/* hyperfleet-driver status: what needs attention, or one resource in full. Thread: main. */
#include "handlers/cli/view.h"

#include "driver/base/clock.h"
#include "driver/core/words.h"

#define PATH "api/driver/v1/resources"
#define PATH_MAX_BYTES ((size_t)4096)
#define ROWS_MAX 500

/* ---- all resources ---- */

/* Reads the first page of a list. */
static enum hfd_exit get_page(struct hfd_view *v, const char *filter, json_t **out)
{
    char path[128];

    (void)snprintf(path, sizeof(path), PATH "?size=%d%s", ROWS_MAX, filter);
    return hfd_view_get(v, path, out);
}

static bool has_id(const json_t *items, const char *id)
{
    for (size_t i = 0; i < json_array_size(items); i++)
        if (strcmp(hfd_view_text(json_array_get(items, i), "id"), id) == 0)
            return true;
    return false;
}

/* The word for a resource; NULL for one that is ready and healthy. */
static const char *word_of(const json_t *item, const json_t *stuck)
{
    const char *state = hfd_view_text(item, "state");

    if (strcmp(state, "failed") == 0)
        return "FAILED";
    if (strcmp(state, "ready") == 0)
        return strcmp(hfd_view_text(item, "health"), "Degraded") == 0 ? "DEGRADED" : NULL;
    return has_id(stuck, hfd_view_text(item, "id")) ? "STUCK" : state;
}

static void add_text(struct hfd_view_table *t, struct hfd_buf *cell, const char *text)
{
    hfd_view_add_line(cell, text);
    hfd_view_table_add(t, cell);
}

static void write_counts(const json_t *counts, struct hfd_buf *out)
{
    static const char *const states[] = {"ready", "creating", "updating", "deleting", "failed"};

    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
        hfd_buf_addf(out, "%s%s %lld", i > 0 ? "  " : "", states[i],
                     (long long)json_integer_value(json_object_get(counts, states[i])));
    hfd_buf_addc(out, '\n');
}

static void write_overview(const struct hfd_view *v, const json_t *all, struct hfd_buf *out)
{
    static const char *const heads[] = {"STATE", "NAME", "GURESID", "FOR", "MESSAGE"};
    const json_t *items = json_object_get(all, "items"), *stuck = json_object_get(all, "stuck");
    struct hfd_arena mem;
    struct hfd_view_table t = {
        .heads = heads, .columns = sizeof(heads) / sizeof(heads[0]), .mem = &mem};
    struct hfd_buf cell;

    hfd_arena_init(&mem, HFD_VIEW_OUTPUT_MAX_BYTES);
    hfd_buf_init(&cell, HFD_CLIENT_ANSWER_MAX_BYTES);
    for (size_t i = 0; i < json_array_size(items); i++) {
        const json_t *item = json_array_get(items, i);
        const char *word = word_of(item, stuck);

        if (word == NULL)
            continue;
        add_text(&t, &cell, word);
        add_text(&t, &cell, hfd_view_text(item, "name"));
        add_text(&t, &cell, hfd_view_text(item, "id"));
        hfd_view_add_age(v, &cell, hfd_view_time(item, "since"));
        hfd_view_table_add(&t, &cell);
        add_text(&t, &cell, hfd_view_text(item, "message"));
    }
    write_counts(json_object_get(all, "counts"), out);
    if (t.count > 0) {
        hfd_buf_addc(out, '\n');
        hfd_view_table_write(&t, hfd_view_columns(), out);
    }
    if (json_is_string(json_object_get(all, "next")) &&
        json_array_size(items) * t.columns == t.count)
        hfd_buf_lit(out, "There are more: hyperfleet-driver list\n");
    hfd_buf_fini(&cell);
    hfd_arena_fini(&mem);
}

static enum hfd_exit draw_all(struct hfd_view *v, void *ctx, struct hfd_buf *out, json_t **doc)
{
    json_t *stuck = NULL;
    enum hfd_exit status = get_page(v, "", doc);

    (void)ctx;
    if (status == HFD_EXIT_OK)
        status = get_page(v, "&stuck=true", &stuck);
    (void)json_object_set(*doc, "stuck", json_object_get(stuck, "items"));
    json_decref(stuck);
    if (status != HFD_EXIT_OK)
        return status;
    if (v->form == HFD_VIEW_TEXT) {
        write_overview(v, *doc, out);
    } else if (v->form == HFD_VIEW_NAME) {
        const json_t *items = json_object_get(*doc, "items");

        for (size_t i = 0; i < json_array_size(items); i++) {
            const json_t *item = json_array_get(items, i);

            if (word_of(item, json_object_get(*doc, "stuck")) != NULL)
                hfd_buf_addf(out, "%s\n", hfd_view_text(item, "id"));
        }
    } else {
        hfd_form_write(out, v->form == HFD_VIEW_JSON ? HFD_FORM_JSON : HFD_FORM_YAML, *doc, "");
    }
    return HFD_EXIT_OK;
}

/* ---- one resource ---- */

static bool is_under_way(const char *state)
{
    return strcmp(state, "creating") == 0 || strcmp(state, "updating") == 0 ||
           strcmp(state, "deleting") == 0;
}

/* "my-cluster  creating for 4 min of about 15 min, deadline 2026-11-22T10:02:00Z" */
static void write_head(const struct hfd_view *v, const json_t *d, struct hfd_buf *out)
{
    const char *state = hfd_view_text(d, "state");
    const int64_t began_us = hfd_view_time(d, "started_time");
    const int64_t guess_us = hfd_view_time(d, "first_estimate");

    hfd_view_add_line(out, hfd_view_text(d, hfd_view_text(d, "name")[0] != '\0' ? "name" : "id"));
    hfd_buf_addf(out, "  %s for ", state);
    hfd_view_add_age(v, out, hfd_view_time(d, "since"));
    if (is_under_way(state)) {
        if (began_us > 0 && guess_us > began_us) {
            hfd_buf_lit(out, " of about ");
            hfd_words_add_duration(out, guess_us - began_us);
        }
        hfd_buf_addf(out, ", deadline %.20s%s", hfd_view_text(d, "deadline"),
                     json_is_true(json_object_get(d, "stuck")) ? ", STUCK" : "");
    } else if (hfd_view_text(d, "health")[0] != '\0') {
        hfd_buf_addf(out, ", %s", hfd_view_text(d, "health"));
    }
    hfd_buf_addf(out, "\nGUResID %s, type %s", hfd_view_text(d, "id"), hfd_view_text(d, "type"));
    if (hfd_view_text(d, "cluster_id")[0] != '\0')
        hfd_buf_addf(out, ", cluster %s", hfd_view_text(d, "cluster_id"));
    hfd_buf_addc(out, '\n');
    if (!is_under_way(state) && hfd_view_text(d, "message")[0] != '\0') {
        hfd_buf_addf(out, "%s%s", hfd_view_text(d, "code"),
                     hfd_view_text(d, "code")[0] != '\0' ? ": " : "");
        hfd_view_add_line(out, hfd_view_text(d, "message"));
        hfd_buf_addc(out, '\n');
    }
}

static int64_t seconds_us(const json_t *a, const char *key)
{
    const double s = json_number_value(json_object_get(a, key));

    return s > 0 && s < 1e9 ? (int64_t)(s * (double)HFD_US_PER_S) : 0;
}

/* Adds "40 s", or nothing. */
static void add_span(struct hfd_view_table *t, struct hfd_buf *cell, int64_t us)
{
    if (us > 0)
        hfd_words_add_duration(cell, us);
    hfd_view_table_add(t, cell);
}

/* Adds a condition's reason and message. */
static void add_words(struct hfd_buf *cell, const json_t *a)
{
    hfd_view_add_line(cell, hfd_view_text(a, "reason"));
    if (hfd_view_text(a, "message")[0] != '\0') {
        hfd_buf_lit(cell, ": ");
        hfd_view_add_line(cell, hfd_view_text(a, "message"));
    }
}

/* True when the operation is under way for twice an adapter's usual time. */
static bool is_slow(const struct hfd_view *v, const json_t *d, int64_t usual_us)
{
    const int64_t began_us = hfd_view_time(d, "started_time");

    return is_under_way(hfd_view_text(d, "state")) && usual_us > 0 && began_us > 0 &&
           v->now_us - began_us > 2 * usual_us;
}

/* The row of an adapter: its name, what it does, for how long, its words, its usual time. */
static void add_adapter(const struct hfd_view *v, struct hfd_view_table *t, const json_t *d,
                        const json_t *a)
{
    const bool done = json_is_true(json_object_get(a, "done"));
    const bool reported = hfd_view_time(a, "last_report_time") > 0;
    const int64_t since_us = hfd_view_time(a, "since");
    const int64_t usual_us = seconds_us(a, "usual_seconds");
    struct hfd_buf cell;

    hfd_buf_init(&cell, HFD_CLIENT_ANSWER_MAX_BYTES);
    hfd_buf_lit(&cell, "    ");
    add_text(t, &cell, hfd_view_text(a, "adapter"));
    add_text(t, &cell, done ? "done" : !reported ? "has not reported" : "waiting");
    if (done)
        add_span(t, &cell, seconds_us(a, "took_seconds"));
    else
        add_span(t, &cell,
                 !reported || since_us == 0 ? 0
                 : v->now_us > since_us     ? v->now_us - since_us
                                            : 1);
    if (usual_us > 0) {
        hfd_buf_lit(&cell, "usually ");
        hfd_words_add_duration(&cell, usual_us);
    }
    hfd_view_table_add(t, &cell);
    if (!done && is_slow(v, d, usual_us))
        hfd_buf_lit(&cell, "<-- slow  ");
    if (!json_is_true(json_object_get(a, "required")))
        hfd_buf_lit(&cell, "(not required)  ");
    if (!done)
        add_words(&cell, a);
    hfd_view_table_add(t, &cell);
    hfd_buf_fini(&cell);
}

static bool is_of(const json_t *part, const json_t *adapter)
{
    return strcmp(hfd_view_text(part, "kind"), hfd_view_text(adapter, "kind")) == 0 &&
           strcmp(hfd_view_text(part, "name"), hfd_view_text(adapter, "part")) == 0;
}

static void write_part(const struct hfd_view *v, const json_t *d, const json_t *part,
                       struct hfd_buf *out)
{
    static const char *const heads[] = {"", "", "", "", ""};
    const json_t *adapters = json_object_get(d, "adapters");
    struct hfd_arena mem;
    struct hfd_view_table t = {
        .heads = heads, .columns = sizeof(heads) / sizeof(heads[0]), .mem = &mem, .no_head = true};

    hfd_buf_addf(out, "  %s ", hfd_view_text(part, "kind"));
    hfd_view_add_line(out, hfd_view_text(part, "name"));
    if (!json_is_true(json_object_get(part, "exists")))
        hfd_buf_lit(out, ": does not exist");
    else if (json_is_true(json_object_get(part, "deleting")))
        hfd_buf_lit(out, ": is being deleted");
    hfd_buf_addc(out, '\n');
    hfd_arena_init(&mem, HFD_VIEW_OUTPUT_MAX_BYTES);
    for (size_t i = 0; i < json_array_size(adapters); i++)
        if (is_of(part, json_array_get(adapters, i)))
            add_adapter(v, &t, d, json_array_get(adapters, i));
    hfd_view_table_write(&t, hfd_view_columns(), out);
    hfd_arena_fini(&mem);
}

static void write_foot(const struct hfd_view *v, const json_t *d, struct hfd_buf *out)
{
    const json_t *history = json_object_get(d, "history"), *by = json_object_get(d, "ordered_by");
    const json_t *labels = json_object_get(d, "labels"), *last = NULL;
    const char *key;
    json_t *value;

    for (size_t i = 0; i < json_array_size(history); i++)
        if (hfd_view_time(json_array_get(history, i), "time") >= hfd_view_time(last, "time"))
            last = json_array_get(history, i);
    if (last != NULL) {
        hfd_buf_lit(out, "last change ");
        hfd_view_add_age(v, out, hfd_view_time(last, "time"));
        hfd_buf_addf(out, " ago: %s\n", hfd_view_text(last, "event"));
    }
    if (hfd_view_text(by, "identity")[0] == '\0')
        return;
    hfd_buf_addf(out, "ordered %.19sZ by ", hfd_view_text(by, "time"));
    hfd_view_add_line(out, hfd_view_text(by, "identity"));
    json_object_foreach ((json_t *)(uintptr_t)labels, key, value) {
        hfd_buf_addc(out, ' ');
        hfd_view_add_line(out, key);
        hfd_buf_addc(out, '=');
        hfd_view_add_line(out, json_string_value(value) != NULL ? json_string_value(value) : "");
    }
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
    hfd_view_encode(&path, v->place);
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
    } else {
        hfd_form_write(out,
                       v->form == HFD_VIEW_JSON   ? HFD_FORM_JSON
                       : v->form == HFD_VIEW_YAML ? HFD_FORM_YAML
                                                  : HFD_FORM_NAME,
                       *doc, v->place);
    }
    return strcmp(hfd_view_text(*doc, "state"), "absent") == 0 ? HFD_EXIT_ABSENT : HFD_EXIT_OK;
}

enum hfd_exit hfd_cmd_status(int argc, const char *const *argv)
{
    struct hfd_view v = {.name = "status",
                         .usage = "status [GURESID] [FLAGS]",
                         .examples = "  hyperfleet-driver status\n"
                                     "  hyperfleet-driver status 3c0a194814284345 --watch\n"
                                     "  hyperfleet-driver status 3c0a194814284345 -o json\n",
                         .takes_place = true};
    enum hfd_exit status = HFD_EXIT_OK;

    if (hfd_view_open(&v, argc, argv, &status)) {
        if (v.place != NULL && v.place[0] == '\0')
            status = hfd_view_wrong_use(&v, "expected a GUResID");
        else
            status = hfd_view_run(&v, v.place != NULL ? draw_one : draw_all, NULL);
    }
    hfd_view_close(&v);
    return status;
}
