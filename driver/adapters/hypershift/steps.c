/* See steps.h. */
#include "driver/adapters/hypershift/steps.h"

#include <stdarg.h>
#include <stdio.h>

#include "driver/adapters/hypershift/fleet.h"
#include "driver/adapters/hypershift/names.h"
#include "driver/core/mistakes.h"

enum hfd_step_end hfd_hs_end(struct hfd_hs_work *w, enum hfd_step_end end, const char *reason,
                             const char *fmt, ...)
{
    va_list ap;

    (void)snprintf(w->reason, sizeof(w->reason), "%s", reason);
    va_start(ap, fmt);
    (void)vsnprintf(w->words, sizeof(w->words), fmt, ap);
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

/* No further call until the pause is over: one server answers for all resources. */
static void close_server(struct hfd_hs_server *s, int64_t retry_after_us, const char *why)
{
    const int64_t pause_us = hfd_kube_backoff_us(&s->pauses, ++s->failures, random_bits(s));

    (void)snprintf(s->why, sizeof(s->why), "%.*s", HFD_HS_WORDS_MAX - 1, why);
    s->closed_until_us =
        hfd_clock_mono_us(s->clock) + (retry_after_us > pause_us ? retry_after_us : pause_us);
}

bool hfd_hs_is_closed(const struct hfd_hs_server *s)
{
    return hfd_clock_mono_us(s->clock) < s->closed_until_us;
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

/* Ends a step by a refusal. ABSENT is for the caller. */
static enum hfd_step_end refused(struct hfd_hs_work *w, const struct hfd_kube_answer *answer,
                                 const struct hfd_kube_refusal *why)
{
    const char *reason = hfd_kube_class_reason(why->class);
    const char *field = why->field.len > 0 ? hfd_hs_order_field(why->field) : NULL;

    switch (why->class) {
    case HFD_KUBE_DONE:
        return HFD_STEP_DONE;
    case HFD_KUBE_CONFLICT:
    case HFD_KUBE_INVALID:
        return hfd_hs_end(w, HFD_STEP_REFUSED, reason, "%s%s%s", field != NULL ? field : "",
                          field != NULL ? ": " : "", why->message);
    case HFD_KUBE_AGAIN:
    case HFD_KUBE_EXPIRED:
    case HFD_KUBE_ABSENT:
        return hfd_hs_end(w, HFD_STEP_AGAIN, reason, "%s", why->message);
    case HFD_KUBE_NO_PLACE:
        return hfd_hs_end(w, HFD_STEP_WAITS, reason, "%s", why->message);
    case HFD_KUBE_FORBIDDEN:
    case HFD_KUBE_NO_TYPE:
        return hfd_hs_end(w, HFD_STEP_FAULT, reason, "%s", why->message);
    case HFD_KUBE_UNREACHABLE:
        break;
    }
    close_server(w->server, answer->retry_after_us, why->message);
    return unreachable(w);
}

/* Judges a call. @param absent  set if the object is not there, which is no refusal then */
static enum hfd_step_end judge(struct hfd_hs_work *w, hfd_rc rc, struct hfd_kube_answer *answer,
                               const struct hfd_err *err, bool *absent)
{
    struct hfd_kube_refusal why;

    if (rc != HFD_OK)
        return no_answer(w, rc, err);
    hfd_kube_judge(answer, &why);
    if (why.class != HFD_KUBE_UNREACHABLE)
        w->server->failures = 0;
    if (absent != NULL) {
        *absent = why.class == HFD_KUBE_ABSENT ||
                  (why.class == HFD_KUBE_NO_PLACE && answer->status == 404);
        if (*absent)
            return HFD_STEP_DONE;
    }
    return refused(w, answer, &why);
}

enum hfd_step_end hfd_hs_read(struct hfd_hs_work *w, const struct hfd_kube_object *name,
                              json_t **doc)
{
    struct hfd_kube_answer answer;
    enum hfd_step_end end;
    struct hfd_err err;
    bool absent;
    hfd_rc rc;

    if (hfd_hs_is_closed(w->server))
        return unreachable(w);
    rc = hfd_kube_get(w->server->kube, name, &answer, &err);
    end = judge(w, rc, &answer, &err, &absent);
    if (end == HFD_STEP_DONE) {
        json_decref(*doc);
        *doc = absent ? NULL : json_incref(answer.doc);
    }
    hfd_kube_answer_fini(&answer);
    return end;
}

enum hfd_step_end hfd_hs_apply(struct hfd_hs_work *w, const struct hfd_kube_apply *apply,
                               json_t **doc)
{
    struct hfd_kube_answer answer;
    enum hfd_step_end end;
    struct hfd_err err;
    hfd_rc rc;

    if (hfd_hs_is_closed(w->server))
        return unreachable(w);
    /* A deletion may have come while this step read. */
    if (!apply->dry_run && !hfd_hs_is_current(w))
        return HFD_STEP_AGAIN;
    rc = hfd_kube_apply(w->server->kube, apply, &answer, &err);
    end = judge(w, rc, &answer, &err, NULL);
    if (end == HFD_STEP_DONE && doc != NULL) {
        json_decref(*doc);
        *doc = json_incref(answer.doc);
    }
    hfd_kube_answer_fini(&answer);
    return end;
}

enum hfd_step_end hfd_hs_list(struct hfd_hs_work *w, const struct hfd_kube_list *list)
{
    struct hfd_kube_answer answer;
    enum hfd_step_end end;
    struct hfd_err err;
    bool absent;
    hfd_rc rc;

    if (hfd_hs_is_closed(w->server))
        return unreachable(w);
    rc = hfd_kube_list(w->server->kube, list, NULL, &answer, &err);
    end = judge(w, rc, &answer, &err, &absent);
    hfd_kube_answer_fini(&answer);
    return end;
}

enum hfd_step_end hfd_hs_delete(struct hfd_hs_work *w, const struct hfd_kube_object *name,
                                const json_t *doc)
{
    struct hfd_kube_answer answer;
    enum hfd_step_end end;
    struct hfd_err err;
    bool absent;
    hfd_rc rc;

    if (hfd_hs_is_deleting(doc))
        return HFD_STEP_DONE; /* a second request would change nothing */
    if (hfd_hs_is_closed(w->server))
        return unreachable(w);
    rc = hfd_kube_delete(w->server->kube, name, hfd_hs_metadata(doc, "uid"), &answer, &err);
    end = judge(w, rc, &answer, &err, &absent);
    hfd_kube_answer_fini(&answer);
    return end;
}

/* ---- whose objects ---- */

bool hfd_hs_is_ours(const struct hfd_hs_work *w, const json_t *object)
{
    const hfd_slice guresid = hfd_hs_label(object, HFD_HS_LABEL_GURESID);

    if (!hfd_slice_is(hfd_hs_label(object, HFD_HS_LABEL_MANAGER), HFD_HS_ADAPTER))
        return false;
    return hfd_slice_eq(hfd_hs_label(object, HFD_HS_LABEL_CLUSTER), w->cluster.id) ||
           (guresid.len > 0 && hfd_slice_eq(guresid, w->source.guresid));
}

enum hfd_step_end hfd_hs_refuse_strange(struct hfd_hs_work *w, const struct hfd_kube_object *name)
{
    w->is_strange = true;
    return hfd_hs_end(w, HFD_STEP_REFUSED, "NotOurs",
                      "%s %.*s/%.*s exists, and is not of this resource: choose another name, or "
                      "remove it",
                      name->type->kind, HFD_SLICE_FMT(name->namespace), HFD_SLICE_FMT(name->name));
}

/* ---- shared steps ---- */

bool hfd_hs_is_current(void *arg)
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
    struct hfd_mistakes mistakes = {.found = &found, .mem = w->mem};
    json_t *values = order_of(w);
    const struct hfd_ordered order = {.kind = w->row.kind,
                                      .cluster_name = w->cluster.name,
                                      .values = values,
                                      .secrets = w->secrets};
    const hfd_slice head = HFD_SLICE("driver.values.");
    const struct hfd_violation *v = &found.items[0];
    hfd_slice field;
    hfd_rc rc = HFD_NOMEM;

    if (values != NULL)
        rc = hfd_hs_order_check(w->checker, &order, &mistakes, NULL);
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

enum hfd_step_end hfd_hs_validate(void *arg)
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
        end = hfd_hs_apply(w, &apply, NULL);
    w->validated = end == HFD_STEP_DONE;
    return end;
}

enum hfd_step_end hfd_hs_apply_object(void *arg)
{
    struct hfd_hs_work *w = arg;
    struct hfd_kube_apply apply = {.object = w->object.name, .manager = HFD_HS_MANAGER};
    enum hfd_step_end end;

    if (!hfd_hs_must_apply(w))
        return HFD_STEP_DONE;
    if (manifest_of(w, &apply.body) != HFD_OK)
        return hfd_hs_out_of_memory(w);
    end = hfd_hs_apply(w, &apply, &w->object.doc);
    if (end == HFD_STEP_DONE) {
        w->record->applied_generation = w->row.generation;
        w->record->applied_us = w->mono_us;
    }
    return end;
}

enum hfd_step_end hfd_hs_delete_object(void *arg)
{
    struct hfd_hs_work *w = arg;
    enum hfd_step_end end = hfd_hs_read(w, &w->object.name, &w->object.doc);

    if (end != HFD_STEP_DONE || w->object.doc == NULL || !hfd_hs_is_ours(w, w->object.doc))
        return end;
    end = hfd_hs_delete(w, &w->object.name, w->object.doc);
    return end == HFD_STEP_DONE ? hfd_hs_wait_gone(w, &w->object.name) : end;
}

enum hfd_step_end hfd_hs_wait_gone(struct hfd_hs_work *w, const struct hfd_kube_object *name)
{
    return hfd_hs_end(w, HFD_STEP_WAITS, "Deleting", "waits for %s %.*s to be gone",
                      name->type->kind, HFD_SLICE_FMT(name->name));
}

bool hfd_hs_must_apply(const struct hfd_hs_work *w)
{
    return w->object.doc == NULL || hfd_hs_applied_generation(w->object.doc) != w->row.generation ||
           !hfd_slice_eq(hfd_hs_label(w->object.doc, HFD_HS_LABEL_CLUSTER), w->cluster.id) ||
           w->record->applied_generation != w->row.generation ||
           w->mono_us - w->record->applied_us >= w->resync_us;
}

enum hfd_step_end hfd_hs_find_management(void *arg)
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

enum hfd_step_end hfd_hs_find(void *arg)
{
    struct hfd_hs_work *w = arg;
    const enum hfd_step_end end = hfd_hs_read(w, &w->object.name, &w->object.doc);

    if (end != HFD_STEP_DONE || w->object.doc == NULL || hfd_hs_is_ours(w, w->object.doc))
        return end;
    json_decref(w->object.doc); /* what it says is not reported */
    w->object.doc = NULL;
    return hfd_hs_refuse_strange(w, &w->object.name);
}

enum hfd_step_end hfd_hs_wait_for_old(void *arg)
{
    struct hfd_hs_work *w = arg;

    if (w->object.doc == NULL || !hfd_hs_is_deleting(w->object.doc))
        return HFD_STEP_DONE;
    return hfd_hs_end(w, HFD_STEP_WAITS, "Deleting", "%s %.*s is being deleted",
                      w->object.name.type->kind, HFD_SLICE_FMT(w->object.name.name));
}

struct hfd_hs_facts hfd_hs_facts_of(const struct hfd_hs_work *w)
{
    return (struct hfd_hs_facts){
        .object = w->object.doc,
        .generation = w->row.generation,
        .serves = json_integer_value(json_object_get(w->prev_data, "serves")) > 0,
    };
}

enum hfd_step_end hfd_hs_end_by_judgement(struct hfd_hs_work *w)
{
    const struct hfd_hs_judgement *j = &w->judgement;

    w->judged = true;
    if (j->stage == HFD_HS_REFUSED)
        return hfd_hs_end(w, HFD_STEP_REFUSED, j->reason, "%s%s%s", j->gate,
                          j->message[0] != '\0' ? ": " : "", j->message);
    if (j->stage != HFD_HS_WAITS)
        return HFD_STEP_DONE;
    return hfd_hs_end(w, HFD_STEP_WAITS, "Progressing", "waits for %s%s%s", j->gate,
                      j->message[0] != '\0' ? ": " : "", j->message);
}
