/* See encoding.h. */
#include "handlers/http/encoding.h"

#include "driver/base/check.h"
#include "handlers/http/exchange_int.h"

#define ZLIB_CONST /* input is not written */
#include <zlib.h>

/* 32 KiB for the window, 32 KiB for the rest: slow clients may keep many of them. */
#define WINDOW_BITS 13
#define MEM_LEVEL 6
#define STATE_BYTES 65536
#define GZIP_FORMAT 16 /* added to the window bits: gzip, not zlib */
#define FLUSH_BYTES 64 /* more than a flush and the trailer of the format take */

/* ---- which answers ---- */

static bool is_name(hfd_slice coding, const char *name)
{
    return coding.len == strlen(name) && strncasecmp(coding.p, name, coding.len) == 0;
}

/* Reads the weight behind a coding: ";q=0", "; q=0.000" refuse it. */
static bool is_refused(hfd_slice params)
{
    const char *q = params.len > 0 ? memchr(params.p, '=', params.len) : NULL;
    hfd_slice weight;

    if (q == NULL)
        return false;
    weight = hfd_slice_trim((hfd_slice){q + 1, (size_t)(params.p + params.len - q - 1)});
    for (size_t i = 0; i < weight.len; i++)
        if (weight.p[i] != '0' && weight.p[i] != '.')
            return false;
    return weight.len > 0;
}

bool hfd_encoding_takes_gzip(hfd_slice value)
{
    bool named = false, takes = false, any = false;

    while (value.len > 0) {
        const char *comma = memchr(value.p, ',', value.len);
        const size_t len = comma != NULL ? (size_t)(comma - value.p) : value.len;
        const char *semicolon = memchr(value.p, ';', len);
        const size_t name_len = semicolon != NULL ? (size_t)(semicolon - value.p) : len;
        const hfd_slice name = hfd_slice_trim((hfd_slice){value.p, name_len});
        const bool ok = !is_refused((hfd_slice){value.p + name_len, len - name_len});

        if (is_name(name, "gzip") || is_name(name, "x-gzip")) {
            named = true;
            takes = ok;
        } else if (hfd_slice_is(name, "*")) {
            any = ok;
        }
        value = (hfd_slice){value.p + len + (comma != NULL), value.len - len - (comma != NULL)};
    }
    return named ? takes : any;
}

static bool client_takes_gzip(const h2o_req_t *req)
{
    ssize_t at = -1;
    bool takes = false;

    if (req->version < 0x101)
        return false;
    while ((at = h2o_find_header(&req->headers, H2O_TOKEN_ACCEPT_ENCODING, at)) != -1) {
        const h2o_iovec_t value = req->headers.entries[at].value;

        takes = hfd_encoding_takes_gzip((hfd_slice){value.base, value.len});
    }
    return takes;
}

/* Only documents without secrets, and no changes: their answers are small. */
static bool may_compress(const struct hfd_exchange *x)
{
    const struct hfd_route *route = x->match.route;

    return route != NULL &&
           (x->view.method == HFD_METHOD_GET || x->view.method == HFD_METHOD_HEAD) &&
           route->need != HFD_NEED_ADMIN &&
           (x->match.dialect != HFD_DIALECT_DRIVER || route->need == HFD_NEED_STATUS);
}

struct hfd_encoding hfd_encoding_choose(const struct hfd_exchange *x, const struct hfd_reply *reply)
{
    const bool large = reply->status == 200 && reply->body.len > HFD_GZIP_FROM_BYTES;
    struct hfd_encoding out = {.varies = (large || reply->status == 304) && may_compress(x)};

    out.is_weak = out.varies && client_takes_gzip(x->req);
    out.gzip = out.is_weak && large;
    return out;
}

/* ---- bytes ---- */

struct hfd_gzip {
    z_stream z;
    hfd_slice rest; /* of the body */
    size_t cap, len;
    unsigned char out[];
};

void hfd_gzip_go_on(struct hfd_gzip *g)
{
    const bool last = g->rest.len <= HFD_GZIP_STEP_BYTES;
    const size_t len = last ? g->rest.len : HFD_GZIP_STEP_BYTES;
    int rc;

    g->z.next_in = (const unsigned char *)g->rest.p;
    g->z.avail_in = (unsigned)len;
    g->z.next_out = g->out;
    g->z.avail_out = (unsigned)g->cap;
    rc = deflate(&g->z, last ? Z_FINISH : Z_SYNC_FLUSH);
    /* The bound holds for each part. */
    HFD_ASSERT(rc == (last ? Z_STREAM_END : Z_OK) && g->z.avail_in == 0);
    g->len = g->cap - g->z.avail_out;
    g->rest = (hfd_slice){g->rest.p + len, g->rest.len - len};
}

struct hfd_gzip *hfd_gzip_new(hfd_slice body, int64_t *bytes)
{
    const size_t step = body.len < HFD_GZIP_STEP_BYTES ? body.len : HFD_GZIP_STEP_BYTES;
    const size_t cap = step + step / 8 + step / 64 + 2 * FLUSH_BYTES; /* deflateBound, checked */
    struct hfd_gzip *g = malloc(sizeof(*g) + cap);

    *bytes = 0;
    if (g == NULL)
        return NULL;
    *g = (struct hfd_gzip){.rest = body, .cap = cap};
    if (deflateInit2(&g->z, Z_BEST_SPEED, Z_DEFLATED, WINDOW_BITS + GZIP_FORMAT, MEM_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        free(g);
        return NULL;
    }
    HFD_ASSERT(deflateBound(&g->z, step) + FLUSH_BYTES <= cap);
    *bytes = (int64_t)(sizeof(*g) + cap) + STATE_BYTES;
    hfd_gzip_go_on(g);
    return g;
}

void hfd_gzip_free(struct hfd_gzip *g)
{
    if (g == NULL)
        return;
    (void)deflateEnd(&g->z);
    free(g);
}

hfd_slice hfd_gzip_part(const struct hfd_gzip *g)
{
    return (hfd_slice){(const char *)g->out, g->len};
}

bool hfd_gzip_is_last(const struct hfd_gzip *g)
{
    return g->rest.len == 0;
}
