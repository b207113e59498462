/*
 * The seam between the server (server.c, door.c, exchange.c: the only users of h2o.h) and the
 * handlers. A handler gets an exchange on a loop thread, turns the request into a command, runs a
 * transaction, and answers; it never waits. Thread: loop, unless said.
 */
#ifndef HFD_HTTP_HTTP_H
#define HFD_HTTP_HTTP_H

#include "driver/base/buf.h"
#include "handlers/settings/settings.h"
#include "driver/backend/remote/remote.h"
#include "driver/core/resource.h"
#include "driver/fleet/vocabulary.h"
#include "store/store.h"

struct hfd_exchange;
struct hfd_violations;

/* clang-format off */
#define HFD_METHOD_LIST(X) X(GET) X(HEAD) X(PUT) X(POST) X(PATCH) X(DELETE) X(OPTIONS) X(OTHER)
/* clang-format on */
#define HFD_METHOD_ENUM_(m) HFD_METHOD_##m,
enum hfd_method {
    HFD_METHOD_LIST(HFD_METHOD_ENUM_) HFD_METHOD_COUNT
};
#undef HFD_METHOD_ENUM_

#define HFD_SEGMENTS_MAX 8
#define HFD_PARAMS_MAX 3

/**
 * The request as a handler sees it. Slices point into the request: valid until the handler
 * returns, unless copied with hfd_arena_dup.
 */
struct hfd_request {
    enum hfd_method method;
    hfd_slice method_text;
    hfd_slice path;  /* without query, as received */
    hfd_slice query; /* without '?' */
    hfd_slice body;
    hfd_slice request_id; /* made by us; lives as long as the exchange */
    int64_t received_us;  /* wall clock */
};

struct hfd_reply {
    int status;
    const char *content_type; /* static; NULL = no body */
    hfd_slice body;           /* in the exchange's arena, or static */
    bool has_cookie;
    hfd_slice cookie;   /* Set-Humanitec-Driver-Cookie, may be empty */
    int retry_after_s;  /* 0 = no header */
    const char *allow;  /* 405 */
    const char *policy; /* Content-Security-Policy of a page; NULL = none */
};

struct hfd_route;

/** What handlers share: const after start-up. */
struct hfd_app {
    const struct hfd_settings *settings;
    struct hfd_store *store;
    const struct hfd_driver *driver;
    const struct hfd_clock *clock;
    const struct hfd_rng *rng;
    enum hfd_vocabulary vocabulary; /* of the conditions that are shown */
    struct hfd_remote
        *remote; /* the HyperFleet that is driven; NULL = it is embedded, and served here */
    const struct hfd_route *routes; /* NULL = hfd_routes; tests of the server bring their own */
    size_t route_count;
};

typedef void hfd_handler_fn(struct hfd_exchange *x);

enum hfd_listener {
    HFD_LISTENER_MAIN,
    HFD_LISTENER_OPS,
    HFD_LISTENER_COUNT
};
/** How errors of the server itself (404, 405, 413, 503) look on a route or prefix. */
enum hfd_dialect {
    HFD_DIALECT_DRIVER,
    HFD_DIALECT_FLEET,
    HFD_DIALECT_OPS,
};

/** One row per listener, method and pattern. */
struct hfd_route {
    enum hfd_listener listener;
    enum hfd_method method;
    const char *pattern; /* "/clusters/{id}"; "{driver}" matches the configured prefixes only */
    const char *name;    /* the label of metrics and log lines */
    enum hfd_dialect dialect;
    hfd_handler_fn *fn;
    const void *arg;    /* for fn: what to do; its type belongs to the handler */
    enum hfd_kind kind; /* for fn: the kind of resource that the path names; 0 = none */
};

/** The table (routes.c): the only place that knows the paths. */
extern const struct hfd_route hfd_routes[];
extern const size_t hfd_route_count;
/**
 * The rows without HyperFleet's own API, for a server that drives a remote one. NULL when memory
 * is short.
 */
const struct hfd_route *hfd_routes_without_fleet(struct hfd_arena *mem, size_t *count);

