/*
 * The one place that moves the state of a driver resource. A move checks the arrow (life.h) and the
 * row's invariant, writes history, counts, and logs one line per outcome once it is on disk.
 * Thread: writer, inside a transaction function, if not said otherwise.
 *
 * From the parts of a resource to where it stands: outcome.h, applied to its row. Thread: any for
 * hfd_judge_outcome and hfd_judge_late, else writer; inside a transaction function.
 *
 * The observer: what changes in HyperFleet mean for the resources that they belong to. Thread:
 * writer, inside the transaction that made the changes.
 */
#ifndef HFD_CORE_TRANSITION_H
#define HFD_CORE_TRANSITION_H

#include "driver/core/parts.h"

struct hfd_move {
    enum hfd_state to;
    int64_t at_us;               /* becomes updated_us */
    const char *code;            /* to FAILED: "RES-104" */
    hfd_slice message, cause;    /* to FAILED */
    const struct hfd_part *main; /* hfd_parts_main, for history and log; NULL = unknown */
    bool adopted;                /* from ABSENT: its row was made again from HyperFleet */
};

/**
 * Moves a resource. The operation (hfd_resource_set_op) and the output that the new state needs are
 * set before. Changes the row in memory only. A move to ABSENT leaves the removal to the caller.
 */
HFD_MUST_CHECK hfd_rc hfd_resource_move(const struct hfd_ctx *c, struct hfd_resource_row *row,
                                        const struct hfd_move *move);

/**
 * Moves a copy of a row for an answer: no history, count or log line. Thread: any.
 */
void hfd_resource_move_copy(struct hfd_resource_row *copy, const struct hfd_move *move);
/** Records such a move after the fact, for a writer that goes on with the copy. */
HFD_MUST_CHECK hfd_rc hfd_resource_record_move(const struct hfd_ctx *c, enum hfd_state from,
                                               struct hfd_resource_row *row,
                                               const struct hfd_move *move);

/** Sets the operation of a row and its times, before the move into the state of that operation. */
void hfd_resource_set_op(const struct hfd_ctx *c, enum hfd_op op, struct hfd_resource_row *row);
/** CREATING, UPDATING or DELETING. */
enum hfd_state hfd_resource_state_of_op(enum hfd_op op);

/**
 * Checks what holds for a row in its state. Asserted by each move.
 * @return NULL, or the rule that does not hold. Pure. Thread: any.
 */
const char *hfd_resource_invariant(const struct hfd_resource_row *row);

/**
 * op_deadline_us of a refused deletion: until when a DELETE is answered with the refusal instead of
 * another attempt. This value: until a DELETE was answered with it.
 */
#define HFD_REFUSAL_UNANSWERED_US INT64_MAX

/** True while a DELETE is answered with the refusal of the last deletion. */
static inline bool hfd_resource_answers_refusal(const struct hfd_resource_row *row, int64_t now_us)
{
    return row->state == HFD_STATE_FAILED && row->op == HFD_OP_DELETE &&
           now_us < row->op_deadline_us;
}

/** CREATING or UPDATING. */
static inline bool hfd_resource_in_progress(const struct hfd_resource_row *row)
{
    return row->state == HFD_STATE_CREATING || row->state == HFD_STATE_UPDATING;
}

/** The deadline of its operation has passed. */
static inline bool hfd_resource_overdue(const struct hfd_resource_row *row, int64_t now_us)
{
    return now_us >= row->op_deadline_us;
}

/** Judges what the parts and the operation of a row mean now. parts: NULL = read here. */
HFD_MUST_CHECK hfd_rc hfd_judge_outcome(const struct hfd_ctx *c, const struct hfd_resource_row *row,
                                        const struct hfd_parts *parts, struct hfd_outcome *out);

/**
 * Settles a row: an operation in progress whose deadline has passed has failed at its deadline.
 * @param late  set if it has; the caller applies it to a copy, or moves the row
 */
HFD_MUST_CHECK hfd_rc hfd_judge_late(const struct hfd_ctx *c, const struct hfd_resource_row *row,
                                     struct hfd_move *late, bool *is_late);

/**
 * Sets row->op_waits: what an operation in progress waits for; empty without one. Sets row->cause
 * with one. The row is not written.
 */
HFD_MUST_CHECK hfd_rc hfd_judge_waits(const struct hfd_ctx *c, const struct hfd_parts *parts,
                                      struct hfd_resource_row *row);

/**
 * Moves a row to what its parts say, and notes its health. A row that is ready afterwards has its
 * output, one in progress its op_waits. The row is not written.
 */
HFD_MUST_CHECK hfd_rc hfd_judge_row(const struct hfd_ctx *c, const struct hfd_parts *parts,
                                    struct hfd_resource_row *row);

/**
 * Judges each resource of which a part is in call->changes, and writes what is new. Call it after
 * the fleet functions, in their transaction.
 */
HFD_MUST_CHECK hfd_rc hfd_resource_observe(struct hfd_txn *tx, const struct hfd_driver *d,
                                           const struct hfd_fleet_call *call, struct hfd_err *err);

/** The same with c->changes, for all resources but this one, which the caller judges itself. */
HFD_MUST_CHECK hfd_rc hfd_resource_observe_others(const struct hfd_ctx *c, hfd_slice guresid);

/** hfd_remote_policy.on_changes: hfd_resource_observe. observer is the driver. */
HFD_MUST_CHECK hfd_rc hfd_resource_on_changes(void *observer, struct hfd_txn *tx,
                                              const struct hfd_fleet_call *call,
                                              struct hfd_err *err);

/**
 * hfd_remote_policy.on_refused: the operation of the resource fails with this code and message.
 * observer is the driver. A resource without an operation stays as it is.
 */
HFD_MUST_CHECK hfd_rc hfd_resource_on_refused(void *observer, struct hfd_txn *tx,
                                              const struct hfd_fleet_call *call,
                                              const struct hfd_refusal *why, struct hfd_err *err);

/** Operations that hfd_resource_settle_due takes at once. */
#define HFD_SETTLE_MAX 100

struct hfd_settled {
    size_t count;    /* operations that have failed by their deadline now */
    int64_t next_us; /* the next deadline; INT64_MAX = there is none, or more are late */
};

/**
 * Settles creations and updates whose deadline has passed, at most HFD_SETTLE_MAX of them: state,
 * history, counts and log line follow though no request asks.
 */
HFD_MUST_CHECK hfd_rc hfd_resource_settle_due(const struct hfd_ctx *c, struct hfd_settled *out);

/** Removes the row of a resource that has moved to ABSENT. */
HFD_MUST_CHECK hfd_rc hfd_resource_forget(const struct hfd_ctx *c,
                                          const struct hfd_resource_row *row);

/**
 * hfd_remote_policy.on_trouble: says anew what a resource waits for. observer: the hfd_driver.
 */
HFD_MUST_CHECK hfd_rc hfd_resource_on_trouble(void *observer, struct hfd_txn *tx,
                                              const struct hfd_fleet_call *call, hfd_slice guresid,
                                              struct hfd_err *err);

#endif
