/* The steps of clusters and nodepools, as tables of work.h. Thread: the adapter's. */
#include "driver/adapters/hypershift/work.h"

#include "driver/adapters/hypershift/fleet.h"
#include "driver/adapters/hypershift/order.h"
#include "driver/base/foreign.h"
#include "driver/core/input.h"
#include "driver/core/lookup.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- steps ---- */

/* Ends a step without memory. */
static inline enum hfd_step_end hfd_hs_out_of_memory(struct hfd_hs_work *work)
{
    return hfd_hs_end(work, HFD_STEP_FAULT, "OutOfMemory", "out of memory");
}

/* A table of steps. */
#define HFD_HS_STEPS(table)                                                                        \
    {                                                                                              \
        (table), sizeof(table) / sizeof((table)[0])                                                \
    }

enum hfd_step_end hfd_hs_end(struct hfd_hs_work *w, enum hfd_step_end end, const char *reason,
                             const char *fmt, ...)
{
    va_list ap;

    (void)snprintf(w->reason, sizeof(w->reason), "%s", reason);
    va_start(ap, fmt);
    (void)vsnprintf(w->words, sizeof(w->words), fmt, ap);
    hfd_foreign_drop_halves(w->words);
    va_end(ap);
    return end;
}

/* ---- calls ---- */

static uint32_t random_bits(const struct hfd_hs_server *s)
{
    uint32_t bits;

    hfd_rng_bytes(s->rng, &bits, sizeof(bits));
    return bits;
}

static int64_t retry_after_us(const struct hfd_hs_work *w, const struct hfd_kube_answer *answer);

/* No further call until the pause is over: one server answers for all resources. */
static void close_server(struct hfd_hs_server *s, int64_t retry_after_us, const char *why)
{
    const int64_t pause_us = hfd_kube_backoff_us(&s->pauses, ++s->failures, random_bits(s));

    (void)snprintf(s->why, sizeof(s->why), "%.*s", HFD_HS_WORDS_MAX - 1, why);
    hfd_foreign_drop_halves(s->why);
    s->closed_until_us =
        hfd_clock_mono_us(s->clock) + (retry_after_us > pause_us ? retry_after_us : pause_us);
}

/* The Retry-After of an answer: the last try comes before the deadline of the operation. */
static int64_t retry_after_us(const struct hfd_hs_work *w, const struct hfd_kube_answer *answer)
{
    const int64_t left_us = w->deadline_us - w->server->pauses.min_us - w->now_us;

    return left_us > 0 && answer->retry_after_us > left_us ? left_us : answer->retry_after_us;
}

static enum hfd_step_end unreachable(struct hfd_hs_work *w)
{
    return hfd_hs_end(w, HFD_STEP_FAULT, hfd_kube_class_reason(HFD_KUBE_UNREACHABLE), "%s",
                      w->server->why);
}

/* Ends a step whose call brought no answer. */
static enum hfd_step_end no_answer(struct hfd_hs_work *w, hfd_rc rc, const struct hfd_err *err)
{
    if (rc == HFD_BUSY)
        return hfd_hs_end(w, HFD_STEP_STOPPED, "Stopping", "%s", err->msg);
    if (rc == HFD_NOMEM)
        return hfd_hs_end(w, HFD_STEP_FAULT, "OutOfMemory", "%s", err->msg);
    close_server(w->server, 0, err->msg);
    return unreachable(w);
}

/* Ends a step that is tried again. A proxy that refuses one call closes no server. */
static enum hfd_step_end not_now(struct hfd_hs_work *w, const struct hfd_kube_answer *answer,
                                 const struct hfd_kube_refusal *why)
{
    if (why->class == HFD_KUBE_FOREIGN && answer->retry_after_us == 0)
        return hfd_hs_end(w, HFD_STEP_FAULT, hfd_kube_class_reason(why->class), "%s", why->message);
    close_server(w->server, retry_after_us(w, answer), why->message);
    return unreachable(w);
}

/* Ends a step by a refusal. ABSENT is for the caller. */
static enum hfd_step_end refused(struct hfd_hs_work *w, const struct hfd_kube_answer *answer,
                                 const struct hfd_kube_refusal *why)
{
    const char *reason = hfd_kube_class_reason(why->class);
    const bool pool = w->row.kind == HFD_KIND_NODEPOOL;
    const hfd_slice field =
        hfd_hs_order_field(pool ? w->pool_spec : w->cluster_spec, pool, why->field, w->mem);

    switch (why->class) {
    case HFD_KUBE_DONE:
        return HFD_STEP_DONE;
    case HFD_KUBE_CONFLICT:
    case HFD_KUBE_INVALID:
        return hfd_hs_end(w, HFD_STEP_REFUSED, reason, "%.*s%s%s", HFD_SLICE_FMT(field),
                          field.len > 0 ? ": " : "", why->message);
    case HFD_KUBE_AGAIN:
    case HFD_KUBE_EXPIRED:
    case HFD_KUBE_ABSENT:
        return hfd_hs_end(w, HFD_STEP_AGAIN, reason, "%s", why->message);
    case HFD_KUBE_NO_PLACE:
        return hfd_hs_end(w, HFD_STEP_WAITS, reason, "%s", why->message);
    case HFD_KUBE_FORBIDDEN:
    case HFD_KUBE_NO_TYPE:
        return hfd_hs_end(w, HFD_STEP_FAULT, reason, "%s", why->message);
    case HFD_KUBE_FOREIGN:
    case HFD_KUBE_UNREACHABLE:
        break;
    }
    return not_now(w, answer, why);
}

