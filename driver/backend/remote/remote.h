/*
 * the remote thread: carries out, against a remote HyperFleet, what the store says is due
 * (pass.h), with libcurl: kept connections, deadlines, at most so many requests in flight and
 * per second, jittered retries within a budget, a circuit breaker with a half-open probe, bounded
 * answers, no redirects. The only user of libcurl for HyperFleet. Source: DESIGN 6.
 */
#ifndef HFD_REMOTE_REMOTE_H
#define HFD_REMOTE_REMOTE_H

#include "driver/backend/remote/http.h"
#include "driver/backend/remote/policy.h"

struct hfd_remote;

/** Texts are borrowed for as long as the thread lives; files are read again when they change. */
struct hfd_remote_config {
    struct hfd_store *store;
    const struct hfd_remote_policy *policy;
    const struct hfd_rng *rng;
    struct hfd_remote_http_config http; /* its clock is the thread's; connections_max is not used */
    int64_t fresh_us;                   /* a poll wants no older observation than that */
    int64_t in_flight_max, per_second_max;
};

#define HFD_REMOTE_IN_FLIGHT_MAX 256

/**
 * Reads the files and starts the thread, which asks the remote once at the start, so that its state
 * is known.
 * @return HFD_OK, HFD_INVALID (a file that cannot be used), HFD_NOMEM, HFD_IO
 */
HFD_MUST_CHECK hfd_rc hfd_remote_start(const struct hfd_remote_config *config,
                                       struct hfd_remote **out, struct hfd_err *err);
/**
 * Ends what is in flight and the thread; what was not answered is found out at the next start.
 * Accepts NULL. Takes *remote.
 */
void hfd_remote_stop(struct hfd_remote **remote);

/** A poller asks for a resource. Cheap, never waits, may forget when busy. Thread: any. */
void hfd_remote_asked(struct hfd_remote *remote, hfd_slice guresid);
/** Something new was committed for the upstream. Thread: any. */
void hfd_remote_wake(struct hfd_remote *remote);

/**
 * Has token and certificates read again before the next request, whether they look changed or not.
 * Thread: any.
 */
void hfd_remote_reload(struct hfd_remote *remote);

/**
 * health is what lasts: one ill answer among good ones does not change it, three in a row do, and
 * one good one changes it back.
 */
struct hfd_remote_state {
    enum hfd_remote_health health;
    bool breaker_open;
    int64_t last_answer_us; /* wall clock; 0 = never */
    char last_failure[248]; /* empty = none since the last good answer */
    int64_t in_flight;      /* requests */
};
/** Thread: any. */
void hfd_remote_state(struct hfd_remote *remote, struct hfd_remote_state *out);
/** "well", "ill", "refuses", "wrong", for people and labels. */
const char *hfd_remote_health_name(enum hfd_remote_health health);

#endif
