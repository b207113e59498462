/*
 * What the files of the upstream share: the pass, its steps, the state that a step is chosen from,
 * and the verdicts on answers.
 */
#ifndef HFD_REMOTE_PASS_INT_H
#define HFD_REMOTE_PASS_INT_H

#include "driver/backend/mirror.h"
#include "driver/backend/remote/pass.h"
#include "driver/backend/remote/wire.h"
#include "store/rows_resource.h"
#include "store/rows_part.h"
#include "store/rows_remote.h"

/*
 * Items of a page that is asked for: strict remotes allow 100, and a document has a bound in
 * values.
 */
#define HFD_REMOTE_PAGE 50
/* Pages that are read of one list. */
#define HFD_REMOTE_PAGES_MAX 200
/* So many observations are due together before a look at many is fewer requests. */
#define HFD_REMOTE_MANY 5
/*
 * A look at many takes those along that will be due within this share of the interval: else each
 * would come alone, once it is due.
 */
#define HFD_REMOTE_AHEAD_US(policy) ((policy)->watch_us / 4)
/*
 * A pass over one resource looks at all reports when that was last done so many watch intervals
 * ago; a look at many, each idle_us.
 */
#define HFD_REMOTE_FULL_EVERY 3
/* So long a creation that nobody answered may still arrive. */
#define HFD_REMOTE_UNSURE_US (60 * HFD_US_PER_S)
/*
 * So long a remote that tells an earlier generation may only lag behind; longer, and it was brought
 * back from a backup.
 */
#define HFD_REMOTE_BEHIND_US (15 * HFD_US_PER_S)
/* Times that one pass looks again at something that the remote has contradicted. */
#define HFD_REMOTE_RELOOKS_MAX 3
#define HFD_REMOTE_REFUSALS_MAX 3
/*
 * Orphans are searched for so many idle intervals after the last time, and when somebody asks for
 * them.
 */
#define HFD_ORPHANS_EVERY 12
/* Pages that are read of all that is ours. */
#define HFD_ORPHANS_PAGES_MAX 2000

enum hfd_step {
    HFD_STEP_FIND,      /* a page of what carries our label */
    HFD_STEP_FIND_NAME, /* who has the name that is taken */
    HFD_STEP_GET,
    HFD_STEP_OWNER, /* the cluster that a nodepool resource names */
    HFD_STEP_POOLS, /* a page of a cluster's nodepools with our label */
    HFD_STEP_POST,
    HFD_STEP_PATCH,
    HFD_STEP_DELETE,
    HFD_STEP_REPORTS, /* a page of a part's reports */
    HFD_STEP_VOUCH,   /* whether it is a HyperFleet that said 404 */
    HFD_STEP_MANY,    /* a page of what is in progress */
    HFD_STEP_ORPHANS, /* a page of what carries our owner's label */
    HFD_STEP_ORPHAN_GET,
    HFD_STEP_ORPHAN_DELETE
};

/* ---- verdicts ---- */

enum hfd_verdict_on {
    HFD_ON_WELL,    /* done, or here it is */
    HFD_ON_LATER,   /* down, busy, garbage */
    HFD_ON_WRONG,   /* no HyperFleet there */
    HFD_ON_REFUSED, /* the credentials */
    HFD_ON_MISSING, /* it is not there (any more) */
    HFD_ON_TAKEN,   /* the name */
    HFD_ON_LEAVING, /* it, or its cluster, is being deleted */
    HFD_ON_INVALID, /* what we said */
    HFD_ON_UNABLE   /* this HyperFleet cannot do it */
};

/** What an answer means. Pure. @param problem  what the document says, or zeroes */
enum hfd_verdict_on hfd_remote_verdict(enum hfd_remote_method method,
                                       const struct hfd_remote_answer *a,
                                       const struct hfd_wire_problem *problem);

/* ---- the pass ---- */

/*
 * Lists that only grow at the head: taking an answer twice, after a rollback, begins from the same
 * head.
 */

/** A part whose document was seen in this pass. */
struct hfd_seen {
    hfd_slice fleet_id;
    bool unseen; /* hides what was seen before */
    bool deleting;
    hfd_slice spec, labels; /* what the remote has, canonical */
    const struct hfd_seen *next;
};

