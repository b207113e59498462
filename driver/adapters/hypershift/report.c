/* See report.h. */
#include "driver/adapters/hypershift/report.h"

#include "driver/adapters/hypershift/order.h"
#include "driver/adapters/hypershift/work.h"
#include "driver/base/foreign.h"

#include <stdio.h>

/* Available is known to flap just after an installation. */
#define DOWN_MAX_US INT64_C(30000000)

static const char works[] = "AdapterWorks";

/* ---- data ---- */

/* The kind of an object as EMCO has it: Group, Version, Kind. @return gives; NULL = no memory */
static json_t *gvk(const struct hfd_kube_type *type)
{
    const char *slash = strchr(type->group_version, '/');
    const size_t group = slash != NULL ? (size_t)(slash - type->group_version) : 0;

    return json_pack("{s:s%,s:s,s:s}", "Group", type->group_version, group, "Version",
                     slash != NULL ? slash + 1 : type->group_version, "Kind", type->kind);
}

/* The part of the data beside objects and outputs. */
struct progress {
    int64_t serves;      /* the generation that was reached; 0 = none */
    int64_t updating_to; /* 0 = no update of what serves is going on */
    const char *step;    /* "GATE Available", "SYNC Validated"; NULL = complete */
    const char *message;
    int percent;
    const char *rsync; /* EMCO's word for the object: "Applied" */
};

struct build {
    bool failed;
};

static void data_put(struct build *b, json_t *obj, const char *key, json_t *value)
{
    if (value == NULL || json_object_set_new(obj, key, value) != 0)
        b->failed = true;
}

static void data_copy(struct build *b, json_t *to, const json_t *from, const char *key)
{
    const json_t *v = json_object_get(from, key);

    if (v != NULL)
        data_put(b, to, key, hfd_json_deep_copy(v));
}

/* The conditions of an object, with what a reader needs of them. */
static json_t *conditions_of(struct build *b, const json_t *object)
{
    static const char *const members[] = {"type", "status", "reason", "message"};
    const json_t *all = json_object_get(json_object_get(object, "status"), "conditions");
    json_t *list = json_array();

    for (size_t i = 0; list != NULL && i < json_array_size(all); i++) {
        json_t *one = json_object();

        for (size_t k = 0; one != NULL && k < sizeof(members) / sizeof(members[0]); k++)
            data_copy(b, one, json_array_get(all, i), members[k]);
        if (one == NULL || json_array_append_new(list, one) != 0)
            b->failed = true;
    }
    return list;
}

/* The entry of an object for the status query. */
static json_t *entry_of(struct build *b, const struct hfd_hs_work *w, const char *rsync)
{
    const struct hfd_hs_object *o = &w->object;
    const hfd_slice version = hfd_hs_metadata(o->doc, "resourceVersion");
    json_t *entry = json_object(), *detail;

    if (entry == NULL) {
        b->failed = true;
        return NULL;
    }
    data_put(b, entry, "GVK", gvk(o->name.type));
    data_put(b, entry, "name", json_stringn(o->name.name.p, o->name.name.len));
    data_put(b, entry, "namespace", json_stringn(o->name.namespace.p, o->name.namespace.len));
    data_put(b, entry, "rsync-status", json_string(rsync));
    data_put(b, entry, "present", json_boolean(o->doc != NULL));
    if (o->doc == NULL)
        return entry;
    data_put(b, entry, "resourceVersion",
             json_stringn(version.p != NULL ? version.p : "", version.len));
    detail = json_object();
    data_put(b, entry, "detail", detail);
    if (!b->failed)
        data_put(b, detail, "conditions", conditions_of(b, o->doc));
    if (!b->failed && w->tree != NULL)
        data_put(b, detail, "tree", json_incref(w->tree));
    return entry;
}

static void put_update(struct build *b, json_t *data, const struct progress *p)
{
    json_t *update = json_pack("{s:I,s:i,s:s,s:s}", "generation", (json_int_t)p->updating_to,
                               "progress", p->percent, "step", p->step != NULL ? p->step : "",
                               "message", p->message != NULL ? p->message : "");

    data_put(b, data, "update", update);
}

