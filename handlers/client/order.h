/*
 * Resources at a driver, as the orchestrator sees them. It sends PUT, GET and DELETE of a GUResID
 * with its cookie, and polls until an operation has ended.
 *
 * The file in which the client keeps the cookies of its resources, as the orchestrator does. It has
 * mode 0600, is replaced as a whole, and is locked while it is changed.
 *
 * Shows how far an operation is: a line that is written over on a terminal, else a line for each
 * news. Goes to stderr. Thread: main.
 */
#ifndef HFD_CLIENT_ORDER_H
#define HFD_CLIENT_ORDER_H

#include "driver/base/buf.h"
#include "handlers/client/http.h"

#include <jansson.h>

#include <signal.h>

#define HFD_CLIENT_PATH_MAX 4096

/** The place of the file: that of --state, or below the user's state folder. */
struct hfd_client_state {
    char path[HFD_CLIENT_PATH_MAX];
};

/**
 * Finds the place of the file.
 * @param path  NULL = $XDG_STATE_HOME, or ~/.local/state
 * @return HFD_OK, HFD_INVALID (there is no home folder, or the path is too long)
 */
HFD_MUST_CHECK hfd_rc hfd_client_state_find(const char *path, struct hfd_client_state *out,
                                            struct hfd_err *err);

/** The resource of a driver. */
struct hfd_client_resource {
    const char *url, *id;
};

/**
 * Adds the cookie of a resource to out; nothing without one.
 * @return HFD_OK, HFD_IO, HFD_INVALID (the file is damaged), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_client_state_read(const struct hfd_client_state *state,
                                            const struct hfd_client_resource *resource,
                                            struct hfd_buf *out, struct hfd_err *err);

/** A driver, and what is kept about its resources. Borrowed. */
struct hfd_order_driver {
    struct hfd_client_http *http;
    const struct hfd_client_state *state;
    const char *url;
};

/** A driver's answer. */
struct hfd_order_answer {
    struct hfd_http_answer http;
    json_t *doc;           /* NULL without a JSON document */
    char cookie_flaw[248]; /* why a cookie of it is not kept; "" = it is, or there is none */
    int64_t away_us; /* of a 202 that a stop or timeout made: since when its driver is away; 0 = it
                        is not */
};

struct hfd_order_request {
    const char *method; /* "PUT", "GET", "DELETE" */
    const char *id;     /* the GUResID */
    hfd_slice body;     /* of a PUT */
    hfd_slice if_match; /* of a PUT: with its quotes; empty = none */
    int prefer_s;       /* the driver may hold its answer for so long; 0 = it is not asked to */
    const volatile sig_atomic_t *stop; /* as of struct hfd_client_request */
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
static inline void hfd_order_answer_fini(struct hfd_order_answer *a)
{
    json_decref(a->doc);
    a->doc = NULL;
    hfd_http_answer_fini(&a->http);
}

/** How an operation is followed. */
struct hfd_order_follow {
    int64_t timeout_us;                /* 0 = until it ends */
    const volatile sig_atomic_t *stop; /* set: give up */
    bool known;                        /* it is under way: by a 202 */
};

/**
 * Sends a request until the answer is not 202: GET for a creation or update, DELETE for a deletion.
 * A driver that knows Prefer: wait holds its answer until there is news, and is asked again at
 * once. With any other it waits between polls as Retry-After says. It shows how far the operation
 * is. It goes on when the driver cannot be reached for a while: for 7 seconds if it never answered
 * 202, else for 2 minutes.
 * @param out  the last answer; free it, on failure too. After a stop or timeout its status is 202
 * if the operation was once known to be under way
 * @return as hfd_order_send; HFD_IO after a stop or timeout, too, if nothing ever answered
 */
HFD_MUST_CHECK hfd_rc hfd_order_wait(const struct hfd_order_driver *driver,
                                     const struct hfd_order_request *request,
                                     const struct hfd_order_follow *follow,
                                     struct hfd_order_answer *out, struct hfd_err *err);

/** The times of an operation, in microseconds since its beginning; 0 = not known. */
struct hfd_progress_times {
    int64_t elapsed_us, total_us;
};

/**
 * Adds "creating  [=====>    ] 38 %  4:10 of ~11:00  waits for dns" for a hint, at most `columns`
 * wide. Pure.
 */
void hfd_progress_line(struct hfd_buf *b, const json_t *hint,
                       const struct hfd_progress_times *times, size_t columns);

#endif
