/*
 * The remote thread: carries out against a remote HyperFleet what is due in the store (work.h). It
 * bounds requests in flight and per second, retries with jitter, and has a circuit breaker.
 * README.md in this folder shows its parts.
 */
#ifndef HFD_REMOTE_REMOTE_H
#define HFD_REMOTE_REMOTE_H

#include "driver/backend/remote/http.h"
#include "driver/backend/remote/work.h"
#include "driver/base/err.h"
#include "driver/base/slice.h"
#include "driver/replica/keeper.h"
#include "store/store.h"

struct hfd_pass;
struct hfd_remote;
struct hfd_remote_rules;

/** Texts are borrowed until hfd_remote_stop. Files are read again if they change. */
struct hfd_remote_config {
    struct hfd_store *store;
    struct hfd_keeper *keeper; /* the thread works while this leads; NULL = always */
    const struct hfd_remote_policy *policy;
    const struct hfd_rng *rng;
    struct hfd_remote_http_config http; /* its clock is the thread's; connections_max is not used */
    int64_t fresh_us;                   /* a poll accepts an observation of this age */
    int64_t in_flight_max, per_second_max;
    const struct hfd_remote_rules *rules; /* of tests; NULL = those of this folder */
};

/** `health` changes after three bad answers in a row, and back after one good answer. */
struct hfd_remote_state {
    enum hfd_remote_health health;
    bool breaker_open;
    int64_t last_answer_us; /* wall clock; 0 = never */
    char last_failure[248]; /* empty = none since the last good answer */
    int64_t in_flight;      /* requests */
};

/**
 * Reads the files and starts the thread, which sends one request at once to learn the remote's
 * state.
 * @return HFD_OK, HFD_INVALID (a file that cannot be used), HFD_NOMEM, HFD_IO
 */
HFD_MUST_CHECK hfd_rc hfd_remote_start(const struct hfd_remote_config *config,
                                       struct hfd_remote **out, struct hfd_err *err);
/**
 * Ends requests and the thread. The next start finds out what was carried out. Takes *remote;
 * accepts a pointer to NULL.
 */
void hfd_remote_stop(struct hfd_remote **remote);

/** A client polls a resource. Cheap, never waits, may forget when busy. Thread: any. */
void hfd_remote_asked(struct hfd_remote *remote, hfd_slice guresid);
/** New work was committed. Thread: any. */
void hfd_remote_wake(struct hfd_remote *remote);

/** Reads token and certificates again before the next request, changed or not. Thread: any. */
void hfd_remote_reload(struct hfd_remote *remote);

/** Copies the state. Thread: any. */
void hfd_remote_state(struct hfd_remote *remote, struct hfd_remote_state *out);
/** "well", "ill", "refuses", "wrong". */
const char *hfd_remote_health_name(enum hfd_remote_health health);

/*
 * The functions about work and passes that the remote thread calls. A table, so that tests can run
 * the thread with functions of their own.
 */

/** Each with the promises of work.h, pass.h, handle.h and observe.h. */
struct hfd_remote_rules {
    hfd_rc (*due)(struct hfd_txn *tx, const struct hfd_work_query *query, struct hfd_arena *mem,
                  struct hfd_due *out, struct hfd_err *err);
    hfd_rc (*hurry)(struct hfd_txn *tx, hfd_slice guresid, int64_t older_us, int64_t now_us,
                    struct hfd_err *err);
    hfd_rc (*pass_new)(const struct hfd_remote_policy *policy, const struct hfd_remote_work *work,
                       struct hfd_pass **out, struct hfd_err *err);
    void (*pass_free)(struct hfd_pass *pass);
    const struct hfd_remote_work *(*pass_work)(const struct hfd_pass *pass);
    hfd_rc (*next)(struct hfd_txn *tx, struct hfd_pass *pass, int64_t now_us,
                   struct hfd_remote_request *out, struct hfd_err *err);
    hfd_rc (*take)(struct hfd_txn *tx, struct hfd_pass *pass,
                   const struct hfd_remote_exchange *exchange, struct hfd_err *err);
    enum hfd_remote_health (*health_of)(const struct hfd_remote_answer *a);
};

#endif
