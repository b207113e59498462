/*
 * Text that the holder of a slice does not own: a pointer and a length. A slice is not
 * NUL-terminated. A function that takes one borrows the text and does not keep it. Only this module
 * parses numbers from outside. Thread: any.
 */
#ifndef HFD_BASE_SLICE_H
#define HFD_BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "driver/base/err.h"

typedef struct hfd_slice {
    const char *p;
    size_t len;
} hfd_slice;

/** 0; does not compile for a pointer, as of `c ? "a" : "b"`, whose size is not that of the text. */
#define HFD_NO_POINTER(lit)                                                                        \
    (0 * sizeof(struct {                                                                           \
         char one;                                                                                 \
         _Static_assert(!__builtin_types_compatible_p(__typeof__(lit), __typeof__(&(lit)[0])),     \
                        "a literal is expected");                                                  \
     }))
/** A slice of a string literal. */
#define HFD_SLICE(lit) ((hfd_slice){(lit), sizeof(lit) - 1 + HFD_NO_POINTER(lit)})
#define HFD_SLICE_NONE ((hfd_slice){NULL, 0})
/** The two arguments for "%.*s". */
#define HFD_SLICE_FMT(s) (int)(s).len, (s).p != NULL ? (s).p : ""

/** A slice of a C string; NULL gives HFD_SLICE_NONE. */
static inline hfd_slice hfd_slice_of(const char *cstr)
{
    return (hfd_slice){cstr, cstr != NULL ? strlen(cstr) : 0};
}

/** True if the bytes are equal. HFD_SLICE_NONE and an empty slice are equal. */
static inline bool hfd_slice_eq(hfd_slice a, hfd_slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.p, b.p, a.len) == 0);
}

/** hfd_slice_eq with a C string. */
static inline bool hfd_slice_is(hfd_slice a, const char *cstr)
{
    return hfd_slice_eq(a, hfd_slice_of(cstr));
}

/** Cuts the text before a separator off *rest, and the separator; the whole if there is none. */
hfd_slice hfd_slice_cut(hfd_slice *rest, char separator);

/** How many characters a valid UTF-8 text has. */
static inline size_t hfd_slice_characters(hfd_slice text)
{
    size_t n = 0;

    for (size_t i = 0; i < text.len; i++)
        n += ((unsigned char)text.p[i] & 0xc0u) != 0x80u;
    return n;
}

/** True for an ASCII letter or digit. */
static inline bool hfd_is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/** The value of a hexadecimal digit; -1 for any other character. */
int hfd_hex_value(char c);
/** The slice without leading and trailing spaces and tabs. */
hfd_slice hfd_slice_trim(hfd_slice s);
/** Copies s to a place that has room for it, which moves behind it. @return the copy */
static inline hfd_slice hfd_slice_put(char **at, hfd_slice s)
{
    const hfd_slice copy = {*at, s.len};

    if (s.len > 0)
        memcpy(*at, s.p, s.len);
    *at += s.len;
    return copy;
}

#define HFD_HASH_START UINT64_C(14695981039346656037)
/**
 * The FNV-1a hash, for tables. An attacker who chooses the bytes can make hashes collide.
 * @param from HFD_HASH_START, or the hash of the text before
 */
uint64_t hfd_slice_hash(uint64_t from, hfd_slice s);
/** Hashes the length and the last eight bytes, as ids differ at their ends. Takes the same time for
 * each length. */
uint64_t hfd_slice_hash_end(uint64_t from, hfd_slice s);

/** True if the bytes are equal when the case of ASCII letters is ignored. */
bool hfd_slice_ieq(hfd_slice a, hfd_slice b);
bool hfd_slice_starts(hfd_slice s, hfd_slice prefix);
/** Compares in memcmp order, the shorter first on a tie; for qsort. */
int hfd_slice_cmp(hfd_slice a, hfd_slice b);

/**
 * Parses a whole decimal integer ("-12"); no spaces, no plus sign, nothing behind it.
 * @param out 0 on failure
 * @return HFD_OK, HFD_INVALID (the message names the range)
 */
HFD_MUST_CHECK hfd_rc hfd_parse_i64(hfd_slice text, int64_t min, int64_t max, int64_t *out,
                                    struct hfd_err *err);

/**
 * Parses a duration with one or more units: `90s`, `45m`, `2h`, `1h30m`, `250ms`, `7d`. A bare
 * number is refused.
 * @param out microseconds, from 0 to ten years
 * @return HFD_OK, HFD_INVALID
 */
HFD_MUST_CHECK hfd_rc hfd_parse_duration_us(hfd_slice text, int64_t *out, struct hfd_err *err);

#endif
