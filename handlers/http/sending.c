/* See sending.h. */
#include "handlers/http/sending.h"

static void send_step(struct hfd_sending *s, h2o_req_t *req)
{
    const size_t len = s->rest.len < s->step_bytes ? s->rest.len : s->step_bytes;
    h2o_iovec_t step = h2o_iovec_init(s->rest.p, len);

    s->rest = (hfd_slice){s->rest.p + len, s->rest.len - len};
    h2o_send(req, &step, 1, s->rest.len != 0 ? H2O_SEND_STATE_IN_PROGRESS : H2O_SEND_STATE_FINAL);
}

static void on_proceed(h2o_generator_t *generator, h2o_req_t *req)
{
    send_step((struct hfd_sending *)(void *)generator, req);
}

void hfd_sending_start(struct hfd_sending *s, h2o_req_t *req, hfd_slice body)
{
    s->generator = (h2o_generator_t){.proceed = on_proceed, .stop = NULL};
    s->rest = body;
    h2o_start_response(req, &s->generator);
    if (body.len != 0)
        send_step(s, req);
    else
        h2o_send(req, NULL, 0, H2O_SEND_STATE_FINAL);
}
