/*
 * The cookie's text: base64url(version | sealed), where the plaintext is
 *
 *   version u8, kind u8, type, incarnation, cluster id, digest, backend, protect, count u16,
 * count x nodepool id
 *
 * each text being its length (u16, big endian) and its bytes. The version stands outside too, so
 * that a later form is told apart before anything is opened; it is bound with the GUResID. Refuses
 * texts of another form than exactly the one that was sealed. Thread: any.
 */
#include "driver/core/cookie.h"

#include <sodium.h>

#define VERSION 1
#define BASE64 sodium_base64_VARIANT_URLSAFE_NO_PADDING
/*
 * The bytes that HFD_COOKIE_MAX characters of base64url hold, without the version byte, and without
 * what sealing adds.
 */
#define RAW_MAX_BYTES                                                                              \
    (HFD_COOKIE_MAX / 4 * 3 + (HFD_COOKIE_MAX % 4 > 0 ? HFD_COOKIE_MAX % 4 - 1 : 0))
#define SEAL_BYTES                                                                                 \
    (HFD_KEY_ID_BYTES + crypto_aead_xchacha20poly1305_ietf_NPUBBYTES +                             \
     crypto_aead_xchacha20poly1305_ietf_ABYTES)
#define PLAIN_MAX_BYTES (RAW_MAX_BYTES - 1 - SEAL_BYTES)

_Static_assert(PLAIN_MAX_BYTES == 7634 && PLAIN_MAX_BYTES <= UINT16_MAX, "lengths are u16");

/* "cookie" | version | GUResID. p is NULL when memory is short. */
static hfd_slice bind_to(hfd_slice guresid, struct hfd_arena *mem)
{
    return hfd_arena_printf(mem, "cookie%c%.*s", VERSION, HFD_SLICE_FMT(guresid));
}

/* ---- writing ---- */

static size_t text_size(hfd_slice s)
{
    return 2 + s.len;
}

/* The plaintext's size, more than PLAIN_MAX_BYTES when it does not fit. */
static size_t plain_size(const struct hfd_cookie *c)
{
    const hfd_slice texts[] = {c->type,   c->incarnation, c->cluster_id,
                               c->digest, c->backend,     c->protect};
    size_t n = 2 + 2;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]) && n <= PLAIN_MAX_BYTES; i++)
        n = texts[i].len > PLAIN_MAX_BYTES ? PLAIN_MAX_BYTES + 1 : n + text_size(texts[i]);
    for (size_t i = 0; i < c->nodepool_count && n <= PLAIN_MAX_BYTES; i++)
        n = c->nodepool_ids[i].len > PLAIN_MAX_BYTES ? PLAIN_MAX_BYTES + 1
                                                     : n + text_size(c->nodepool_ids[i]);
    return n;
}

static unsigned char *put_u16(unsigned char *p, size_t v)
{
    p[0] = (unsigned char)(v >> 8);
    p[1] = (unsigned char)v;
    return p + 2;
}

static unsigned char *put_text(unsigned char *p, hfd_slice s)
{
    p = put_u16(p, s.len);
    if (s.len > 0)
        memcpy(p, s.p, s.len);
    return p + s.len;
}

/* The caller has made room for plain_size bytes. */
static void put_plain(unsigned char *p, const struct hfd_cookie *c)
{
    *p++ = VERSION;
    *p++ = (unsigned char)c->kind;
    p = put_text(p, c->type);
    p = put_text(p, c->incarnation);
    p = put_text(p, c->cluster_id);
    p = put_text(p, c->digest);
    p = put_text(p, c->backend);
    p = put_text(p, c->protect);
    p = put_u16(p, c->nodepool_count);
    for (size_t i = 0; i < c->nodepool_count; i++)
        p = put_text(p, c->nodepool_ids[i]);
}

static hfd_slice encode(hfd_slice sealed, struct hfd_arena *mem)
{
    char *raw = hfd_arena_alloc(mem, 1 + sealed.len);
    size_t cap = sodium_base64_encoded_len(1 + sealed.len, BASE64);
    char *text = hfd_arena_alloc(mem, cap);

    if (raw == NULL || text == NULL)
        return HFD_SLICE_NONE;
    raw[0] = VERSION;
    memcpy(raw + 1, sealed.p, sealed.len);
    sodium_bin2base64(text, cap, (const unsigned char *)raw, 1 + sealed.len, BASE64);
    return (hfd_slice){text, cap - 1};
}

hfd_rc hfd_cookie_seal(const struct hfd_cookie_ctx *ctx, const struct hfd_cookie *cookie,
                       hfd_slice *out, struct hfd_err *err)
{
    struct hfd_cookie c = *cookie;
    hfd_slice aad, sealed = HFD_SLICE_NONE;
    unsigned char *plain;
    size_t len;

    *out = HFD_SLICE_NONE;
    if (plain_size(&c) > PLAIN_MAX_BYTES)
        c.nodepool_count = 0;
    if (plain_size(&c) > PLAIN_MAX_BYTES)
        c.protect = HFD_SLICE(HFD_PROTECT_YES);
    len = plain_size(&c);
    if (len > PLAIN_MAX_BYTES)
        return hfd_fail(err, HFD_LIMIT,
                        "cookie of %.*s: type, ids and backend do not fit into %d bytes",
                        HFD_SLICE_FMT(ctx->guresid), HFD_COOKIE_MAX);
    plain = hfd_arena_alloc(ctx->mem, len);
    aad = bind_to(ctx->guresid, ctx->mem);
    if (plain != NULL && aad.p != NULL) {
        put_plain(plain, &c);
        sealed = hfd_keyring_seal(&(struct hfd_seal){ctx->ring, HFD_KEY_COOKIE, aad}, ctx->rng,
                                  (hfd_slice){(const char *)plain, len}, ctx->mem);
        sodium_memzero(plain, len);
    }
    if (sealed.p != NULL)
        *out = encode(sealed, ctx->mem);
    return out->p != NULL ? HFD_OK
                          : hfd_fail(err, HFD_NOMEM, "cookie of %.*s", HFD_SLICE_FMT(ctx->guresid));
}

