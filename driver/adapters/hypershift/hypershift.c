/* See hypershift.h. */
#include "driver/adapters/hypershift/hypershift.h"

#include "driver/adapters/hypershift/order.h"
#include "driver/adapters/hypershift/state.h"
#include "driver/adapters/hypershift/report.h"
#include "driver/adapters/hypershift/work.h"
#include "driver/base/check.h"
#include "driver/base/clock.h"
#include "driver/base/file.h"
#include "driver/base/log.h"
#include "driver/base/metrics.h"
#include "driver/base/thread.h"
#include "driver/base/trouble.h"
#include "driver/kube/client.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* ---- seen ---- */

/*
 * The objects of ours on a management cluster, as they were at the last look: for the list of
 * orphans. One thread fills it, any thread reads it.
 */

#define HFD_HS_SEEN_MAX                                                                            \
    2000 /* HostedClusters and NodePools of a management cluster; more are left out */

struct hfd_hs_inventory {
    pthread_mutex_t lock;
    struct hfd_hs_inventory_object *items;
    size_t count;
    bool warned; /* Secrets cannot be listed */
};

#define PAGE_LIMIT 200
#define NAME_MAX_BYTES 254
#define ID_MAX_BYTES 64

struct hfd_hs_inventory_object {
    enum hfd_kind kind;
    const char *object; /* "HostedCluster" */
    char id[ID_MAX_BYTES], guresid[HFD_GURESID_MAX + 1];
    char namespace[NAME_MAX_BYTES], name[NAME_MAX_BYTES];
    int64_t generation, created_us, deleted_us;
};

/* A look under way. */
struct look {
    struct hfd_hs_inventory_object *items;
    size_t count;
    enum hfd_kind kind;
    const struct hfd_kube_type *type;
};

/* Set up an empty list, and free it. */
static void hs_seen_init(struct hfd_hs_inventory *seen)
{
    *seen = (struct hfd_hs_inventory){.count = 0};
    pthread_mutex_init(&seen->lock, NULL);
}

static void hs_seen_fini(struct hfd_hs_inventory *seen)
{
    free(seen->items);
    pthread_mutex_destroy(&seen->lock);
}

static bool copy(char *to, size_t size, hfd_slice text)
{
    if (text.len >= size)
        return false;
    if (text.len > 0)
        memcpy(to, text.p, text.len);
    to[text.len] = '\0';
    return true;
}

/* True if the HostedCluster of a resource is in the list. Its Secrets go with it. */
static bool has_cluster(const struct look *l, hfd_slice guresid)
{
    for (size_t i = 0; i < l->count; i++)
        if (l->items[i].object == hfd_hs_hosted_clusters.kind &&
            hfd_slice_is(guresid, l->items[i].guresid))
            return true;
    return false;
}

static bool take_item(void *ctx, const json_t *item)
{
    struct look *l = ctx;
    struct hfd_hs_inventory_object o = {
        .kind = l->kind, .object = l->type->kind, .generation = hfd_hs_applied_generation(item)};
    const char *label = l->kind == HFD_KIND_CLUSTER ? HFD_HS_LABEL_CLUSTER : HFD_HS_LABEL_NODEPOOL;
    const hfd_slice id = hfd_hs_label(item, label),
                    guresid = hfd_hs_label(item, HFD_HS_LABEL_GURESID);

    if (l->count == HFD_HS_SEEN_MAX)
        return false;
    if (l->type == &hfd_hs_secrets && has_cluster(l, guresid))
        return true;
    (void)!hfd_time_parse(hfd_hs_metadata(item, "creationTimestamp"), &o.created_us, NULL);
    if (hfd_hs_is_deleting(item))
        (void)!hfd_time_parse(hfd_hs_metadata(item, "deletionTimestamp"), &o.deleted_us, NULL);
    /* Without an id or a GUResID it is not what this program made. */
    if (id.len > 0 && guresid.len > 0 && copy(o.id, sizeof(o.id), id) &&
        copy(o.guresid, sizeof(o.guresid), guresid) &&
        copy(o.namespace, sizeof(o.namespace), hfd_hs_metadata(item, "namespace")) &&
        copy(o.name, sizeof(o.name), hfd_hs_metadata(item, "name")))
        l->items[l->count++] = o;
    return true;
}

/* @return the class of the answer; DONE: the list is whole */
static enum hfd_kube_class look_for(struct look *l, struct hfd_kube *kube,
                                    const struct hfd_kube_type *type)
{
    const struct hfd_kube_list list = {.objects = {.type = type},
                                       .selector = HFD_HS_OURS,
                                       .metadata_only = true,
                                       .page_limit = PAGE_LIMIT,
                                       .on_item = take_item,
                                       .ctx = l};
    struct hfd_kube_answer answer = {0};
    struct hfd_kube_refusal why = {.class = HFD_KUBE_UNREACHABLE};

    l->type = type;
    l->kind = type == &hfd_hs_node_pools ? HFD_KIND_NODEPOOL : HFD_KIND_CLUSTER;
    if (hfd_kube_list(kube, &list, NULL, &answer, NULL) == HFD_OK)
        hfd_kube_judge(&answer, &why);
    hfd_kube_answer_fini(&answer);
    return why.class;
}

