/* See resource.h. */
#include "driver/core/resource.h"

#include "driver/base/check.h"
#include "driver/base/clock.h"
#include "driver/base/foreign.h"
#include "driver/core/drift.h"
#include "driver/core/driver.h"
#include "driver/core/history.h"
#include "driver/core/input.h"
#include "driver/core/lookup.h"
#include "driver/core/outcome.h"
#include "driver/core/output.h"
#include "driver/core/parts.h"
#include "driver/core/past.h"
#include "driver/core/protect.h"
#include "driver/core/sources.h"
#include "driver/core/transition.h"
#include "store/rows_resource.h"

/* The decision tables are in life.c, the judgement is in outcome.c. */

#define INCARNATION_BYTES 8
#define BUSY_FIELD_MAX_BYTES 100 /* of a field that a 409 names */
#define BUSY_WAITS_MAX_BYTES 250 /* of what is waited for, in a 409 */

static hfd_rc make_plan(const struct hfd_ctx *c, const struct hfd_call *call,
                        const struct hfd_resource_row *row, struct hfd_validated *out,
                        struct hfd_put_plan *plan);

/* Checks If-Match with a plan: that of now is a tag beside the resource's own. */
static hfd_rc check_plan(const struct hfd_ctx *c, const struct hfd_call *call,
                         const struct hfd_resource_row *row, struct hfd_precondition_on *is)
{
    struct hfd_validated now;
    struct hfd_put_plan plan;
    hfd_rc rc = make_plan(c, call, row, &now, &plan);

    if (rc == HFD_OK && now.plan.len > 0) {
        is->alias = hfd_arena_printf(c->mem, "\"%.*s\"", HFD_SLICE_FMT(now.plan));
        if (is->alias.p == NULL)
            return hfd_fail_nomem(c->err, "compare a plan");
    }
    if (rc == HFD_OK)
        rc = hfd_precondition_check(&call->match, is, c->err);
    return rc == HFD_PRECONDITION && now.plan.len > 0 ? hfd_put_plan_fail(c, &plan) : rc;
}

/* Checks the preconditions of a PUT or DELETE. @param row  NULL = there is no such resource */
static hfd_rc check_match(const struct hfd_ctx *c, const struct hfd_call *call,
                          const struct hfd_resource_row *row)
{
    struct hfd_precondition_on is = {.exists = row != NULL};
    hfd_rc rc = HFD_OK;

    if (call->match.if_match.len + call->match.if_none_match.len == 0)
        return HFD_OK;
    if (is.exists && row->state == HFD_STATE_READY)
        rc = hfd_resource_row_tag(row, c->mem, &is.etag, c->err);
    if (rc == HFD_OK && call->input != NULL && hfd_put_plan_is_asked(call->match.if_match))
        return check_plan(c, call, row, &is);
    return rc == HFD_OK ? hfd_precondition_check(&call->match, &is, c->err) : rc;
}

/* Tells whether the last operation began with the preconditions of this call, if it has any. */
static hfd_rc began_so(const struct hfd_ctx *c, const struct hfd_call *call,
                       const struct hfd_resource_row *row, bool *out)
{
    hfd_slice match;
    const hfd_rc rc = hfd_precondition_digest(&call->match, c->mem, &match, c->err);

    *out = rc == HFD_OK && (match.len == 0 || hfd_slice_eq(match, row->op_match));
    return rc;
}

/* A path for another kind: 204 would let the orchestrator forget what still exists. */
static hfd_rc fail_other_path(const struct hfd_resource_row *row, struct hfd_err *err)
{
    const bool cluster = row->kind == HFD_KIND_CLUSTER;

    return hfd_fail_field(err, HFD_INVALID, "GUResID",
                          "this path is that of %ss, and the resource is a %s: nothing was "
                          "deleted. Register the driver of type '%.*s' "
                          "with the path of %ss",
                          cluster ? "nodepool" : "cluster", cluster ? "cluster" : "nodepool",
                          HFD_SLICE_FMT(row->type), cluster ? "cluster" : "nodepool");
}

/* Moves a row into a new operation on these parts. The row is not written. */
static hfd_rc begin(const struct hfd_ctx *c, const struct hfd_call *call, enum hfd_op op,
                    const struct hfd_parts *parts, struct hfd_resource_row *row)
{
    const struct hfd_move move = {
        .to = hfd_resource_state_of_op(op), .at_us = c->now_us, .main = hfd_parts_main(parts)};
    hfd_rc rc = hfd_past_leave(c, row);

    if (rc == HFD_OK)
        rc = hfd_precondition_digest(&call->match, c->mem, &row->op_match, c->err);
    if (rc != HFD_OK)
        return rc;
    hfd_resource_set_op(c, op, row);
    rc = hfd_past_begin(c, parts, row);
    return rc == HFD_OK ? hfd_resource_move(c, row, &move) : rc;
}

/* ---- GET ---- */

/* Finds the row for a read, and whether a lost one can be made again. */
static hfd_rc find_for_read(const struct hfd_ctx *c, const struct hfd_call *call,
                            struct hfd_found *found, bool *restorable)
{
    enum hfd_lost lost = HFD_LOST_NOTHING;
    hfd_rc rc = hfd_lookup(c, call, found);

    if (rc == HFD_OK)
        rc = hfd_lookup_lost(c, call, found, &lost);
    *restorable = lost != HFD_LOST_NOTHING;
    return rc;
}

