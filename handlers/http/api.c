/* See api.h. */
#include "handlers/http/api.h"

#include "driver/core/driver.h"
#include "handlers/http/access.h"

#define HEADER_NAME_MAX 64

hfd_rc hfd_api_caller(struct hfd_exchange *x, hfd_slice *out, struct hfd_err *err)
{
    const hfd_slice name = hfd_exchange_app(x)->settings->fleet_identity_header;
    hfd_slice value = HFD_SLICE_NONE;
    char lower[HEADER_NAME_MAX];
    hfd_rc rc = HFD_OK;

    if (name.len > 0 && name.len < sizeof(lower) && hfd_exchange_is_proxied(x)) {
        for (size_t i = 0; i < name.len; i++)
            lower[i] = (char)(name.p[i] >= 'A' && name.p[i] <= 'Z' ? name.p[i] | 0x20 : name.p[i]);
        lower[name.len] = '\0';
        rc = hfd_exchange_header(x, lower, &value, err);
    }
    if (rc == HFD_OK && value.len > 0)
        rc = hfd_access_check_name(x, value, err);
    if (rc != HFD_OK)
        return rc;
    if (value.len == 0 && hfd_exchange_caller(x).len > 0) {
        *out = hfd_exchange_caller(x);
        return HFD_OK;
    }
    return hfd_identity_make(value, hfd_exchange_mem(x), out, err);
}

void hfd_api_send(struct hfd_exchange *x, struct hfd_reply *reply, const char *content_type,
                  struct hfd_buf *b)
{
    struct hfd_err err;
    hfd_slice text;
    hfd_rc rc;

    rc = hfd_buf_finish(b, &text, &err);
    if (rc != HFD_OK) {
        hfd_buf_fini(b);
        hfd_exchange_fail(x, rc, &err);
        return;
    }
    if (text.len > 0) {
        reply->content_type = content_type;
        reply->body = text;
    }
    hfd_exchange_keep(x, b);
    hfd_exchange_reply(x, reply);
}