/* Without the right the other objects are listed. */
static bool look_for_secrets(struct look *l, struct hfd_hs_inventory *seen, struct hfd_kube *kube)
{
    const enum hfd_kube_class class = look_for(l, kube, &hfd_hs_secrets);

    if (class == HFD_KUBE_FORBIDDEN && !seen->warned)
        HFD_LOG(HFD_LOG_WARN, "HyperShift adapter: Secrets cannot be listed",
                HFD_LOG_CSTR("reason", "the account may not list Secrets: give it the right, or "
                                       "unset hypershift.list_secrets"));
    seen->warned = class == HFD_KUBE_FORBIDDEN;
    return class == HFD_KUBE_DONE || class == HFD_KUBE_FORBIDDEN;
}

/*
 * Lists the objects with our label, in all namespaces. A list that is not whole changes nothing.
 * @param secrets  list Secrets whose HostedCluster is gone as well; if that is refused, a warning
 * @return true if it was whole
 */
static bool hs_seen_look(struct hfd_hs_inventory *seen, struct hfd_kube *kube, bool secrets)
{
    struct look l = {.count = 0};
    struct hfd_hs_inventory_object *old;
    bool whole;

    l.items = calloc(HFD_HS_SEEN_MAX, sizeof(*l.items));
    whole = l.items != NULL && look_for(&l, kube, &hfd_hs_hosted_clusters) == HFD_KUBE_DONE &&
            look_for(&l, kube, &hfd_hs_node_pools) == HFD_KUBE_DONE;
    if (whole && secrets)
        whole = look_for_secrets(&l, seen, kube);
    if (!whole) {
        free(l.items);
        return false;
    }
    pthread_mutex_lock(&seen->lock);
    old = seen->items;
    seen->items = l.items;
    seen->count = l.count;
    pthread_mutex_unlock(&seen->lock);
    free(old);
    return true;
}

/* Hands over the objects. Texts are borrowed during the call. Thread: any. */
static void hs_seen_each(struct hfd_hs_inventory *seen, hfd_slice place,
                         hfd_adapter_object_fn *take, void *ctx)
{
    pthread_mutex_lock(&seen->lock);
    for (size_t i = 0; i < seen->count; i++) {
        const struct hfd_hs_inventory_object *o = &seen->items[i];
        const struct hfd_adapter_object object = {
            .kind = o->kind,
            .object = o->object,
            .id = hfd_slice_of(o->id),
            .guresid = hfd_slice_of(o->guresid),
            .namespace = hfd_slice_of(o->namespace),
            .name = hfd_slice_of(o->name),
            .place = place,
            .generation = o->generation,
            .created_us = o->created_us,
            .deleted_us = o->deleted_us,
        };

        take(ctx, &object);
    }
    pthread_mutex_unlock(&seen->lock);
}

/* ---- records: when to visit each cluster and nodepool ---- */

/* Frees all records. */
static void records_fini(struct hfd_hs_records *r)
{
    for (size_t i = 0; i < HFD_HS_BUCKETS; i++) {
        while (r->buckets[i] != NULL) {
            struct hfd_hs_record *next = r->buckets[i]->next;

            free(r->buckets[i]);
            r->buckets[i] = next;
        }
    }
}

/* @return NULL: memory is short, or the id is longer than any of ours */
static struct hfd_hs_record *record_make(struct hfd_hs_records *r, const struct hfd_fleet_row *row)
{
    struct hfd_hs_record **bucket = hfd_hs_bucket_of(r, row->id);
    struct hfd_hs_record *record;

    if (row->id.len > HFD_HS_ID_MAX || row->owner_id.len > HFD_HS_ID_MAX)
        return NULL;
    record = calloc(1, sizeof(*record));
    if (record == NULL)
        return NULL;
    memcpy(record->id, row->id.p, row->id.len);
    if (row->owner_id.len > 0)
        memcpy(record->owner_id, row->owner_id.p, row->owner_id.len);
    record->next = *bucket;
    *bucket = record;
    return record;
}

/*
 * Finds or makes the record of a row of a list, and has it visited at once if the row is new or
 * changed. Forgets the row if memory is short: the next list of all finds it again.
 */