hfd_rc hfd_resource_get(struct hfd_txn *tx, const struct hfd_call *call, struct hfd_answer_doc *out,
                        struct hfd_err *err)
{
    const struct hfd_ctx c = hfd_ctx_of(tx, call, err);
    struct hfd_found f;
    bool restorable;
    hfd_rc rc;

    *out = (struct hfd_answer_doc){.answer = HFD_ANSWER_ABSENT};
    rc = find_for_read(&c, call, &f, &restorable);
    if (rc != HFD_OK)
        return rc;
    out->decided = !restorable;
    return f.exists && !hfd_lookup_other_kind(call, &f.row) ? hfd_answer_row(&c, &f.row, out)
                                                            : HFD_OK;
}

/* hfd_lookup, and makes a lost row again. */
static hfd_rc lookup_or_restore(const struct hfd_ctx *c, const struct hfd_call *call,
                                struct hfd_found *out)
{
    enum hfd_lost lost = HFD_LOST_NOTHING;
    hfd_rc rc = hfd_lookup(c, call, out);

    if (rc == HFD_OK)
        rc = hfd_lookup_lost(c, call, out, &lost);
    return rc == HFD_OK ? hfd_lookup_restore(c, call, lost, out) : rc;
}

hfd_rc hfd_resource_get_restored(struct hfd_txn *tx, const struct hfd_call *call,
                                 struct hfd_answer_doc *out, struct hfd_err *err)
{
    struct hfd_fleet_changes changes = {.mem = call->mem};
    struct hfd_ctx c = hfd_ctx_of(tx, call, err);
    struct hfd_found f;
    hfd_rc rc;

    c.changes = &changes;
    *out = (struct hfd_answer_doc){.answer = HFD_ANSWER_ABSENT, .decided = true};
    rc = lookup_or_restore(&c, call, &f);
    if (rc == HFD_OK)
        rc = hfd_resource_observe_others(&c, call->guresid);
    if (rc != HFD_OK || !f.exists || hfd_lookup_other_kind(call, &f.row))
        return rc;
    return hfd_answer_row(&c, &f.row, out);
}

/* ---- PUT ---- */

/*
 * " in cluster.spec.region, and in others": where an order differs from the one under way. Empty
 * if that cannot be told, as for secrets.
 */
static hfd_slice differs_in(const struct hfd_ctx *c, const struct hfd_call *call,
                            const struct hfd_resource_row *row)
{
    struct hfd_resource_row copy = *row;
    struct hfd_preview preview;
    struct hfd_ctx own = *c;
    struct hfd_err why;
    const struct hfd_preview_part *first;
    size_t fields = 0;
    hfd_slice field;
    bool anew, own_part;

    own.err = &why; /* ignored: an order that is wrong is refused when it is repeated */
    if (hfd_parts_preview(&own, call, &copy, &preview, &anew) != HFD_OK || preview.count == 0)
        return HFD_SLICE("");
    for (size_t i = 0; i < preview.count; i++)
        fields += preview.parts[i].field_count > 0 ? preview.parts[i].field_count : 1;
    first = &preview.parts[0];
    field = first->field_count > 0 ? first->fields[0] : HFD_SLICE("");
    own_part = first->kind == row->kind;
    return hfd_arena_printf(
        c->mem, " in %s%s%.*s%s%s%.*s%s", first->kind == HFD_KIND_CLUSTER ? "cluster" : "nodepool",
        own_part ? "" : "s[", own_part ? 0 : (int)first->name.len,
        first->name.p != NULL ? first->name.p : "", own_part ? "" : "]", field.len > 0 ? "." : "",
        HFD_FOREIGN_CUT(field, BUSY_FIELD_MAX_BYTES), fields > 1 ? ", and in others" : "");
}

/*
 * Answers a PUT that another operation is in the way of: 409 with its hint. The message says since
 * when, and in which field the order differs. Writes nothing.
 */
static hfd_rc answer_busy(const struct hfd_ctx *c, const struct hfd_call *call,
                          const struct hfd_resource_row *row, struct hfd_answer_doc *out)
{
    const bool deleting = row->state == HFD_STATE_DELETING;
    const hfd_slice in = deleting || call->input == NULL ? HFD_SLICE("") : differs_in(c, call, row);
    hfd_rc rc = hfd_answer_put(c, row, true, out);
    char at[HFD_TIME_TEXT_MAX];
    hfd_slice waits;

    if (rc != HFD_OK)
        return rc;
    waits = out->hint.message;
    (void)hfd_time_format_s(row->op_started_us, at);
    out->hint.message = hfd_arena_printf(
        c->mem, "%s since %.5sZ%s%.*s: repeat %s when that is done%s%.*s",
        deleting ? "the resource is being deleted" : "another order is being created",
        at + sizeof("2025-01-01T") - 1, deleting ? "" : "; this one differs", HFD_SLICE_FMT(in),
        deleting ? "the order" : "it", waits.len > 0 ? ". Present state: " : "",
        HFD_FOREIGN_CUT(waits, BUSY_WAITS_MAX_BYTES));
    return in.p != NULL && out->hint.message.p != NULL
               ? HFD_OK
               : hfd_fail_nomem(c->err, "say what is under way");
}