/* Judges a call. @param absent  set if the object is not there, which is no refusal then */
static enum hfd_step_end judge(struct hfd_hs_work *w, hfd_rc rc, struct hfd_kube_answer *answer,
                               const struct hfd_err *err, bool *absent)
{
    struct hfd_kube_refusal why;

    if (rc != HFD_OK)
        return no_answer(w, rc, err);
    hfd_kube_judge(answer, &why);
    if (why.class != HFD_KUBE_UNREACHABLE && why.class != HFD_KUBE_FOREIGN)
        w->server->failures = 0;
    if (absent != NULL) {
        *absent = why.class == HFD_KUBE_ABSENT ||
                  (why.class == HFD_KUBE_NO_PLACE && answer->status == 404);
        if (*absent)
            return HFD_STEP_DONE;
    }
    return refused(w, answer, &why);
}

/*
 * Ends a call. Frees the answer.
 * @param may_be_absent  an object that is not there is no refusal
 * @param doc  replaced by the object, NULL if it is not there; NULL = not needed
 */
static enum hfd_step_end called(struct hfd_hs_work *w, hfd_rc rc, struct hfd_kube_answer *answer,
                                const struct hfd_err *err, bool may_be_absent, json_t **doc)
{
    bool absent = false;
    const enum hfd_step_end end = judge(w, rc, answer, err, may_be_absent ? &absent : NULL);

    if (end == HFD_STEP_DONE && doc != NULL) {
        json_decref(*doc);
        *doc = absent ? NULL : json_incref(answer->doc);
    }
    hfd_kube_answer_fini(answer);
    return end;
}

enum hfd_step_end hfd_hs_read(struct hfd_hs_work *w, const struct hfd_kube_object *name,
                              json_t **doc)
{
    struct hfd_kube_answer answer;
    struct hfd_err err;
    hfd_rc rc;

    if (hfd_hs_is_closed(w->server))
        return unreachable(w);
    rc = hfd_kube_get(w->server->kube, name, &answer, &err);
    return called(w, rc, &answer, &err, true, doc);
}

/*
 * True if all fields in conflict were edited by their managers, and none was applied. The API
 * server tells: conflict with "kubectl-edit" using v1.
 */
static bool is_of_edits(const struct hfd_kube_answer *answer)
{
    const json_t *causes = json_object_get(json_object_get(answer->doc, "details"), "causes");
    bool edits = answer->status == 409 && json_array_size(causes) > 0;

    for (size_t i = 0; edits && i < json_array_size(causes); i++) {
        const char *text = json_string_value(json_object_get(json_array_get(causes, i), "message"));

        edits = text != NULL && strncmp(text, "conflict with", 13) == 0 &&
                strstr(text, "\" using ") != NULL;
    }
    return edits;
}

/* True if the object has had all fields of this order: they are ours. */
static bool has_order(const struct hfd_hs_work *w)
{
    return w->object.doc != NULL && hfd_hs_applied_generation(w->object.doc) == w->row.generation &&
           hfd_slice_eq(hfd_hs_label(w->object.doc, HFD_HS_LABEL_CLUSTER), w->cluster.id);
}

/* Applies. A field that was ours until another manager edited it is put back. */
static hfd_rc apply_fields(const struct hfd_hs_work *w, const struct hfd_kube_apply *apply,
                           struct hfd_kube_answer *answer, struct hfd_err *err)
{
    struct hfd_kube_apply again = *apply;
    hfd_rc rc = hfd_kube_apply(w->server->kube, apply, answer, err);

    if (rc != HFD_OK || !has_order(w) || !is_of_edits(answer))
        return rc;
    again.force = true;
    hfd_kube_answer_fini(answer);
    return hfd_kube_apply(w->server->kube, &again, answer, err);
}

static bool hs_is_current(void *arg);

/* Applies a manifest. @param doc  replaced by what the server answers; NULL = not needed */
static enum hfd_step_end hs_apply(struct hfd_hs_work *w, const struct hfd_kube_apply *apply,
                                  json_t **doc)
{
    struct hfd_kube_answer answer;
    struct hfd_err err;
    hfd_rc rc;

    if (hfd_hs_is_closed(w->server))
        return unreachable(w);
    /* A deletion may have come while this step read. */
    if (!apply->dry_run && !hs_is_current(w))
        return HFD_STEP_AGAIN;
    rc = apply_fields(w, apply, &answer, &err);
    return called(w, rc, &answer, &err, false, doc);
}

/* Lists objects. @return DONE, or how the step ends, if the list is not whole */
static enum hfd_step_end hs_list(struct hfd_hs_work *w, const struct hfd_kube_list *list)
{
    struct hfd_kube_answer answer;
    struct hfd_err err;
    hfd_rc rc;

    if (hfd_hs_is_closed(w->server))
        return unreachable(w);
    rc = hfd_kube_list(w->server->kube, list, NULL, &answer, &err);
    return called(w, rc, &answer, &err, true, NULL);
}

