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

#include <pthread.h>
#include <stdatomic.h>

struct hfd_pass;
struct hfd_remote;
struct hfd_remote_rules;
struct hfd_remote_slot;

/** Texts are borrowed until hfd_remote_stop. Files are read again if they change. */
struct hfd_remote_config {
    struct hfd_store *store;
    struct hfd_keeper *keeper; /* the thread works while this leads; NULL = always */
    const struct hfd_remote_policy *policy;
    const struct hfd_rng *rng;
    struct hfd_remote_http_config http; /* its clock is the thread's; connections_max is not used */
    int64_t fresh_us;                   /* a poll accepts an observation of this age */
    int64_t in_flight_max, per_second_max;
};

/** `health` changes after three bad answers in a row, and back after one good answer. */
struct hfd_remote_state {
    enum hfd_remote_health health;
    bool breaker_open;
    int64_t last_answer_us; /* wall clock; 0 = never */
    char last_failure[248]; /* empty = none since the last good answer */
    int64_t in_flight;      /* requests */
};

#define HFD_REMOTE_POLLS_MAX 256 /* in one transaction */

/** One transaction at a time. */
struct hfd_remote_polls {
    struct hfd_job job; /* first member */
    struct hfd_remote *remote;
    bool out; /* with the store */
    struct hfd_asked_id ids[HFD_REMOTE_POLLS_MAX];
    size_t count;
    int64_t older_us, now_us; /* wall clock */
};

struct hfd_remote {
    unsigned magic;
#define HFD_REMOTE_MAGIC 0x4e707e11u
    struct hfd_sink sink;
    struct hfd_remote_config config;
    const struct hfd_remote_rules *rules;
    struct hfd_remote_http *http;
    struct hfd_asked *asked;
    pthread_t thread;
    atomic_bool stop, woken; /* any thread */

    pthread_mutex_t lock;     /* of finished and state */
    struct hfd_job *finished; /* jobs that the store has done, the newest list first */
    struct hfd_remote_state state;

    /* Only the thread uses the rest. */
    struct hfd_store_reader *reader;
    struct hfd_remote_slot *slots;
    size_t slot_count, busy_slots;
    size_t jobs_out; /* with the store */
    struct hfd_remote_polls polls;
    struct hfd_remote_call greeting; /* the request at the start */
    struct hfd_hold hold;            /* of this replica, at the last look */
    struct hfd_rate rate;
    struct hfd_breaker breaker;
    int bad; /* answers in a row that were not well */
    bool ever_well;
    bool may_be_due; /* something may be due */
    int64_t due_us;  /* wall clock: when something will be due */
    int64_t read_us; /* monotonic: when that was last read */
    int64_t order;   /* of the last slot that became READY */
    struct hfd_skip_list aside;
    int64_t pause_until_us; /* monotonic: no work is begun before */
    bool counted;
    int64_t counted_us; /* monotonic */
    bool cannot_read;   /* logged: what is due cannot be read */
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

/** Those of work.h, pass.h, handle.h and observe.h. */
extern const struct hfd_remote_rules hfd_remote_rules;

/** As hfd_remote_start. @param rules  borrowed until hfd_remote_stop */
HFD_MUST_CHECK hfd_rc hfd_remote_start_with(const struct hfd_remote_config *config,
                                            const struct hfd_remote_rules *rules,
                                            struct hfd_remote **out, struct hfd_err *err);

#endif
