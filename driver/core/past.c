/* See past.h. */
#include "driver/core/past.h"

#include "driver/base/clock.h"
#include "driver/core/hint.h"
#include "store/rows_history.h"

#include <stdlib.h>

#define TEXT_MAX_BYTES 8192u /* of a plan, and of milestones */
#define US_PER_MS INT64_C(1000)

static hfd_rc fail_nomem(const struct hfd_ctx *c)
{
    return hfd_fail_nomem(c->err, "plan an operation");
}

/* ---- milestones ---- */

void hfd_milestones_parse(hfd_slice text, struct hfd_milestones *out)
{
    out->count = 0;
    while (text.len > 0 && out->count < HFD_MILESTONES_MAX) {
        const char *end = memchr(text.p, ' ', text.len);
        const size_t len = end != NULL ? (size_t)(end - text.p) : text.len;
        const char *eq = memchr(text.p, '=', len);
        const hfd_slice number =
            eq != NULL ? (hfd_slice){eq + 1, len - (size_t)(eq + 1 - text.p)} : HFD_SLICE_NONE;
        int64_t ms;

        if (eq != NULL && hfd_parse_i64(number, 0, INT64_MAX / US_PER_MS, &ms, NULL) == HFD_OK)
            out->items[out->count++] =
                (struct hfd_milestone){{text.p, (size_t)(eq - text.p)}, ms * US_PER_MS};
        text.p += len + (end != NULL);
        text.len -= len + (end != NULL);
    }
}

hfd_slice hfd_milestone_name(enum hfd_kind kind, hfd_slice adapter, struct hfd_arena *mem)
{
    return hfd_arena_printf(mem, "%c/%.*s", kind == HFD_KIND_CLUSTER ? 'c' : 'n',
                            HFD_SLICE_FMT(adapter));
}

static hfd_rc format_milestones(const struct hfd_ctx *c, const struct hfd_milestones *m,
                                hfd_slice *out)
{
    struct hfd_buf b;

    hfd_buf_init(&b, TEXT_MAX_BYTES);
    for (size_t i = 0; i < m->count; i++) {
        if (i > 0)
            hfd_buf_addc(&b, ' ');
        hfd_buf_add(&b, m->items[i].name);
        hfd_buf_addc(&b, '=');
        hfd_buf_i64(&b, m->items[i].at_us / US_PER_MS);
    }
    return hfd_buf_to_arena(&b, c->mem, out, c->err);
}

/* True if an adapter's last report on a part says that it has done what the operation wants. */
static bool is_done(const struct hfd_part_view *part, hfd_slice adapter, bool removing)
{
    for (size_t i = 0; i < part->report_count; i++) {
        const struct hfd_part_report *r = &part->reports[i];
        const struct hfd_condition *c = hfd_condition_find(
            &r->conditions, removing ? HFD_SLICE("Finalized") : HFD_SLICE("Available"));

        if (hfd_slice_eq(r->adapter, adapter))
            return c != NULL && c->status == HFD_STATUS_TRUE &&
                   r->observed_generation >= part->wanted_generation;
    }
    return false;
}

/* True if it has on all parts of a kind. A part that is being removed waits for Finalized. */
static bool all_done(const struct hfd_parts *parts, enum hfd_kind kind, hfd_slice adapter,
                     bool deleting)
{
    size_t count = 0;

    for (size_t i = 0; i < parts->count; i++) {
        const struct hfd_part_view *part = &parts->items[i].view;

        if (part->kind != kind)
            continue;
        count++;
        if (part->exists && (part->pending || !is_done(part, adapter, deleting || part->leaving)))
            return false;
    }
    return count > 0;
}

/* The adapters that decide for the parts of a kind; they are the same for all of them. */
static struct hfd_adapter_names deciders_of(const struct hfd_ctx *c, const struct hfd_parts *parts,
                                            enum hfd_kind kind)
{
    for (size_t i = 0; i < parts->count; i++)
        if (parts->items[i].view.kind == kind && parts->items[i].view.required.count > 0)
            return parts->items[i].view.required;
    return c->driver->fleet.required[kind];
}

