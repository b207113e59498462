/* One request as its handler sees it. Thread: loop. */
#ifndef HFD_HTTP_EXCHANGE_H
#define HFD_HTTP_EXCHANGE_H

#include "driver/base/buf.h"
#include "driver/base/err.h"
#include "handlers/http/http.h"

struct hfd_problem;

/** Return what the server was opened with, the row of the route, and the request. */
const struct hfd_app *hfd_exchange_app(const struct hfd_exchange *x);
const struct hfd_route *hfd_exchange_route(const struct hfd_exchange *x);
const struct hfd_request *hfd_exchange_request(const struct hfd_exchange *x);
/**
 * Returns the memory for the command, its results and the reply. It is freed with the exchange.
 * While a job is out, the memory belongs to the job.
 */
struct hfd_arena *hfd_exchange_mem(struct hfd_exchange *x);
/** Returns the name of the caller, e-mail shaped; empty without authentication. */
hfd_slice hfd_exchange_caller(const struct hfd_exchange *x);
/** Lines in the log, and jobs of the store, are of this request from now on. NULL = of none. */
void hfd_exchange_enter(const struct hfd_exchange *x);
/** Returns true if the server is stopping. */
bool hfd_exchange_draining(const struct hfd_exchange *x);
/**
 * Returns what "{name}" of the pattern matched, percent-decoded. The slice is valid like those of
 * the request; p is NULL if the route has no such parameter.
 */
hfd_slice hfd_exchange_param(const struct hfd_exchange *x, const char *name);
/**
 * Finds a request header that must have one value. Empty values do not count; equal values count as
 * one.
 * @param lower_name  in lower case
 * @param out  borrows; p is NULL if absent
 * @return HFD_OK, HFD_BAD_REQUEST (several different values)
 */
HFD_MUST_CHECK hfd_rc hfd_exchange_header(const struct hfd_exchange *x, const char *lower_name,
                                          hfd_slice *out, struct hfd_err *err);

/**
 * Returns `wait` of the header Prefer (RFC 7240), at most HFD_WAIT_MAX_S. 0: without one, with one
 * that is malformed, and for HEAD.
 */
int hfd_exchange_prefer_wait_s(const struct hfd_exchange *x);

/**
 * Receives the result of a job, on the loop. Must end in hfd_exchange_reply or hfd_exchange_fail.
 * Is not called if the client has gone.
 */
typedef void hfd_then_fn(struct hfd_exchange *x, void *arg, hfd_rc rc, const struct hfd_err *err);

/** Sets hfd_job.prefetch of the exchange's update. */
void hfd_exchange_prefetch(struct hfd_exchange *x, hfd_txn_fn *prefetch);
/** A read of few rows. */
struct hfd_exchange_read {
    hfd_txn_fn *fn;
    void *arg;
    hfd_rc (*own)(void *arg, struct hfd_err *err); /* copies what arg borrows; NULL = nothing */
    hfd_then_fn *then;
};
/**
 * Runs it in a snapshot, on this loop's own connection, and calls `then` before it returns. Where
 * others write to the database, it lets arg own its texts, and queues it: `then` answers later.
 */
void hfd_exchange_read(struct hfd_exchange *x, const struct hfd_exchange_read *read);
/**
 * Queue fn(arg) for the writer, or for a reader thread; `then` answers later. If the queue is full,
 * they call `then` at once, with HFD_BUSY.
 * @param arg  in the memory of the exchange; must not point into the request
 */
void hfd_exchange_update(struct hfd_exchange *x, hfd_txn_fn *fn, void *arg, hfd_then_fn *then);
void hfd_exchange_view(struct hfd_exchange *x, hfd_txn_fn *fn, void *arg, hfd_then_fn *then);
/**
 * As hfd_exchange_view, for what is short whatever the database holds: one resource, a small page
 * from an index. It has a thread of its own, so dear lists do not hold it up.
 */
void hfd_exchange_view_short(struct hfd_exchange *x, hfd_txn_fn *fn, void *arg, hfd_then_fn *then);

/**
 * Bounds the wait for the job that is queued next. After limit_us without an answer, do_without
 * answers, and must not touch the memory of the exchange. The job ends, and its result is dropped.
 */
