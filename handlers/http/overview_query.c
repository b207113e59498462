/* See overview_query.h. */
#include "handlers/http/overview_query.h"

#include "handlers/http/query.h"

#define SIZE_DEFAULT 100

/* One parameter on its way into the query. */
struct reading {
    struct hfd_arena *mem;
    struct hfd_err *err;
    union {
        struct hfd_overview_query *list;
        struct hfd_feed_query *feed;
    } out;
    hfd_slice after; /* of a list: read when all else is */
};

struct param {
    const char *name;
    bool repeated;
    hfd_rc (*take)(struct reading *r, hfd_slice value);
};

static hfd_rc take_size(struct reading *r, hfd_slice value, size_t *out)
{
    int64_t size;

    if (hfd_parse_i64(value, 1, HFD_OVERVIEW_SIZE_MAX, &size, NULL) != HFD_OK)
        return hfd_fail_field(r->err, HFD_INVALID, "size",
                              "size must be an integer between 1 and %d", HFD_OVERVIEW_SIZE_MAX);
    *out = (size_t)size;
    return HFD_OK;
}

/* ---- the list ---- */

static hfd_rc take_state(struct reading *r, hfd_slice value)
{
    for (int s = HFD_STATE_CREATING; s < HFD_STATE_COUNT; s++)
        if (hfd_slice_is(value, hfd_state_name((enum hfd_state)s))) {
            r->out.list->states |= 1u << s;
            return HFD_OK;
        }
    return hfd_fail_field(r->err, HFD_INVALID, "state",
                          "state must be creating, updating, ready, failed or deleting; repeat it "
                          "for more than one");
}

static hfd_rc take_type(struct reading *r, hfd_slice value)
{
    r->out.list->type = value;
    return HFD_OK;
}

static hfd_rc take_search(struct reading *r, hfd_slice value)
{
    r->out.list->search = value;
    return HFD_OK;
}

static hfd_rc take_label(struct reading *r, hfd_slice value)
{
    struct hfd_overview_query *q = r->out.list;
    const char *eq = value.len > 0 ? memchr(value.p, '=', value.len) : NULL;
    const size_t len = eq != NULL ? (size_t)(eq - value.p) : 0;

    if (len == 0)
        return hfd_fail_field(r->err, HFD_INVALID, "label",
                              "label must be KEY=VALUE, as label=team=red");
    if (q->label_count == HFD_OVERVIEW_LABELS_MAX)
        return hfd_fail_field(r->err, HFD_INVALID, "label", "label can be given %d times at most",
                              HFD_OVERVIEW_LABELS_MAX);
    q->labels[q->label_count++] =
        (struct hfd_overview_label){.key = {value.p, len}, .value = {eq + 1, value.len - len - 1}};
    return HFD_OK;
}

static hfd_rc take_stuck(struct reading *r, hfd_slice value)
{
    if (!hfd_slice_is(value, "true") && !hfd_slice_is(value, "false"))
        return hfd_fail_field(r->err, HFD_INVALID, "stuck", "stuck must be true or false");
    r->out.list->stuck = hfd_slice_is(value, "true");
    return HFD_OK;
}

static hfd_rc take_order(struct reading *r, hfd_slice value)
{
    for (int o = 0; o < HFD_ORDERS; o++)
        if (hfd_slice_is(value, hfd_overview_order_name((enum hfd_overview_order)o))) {
            r->out.list->order = (enum hfd_overview_order)o;
            return HFD_OK;
        }
    return hfd_fail_field(r->err, HFD_INVALID, "order", "order must be trouble, created or name");
}

static hfd_rc take_list_size(struct reading *r, hfd_slice value)
{
    return take_size(r, value, &r->out.list->size);
}

static hfd_rc take_list_after(struct reading *r, hfd_slice value)
{
    r->after = value;
    return HFD_OK;
}