/* Adds the milestones that the parts have reached and that `all` does not have yet. */
static hfd_rc add_reached(const struct hfd_ctx *c, const struct hfd_parts *parts, bool deleting,
                          int64_t at_us, struct hfd_milestones *all)
{
    for (int kind = HFD_KIND_CLUSTER; kind <= HFD_KIND_NODEPOOL; kind++) {
        const struct hfd_adapter_names required = deciders_of(c, parts, (enum hfd_kind)kind);

        for (size_t i = 0; i < required.count && all->count < HFD_MILESTONES_MAX; i++) {
            hfd_slice name;

            if (!all_done(parts, (enum hfd_kind)kind, required.items[i], deleting))
                continue;
            name = hfd_milestone_name((enum hfd_kind)kind, required.items[i], c->mem);
            if (name.p == NULL)
                return fail_nomem(c);
            if (hfd_milestone_find(all, name) == NULL)
                all->items[all->count++] = (struct hfd_milestone){name, at_us};
        }
    }
    return HFD_OK;
}

/* ---- plans ---- */

static struct hfd_past_key key_of(const struct hfd_resource_row *row)
{
    return (struct hfd_past_key){row->kind, row->op, row->op_size};
}

/* @param out  the same operations as in->past */
static hfd_rc load_past(const struct hfd_ctx *c, const struct hfd_past_key *key,
                        struct hfd_estimate_input *in, struct hfd_past **out)
{
    struct hfd_past_list rows;
    struct hfd_past *past;
    hfd_rc rc = hfd_past_row_list(
        c->tx, &(struct hfd_past_query){.key = *key, .limit = HFD_PAST_MAX}, c->mem, &rows, c->err);

    if (rc != HFD_OK)
        return rc;
    past = hfd_arena_array(c->mem, rows.count + 1, sizeof(*past));
    if (past == NULL)
        return fail_nomem(c);
    for (size_t i = 0; i < rows.count; i++) {
        if (rows.rows[i].ending >= HFD_ENDING_COUNT)
            continue;
        past[in->past_count].took_us = rows.rows[i].took_us;
        past[in->past_count].ending = (enum hfd_ending)rows.rows[i].ending;
        past[in->past_count].size = rows.rows[i].size;
        hfd_milestones_parse(rows.rows[i].milestones, &past[in->past_count].milestones);
        in->past_count++;
    }
    in->past = *out = past;
    in->size = key->size;
    return HFD_OK;
}

/* A milestone that came with the end says nothing about the end: an estimate does not use it. */
static void leave_last(const struct hfd_estimate_input *in, struct hfd_past *past)
{
    for (size_t i = 0; i < in->past_count; i++) {
        struct hfd_milestones *all = &past[i].milestones;
        size_t kept = 0;

        for (size_t k = 0; k < all->count; k++)
            if (all->items[k].at_us / US_PER_MS < past[i].took_us / US_PER_MS)
                all->items[kept++] = all->items[k];
        all->count = kept;
    }
}

static hfd_rc make_plan(const struct hfd_ctx *c, const struct hfd_estimate_input *in,
                        hfd_slice *out)
{
    struct hfd_plan plan;
    struct hfd_buf b;

    hfd_estimate_plan(in, &plan);
    hfd_buf_init(&b, TEXT_MAX_BYTES);
    hfd_plan_format(&b, &plan);
    return hfd_buf_to_arena(&b, c->mem, out, c->err);
}

static struct hfd_estimate_input input_of(const struct hfd_resource_row *row,
                                          const struct hfd_milestones *milestones)
{
    return (struct hfd_estimate_input){
        .prior_us = row->op_estimate_us - row->op_started_us,
        .deadline_us = row->op_deadline_us - row->op_started_us,
        .milestones = milestones,
    };
}

/* The number of binary digits of the number of parts: 1, 2-3, 4-7, ... parts are alike. */
static int64_t size_of(const struct hfd_parts *parts)
{
    size_t count = 0;
    int64_t digits = 0;

    for (size_t i = 0; i < parts->count; i++)
        count += parts->items[i].view.exists && !parts->items[i].view.leaving;
    for (; count > 0; count /= 2)
        digits++;
    return digits;
}

/* ---- usual times ---- */

