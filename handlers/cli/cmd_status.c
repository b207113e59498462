/* hyperfleet-driver status: what needs attention, or one resource in full. Thread: main. */
#include "handlers/cli/view.h"

#include "driver/base/clock.h"

#define PATH "api/driver/v1/resources"
#define PATH_MAX_BYTES ((size_t)4096)
#define ROWS_OF_CAUSE_MAX 10 /* of one state and cause */

/* ---- all resources ---- */

static void write_counts(const json_t *counts, struct hfd_buf *out)
{
    static const char *const states[] = {"ready", "creating", "updating", "deleting", "failed"};

    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
        hfd_buf_addf(out, "%s%s %lld", i > 0 ? "  " : "", states[i],
                     (long long)json_integer_value(json_object_get(counts, states[i])));
    hfd_buf_addc(out, '\n');
}

/* "ADAPTER_SILENT dns for 4 min: is required, and has never reported; 3 wait" */
static void write_problems(const struct hfd_view *v, const json_t *problems, struct hfd_buf *out)
{
    for (size_t i = 0; i < json_array_size(problems); i++) {
        const json_t *p = json_array_get(problems, i);
        const long long waiting = json_integer_value(json_object_get(p, "waiting"));

        for (const char *s = hfd_view_text(p, "kind"); *s != '\0'; s++)
            hfd_buf_addc(out, *s >= 'a' && *s <= 'z' ? (char)(*s - 'a' + 'A') : ' ');
        hfd_buf_add(out, hfd_slice_of(hfd_view_text(p, "name")[0] != '\0' ? " " : ""));
        hfd_view_add(out, p, "name");
        hfd_buf_lit(out, " for ");
        hfd_view_add_age(v, out, hfd_view_time(p, "since"));
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
    struct hfd_view_table t = {
        .heads = heads, .columns = sizeof(heads) / sizeof(heads[0]), .mem = mem};
    struct hfd_buf cell;

    if (json_array_size(causes) == 0)
        return;
    hfd_buf_init(&cell, HFD_CLIENT_ANSWER_MAX_BYTES);
    for (size_t i = 0; i < json_array_size(causes); i++) {
        const json_t *cause = json_array_get(causes, i);

        hfd_buf_addf(&cell, "%lld", (long long)json_integer_value(json_object_get(cause, "count")));
        hfd_view_table_add(&t, &cell);
        for (const char *s = hfd_view_text(cause, "trouble"); *s != '\0'; s++)
            hfd_buf_addc(&cell, *s >= 'a' && *s <= 'z' ? (char)(*s - 'a' + 'A') : '?');
        hfd_view_table_add(&t, &cell);
        hfd_view_add_cause(&cell, cause);
        hfd_view_table_add(&t, &cell);
        hfd_view_add_age(v, &cell, hfd_view_time(cause, "since"));
        hfd_view_table_add(&t, &cell);
    }
    hfd_buf_addc(out, '\n');
    hfd_view_table_write(&t, hfd_view_columns(), out);
    hfd_buf_fini(&cell);
}

/* Returns whether an item is the first, or one of the next few, of its state and cause. */
static bool is_among_first(const json_t *items, size_t at)
{
    const json_t *item = json_array_get(items, at);
    size_t before = 0;

    for (size_t i = 0; i < at; i++) {
        const json_t *other = json_array_get(items, i);

        before += strcmp(hfd_view_word(other), hfd_view_word(item)) == 0 &&
                  strcmp(hfd_view_text(other, "who"), hfd_view_text(item, "who")) == 0 &&
                  strcmp(hfd_view_text(other, "reason"), hfd_view_text(item, "reason")) == 0;
    }
    return before < ROWS_OF_CAUSE_MAX;
}

/* Returns whether a resource is neither ready nor absent, or is degraded. */
static bool is_shown(const json_t *item)
{
    return strcmp(hfd_view_word(item), "ready") != 0;
}

static void write_overview(const struct hfd_view *v, const json_t *all, struct hfd_buf *out)
{
    const json_t *items = json_object_get(all, "items");
    bool more = json_is_string(json_object_get(all, "next")), cut = false;
    struct hfd_view_table t;
    struct hfd_arena mem;
    struct hfd_buf cell;

    hfd_arena_init(&mem, HFD_VIEW_OUTPUT_MAX_BYTES);
    hfd_buf_init(&cell, HFD_CLIENT_ANSWER_MAX_BYTES);
    t = hfd_view_items(&mem);
    for (size_t i = 0; i < json_array_size(items); i++) {
        const json_t *item = json_array_get(items, i);

        if (!is_shown(item))
            more = false; /* those behind it are ready, too */
        else if (is_among_first(items, i))
            hfd_view_add_item(v, &t, item, &cell);
        else
            cut = true;
    }
    write_problems(v, json_object_get(all, "problems"), out);
    write_counts(json_object_get(all, "counts"), out);
    write_causes(v, json_object_get(all, "causes"), &mem, out);
    if (t.count > 0) {
        hfd_buf_addc(out, '\n');
        hfd_view_table_write(&t, hfd_view_columns(), out);
    }
    if (more || cut)
        hfd_buf_lit(out, "There are more: hyperfleet-driver list --who ADAPTER --reason REASON\n");
    hfd_buf_fini(&cell);
    hfd_arena_fini(&mem);
}

static enum hfd_exit draw_all(struct hfd_view *v, void *ctx, struct hfd_buf *out, json_t **doc)
{
    json_t *problems = NULL;
    enum hfd_exit status = hfd_view_get(v, PATH "?size=500", doc);

    (void)ctx;
    if (status == HFD_EXIT_OK)
        status = hfd_view_get(v, "api/driver/v1/problems", &problems);
    (void)json_object_set(*doc, "problems", json_object_get(problems, "items"));
    json_decref(problems);
    if (status != HFD_EXIT_OK)
        return status;
    if (v->form == HFD_VIEW_TEXT) {
        write_overview(v, *doc, out);
    } else if (v->form == HFD_VIEW_NAME) {
        const json_t *items = json_object_get(*doc, "items");

        for (size_t i = 0; i < json_array_size(items); i++) {
            if (!is_shown(json_array_get(items, i)))
                continue;
            hfd_view_add(out, json_array_get(items, i), "id");
            hfd_buf_addc(out, '\n');
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

/* Adds a lead and a member; nothing without one. */
static void add_member(struct hfd_buf *out, const char *lead, const json_t *d, const char *key)
{
    if (hfd_view_text(d, key)[0] == '\0')
        return;
    hfd_buf_add(out, hfd_slice_of(lead));
    hfd_view_add(out, d, key);
}

/* Adds a time without fractions of a second. */
static void add_time(struct hfd_buf *out, const json_t *d, const char *key)
{
    char text[HFD_TIME_TEXT_MAX] = "?";

    if (hfd_view_time(d, key) > 0)
        (void)hfd_time_format_s(hfd_view_time(d, key), text);
    hfd_buf_add(out, hfd_slice_of(text));
}

/* "my-cluster  creating for 4 min of about 15 min, deadline 2026-11-22T10:02:00Z" */
static void write_head(const struct hfd_view *v, const json_t *d, struct hfd_buf *out)
{
    const char *state = hfd_view_text(d, "state");
    const int64_t began_us = hfd_view_time(d, "started_time");
    const int64_t guess_us = hfd_view_time(d, "first_estimate");

    hfd_view_add(out, d, hfd_view_text(d, "name")[0] != '\0' ? "name" : "id");
    hfd_buf_lit(out, "  ");
    hfd_view_add(out, d, "state");
    hfd_buf_lit(out, " for ");
    hfd_view_add_age(v, out, hfd_view_time(d, "since"));
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
    if (!is_under_way(state) && hfd_view_text(d, "message")[0] != '\0') {
        hfd_view_add(out, d, "code");
        if (hfd_view_text(d, "code")[0] != '\0')
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
static void add_span(struct hfd_view_table *t, struct hfd_buf *cell, int64_t us)
{
    if (us > 0)
        hfd_buf_about(cell, us);
    hfd_view_table_add(t, cell);
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
    hfd_view_table_add_text(t, &cell, hfd_view_text(a, "adapter"));
    hfd_view_table_add_text(t, &cell, done ? "done" : !reported ? "has not reported" : "waiting");
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
        hfd_buf_lit(out, " ago: ");
        hfd_view_add(out, last, "event");
        hfd_buf_addc(out, '\n');
    }
    if (hfd_view_text(by, "identity")[0] == '\0')
        return;
    hfd_buf_lit(out, "ordered ");
    add_time(out, by, "time");
    hfd_buf_lit(out, " by ");
    hfd_view_add(out, by, "identity");
    json_object_foreach ((json_t *)(uintptr_t)labels, key, value) {
        hfd_buf_addc(out, ' ');
        hfd_buf_show(out, hfd_slice_of(key));
        hfd_buf_addc(out, '=');
        hfd_buf_show(
            out, hfd_slice_of(json_string_value(value) != NULL ? json_string_value(value) : ""));
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
            status = hfd_view_run(&v, v.place != NULL ? draw_one : draw_all, NULL);
    }
    hfd_view_close(&v);
    return status;
}