/* Conditions that refuse have a time: it is kept here, over restarts. */
static void put_refusals(struct build *b, const struct hfd_hs_work *w, json_t *data)
{
    if (!w->judged)
        data_copy(b, data, w->prev_data, "refusals");
    else if (w->judgement.refusal_count > 0)
        data_put(b, data, "refusals", hfd_hs_refusals_json(&w->judgement, w->row.generation));
}

/* Outputs that were not read this time stay as they were reported. */
static void put_outputs(struct build *b, const struct hfd_hs_work *w, json_t *data,
                        hfd_slice *secrets)
{
    static const char *const members[] = {"endpoint", "version", "cluster_type", "cluster_data",
                                          "kubeconfig_secret"};
    const json_t *from = w->outputs != NULL ? w->outputs : w->prev_data;
    const json_t *plain = json_object_get(w->outputs, "secrets");
    json_t *redacted, *names = NULL;
    const char *key;
    const json_t *value;

    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
        data_copy(b, data, from, members[i]);
    *secrets = w->prev_secrets;
    if (json_object_size(plain) > 0)
        *secrets = hfd_json_dump_arena(w->mem, plain);
    if (secrets->p == NULL)
        b->failed = true;
    if (secrets->len == 0 || b->failed)
        return;
    if (hfd_json_parse(*secrets, &names, NULL) != HFD_OK) {
        *secrets = HFD_SLICE("");
        return;
    }
    redacted = json_object();
    json_object_foreach (names, key, value) {
        data_put(b, redacted, key, json_string("[redacted]"));
    }
    json_decref(names);
    data_put(b, data, "secrets", redacted);
}

/* Makes the data. @return HFD_OK, HFD_NOMEM */
static hfd_rc data_make(const struct hfd_hs_work *w, const struct progress *p,
                        struct hfd_hs_data *out)
{
    json_t *doc = json_object(), *objects = json_array();
    struct build b = {doc == NULL || objects == NULL};

    *out = (struct hfd_hs_data){.secrets = HFD_SLICE("")};
    if (!b.failed && json_array_append_new(objects, entry_of(&b, w, p->rsync)) != 0)
        b.failed = true;
    data_put(&b, doc, "objects", objects);
    data_put(&b, doc, "progress", json_integer(p->updating_to != 0 ? 100 : p->percent));
    if (p->serves > 0)
        data_put(&b, doc, "serves", json_integer(p->serves));
    if (p->step != NULL && p->updating_to == 0)
        data_put(&b, doc, "step", json_string(p->step));
    if (p->updating_to != 0)
        put_update(&b, doc, p);
    if (w->row.deleted_us == 0)
        put_refusals(&b, w, doc);
    if (w->row.kind == HFD_KIND_CLUSTER)
        put_outputs(&b, w, doc, &out->secrets);
    if (!b.failed)
        out->text = hfd_json_dump_arena(w->mem, doc);
    hfd_objects_count(doc, &out->objects);
    json_decref(doc);
    return !b.failed && out->text.p != NULL ? HFD_OK : HFD_NOMEM;
}

/* The percent of this step, not below what was reported of the same generation. */
static int percent_of(const struct hfd_hs_work *w, int64_t generation, int percent)
{
    const json_t *update = json_object_get(w->prev_data, "update");
    json_int_t before = 0;

    if (json_integer_value(json_object_get(update, "generation")) == generation)
        before = json_integer_value(json_object_get(update, "progress"));
    else if (w->prev.adapter.len > 0 && w->prev.observed_generation == generation)
        before = json_integer_value(json_object_get(w->prev_data, "progress"));
    return before > percent && before <= 100 ? (int)before : percent;
}

/* ---- what to report ---- */

static int64_t serves_of(const struct hfd_hs_work *w)
{
    return json_integer_value(json_object_get(w->prev_data, "serves"));
}

/* A serving generation counts as down when it has been so for a while. */
static bool is_down(struct hfd_hs_work *w)
{
    struct hfd_hs_record *r = w->record;

    if (serves_of(w) == 0) {
        r->down_since_us = 0;
        return false;
    }
    if (!w->judged)
        return r->down_since_us != 0 && w->mono_us - r->down_since_us > DOWN_MAX_US;
    if (w->judgement.up)
        r->down_since_us = 0;
    else if (r->down_since_us == 0)
        r->down_since_us = w->mono_us;
    return r->down_since_us != 0 && w->mono_us - r->down_since_us > DOWN_MAX_US;
}

