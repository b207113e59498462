/*
 * Types that the server and the handlers share. A handler gets an exchange on a loop thread, turns
 * the request into a command, runs a transaction, and answers. It never waits. Thread: loop, unless
 * said.
 */
#ifndef HFD_HTTP_HTTP_H
#define HFD_HTTP_HTTP_H

#include "driver/base/buf.h"
#include "driver/base/trace.h"
#include "driver/fleet/condition.h"
#include "handlers/auth/guard.h"
#include "handlers/settings/settings.h"
#include "store/kind.h"
#include "store/store.h"

struct hfd_bell;
struct hfd_exchange;
struct hfd_stream_body;
struct hfd_health_violations;
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
 * The request as a handler sees it. Slices point into the request: they are valid until the handler
 * returns, unless copied with hfd_arena_dup.
 */
struct hfd_request {
    enum hfd_method method;
    hfd_slice method_text;
    hfd_slice path;  /* without query, as received */
    hfd_slice query; /* without '?' */
    hfd_slice body;
    hfd_slice request_id; /* made by us; lives as long as the exchange */
    struct hfd_trace trace;
    int64_t received_us; /* wall clock */
};

struct hfd_reply {
    int status;
    const char *content_type; /* static; NULL = no body */
    hfd_slice body;           /* in the exchange's arena, or static */
    bool has_cookie;
    hfd_slice cookie;               /* Set-Humanitec-Driver-Cookie, may be empty */
    int retry_after_s;              /* 0 = no header */
    const char *allow;              /* 405 */
    hfd_slice etag;                 /* with its quotes; empty = none */
    hfd_slice events_cursor;        /* of the snapshot of a list; empty = no header */
    hfd_slice discarded;            /* why a report is; empty = no header */
    bool uncached;                  /* a stream: no proxy keeps it, or collects it first */
    const char *policy;             /* Content-Security-Policy of a page; NULL = none */
    struct hfd_stream_body *stream; /* the body, in place of `body`; NULL = none */
};

struct hfd_keeper;
struct hfd_repeats;
struct hfd_route;

typedef void hfd_handler_fn(struct hfd_exchange *x);

/** Shared by all handlers; const after start-up. */
struct hfd_app {
    const struct hfd_settings *settings;
    struct hfd_store *store;
    const struct hfd_driver *driver;
    const struct hfd_clock *clock;
    struct hfd_bell *bell;       /* rings when a cluster or nodepool has become due; may be NULL */
    struct hfd_repeats *repeats; /* events that are repeated; NULL = none are */
    struct hfd_keeper *keeper;   /* of this replica; NULL = the only server of its database */
    const struct hfd_rng *rng;
    struct hfd_guard *guard;        /* checks callers; NULL = all may call */
    enum hfd_vocabulary vocabulary; /* names of the conditions */
    bool without_fleet;             /* HyperFleet's own API is not served here */
    /* Writes the health of the backend as a JSON object; NULL = it has none of its own. */
    void (*backend_health)(void *ctx, struct hfd_buf *b);
    void *backend_health_ctx;
    bool ops_only;             /* the main listener stays closed, and nothing needs a login */
    struct hfd_server *before; /* gives its ops listener to the new server; NULL = none */
    bool opens_later; /* paths that it does not have are 503, not 404: a later server has them */
    /* Why the program is not ready; NULL = it is. Without it the store decides. */
    const char *(*not_ready)(void *ctx);
    void *not_ready_ctx;
    hfd_handler_fn *page;           /* the status page: all paths of it; NULL = 404 */
    const struct hfd_route *routes; /* NULL = hfd_routes; tests use their own */
    size_t route_count;
};

enum hfd_listener {
    HFD_LISTENER_MAIN,
    HFD_LISTENER_OPS,
    HFD_LISTENER_COUNT
};
/** The form of errors on a route or prefix. */
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
    enum hfd_need need; /* the scope of the caller; a table with an unset one is refused */
};

#endif
