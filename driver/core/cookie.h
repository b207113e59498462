/*
 * The driver cookie rebuilds a resource's row. It is sealed and bound to type and GUResID, in
 * base64url, and always shorter than 10,240 bytes. Form and GUResID are associated data. GET and
 * DELETE on a bare path know no type, so the type is sealed inside, and so authenticated. It is
 * made when an operation starts and stored, so it stays byte for byte the same while nothing
 * changes.
 */
#ifndef HFD_CORE_COOKIE_H
#define HFD_CORE_COOKIE_H

#include "driver/core/keyring.h"
#include "store/kind.h"

#define HFD_COOKIE_MAX 10239

/* The first line of hfd_resource_row.protect: what the order says. */
#define HFD_PROTECT_YES "yes\n"
#define HFD_PROTECT_NO "no\n"

struct hfd_cookie {
    hfd_slice type; /* as received; bound through its part behind "org/" */
    enum hfd_kind kind;
    hfd_slice incarnation;
    hfd_slice cluster_id;
    const hfd_slice *nodepool_ids;
    size_t nodepool_count;
    hfd_slice digest;
    hfd_slice backend; /* "embedded", or the URL */
    hfd_slice protect; /* hfd_resource_row.protect */
};

/** The resource of a cookie, its keys, and the memory for results. */
struct hfd_cookie_ctx {
    const struct hfd_keyring *ring;
    const struct hfd_rng *rng; /* for sealing alone */
    hfd_slice guresid;
    struct hfd_arena *mem;
};

/**
 * Seals a cookie. Leaves out nodepool ids if the text would not fit: they stay in the store. If the
 * labels of `protect` do not fit, the resource counts as protected.
 * @param out  gives in ctx->mem
 * @return HFD_OK, HFD_LIMIT (type, ids and backend alone do not fit), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_cookie_seal(const struct hfd_cookie_ctx *ctx,
                                      const struct hfd_cookie *cookie, hfd_slice *out,
                                      struct hfd_err *err);

/**
 * Opens the text of a cookie. Refuses longer texts unread. The caller checks type, kind,
 * incarnation and backend.
 * @return HFD_OK, HFD_COOKIE (one message for every cause), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_cookie_open(const struct hfd_cookie_ctx *ctx, hfd_slice text,
                                      struct hfd_cookie *out, struct hfd_err *err);

#define HFD_COOKIE_MARK_CHARS 6
/** The first characters of all cookies that a key seals. @param out  with a NUL */
void hfd_cookie_mark(const unsigned char id[HFD_KEY_ID_BYTES], char out[HFD_COOKIE_MARK_CHARS + 1]);

#endif
