/* See query.h. */
#include "driver/status/query.h"

#define NAME_MAX_BYTES 253

bool hfd_status_name_ok(hfd_slice text)
{
    if (text.len == 0 || text.len > NAME_MAX_BYTES || !hfd_is_alnum(text.p[0]) ||
        !hfd_is_alnum(text.p[text.len - 1]))
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (!hfd_is_alnum(text.p[i]) && memchr("-_.:", text.p[i], 4) == NULL)
            return false;
    return true;
}

/* PROVIDER+CLUSTER: two names around one plus sign. */
static bool cluster_ok(hfd_slice text)
{
    const char *plus = text.len > 0 ? memchr(text.p, '+', text.len) : NULL;
    const size_t at = plus != NULL ? (size_t)(plus - text.p) : 0;

    return plus != NULL && hfd_status_name_ok((hfd_slice){text.p, at}) &&
           hfd_status_name_ok((hfd_slice){plus + 1, text.len - at - 1});
}

static hfd_rc take_type(struct hfd_status_query *q, hfd_slice value, struct hfd_err *err)
{
    const bool cluster = hfd_slice_is(value, "cluster");

    if (q->type_given)
        return HFD_OK;
    if (!cluster && !hfd_slice_is(value, "rsync"))
        return hfd_fail(err, HFD_BAD_REQUEST,
                        "Invalid query type: expected type=rsync or type=cluster");
    q->type_given = true;
    q->type = cluster ? HFD_STATUS_TYPE_CLUSTER : HFD_STATUS_TYPE_RSYNC;
    return HFD_OK;
}

static hfd_rc take_output(struct hfd_status_query *q, hfd_slice value, struct hfd_err *err)
{
    static const char *const names[] = {
        [HFD_STATUS_OUTPUT_ALL] = "all",
        [HFD_STATUS_OUTPUT_SUMMARY] = "summary",
        [HFD_STATUS_OUTPUT_DETAIL] = "detail",
    };

    if (q->output_given)
        return HFD_OK;
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (hfd_slice_is(value, names[i])) {
            q->output_given = true;
            q->output = (enum hfd_status_output)i;
            return HFD_OK;
        }
    return hfd_fail(err, HFD_BAD_REQUEST,
                    "Invalid query output: expected output=summary, output=all or output=detail");
}

static hfd_rc take_value(struct hfd_status_values *values, hfd_slice value, struct hfd_arena *mem,
                         struct hfd_err *err)
{
    if (values->count == HFD_STATUS_VALUES_MAX)
        return hfd_fail(err, HFD_BAD_REQUEST,
                        "a filter is given too often: expected at most %d values",
                        HFD_STATUS_VALUES_MAX);
    if (values->items == NULL)
        values->items = hfd_arena_array(mem, HFD_STATUS_VALUES_MAX, sizeof(*values->items));
    if (values->items == NULL)
        return hfd_fail_nomem(err, "read a query");
    values->items[values->count] = hfd_arena_dup(mem, value);
    return values->items[values->count++].p != NULL ? HFD_OK : hfd_fail_nomem(err, "read a query");
}

static hfd_rc take_instance(struct hfd_status_query *q, hfd_slice value, struct hfd_arena *mem,
                            struct hfd_err *err)
{
    if (q->has_instance)
        return HFD_OK;
    if (value.len == 0)
        return hfd_fail(err, HFD_BAD_REQUEST,
                        "Invalid query instance: expected a ContextId of the history");
    q->has_instance = true;
    q->instance = hfd_arena_dup(mem, value);
    return q->instance.p != NULL ? HFD_OK : hfd_fail_nomem(err, "read a query");
}

hfd_rc hfd_status_query_take(struct hfd_status_query *q, hfd_slice name, hfd_slice value,
                             struct hfd_arena *mem, struct hfd_err *err)
{
    if (hfd_slice_is(name, "type"))
        return take_type(q, value, err);
    if (hfd_slice_is(name, "output"))
        return take_output(q, value, err);
    if (hfd_slice_is(name, "instance"))
        return take_instance(q, value, mem, err);
    if (hfd_slice_is(name, "app"))
        return hfd_status_name_ok(value)
                   ? take_value(&q->apps, value, mem, err)
                   : hfd_fail(err, HFD_BAD_REQUEST,
                              "Invalid app query: expected an adapter's name");
    if (hfd_slice_is(name, "cluster"))
        return cluster_ok(value) ? take_value(&q->clusters, value, mem, err)
                                 : hfd_fail(err, HFD_BAD_REQUEST,
                                            "Invalid cluster query: expected PROVIDER%%2BCLUSTER");
    if (hfd_slice_is(name, "resource"))
        return hfd_status_name_ok(value)
                   ? take_value(&q->resources, value, mem, err)
                   : hfd_fail(err, HFD_BAD_REQUEST,
                              "Invalid resources query: expected an object's name");
    return HFD_OK;
}

bool hfd_status_query_is_whole(const struct hfd_status_query *q)
{
    return q->apps.count + q->clusters.count + q->resources.count == 0;
}

static bool has(const struct hfd_status_values *values, hfd_slice text)
{
    for (size_t i = 0; i < values->count; i++)
        if (hfd_slice_eq(values->items[i], text))
            return true;
    return values->count == 0;
}

bool hfd_status_query_has_app(const struct hfd_status_query *q, hfd_slice app)
{
    return has(&q->apps, app);
}

/* True if the text is "PROVIDER+CLUSTER" of the place. */
static bool is_place(hfd_slice text, const struct hfd_status_place *place)
{
    const size_t at = place->provider.len;

    return text.len == at + 1 + place->cluster.len && hfd_slice_starts(text, place->provider) &&
           text.p[at] == '+' &&
           hfd_slice_eq((hfd_slice){text.p + at + 1, place->cluster.len}, place->cluster);
}

static bool has_place(const struct hfd_status_values *values, const struct hfd_status_place *place)
{
    for (size_t i = 0; i < values->count; i++)
        if (is_place(values->items[i], place))
            return true;
    return values->count == 0;
}

bool hfd_status_query_has(const struct hfd_status_query *q, const struct hfd_status_place *place)
{
    return has(&q->apps, place->app) && has_place(&q->clusters, place) &&
           has(&q->resources, place->name);
}