static void record_note(struct hfd_hs_records *r, const struct hfd_fleet_row *row)
{
    struct hfd_hs_record *record = hfd_hs_record_find(r, row->id);
    const bool deleting = row->deleted_us != 0;

    if (record == NULL)
        record = record_make(r, row);
    if (record == NULL)
        return;
    if (record->generation != row->generation || record->deleting != deleting) {
        record->due_us = 0;
        record->attempts = 0;
    }
    record->generation = row->generation;
    record->deleting = deleting;
}

/* Frees one record. */
static void record_remove(struct hfd_hs_records *r, struct hfd_hs_record *record)
{
    struct hfd_hs_record **at = hfd_hs_bucket_of(r, hfd_slice_of(record->id));

    while (*at != record)
        at = &(*at)->next;
    *at = record->next;
    free(record);
}

/*
 * Has a cluster or nodepool visited at once, and with a cluster all its nodepools. A record that
 * was just visited waits for its soonest_us: a stream of events makes few visits.
 */
static void records_touch(struct hfd_hs_records *r, hfd_slice id)
{
    struct hfd_hs_record *record = hfd_hs_record_find(r, id);

    if (record == NULL)
        return;
    record->due_us = record->soonest_us;
    if (record->owner_id[0] != '\0')
        return;
    for (size_t i = 0; i < HFD_HS_BUCKETS; i++)
        for (record = r->buckets[i]; record != NULL; record = record->next)
            if (hfd_slice_is(id, record->owner_id))
                record->due_us = record->soonest_us;
}

/*
 * As touch, of a row that is due. Its objects are applied again: secrets of an order have no
 * generation.
 */
static void records_renew(struct hfd_hs_records *r, const struct hfd_fleet_row *row)
{
    struct hfd_hs_record *record = hfd_hs_record_find(r, row->id);

    if (record == NULL)
        record = record_make(r, row);
    if (record == NULL)
        return;
    record->generation = row->generation;
    record->applied_generation = 0;
    record->attempts = 0;
    records_touch(r, row->id);
}

/* Has all visited at once. */
static void records_touch_all(struct hfd_hs_records *r)
{
    for (size_t i = 0; i < HFD_HS_BUCKETS; i++)
        for (struct hfd_hs_record *record = r->buckets[i]; record != NULL; record = record->next)
            record->due_us = 0;
}

/* The record that is due first, or NULL. */
static struct hfd_hs_record *records_first(const struct hfd_hs_records *r)
{
    struct hfd_hs_record *first = NULL;

    for (size_t i = 0; i < HFD_HS_BUCKETS; i++)
        for (struct hfd_hs_record *k = r->buckets[i]; k != NULL; k = k->next)
            if (first == NULL || k->due_us < first->due_us)
                first = k;
    return first;
}

/* ---- hypershift ---- */

#define EVENT_PAUSE_US (HFD_US_PER_S / 5) /* between two visits of a record for its events */
#define UNASKED_US (60 * HFD_US_PER_S)    /* a new attempt of a refused order is found this late */
#define LOOK_US (HFD_US_PER_S / 4) /* between two looks at HyperFleet that nothing asked for */
#define PULL_SECRET_MAX_BYTES ((size_t)1 << 20)
#define VISIT_MEM_BYTES ((size_t)64 << 20)
#define STREAM_S 300
#define CONNECT_TIMEOUT_US (5 * HFD_US_PER_S)
#define ANSWER_MAX_BYTES ((size_t)16 << 20)
#define WATCHES 2

enum trouble {
    TROUBLE_NEW, /* not all was reached yet */
    TROUBLE_NONE,
    TROUBLE_FLEET,
    TROUBLE_SERVER
};

struct hfd_hypershift {
    unsigned magic;
#define HYPERSHIFT_MAGIC 0x68797368u
    struct hfd_hypershift_config config;
    struct hfd_hs_server server;
    struct hfd_hs_checker checker; /* that of the settings, with the present pull secret */
    struct hfd_buf pull_secret;    /* once it was read again */
    struct stat pull_secret_seen;  /* before the last attempt to read it */
    atomic_bool reload, news;      /* news: HyperFleet has some */
    struct hfd_kube_watch *watches[WATCHES];
    int64_t watch_due_us; /* mono: after a failure */
    int watch_failures;
    char reason[200]; /* why the last watch ended */
    bool has_namespace;
    int64_t namespace_due_us;   /* mono: of the next try to make it */
    bool failing;               /* the last failure of HyperFleet was logged */
    bool has_fleet, has_server; /* both were reached */
    atomic_int trouble;         /* enum trouble, for other threads */
    struct hfd_hs_records records;
    struct hfd_hs_inventory seen;
    int64_t seen_due_us;
    int64_t look_due_us, scan_due_us;
    pthread_t thread;
    pthread_mutex_t lock; /* of what follows */
    bool stop, wants_seen;
};

