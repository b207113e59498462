/* See pieces.h. */
#include "handlers/http/pieces.h"

#include "driver/base/check.h"
#include "driver/base/log.h"
#include "handlers/http/door.h"
#include "handlers/http/exchange_int.h"

/* The client sees fewer bytes than Content-Length, and the connection closes. */
static void cut_short(struct hfd_pieces *p, const struct hfd_err *err)
{
    HFD_LOG(HFD_LOG_WARN, "the answer is cut short", HFD_LOG_CSTR("reason", err->msg),
            HFD_LOG_INT("sent", p->sent), HFD_LOG_INT("of", p->length));
    p->x->req->http1_is_persistent = 0;
    h2o_send(p->x->req, NULL, 0, H2O_SEND_STATE_ERROR);
}

static void send_piece(struct hfd_pieces *p)
{
    h2o_req_t *req = p->x->req;
    h2o_iovec_t piece = h2o_iovec_init(p->next->p, p->next->len);

    HFD_ASSERT(piece.len > 0 && piece.len <= p->length - p->sent);
    p->sent += piece.len;
    p->x->conn->given_bytes += piece.len;
    h2o_send(req, &piece, 1,
             p->sent < p->length ? H2O_SEND_STATE_IN_PROGRESS : H2O_SEND_STATE_FINAL);
}

static void on_read(struct hfd_job *job)
{
    struct hfd_exchange *x = (struct hfd_exchange *)(void *)job;

    HFD_CHECK_OBJ(x, HFD_EXCHANGE_MAGIC);
    x->job_out = x->viewing = false;
    hfd_log_request_id(x->view.request_id);
    if (x->req != NULL) {
        struct hfd_pieces *p = job->arg;

        if (job->rc == HFD_OK)
            send_piece(p);
        else
            cut_short(p, &job->err);
    }
    hfd_log_request_id(HFD_SLICE_NONE);
    hfd_exchange_unref(x);
}

static hfd_rc read_piece(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    const struct hfd_pieces *p = arg;

    return p->read(tx, p->arg, err);
}

static void read_next(struct hfd_pieces *p)
{
    struct hfd_exchange *x = p->x;
    struct hfd_err err;

    x->job = (struct hfd_job){.fn = read_piece, .arg = p, .sink = &x->loop->sink, .done = on_read};
    x->job_out = x->viewing = true;
    x->refs++;
    if (hfd_store_view(hfd_exchange_app(x)->store, &x->job, &err) == HFD_OK)
        return;
    x->job_out = x->viewing = false;
    x->refs--;
    cut_short(p, &err);
}

/* A client that takes piece after piece is not slow, however long the whole lasts. */
static void on_proceed(h2o_generator_t *generator, h2o_req_t *req)
{
    struct hfd_pieces *p = (struct hfd_pieces *)(void *)generator;

    (void)req;
    p->x->conn->write_began_us = 0;
    read_next(p);
}

void hfd_exchange_at_end(struct hfd_exchange *x, void (*fn)(void *arg), void *arg)
{
    HFD_ASSERT(x->at_end == NULL);
    x->at_end = fn;
    x->at_end_arg = arg;
}

void hfd_pieces_start(struct hfd_pieces *p, struct hfd_exchange *x)
{
    p->generator = (h2o_generator_t){.proceed = on_proceed, .stop = NULL};
    p->x = x;
    h2o_start_response(x->req, &p->generator);
    read_next(p);
}

void hfd_exchange_wants(struct hfd_exchange *x, hfd_txn_fn *wants)
{
    x->wants = wants;
}