/* "GATE Available" for a closed gate, "SYNC Validated" for any other step. */
static const char *step_text(struct hfd_hs_work *w, const struct hfd_reconciled *ended)
{
    const char *kind = w->row.deleted_us != 0 ? "TEARDOWN" : "SYNC";

    if (ended->at == NULL)
        return NULL;
    if (w->judged && w->judgement.gate != NULL)
        return hfd_arena_printf(w->mem, "GATE %s", w->judgement.gate).p;
    return hfd_arena_printf(w->mem, "%s %s", kind, ended->at->name).p;
}

static const char *rsync_word(const struct hfd_hs_work *w, const struct hfd_reconciled *ended)
{
    if (ended->end == HFD_STEP_FAULT)
        return "Retrying";
    if (ended->end == HFD_STEP_REFUSED && !w->judged)
        return "Failed";
    if (w->row.deleted_us != 0)
        return w->object.doc != NULL ? "Applied" : "Terminated";
    return w->object.doc != NULL ? "Applied" : "Pending";
}

/* Where what is reported stands: the generation, and whether it serves. */
static void report_sync(struct hfd_hs_work *w, const struct hfd_reconciled *ended,
                        struct hfd_hs_report *r, struct progress *p)
{
    const bool reached = ended->end == HFD_STEP_DONE;
    const bool down = is_down(w);
    const int64_t generation = w->row.generation;
    int64_t serves = serves_of(w);

    if (reached)
        serves = generation;
    p->serves = serves;
    p->updating_to = serves != 0 && serves != generation ? generation : 0;
    r->generation = serves != 0 ? serves : generation;
    r->applied = w->object.doc != NULL && hfd_hs_applied_generation(w->object.doc) != 0;
    r->available = serves != 0 && !down;
    if (serves != 0 && down) {
        r->reason = w->judgement.down_reason;
        r->message = w->judgement.down_message;
        if (p->updating_to != 0)
            r->message = hfd_arena_printf(w->mem, "%s; %s", w->words, r->message).p;
    } else if (reached && w->judgement.stage == HFD_HS_PAUSED) {
        r->reason = "ReconciliationPaused";
        r->message = w->judgement.message;
    } else if (serves == generation) {
        r->reason = "ResourceAvailable";
        r->message = "";
    } else {
        r->reason = p->updating_to != 0 ? "Updating" : "Progressing";
        r->message = w->words;
    }
}

static void report_teardown(struct hfd_hs_work *w, const struct hfd_reconciled *ended,
                            struct hfd_hs_report *r)
{
    r->generation = w->row.generation;
    r->finalized = ended->end == HFD_STEP_DONE;
    r->applied = !r->finalized;
    r->reason = r->finalized ? "Finalized" : "Deleting";
    r->message = r->finalized ? "nothing is left on the management cluster" : w->words;
}

/* A condition of the object refuses, or the API server did, or it is not ours. */
static void report_validation(struct hfd_hs_work *w, const struct hfd_reconciled *ended,
                              struct hfd_hs_reports *out)
{
    const bool refused = ended->end == HFD_STEP_REFUSED;
    const bool deleting = w->row.deleted_us != 0;

    if (deleting ? ended->end != HFD_STEP_DONE : !refused && !w->validated)
        return;
    out->items[out->count++] = (struct hfd_hs_report){
        .adapter = HFD_HS_VALIDATION,
        .generation = w->row.generation,
        .available = !deleting && !refused,
        .applied = !deleting && !refused,
        .healthy = true,
        .finalized = deleting,
        .reason = deleting  ? "Finalized"
                  : refused ? w->reason
                            : "Validated",
        .message = refused ? w->words : "",
        .health_reason = works,
        .health_message = "",
        .data = {.text = HFD_SLICE("{}"), .secrets = HFD_SLICE("")},
    };
}