/* Deletes an object of ours once. @return DONE, or how the step ends */
static enum hfd_step_end hs_delete(struct hfd_hs_work *w, const struct hfd_kube_object *name,
                                   const json_t *doc)
{
    struct hfd_kube_answer answer;
    struct hfd_err err;
    hfd_rc rc;

    if (hfd_hs_is_deleting(doc))
        return HFD_STEP_DONE; /* a second request would change nothing */
    if (hfd_hs_is_closed(w->server))
        return unreachable(w);
    rc = hfd_kube_delete(w->server->kube, name, hfd_hs_metadata(doc, "uid"), &answer, &err);
    return called(w, rc, &answer, &err, true, NULL);
}

/* ---- whose objects ---- */

/* True if the labels say that an object is ours, and of this resource. */
static bool hs_is_ours(const struct hfd_hs_work *w, const json_t *object)
{
    const hfd_slice guresid = hfd_hs_label(object, HFD_HS_LABEL_GURESID);

    if (!hfd_slice_is(hfd_hs_label(object, HFD_HS_LABEL_MANAGER), HFD_HS_ADAPTER))
        return false;
    return hfd_slice_eq(hfd_hs_label(object, HFD_HS_LABEL_CLUSTER), w->cluster.id) ||
           (guresid.len > 0 && hfd_slice_eq(guresid, w->source.guresid));
}

/* Refuses an object that is not of this resource. */
static enum hfd_step_end hs_refuse_strange(struct hfd_hs_work *w,
                                           const struct hfd_kube_object *name)
{
    w->is_strange = true;
    return hfd_hs_end(w, HFD_STEP_REFUSED, "NotOurs",
                      "%s %.*s/%.*s exists, and is not of this resource: choose another name, or "
                      "remove it",
                      name->type->kind, HFD_SLICE_FMT(name->namespace), HFD_SLICE_FMT(name->name));
}

/* ---- shared steps ---- */

/* True while row, generation and deletion are as they were read. */
static bool hs_is_current(void *arg)
{
    struct hfd_hs_work *w = arg;

    return w->fleet->ops->is_current(w->fleet->impl, w);
}

/* The order that the row could be from. @return gives; NULL = out of memory */
static json_t *order_of(const struct hfd_hs_work *w)
{
    const bool pool = w->row.kind == HFD_KIND_NODEPOOL;
    json_t *spec = hfd_json_deep_copy(pool ? w->pool_spec : w->cluster_spec);

    return spec != NULL ? json_pack("{s:{s:o}}", pool ? "nodepool" : "cluster", "spec", spec)
                        : NULL;
}

/*
 * Checks the spec as an order is checked at PUT. Clusters that were made through HyperFleet's own
 * API have not been checked before.
 */
static enum hfd_step_end check_spec(struct hfd_hs_work *w)
{
    struct hfd_violations found = {.count = 0};
    struct hfd_input_errors errors = {.found = &found, .mem = w->mem};
    json_t *values = order_of(w);
    const struct hfd_ordered order = {.kind = w->row.kind,
                                      .cluster_name = w->cluster.name,
                                      .cluster_spec = w->cluster_spec,
                                      .values = values,
                                      .secrets = w->secrets};
    const hfd_slice head = HFD_SLICE("driver.values.");
    const struct hfd_violation *v = &found.items[0];
    hfd_slice field;
    hfd_rc rc = HFD_NOMEM;

    if (values != NULL)
        rc = hfd_hs_order_check(w->checker, &order, &errors, NULL);
    json_decref(values);
    if (rc != HFD_OK)
        return hfd_hs_out_of_memory(w);
    if (found.count == 0)
        return HFD_STEP_DONE;
    field = v->field;
    if (hfd_slice_starts(field, head))
        field = (hfd_slice){field.p + head.len, field.len - head.len};
    return hfd_hs_end(w, HFD_STEP_REFUSED, "InvalidSpec", "%.*s: %.*s", HFD_SLICE_FMT(field),
                      HFD_SLICE_FMT(v->message));
}

/* The manifest of the HostedCluster or NodePool. */
static hfd_rc manifest_of(const struct hfd_hs_work *w, hfd_slice *out)
{
    return w->row.kind == HFD_KIND_CLUSTER
               ? hfd_hs_hosted_cluster_manifest(&w->source, w->mem, out, NULL)
               : hfd_hs_node_pool_manifest(&w->source, w->mem, out, NULL);
}

/* A step: has the API server check the manifest of the object, unless it was checked before. */
static enum hfd_step_end hs_validate(void *arg)
{
    struct hfd_hs_work *w = arg;
    struct hfd_kube_apply apply = {
        .object = w->object.name, .manager = HFD_HS_MANAGER, .dry_run = true};
    enum hfd_step_end end;

    if (w->validated)
        return HFD_STEP_DONE;
    if (manifest_of(w, &apply.body) != HFD_OK)
        return hfd_hs_out_of_memory(w);
    end = check_spec(w);
    if (end == HFD_STEP_DONE)
        end = hs_apply(w, &apply, NULL);
    w->validated = end == HFD_STEP_DONE;
    return end;
}