/* True if a read may answer a PUT with the bytes of the last one. */
static bool may_peek(const struct hfd_call *call, const struct hfd_resource_row *row)
{
    const struct hfd_driver *d = call->driver;

    return !hfd_lookup_other_kind(call, row) &&
           hfd_keyring_digest_is(d->ring, row->raw_digest, call->body) &&
           /* A rotation of keys: the writer seals a new cookie. */
           hfd_keyring_is_active(d->ring, row->raw_digest) &&
           /* The settings may no longer serve its type: then the bytes are refused as any others.
            */
           hfd_input_kind_of(&d->rules, row->type) == (int)row->kind &&
           !hfd_input_lacks_outputs(&d->rules, row->type);
}

hfd_rc hfd_resource_put_peek(struct hfd_txn *tx, const struct hfd_call *call,
                             struct hfd_answer_doc *out, struct hfd_err *err)
{
    const struct hfd_ctx c = hfd_ctx_of(tx, call, err);
    struct hfd_found f;
    bool began;
    hfd_rc rc;

    *out = (struct hfd_answer_doc){0};
    rc = hfd_lookup(&c, call, &f);
    if (rc != HFD_OK || !f.exists || !may_peek(call, &f.row))
        return rc;
    rc = began_so(&c, call, &f.row, &began);
    if (rc != HFD_OK || !began)
        return rc;
    switch (hfd_life_put((enum hfd_state)f.row.state, true)) {
    case HFD_PUT_ANSWER:
        return f.row.mendable ? HFD_OK : hfd_answer_put(&c, &f.row, false, out);
    case HFD_PUT_CONFLICT:
        return answer_busy(&c, call, &f.row, out);
    case HFD_PUT_CREATE:
    case HFD_PUT_UPDATE:
    case HFD_PUT_RETRY:
        break;
    }
    return HFD_OK;
}

static hfd_rc new_incarnation(const struct hfd_ctx *c, struct hfd_resource_row *row)
{
    unsigned char bytes[INCARNATION_BYTES];
    uint64_t v = 0;

    hfd_rng_bytes(c->driver->rng, bytes, sizeof(bytes));
    for (size_t i = 0; i < sizeof(bytes); i++)
        v = v << 8 | bytes[i];
    row->incarnation = hfd_arena_printf(c->mem, "%016llx", (unsigned long long)v);
    return row->incarnation.p != NULL ? HFD_OK
                                      : hfd_fail_nomem(c->err, "begin a life of a resource");
}

static hfd_rc seal_cookie(const struct hfd_ctx *c, const struct hfd_parts *parts,
                          struct hfd_resource_row *row)
{
    struct hfd_cookie cookie = {
        .type = row->type,
        .kind = row->kind,
        .incarnation = row->incarnation,
        .cluster_id = hfd_backend_id_is_given(row->cluster_id) ? row->cluster_id : HFD_SLICE_NONE,
        .digest = row->digest,
        .backend = c->driver->backend,
        .protect = row->protect,
    };
    hfd_slice *ids = hfd_arena_array(c->mem, parts->count + 1, sizeof(*ids));

    if (ids == NULL)
        return hfd_fail_nomem(c->err, "seal a cookie");
    for (size_t i = 0; i < parts->count; i++)
        if (parts->items[i].row.kind == HFD_KIND_NODEPOOL && !parts->items[i].row.leaving &&
            hfd_backend_id_is_given(parts->items[i].row.fleet_id))
            ids[cookie.nodepool_count++] = parts->items[i].row.fleet_id;
    cookie.nodepool_ids = ids;
    return hfd_cookie_seal(
        &(struct hfd_cookie_ctx){c->driver->ring, c->driver->rng, row->guresid, c->mem}, &cookie,
        &row->cookie, c->err);
}

static hfd_rc set_digests(const struct hfd_ctx *c, const struct hfd_call *call,
                          struct hfd_resource_row *row)
{
    unsigned char raw[HFD_DIGEST_BYTES], canonical[HFD_DIGEST_BYTES];

    hfd_keyring_digest(c->driver->ring, call->body, raw);
    hfd_keyring_digest(c->driver->ring, call->input->canonical, canonical);
    row->raw_digest = hfd_arena_dup(c->mem, (hfd_slice){(const char *)raw, sizeof(raw)});
    row->digest = hfd_arena_dup(c->mem, (hfd_slice){(const char *)canonical, sizeof(canonical)});
    return row->raw_digest.p != NULL && row->digest.p != NULL
               ? HFD_OK
               : hfd_fail_nomem(c->err, "store the digest of an input");
}

/* A PUT that changes something, after its parts were made. */
struct put {
    const struct hfd_call *call;
    struct hfd_applied now;
    enum hfd_op op;
    bool new_cookie;
};

/* Has the adapter of this program admit an order. @return as hfd_adapter_hooks.admit */
static hfd_rc may_be_made(const struct hfd_ctx *c, const struct hfd_call *call,
                          const struct hfd_resource_row *was)
{
    const struct hfd_adapter_hooks *hooks = c->driver->hooks;

    return hooks != NULL ? hooks->admit(hooks->ctx, c, call, was) : HFD_OK;
}

/* Has the adapter of this program admit the order, and keeps what it needs of it later. */
static hfd_rc admit(const struct hfd_ctx *c, const struct hfd_call *call,
                    const struct hfd_resource_row *was)
{
    const hfd_rc rc = call->repair ? HFD_OK : may_be_made(c, call, was);

    if (rc != HFD_OK || call->repair || c->driver->hooks == NULL)
        return rc;
    return hfd_order_secrets_keep(c, call->guresid, call->input->credentials);
}