hfd_rc hfd_hs_reports_make(struct hfd_hs_work *w, const struct hfd_reconciled *ended,
                           struct hfd_hs_reports *out, struct hfd_err *err)
{
    struct hfd_hs_report *r;
    struct progress p = {.step = step_text(w, ended), .rsync = rsync_word(w, ended)};
    const bool fault = ended->end == HFD_STEP_FAULT;

    *out = (struct hfd_hs_reports){.count = 0};
    if (ended->at != NULL && p.step == NULL)
        return hfd_fail_nomem(err, "make a report");
    report_validation(w, ended, out);
    /* A new resource that is refused has nothing that this adapter can report on. */
    r = &out->items[out->count++];
    *r = (struct hfd_hs_report){.adapter = HFD_HS_ADAPTER,
                                .healthy = !fault,
                                .health_reason = fault ? w->reason : works,
                                .health_message = fault ? w->words : ""};
    if (w->row.deleted_us != 0)
        report_teardown(w, ended, r);
    else
        report_sync(w, ended, r, &p);
    if (r->message == NULL)
        return hfd_fail_nomem(err, "make a report");
    p.percent = percent_of(w, w->row.generation, w->judgement.progress);
    p.message = w->words;
    if (w->row.deleted_us != 0)
        p.serves = 0;
    return data_make(w, &p, &r->data) == HFD_OK ? HFD_OK : hfd_fail_nomem(err, "make a report");
}

/* ---- its form ---- */

size_t hfd_hs_report_conditions(const struct hfd_hs_work *w, const struct hfd_hs_report *r,
                                struct hfd_condition out[HFD_HS_CONDITIONS_MAX])
{
    const enum hfd_status available = r->available ? HFD_STATUS_TRUE : HFD_STATUS_FALSE;
    const enum hfd_status applied = r->applied ? HFD_STATUS_TRUE : HFD_STATUS_FALSE;
    const enum hfd_status healthy = r->healthy ? HFD_STATUS_TRUE : HFD_STATUS_FALSE;
    const enum hfd_status finalized = r->finalized ? HFD_STATUS_TRUE : HFD_STATUS_FALSE;
    const hfd_slice reason = hfd_slice_of(r->reason), message = hfd_slice_of(r->message);

    out[0] = (struct hfd_condition){
        .type = HFD_SLICE("Available"), .status = available, .reason = reason, .message = message};
    out[1] =
        (struct hfd_condition){.type = HFD_SLICE("Applied"),
                               .status = applied,
                               .reason = r->applied ? HFD_SLICE("AppliedManifestComplete") : reason,
                               .message = r->applied ? HFD_SLICE("") : message};
    out[2] = (struct hfd_condition){.type = HFD_SLICE("Health"),
                                    .status = healthy,
                                    .reason = hfd_slice_of(r->health_reason),
                                    .message = hfd_slice_of(r->health_message)};
    out[3] = (struct hfd_condition){
        .type = HFD_SLICE("Finalized"), .status = finalized, .reason = reason, .message = message};
    return w->row.deleted_us != 0 ? HFD_HS_CONDITIONS_MAX : HFD_HS_CONDITIONS_MAX - 1;
}

/* ---- the tree of what the operator made ---- */

#define EVERY_US (120 * HFD_US_PER_S)  /* between two times of a resource */
#define CLOSED_US (300 * HFD_US_PER_S) /* between two tries of a kind that cannot be listed */
#define LOOKED_AT_MAX 500              /* objects of a kind */
#define PAGE_LIMIT 100
#define TEXT_MAX_BYTES 253 /* a name of Kubernetes is not longer */

#define NODE_POOL "hypershift.openshift.io/nodePool" /* annotation: its namespace and name */
#define CAPI_OLD "cluster.x-k8s.io/v1beta1"
#define CAPI_NEW "cluster.x-k8s.io/v1beta2"

/* Owners come before what they own. A kind has up to two versions. */
static const struct {
    bool of_cluster_only;
    struct hfd_kube_type versions[HFD_HS_PART_VERSIONS];
} kinds[HFD_HS_PARTS] = {
    {true, {{CAPI_OLD, "Cluster", "clusters", false}, {CAPI_NEW, "Cluster", "clusters", false}}},
    {true,
     {{"hypershift.openshift.io/v1beta1", "HostedControlPlane", "hostedcontrolplanes", false},
      {NULL, NULL, NULL, false}}},
    {false,
     {{CAPI_OLD, "MachineDeployment", "machinedeployments", false},
      {CAPI_NEW, "MachineDeployment", "machinedeployments", false}}},
    {false,
     {{CAPI_OLD, "MachineSet", "machinesets", false},
      {CAPI_NEW, "MachineSet", "machinesets", false}}},
    {false, {{CAPI_OLD, "Machine", "machines", false}, {CAPI_NEW, "Machine", "machines", false}}},
};