static bool hs_must_apply(const struct hfd_hs_work *w);

/* A step: applies the HostedCluster or NodePool. */
static enum hfd_step_end hs_apply_object(void *arg)
{
    struct hfd_hs_work *w = arg;
    struct hfd_kube_apply apply = {.object = w->object.name, .manager = HFD_HS_MANAGER};
    enum hfd_step_end end;

    if (!hs_must_apply(w))
        return HFD_STEP_DONE;
    if (manifest_of(w, &apply.body) != HFD_OK)
        return hfd_hs_out_of_memory(w);
    end = hs_apply(w, &apply, &w->object.doc);
    if (end == HFD_STEP_DONE) {
        w->record->applied_generation = w->row.generation;
        w->record->applied_us = w->mono_us;
        w->record->object_generation = hfd_hs_object_generation(w->object.doc);
    }
    return end;
}

static enum hfd_step_end hs_remove(struct hfd_hs_work *w, const struct hfd_kube_object *name,
                                   json_t **doc);

/* A step of a teardown: deletes the HostedCluster or NodePool, and waits until it is gone. */
static enum hfd_step_end hs_delete_object(void *arg)
{
    struct hfd_hs_work *w = arg;

    return hs_remove(w, &w->object.name, &w->object.doc);
}

/* True if a nodepool that was made anew under the same name has taken the object over. */
static bool is_of_another(const struct hfd_hs_work *w, const json_t *object)
{
    const hfd_slice pool = hfd_hs_label(object, HFD_HS_LABEL_NODEPOOL);

    return pool.len > 0 && !hfd_slice_eq(pool, w->row.id) &&
           hfd_hs_record_find(w->records, pool) != NULL;
}

/*
 * Deletes an object if it is there and ours, and waits until it is gone.
 * @param doc  replaced; NULL = it is not there
 * @return DONE: it is gone, or not ours; or how the step ends
 */
static enum hfd_step_end hs_remove(struct hfd_hs_work *w, const struct hfd_kube_object *name,
                                   json_t **doc)
{
    enum hfd_step_end end = hfd_hs_read(w, name, doc);
    char held[HFD_HS_WORDS_MAX];

    if (end != HFD_STEP_DONE || *doc == NULL || !hs_is_ours(w, *doc) || is_of_another(w, *doc))
        return end;
    if (!hfd_hs_is_deleting(*doc)) {
        end = hs_delete(w, name, *doc);
        if (end == HFD_STEP_DONE)
            end = hfd_hs_read(w, name, doc);
        if (end != HFD_STEP_DONE || *doc == NULL)
            return end;
    }
    hfd_hs_held_text(*doc, held, sizeof(held));
    return hfd_hs_end(w, HFD_STEP_WAITS, "Deleting", "waits for %s %.*s to be gone%s",
                      name->type->kind, HFD_SLICE_FMT(name->name), held);
}

/* The pause between an apply and the next one that puts fields back: others may insist. */
#define DRIFT_US (10 * HFD_US_PER_S)

/*
 * True if the spec of the object was changed since this process applied it. Others may write fields
 * of their own: an apply tells.
 */
static bool has_drifted(const struct hfd_hs_work *w)
{
    return w->row.deleted_us == 0 && w->object.doc != NULL &&
           w->record->applied_generation == w->row.generation &&
           w->record->object_generation != hfd_hs_object_generation(w->object.doc);
}

/* True if the manifests have to be applied: they are new, changed, or it is time to look. */
static bool hs_must_apply(const struct hfd_hs_work *w)
{
    const int64_t since_us = w->mono_us - w->record->applied_us;

    /* Visits of a resync come up to a tenth early: work.c. */
    return !has_order(w) || w->record->applied_generation != w->row.generation ||
           since_us >= w->resync_us - w->resync_us / 10 || (since_us >= DRIFT_US && has_drifted(w));
}

/*
 * A step: finds the management cluster. One that the settings no longer have is a fault: the work
 * waits until they have it again.
 */
static enum hfd_step_end hs_find_management(void *arg)
{
    struct hfd_hs_work *w = arg;
    const hfd_slice name = hfd_hs_management_of(w->cluster_spec);
    char known[HFD_HS_WORDS_MAX / 2];

    if (hfd_hs_has_management(w->defaults, name))
        return HFD_STEP_DONE;
    hfd_hs_managements_text(w->defaults, known, sizeof(known));
    return hfd_hs_end(w, HFD_STEP_FAULT, "ManagementUnknown",
                      "the settings have no management cluster '%.*s'; they have: %s",
                      HFD_SLICE_FMT(name), known);
}

/* A step: reads the object. One of its name that is not ours is refused, and never touched. */
static enum hfd_step_end hs_find(void *arg)
{
    struct hfd_hs_work *w = arg;
    const enum hfd_step_end end = hfd_hs_read(w, &w->object.name, &w->object.doc);

    if (end != HFD_STEP_DONE || w->object.doc == NULL || hs_is_ours(w, w->object.doc))
        return end;
    json_decref(w->object.doc); /* what it says is not reported */
    w->object.doc = NULL;
    return hs_refuse_strange(w, &w->object.name);
}

