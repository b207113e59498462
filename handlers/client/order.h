/*
 * Resources at a driver, as the orchestrator sees them. It sends PUT, GET and DELETE of a GUResID
 * with its cookie, and polls until an operation has ended. Thread: main.
 */
#ifndef HFD_CLIENT_ORDER_H
#define HFD_CLIENT_ORDER_H

#include <jansson.h>
#include <signal.h>

#include "driver/base/clock.h"
#include "handlers/client/http.h"
#include "handlers/client/state.h"

/** A driver, and what is kept about its resources. Borrowed. */
struct hfd_order_driver {
    struct hfd_client_http *http;
    const struct hfd_client_state *state;
    const char *url;
};

/** A driver's answer. */
struct hfd_order_answer {
    struct hfd_client_answer http;
    json_t *doc; /* NULL without a JSON document */
};

struct hfd_order_request {
    const char *method; /* "PUT", "GET", "DELETE" */
    const char *id;     /* the GUResID */
    hfd_slice body;     /* of a PUT */
};

/**
 * Sends a request with the resource's cookie, and keeps the cookie of the answer.
 * @param out  gives; free with hfd_order_answer_fini, on failure too
 * @return HFD_OK: there is an answer; HFD_IO: the driver cannot be reached, or the state file not
 * be used; HFD_INVALID (the state file is damaged), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_order_send(const struct hfd_order_driver *driver,
                                     const struct hfd_order_request *request,
                                     struct hfd_order_answer *out, struct hfd_err *err);
void hfd_order_answer_fini(struct hfd_order_answer *a);

/** How an operation is followed. */
struct hfd_order_follow {
    int64_t timeout_us;                                            /* 0 = until it ends */
    const volatile sig_atomic_t *stop;                             /* set: give up */
    void (*progress)(void *ctx, const struct hfd_order_answer *a); /* after each poll */
    void *ctx;
};

/**
 * Sends a request until the answer is not 202: GET for a creation or update, DELETE for a deletion.
 * Between polls it waits as Retry-After says. It goes on when the driver cannot be reached for a
 * while.
 * @param out  the last answer; free it, on failure too. Its status is 202 after a stop or timeout
 * @return as hfd_order_send
 */
HFD_MUST_CHECK hfd_rc hfd_order_wait(const struct hfd_order_driver *driver,
                                     const struct hfd_order_request *request,
                                     const struct hfd_order_follow *follow,
                                     struct hfd_order_answer *out, struct hfd_err *err);

#endif
