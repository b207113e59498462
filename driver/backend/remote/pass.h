/* clang-format off */
/*
 * A pass: one series of requests to the remote HyperFleet for one piece of work (work.h). The
 * thread (remote.h) calls hfd_pass_next for a request, sends it, and gives the answer to
 * hfd_pass_take (handle.h), until there is no more request. No socket here.
 *
 * Everything that must survive is in rows after each answer. The pass itself is memory that may be
 * lost at any time: the next pass finds by label and name what is done already.
 *
 * A pass over one resource:
 *
 *          START --------------------------------.
 *            | no id                             | the part has its id
 *            v   not found           created     |
 *          FIND ----------> CREATE ----------.   |
 *           |  \             |    \           |  |
 *           |   \ no cluster |     \ name     |  |
 *           |    v           v      v taken   v  v
 *           |   ASK_OWNER <--'  FIND_NAME -> LOOK <------------------------------------.
 *           |                                ^ |                                       |
 *           '--------------------------------' | the own cluster or nodepool was seen  |
 *               adopted                        v                                       |
 *      DELETE -> LIST_POOLS -> REPORTS_FIRST -> LOOK_REST -> WRITE -> REPORTS -> DONE  |
 *         |           |                                        |                       |
 *         '-----------+----------------------------------------+-----------------------'
 *                            the remote contradicts what was seen
 *
 * - From LOOK on, a pass goes to the first phase of the bottom row that has something to do.
 * - It goes back to an earlier phase of that row if that has something to do again. The cause is an
 *   answer, or a PUT or DELETE meanwhile. REPORTS never goes back to REPORTS_FIRST or LOOK_REST.
 * - If the resource was removed and made anew meanwhile, the pass goes back to START.
 *
 *   all in progress:   START -> MANY_CLUSTERS -> MANY_POOLS -> DONE
 *   search:            START -> SEARCH_CLUSTERS -> SEARCH_POOLS -> DONE
 *   one orphan:        START -> ORPHAN_LOOK -> ORPHAN_DELETE -> ORPHAN_VERIFY -> DONE
 *
 * Every phase can go to DONE: after a failure, or because nothing is left.
 *
 * Source: HyperFleet API. Thread: one at a time; the remote thread and the writer in turn.
 */
/* clang-format on */
#ifndef HFD_REMOTE_PASS_H
#define HFD_REMOTE_PASS_H

#include "driver/backend/remote/wire.h"
#include "driver/backend/remote/work.h"
#include "driver/base/arena.h"
#include "driver/base/err.h"
#include "driver/base/slice.h"
#include "store/rows_remote.h"
#include "store/rows_resource.h"

struct hfd_pass_part;
struct hfd_pass_rows;

/* Items of one page. Strict remotes allow 100. */
#define HFD_REMOTE_PAGE 50
/* A pass looks again this often at what the remote contradicts. */
#define HFD_PASS_LOOKS_AGAIN_MAX 3

enum hfd_pass_phase {
    HFD_PASS_START,
    HFD_PASS_FIND,          /* list what carries the GUResID's label */
    HFD_PASS_FIND_NAME,     /* list what has the name that is taken */
    HFD_PASS_ASK_OWNER,     /* GET the cluster that a nodepool resource names */
    HFD_PASS_CREATE,        /* POST the own cluster or nodepool */
    HFD_PASS_LOOK,          /* GET the own cluster or nodepool */
    HFD_PASS_DELETE,        /* DELETE the own cluster or nodepool */
    HFD_PASS_LIST_POOLS,    /* list the cluster's nodepools with the label */
    HFD_PASS_REPORTS_FIRST, /* reports of parts that were ready and are not any
                               more */
    HFD_PASS_LOOK_REST,     /* GET each part that the list did not show */
    HFD_PASS_WRITE,         /* DELETE, PATCH, POST what differs */
    HFD_PASS_REPORTS,       /* reports of the other parts */
    HFD_PASS_MANY_CLUSTERS,
    HFD_PASS_MANY_POOLS,
    HFD_PASS_SEARCH_CLUSTERS,
    HFD_PASS_SEARCH_POOLS,
    HFD_PASS_ORPHAN_LOOK,   /* GET it: is it still an orphan? */
    HFD_PASS_ORPHAN_DELETE, /* DELETE it, directly after that */
    HFD_PASS_ORPHAN_VERIFY, /* GET it: is it gone? */
    HFD_PASS_DONE,
    HFD_PASS_PHASE_COUNT
};