/* A step: waits for an object that goes away. It is not changed; a new one takes its place. */
static enum hfd_step_end hs_wait_for_old(void *arg)
{
    struct hfd_hs_work *w = arg;
    char held[HFD_HS_WORDS_MAX];

    if (w->object.doc == NULL || !hfd_hs_is_deleting(w->object.doc))
        return HFD_STEP_DONE;
    hfd_hs_held_text(w->object.doc, held, sizeof(held));
    return hfd_hs_end(w, HFD_STEP_WAITS, "Deleting", "%s %.*s is being deleted%s",
                      w->object.name.type->kind, HFD_SLICE_FMT(w->object.name.name), held);
}

/* True if an operation began after the last report: what it waits for is given time anew. */
static bool is_new_attempt(const struct hfd_hs_work *w)
{
    return w->fleet->ops->embedded && w->prev.received_us == 0;
}

/* The facts that clusters and nodepools have in common. */
static struct hfd_hs_facts hs_facts_of(const struct hfd_hs_work *w)
{
    return (struct hfd_hs_facts){
        .object = w->object.doc,
        .generation = w->row.generation,
        .serves = json_integer_value(json_object_get(w->prev_data, "serves")) > 0,
        .now_us = w->now_us,
        .grace_us = w->grace_us,
        .refused = is_new_attempt(w) ? NULL : json_object_get(w->prev_data, "refusals"),
    };
}

/* Ends the walk where the judgement stands. */
static enum hfd_step_end hs_end_by_judgement(struct hfd_hs_work *w)
{
    const struct hfd_hs_judgement *j = &w->judgement;

    w->judged = true;
    if (j->stage == HFD_HS_REFUSED)
        return hfd_hs_end(w, HFD_STEP_REFUSED, j->reason, "%s%s%s", j->gate,
                          j->message[0] != '\0' ? ": " : "", j->message);
    if (j->stage != HFD_HS_WAITS)
        return HFD_STEP_DONE;
    if (j->until_us != 0) {
        char until[HFD_TIME_TEXT_MAX];

        (void)hfd_time_format_s(j->until_us, until);
        return hfd_hs_end(w, HFD_STEP_WAITS, "Progressing",
                          "waits for %s, which is given time until %s: %s", j->gate, until + 11,
                          j->message[0] != '\0' ? j->message : j->reason);
    }
    return hfd_hs_end(w, HFD_STEP_WAITS, "Progressing", "waits for %s%s%s", j->gate,
                      j->message[0] != '\0' ? ": " : "", j->message);
}

/* ---- lost ---- */

/*
 * The first step of the deletion of a cluster whose rows were lost: finds its objects by the label
 * with the GUResID. Thread: the adapter's.
 */

#define PAGE_LIMIT 50

/* The place of the objects. Texts live in the memory of the work; no name = not known. */
struct place {
    struct hfd_hs_work *w;
    hfd_slice name, namespace;
    bool of_secrets; /* the search is for Secrets */
};

static bool is_lost(const struct hfd_hs_work *w)
{
    return w->source.guresid.len > 0 &&
           json_is_true(json_object_get(w->cluster_spec, HFD_LOST_MEMBER));
}

/* The place that the last report names. Before the first, that is the row's own name. */
static void recall(struct place *p)
{
    const json_t *object = json_array_get(json_object_get(p->w->prev_data, "objects"), 0);
    const hfd_slice name = hfd_json_text(object, "name");

    if (name.len == 0 || hfd_slice_eq(name, p->w->row.name))
        return;
    p->name = name;
    p->namespace = hfd_json_text(object, "namespace");
}

/* A HostedCluster has the name, a NodePool says it, and that of a Secret begins with it. */
static bool take_object(void *ctx, const json_t *item)
{
    struct place *p = ctx;
    hfd_slice name = hfd_json_text(json_object_get(item, "spec"), "clusterName");

    if (p->of_secrets) {
        name = hfd_hs_secret_cluster_name(hfd_hs_metadata(item, "name"));
        if (name.len == 0)
            return true;
    }

    if (p->name.len > 0)
        return true;
    if (name.len == 0)
        name = hfd_hs_metadata(item, "name");
    p->name = hfd_arena_dup(p->w->mem, name);
    p->namespace = hfd_arena_dup(p->w->mem, hfd_hs_metadata(item, "namespace"));
    return p->name.p != NULL && p->namespace.p != NULL;
}

/* Searches all namespaces. */
static enum hfd_step_end search(struct place *p, const struct hfd_kube_type *type)
{
    const hfd_slice selector =
        hfd_arena_printf(p->w->mem, HFD_HS_OURS "," HFD_HS_LABEL_GURESID "=%.*s",
                         HFD_SLICE_FMT(p->w->source.guresid));
    const struct hfd_kube_list list = {.objects = {.type = type},
                                       .selector = selector.p,
                                       .metadata_only = type == &hfd_hs_secrets,
                                       .page_limit = PAGE_LIMIT,
                                       .on_item = take_object,
                                       .ctx = p};

    p->of_secrets = type == &hfd_hs_secrets;
    return selector.p != NULL ? hs_list(p->w, &list) : hfd_hs_out_of_memory(p->w);
}