/** What the server was opened with, the row of the request's route, and the request. */
const struct hfd_app *hfd_exchange_app(const struct hfd_exchange *x);
const struct hfd_route *hfd_exchange_route(const struct hfd_exchange *x);
const struct hfd_request *hfd_exchange_request(const struct hfd_exchange *x);
/**
 * Memory for the command, its results and the reply; freed with the exchange. While a job is out
 * it belongs to the job.
 */
struct hfd_arena *hfd_exchange_mem(struct hfd_exchange *x);
/** Whether the server has been told to stop. */
bool hfd_exchange_draining(const struct hfd_exchange *x);
/**
 * What the route's "{name}" matched, percent-decoded, valid as the request's slices are; p is NULL
 * when the route has no such parameter.
 */
hfd_slice hfd_exchange_param(const struct hfd_exchange *x, const char *name);
/**
 * A request header that has one value, by lower-case name. Given more than once, those without a
 * value do not count and equal ones are one.
 * @param out  borrows; p is NULL when absent
 * @return HFD_OK, HFD_BAD_REQUEST (it is given more than once, and differs: nobody can say which is
 * meant)
 */
HFD_MUST_CHECK hfd_rc hfd_exchange_header(const struct hfd_exchange *x, const char *lower_name,
                                          hfd_slice *out, struct hfd_err *err);

/** Runs fn in a read snapshot on this loop's own connection, now. */
HFD_MUST_CHECK hfd_rc hfd_exchange_read(struct hfd_exchange *x, hfd_txn_fn *fn, void *arg,
                                        struct hfd_err *err);

/**
 * Called back on the loop with the job's outcome; must end in hfd_exchange_reply. Not called when
 * the client has gone meanwhile.
 */
typedef void hfd_then_fn(struct hfd_exchange *x, void *arg, hfd_rc rc, const struct hfd_err *err);

/**
 * Gives fn(arg) to the writer (or a reader thread) and returns; `then` answers later. arg must live
 * in the exchange's arena and point to nothing of the request: copy first. A full queue is answered
 * with 503 here and `then` is not called.
 */
void hfd_exchange_update(struct hfd_exchange *x, hfd_txn_fn *fn, void *arg, hfd_then_fn *then);
void hfd_exchange_view(struct hfd_exchange *x, hfd_txn_fn *fn, void *arg, hfd_then_fn *then);

/**
 * Takes a finished buffer: its bytes live until the answer is out, whatever the ceiling of the
 * exchange's arena. Once per exchange.
 */
void hfd_exchange_keep(struct hfd_exchange *x, struct hfd_buf *b);
/** Answers, once. The reply's memory is the exchange's, or static. */
void hfd_exchange_reply(struct hfd_exchange *x, const struct hfd_reply *reply);
/** Answers with an error in the route's dialect: RES-1xx, problem+json, or plain JSON (reply.c). */
void hfd_exchange_fail(struct hfd_exchange *x, hfd_rc rc, const struct hfd_err *err);
/**
 * The same with all that is wrong with fields, of which err is the first, in errors[] of a
 * problem. fields may be empty.
 */
void hfd_exchange_fail_fields(struct hfd_exchange *x, hfd_rc rc, const struct hfd_err *err,
                              const struct hfd_violations *fields);

/* server.c */
struct hfd_server;

/**
 * Whether there may be listeners at the addresses: without authentication only those of loopback;
 * two. @return HFD_OK, HFD_INVALID
 */
HFD_MUST_CHECK hfd_rc hfd_server_check(const struct hfd_settings *settings, struct hfd_err *err);
/**
 * Binds and starts to listen; prints nothing. @return HFD_OK, HFD_INVALID (as hfd_server_check),
 * HFD_IO
 */
HFD_MUST_CHECK hfd_rc hfd_server_open(const struct hfd_app *app, struct hfd_server **out,
                                      struct hfd_err *err);
/** The ports in use (for port 0). */
int hfd_server_port(const struct hfd_server *s, enum hfd_listener l);
/** Starts the loop threads. */
HFD_MUST_CHECK hfd_rc hfd_server_start(struct hfd_server *s, struct hfd_err *err);
/**
 * Stops accepting, lets requests finish (at most http.drain_timeout), closes idle connections,
 * joins the loops. Thread: start-up.
 */
void hfd_server_stop(struct hfd_server *s);
void hfd_server_free(struct hfd_server **s);

#endif
