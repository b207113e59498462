/*
 * The types that all of the core shares: the driver, a request, its answer, and the context of a
 * function inside a transaction.
 *
 * The id that the orchestrator gives: ^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$, the syntax
 * of a label value, as it becomes one.
 *
 * The labels of a cluster or nodepool as its owner gave them. Thread: any.
 *
 * The text of created_by, updated_by and deleted_by, made from what a trusted proxy reports about
 * the caller. HyperFleet's clients expect it e-mail shaped. Pure. Source: driver/README.md,
 * decision
 * 7. Thread: any.
 */
#ifndef HFD_CORE_DRIVER_H
#define HFD_CORE_DRIVER_H

#include "driver/backend/backend.h"
#include "driver/base/arena.h"
#include "driver/base/etag.h"
#include "driver/base/slice.h"
#include "driver/core/hint.h"
#include "driver/core/input.h"
#include "driver/core/life.h"
#include "store/rows_resource.h"

struct hfd_call;
struct hfd_ctx;
struct hfd_keyring;

/** The numbers are stored. */
enum hfd_op {
    HFD_OP_CREATE,
    HFD_OP_UPDATE,
    HFD_OP_DELETE,
    HFD_OP_COUNT
};

/** "create", "update", "delete". */
const char *hfd_op_name(enum hfd_op op);

/** One entry of the outputs map: `driver.outputs.values.NAME: ADAPTER:/json/pointer`. */
struct hfd_output_rule {
    hfd_slice name;
    hfd_slice adapter;
    hfd_slice pointer;
};

/** An object that an adapter of this program made. Texts are borrowed. */
struct hfd_adapter_object {
    enum hfd_kind kind;
    const char *object;    /* "HostedCluster" */
    hfd_slice id, guresid; /* of the cluster or nodepool, and of the resource */
    hfd_slice namespace, name, place;
    int64_t generation, created_us, deleted_us; /* deleted_us: 0 = it stays */
};
typedef void hfd_adapter_object_fn(void *ctx, const struct hfd_adapter_object *object);

/** An adapter of this program that acts on orders. Const after start-up. */
struct hfd_adapter_hooks {
    hfd_slice judge; /* the adapter whose refusals are terminal, whatever its reasons are */
    void *ctx;
    /**
     * Refuses an order that cannot follow on what is there.
     * @param was  NULL = the order makes a new resource
     * @return HFD_OK, HFD_INVALID, HFD_IMMUTABLE (err->field is the input)
     * Thread: writer, inside the transaction of the PUT.
     */
    hfd_rc (*admit)(void *ctx, const struct hfd_ctx *c, const struct hfd_call *call,
                    const struct hfd_resource_row *was);
    /**
     * Hands over all objects as they were at the last look, and looks again soon. `take` must be
     * short, and read no store. Thread: any.
     */
    void (*objects)(void *ctx, hfd_adapter_object_fn *take, void *arg);
};

/** driver.drift: what follows when a resource is not as it was ordered any more. */
enum hfd_drift_mode {
    HFD_DRIFT_REPORT, /* GET shows it, and the same PUT mends it */
    HFD_DRIFT_REPAIR, /* it is mended as well */
    HFD_DRIFT_IGNORE,
};

/** The settings of the driver. Const after start-up but for the ring; shared by all threads. */
struct hfd_driver {
    struct hfd_fleet fleet;
    struct hfd_input_rules rules;
    const struct hfd_keyring
        *_Atomic ring; /* a later ring opens all that an earlier one sealed; earlier ones live on */
    const struct hfd_rng *rng;
    int64_t estimate_us[HFD_OP_COUNT];                        /* driver.estimate.* */
    int64_t deadline_us[HFD_KIND_NODEPOOL + 1][HFD_OP_COUNT]; /* driver.deadline.* */
    const hfd_slice *terminal_reasons;                        /* "REASON", "ADAPTER:REASON" */
    size_t terminal_reason_count;
    enum hfd_drift_mode drift;
    const hfd_slice *drift_ignore; /* "nodepool.spec.replicas" */
    size_t drift_ignore_count;
    const hfd_slice *protect_labels; /* driver.protect_labels: "key=value" */
    size_t protect_label_count;
    const struct hfd_output_rule *output_values;
    size_t output_value_count;
    const struct hfd_output_rule *output_secrets;
    size_t output_secret_count;
    struct hfd_output_rule output_manifests; /* driver.outputs.manifests; no adapter = not set */
    hfd_slice backend;                       /* "embedded", or the URL */
    const struct hfd_backend *backend_ops;   /* never NULL */
    struct hfd_backend_worker worker;
    bool demo;                             /* outputs say that no cluster was made */
    const struct hfd_adapter_hooks *hooks; /* NULL = none */
};

/**
 * Fills in what follows from the settings: the sealing of secrets, and the outputs that a
 * k8s-cluster lacks. Sets fleet.settings_fingerprint from all settings that the observer reads.
 * Call it after each change of the settings.
 */
void hfd_driver_complete(struct hfd_driver *d);
/** A fingerprint of the same settings without the version: replicas must agree in it. */
int64_t hfd_driver_rules_fingerprint(const struct hfd_driver *d);

/** The driver that a fleet is a member of. */
const struct hfd_driver *hfd_driver_of_fleet(const struct hfd_fleet *fleet);

