/*
 * Takes the answer to a request of a pass: what it means for the step that asked, and which rows it
 * changes. Thread: writer, inside a transaction function.
 */
#ifndef HFD_BACKEND_REMOTE_HANDLE_H
#define HFD_BACKEND_REMOTE_HANDLE_H

#include "driver/backend/remote/observe.h"
#include "driver/backend/remote/pass.h"
#include "driver/backend/remote/wire.h"
#include "driver/base/err.h"
#include "store/kind.h"

/**
 * Writes what the answer means, and when the work is due again. May run again after a rollback: it
 * changes only what the pass remembers after the answer, and sets that anew each time.
 * @return HFD_OK, also for answers that mean a failure; HFD_CORRUPT, HFD_IO, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_pass_take(struct hfd_txn *tx, struct hfd_pass *pass,
                                    const struct hfd_remote_exchange *exchange,
                                    struct hfd_err *err);

/** The context of all functions that take an answer. */
struct hfd_take {
    struct hfd_txn *tx;
    struct hfd_pass *pass;
    const struct hfd_remote_policy *policy;
    struct hfd_pass_memory *m; /* pass->then */
    struct hfd_pass_rows rows;
    struct hfd_arena *mem; /* until the answer is taken */
    int64_t now_us;
    const struct hfd_remote_request *request;
    const struct hfd_remote_answer *answer;
    enum hfd_remote_verdict verdict;
    struct hfd_wire_problem problem;
    json_t *doc;           /* of a good answer; NULL = none, or not JSON */
    bool failed;           /* the pass failed, and is tried again later */
    int64_t wait_until_us; /* when the work is due again; 0 = after the usual
                              interval */
};

/* Reads answers that are pages of lists. Thread: writer, inside a transaction function. */

/** Counts a page of the present phase's list. @return whether it is the last one */
bool hfd_take_page(struct hfd_take *t, const struct hfd_wire_page *page, int64_t pages_max);

typedef hfd_rc hfd_take_item_fn(struct hfd_take *t, const struct hfd_wire_resource *doc,
                                struct hfd_err *err);
/**
 * Calls fn for each resource of a long list, with memory of its own in t->mem. Skips what cannot be
 * read.
 */
HFD_MUST_CHECK hfd_rc hfd_take_items(struct hfd_take *t, const struct hfd_wire_page *page,
                                     hfd_take_item_fn *fn, struct hfd_err *err);
/** The kind that a list of MANY or SEARCH has in the present phase. */
enum hfd_kind hfd_take_kind(const struct hfd_take *t);

#endif