void hfd_exchange_limit(struct hfd_exchange *x, int64_t limit_us, hfd_handler_fn *do_without);
/**
 * As hfd_exchange_view, also while http.memory_max is in use: for one of the many short jobs of a
 * request that needs no memory for its answer.
 */
void hfd_exchange_step(struct hfd_exchange *x, hfd_txn_fn *fn, void *arg, hfd_then_fn *then);

/**
 * Returns the buffer of the answer, empty, for a job to fill. While the job is out it belongs to
 * the job. It is freed with the exchange; hfd_exchange_reply is to send its bytes.
 */
struct hfd_buf *hfd_exchange_body(struct hfd_exchange *x, size_t max_bytes);
/**
 * Sends the answer. Once per exchange. The memory of the reply belongs to the exchange or is
 * static.
 */
void hfd_exchange_reply(struct hfd_exchange *x, const struct hfd_reply *reply);

/** Sends an error in the route's dialect: RES-1xx, problem+json, or plain JSON (reply.c). */
void hfd_exchange_fail(struct hfd_exchange *x, hfd_rc rc, const struct hfd_err *err);
/** The same with another status than that of rc. */
void hfd_exchange_fail_as(struct hfd_exchange *x, int status, hfd_rc rc, const struct hfd_err *err);
/**
 * The same, with every violation of the body in errors[] of the problem. err is the first of them.
 * fields may be empty.
 */
void hfd_exchange_fail_fields(struct hfd_exchange *x, hfd_rc rc, const struct hfd_err *err,
                              const struct hfd_violations *fields);
/** The same with the rules of a PacemakerCluster document that are violated; they may be none. */
void hfd_exchange_fail_rules(struct hfd_exchange *x, hfd_rc rc, const struct hfd_err *err,
                             const struct hfd_health_violations *rules);

/** Sends a problem as it is. @param allow  the header Allow; NULL = none */
void hfd_exchange_problem(struct hfd_exchange *x, struct hfd_problem *p, const char *allow);

#define HFD_PIECE_BYTES ((size_t)262144)

/**
 * A long body that reader threads read in pieces, one after the other. The next one is read when
 * the last one is written, so a slow client holds one piece only. In the memory of the exchange.
 */
struct hfd_stream_body {
    size_t length;         /* of the body */
    hfd_txn_fn *read;      /* puts a piece into *next; an error cuts the answer short */
    void *arg;             /* for read */
    const hfd_slice *next; /* stays valid until the next read */
};

/**
 * Lets a request wait: its handler answers later, or submits another job, after
 * hfd_exchange_go_on. It is no request in progress any more, and its connection takes no place of
 * others meanwhile.
 */
void hfd_exchange_hold(struct hfd_exchange *x);
void hfd_exchange_go_on(struct hfd_exchange *x);
/** Returns true while the client is there, as far as the kernel knows. */
bool hfd_exchange_is_wanted(const struct hfd_exchange *x);

/**
 * Begins an answer without a known length: the connection ends with it. It may be held between two
 * pieces.
 * @param on_flow  called when a piece is written: the next one may be sent
 */
void hfd_exchange_flow(struct hfd_exchange *x, const struct hfd_reply *reply,
                       void (*on_flow)(void *arg), void *arg);
/** Sends a piece, once the last one is written. @param bytes  stay valid until on_flow */
void hfd_exchange_flow_send(struct hfd_exchange *x, hfd_slice bytes, bool last);

/**
 * Has fn called when the exchange ends, whatever happened, before its memory is freed. Once per
 * exchange. No job is out then.
 */
void hfd_exchange_at_end(struct hfd_exchange *x, void (*fn)(void *arg), void *arg);

/* ---- what several handlers use ---- */

/**
 * Finds the caller of a request: created_by, updated_by and deleted_by of its changes.
 * @param out  static, or in the exchange's memory
 * @return HFD_OK, HFD_BAD_REQUEST (two callers), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_api_caller(struct hfd_exchange *x, hfd_slice *out, struct hfd_err *err);

/**
 * Replies with the body built in b; without a body if b is empty. If the body could not be built,
 * replies with an error. Takes the memory of b.
 */
void hfd_api_send(struct hfd_exchange *x, struct hfd_reply *reply, const char *content_type,
                  struct hfd_buf *b);

#endif
