/*
 * One request to a remote HyperFleet, and its answer. No socket: a pass makes the request and takes
 * the answer (pass.h), and the HTTP client carries both (http.h).
 */
#ifndef HFD_REMOTE_EXCHANGE_H
#define HFD_REMOTE_EXCHANGE_H

#include <stdbool.h>

#include "driver/base/slice.h"

enum hfd_remote_method {
    HFD_REMOTE_GET,
    HFD_REMOTE_POST,
    HFD_REMOTE_PATCH,
    HFD_REMOTE_DELETE
};

/** The texts live in the memory of the pass, until its next request. */
struct hfd_remote_request {
    enum hfd_remote_method method;
    hfd_slice path;     /* below /api/hyperfleet/v1, escaped, with the query:
                           "/clusters?search=..." */
    hfd_slice body;     /* JSON, or empty */
    int step;           /* enum hfd_pass_step: how the pass takes the answer */
    hfd_slice fleet_id; /* the part that the request is about, or empty */
};

struct hfd_remote_answer {
    bool arrived;        /* a whole HTTP answer; if false, `failure` has the reason */
    const char *failure; /* "could not connect: ...", for logs, metrics and
                            messages; no secret */
    int status;
    bool is_json; /* application/json or application/problem+json; else `body` is
                     not read */
    hfd_slice body;
    int64_t retry_after_us; /* from Retry-After; 0 = none */
};

/** A request with its answer. All borrowed. */
struct hfd_remote_exchange {
    const struct hfd_remote_request *request; /* the last one of the pass */
    const struct hfd_remote_answer *answer;
    int64_t now_us; /* wall clock */
};

/** The state of the remote as one answer shows it: for the breaker, the metrics and the log. */
enum hfd_remote_health {
    HFD_REMOTE_WELL,    /* the remote works, whatever the answer is */
    HFD_REMOTE_ILL,     /* down, slow, 5xx, 429, not a document */
    HFD_REMOTE_REFUSES, /* 401, 403 */
    HFD_REMOTE_WRONG    /* not a HyperFleet: 404 with NTF-000, a redirect */
};

#endif
