/*
 * A request on its way through a handler, as the handler sees it. Thread: loop.
 */
#ifndef HFD_HTTP_EXCHANGE_H
#define HFD_HTTP_EXCHANGE_H

#include "handlers/http/http.h"

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

#endif