/* ---- reading ---- */

static bool get_u16(hfd_slice *rest, size_t *out)
{
    if (rest->len < 2)
        return false;
    *out = (size_t)(unsigned char)rest->p[0] << 8 | (unsigned char)rest->p[1];
    rest->p += 2;
    rest->len -= 2;
    return true;
}

static bool get_text(hfd_slice *rest, hfd_slice *out)
{
    size_t len;

    if (!get_u16(rest, &len) || len > rest->len)
        return false;
    *out = (hfd_slice){rest->p, len};
    rest->p += len;
    rest->len -= len;
    return true;
}

/* @return HFD_OK, HFD_COOKIE, HFD_NOMEM; without a message */
static hfd_rc get_nodepools(hfd_slice *rest, struct hfd_arena *mem, struct hfd_cookie *out)
{
    hfd_slice *ids;
    size_t count;

    /*
     * Each id takes two bytes at least: a count beyond that is refused before memory is asked for.
     */
    if (!get_u16(rest, &count) || count > rest->len / 2)
        return HFD_COOKIE;
    if (count == 0)
        return HFD_OK;
    ids = hfd_arena_array(mem, count, sizeof(*ids));
    if (ids == NULL)
        return HFD_NOMEM;
    for (size_t i = 0; i < count; i++)
        if (!get_text(rest, &ids[i]))
            return HFD_COOKIE;
    out->nodepool_ids = ids;
    out->nodepool_count = count;
    return HFD_OK;
}

/* The plaintext is checked although we sealed it: the program that did may have had a fault. */
static hfd_rc get_plain(hfd_slice rest, struct hfd_arena *mem, struct hfd_cookie *out)
{
    hfd_rc rc;

    if (rest.len < 2 || rest.p[0] != VERSION ||
        (rest.p[1] != HFD_KIND_CLUSTER && rest.p[1] != HFD_KIND_NODEPOOL))
        return HFD_COOKIE;
    out->kind = (enum hfd_kind)rest.p[1];
    rest.p += 2;
    rest.len -= 2;
    if (!get_text(&rest, &out->type) || !get_text(&rest, &out->incarnation) ||
        !get_text(&rest, &out->cluster_id) || !get_text(&rest, &out->digest) ||
        !get_text(&rest, &out->backend) || !get_text(&rest, &out->protect))
        return HFD_COOKIE;
    rc = get_nodepools(&rest, mem, out);
    return rc == HFD_OK && rest.len > 0 ? HFD_COOKIE : rc;
}

static hfd_rc open_text(const struct hfd_cookie_ctx *ctx, hfd_slice text, struct hfd_cookie *out)
{
    hfd_slice aad, plain;
    unsigned char *raw;
    size_t len = 0;
    hfd_rc rc;

    if (text.len == 0 || text.len > HFD_COOKIE_MAX)
        return HFD_COOKIE;
    raw = hfd_arena_alloc(ctx->mem, RAW_MAX_BYTES);
    aad = bind_to(ctx->guresid, ctx->mem);
    if (raw == NULL || aad.p == NULL)
        return HFD_NOMEM;
    if (sodium_base642bin(raw, RAW_MAX_BYTES, text.p, text.len, NULL, &len, NULL, BASE64) != 0 ||
        len < 1 || raw[0] != VERSION)
        return HFD_COOKIE;
    rc = hfd_keyring_open(&(struct hfd_seal){ctx->ring, HFD_KEY_COOKIE, aad},
                          (hfd_slice){(const char *)raw + 1, len - 1}, ctx->mem, &plain, NULL);
    return rc == HFD_OK ? get_plain(plain, ctx->mem, out) : rc;
}

hfd_rc hfd_cookie_open(const struct hfd_cookie_ctx *ctx, hfd_slice text, struct hfd_cookie *out,
                       struct hfd_err *err)
{
    hfd_rc rc;

    memset(out, 0, sizeof(*out));
    rc = open_text(ctx, text, out);
    if (rc == HFD_OK)
        return HFD_OK;
    memset(out, 0, sizeof(*out));
    if (rc == HFD_NOMEM)
        return hfd_fail(err, rc, "open the cookie of %.*s", HFD_SLICE_FMT(ctx->guresid));
    /* One text for every cause: it teaches a forger nothing. */
    return hfd_fail(err, HFD_COOKIE,
                    "the Humanitec-Driver-Cookie header is not a cookie of this resource: expected "
                    "the value last set by "
                    "this driver, or no header");
}

/* 36 bits: the version, and 28 bits of the id. */
void hfd_cookie_mark(const unsigned char id[HFD_KEY_ID_BYTES], char out[HFD_COOKIE_MARK_CHARS + 1])
{
    unsigned char raw[1 + HFD_KEY_ID_BYTES] = {VERSION};
    char text[sodium_base64_ENCODED_LEN(sizeof(raw), BASE64)];

    memcpy(raw + 1, id, HFD_KEY_ID_BYTES);
    sodium_bin2base64(text, sizeof(text), raw, sizeof(raw), BASE64);
    memcpy(out, text, HFD_COOKIE_MARK_CHARS);
    out[HFD_COOKIE_MARK_CHARS] = '\0';
}
