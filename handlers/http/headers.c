/* See headers.h. */
#include "handlers/http/headers.h"

#include "handlers/http/access.h"

static void add(h2o_req_t *req, const char *name, hfd_slice value)
{
    h2o_iovec_t copy = h2o_strdup(&req->pool, value.len != 0 ? value.p : "", value.len);

    /* h2o copies neither name nor value. Without a name in lower case it looks up nothing. */
    h2o_add_header_by_str(&req->pool, &req->res.headers, name, strlen(name), 0, name, copy.base,
                          copy.len);
}

#define BEARER "Bearer"
#define BASIC "Basic realm=\"hyperfleet-driver\", charset=\"UTF-8\""

/* A 401 offers what a caller may log in with (RFC 9110, 11.6.1). */
static void add_challenges(h2o_req_t *req, enum hfd_listener listener)
{
    add(req, "WWW-Authenticate", HFD_SLICE(BEARER));
    if (hfd_access_takes_basic(listener))
        add(req, "WWW-Authenticate", HFD_SLICE(BASIC));
}

const char *hfd_headers_challenges(enum hfd_listener listener)
{
    return hfd_access_takes_basic(listener) ? "WWW-Authenticate: " BEARER
                                              "\r\nWWW-Authenticate: " BASIC "\r\n"
                                            : "WWW-Authenticate: " BEARER "\r\n";
}

static void add_vary(h2o_req_t *req, const struct hfd_headers *more)
{
    const bool fleet = more->dialect == HFD_DIALECT_FLEET;

    if (more->encoding.varies)
        add(req, "Vary",
            fleet ? HFD_SLICE("Authorization, Accept-Encoding") : HFD_SLICE("Accept-Encoding"));
    else if (fleet)
        add(req, "Vary", HFD_SLICE("Authorization"));
}

static void add_etag(h2o_req_t *req, hfd_slice etag, bool is_weak)
{
    char text[80];
    const int n = snprintf(text, sizeof(text), "%s%.*s", is_weak ? "W/" : "", HFD_SLICE_FMT(etag));

    if (n > 0 && (size_t)n < sizeof(text))
        add(req, "ETag", (hfd_slice){text, (size_t)n});
}

void hfd_headers_add(h2o_req_t *req, const struct hfd_reply *reply, const struct hfd_headers *more)
{
    char number[16];

    if (reply->content_type != NULL)
        add(req, "Content-Type", hfd_slice_of(reply->content_type));
    add(req, "X-Request-ID", more->request_id);
    add_vary(req, more);
    if (more->encoding.gzip)
        add(req, "Content-Encoding", HFD_SLICE("gzip"));
    if (reply->has_cookie)
        add(req, "Set-Humanitec-Driver-Cookie", reply->cookie);
    if (reply->retry_after_s > 0) {
        int n = snprintf(number, sizeof(number), "%d", reply->retry_after_s);

        add(req, "Retry-After", (hfd_slice){number, (size_t)n});
    }
    if (reply->status == 401)
        add_challenges(req, more->listener);
    if (reply->etag.len > 0)
        add_etag(req, reply->etag, more->encoding.is_weak);
    if (reply->allow != NULL)
        add(req, "Allow", hfd_slice_of(reply->allow));
    if (reply->policy != NULL) {
        add(req, "Content-Security-Policy", hfd_slice_of(reply->policy));
        add(req, "X-Content-Type-Options", HFD_SLICE("nosniff"));
        add(req, "Referrer-Policy", HFD_SLICE("no-referrer"));
    }
}