/* A tree under way. Its objects are in order, each behind its owner. */
struct tree {
    struct hfd_hs_work *w;
    const struct hfd_kube_type *type; /* of the list under way */
    hfd_slice pool;                   /* of a NodePool: its annotation; empty for a cluster */
    json_t *root, *not_shown;         /* root: borrowed after its first member */
    struct {
        json_t *node; /* borrowed from the root */
        hfd_slice uid;
    } objects[HFD_HS_TREE_MAX];
    size_t count, looked_at;
    json_int_t left_off;
    bool failed; /* memory is short */
};

/* ---- one object ---- */

static void put(struct tree *t, json_t *obj, const char *key, json_t *value)
{
    if (value == NULL || json_object_set_new(obj, key, value) != 0)
        t->failed = true;
}

static void put_text(struct tree *t, json_t *obj, const char *key, hfd_slice text)
{
    if (text.len > 0)
        put(t, obj, key, json_stringn(text.p, hfd_foreign_cut(text, TEXT_MAX_BYTES)));
}

static hfd_slice annotation(const json_t *object, const char *key)
{
    return hfd_json_text(json_object_get(json_object_get(object, "metadata"), "annotations"), key);
}

/* The reference to the object's controller, or to its first owner. NULL = none */
static const json_t *owner_of(const json_t *object)
{
    const json_t *all = json_object_get(json_object_get(object, "metadata"), "ownerReferences");

    for (size_t i = 0; i < json_array_size(all); i++)
        if (json_is_true(json_object_get(json_array_get(all, i), "controller")))
            return json_array_get(all, i);
    return json_array_get(all, 0);
}

static void put_replicas(struct tree *t, json_t *node, const json_t *object)
{
    const json_t *wanted = json_object_get(json_object_get(object, "spec"), "replicas");
    const json_t *ready =
        json_object_get(json_object_get(object, "status"),
                        t->type == &hfd_hs_node_pools ? "replicas" : "readyReplicas");

    if (json_is_integer(wanted))
        put(t, node, "replicas",
            json_sprintf("%lld/%lld", (long long)json_integer_value(ready),
                         (long long)json_integer_value(wanted)));
}

static void put_ready(struct tree *t, json_t *node, const json_t *object)
{
    struct hfd_hs_condition c = hfd_hs_condition_of(object, "Ready");

    if (!c.found)
        c = hfd_hs_condition_of(object, "Available");
    if (c.is_true || c.is_false)
        put(t, node, "ready", json_boolean(c.is_true));
}

/* The entry of an object. @return gives; NULL = memory is short */
static json_t *node_of(struct tree *t, const json_t *object)
{
    const json_t *owner = owner_of(object);
    json_t *node = json_object();

    if (node == NULL)
        return NULL;
    put(t, node, "GVK", gvk(t->type));
    put_text(t, node, "name", hfd_hs_metadata(object, "name"));
    put_text(t, node, "namespace", hfd_hs_metadata(object, "namespace"));
    if (owner != NULL)
        put(t, node, "owner",
            json_sprintf("%.*s/%.*s", HFD_FOREIGN_CUT(hfd_json_text(owner, "kind"), 63),
                         HFD_FOREIGN_CUT(hfd_json_text(owner, "name"), 253)));
    if (t->type != &hfd_hs_node_pools) /* which the adapter applies */
        put(t, node, "observed-only", json_true());
    put_text(t, node, "phase", hfd_json_text(json_object_get(object, "status"), "phase"));
    put_ready(t, node, object);
    put_replicas(t, node, object);
    if (hfd_hs_is_deleting(object))
        put(t, node, "deleting", json_true());
    return node;
}

/* ---- its place ---- */