static int64_t mono_us(const struct hfd_hypershift *h)
{
    return hfd_clock_mono_us(h->config.clock);
}

static bool stopping(struct hfd_hypershift *h)
{
    bool stop;

    pthread_mutex_lock(&h->lock);
    stop = h->stop;
    pthread_mutex_unlock(&h->lock);
    return stop;
}

static uint32_t random_bits(const struct hfd_hypershift *h)
{
    uint32_t bits;

    hfd_rng_bytes(h->config.rng, &bits, sizeof(bits));
    return bits;
}

/* A failure of HyperFleet is logged once, until it works again. */
static void note_fleet(struct hfd_hypershift *h, hfd_rc rc, const struct hfd_err *err)
{
    if (rc != HFD_OK && !h->failing)
        HFD_LOG(HFD_LOG_WARN,
                "HyperShift adapter: HyperFleet cannot be read or written; will try again",
                HFD_LOG_CSTR("code", hfd_rc_name(rc)), HFD_LOG_CSTR("reason", err->msg));
    if (rc == HFD_OK && h->failing)
        HFD_LOG(HFD_LOG_INFO, "HyperShift adapter: HyperFleet works again");
    h->failing = rc != HFD_OK;
    h->has_fleet = h->has_fleet || rc == HFD_OK;
}

/* ---- which resources there are ---- */

static bool note_row(void *ctx, const struct hfd_fleet_row *row, bool due)
{
    struct hfd_hypershift *h = ctx;

    if (due)
        records_renew(&h->records, row);
    else
        record_note(&h->records, row);
    return !stopping(h);
}

/* ---- visits ---- */

/* Clusters whose management cluster the settings do not have are the default's. */
static bool is_mine(const struct hfd_hypershift *h, const struct hfd_hs_work *w)
{
    const hfd_slice name = hfd_hs_management_of(w->cluster_spec);

    if (hfd_hs_has_management(w->defaults, name))
        return hfd_slice_eq(name, h->config.management);
    return hfd_slice_is(h->config.management, HFD_HS_MANAGEMENT);
}

static void count_visit(const struct hfd_hypershift *h, enum hfd_step_end end)
{
    static const char *const names[] = {
        [HFD_STEP_DONE] = "done",   [HFD_STEP_WAITS] = "waits", [HFD_STEP_REFUSED] = "refused",
        [HFD_STEP_FAULT] = "fault", [HFD_STEP_AGAIN] = "again", [HFD_STEP_STOPPED] = "stopped"};
    char management[HFD_HS_ID_MAX];

    (void)snprintf(management, sizeof(management), "%.*s", HFD_SLICE_FMT(h->config.management));
    hfd_metric_add(HFD_METRIC_HYPERSHIFT_VISITS, HFD_LABELS(management, names[end]), 1);
}

/* The gates of a nodepool have opened: the tree of its cluster, which shows it, is read again. */
static void renew_tree_of_owner(struct hfd_hypershift *h, const struct hfd_hs_work *w)
{
    struct hfd_hs_record *owner =
        w->row.kind == HFD_KIND_NODEPOOL ? hfd_hs_record_find(&h->records, w->row.owner_id) : NULL;

    if (owner == NULL)
        return;
    owner->tree_due_us = 0;
    records_touch(&h->records, w->row.owner_id);
}

/* Carries out a visit. @return how its walk ended; STOPPED also if HyperFleet failed */
static enum hfd_step_end visit(struct hfd_hypershift *h, struct hfd_hs_work *w)
{
    struct hfd_hs_reports reports;
    struct hfd_reconciled ended;
    struct hfd_err err;
    hfd_rc rc = hfd_hs_work_load(w, hfd_slice_of(w->record->id), &err);

    if (rc == HFD_NOT_FOUND) {
        record_remove(&h->records, w->record);
        w->record = NULL;
        return HFD_STEP_STOPPED;
    }
    if (rc == HFD_CONFLICT) { /* another replica leads, until this one does */
        w->record->down_since_us = 0;
        w->record->applied_generation = 0;
        return HFD_STEP_DONE;
    }
    if (rc == HFD_OK && !is_mine(h, w))
        return HFD_STEP_DONE;
    if (rc == HFD_OK) {
        ended = hfd_hs_work_run(w);
        if (ended.end == HFD_STEP_AGAIN || ended.end == HFD_STEP_STOPPED)
            return ended.end;
        if (ended.end == HFD_STEP_DONE && !w->record->tree_reached)
            renew_tree_of_owner(h, w);
        hfd_hs_tree_read(w, ended.end == HFD_STEP_DONE);
        rc = hfd_hs_reports_make(w, &ended, &reports, &err);
    }
    if (rc == HFD_OK)
        rc = h->config.fleet->ops->send(h->config.fleet->impl, w, &reports, &err);
    note_fleet(h, rc, &err);
    return rc == HFD_OK ? ended.end : HFD_STEP_FAULT;
}