/**
 * A part whose document is not written yet: its reports come first, so that nothing is ready
 * before its outputs are here.
 */
struct hfd_held {
    hfd_slice fleet_id;
    struct hfd_wire_resource doc; /* as far as it is written */
    bool changed;                 /* there is something to tell whatever it says */
    const struct hfd_held *next;
};

/** An id with something that was done or found about it in this pass. */
struct hfd_mark {
    hfd_slice id;
    const struct hfd_mark *next;
};

/** What a pass has found out. */
struct hfd_memory {
    bool over;
    bool begun;
    bool full;            /* all reports are looked at */
    bool reports_changed; /* of the held part whose reports are read */
    bool sought;          /* nothing carries our label */
    bool pools_known;     /* the nodepools were listed to the end */
    bool owner_asked;     /* the cluster of a nodepool resource is in question */
    bool many_pools;      /* a look at many, or the search for orphans: clusters are done */
    bool confirmed; /* of a orphan: it was just seen to be ours, nobody's, and to be deleted */
    bool erased;    /* of a orphan: DELETE was answered */
    int64_t page;   /* of the list under way, from 0 */
    int64_t collected;
    int relooks;
    bool doubted;                       /* 404 in other words than HyperFleet's */
    bool vouched;                       /* and it was found to be one's all the same */
    bool unsent;                        /* a creation is announced and not sent yet */
    int64_t unsure_us;                  /* what the row said before that */
    int64_t tries, refusals, behind_us; /* of the row, when the pass began */
    int64_t began_us;
    hfd_slice foreign, foreign_owner; /* what carries our label, and whose it is */
    const struct hfd_seen *seen;
    const struct hfd_held *worse; /* what was ready and is not any more: it is told of before
                                     anything else is concluded */
    const struct hfd_held *held;
    const struct hfd_mark *deleted; /* DELETE was answered */
    const struct hfd_mark *taken;   /* parts whose name is taken */
    const struct hfd_mark *denied;  /* PATCH was answered as if they were not there */
};

struct hfd_pass {
    unsigned magic;
#define HFD_PASS_MAGIC 0x9a55c0deu
    const struct hfd_remote_policy *policy;
    struct hfd_remote_work work;
    char guresid[80];
    char orphan[HFD_WIRE_ID_MAX];
    struct hfd_memory now, then; /* before and after the last answer */
    struct hfd_arena mem;        /* of what is remembered */
    struct hfd_arena request;    /* of the last request, and of what it said */
    hfd_slice sent_spec, sent_labels;
};

/* ---- what a step is chosen from ---- */

struct hfd_pass_part {
    struct hfd_part_row row;
    struct hfd_fleet_row fleet;
    bool exists; /* there is a mirror row */
};

struct hfd_pass_rows {
    struct hfd_remote_row up;
    struct hfd_resource_row res;
    struct hfd_pass_part *parts; /* the cluster first */
    size_t count;
    struct hfd_pass_part *own; /* the cluster of a cluster resource, the nodepool of a nodepool
                                      resource; NULL = none */
};

/** @param found  false: there is nothing to do for this GUResID */
HFD_MUST_CHECK hfd_rc hfd_pass_rows_load(struct hfd_txn *tx, hfd_slice guresid,
                                         struct hfd_arena *mem, struct hfd_pass_rows *out,
                                         bool *found, struct hfd_err *err);
struct hfd_pass_part *hfd_pass_part_by_id(const struct hfd_pass_rows *s, hfd_slice fleet_id);
/** The first part of the list that is still there; NULL = none. */
const struct hfd_pass_part *hfd_pass_first_held(const struct hfd_pass_rows *s,
                                                const struct hfd_held *list);
/** A part that this pass has not seen yet, one that stays before one that leaves; NULL = none. */
const struct hfd_pass_part *hfd_pass_first_unseen(const struct hfd_pass_rows *s,
                                                  const struct hfd_memory *m);
const struct hfd_seen *hfd_pass_seen(const struct hfd_memory *m, hfd_slice fleet_id);
bool hfd_pass_noted(const struct hfd_mark *list, hfd_slice id);