/* Writes the row with its cookie, and judges at once what the parts already say. */
static hfd_rc write_put(const struct hfd_ctx *c, const struct put *put,
                        struct hfd_resource_row *row, struct hfd_answer_doc *out)
{
    const struct hfd_parts *parts = &put->now.parts;
    const bool rotated =
        !put->call->repair && !hfd_keyring_is_active(c->driver->ring, row->raw_digest);
    const bool moved = !hfd_slice_eq(row->protect, put->call->input->protect);
    hfd_rc rc;

    row->protect = put->call->input->protect;
    rc = put->call->repair ? HFD_OK : set_digests(c, put->call, row);
    if (rc == HFD_OK && (put->new_cookie || rotated || moved))
        rc = seal_cookie(c, parts, row);
    if (rc == HFD_OK)
        rc = begin(c, put->call, put->op, parts, row);
    if (rc == HFD_OK)
        rc = hfd_judge_row(c, parts, row);
    if (rc == HFD_OK)
        rc = hfd_past_follow(c, parts, row);
    if (rc == HFD_OK)
        rc = hfd_resource_row_put(c->tx, row, c->err);
    if (rc == HFD_OK)
        rc = hfd_resource_observe_others(c, row->guresid);
    if (rc == HFD_OK)
        rc = hfd_answer_put(c, row, false, out);
    out->to = (enum hfd_state)row->state;
    return rc;
}

static hfd_rc put_new(const struct hfd_ctx *c, const struct hfd_call *call,
                      struct hfd_answer_doc *out)
{
    struct hfd_resource_row row = {
        .guresid = call->guresid,
        .type = call->input->type,
        .kind = call->input->kind,
        .created_us = c->now_us,
    };
    struct put put = {.call = call, .op = HFD_OP_CREATE, .new_cookie = true};
    hfd_rc rc;

    rc = check_match(c, call, NULL);
    if (rc == HFD_OK)
        rc = new_incarnation(c, &row);
    if (rc == HFD_OK)
        rc = admit(c, call, NULL);
    if (rc == HFD_OK)
        rc = hfd_parts_apply(c, call, &row, &put.now);
    if (rc == HFD_OK) /* not before: what is refused here has written nothing */
        rc = hfd_history_begin(c, &row);
    return rc == HFD_OK ? write_put(c, &put, &row, out) : rc;
}

/* The type of a resource stays. */
static hfd_rc check_type(const struct hfd_resource_row *row, const struct hfd_input *in,
                         struct hfd_err *err)
{
    if (hfd_slice_eq(row->type, in->type))
        return HFD_OK;
    return hfd_fail_field(err, HFD_IMMUTABLE, "type",
                          "the type of a resource cannot change from '%.*s' to '%.*s'",
                          HFD_SLICE_FMT(row->type), HFD_SLICE_FMT(in->type));
}

/* A resource that the backend still looks for has no output, and is updating. */
static enum hfd_op op_of_put(const struct hfd_resource_row *row, bool anew)
{
    const bool was_ready = row->output.len > 0;

    return (was_ready && !anew) || row->state == HFD_STATE_UPDATING ? HFD_OP_UPDATE : HFD_OP_CREATE;
}

/* Update, re-target and new attempt. same: the input is the one of the present state. */
static hfd_rc put_change(const struct hfd_ctx *c, const struct hfd_call *call, bool same,
                         struct hfd_resource_row *row, struct hfd_answer_doc *out)
{
    struct put put = {.call = call};
    struct hfd_instance before;
    hfd_rc rc;

    if (!call->repair) {
        row->repairs = HFD_SLICE("");
        row->repair_us = 0;
    }
    rc = check_type(row, call->input, c->err);
    if (rc == HFD_OK)
        rc = admit(c, call, row);
    if (rc == HFD_OK)
        rc = hfd_instance_read(c, row, &before);
    if (rc == HFD_OK)
        rc = hfd_parts_apply(c, call, row, &put.now);
    if (rc == HFD_OK)
        rc = hfd_instance_keep(c, &before);
    put.op = op_of_put(row, put.now.anew);
    if (rc == HFD_OK && put.now.anew) {
        row->degraded = false;
        row->output = HFD_SLICE_NONE;
        row->secrets = HFD_SLICE_NONE;
        rc = hfd_history_keep_creation(c, row);
        if (rc == HFD_OK)
            rc = new_incarnation(c, row);
    }
    if (rc != HFD_OK)
        return rc;
    put.new_cookie = put.now.made || !same;
    return write_put(c, &put, row, out);
}

/*
 * HyperFleet may have changed since the cookie of a restored row was made. So the first PUT after a
 * restoration updates, even with the same input, unless it is a creation, which has seen no other.
 * Drift is mended.
 */
static enum hfd_put_action put_action(const struct hfd_resource_row *row, bool same)
{
    const enum hfd_put_action action = hfd_life_put((enum hfd_state)row->state, same);
    const bool restored = hfd_slice_eq(row->raw_digest, row->digest);