/* The node of the object's owner, or the root. NULL: a NodePool's tree does not have the object */
static json_t *place_of(const struct tree *t, const json_t *object)
{
    const hfd_slice uid = hfd_json_text(owner_of(object), "uid");

    for (size_t i = 0; uid.len > 0 && i < t->count; i++)
        if (hfd_slice_eq(t->objects[i].uid, uid))
            return t->objects[i].node;
    if (t->pool.len > 0 && !hfd_slice_eq(annotation(object, NODE_POOL), t->pool))
        return NULL;
    return t->root;
}

static void append(struct tree *t, json_t *place, json_t *node)
{
    json_t *owned = json_object_get(place, "owned");

    if (owned == NULL) {
        owned = json_array();
        put(t, place, "owned", owned);
    }
    if (t->failed || json_array_append(owned, node) != 0)
        t->failed = true;
}

static bool take_object(void *arg, const json_t *object)
{
    struct tree *t = arg;
    const hfd_slice uid = hfd_arena_dup(t->w->mem, hfd_hs_metadata(object, "uid"));
    json_t *place = place_of(t, object), *node;

    if (++t->looked_at > LOOKED_AT_MAX)
        return false;
    if (place == NULL)
        return true;
    if (t->count == HFD_HS_TREE_MAX) {
        t->left_off++;
        return true;
    }
    node = node_of(t, object);
    if (node == NULL || uid.p == NULL)
        t->failed = true;
    else
        append(t, place, node);
    t->objects[t->count].node = node;
    t->objects[t->count++].uid = uid;
    json_decref(node); /* the tree has it */
    return !t->failed;
}

/* ---- lists ---- */

/* The namespace that HyperShift makes for a control plane. p is NULL if memory is short. */
/* Names of ours have no dots, which HyperShift would replace. */
static hfd_slice control_plane_namespace(hfd_slice namespace, hfd_slice cluster_name,
                                         struct hfd_arena *mem)
{
    return hfd_arena_printf(mem, "%.*s-%.*s", HFD_SLICE_FMT(namespace),
                            HFD_SLICE_FMT(cluster_name));
}

/* Lists objects of a type. @return its class; DONE: all of them were given */
static enum hfd_kube_class list_type(struct tree *t, const struct hfd_kube_type *type,
                                     const char *selector, struct hfd_kube_refusal *why)
{
    const bool is_part = type != &hfd_hs_node_pools;
    const hfd_slice namespace = hfd_hs_work_namespace(t->w);
    struct hfd_kube_list list = {.objects = {.type = type, .namespace = namespace},
                                 .selector = selector,
                                 .page_limit = PAGE_LIMIT,
                                 .on_item = take_object,
                                 .ctx = t};
    struct hfd_kube_answer answer = {0};
    hfd_rc rc;

    if (is_part)
        list.objects.namespace = control_plane_namespace(namespace, t->w->cluster.name, t->w->mem);
    if (list.objects.namespace.p == NULL)
        return HFD_KUBE_UNREACHABLE;
    t->type = type;
    t->looked_at = 0;
    *why = (struct hfd_kube_refusal){.class = HFD_KUBE_UNREACHABLE};
    rc = hfd_kube_list(t->w->server->kube, &list, NULL, &answer, NULL);
    if (rc == HFD_OK)
        hfd_kube_judge(&answer, why);
    hfd_kube_answer_fini(&answer);
    return why->class;
}

static void note_not_shown(struct tree *t, const char *kind, const struct hfd_hs_part *part)
{
    json_t *entry =
        json_pack("{s:s,s:s,s:s}", "kind", kind, "reason", part->reason, "message", part->message);

    if (entry == NULL || json_array_append_new(t->not_shown, entry) != 0)
        t->failed = true;
}