static bool is_watched(const struct hfd_hypershift *h)
{
    for (size_t i = 0; i < WATCHES; i++)
        if (h->watches[i] == NULL || !hfd_kube_watch_is_open(h->watches[i]))
            return false;
    return true;
}

/* A HyperFleet that does not say what is asked for is looked at again for a new attempt. */
static int64_t next_visit_us(const struct hfd_hypershift *h, const struct hfd_hs_work *w,
                             enum hfd_step_end end)
{
    const int64_t at_us = hfd_hs_next_visit_us(w, end, is_watched(h), random_bits(h));
    const int64_t latest_us = w->mono_us + UNASKED_US;

    return end == HFD_STEP_REFUSED && !h->config.fleet->ops->embedded && at_us > latest_us
               ? latest_us
               : at_us;
}

static void visit_record(struct hfd_hypershift *h, struct hfd_hs_record *record)
{
    struct hfd_arena mem;
    struct hfd_hs_work w = {
        .server = &h->server,
        .fleet = h->config.fleet,
        .checker = &h->checker,
        .defaults = &h->checker.defaults,
        .record = record,
        .records = &h->records,
        .now_us = hfd_clock_wall_us(h->config.clock),
        .mono_us = mono_us(h),
        .resync_us = h->config.resync_us,
        .grace_us = h->config.grace_us,
        .mem = &mem,
    };
    enum hfd_step_end end;

    hfd_arena_init(&mem, VISIT_MEM_BYTES);
    record->due_us = INT64_MAX;
    end = visit(h, &w);
    count_visit(h, end);
    if (w.record != NULL) {
        const bool touched = record->due_us != INT64_MAX; /* by an event during the visit */
        const bool failed = end == HFD_STEP_FAULT || end == HFD_STEP_AGAIN;

        record->attempts = failed ? record->attempts + 1 : 0;
        record->soonest_us = mono_us(h) + EVENT_PAUSE_US;
        record->due_us = touched ? record->soonest_us : next_visit_us(h, &w, end);
    }
    hfd_hs_work_fini(&w);
    hfd_arena_fini(&mem);
}

/* Visits what is due. @return when the next one is */
static int64_t visit_due(struct hfd_hypershift *h)
{
    for (;;) {
        struct hfd_hs_record *record = records_first(&h->records);

        if (record == NULL)
            return INT64_MAX;
        if (record->due_us > mono_us(h) || mono_us(h) >= h->look_due_us || stopping(h))
            return record->due_us;
        visit_record(h, record);
    }
}

/* ---- the management cluster ---- */

static void on_changed(void *ctx, const json_t *object, bool gone)
{
    struct hfd_hypershift *h = ctx;
    const hfd_slice pool = hfd_hs_label(object, HFD_HS_LABEL_NODEPOOL);

    (void)gone;
    records_touch(&h->records, pool.len > 0 ? pool : hfd_hs_label(object, HFD_HS_LABEL_CLUSTER));
}

static void close_watch(struct hfd_hypershift *h, int64_t retry_after_us, const char *why)
{
    const int64_t pause_us =
        hfd_kube_backoff_us(&h->server.pauses, ++h->watch_failures, random_bits(h));

    (void)snprintf(h->reason, sizeof(h->reason), "%.199s", why);
    h->watch_due_us = mono_us(h) + (retry_after_us > pause_us ? retry_after_us : pause_us);
    if (h->watch_failures == 1)
        HFD_LOG(HFD_LOG_WARN, "HyperShift adapter: cannot watch the management cluster",
                HFD_LOG_STR("management", h->config.management), HFD_LOG_CSTR("reason", why));
}

/* Keeps the watches open. Visits go on by the clock without them. */
static void step_watches(struct hfd_hypershift *h)
{
    if (mono_us(h) < h->watch_due_us)
        return;
    for (size_t i = 0; i < WATCHES; i++) {
        struct hfd_kube_answer answer;
        struct hfd_kube_refusal why;
        struct hfd_err err;
        const hfd_rc rc = hfd_kube_watch_step(h->watches[i], &answer, &err);

        if (rc == HFD_BUSY)
            return;
        if (rc == HFD_OK && answer.status == 0)
            continue;
        if (rc == HFD_OK)
            hfd_kube_judge(&answer, &why);
        close_watch(h, answer.retry_after_us, rc == HFD_OK ? why.message : err.msg);
        hfd_kube_answer_fini(&answer);
        return;
    }
    for (size_t i = 0; i < WATCHES; i++)
        if (!hfd_kube_watch_is_sound(h->watches[i]))
            return;
    if (h->watch_failures > 0)
        HFD_LOG(HFD_LOG_INFO, "HyperShift adapter: the management cluster is watched again",
                HFD_LOG_STR("management", h->config.management));
    h->watch_failures = 0;
}