    if (action == HFD_PUT_ANSWER && row->state == HFD_STATE_READY && row->mendable)
        return HFD_PUT_UPDATE;
    return action == HFD_PUT_ANSWER && restored && row->state != HFD_STATE_CREATING ? HFD_PUT_UPDATE
                                                                                    : action;
}

/* Writes a row whose operation goes on, with a new cookie. A restored row waits for its update. */
static hfd_rc renew_cookie(const struct hfd_ctx *c, const struct hfd_call *call,
                           struct hfd_resource_row *row)
{
    const bool restored = hfd_slice_eq(row->raw_digest, row->digest);
    struct hfd_parts parts;
    hfd_rc rc = hfd_parts_load(c, row->guresid, &parts);

    if (rc == HFD_OK && !restored)
        rc = set_digests(c, call, row);
    if (rc == HFD_OK)
        rc = seal_cookie(c, &parts, row);
    return rc == HFD_OK ? hfd_resource_row_put(c->tx, row, c->err) : rc;
}

/*
 * Answers a PUT that changes nothing. After a rotation of keys it hands out a new cookie, and the
 * resource does not need the old key any more. A restored row waits for its update.
 */
static hfd_rc put_same(const struct hfd_ctx *c, const struct hfd_call *call,
                       struct hfd_resource_row *row, struct hfd_answer_doc *out)
{
    const bool rotated = !hfd_keyring_is_active(c->driver->ring, row->raw_digest) &&
                         !hfd_slice_eq(row->raw_digest, row->digest);
    const hfd_rc rc = rotated ? renew_cookie(c, call, row) : HFD_OK;

    return rc == HFD_OK ? hfd_answer_put(c, row, false, out) : rc;
}

/* Answers a PUT that changes the protection alone: no operation begins, also after a failure. */
static hfd_rc put_protection(const struct hfd_ctx *c, const struct hfd_call *call,
                             struct hfd_resource_row *row, struct hfd_answer_doc *out)
{
    hfd_rc rc;

    row->protect = call->input->protect;
    rc = renew_cookie(c, call, row);
    return rc == HFD_OK ? hfd_answer_put(c, row, false, out) : rc;
}

/*
 * Checks the preconditions of a PUT. While the resource is being deleted, 409 comes first.
 * @param polls   the order is the last one
 * @param as_get  they held when its operation began, and would not for another one
 */
static hfd_rc check_put(const struct hfd_ctx *c, const struct hfd_call *call,
                        const struct hfd_resource_row *row, bool polls, bool *as_get)
{
    bool began;
    hfd_rc rc = began_so(c, call, row, &began);

    *as_get = false;
    if (rc != HFD_OK || row->state == HFD_STATE_DELETING)
        return rc;
    rc = check_match(c, call, row);
    *as_get = rc == HFD_PRECONDITION && polls && began;
    return *as_get ? HFD_OK : rc;
}

static hfd_rc put_existing(const struct hfd_ctx *c, const struct hfd_call *call,
                           struct hfd_resource_row *row, struct hfd_answer_doc *out)
{
    const bool same = hfd_keyring_digest_is(c->driver->ring, row->digest, call->input->canonical);
    const enum hfd_put_action action = put_action(row, same);
    const bool polls = same && (action == HFD_PUT_ANSWER || action == HFD_PUT_RETRY);
    bool as_get;
    const hfd_rc rc = check_put(c, call, row, polls, &as_get);

    out->from = out->to = (enum hfd_state)row->state;
    if (rc != HFD_OK)
        return rc;
    if (polls &&
        hfd_protect_is_ordered(row->protect) != hfd_protect_is_ordered(call->input->protect))
        return put_protection(c, call, row, out);
    if (as_get)
        return hfd_answer_put(c, row, false, out);
    switch (action) {
    case HFD_PUT_ANSWER:
        return put_same(c, call, row, out);
    case HFD_PUT_CONFLICT:
        return answer_busy(c, call, row, out);
    case HFD_PUT_UPDATE:
    case HFD_PUT_RETRY:
        return put_change(c, call, same, row, out);
    case HFD_PUT_CREATE:
        break;
    }
    return hfd_fail(c->err, HFD_CORRUPT, "resource %.*s is in no known state",
                    HFD_SLICE_FMT(row->guresid));
}

/* ---- repair ---- */

static bool may_repair(const struct hfd_ctx *c, const struct hfd_resource_row *row)
{
    return c->driver->drift == HFD_DRIFT_REPAIR &&
           (row->state == HFD_STATE_READY || row->state == HFD_STATE_FAILED);
}

hfd_rc hfd_resource_repair(const struct hfd_ctx *given, hfd_slice guresid, int64_t later_us)
{
    struct hfd_fleet_changes changes = {.mem = given->mem};
    struct hfd_call call = {.driver = given->driver,
                            .now_us = given->now_us,
                            .caller = HFD_SLICE(HFD_IDENTITY_SYSTEM),
                            .guresid = guresid,
                            .mem = given->mem,
                            .repair = true};
    struct hfd_answer_doc answer = {.answer = HFD_ANSWER_ABSENT};
    struct hfd_ctx c = *given;
    struct hfd_resource_row row;
    struct hfd_parts parts;
    struct hfd_input input;
    hfd_rc rc = hfd_resource_row_get(c.tx, guresid, c.mem, &row, c.err);

    if (rc != HFD_OK)
        return rc == HFD_NOT_FOUND ? HFD_OK : rc;
    if (later_us != 0 || !may_repair(&c, &row)) {
        row.repair_us = may_repair(&c, &row) ? later_us : 0;
        return hfd_resource_row_put(c.tx, &row, c.err);
    }
    c.changes = &changes;
    rc = hfd_parts_load(&c, guresid, &parts);
    if (rc == HFD_OK)
        rc = hfd_drift_order(&c, &parts, &row, &input);
    call.input = &input;
    if (rc == HFD_OK)
        rc = hfd_drift_note_repair(&c, &parts, &row);
    return rc == HFD_OK ? put_change(&c, &call, true, &row, &answer) : rc;
}

