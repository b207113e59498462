/* UTF-8 and JSON escapes, shared by documents (buf.c) and log lines (log.c). Thread: any. */
#ifndef HFD_BASE_UTF8_H
#define HFD_BASE_UTF8_H

#include "driver/base/slice.h"

/**
 * Length of the well-formed UTF-8 character that s begins with (no surrogates, nothing overlong),
 * or 0.
 */
size_t hfd_utf8_len(hfd_slice s);

/**
 * How many bytes from the first on stand in a JSON string as they are: ASCII without quotes,
 * backslashes and control characters.
 */
size_t hfd_json_plain(hfd_slice s);

/** Longest result of hfd_json_escape. */
#define HFD_JSON_ESCAPE_MAX 6

/**
 * The first character of s (which is not empty) as it stands inside a JSON string; a byte that is
 * not UTF-8 gives U+FFFD.
 * @param out   written, not NUL-terminated
 * @param used  how many bytes of s this was
 * @return bytes written
 */
size_t hfd_json_escape(hfd_slice s, char out[HFD_JSON_ESCAPE_MAX], size_t *used);

#endif