/* Makes the namespace of the settings. A refusal waits for the first order, which reports it. */
static void make_namespace(struct hfd_hypershift *h)
{
    const struct hfd_kube_object name = {.type = &hfd_hs_namespaces,
                                         .name = h->config.checker->defaults.namespace};
    struct hfd_kube_apply apply = {.object = name, .manager = HFD_HS_MANAGER};
    struct hfd_kube_answer answer = {0};
    struct hfd_kube_refusal why = {.class = HFD_KUBE_UNREACHABLE};
    struct hfd_arena mem;
    struct hfd_err err;
    hfd_rc rc;

    hfd_arena_init(&mem, VISIT_MEM_BYTES);
    rc = hfd_kube_get(h->server.kube, &name, &answer, &err);
    if (rc == HFD_OK)
        hfd_kube_judge(&answer, &why);
    if (rc == HFD_OK && answer.status == 404 &&
        (why.class == HFD_KUBE_ABSENT || why.class == HFD_KUBE_NO_PLACE)) {
        hfd_kube_answer_fini(&answer);
        rc = hfd_hs_namespace_manifest(name.name, &mem, &apply.body, &err);
        if (rc == HFD_OK)
            rc = hfd_kube_apply(h->server.kube, &apply, &answer, &err);
        if (rc == HFD_OK)
            hfd_kube_judge(&answer, &why);
        if (rc == HFD_OK && answer.status == 201)
            HFD_LOG(HFD_LOG_INFO, "HyperShift adapter: namespace made",
                    HFD_LOG_STR("management", h->config.management),
                    HFD_LOG_STR("namespace", name.name));
    }
    h->has_namespace = rc == HFD_OK && why.class == HFD_KUBE_DONE;
    h->namespace_due_us = mono_us(h) + h->server.pauses.min_us;
    hfd_kube_answer_fini(&answer);
    hfd_arena_fini(&mem);
}

/* ---- the pull secret ---- */

hfd_rc hfd_hypershift_read_pull_secret(const char *path, struct hfd_buf *out, struct hfd_err *err)
{
    hfd_rc rc = hfd_file_read(path, "pull secret", out, err);
    json_t *doc = NULL;

    if (rc != HFD_OK)
        return rc;
    if (hfd_json_parse(hfd_buf_slice(out), &doc, NULL) != HFD_OK)
        doc = NULL;
    if (!json_is_object(json_object_get(doc, "auths")))
        rc = hfd_fail(err, HFD_INVALID,
                      "expected a file with a JSON object that has the member auths");
    json_decref(doc);
    return rc;
}

static void wipe(struct hfd_buf *b)
{
    if (b->p != NULL)
        explicit_bzero(b->p, b->len);
    hfd_buf_fini(b);
}

/* Takes up a changed file. Objects get it when they are applied again. */
static void refresh_pull_secret(struct hfd_hypershift *h)
{
    const bool reload = atomic_exchange(&h->reload, false);
    const char *path = h->config.pull_secret_file;
    struct stat now = {0};
    struct hfd_err err;
    struct hfd_buf b;

    if (path == NULL)
        return;
    (void)stat(path, &now); /* all zero when it is gone */
    if (!reload && hfd_file_same(&now, &h->pull_secret_seen))
        return;
    h->pull_secret_seen = now;
    hfd_buf_init(&b, PULL_SECRET_MAX_BYTES);
    if (hfd_hypershift_read_pull_secret(path, &b, &err) != HFD_OK) {
        HFD_LOG(HFD_LOG_ERROR,
                "HyperShift adapter: cannot use a changed file; the previous content stays in use",
                HFD_LOG_CSTR("path", path), HFD_LOG_CSTR("error", err.msg));
        wipe(&b);
        return;
    }
    wipe(&h->pull_secret);
    h->pull_secret = b;
    h->checker.defaults.pull_secret = hfd_buf_slice(&h->pull_secret);
}

void hfd_hypershift_reload(struct hfd_hypershift *h)
{
    HFD_CHECK_OBJ(h, HYPERSHIFT_MAGIC);
    atomic_store(&h->reload, true);
    hfd_kube_wake(h->server.kube, HFD_KUBE_RELOAD);
}

/* ---- the thread ---- */