/* ---- a PUT ---- */

/* A writer goes on with a late resource: records that first. */
static hfd_rc record_late(const struct hfd_ctx *c, struct hfd_found *f)
{
    return f->is_late ? hfd_resource_record_move(c, f->stored, &f->row, &f->late) : HFD_OK;
}

/* A lost row that the backend would have to look for is not restored: a PUT makes it anyway. */
hfd_rc hfd_resource_put(struct hfd_txn *tx, const struct hfd_call *call, struct hfd_answer_doc *out,
                        struct hfd_err *err)
{
    struct hfd_fleet_changes changes = {.mem = call->mem};
    struct hfd_ctx c = hfd_ctx_of(tx, call, err);
    enum hfd_lost lost = HFD_LOST_NOTHING;
    struct hfd_found f;
    hfd_rc rc;

    HFD_ASSERT(call->input != NULL);
    c.changes = &changes;
    *out = (struct hfd_answer_doc){.from = HFD_STATE_ABSENT};
    rc = hfd_lookup(&c, call, &f);
    if (rc == HFD_OK)
        rc = hfd_lookup_lost(&c, call, &f, &lost);
    if (rc == HFD_OK && lost == HFD_LOST_IN_ROWS)
        rc = hfd_lookup_restore(&c, call, lost, &f);
    if (rc == HFD_OK)
        rc = record_late(&c, &f);
    if (rc != HFD_OK)
        return rc;
    return f.exists ? put_existing(&c, call, &f.row, out) : put_new(&c, call, out);
}

/* ---- DELETE ---- */

hfd_rc hfd_resource_delete_peek(struct hfd_txn *tx, const struct hfd_call *call,
                                struct hfd_answer_doc *out, struct hfd_err *err)
{
    const struct hfd_ctx c = hfd_ctx_of(tx, call, err);
    struct hfd_found f;
    bool restorable, ended;
    hfd_rc rc;

    *out = (struct hfd_answer_doc){.answer = HFD_ANSWER_ABSENT};
    rc = find_for_read(&c, call, &f, &restorable);
    if (rc != HFD_OK)
        return rc;
    if (!f.exists && !restorable)
        rc = hfd_lookup_may_have_objects(&c, call, &f, &restorable);
    if (rc != HFD_OK || !f.exists) {
        out->decided = !restorable;
        return rc;
    }
    if (hfd_lookup_other_kind(call, &f.row))
        return fail_other_path(&f.row, err);
    rc = hfd_lookup_ended(&c, &f, &ended);
    out->decided = ended;
    if (rc != HFD_OK || ended)
        return rc;
    if (f.row.state != HFD_STATE_DELETING || hfd_resource_overdue(&f.row, c.now_us))
        return HFD_OK;
    return hfd_answer_row(&c, &f.row, out);
}

/*
 * Deletes the resource's own cluster or nodepool. A cluster takes its nodepools with it.
 * @param again  it has failed before
 */
static hfd_rc delete_parts(const struct hfd_ctx *c, hfd_slice caller, bool again,
                           const struct hfd_parts *parts)
{
    struct hfd_fleet_call fc = hfd_ctx_fleet_call(c, caller);
    hfd_rc rc = HFD_OK;

    fc.again = again;
    for (size_t i = 0; rc == HFD_OK && i < parts->count; i++) {
        const struct hfd_part_row *p = &parts->items[i].row;
        const struct hfd_fleet_target target = {.kind = p->kind, .id = p->fleet_id};
        struct hfd_fleet_deletion deletion;

        rc = c->driver->backend_ops->remove(c->tx, &fc, &target, &deletion, c->err);
        if (rc == HFD_NOT_FOUND)
            rc = HFD_OK;
    }
    return rc;
}

static bool any_exists(const struct hfd_parts *parts)
{
    for (size_t i = 0; i < parts->count; i++)
        if (parts->items[i].view.exists)
            return true;
    return false;
}

/* Writes the row of a deletion that has begun, or removes it if nothing is left to wait for. */
static hfd_rc write_delete(const struct hfd_ctx *c, struct hfd_resource_row *row,
                           struct hfd_answer_doc *out)
{
    struct hfd_parts parts;
    hfd_rc rc = hfd_parts_load(c, row->guresid, &parts);

    if (rc == HFD_OK && any_exists(&parts)) {
        rc = hfd_judge_waits(c, &parts, row);
        if (rc == HFD_OK)
            rc = hfd_resource_row_put(c->tx, row, c->err);
        return rc == HFD_OK ? hfd_answer_row(c, row, out) : rc;
    }
    if (rc == HFD_OK)
        rc = hfd_resource_move(c, row,
                               &(struct hfd_move){.to = HFD_STATE_ABSENT,
                                                  .at_us = c->now_us,
                                                  .main = hfd_parts_main(&parts)});
    out->answer = HFD_ANSWER_ABSENT;
    return rc == HFD_OK ? hfd_resource_forget(c, row) : rc;
}