/**
 * A caller asked for a resource, so that it should be observed soon; with HFD_BACKEND_ORPHANS, for
 * the list of orphans. Never waits. Thread: any.
 */
void hfd_driver_polled(const struct hfd_driver *d, hfd_slice guresid);

/** The arguments that all functions inside one transaction share. */
struct hfd_ctx {
    struct hfd_txn *tx;
    const struct hfd_driver *driver;
    int64_t now_us;
    struct hfd_arena *mem;
    struct hfd_err *err; /* may be NULL */
    struct hfd_fleet_changes
        *changes; /* what this transaction changed in HyperFleet; may be NULL */
};

/** One request. All texts are owned by its arena. */
struct hfd_call {
    const struct hfd_driver *driver;
    int64_t now_us;
    hfd_slice caller;
    hfd_slice guresid;
    int only;         /* the kind that the path fixes, or 0 */
    hfd_slice cookie; /* as received; empty = none */
    struct hfd_precondition
        match; /* of a PUT or DELETE: checked by hfd_precondition_parse. GET: If-None-Match */
    struct hfd_arena *mem;

    bool repair; /* no request: a PUT of the order that is kept, to mend drift */

    /* PUT */
    hfd_slice body;                /* as received, for the raw digest */
    const struct hfd_input *input; /* parsed; NULL for the peek */
};

/** True if HyperFleet is a remote: it has required adapters of its own. */
static inline bool hfd_driver_is_remote(const struct hfd_driver *d)
{
    return !hfd_slice_is(d->backend, "embedded");
}

/** The context of a call. */
static inline struct hfd_ctx hfd_ctx_of(struct hfd_txn *tx, const struct hfd_call *call,
                                        struct hfd_err *err)
{
    return (struct hfd_ctx){
        .tx = tx, .driver = call->driver, .now_us = call->now_us, .mem = call->mem, .err = err};
}

/** The operations of the backend with a resource as their subject. */
static inline struct hfd_backend_subject hfd_ctx_subject(const struct hfd_ctx *c, hfd_slice guresid)
{
    return (struct hfd_backend_subject){guresid, c->now_us, c->mem};
}

/** A call of the fleet functions or the backend. */
static inline struct hfd_fleet_call hfd_ctx_fleet_call(const struct hfd_ctx *c, hfd_slice caller)
{
    return (struct hfd_fleet_call){.fleet = &c->driver->fleet,
                                   .now_us = c->now_us,
                                   .caller = caller,
                                   .mem = c->mem,
                                   .changes = c->changes};
}

/** Wakes the thread that carries out scheduled work, once the transaction is on disk. */
HFD_MUST_CHECK hfd_rc hfd_ctx_wake_worker(const struct hfd_ctx *c);

struct hfd_answer_doc {
    enum hfd_answer answer;
    bool has_cookie;
    hfd_slice cookie;     /* Set-Humanitec-Driver-Cookie on PUT 200, 202, 409 */
    struct hfd_hint hint; /* HINT, BUSY */
    int64_t began_us;     /* HINT: the operation */
    hfd_slice waits;      /* HINT: what it waits for. With began_us and hint.status it tells whether
                             something has changed: the rest moves with the time alone */
    hfd_slice error;      /* FAILED: "RES-104" */
    hfd_slice message;
    hfd_slice type;          /* OUTPUT */
    hfd_slice etag;          /* OUTPUT; else empty */
    hfd_slice values;        /* JSON object */
    hfd_slice secrets;       /* JSON object, plain; never logged */
    hfd_slice manifests;     /* JSON array; empty = none */
    bool decided;            /* GET and the peeks: this is the answer */
    enum hfd_state from, to; /* of the resource, before and after; equal when nothing moved */
};

#define HFD_GURESID_MAX 63

/** @return HFD_OK or HFD_INVALID (field "GUResID") */
HFD_MUST_CHECK hfd_rc hfd_guresid_check(hfd_slice text, struct hfd_err *err);

/**
 * Leaves out the label that the driver itself adds.
 * @param stored  JSON object
 * @param out     JSON object, in mem
 * @return HFD_OK, HFD_MALFORMED, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_labels_given(hfd_slice stored, struct hfd_arena *mem, hfd_slice *out,
                                       struct hfd_err *err);

#define HFD_IDENTITY_DOMAIN "hyperfleet.local"
#define HFD_IDENTITY_SYSTEM "system@" HFD_IDENTITY_DOMAIN
#define HFD_IDENTITY_LOCAL "local@" HFD_IDENTITY_DOMAIN       /* commands on this machine */
#define HFD_IDENTITY_OPERATOR "operator@" HFD_IDENTITY_DOMAIN /* without an organisation */

/**
 * NAME@DOMAIN stays as it is, NAME becomes NAME@hyperfleet.local. Any other text becomes the
 * system: nothing, too long, other than visible ASCII, more than one @. No request is refused for
 * it.
 * @param value  of the header, spaces around it trimmed; HFD_SLICE_NONE = there is none
 * @param out    static or in mem
 * @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_identity_make(hfd_slice value, struct hfd_arena *mem, hfd_slice *out,
                                        struct hfd_err *err);

/**
 * Returns true if a name is this server's own: one of hyperfleet.local, or system, local or
 * operator, which would become one. Case, spaces around it and dots behind it do not count.
 */
bool hfd_identity_is_ours(hfd_slice value);

#endif
