/* What the handlers of the main listener share. See api.h. */
#include "handlers/http/api.h"

void hfd_api_send(struct hfd_exchange *x, struct hfd_reply *reply, const char *content_type, struct hfd_buf *b)
{
    struct hfd_err err;
    hfd_slice text;
    hfd_rc rc;

    rc = hfd_buf_finish(b, &text, &err);
    if (rc == HFD_OK && text.len > 0) {
        reply->content_type = content_type;
        reply->body = hfd_arena_dup(hfd_exchange_mem(x), text);
        if (reply->body.p == NULL)
            rc = hfd_fail(&err, HFD_NOMEM, "out of memory for the answer");
    }
    hfd_buf_fini(b);
    if (rc != HFD_OK)
        hfd_exchange_fail(x, rc, &err);
    else
        hfd_exchange_reply(x, reply);
}
