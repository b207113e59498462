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

/*
 * When work is due again: after a failure, and how closely a resource is observed. Thread: writer,
 * inside a transaction function.
 */

/**
 * Ends the pass as failed; its work is due again after a back-off. The text is kept as the trouble
 * of the resource. @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_due_later(struct hfd_take *t, struct hfd_err *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/** The same, with what the answer itself says. */
HFD_MUST_CHECK hfd_rc hfd_due_later_by_answer(struct hfd_take *t, struct hfd_err *err);
/** "HyperFleet answered 503: ...", for an answer that is not good. */
hfd_slice hfd_words_answer(const struct hfd_take *t);
/** Returns whether this HyperFleet will never answer such a list. */
bool hfd_due_cannot_list(const struct hfd_take *t);
/** The pause after the n-th failure in a row, with jitter; not less than Retry-After. */
int64_t hfd_due_backoff_us(const struct hfd_remote_policy *policy, int64_t tries,
                           const struct hfd_remote_answer *answer);
/** The interval less up to a tenth: work that began together does not stay together. */
int64_t hfd_due_jitter_us(const struct hfd_remote_policy *policy, int64_t interval_us);
/**
 * A twentieth of the time since then, between watch_us and idle_us: the longer something takes, the
 * less often it is looked at.
 */
int64_t hfd_due_late_us(const struct hfd_take *t, int64_t since_us);

/**
 * The remote contradicts what was seen of the part: the pass looks at it again, and fails the pass
 * if that happens too often. @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_take_look_again(struct hfd_take *t, hfd_slice fleet_id,
                                          struct hfd_err *err);

/*
 * Ends an operation that cannot be carried out. The next PUT or DELETE begins anew. Thread: writer,
 * inside a transaction function.
 */

/**
 * Fails the operation and ends the pass. Takes back deleted_us of parts that are not going to be
 * deleted.
 * @param message  without p: memory was short
 * @return HFD_OK, HFD_NOMEM, HFD_IO, HFD_CORRUPT
 */
HFD_MUST_CHECK hfd_rc hfd_refuse(struct hfd_take *t, const char *code, hfd_slice message,
                                 struct hfd_err *err);
/**
 * A part's name or label is on this HyperFleet resource.
 * @param made_by  its server, empty = none; no p = it does not have the label of this resource
 */
HFD_MUST_CHECK hfd_rc hfd_refuse_taken(struct hfd_take *t, const struct hfd_pass_part *part,
                                       hfd_slice id, hfd_slice made_by, struct hfd_err *err);

/* A pass reads at most this number of pages of one list. */
#define HFD_TAKE_PAGES_MAX 200
#define HFD_TAKE_NO_LIST "HyperFleet answered with a document that is no list"

/* Answers that are pages of long lists: MANY and SEARCH. Thread: as above. */

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