static hfd_rc start_delete(const struct hfd_ctx *c, const struct hfd_call *call,
                           struct hfd_resource_row *row, struct hfd_answer_doc *out)
{
    const bool again = row->state == HFD_STATE_DELETING; /* past its deadline */
    struct hfd_parts parts;
    hfd_rc rc;

    rc = hfd_parts_load(c, call->guresid, &parts);
    if (rc == HFD_OK)
        rc = begin(c, call, HFD_OP_DELETE, &parts, row);
    if (rc == HFD_OK)
        rc = delete_parts(c, call->caller, again, &parts);
    if (rc == HFD_OK)
        rc = hfd_parts_schedule(c, call->guresid, HFD_GOAL_DELETE);
    if (rc == HFD_OK)
        rc = write_delete(c, row, out);
    out->to = (enum hfd_state)row->state;
    return rc == HFD_OK ? hfd_resource_observe_others(c, call->guresid) : rc;
}

/* ---- a refused deletion ---- */

/* How long a refusal is answered again, in case its first answer was lost. */
#define REFUSAL_REPEATED_US (120 * HFD_US_PER_S)

/*
 * Tells whether a DELETE is answered with the refusal of the last deletion instead of another
 * attempt. A resource without parts has nothing to refuse any more.
 */
static hfd_rc is_refused(const struct hfd_ctx *c, const struct hfd_resource_row *row, bool *refused)
{
    struct hfd_parts parts;
    hfd_rc rc;

    *refused = false;
    if (!hfd_resource_answers_refusal(row, c->now_us))
        return HFD_OK;
    rc = hfd_parts_load(c, row->guresid, &parts);
    *refused = rc == HFD_OK && any_exists(&parts);
    return rc;
}

/*
 * Answers a refused deletion with its refusal, and notes that a DELETE has been answered. So a
 * caller that polls with DELETE learns of the refusal at its next poll, however long it waits.
 */
static hfd_rc answer_refusal(const struct hfd_ctx *c, struct hfd_resource_row *row,
                             struct hfd_answer_doc *out)
{
    hfd_rc rc = HFD_OK;

    if (row->op_deadline_us == HFD_REFUSAL_UNANSWERED_US) {
        row->op_deadline_us = c->now_us + REFUSAL_REPEATED_US;
        rc = hfd_resource_row_put(c->tx, row, c->err);
    }
    return rc == HFD_OK ? hfd_answer_row(c, row, out) : rc;
}

/* Finds the row, or makes a lost one again if something of it may be left. */
static hfd_rc find_for_delete(const struct hfd_ctx *c, const struct hfd_call *call,
                              struct hfd_found *f)
{
    bool objects = false;
    hfd_rc rc = lookup_or_restore(c, call, f);

    if (rc == HFD_OK && !f->exists)
        rc = hfd_lookup_may_have_objects(c, call, f, &objects);
    return rc == HFD_OK && objects ? hfd_lookup_restore_objects(c, call, f) : rc;
}

hfd_rc hfd_resource_delete(struct hfd_txn *tx, const struct hfd_call *call,
                           struct hfd_answer_doc *out, struct hfd_err *err)
{
    struct hfd_fleet_changes changes = {.mem = call->mem};
    struct hfd_ctx c = hfd_ctx_of(tx, call, err);
    struct hfd_found f;
    bool refused, ended;
    hfd_rc rc;

    c.changes = &changes;
    *out = (struct hfd_answer_doc){.answer = HFD_ANSWER_ABSENT, .decided = true};
    rc = find_for_delete(&c, call, &f);
    if (rc != HFD_OK || !f.exists)
        return rc;
    if (hfd_lookup_other_kind(call, &f.row))
        return fail_other_path(&f.row, err);
    rc = hfd_lookup_ended(&c, &f, &ended);
    if (rc != HFD_OK || ended)
        return rc;
    rc = record_late(&c, &f);
    if (rc != HFD_OK)
        return rc;
    out->from = out->to = (enum hfd_state)f.row.state;
    if (f.row.state == HFD_STATE_DELETING && !hfd_resource_overdue(&f.row, c.now_us))
        return hfd_answer_row(&c, &f.row, out);
    rc = hfd_protect_check(&c, &f.row, "");
    if (rc == HFD_OK)
        rc = is_refused(&c, &f.row, &refused);
    if (rc != HFD_OK)
        return rc;
    if (refused)
        return answer_refusal(&c, &f.row, out);
    if (f.row.state != HFD_STATE_DELETING)
        rc = check_match(&c, call, &f.row);
    return rc == HFD_OK ? start_delete(&c, call, &f.row, out) : rc;
}

/* ---- prefetch ---- */

hfd_rc hfd_resource_put_prefetch(struct hfd_txn *tx, const struct hfd_call *call,
                                 struct hfd_err *err)
{
    const struct hfd_ctx c = hfd_ctx_of(tx, call, err);
    hfd_rc rc = hfd_root_resource(tx, call->guresid, err);