/* Looks for what has changed, or at all resources. A list of all that fails is tried again. */
static void look_at_fleet(struct hfd_hypershift *h)
{
    const struct hfd_hs_fleet *fleet = h->config.fleet;
    const int64_t now = mono_us(h);
    const struct hfd_news_look look = {.all = now >= h->scan_due_us, .on_row = note_row, .ctx = h};
    const bool news = atomic_exchange(&h->news, false);
    struct hfd_err err;
    hfd_rc rc;

    if (fleet->ops->has_gained != NULL && fleet->ops->has_gained(fleet->impl))
        records_touch_all(&h->records);
    if (now < h->look_due_us && !look.all && !news)
        return;
    rc = fleet->ops->look(fleet->impl, &look, &err);
    note_fleet(h, rc, &err);
    if (look.all && rc == HFD_OK)
        h->scan_due_us = now + h->config.resync_us;
    h->look_due_us = mono_us(h) + LOOK_US;
}

/* Looks at all objects of ours, at each resync and when the list was asked for. */
static void look_at_objects(struct hfd_hypershift *h)
{
    const int64_t now = mono_us(h);
    bool wanted;

    pthread_mutex_lock(&h->lock);
    wanted = h->wants_seen && now >= h->seen_due_us - h->config.resync_us + h->config.pauses.min_us;
    h->wants_seen = h->wants_seen && !wanted;
    pthread_mutex_unlock(&h->lock);
    if (!h->config.fleet->ops->embedded || (!wanted && now < h->seen_due_us) ||
        now < h->watch_due_us)
        return;
    (void)hs_seen_look(&h->seen, h->server.kube, h->config.checker->defaults.list_secrets);
    h->seen_due_us = mono_us(h) + h->config.resync_us;
}

/* Notes for other threads whether both sides answer. */
static void note_trouble(struct hfd_hypershift *h)
{
    const bool failing = (h->watch_failures > 0 && !is_watched(h)) || h->server.failures > 0;
    enum trouble trouble = TROUBLE_NONE;
    char management[HFD_HS_ID_MAX];

    h->has_server = !failing && (h->has_server || is_watched(h));
    if (h->failing)
        trouble = TROUBLE_FLEET;
    else if (failing)
        trouble = TROUBLE_SERVER;
    else if (!h->has_fleet || !h->has_server)
        trouble = TROUBLE_NEW;
    atomic_store(&h->trouble, (int)trouble);
    if (trouble == TROUBLE_SERVER)
        (void)hfd_trouble_note(
            HFD_TROUBLE_MANAGEMENT, h->config.management, hfd_clock_wall_us(&hfd_clock_system),
            hfd_slice_of(h->reason[0] != '\0' ? h->reason : hfd_hypershift_trouble(h)));
    else if (trouble == TROUBLE_NONE)
        (void)hfd_trouble_end(HFD_TROUBLE_MANAGEMENT, h->config.management);
    (void)snprintf(management, sizeof(management), "%.*s", HFD_SLICE_FMT(h->config.management));
    hfd_metric_set(HFD_METRIC_HYPERSHIFT_UP, HFD_LABELS(management), h->has_server);
    hfd_metric_set(HFD_METRIC_HYPERSHIFT_FLEET_UP, HFD_LABELS(management),
                   h->has_fleet && !h->failing);
}

const char *hfd_hypershift_trouble(struct hfd_hypershift *h)
{
    static const char *const texts[] = {
        [TROUBLE_NEW] = "HyperFleet or the management cluster has not answered yet",
        [TROUBLE_NONE] = NULL,
        [TROUBLE_FLEET] = "HyperFleet cannot be read or written",
        [TROUBLE_SERVER] = "the management cluster does not answer, or refuses"};

    return texts[atomic_load(&h->trouble)];
}

void hfd_hypershift_round(struct hfd_hypershift *h)
{
    int64_t next, now;

    refresh_pull_secret(h);
    look_at_fleet(h);
    if (!h->has_namespace && mono_us(h) >= h->watch_due_us && mono_us(h) >= h->namespace_due_us)
        make_namespace(h);
    step_watches(h);
    look_at_objects(h);
    next = visit_due(h);
    note_trouble(h);
    now = mono_us(h);
    if (next > h->look_due_us)
        next = h->look_due_us;
    if (!stopping(h))
        hfd_kube_run(h->server.kube, next > now ? next - now : 0);
}

static void *run_thread(void *arg)
{
    struct hfd_hypershift *h = arg;
    struct hfd_err err;

    HFD_CHECK_OBJ(h, HYPERSHIFT_MAGIC);
    if (h->config.fleet->ops->open(h->config.fleet->impl, &err) != HFD_OK) {
        HFD_LOG(HFD_LOG_ERROR, "HyperShift adapter: it cannot read HyperFleet and stays off",
                HFD_LOG_CSTR("reason", err.msg));
        return NULL;
    }
    while (!stopping(h))
        hfd_hypershift_round(h);
    h->config.fleet->ops->close(h->config.fleet->impl);
    return NULL;
}

/* ---- its life ---- */