/* Lists a kind that the operator makes. @return false: the API server does not answer */
static bool list_kind(struct tree *t, size_t kind)
{
    struct hfd_hs_part *part = &t->w->server->parts[kind];
    const struct hfd_kube_type *versions = kinds[kind].versions;
    enum hfd_kube_class class = HFD_KUBE_NO_TYPE;
    struct hfd_kube_refusal why;

    if (t->w->mono_us < part->closed_until_us) {
        note_not_shown(t, versions[0].kind, part);
        return true;
    }
    for (size_t tried = 0; tried < HFD_HS_PART_VERSIONS && class == HFD_KUBE_NO_TYPE; tried++) {
        if (versions[part->version].kind != NULL)
            class = list_type(t, &versions[part->version], NULL, &why);
        if (class == HFD_KUBE_NO_TYPE)
            part->version = (part->version + 1) % HFD_HS_PART_VERSIONS;
    }
    if (class != HFD_KUBE_NO_TYPE && class != HFD_KUBE_FORBIDDEN)
        return class == HFD_KUBE_DONE;
    part->closed_until_us = t->w->mono_us + CLOSED_US;
    part->reason = hfd_kube_class_reason(class);
    (void)snprintf(part->message, sizeof(part->message), "%.199s",
                   class == HFD_KUBE_FORBIDDEN ? why.message
                                               : "the API server does not have this kind");
    hfd_foreign_drop_halves(part->message);
    note_not_shown(t, versions[0].kind, part);
    return true;
}

/* The NodePools of a cluster: HyperShift makes the HostedCluster their owner. */
static bool list_pools(struct tree *t)
{
    const hfd_slice selector = hfd_arena_printf(
        t->w->mem, HFD_HS_OURS "," HFD_HS_LABEL_CLUSTER "=%.*s", HFD_SLICE_FMT(t->w->cluster.id));
    struct hfd_kube_refusal why;

    return selector.p != NULL &&
           list_type(t, &hfd_hs_node_pools, selector.p, &why) == HFD_KUBE_DONE;
}

static bool list_all(struct tree *t)
{
    bool answers = t->pool.len > 0 || list_pools(t);

    for (size_t i = 0; answers && !t->failed && i < HFD_HS_PARTS; i++)
        if (t->pool.len == 0 || !kinds[i].of_cluster_only)
            answers = list_kind(t, i);
    return answers && !t->failed;
}

/* ---- the whole ---- */

/* The tree of the last report, as long as the object is there. */
static void keep_last(struct hfd_hs_work *w)
{
    const json_t *entry = json_array_get(json_object_get(w->prev_data, "objects"), 0);

    w->tree = json_incref(json_object_get(json_object_get(entry, "detail"), "tree"));
}

static bool is_due(struct hfd_hs_work *w, bool reached)
{
    struct hfd_hs_record *r = w->record;
    const bool is_new = reached && !r->tree_reached;

    r->tree_reached = reached;
    if (!is_new && w->mono_us < r->tree_due_us)
        return false;
    r->tree_due_us = w->mono_us + EVERY_US;
    return !hfd_hs_is_closed(w->server);
}

/* Begins with the object itself, which is ours. */
static bool begin(struct tree *t)
{
    const struct hfd_hs_work *w = t->w;
    const struct hfd_kube_object *o = &w->object.name;

    t->root = json_object();
    t->not_shown = json_array();
    if (t->root == NULL || t->not_shown == NULL)
        return false;
    put(t, t->root, "GVK", gvk(o->type));
    put_text(t, t->root, "name", o->name);
    put_text(t, t->root, "namespace", o->namespace);
    if (w->row.kind == HFD_KIND_NODEPOOL)
        t->pool = hfd_arena_printf(w->mem, "%.*s/%.*s", HFD_SLICE_FMT(o->namespace),
                                   HFD_SLICE_FMT(o->name));
    return !t->failed && t->pool.p != NULL;
}

void hfd_hs_tree_read(struct hfd_hs_work *w, bool reached)
{
    struct tree t = {.w = w, .pool = HFD_SLICE("")};
    bool whole;

    if (w->object.doc == NULL)
        return;
    if (!is_due(w, reached)) {
        keep_last(w);
        return;
    }
    whole = begin(&t) && list_all(&t);
    if (whole && json_array_size(t.not_shown) > 0)
        put(&t, t.root, "not_shown", json_incref(t.not_shown));
    if (whole && t.left_off > 0)
        put(&t, t.root, "left_off", json_integer(t.left_off));
    if (whole && !t.failed)
        w->tree = json_incref(t.root);
    else
        keep_last(w);
    json_decref(t.root);
    json_decref(t.not_shown);
}
