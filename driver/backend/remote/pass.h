/*
 * What is to be said to a remote HyperFleet, and what its answers mean: transaction functions
 * without a socket. the remote thread (remote.h) takes up what is due and, for each piece of
 * work, asks hfd_pass_next for a request, sends it, and gives the answer to hfd_pass_take,
 * until there is nothing more to ask. All that must survive is in the store after each take; the
 * pass itself is memory that may be lost at any instant: a new one finds out by label and name what
 * is already done. Source: DESIGN 2, 6; spec/hyperfleet-versions.md section 2.
 */
#ifndef HFD_REMOTE_PASS_H
#define HFD_REMOTE_PASS_H

#include "driver/fleet/fleet.h"

/**
 * The label that names who made a resource, beside the one with the GUResID: two servers on one
 * remote leave each other's alone.
 */
#define HFD_OWNER_LABEL "humanitec_owner"

/** What the upstream is made of; const after start-up. */
struct hfd_remote_policy {
    const struct hfd_fleet
        *fleet; /* its on_change hears of what was observed; its seal keeps secrets of reports */
    hfd_slice owner;  /* value of HFD_OWNER_LABEL: the same for all stores that share a key ring */
    int64_t watch_us; /* how often what is in progress is observed */
    int64_t idle_us;  /* how often what is settled is */
    int64_t retry_min_us, retry_max_us;
    const struct hfd_rng *rng; /* of the jitter */
    /**
     * A resource's operation cannot be carried out: code and sentence are for the app developer.
     */
    hfd_rc (*on_refused)(void *ctx, struct hfd_txn *tx, hfd_slice guresid, const char *code,
                         hfd_slice message, int64_t now_us, struct hfd_arena *mem,
                         struct hfd_err *err);
    void *on_refused_ctx;
};

enum hfd_remote_method {
    HFD_REMOTE_GET,
    HFD_REMOTE_POST,
    HFD_REMOTE_PATCH,
    HFD_REMOTE_DELETE
};

/** In the memory of its pass. */
struct hfd_remote_request {
    enum hfd_remote_method method;
    hfd_slice path; /* below /api/hyperfleet/v1, with query, escaped: "/clusters?search=..." */
    hfd_slice body; /* JSON, or empty */
    int step;       /* pass.c's own */
    hfd_slice fleet_id;
};

struct hfd_remote_answer {
    bool arrived;        /* a whole HTTP answer; else `failure` says why not */
    const char *failure; /* "could not connect: ...": for logs, metrics and the message of a
                            deadline; never a secret */
    int status;
    bool is_json; /* application/json or problem+json; `body` is not looked at otherwise */
    hfd_slice body;
    int64_t retry_after_us; /* from Retry-After; 0 = none */
};

/** What the thread needs to know of an answer: for its breaker, its metrics and its log. */
enum hfd_remote_health {
    HFD_REMOTE_WELL,    /* the remote works, whatever it said */
    HFD_REMOTE_ILL,     /* down, slow, 5xx, 429, garbage */
    HFD_REMOTE_REFUSES, /* 401, 403 */
    HFD_REMOTE_WRONG    /* not a HyperFleet: NTF-000, a redirect */
};
/** Pure. */
enum hfd_remote_health hfd_remote_health_of(const struct hfd_remote_answer *a);

struct hfd_pass;

/**
 * Stands for a GUResID, which it cannot be: the search for what is ours and no resource's. See
 * orphans.h.
 */
#define HFD_REMOTE_ORPHANS HFD_SLICE("*")

/**
 * A piece of work: one driver resource, a look at many at once, the search for orphans, or one
 * orphan.
 */
struct hfd_remote_work {
    hfd_slice guresid; /* empty: a look at all that are in progress, by list and search */
    hfd_slice orphan;  /* empty, or the id of one that carries this GUResID: so no pass of its
                         resource runs beside */
    enum hfd_kind kind;
};

/**
 * What is due at now_us: first what is to be carried out, then what is in progress, then orphans,
 * then what is settled and the search for orphans, each the longest overdue first; a look at many
 * instead of many single ones where that is fewer requests. Work that a pass is alive for stays due
 * until its first answer: of one GUResID, and of looks at many, there must be one pass at a time.
 * Whose pass was over without a request, or failed, is not to be asked for again before watch_us.
 * @param limit    counts those with a pass as well
 * @param out      gives in mem
 * @param next_us  when more will be due; INT64_MAX = nothing is known of
 */
HFD_MUST_CHECK hfd_rc hfd_remote_due(struct hfd_txn *tx, const struct hfd_remote_policy *policy,
                                     int64_t now_us, size_t limit, struct hfd_arena *mem,
                                     struct hfd_remote_work *out, size_t *count, int64_t *next_us,
                                     struct hfd_err *err);
/**
 * Somebody asks for this resource, or for orphans, which nobody looks for before that: have it due
 * if it was last looked at before `older_us`. All that are asked for in a quarter of that span are
 * due at its end, together, so that one look at many does for them. Thread: writer.
 */
HFD_MUST_CHECK hfd_rc hfd_remote_hurry(struct hfd_txn *tx, hfd_slice guresid, int64_t older_us,
                                       int64_t now_us, struct hfd_err *err);

/** @param work  copied */
HFD_MUST_CHECK hfd_rc hfd_pass_new(const struct hfd_remote_policy *policy,
                                   const struct hfd_remote_work *work, struct hfd_pass **out,
                                   struct hfd_err *err);
void hfd_pass_free(struct hfd_pass *pass);
const struct hfd_remote_work *hfd_pass_work(const struct hfd_pass *pass);

/**
 * The next request of a pass, from what the store and the pass know. @param done  true: there is
 * none, the pass is over Thread: any reader. The request is valid until the next call for this
 * pass.
 */
HFD_MUST_CHECK hfd_rc hfd_pass_next(struct hfd_txn *tx, struct hfd_pass *pass, int64_t now_us,
                                    struct hfd_remote_request *out, bool *done,
                                    struct hfd_err *err);
/**
 * Takes the answer to the request that next gave last: writes what it means, sets when the resource
 * is due again. May run again after a rollback: the pass changes only through what it returns for
 * good.
 * @return HFD_OK also for answers that mean failure; HFD_CORRUPT, HFD_IO, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_pass_take(struct hfd_txn *tx, struct hfd_pass *pass,
                                    const struct hfd_remote_request *request,
                                    const struct hfd_remote_answer *answer, int64_t now_us,
                                    struct hfd_err *err);

#endif
