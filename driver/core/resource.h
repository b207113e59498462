/*
 * The driver contract: PUT, GET and DELETE of a GUResID as transaction functions, and the observer
 * that turns changes of HyperFleet resources into state changes. Source: 002_4aedec23c83d0384.txt;
 * both decision tables of DESIGN 4. Thread: writer (put, delete, observe) or any reader (get).
 */
#ifndef HFD_CORE_RESOURCE_H
#define HFD_CORE_RESOURCE_H

#include "driver/backend/backend.h"
#include "driver/core/cookie.h"
#include "driver/core/hint.h"
#include "driver/core/input.h"
#include "driver/core/life.h"
#include "driver/fleet/fleet.h"

enum hfd_op {
    HFD_OP_CREATE,
    HFD_OP_UPDATE,
    HFD_OP_DELETE,
    HFD_OP_COUNT
};

/** One entry of the outputs map: `driver.outputs.values.NAME: ADAPTER:/json/pointer`. */
struct hfd_output_rule {
    hfd_slice name;
    hfd_slice adapter;
    hfd_slice pointer;
};

/** Who is told of changes in HyperFleet: all resources but one, which is just being worked on. */
struct hfd_watch {
    const struct hfd_driver *driver;
    hfd_slice except; /* GUResID, or none */
};

/** What the driver is made of; const after start-up but for the ring, shared by all threads. */
struct hfd_driver {
    struct hfd_fleet fleet;
    struct hfd_watch watch; /* the observer's context */
    struct hfd_input_rules rules;
    const struct hfd_keyring
        *_Atomic ring; /* a later one opens all that an earlier one sealed; earlier ones live on */
    const struct hfd_rng *rng;
    int64_t estimate_us[HFD_KIND_NODEPOOL + 1]
                       [HFD_OP_COUNT]; /* by enum hfd_kind: driver.estimate.* */
    int64_t deadline_us[HFD_KIND_NODEPOOL + 1][HFD_OP_COUNT]; /* driver.deadline.* */
    const hfd_slice *terminal_reasons;                        /* "REASON", "ADAPTER:REASON" */
    size_t terminal_reason_count;
    const struct hfd_output_rule *output_values;
    size_t output_value_count;
    const struct hfd_output_rule *output_secrets;
    size_t output_secret_count;
    hfd_slice backend;                     /* "embedded", or the URL */
    const struct hfd_backend *backend_ops; /* NULL = the embedded ones, until hfd_driver_attach */
    bool demo;                             /* outputs say that no cluster was made */
};

/**
 * Wires driver->fleet's hooks (on_change and its mark, seal) to the driver, and an embedded
 * HyperFleet where none is named. Call once at start-up; `d` must not move afterwards, and its
 * settings stay as they are.
 */
void hfd_driver_attach(struct hfd_driver *d);

/** What came in. Everything is owned by the command's arena. */
struct hfd_call {
    const struct hfd_driver *driver;
    int64_t now_us;
    hfd_slice caller;
    hfd_slice guresid;
    int only;         /* the kind that the path fixes, or 0 */
    hfd_slice cookie; /* as received; empty = none */
    struct hfd_arena *mem;
    const struct hfd_fleet
        *fleet; /* set inside: the engine, with an observer that leaves this resource out */

    /* PUT */
    hfd_slice body;                /* as received, for the raw digest */
    const struct hfd_input *input; /* parsed; NULL while only the short cut is tried */
};

struct hfd_answer_doc {
    enum hfd_answer answer;
    bool has_cookie;
    hfd_slice cookie;     /* Set-Humanitec-Driver-Cookie on PUT 200, 202, 409 */
    struct hfd_hint hint; /* HINT, BUSY */
    hfd_slice error;      /* FAILED: "RES-104" */
    hfd_slice message;
    hfd_slice type;          /* OUTPUT */
    hfd_slice values;        /* JSON object */
    hfd_slice secrets;       /* JSON object, plain; never logged */
    bool decided;            /* GET and the peeks: whether this is the answer */
    enum hfd_state from, to; /* for the transition metric and the log; equal when nothing moved */
};

/**
 * out->decided is false for a resource without a row whose cookie names what HyperFleet still has,
 * or what a remote one has to be asked for: hfd_resource_get_restored then.
 * @return HFD_OK (also for FAILED and ABSENT), HFD_COOKIE
 */
HFD_MUST_CHECK hfd_rc hfd_resource_get(struct hfd_txn *tx, const struct hfd_call *call,
                                       struct hfd_answer_doc *out, struct hfd_err *err);
/**
 * The same, and makes the row again that was lost: at once, or once a remote HyperFleet has
 * answered. Thread: writer.
 */
HFD_MUST_CHECK hfd_rc hfd_resource_get_restored(struct hfd_txn *tx, const struct hfd_call *call,
                                                struct hfd_answer_doc *out, struct hfd_err *err);

/**
 * hfd_remote_policy.on_refused: the operation that goes on fails with these words. ctx is the
 * driver. Thread: writer.
 */
HFD_MUST_CHECK hfd_rc hfd_resource_refused(void *driver, struct hfd_txn *tx, hfd_slice guresid,
                                           const char *code, hfd_slice message, int64_t now_us,
                                           struct hfd_arena *mem, struct hfd_err *err);

/**
 * Answers a PUT from what is stored if its bytes are those of the PUT that made the present state,
 * and nothing can change; else out->decided is false. Needs no call->input: this is the polling
 * path.
 */
HFD_MUST_CHECK hfd_rc hfd_resource_put_peek(struct hfd_txn *tx, const struct hfd_call *call,
                                            struct hfd_answer_doc *out, struct hfd_err *err);

/**
 * @return HFD_OK, HFD_INVALID (a name is taken, no such cluster), HFD_IMMUTABLE, HFD_COOKIE.
 * call->input is needed.
 */
HFD_MUST_CHECK hfd_rc hfd_resource_put(struct hfd_txn *tx, const struct hfd_call *call,
                                       struct hfd_answer_doc *out, struct hfd_err *err);

/** Answers a DELETE from what is stored if nothing can change; else out->decided is false. */
HFD_MUST_CHECK hfd_rc hfd_resource_delete_peek(struct hfd_txn *tx, const struct hfd_call *call,
                                               struct hfd_answer_doc *out, struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_resource_delete(struct hfd_txn *tx, const struct hfd_call *call,
                                          struct hfd_answer_doc *out, struct hfd_err *err);

#endif
