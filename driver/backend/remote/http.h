/*
 * HTTP to a remote HyperFleet, by the client of driver/base/http_client.h: many calls at a time
 * from one thread. It uses no proxies of the environment: only settings say where it connects.
 * Thread: the one that opened it, unless said.
 */
#ifndef HFD_REMOTE_HTTP_H
#define HFD_REMOTE_HTTP_H

#include "driver/base/http_client.h"
#include "driver/base/trace.h"

struct hfd_remote_http;

/*
 * One request to a remote HyperFleet, and its answer. No socket: a pass makes the request and takes
 * the answer (pass.h), and the HTTP client carries both (http.h).
 */

enum hfd_remote_method {
    HFD_REMOTE_GET,
    HFD_REMOTE_POST,
    HFD_REMOTE_PATCH,
    HFD_REMOTE_DELETE
};

/** The texts live in the memory of the pass, until its next request. */
struct hfd_remote_request {
    enum hfd_remote_method method;
    hfd_slice path;         /* below /api/hyperfleet/v1, escaped, with the query:
                               "/clusters?search=..." */
    hfd_slice body;         /* JSON, or empty */
    int64_t held_us;        /* how long the peer may hold its answer, beside `timeout_us` */
    int step;               /* enum hfd_pass_step: how the pass takes the answer */
    hfd_slice fleet_id;     /* the part that the request is about, or empty */
    struct hfd_trace trace; /* of the operation that it is for */
};

struct hfd_remote_answer {
    bool arrived;        /* a whole HTTP answer; if false, `failure` has the reason */
    const char *failure; /* "could not connect: ...", for logs, metrics and
                            messages; no secret */
    int status;
    bool is_json;     /* application/json or application/problem+json; else `body` is
                         not read */
    const char *type; /* without parameters; NULL = not said */
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

/** Texts are borrowed until close. */
struct hfd_remote_http_config {
    const struct hfd_clock *clock;
    const char *url; /* checked by hfd_url_check; with or without the API's own path */
    const char *token_file, *ca_file, *cert_file, *key_file; /* NULL or empty = none */
    const char *identity_header, *identity;                  /* likewise */
    int64_t connect_timeout_us, timeout_us;
    int64_t connections_max;
    int64_t answer_max_bytes;
};

/** One call, in memory of the caller that does not move until hfd_remote_call_fini. */
struct hfd_remote_call {
    struct hfd_remote_request request; /* its texts are borrowed until done */
    void (*done)(struct hfd_remote_call *call);
    void *arg;
    /* From done until fini: */
    struct hfd_remote_answer answer;
    int64_t duration_us;
    /* The client's own: */
    struct hfd_remote_http *owner; /* NULL = not sent, or finished */
    struct hfd_http_call http;
    struct hfd_http_server patient; /* of a request whose answer may be held */
    struct hfd_http_answer http_answer;
    int64_t started_us; /* mono */
    char failure[248];
};

/** Called for a file with a secret that every user may read. @param key  the setting's name */
typedef void hfd_remote_open_file_fn(void *ctx, const char *key, const char *path, unsigned mode);

/**
 * Reads and checks the files as hfd_remote_http_open does, and drops them.
 * @param on_open  may be NULL
 * @return HFD_OK, HFD_INVALID or HFD_IO (which file, why; err->field is the setting), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_remote_files_check(const struct hfd_remote_http_config *config,
                                             hfd_remote_open_file_fn *on_open, void *ctx,
                                             struct hfd_err *err);

/**
 * Reads and checks the files: all must exist and fit together. Logs a warning if every user may
 * read a file with a secret, also when it is read again.
 * @return HFD_OK, HFD_INVALID (which file, why), HFD_NOMEM, HFD_IO
 */
HFD_MUST_CHECK hfd_rc hfd_remote_http_open(const struct hfd_remote_http_config *config,
                                           struct hfd_remote_http **out, struct hfd_err *err);
/** All calls must be finished. Accepts a pointer to NULL. */
void hfd_remote_http_close(struct hfd_remote_http **http);

/**
 * Sends a request. A later hfd_remote_http_run calls `done`, with an answer or a failure.
 * @return HFD_OK; HFD_NOMEM: done is not called
 */
HFD_MUST_CHECK hfd_rc hfd_remote_http_send(struct hfd_remote_http *http,
                                           struct hfd_remote_call *call, struct hfd_err *err);
/** Frees the answer, or ends the call without calling `done`. Accepts a zeroed call, and twice. */
void hfd_remote_call_fini(struct hfd_remote_call *call);

/** Carries on with all calls, waits for up to wait_us, and calls `done` of those that ended. */
void hfd_remote_http_run(struct hfd_remote_http *http, int64_t wait_us);
/** Ends the present wait, or the next one. Thread: any. */
void hfd_remote_http_wake(struct hfd_remote_http *http);
/**
 * Reads the files again before the next request, changed or not. If one cannot be used, logs that
 * and keeps the previous content. Thread: any.
 */
void hfd_remote_http_reload(struct hfd_remote_http *http);

#endif
