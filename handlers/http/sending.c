/* See sending.h. */
#include "handlers/http/sending.h"

#include "handlers/http/door.h"
#include "handlers/http/encoding.h"

static void send_step(struct hfd_sending *s, h2o_req_t *req)
{
    const size_t len = s->rest.len < s->step_bytes ? s->rest.len : s->step_bytes;
    h2o_iovec_t step = h2o_iovec_init(s->rest.p, len);

    hfd_conn_of(req)->given_bytes += len;
    s->rest = (hfd_slice){s->rest.p + len, s->rest.len - len};
    h2o_send(req, &step, 1, s->rest.len != 0 ? H2O_SEND_STATE_IN_PROGRESS : H2O_SEND_STATE_FINAL);
}

static void send_part(const struct hfd_sending *s, h2o_req_t *req)
{
    const hfd_slice part = hfd_gzip_part(s->gzip);
    h2o_iovec_t step = h2o_iovec_init(part.p, part.len);

    hfd_conn_of(req)->given_bytes += part.len;
    h2o_send(req, &step, 1,
             hfd_gzip_is_last(s->gzip) ? H2O_SEND_STATE_FINAL : H2O_SEND_STATE_IN_PROGRESS);
}

static void on_proceed(h2o_generator_t *generator, h2o_req_t *req)
{
    struct hfd_sending *s = (struct hfd_sending *)(void *)generator;

    if (s->gzip == NULL) {
        send_step(s, req);
        return;
    }
    hfd_gzip_go_on(s->gzip);
    send_part(s, req);
}

/* Takes memory. The answer goes out whether there is room or not. */
static void count_bytes(struct hfd_sending *s, const struct hfd_conn *conn, int64_t bytes)
{
    if (bytes <= HFD_BUDGET_FREE_BYTES)
        return;
    s->copy_bytes += bytes;
    hfd_budget_add(&conn->loop->server->memory, bytes);
}

bool hfd_sending_compress(struct hfd_sending *s, h2o_req_t *req, hfd_slice body, size_t *len)
{
    int64_t bytes;

    s->gzip = hfd_gzip_new(body, &bytes);
    if (s->gzip == NULL)
        return false;
    count_bytes(s, hfd_conn_of(req), bytes);
    *len = hfd_gzip_is_last(s->gzip) ? hfd_gzip_part(s->gzip).len : SIZE_MAX;
    return true;
}

void hfd_sending_end(struct hfd_sending *s)
{
    hfd_gzip_free(s->gzip);
    s->gzip = NULL;
}

void hfd_sending_start(struct hfd_sending *s, h2o_req_t *req, hfd_slice body)
{
    const struct hfd_conn *conn = hfd_conn_of(req);

    s->step_bytes =
        conn->tls != NULL || conn->listener->is_unix ? HFD_SENDING_STEP_BYTES : SIZE_MAX;
    if (conn->tls != NULL && conn->listener->which == HFD_LISTENER_MAIN)
        count_bytes(s, conn, (int64_t)(body.len < s->step_bytes ? body.len : s->step_bytes));
    s->generator = (h2o_generator_t){.proceed = on_proceed, .stop = NULL};
    s->rest = body;
    h2o_start_response(req, &s->generator);
    if (body.len != 0 && s->gzip != NULL)
        send_part(s, req);
    else if (body.len != 0)
        send_step(s, req);
    else
        h2o_send(req, NULL, 0, H2O_SEND_STATE_FINAL);
}