/* The management cluster behind the present one, or empty. */
static hfd_slice next_management(const struct hfd_hs_work *w)
{
    const struct hfd_hs_defaults *d = w->defaults;
    const hfd_slice is = hfd_hs_management_of(w->cluster_spec);

    for (size_t i = 0; i + 1 < d->management_count; i++)
        if (hfd_slice_eq(d->managements[i], is))
            return d->managements[i + 1];
    return HFD_SLICE("");
}

/* Nothing is here: the thread of the next management cluster goes on, if there is one. */
static enum hfd_step_end go_on_elsewhere(struct hfd_hs_work *w)
{
    const hfd_slice next = next_management(w);
    const hfd_slice spec = hfd_arena_printf(
        w->mem, "{\"" HFD_LOST_MEMBER "\":true,\"management\":\"%.*s\"}", HFD_SLICE_FMT(next));
    struct hfd_err err;

    if (next.len == 0 || w->fleet->ops->set_spec == NULL)
        return HFD_STEP_DONE;
    if (spec.p == NULL)
        return hfd_hs_out_of_memory(w);
    if (w->fleet->ops->set_spec(w->fleet->impl, w, spec, &err) != HFD_OK)
        return hfd_hs_end(w, HFD_STEP_FAULT, "StoreFailed", "%s", err.msg);
    return HFD_STEP_AGAIN;
}

/*
 * A step. Sets the names that the steps behind it delete by. A report has the names before anything
 * is deleted, as the Secrets are found by name alone. Does nothing for other clusters.
 */
static enum hfd_step_end hs_find_lost(void *arg)
{
    struct hfd_hs_work *w = arg;
    struct place known = {.w = w}, found = {.w = w};
    enum hfd_step_end end;

    if (!is_lost(w))
        return HFD_STEP_DONE;
    recall(&known);
    end = search(&found, &hfd_hs_hosted_clusters);
    if (end == HFD_STEP_DONE && found.name.len == 0)
        end = search(&found, &hfd_hs_node_pools);
    if (end == HFD_STEP_DONE && found.name.len == 0 && w->defaults->list_secrets)
        end = search(&found, &hfd_hs_secrets);
    if (end != HFD_STEP_DONE)
        return end;
    if (found.name.len == 0 && known.name.len == 0)
        return go_on_elsewhere(w);
    if (found.name.len == 0)
        found = known;
    w->object.name.name = w->cluster.name = found.name;
    w->object.name.namespace = found.namespace;
    if (hfd_slice_eq(found.name, known.name) && hfd_slice_eq(found.namespace, known.namespace))
        return HFD_STEP_DONE;
    return hfd_hs_end(w, HFD_STEP_WAITS, "Deleting", "found %.*s/%.*s",
                      HFD_SLICE_FMT(found.namespace), HFD_SLICE_FMT(found.name));
}

/* ---- cluster ---- */

/* ---- sync ---- */

/* The namespace is made if it is missing, and never changed or deleted. */
static enum hfd_step_end make_namespace(void *arg)
{
    struct hfd_hs_work *w = arg;
    const struct hfd_kube_object name = {.type = &hfd_hs_namespaces,
                                         .name = hfd_hs_work_namespace(w)};
    struct hfd_kube_apply apply = {.object = name, .manager = HFD_HS_MANAGER};
    enum hfd_step_end end;
    json_t *doc = NULL;

    if (w->object.doc != NULL)
        return HFD_STEP_DONE;
    end = hfd_hs_read(w, &name, &doc);
    if (end != HFD_STEP_DONE || doc != NULL) {
        json_decref(doc);
        return end;
    }
    if (hfd_hs_namespace_manifest(name.name, w->mem, &apply.body, NULL) != HFD_OK)
        return hfd_hs_out_of_memory(w);
    return hs_apply(w, &apply, NULL);
}

/* Applies a Secret of the cluster. An empty manifest is none. */
static enum hfd_step_end apply_secret(struct hfd_hs_work *w, hfd_slice name, hfd_slice manifest)
{
    const struct hfd_kube_apply apply = {
        .object = {&hfd_hs_secrets, hfd_hs_work_namespace(w), name},
        .manager = HFD_HS_MANAGER,
        .body = manifest};
    enum hfd_step_end end;
    json_t *doc = NULL;

    if (name.p == NULL)
        return hfd_hs_out_of_memory(w);
    if (manifest.len == 0 || !hs_must_apply(w))
        return HFD_STEP_DONE;
    end = hfd_hs_read(w, &apply.object, &doc);
    if (end == HFD_STEP_DONE && doc != NULL && !hs_is_ours(w, doc))
        end = hs_refuse_strange(w, &apply.object);
    json_decref(doc);
    return end == HFD_STEP_DONE ? hs_apply(w, &apply, NULL) : end;
}

static enum hfd_step_end apply_pull_secret(void *arg)
{
    struct hfd_hs_work *w = arg;
    hfd_slice manifest;

    if (hfd_hs_pull_secret_manifest(&w->source, w->mem, &manifest, NULL) != HFD_OK)
        return hfd_hs_out_of_memory(w);
    return apply_secret(w, hfd_hs_pull_secret_name(w->cluster.name, w->mem), manifest);
}

static enum hfd_step_end apply_ssh_key(void *arg)
{
    struct hfd_hs_work *w = arg;
    hfd_slice manifest;