    if (rc == HFD_OK && call->input->cluster_guresid.len > 0)
        rc = hfd_root_resource(tx, call->input->cluster_guresid, err);
    if (rc == HFD_OK && call->input->cluster_id.len > 0)
        rc = hfd_root_fleet(tx, call->input->cluster_id, err);
    if (rc == HFD_OK)
        rc = hfd_prefetch_resource(tx, call->guresid, err);
    return rc == HFD_OK ? hfd_apply_prefetch(&c, call) : rc;
}

hfd_rc hfd_resource_delete_prefetch(struct hfd_txn *tx, const struct hfd_call *call,
                                    struct hfd_err *err)
{
    const struct hfd_history_subject subject = {HFD_ABOUT_RESOURCE, call->guresid};
    hfd_rc rc = hfd_root_resource(tx, call->guresid, err);

    if (rc == HFD_OK)
        rc = hfd_prefetch_deletion(tx, call->guresid, err);
    return rc == HFD_OK ? hfd_history_row_prefetch(tx, &subject, HFD_HISTORY_MAX, err) : rc;
}

/* ---- validate ---- */

/* The part that an input calls its own. */
static const struct hfd_input_part *part_of_input(const struct hfd_input *in)
{
    return in->kind == HFD_KIND_CLUSTER ? &in->cluster : &in->nodepools[0];
}

/* An input without a name keeps the name that is there. */
static hfd_rc find_name(const struct hfd_ctx *c, const struct hfd_call *call,
                        struct hfd_validated *out)
{
    const struct hfd_input_part *own = part_of_input(call->input);
    const struct hfd_part *main;
    struct hfd_parts parts;
    hfd_rc rc = hfd_parts_load(c, call->guresid, &parts);

    main = rc == HFD_OK ? hfd_parts_main(&parts) : NULL;
    if (own->name_given || call->guresid.len > 0)
        out->name = own->name;
    if (!own->name_given && main != NULL && main->view.exists && !main->view.deleting)
        out->name = main->fleet.name;
    return rc;
}

static hfd_rc preview_new(const struct hfd_ctx *c, const struct hfd_call *call,
                          struct hfd_validated *out)
{
    struct hfd_resource_row row = {
        .guresid = call->guresid, .type = call->input->type, .kind = call->input->kind};
    bool anew;

    hfd_rc rc = may_be_made(c, call, NULL);

    out->action = "create";
    return rc == HFD_OK ? hfd_parts_preview(c, call, &row, &out->changes, &anew) : rc;
}

static hfd_rc preview_change(const struct hfd_ctx *c, const struct hfd_call *call,
                             struct hfd_resource_row *row, struct hfd_validated *out)
{
    hfd_rc rc = check_type(row, call->input, c->err);
    bool anew = false;

    if (rc == HFD_OK)
        rc = may_be_made(c, call, row);
    if (rc == HFD_OK)
        rc = hfd_parts_preview(c, call, row, &out->changes, &anew);
    out->action = hfd_op_name(op_of_put(row, anew));
    return rc;
}

static hfd_rc preview_existing(const struct hfd_ctx *c, const struct hfd_call *call,
                               struct hfd_resource_row *row, struct hfd_validated *out)
{
    const bool same = hfd_keyring_digest_is(c->driver->ring, row->digest, call->input->canonical);
    struct hfd_answer_doc busy = {.answer = HFD_ANSWER_BUSY};
    hfd_rc rc;

    switch (put_action(row, same)) {
    case HFD_PUT_ANSWER:
        out->action = "none";
        return HFD_OK;
    case HFD_PUT_CONFLICT:
        rc = answer_busy(c, call, row, &busy);
        out->hint = busy.hint;
        return rc;
    case HFD_PUT_UPDATE:
    case HFD_PUT_RETRY:
        return preview_change(c, call, row, out);
    case HFD_PUT_CREATE:
        break;
    }
    return hfd_fail(c->err, HFD_CORRUPT, "resource %.*s is in no known state",
                    HFD_SLICE_FMT(row->guresid));
}

static hfd_rc make_plan(const struct hfd_ctx *c, const struct hfd_call *call,
                        const struct hfd_resource_row *row, struct hfd_validated *out,
                        struct hfd_put_plan *plan)
{
    struct hfd_resource_row copy = {.protect = HFD_SLICE("")};
    hfd_rc rc;

    *out = (struct hfd_validated){.name = HFD_SLICE_NONE, .plan = HFD_SLICE("")};
    if (row != NULL)
        copy = *row;
    rc = row != NULL ? preview_existing(c, call, &copy, out) : preview_new(c, call, out);
    *plan = (struct hfd_put_plan){out->action, call->input->canonical, copy.protect,
                                  call->input->protect, &out->changes};
    out->protected = hfd_protect_by(c->driver, call->input->protect).p != NULL;
    return rc == HFD_OK && out->action != NULL ? hfd_put_plan_name(c, plan, &out->plan) : rc;
}

hfd_rc hfd_resource_validate(struct hfd_txn *tx, const struct hfd_call *call,
                             struct hfd_validated *out, struct hfd_err *err)
{
    const struct hfd_ctx c = hfd_ctx_of(tx, call, err);
    struct hfd_put_plan plan;
    struct hfd_found f;
    hfd_rc rc;

    HFD_ASSERT(call->input != NULL);
    rc = hfd_lookup(&c, call, &f);
    if (rc == HFD_OK)
        rc = make_plan(&c, call, f.exists ? &f.row : NULL, out, &plan);
    return rc == HFD_OK ? find_name(&c, call, out) : rc;
}