/** The purpose of one request: decides how its answer is taken. WRITE has several. */
enum hfd_pass_step {
    HFD_STEP_FIND,
    HFD_STEP_FIND_NAME,
    HFD_STEP_GET,
    HFD_STEP_OWNER,
    HFD_STEP_POOLS,
    HFD_STEP_POST,
    HFD_STEP_PATCH,
    HFD_STEP_DELETE,
    HFD_STEP_REPORTS,
    HFD_STEP_MANY,
    HFD_STEP_SEARCH,
    HFD_STEP_ORPHAN_GET,
    HFD_STEP_ORPHAN_DELETE
};

/** A part whose document was seen in this pass. */
struct hfd_seen_part {
    hfd_slice fleet_id;
    bool forgotten; /* this entry hides earlier ones: the part must be looked at
                       again */
    bool deleting;
    hfd_slice spec, labels; /* what the remote has, canonical */
    const struct hfd_seen_part *next;
};

/** A part whose document is written only after its reports, so that outputs come before ready. */
struct hfd_held_part {
    hfd_slice fleet_id;
    struct hfd_wire_resource doc; /* only what is written later */
    bool changed;                 /* the observer must run even if the document changes nothing */
    const struct hfd_held_part *next;
};

enum hfd_part_fact {
    HFD_PART_DELETE_SENT, /* DELETE was answered */
    HFD_PART_NAME_TAKEN,
    HFD_PART_PATCH_DENIED /* PATCH was answered as if the part did not exist */
};

struct hfd_part_note {
    hfd_slice fleet_id;
    enum hfd_part_fact fact;
    const struct hfd_part_note *next;
};

/** A list that is read page by page. */
struct hfd_pass_list {
    hfd_slice of;  /* the part that the list is about; empty = none */
    int64_t page;  /* the next one, from 0 */
    int64_t count; /* items so far; 0 on page 0 */
    bool complete; /* LIST_POOLS: read to its end in this pass */
};

/** The memory of a pass, by the phase that uses it. */
struct hfd_pass_memory {
    enum hfd_pass_phase phase;
    int64_t began_us;
    struct {
        int64_t answers;                    /* taken, about the resource */
        int64_t tries, refusals, behind_us; /* of the row before the first answer: failures in a
                                               row are counted per pass */
    } before;
    struct {
        struct hfd_pass_list list;
        hfd_slice foreign, foreign_owner; /* carries our label, but another server made it */
    } find;
    struct hfd_pass_list name;
    struct {
        bool announced;    /* the row has the time of a POST that is not sent yet */
        int64_t before_us; /* the row's unsure_us before that */
    } creation;
    struct hfd_pass_list pools;
    struct {
        struct hfd_pass_list list;
        bool changed; /* a report of that part is new */
        bool all;     /* read those of unchanged parts too */
    } reports;
    struct hfd_pass_list many; /* MANY_*, SEARCH_* */
    int looks_again;
    const struct hfd_seen_part *seen;
    const struct hfd_held_part *worse; /* for REPORTS_FIRST */
    const struct hfd_held_part *held;  /* for REPORTS */
    const struct hfd_part_note *notes;
};

