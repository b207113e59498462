/*
 * Finds whose word an answer over HTTP is. A proxy or a load balancer answers in the place of an
 * API; what is not in the API's own words decides nothing. One table for all APIs that this program
 * calls (driver/README.md, decision 24). Pure. Thread: any.
 */
#ifndef HFD_BASE_PEER_H
#define HFD_BASE_PEER_H

#include "driver/base/err.h"
#include "driver/base/slice.h"

#define HFD_PEER_TYPE_MAX 64

/** The body of an answer, as the API's own reader sees it. */
enum hfd_peer_body {
    HFD_PEER_EMPTY,
    HFD_PEER_STRANGE, /* a page, text, broken JSON, or JSON of others */
    HFD_PEER_RESULT,  /* what the call asks for */
    HFD_PEER_ERROR,   /* the API's own document of errors, with the status of the answer */
};

enum hfd_peer_word {
    HFD_PEER_DONE,    /* 2xx with its result */
    HFD_PEER_DECIDES, /* a 4xx of the API itself: its rules say what follows */
    HFD_PEER_LATER,   /* the API itself asks for a later try: 408, 425, 429, 5xx */
    HFD_PEER_FOREIGN, /* not a word of that API: nothing is decided, and it is tried again */
};

/** Finds whose word an answer is. @param may_be_empty  a 2xx of this call needs no body */
enum hfd_peer_word hfd_peer_word_of(int status, enum hfd_peer_body body, bool may_be_empty);

/** True for 408, 425, 429 and 5xx: the peer cannot serve now. */
bool hfd_peer_is_busy(int status);

/** A foreign answer. */
struct hfd_peer_foreign {
    const char *whose; /* "Kubernetes'" */
    int status;
    const char *type; /* a media type; empty or NULL = not said */
    bool empty;       /* it has no body */
};

/** Writes "an answer that is not Kubernetes': 413, text/html". */
void hfd_peer_describe(const struct hfd_peer_foreign *answer, char *out, size_t size);

/**
 * Reads the value of Retry-After: seconds, or a date. More than 5 minutes becomes 5 minutes.
 * @param now_us  wall clock
 * @param out_us  how long to wait; 0 if the value cannot be read, or the date is past
 * @return HFD_OK, HFD_INVALID
 */
HFD_MUST_CHECK hfd_rc hfd_peer_retry_after(hfd_slice value, int64_t now_us, int64_t *out_us);

#endif