void hfd_hypershift_free(struct hfd_hypershift *h)
{
    for (size_t i = 0; i < WATCHES; i++)
        hfd_kube_watch_free(h->watches[i]);
    hfd_kube_close(&h->server.kube);
    records_fini(&h->records);
    hs_seen_fini(&h->seen);
    wipe(&h->pull_secret);
    pthread_mutex_destroy(&h->lock);
    h->magic = 0;
    free(h);
}

static hfd_rc open_client(struct hfd_hypershift *h, struct hfd_err *err)
{
    static const struct hfd_kube_type *const types[WATCHES] = {&hfd_hs_hosted_clusters,
                                                               &hfd_hs_node_pools};
    const struct hfd_kube_config config = {
        .access = h->config.access,
        .clock = h->config.clock,
        .connect_timeout_us =
            h->config.timeout_us < CONNECT_TIMEOUT_US ? h->config.timeout_us : CONNECT_TIMEOUT_US,
        .timeout_us = h->config.timeout_us,
        .answer_max_bytes = ANSWER_MAX_BYTES,
    };
    hfd_rc rc = hfd_kube_open(&config, &h->server.kube, err);

    for (size_t i = 0; rc == HFD_OK && i < WATCHES; i++) {
        const struct hfd_kube_watch_config watch = {.objects = {.type = types[i]},
                                                    .selector = HFD_HS_OURS,
                                                    .on_changed = on_changed,
                                                    .ctx = h,
                                                    .stream_s = STREAM_S};

        rc = hfd_kube_watch_new(h->server.kube, &watch, &h->watches[i], err);
    }
    return rc;
}

hfd_rc hfd_hypershift_new(const struct hfd_hypershift_config *config, struct hfd_hypershift **out,
                          struct hfd_err *err)
{
    struct hfd_hypershift *h = calloc(1, sizeof(*h));
    hfd_rc rc;

    *out = NULL;
    if (h == NULL)
        return hfd_fail_nomem(err, "start the HyperShift adapter");
    h->magic = HYPERSHIFT_MAGIC;
    h->config = *config;
    h->checker = *config->checker;
    hfd_buf_init(&h->pull_secret, PULL_SECRET_MAX_BYTES);
    h->server.clock = config->clock;
    h->server.rng = config->rng;
    h->server.pauses = config->pauses;
    pthread_mutex_init(&h->lock, NULL);
    hs_seen_init(&h->seen);
    rc = open_client(h, err);
    if (rc == HFD_OK)
        *out = h;
    else
        hfd_hypershift_free(h);
    return rc;
}

hfd_rc hfd_hypershift_start(const struct hfd_hypershift_config *config, struct hfd_hypershift **out,
                            struct hfd_err *err)
{
    struct hfd_hypershift *h;
    hfd_rc rc = hfd_hypershift_new(config, &h, err);

    *out = NULL;
    if (rc != HFD_OK)
        return rc;
    rc = hfd_thread_start(
        &(struct hfd_thread){"hfd-hypershift", "HyperShift adapter: thread", run_thread, h},
        &h->thread, err);
    if (rc != HFD_OK) {
        hfd_hypershift_free(h);
        return rc;
    }
    HFD_LOG(HFD_LOG_INFO, "HyperShift adapter is on",
            HFD_LOG_STR("management", h->config.management),
            HFD_LOG_STR("server", config->access->server),
            HFD_LOG_STR("namespace", config->checker->defaults.namespace));
    *out = h;
    return HFD_OK;
}

void hfd_hypershift_stop(struct hfd_hypershift **out)
{
    struct hfd_hypershift *h = *out;

    if (h == NULL)
        return;
    HFD_CHECK_OBJ(h, HYPERSHIFT_MAGIC);
    pthread_mutex_lock(&h->lock);
    h->stop = true;
    pthread_mutex_unlock(&h->lock);
    hfd_kube_wake(h->server.kube, HFD_KUBE_STOP);
    if (h->config.fleet->ops->stop != NULL)
        h->config.fleet->ops->stop(h->config.fleet->impl);
    pthread_join(h->thread, NULL);
    hfd_hypershift_free(h);
    *out = NULL;
}

void hfd_hypershift_wake(struct hfd_hypershift *h)
{
    HFD_CHECK_OBJ(h, HYPERSHIFT_MAGIC);
    atomic_store(&h->news, true);
    hfd_kube_wake(h->server.kube, HFD_KUBE_NEWS);
}

void hfd_hypershift_objects(struct hfd_hypershift *h, hfd_adapter_object_fn *take, void *arg)
{
    HFD_CHECK_OBJ(h, HYPERSHIFT_MAGIC);
    hs_seen_each(&h->seen, h->config.management, take, arg);
    pthread_mutex_lock(&h->lock);
    h->wants_seen = true;
    pthread_mutex_unlock(&h->lock);
}
