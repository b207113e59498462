/*
 * One visit of the HyperShift adapter to a cluster or nodepool: what it read from HyperFleet and
 * the API server, and its findings. Thread: the adapter's.
 *
 * The outputs of a cluster for its users: its URL, its version, its kubeconfig. Thread: the
 * adapter's.
 */
#ifndef HFD_HYPERSHIFT_WORK_H
#define HFD_HYPERSHIFT_WORK_H

#include "driver/adapters/hypershift/manifest.h"
#include "driver/adapters/hypershift/state.h"
#include "driver/fleet/report.h"
#include "driver/kube/refusal.h"
#include "store/rows_fleet.h"
#include "store/rows_report.h"

struct hfd_fleet_row;
struct hfd_hs_fleet;
struct hfd_rng;

/*
 * The reconciler of adapters that act: one walk over a table of steps, from the first to the one
 * that is not done. It keeps nothing between walks. So a walk may end at any point, also with the
 * process, and the next one finds what is left to do. Each step looks first, and then does what is
 * missing. Source: HyperShift, "Architecture": Reconcile, Deleted?, Sync or Teardown, complete?
 * Thread: the adapter's.
 */

enum hfd_step_end {
    HFD_STEP_DONE,
    HFD_STEP_WAITS,   /* for the world: look again soon */
    HFD_STEP_AGAIN,   /* the order changed meanwhile, or another writer was first: at once */
    HFD_STEP_FAULT,   /* the adapter cannot do its work now: later, with growing pauses */
    HFD_STEP_REFUSED, /* only another order can go on from here */
    HFD_STEP_STOPPED, /* the program ends */
};

struct hfd_step {
    const char *name;
    enum hfd_step_end (*run)(void *work);
};

struct hfd_steps {
    const struct hfd_step *items;
    size_t count;
};

/** One kind of resource. Written once for clusters and for nodepools, as tables. */
struct hfd_reconciler {
    struct hfd_steps sync, teardown;
    /* True while the work is what is wanted. It is asked before each step. */
    bool (*is_current)(void *work);
};

struct hfd_reconciled {
    enum hfd_step_end end;
    const struct hfd_step *at; /* the step that is not done; NULL = complete */
};

/** Walks over the steps. A deletion that comes in between ends the walk with HFD_STEP_AGAIN. */
struct hfd_reconciled hfd_reconcile(const struct hfd_reconciler *r, bool deleted, void *work);

#define HFD_HS_WORDS_MAX 400
#define HFD_HS_ID_MAX 64 /* of a cluster or nodepool */
#define HFD_HS_PARTS 5   /* kinds that the operator makes: report.h */
#define HFD_HS_PART_VERSIONS 2

/** The memory of a resource between visits. All of it can be lost. */
struct hfd_hs_record {
    struct hfd_hs_record *next;                              /* in its bucket */
    char id[HFD_HS_ID_MAX + 1], owner_id[HFD_HS_ID_MAX + 1]; /* owner_id: of a nodepool */
    int64_t generation;                                      /* as the store had it */
    bool deleting;
    int64_t due_us;             /* mono: of the next visit */
    int64_t soonest_us;         /* mono: events have it visited no sooner; 0 = at once */
    int64_t applied_generation; /* by this process: others are applied again */
    int64_t applied_us;         /* mono */
    int64_t object_generation;  /* of the object, when it was applied */
    int64_t down_since_us;      /* mono: what serves is not available; 0 = it is */
    int attempts;               /* faults in a row */
    int64_t tree_due_us;        /* mono: when report.h reads the tree again */
    bool tree_reached;          /* it was read since all gates opened */
};

#define HFD_HS_BUCKETS 4096u

/** The records of all clusters and nodepools that are there. */
struct hfd_hs_records {
    struct hfd_hs_record *buckets[HFD_HS_BUCKETS];
};

/** The bucket of an id. */
static inline struct hfd_hs_record **hfd_hs_bucket_of(const struct hfd_hs_records *records,
                                                      hfd_slice id)
{
    const size_t at = hfd_slice_hash(HFD_HASH_START, id) % HFD_HS_BUCKETS;

    return (struct hfd_hs_record **)(uintptr_t)&records->buckets[at];
}

/** Finds the record of a cluster or nodepool, or NULL. */
static inline struct hfd_hs_record *hfd_hs_record_find(const struct hfd_hs_records *r, hfd_slice id)
{
    struct hfd_hs_record *record = *hfd_hs_bucket_of(r, id);

    while (record != NULL && !hfd_slice_is(id, record->id))
        record = record->next;
    return record;
}

/** A kind of objects that the operator makes. */
struct hfd_hs_part {
    size_t version;          /* the one that the API server has */
    int64_t closed_until_us; /* mono: it cannot be listed, for this reason */
    const char *reason;
    char message[200];
};