    if (hfd_hs_ssh_key_manifest(&w->source, w->mem, &manifest, NULL) != HFD_OK)
        return hfd_hs_out_of_memory(w);
    return apply_secret(w, hfd_hs_ssh_key_name(w->cluster.name, w->mem), manifest);
}

/* A cluster without its kubeconfig is not done: its Secret may come after its status. */
static bool has_kubeconfig(const struct hfd_hs_work *w)
{
    return json_object_get(json_object_get(w->outputs, "secrets"), "kubeconfig") != NULL;
}

static enum hfd_step_end pass_gates(void *arg)
{
    struct hfd_hs_work *w = arg;
    struct hfd_hs_facts facts = hs_facts_of(w);

    facts.wants_nodes = w->wants_nodes;
    hfd_hs_judge_cluster(&facts, &w->judgement);
    if (w->judgement.stage == HFD_HS_REACHED && !has_kubeconfig(w)) {
        w->judgement.stage = HFD_HS_WAITS;
        w->judgement.gate = "Kubeconfig";
    }
    return hs_end_by_judgement(w);
}

static const struct hfd_step cluster_sync[] = {
    {"Management", hs_find_management}, {"Found", hs_find},
    {"Replaced", hs_wait_for_old},      {"Namespace", make_namespace},
    {"Validated", hs_validate},         {"PullSecret", apply_pull_secret},
    {"SSHKey", apply_ssh_key},          {"HostedCluster", hs_apply_object},
    {"Outputs", hfd_hs_outputs_read},   {"Gates", pass_gates},
};

/* ---- teardown ---- */

struct pools {
    struct hfd_hs_work *w;
    size_t left;
    char name[128]; /* one of them */
    char held[HFD_HS_WORDS_MAX / 2];
    enum hfd_step_end end;
};

static bool delete_pool(void *arg, const json_t *item)
{
    struct pools *p = arg;
    const hfd_slice name = hfd_hs_metadata(item, "name");
    const struct hfd_kube_object object = {&hfd_hs_node_pools, hfd_hs_work_namespace(p->w), name};

    if (!hs_is_ours(p->w, item))
        return true;
    p->left++;
    (void)snprintf(p->name, sizeof(p->name), "%.*s", HFD_SLICE_FMT(name));
    hfd_hs_held_text(item, p->held, sizeof(p->held));
    p->end = hs_delete(p->w, &object, item);
    return p->end == HFD_STEP_DONE;
}

static enum hfd_step_end delete_pools_by(struct hfd_hs_work *w, struct pools *p, const char *label,
                                         hfd_slice value)
{
    const hfd_slice selector =
        hfd_arena_printf(w->mem, HFD_HS_OURS ",%s=%.*s", label, HFD_SLICE_FMT(value));
    const struct hfd_kube_list list = {
        .objects = {.type = &hfd_hs_node_pools, .namespace = hfd_hs_work_namespace(w)},
        .selector = selector.p,
        .metadata_only = true,
        .page_limit = PAGE_LIMIT,
        .on_item = delete_pool,
        .ctx = p};
    enum hfd_step_end end;

    if (selector.p == NULL)
        return hfd_hs_out_of_memory(w);
    p->end = HFD_STEP_DONE;
    end = hs_list(w, &list);
    return end == HFD_STEP_DONE ? p->end : end;
}

/* Reads the HostedCluster, for the report: it stands while its pools go. */
static enum hfd_step_end read_own(struct hfd_hs_work *w)
{
    const enum hfd_step_end end = hfd_hs_read(w, &w->object.name, &w->object.doc);

    if (end == HFD_STEP_DONE && w->object.doc != NULL && !hs_is_ours(w, w->object.doc)) {
        json_decref(w->object.doc); /* what it says is not reported */
        w->object.doc = NULL;
    }
    return end;
}

/* Pools go before their cluster. Those that were made by nodepool resources go as well. */
static enum hfd_step_end delete_pools(void *arg)
{
    struct hfd_hs_work *w = arg;
    struct pools p = {.w = w};
    enum hfd_step_end end = read_own(w);

    if (end == HFD_STEP_DONE)
        end = delete_pools_by(w, &p, HFD_HS_LABEL_CLUSTER, w->cluster.id);
    if (end == HFD_STEP_DONE && w->source.guresid.len > 0)
        end = delete_pools_by(w, &p, HFD_HS_LABEL_GURESID, w->source.guresid);
    if (end != HFD_STEP_DONE || p.left == 0)
        return end;
    return hfd_hs_end(w, HFD_STEP_WAITS, "Deleting", "waits for NodePool %s to be gone%s", p.name,
                      p.held);
}

static enum hfd_step_end delete_secret(struct hfd_hs_work *w, hfd_slice name)
{
    const struct hfd_kube_object object = {&hfd_hs_secrets, hfd_hs_work_namespace(w), name};
    enum hfd_step_end end;
    json_t *doc = NULL;

    if (name.p == NULL)
        return hfd_hs_out_of_memory(w);
    end = hs_remove(w, &object, &doc);
    json_decref(doc);
    return end;
}

static enum hfd_step_end delete_secrets(void *arg)
{
    struct hfd_hs_work *w = arg;
    enum hfd_step_end end = delete_secret(w, hfd_hs_pull_secret_name(w->cluster.name, w->mem));

