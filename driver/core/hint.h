/* AsyncProgressHint and Retry-After, from the operation's fixed times. Pure. Source: 002_4aedec23c83d0384.txt; DESIGN 4 "Hint". */
#ifndef HFD_CORE_HINT_H
#define HFD_CORE_HINT_H

#include "driver/base/buf.h"

struct hfd_hint_input {
    const char *status; /* "creating", "updating", "deleting" */
    int64_t started_us;
    int64_t estimate_us; /* absolute; the prior's guess at the start of the operation */
    int64_t deadline_us; /* absolute */
    int64_t now_us;
};

struct hfd_hint {
    const char *status;
    int64_t estimated_us; /* whole seconds, never before now, never behind the deadline while that lies ahead */
    int64_t deadline_us;  /* whole seconds, rounded up */
    int64_t now_us;
    int retry_after_s; /* 1..60: a quarter of the time left */
};

/**
 * The estimate stands still until it passes; then the operation is taken to need 2, 4, 8, ... times as long as guessed, the smallest that
 * lies more than a second ahead. So it never lies in the past and never goes back while time goes on.
 */
struct hfd_hint hfd_hint_make(const struct hfd_hint_input *in);
/** The JSON document, with timeout and timeout_deadline both. */
void hfd_hint_format(struct hfd_buf *b, const struct hfd_hint *h);

#endif