static const struct param list_params[] = {
    {"state", true, take_state},     {"type", false, take_type},
    {"search", false, take_search},  {"label", true, take_label},
    {"stuck", false, take_stuck},    {"order", false, take_order},
    {"size", false, take_list_size}, {"after", false, take_list_after},
};

/* ---- the feed ---- */

static hfd_rc take_feed_size(struct reading *r, hfd_slice value)
{
    return take_size(r, value, &r->out.feed->size);
}

static hfd_rc take_feed_after(struct reading *r, hfd_slice value)
{
    if (hfd_parse_i64(value, 0, INT64_MAX, &r->out.feed->after, NULL) != HFD_OK)
        return hfd_fail_field(r->err, HFD_INVALID, "after",
                              "after must be `next` of an earlier answer; leave it out to begin "
                              "with the oldest event");
    return HFD_OK;
}

static const struct param feed_params[] = {
    {"size", false, take_feed_size},
    {"after", false, take_feed_after},
};

/* ---- reading ---- */

/* The parameters that a path has. */
struct params {
    const struct param *items;
    size_t count;
    const char *names; /* for the message */
};

static hfd_rc fail_unknown(hfd_slice name, const struct params *known, struct hfd_err *err)
{
    char field[64];

    (void)snprintf(field, sizeof(field), "%.*s", HFD_SLICE_FMT(name));
    return hfd_fail_field(err, HFD_INVALID, field, "%s is no parameter here; %s", field,
                          known->names);
}

static hfd_rc take_one(struct reading *r, const struct params *known, unsigned *seen,
                       const struct hfd_query_param *given)
{
    for (size_t i = 0; i < known->count; i++) {
        const struct param *p = &known->items[i];

        if (!hfd_slice_is(given->name, p->name))
            continue;
        if (!p->repeated && (*seen & 1u << i) != 0)
            return hfd_fail_field(r->err, HFD_INVALID, p->name, "%s is given twice", p->name);
        *seen |= 1u << i;
        return p->take(r, given->value);
    }
    return fail_unknown(given->name, known, r->err);
}

static hfd_rc read_all(struct reading *r, hfd_slice rest, const struct params *known)
{
    struct hfd_query_param given;
    unsigned seen = 0;
    hfd_rc rc;

    do {
        rc = hfd_query_next(&rest, r->mem, &given, r->err);
        if (rc == HFD_OK)
            rc = take_one(r, known, &seen, &given);
    } while (rc == HFD_OK);
    return rc == HFD_NOT_FOUND ? HFD_OK : rc;
}

hfd_rc hfd_overview_query_read(hfd_slice query, struct hfd_arena *mem,
                               struct hfd_overview_query *out, struct hfd_err *err)
{
    static const struct params known = {
        list_params, sizeof(list_params) / sizeof(list_params[0]),
        "it takes state, type, search, label, stuck, order, size and after"};
    struct reading r = {.mem = mem, .err = err, .out.list = out};
    hfd_rc rc;

    *out = (struct hfd_overview_query){.size = SIZE_DEFAULT};
    rc = read_all(&r, query, &known);
    return rc == HFD_OK && r.after.p != NULL ? hfd_overview_go_on(r.after, out, err) : rc;
}

hfd_rc hfd_feed_query_read(hfd_slice query, struct hfd_arena *mem, struct hfd_feed_query *out,
                           struct hfd_err *err)
{
    static const struct params known = {feed_params, sizeof(feed_params) / sizeof(feed_params[0]),
                                        "it takes after and size"};
    struct reading r = {.mem = mem, .err = err, .out.feed = out};

    *out = (struct hfd_feed_query){.size = SIZE_DEFAULT, .before = INT64_MAX};
    return read_all(&r, query, &known);
}

hfd_rc hfd_no_query_read(hfd_slice query, struct hfd_arena *mem, struct hfd_err *err)
{
    static const struct params known = {NULL, 0, "it takes none"};
    struct reading r = {.mem = mem, .err = err};

    return read_all(&r, query, &known);
}