    return end == HFD_STEP_DONE ? delete_secret(w, hfd_hs_ssh_key_name(w->cluster.name, w->mem))
                                : end;
}

static const struct hfd_step cluster_teardown[] = {
    {"Management", hs_find_management},  {"Lost", hs_find_lost},      {"NodePools", delete_pools},
    {"HostedCluster", hs_delete_object}, {"Secrets", delete_secrets},
};

static const struct hfd_reconciler cluster_steps = {
    .sync = HFD_HS_STEPS(cluster_sync),
    .teardown = HFD_HS_STEPS(cluster_teardown),
    .is_current = hs_is_current,
};

/* ---- pool ---- */

/* Nothing is made before the HostedCluster is there: HyperShift would do nothing with it. */
static enum hfd_step_end find_cluster(void *arg)
{
    struct hfd_hs_work *w = arg;
    const struct hfd_kube_object name = {&hfd_hs_hosted_clusters, hfd_hs_work_namespace(w),
                                         w->cluster.name};
    enum hfd_step_end end;

    if (!w->has_cluster)
        return hfd_hs_end(w, HFD_STEP_WAITS, "ClusterMissing", "the cluster is not there");
    end = hfd_hs_read(w, &name, &w->parent);
    if (end != HFD_STEP_DONE)
        return end;
    if (w->parent == NULL ||
        !hfd_slice_eq(hfd_hs_label(w->parent, HFD_HS_LABEL_CLUSTER), w->cluster.id))
        return hfd_hs_end(w, HFD_STEP_WAITS, "WaitingForCluster", "waits for HostedCluster %.*s",
                          HFD_SLICE_FMT(w->cluster.name));
    return HFD_STEP_DONE;
}

static enum hfd_step_end pass_pool_gates(void *arg)
{
    struct hfd_hs_work *w = arg;
    const struct hfd_hs_facts facts = hs_facts_of(w);

    hfd_hs_judge_pool(&facts, &w->judgement);
    return hs_end_by_judgement(w);
}

static const struct hfd_step pool_sync[] = {
    {"Management", hs_find_management}, {"Cluster", find_cluster},  {"Found", hs_find},
    {"Replaced", hs_wait_for_old},      {"Validated", hs_validate}, {"NodePool", hs_apply_object},
    {"Gates", pass_pool_gates},
};

static const struct hfd_step pool_teardown[] = {{"Management", hs_find_management},
                                                {"NodePool", hs_delete_object}};

static const struct hfd_reconciler pool_steps = {
    .sync = HFD_HS_STEPS(pool_sync),
    .teardown = HFD_HS_STEPS(pool_teardown),
    .is_current = hs_is_current,
};

struct hfd_reconciled hfd_hs_work_run(struct hfd_hs_work *w)
{
    const struct hfd_reconciler *r = w->row.kind == HFD_KIND_CLUSTER ? &cluster_steps : &pool_steps;

    return hfd_reconcile(r, w->row.deleted_us != 0, w);
}

/* ---- the next visit ---- */

#define WATCHED_WAIT_US (30 * HFD_US_PER_S)
#define AGAIN_US (HFD_US_PER_S / 10)
#define AGAIN_MAX_US HFD_US_PER_S

/* By how the walk ended. */
static int64_t usual_visit_us(const struct hfd_hs_work *w, enum hfd_step_end end, bool watched,
                              uint32_t random)
{
    const struct hfd_hs_record *r = w->record;
    const int64_t wait_us = w->server->pauses.min_us;
    const bool timed = r->down_since_us != 0;

    switch (end) {
    case HFD_STEP_WAITS:
        return w->mono_us + (watched && !timed && w->row.deleted_us == 0 && w->object.doc != NULL
                                 ? WATCHED_WAIT_US
                                 : wait_us);
    case HFD_STEP_AGAIN:
        return w->mono_us +
               (r->attempts * AGAIN_US < AGAIN_MAX_US ? r->attempts * AGAIN_US : AGAIN_MAX_US);
    case HFD_STEP_FAULT:
        if (w->server->closed_until_us > w->mono_us)
            return w->server->closed_until_us;
        return w->mono_us + hfd_kube_backoff_us(&w->server->pauses, r->attempts, random);
    case HFD_STEP_DONE:
    case HFD_STEP_REFUSED:
    case HFD_STEP_STOPPED:
        break;
    }
    if (timed)
        return w->mono_us + wait_us;
    return w->mono_us + w->resync_us - w->resync_us / 10 * (int64_t)(random % 1024) / 1024;
}

int64_t hfd_hs_next_visit_us(const struct hfd_hs_work *w, enum hfd_step_end end, bool watched,
                             uint32_t random)
{
    const int64_t usual_us = usual_visit_us(w, end, watched, random);
    int64_t at_us = usual_us;

    if (w->judged && w->judgement.until_us != 0)
        at_us = w->mono_us + w->judgement.until_us - w->now_us;
    if (has_drifted(w) && w->record->applied_us + DRIFT_US < at_us)
        at_us = w->record->applied_us + DRIFT_US;
    return at_us < usual_us ? at_us : usual_us;
}