static int by_time(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* The median time of a milestone among past operations that were done; 0 = none has it. */
static int64_t median_of(const struct hfd_estimate_input *in, hfd_slice name)
{
    int64_t times[HFD_PAST_MAX];
    size_t count = 0;

    for (size_t i = 0; i < in->past_count && count < HFD_PAST_MAX; i++) {
        const struct hfd_milestone *m = hfd_milestone_find(&in->past[i].milestones, name);

        if (in->past[i].ending == HFD_ENDING_DONE && m != NULL && m->at_us > 0)
            times[count++] = m->at_us;
    }
    if (count == 0)
        return 0;
    qsort(times, count, sizeof(times[0]), by_time);
    return times[count / 2];
}

/* When each adapter that decides usually is done, as milestones. A remote's are those of the past.
 */
static hfd_rc usual_of(const struct hfd_ctx *c, const struct hfd_estimate_input *in, hfd_slice *out)
{
    struct hfd_milestones usual = {.count = 0};

    for (int kind = HFD_KIND_CLUSTER; kind <= HFD_KIND_NODEPOOL; kind++) {
        const struct hfd_adapter_names *required = &c->driver->fleet.required[kind];

        for (size_t i = 0; i < required->count && usual.count < HFD_MILESTONES_MAX; i++) {
            const hfd_slice name =
                hfd_milestone_name((enum hfd_kind)kind, required->items[i], c->mem);
            const int64_t at_us = name.p != NULL ? median_of(in, name) : 0;

            if (name.p == NULL)
                return fail_nomem(c);
            if (at_us > 0)
                usual.items[usual.count++] = (struct hfd_milestone){name, at_us};
        }
    }
    for (size_t i = 0; hfd_driver_is_remote(c->driver) && i < in->past_count; i++) {
        const struct hfd_milestones *seen = &in->past[i].milestones;

        for (size_t k = 0; k < seen->count && usual.count < HFD_MILESTONES_MAX; k++)
            if (hfd_milestone_find(&usual, seen->items[k].name) == NULL)
                usual.items[usual.count++] =
                    (struct hfd_milestone){seen->items[k].name, median_of(in, seen->items[k].name)};
    }
    return format_milestones(c, &usual, out);
}

/* ---- an operation ---- */

/* Plans an operation that begins. The plan is kept in the forecast until past or settings change.
 */
static hfd_rc forecast(const struct hfd_ctx *c, const struct hfd_past_key *key,
                       struct hfd_estimate_input *in, struct hfd_resource_row *row)
{
    struct hfd_forecast_row f;
    struct hfd_past *past;
    hfd_rc rc = hfd_forecast_row_get(c->tx, key, c->mem, &f, c->err);

    if (rc == HFD_NOT_FOUND ||
        (rc == HFD_OK && (f.prior_us != in->prior_us || f.deadline_us != in->deadline_us))) {
        f = (struct hfd_forecast_row){.prior_us = in->prior_us, .deadline_us = in->deadline_us};
        rc = load_past(c, key, in, &past);
        if (rc == HFD_OK)
            rc = usual_of(c, in, &f.usual);
        if (rc == HFD_OK) {
            leave_last(in, past);
            rc = make_plan(c, in, &f.plan);
        }
        if (rc == HFD_OK)
            rc = hfd_forecast_row_put(c->tx, key, &f, c->err);
    }
    row->op_plan = f.plan;
    row->op_usual = f.usual;
    return rc;
}

hfd_rc hfd_past_begin(const struct hfd_ctx *c, const struct hfd_parts *parts,
                      struct hfd_resource_row *row)
{
    struct hfd_milestones done = {.count = 0};
    struct hfd_estimate_input in = input_of(row, &done);
    struct hfd_plan_step first;
    struct hfd_past_key key;
    hfd_rc rc;

    row->op_size = size_of(parts);
    key = key_of(row);
    rc = forecast(c, &key, &in, row);
    if (rc == HFD_OK && hfd_plan_next(row->op_plan, 0, &first))
        row->op_expected_us = row->op_started_us + first.done_s * HFD_US_PER_S;
    /* Milestones reached before count as reached at 0: nothing is learned from those. */
    if (rc == HFD_OK)
        rc = add_reached(c, parts, row->op == HFD_OP_DELETE, 0, &done);
    return rc == HFD_OK ? format_milestones(c, &done, &row->op_milestones) : rc;
}

/* The operation goes on: its parts may have reached more milestones. */
static hfd_rc follow(const struct hfd_ctx *c, const struct hfd_parts *parts,
                     struct hfd_resource_row *row)
{
    struct hfd_milestones done = {.count = 0};
    struct hfd_estimate_input in = input_of(row, &done);
    const struct hfd_past_key key = key_of(row);
    struct hfd_past *past;
    size_t known;
    hfd_rc rc;

    hfd_milestones_parse(row->op_milestones, &done);
    known = done.count;
    in.elapsed_us = c->now_us > row->op_started_us ? c->now_us - row->op_started_us : 0;
    rc = add_reached(c, parts, row->op == HFD_OP_DELETE, in.elapsed_us, &done);
    if (rc != HFD_OK || done.count == known || in.elapsed_us >= in.deadline_us)
        return rc;
    rc = format_milestones(c, &done, &row->op_milestones);
    if (rc == HFD_OK)
        rc = load_past(c, &key, &in, &past);
    if (rc != HFD_OK)
        return rc;
    leave_last(&in, past);
    return hfd_estimate_is_news(&in, known) ? make_plan(c, &in, &row->op_plan) : HFD_OK;
}

/* The last adapters bring the end, so their milestones are not in the row yet. */
static hfd_rc add_last(const struct hfd_ctx *c, const struct hfd_parts *parts,
                       struct hfd_resource_row *row)
{
    struct hfd_milestones done = {.count = 0};
    size_t known;
    hfd_rc rc;

    hfd_milestones_parse(row->op_milestones, &done);
    known = done.count;
    rc = add_reached(c, parts, row->op == HFD_OP_DELETE, row->updated_us - row->op_started_us,
                     &done);
    return rc == HFD_OK && done.count > known ? format_milestones(c, &done, &row->op_milestones)
                                              : rc;
}

static hfd_rc end(const struct hfd_ctx *c, enum hfd_ending ending, int64_t ended_us,
                  struct hfd_resource_row *row)
{
    const struct hfd_past_key key = key_of(row);
    const struct hfd_past_row past = {.took_us = ended_us - row->op_started_us,
                                      .ended_us = ended_us,
                                      .ending = (int)ending,
                                      .milestones = row->op_milestones};

    row->op_plan = row->op_milestones = row->op_usual = HFD_SLICE_NONE;
    /* An operation that ended as it began teaches nothing. Less than no time: the clock was set. */
    return past.took_us > 0 ? hfd_past_row_add(c->tx, &key, &past, HFD_PAST_MAX, c->err) : HFD_OK;
}

static bool goes_on(const struct hfd_resource_row *row)
{
    return row->state == HFD_STATE_CREATING || row->state == HFD_STATE_UPDATING ||
           row->state == HFD_STATE_DELETING;
}

static enum hfd_ending ending_of(const struct hfd_resource_row *row)
{
    if (row->state != HFD_STATE_FAILED)
        return HFD_ENDING_DONE;
    return hfd_slice_is(row->fail_code, "RES-105") ? HFD_ENDING_LATE : HFD_ENDING_FAILED;
}

hfd_rc hfd_past_follow(const struct hfd_ctx *c, const struct hfd_parts *parts,
                       struct hfd_resource_row *row)
{
    hfd_rc rc = HFD_OK;

    if (row->op_plan.len == 0)
        return HFD_OK;
    if (goes_on(row))
        return follow(c, parts, row);
    if (ending_of(row) == HFD_ENDING_DONE && row->updated_us > row->op_started_us)
        rc = add_last(c, parts, row);
    return rc == HFD_OK ? end(c, ending_of(row), row->updated_us, row) : rc;
}

hfd_rc hfd_past_leave(const struct hfd_ctx *c, struct hfd_resource_row *row)
{
    if (row->op_plan.len == 0)
        return HFD_OK;
    if (!goes_on(row))
        return end(c, ending_of(row), row->updated_us, row);
    if (c->now_us >= row->op_deadline_us)
        return end(c, HFD_ENDING_LATE, row->op_deadline_us, row);
    row->op_plan = row->op_milestones = row->op_usual = HFD_SLICE_NONE;
    return HFD_OK;
}