struct hfd_pass {
    unsigned magic;
#define HFD_PASS_MAGIC 0x9a55c0deu
    const struct hfd_remote_policy *policy;
    struct hfd_remote_work work;
    char guresid[80];
    char orphan[HFD_WIRE_ID_MAX];
    struct hfd_pass_memory now, then; /* before and after the last answer */
    struct hfd_arena mem;             /* of both memories */
    struct hfd_arena request;         /* of the last request */
    hfd_slice sent_spec, sent_labels; /* what the last POST or PATCH asked for */
};

/**
 * @param policy  borrowed until hfd_pass_free
 * @param work    copied
 * @param out     gives on HFD_OK, else NULL
 * @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_pass_new(const struct hfd_remote_policy *policy,
                                   const struct hfd_remote_work *work, struct hfd_pass **out,
                                   struct hfd_err *err);
/** Accepts NULL. */
void hfd_pass_free(struct hfd_pass *pass);
const struct hfd_remote_work *hfd_pass_work(const struct hfd_pass *pass);

/** Returns whether the diagram has this arrow. */
bool hfd_pass_may_move(enum hfd_pass_phase from, enum hfd_pass_phase to);
/** Goes to another phase. Asserts the arrow. */
void hfd_pass_move(struct hfd_pass_memory *m, enum hfd_pass_phase to);
/** Goes to DONE, if the pass is not there yet. */
void hfd_pass_end(struct hfd_pass_memory *m);
/** Asserts what always holds for a pass, in every build. */
void hfd_pass_invariant(const struct hfd_pass *pass);

/** The list that the present phase reads. */
struct hfd_pass_list *hfd_pass_list(struct hfd_pass_memory *m);

/** NULL = the part was not seen, or must be looked at again. */
const struct hfd_seen_part *hfd_pass_seen(const struct hfd_pass_memory *m, hfd_slice fleet_id);
bool hfd_pass_noted(const struct hfd_pass_memory *m, hfd_slice fleet_id, enum hfd_part_fact fact);

/*
 * The rows that a pass works from: the work row, the resource, and its parts. Thread: any, in a
 * transaction.
 */

struct hfd_pass_part {
    struct hfd_part_row row;
    struct hfd_fleet_row fleet;
    bool exists; /* there is a mirror row */
};

struct hfd_pass_rows {
    bool found; /* false: there is no work for this GUResID, and nothing else is
                   set */
    struct hfd_remote_row remote;
    struct hfd_resource_row res;
    struct hfd_pass_part *parts; /* the cluster first */
    size_t count;
    size_t own; /* index of the part of the resource's own kind; `count` or more =
                   none */
};

/** Loads all rows of one resource. @return HFD_OK, HFD_NOMEM, HFD_IO, HFD_CORRUPT */
HFD_MUST_CHECK hfd_rc hfd_pass_rows_load(struct hfd_txn *tx, hfd_slice guresid,
                                         struct hfd_arena *mem, struct hfd_pass_rows *out,
                                         struct hfd_err *err);

/** The cluster of a cluster resource, the nodepool of a nodepool resource; NULL = none. */
struct hfd_pass_part *hfd_pass_own(const struct hfd_pass_rows *rows);

/**
 * Returns whether all that the remote has of the resource was seen, and all that is worse was
 * written.
 */
bool hfd_pass_is_all_known(const struct hfd_pass_memory *m, const struct hfd_pass_rows *rows);
/** NULL = no part has this id. */
struct hfd_pass_part *hfd_pass_part_by_id(const struct hfd_pass_rows *rows, hfd_slice fleet_id);

/* The next request of a pass, from its memory and the rows. */

/**
 * Moves the pass to the phase that has something to do, and makes its request.
 * @param out  valid until the next call for this pass; out->path.p is NULL if the pass is over
 * @return HFD_OK, HFD_NOMEM, HFD_LIMIT, HFD_IO, HFD_CORRUPT
 * Thread: any, in a read transaction.
 */
HFD_MUST_CHECK hfd_rc hfd_pass_next(struct hfd_txn *tx, struct hfd_pass *pass, int64_t now_us,
                                    struct hfd_remote_request *out, struct hfd_err *err);

#endif
