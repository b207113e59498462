/*
 * The side of an exchange that faces h2o and the loop. Handlers use exchange.h. Thread: loop,
 * unless said.
 */
#ifndef HFD_HTTP_EXCHANGE_INT_H
#define HFD_HTTP_EXCHANGE_INT_H

#include "driver/fleet/keys.h"
#include "handlers/http/door.h"
#include "handlers/http/exchange.h"
#include "handlers/http/loop.h"
#include "handlers/http/route.h"
#include "handlers/settings/network.h"

#define HFD_EXCHANGE_PATH_MAX 200 /* bytes of a path in the log */

/** An answer that waits; in the memory of its exchange. */
struct hfd_delayed_reply {
    h2o_linklist_t link;
    struct hfd_exchange *x;
    int64_t until_us;           /* mono */
    hfd_handler_fn *do_without; /* answers; NULL = 401 with err */
    struct hfd_err err;
};

struct hfd_exchange {
    struct hfd_job job; /* first member: the job is the exchange */
    unsigned magic;
#define HFD_EXCHANGE_MAGIC 0xe8c4a49eu
    unsigned refs; /* loop thread only */
    h2o_multithread_message_t message;
    struct hfd_sending sending;
    h2o_generator_t generator;  /* of `stream` */
    void (*on_flow)(void *arg); /* of a flow: the last bytes are written */
    void *flow_arg;
    const struct hfd_stream_body *stream; /* of the answer that is being sent; NULL = none */
    size_t stream_sent;                   /* bytes */
    struct hfd_loop *loop;
    struct hfd_conn *conn; /* NULL once the client has gone or the answer is sent */
    h2o_req_t *req;        /* the same, and NULL once a flow has begun */
    struct hfd_match match;
    struct hfd_request view;
    hfd_slice path_token;           /* of the request; the path has it no more */
    struct hfd_host_address client; /* hfd_peer_client */
    hfd_slice caller;               /* the caller's name, in mem; empty without authentication */
    struct hfd_grant grant;
    struct hfd_arena mem;
    struct hfd_buf body; /* of the answer; kept until it is sent */
    int64_t kept_bytes;  /* of body, taken from the memory of the server */
    hfd_then_fn *then;
    void (*at_end)(void *arg); /* NULL = none; see exchange.h */
    void *at_end_arg;
    struct hfd_delayed_reply *later; /* the answer that waits, in mem; NULL = none */
    bool counted;                    /* counted in server->in_flight */
    bool replied;
    bool held;            /* it waits, and no job is out */
    bool flowing;         /* its answer has begun, and has no known length */
    bool last_piece;      /* of a flow: it ends when this is written */
    hfd_txn_fn *prefetch; /* of the update to come, or NULL */
    bool job_out;
    bool job_left;      /* the answer does without the job that is out */
    bool writes;        /* work was handed to the writer */
    bool viewing;       /* the job that is out is a view: it can be cancelled */
    bool is_short;      /* its next view takes the lane of short ones */
    int prefer_s;       /* `wait` of Preference-Applied; 0 = no such header */
    int64_t started_us; /* mono */
    int64_t held_us;    /* how long it was held; while it is, less the present time */
    char id[HFD_KSUID_LEN];
    char path_log[HFD_EXCHANGE_PATH_MAX]; /* outlives the request, for the log */
    size_t path_log_len;
};

/** Gives a reference back. */
void hfd_exchange_unref(struct hfd_exchange *x);

/*
 * Answers that wait: the 401 to failed logins, and those that do without a late job. A loop keeps
 * them in a list and looks at it between two runs. It never blocks.
 */
/** Sends the answer of an exchange that waits. Between two runs of the loop only. */
void hfd_delayed_reply_answer_now(struct hfd_exchange *x);
/** Answers with 401 after a time; at once if too many answers wait. */
void hfd_exchange_refuse_later(struct hfd_exchange *x, const struct hfd_err *err, int64_t delay_us);
/**
 * Makes the exchange of a request, which holds its first reference.
 * @return NULL: out of memory
 */
struct hfd_exchange *hfd_exchange_new(struct hfd_loop *loop, h2o_req_t *req);
/**
 * The client has gone: a view that is out ends soon, with HFD_TIMEOUT. Updates are not
 * affected.
 */
void hfd_exchange_cancel(struct hfd_exchange *x);
/** Returns true while a view is out. */
static inline bool hfd_exchange_is_viewing(const struct hfd_exchange *x)
{
    return x->job_out && x->viewing;
}
/** Handles a request of h2o: dispatch.c, which stands above the handlers. */
int hfd_dispatch_on_req(h2o_handler_t *self, h2o_req_t *req);

#endif
