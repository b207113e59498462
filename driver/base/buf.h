/*
 * Text that we build. Every buffer is born with a ceiling. The first failure sticks (as in SQLite's
 * ERROR state): later adds do nothing, and hfd_buf_finish tells. So a document is built without a
 * check per line, and checked once.
 */
#ifndef HFD_BASE_BUF_H
#define HFD_BASE_BUF_H

#include "driver/base/arena.h"

struct hfd_buf {
    char *p;
    size_t len;
    size_t cap;
    size_t max_bytes;
    hfd_rc rc; /* HFD_OK, or the first failure: HFD_NOMEM, HFD_LIMIT (over the ceiling) */
};

/** Never fails; allocates nothing yet. */
void hfd_buf_init(struct hfd_buf *b, size_t max_bytes);
/** Frees the memory; the buffer can be used again with the same ceiling. */
void hfd_buf_fini(struct hfd_buf *b);
/** Empty again, memory kept, failure forgotten. */
void hfd_buf_reset(struct hfd_buf *b);

/** Bytes, one byte, formatted text; borrow. What does not fit is not added at all. */
void hfd_buf_add(struct hfd_buf *b, hfd_slice s);
void hfd_buf_addc(struct hfd_buf *b, char c);
void hfd_buf_addf(struct hfd_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#define hfd_buf_lit(b, lit) hfd_buf_add((b), HFD_SLICE(lit))

/** Adds s as a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD. */
void hfd_buf_json_str(struct hfd_buf *b, hfd_slice s);
void hfd_buf_i64(struct hfd_buf *b, int64_t v);
/** Adds "2025-01-01T00:00:00Z" with its quotes; as many fraction digits (up to 6) as needed. */
void hfd_buf_json_time(struct hfd_buf *b, int64_t at_us);
/** base64url without padding (table-driven: for ciphertext and other public bytes). */
void hfd_buf_base64url(struct hfd_buf *b, const void *bytes, size_t len);

/** What is there so far; borrowed until the next add. */
static inline hfd_slice hfd_buf_slice(const struct hfd_buf *b)
{
    return (hfd_slice){b->p, b->len};
}

/** @return HFD_OK, or the failure that stuck, with a message. The bytes stay owned by b. */
HFD_MUST_CHECK hfd_rc hfd_buf_finish(struct hfd_buf *b, hfd_slice *out, struct hfd_err *err);

/**
 * As finish, with the bytes copied into mem; in any case they are freed, and b can be used again.
 */
HFD_MUST_CHECK hfd_rc hfd_buf_to_arena(struct hfd_buf *b, struct hfd_arena *mem, hfd_slice *out,
                                       struct hfd_err *err);

/** base64url (padding tolerated) into out[cap]. @return HFD_OK or HFD_INVALID; *len_out is set. */
HFD_MUST_CHECK hfd_rc hfd_base64url_decode(hfd_slice text, unsigned char *out, size_t cap,
                                           size_t *len_out);

#endif
