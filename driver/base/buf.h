/*
 * A text under construction. Every buffer has a ceiling. The first failure sticks: later additions
 * do nothing, and hfd_buf_finish reports it. A document is therefore built without checks, and
 * checked once at the end. Thread: one at a time.
 */
#ifndef HFD_BASE_BUF_H
#define HFD_BASE_BUF_H

#include "driver/base/arena.h"

struct hfd_buf {
    char *p;
    size_t len;
    size_t cap;
    size_t max_bytes;
    struct hfd_budget *budget; /* what its memory is taken from; NULL = none */
    hfd_rc rc; /* HFD_OK, or the first failure: HFD_NOMEM, or HFD_LIMIT (the ceiling is reached) */
};

/** Sets up an empty buffer. Never fails, and allocates nothing yet. */
void hfd_buf_init(struct hfd_buf *b, size_t max_bytes);
/** Frees the memory. The buffer can be used again with the same ceiling. */
void hfd_buf_fini(struct hfd_buf *b);
/** Empties the buffer: it keeps its memory and forgets its failure. */
void hfd_buf_reset(struct hfd_buf *b);

/**
 * Add bytes, one byte, or formatted text; borrow. A piece that does not fit is not added at all.
 */
void hfd_buf_add(struct hfd_buf *b, hfd_slice s);
void hfd_buf_addc(struct hfd_buf *b, char c);
void hfd_buf_addf(struct hfd_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#define hfd_buf_lit(b, lit) hfd_buf_add((b), HFD_SLICE(lit))

/** Adds a text of others by hfd_foreign_char: in one line, with all that a reader could not see. */
void hfd_buf_show(struct hfd_buf *b, hfd_slice text);
/** Masks the secrets in the text behind its first `from` bytes, by hfd_foreign_mask. */
void hfd_buf_mask(struct hfd_buf *b, size_t from);
/** Adds s as a JSON string with quotes. Bytes that are not UTF-8 become U+FFFD. */
void hfd_buf_json_str(struct hfd_buf *b, hfd_slice s);
void hfd_buf_i64(struct hfd_buf *b, int64_t v);
/** Adds a number for people: "2,310,000". @param v  0 or more */
void hfd_buf_count(struct hfd_buf *b, int64_t v);
/** Adds a duration for people: "4:10", or "1:04:10". */
void hfd_buf_clock(struct hfd_buf *b, int64_t us);
/** Adds "40 s", "12 min" or "3 h": a duration in the unit that says enough of it. */
void hfd_buf_about(struct hfd_buf *b, int64_t us);
/**
 * Adds "2025-01-01T00:00:00Z" with quotes, and with as many fraction digits (up to 6) as needed.
 */
void hfd_buf_json_time(struct hfd_buf *b, int64_t at_us);
/** Adds the comma in front of item i of a JSON list. */
static inline void hfd_buf_comma(struct hfd_buf *b, size_t i)
{
    if (i > 0)
        hfd_buf_addc(b, ',');
}

/** Adds a lead, such as ",\"name\":", and a value as a JSON string. */
static inline void hfd_buf_member_str(struct hfd_buf *b, const char *lead, hfd_slice s)
{
    hfd_buf_add(b, hfd_slice_of(lead));
    hfd_buf_json_str(b, s);
}
/** Adds a lead, and a time as hfd_buf_json_time does. */
static inline void hfd_buf_member_time(struct hfd_buf *b, const char *lead, int64_t at_us)
{
    hfd_buf_add(b, hfd_slice_of(lead));
    hfd_buf_json_time(b, at_us);
}

/** The text so far. Borrowed until the next addition. */
static inline hfd_slice hfd_buf_slice(const struct hfd_buf *b)
{
    return (hfd_slice){b->p, b->len};
}

/**
 * Ends the text.
 * @param out the text; b still owns it
 * @return HFD_OK, or the failure that stuck, with a message
 */
HFD_MUST_CHECK hfd_rc hfd_buf_finish(struct hfd_buf *b, hfd_slice *out, struct hfd_err *err);

/**
 * Ends the text and copies it into mem. b is empty afterwards, on failure too, and can be used
 * again.
 */
HFD_MUST_CHECK hfd_rc hfd_buf_to_arena(struct hfd_buf *b, struct hfd_arena *mem, hfd_slice *out,
                                       struct hfd_err *err);

/**
 * Decodes base64url, with or without padding, into out[cap].
 * @param len_out bytes written; 0 on failure
 * @return HFD_OK, HFD_INVALID
 */
HFD_MUST_CHECK hfd_rc hfd_base64url_decode(hfd_slice text, unsigned char *out, size_t cap,
                                           size_t *len_out);

/** The same for base64 (RFC 4648, 4), the form of kubeconfig files and Kubernetes Secrets. */
HFD_MUST_CHECK hfd_rc hfd_base64_decode(hfd_slice text, unsigned char *out, size_t cap,
                                        size_t *len_out);

#endif
