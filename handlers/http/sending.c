/* See sending.h. */
#include "handlers/http/sending.h"

#include "handlers/http/door.h"

static void send_step(struct hfd_sending *s, h2o_req_t *req)
{
    const size_t len = s->rest.len < s->step_bytes ? s->rest.len : s->step_bytes;
    h2o_iovec_t step = h2o_iovec_init(s->rest.p, len);

    hfd_conn_of(req)->given_bytes += len;
    s->rest = (hfd_slice){s->rest.p + len, s->rest.len - len};
    h2o_send(req, &step, 1, s->rest.len != 0 ? H2O_SEND_STATE_IN_PROGRESS : H2O_SEND_STATE_FINAL);
}

static void on_proceed(h2o_generator_t *generator, h2o_req_t *req)
{
    send_step((struct hfd_sending *)(void *)generator, req);
}

/*
 * Takes memory for what the library copies of an answer. The answer goes out whether there is room
 * or not.
 */
static void count_copy(struct hfd_sending *s, const struct hfd_conn *conn, size_t body_bytes)
{
    const size_t bytes = body_bytes < s->step_bytes ? body_bytes : s->step_bytes;

    if (bytes <= HFD_BUDGET_FREE_BYTES)
        return;
    s->copy_bytes = (int64_t)bytes;
    hfd_budget_add(&conn->loop->server->memory, s->copy_bytes);
}

void hfd_sending_start(struct hfd_sending *s, h2o_req_t *req, hfd_slice body)
{
    const struct hfd_conn *conn = hfd_conn_of(req);

    s->step_bytes =
        conn->tls != NULL || conn->listener->is_unix ? HFD_SENDING_STEP_BYTES : SIZE_MAX;
    if (conn->tls != NULL && conn->listener->which == HFD_LISTENER_MAIN)
        count_copy(s, conn, body.len);
    s->generator = (h2o_generator_t){.proceed = on_proceed, .stop = NULL};
    s->rest = body;
    h2o_start_response(req, &s->generator);
    if (body.len != 0)
        send_step(s, req);
    else
        h2o_send(req, NULL, 0, H2O_SEND_STATE_FINAL);
}