/* ---- work on one answer ---- */

/** Everything that the taking of one answer works with. */
struct hfd_take {
    struct hfd_txn *tx;
    struct hfd_pass *pass;
    const struct hfd_remote_policy *policy;
    struct hfd_memory *m; /* pass->then */
    struct hfd_pass_rows s;
    struct hfd_arena *mem; /* of this taking */
    int64_t now_us;
    const struct hfd_remote_request *request;
    const struct hfd_remote_answer *answer;
    enum hfd_verdict_on verdict;
    struct hfd_wire_problem problem;
    json_t *doc;           /* of a good answer; NULL = none that can be read */
    bool failed;           /* it is tried again later */
    int64_t wait_until_us; /* when it is due again, where that is known; 0 = as usual */
};

/* observe.c: from documents to rows. Each writes only what differs. */

/**
 * The document of a part was seen: what differs from its row is held until its reports are here.
 */
HFD_MUST_CHECK hfd_rc hfd_observe_see(struct hfd_take *t, struct hfd_pass_part *part,
                                      const struct hfd_wire_resource *doc, struct hfd_err *err);
/** The remote has taken what was asked for, and answered with the document. */
HFD_MUST_CHECK hfd_rc hfd_observe_taken(struct hfd_take *t, struct hfd_pass_part *part,
                                        const struct hfd_wire_resource *doc, struct hfd_err *err);
/**
 * Gives a part the id, and to a row that knew nothing else the rest, of what was found or made.
 * @param ok  false: another one has it
 */
HFD_MUST_CHECK hfd_rc hfd_observe_name(struct hfd_take *t, struct hfd_pass_part *part,
                                       const struct hfd_wire_resource *doc, bool *ok,
                                       struct hfd_err *err);
/** A report that belongs to the held part whose reports are read. */
HFD_MUST_CHECK hfd_rc hfd_observe_report(struct hfd_take *t, hfd_slice fleet_id, json_t *doc,
                                         struct hfd_err *err);
/**
 * Writes a held part whose reports are here, and lets it go, with those before it, which have
 * gone.
 */
HFD_MUST_CHECK hfd_rc hfd_observe_release(struct hfd_take *t, struct hfd_pass_part *part,
                                          struct hfd_err *err);
/** A part is not there any more; a cluster takes its nodepools with it. */
HFD_MUST_CHECK hfd_rc hfd_observe_gone(struct hfd_take *t, struct hfd_pass_part *part,
                                       struct hfd_err *err);
/** Whether the remote has what is wanted of a part. */
bool hfd_observe_equal(const struct hfd_pass_part *part, hfd_slice spec, hfd_slice labels);

/* take.c */

/**
 * The answer of a list that was asked for because of a 404 in other words than HyperFleet's.
 * @return whether a HyperFleet is there
 */
bool hfd_take_voucher(struct hfd_take *t);

/* take_many.c */

/**
 * Counts a page of the list under way. @return whether it was the last: the next list begins anew
 */
bool hfd_take_page(struct hfd_take *t, const struct hfd_wire_page *page, int64_t pages_max);
typedef hfd_rc hfd_take_item_fn(struct hfd_take *t, const struct hfd_wire_resource *doc,
                                struct hfd_err *err);
/**
 * Each resource of a page of a look at many or of the search for orphans, in memory of its own.
 * What cannot be read is left out.
 */
HFD_MUST_CHECK hfd_rc hfd_take_items(struct hfd_take *t, const struct hfd_wire_page *page,
                                     hfd_take_item_fn *fn, struct hfd_err *err);
/** Of which kind the resources of such a list are. */
enum hfd_kind hfd_take_kind(const struct hfd_take *t);

HFD_MUST_CHECK hfd_rc hfd_take_many(struct hfd_take *t, struct hfd_err *err);

/* take_orphans.c */

/** A page of the search for orphans. */
HFD_MUST_CHECK hfd_rc hfd_take_orphans(struct hfd_take *t, struct hfd_err *err);
/** An answer about one orphan. */
HFD_MUST_CHECK hfd_rc hfd_take_orphan(struct hfd_take *t, struct hfd_err *err);

#endif
