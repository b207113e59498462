/* UTF-8 and JSON escapes, shared by documents (buf.c) and log lines (log.c). Thread: any. */
#ifndef HFD_BASE_UTF8_H
#define HFD_BASE_UTF8_H

#include "driver/base/slice.h"

/**
 * The length of the well-formed UTF-8 character that s begins with (no surrogates, nothing
 * overlong); 0 when there is none.
 */
size_t hfd_utf8_len(hfd_slice s);

/**
 * How many bytes at the start of s need no escape in a JSON string: ASCII without quotes,
 * backslashes and control characters.
 */
size_t hfd_json_plain(hfd_slice s);

/** Size of the longest result of hfd_json_escape. */
#define HFD_JSON_ESCAPE_MAX 6

/**
 * Writes the first character of s, which is not empty, as it stands in a JSON string. A byte that
 * is not UTF-8 gives U+FFFD.
 * @param out not NUL-terminated
 * @param used how many bytes of s were read
 * @return bytes written
 */
size_t hfd_json_escape(hfd_slice s, char out[HFD_JSON_ESCAPE_MAX], size_t *used);

#endif