/** The adapter's part of the API server: calls fail at once while it is not reached. */
struct hfd_hs_server {
    struct hfd_kube *kube;
    const struct hfd_clock *clock;
    const struct hfd_rng *rng;
    struct hfd_kube_pauses pauses;
    int64_t closed_until_us; /* mono: no call before */
    int failures;            /* in a row */
    char why[HFD_HS_WORDS_MAX];
    struct hfd_hs_part parts[HFD_HS_PARTS];
};

/** True while the API server is not called, after a failure. */
static inline bool hfd_hs_is_closed(const struct hfd_hs_server *server)
{
    return hfd_clock_mono_us(server->clock) < server->closed_until_us;
}

/** An object of the visit. */
struct hfd_hs_object {
    struct hfd_kube_object name;
    json_t *doc; /* as last read; NULL = it is not there */
};

struct hfd_hs_work {
    struct hfd_hs_server *server;
    const struct hfd_hs_fleet *fleet;
    const struct hfd_hs_checker *checker;
    const struct hfd_hs_defaults *defaults; /* the checker's */
    struct hfd_hs_record *record;
    const struct hfd_hs_records *records;
    int64_t now_us, mono_us, resync_us, grace_us;
    struct hfd_arena *mem;

    /* From HyperFleet. Texts live in mem; documents are the work's. */
    struct hfd_fleet_row row;
    struct hfd_fleet_row cluster; /* the row itself, or the nodepool's owner */
    bool has_cluster;
    bool wants_nodes, has_children;
    int64_t deadline_us; /* wall clock: of the operation; 0 = not known */
    json_t *cluster_spec, *pool_spec, *secrets;
    struct hfd_report_row prev, prev_validation; /* adapter is empty = none */
    json_t *prev_data;
    hfd_slice prev_secrets; /* plain */
    struct hfd_hs_source source;

    /* From the API server. */
    struct hfd_hs_object object; /* the HostedCluster or NodePool */
    json_t *parent;              /* of a nodepool: its HostedCluster, if it is there and ours */
    json_t *outputs;             /* of a cluster that is up: see work.h; NULL = not read */
    json_t *tree;                /* see report.h; NULL = none */
    bool is_strange;             /* an object of that name is not ours */

    /* Findings. */
    bool validated; /* this visit, or an earlier one at this generation */
    struct hfd_hs_judgement judgement;
    bool judged;
    char reason[64];
    char words[HFD_HS_WORDS_MAX]; /* why the walk ended where it did */
};

/**
 * Reads all that HyperFleet has on a resource.
 * @return HFD_OK, HFD_NOT_FOUND, HFD_IO, HFD_CORRUPT, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_hs_work_load(struct hfd_hs_work *work, hfd_slice id, struct hfd_err *err);
void hfd_hs_work_fini(struct hfd_hs_work *work);

/**
 * A step: reads the outputs of a HostedCluster that has published them into work->outputs:
 * {endpoint, version, cluster_type, cluster_data, kubeconfig_secret, secrets {kubeconfig,
 * kubeadmin_password, credentials}}.
 * @return DONE also if there are none yet; else how the step ends
 */
enum hfd_step_end hfd_hs_outputs_read(void *work);

/**
 * Takes cluster and user of the current context out of a kubeconfig, for deployments.
 * @param data         gives {server, certificate-authority-data, ...}, or NULL
 * @param credentials  gives {token} or {client-certificate-data, client-key-data}, or NULL
 */
void hfd_hs_kubeconfig_split(hfd_slice kubeconfig, json_t **data, json_t **credentials);

/* ---- steps.c: the steps of clusters and nodepools, as tables ---- */

/** Ends a step with a reason and words. */
enum hfd_step_end hfd_hs_end(struct hfd_hs_work *work, enum hfd_step_end end, const char *reason,
                             const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/**
 * Reads an object.
 * @param doc  replaced; NULL = it is not there
 * @return DONE, or how the step ends
 */
enum hfd_step_end hfd_hs_read(struct hfd_hs_work *work, const struct hfd_kube_object *name,
                              json_t **doc);

/** When to visit a resource again after a walk. @param random  any bits */
int64_t hfd_hs_next_visit_us(const struct hfd_hs_work *work, enum hfd_step_end end, bool watched,
                             uint32_t random);

/** The namespace of the objects. */
static inline hfd_slice hfd_hs_work_namespace(const struct hfd_hs_work *work)
{
    return work->object.name.namespace;
}

/** Walks over the steps of the resource's kind. */
struct hfd_reconciled hfd_hs_work_run(struct hfd_hs_work *work);

#endif
