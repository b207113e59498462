/*
 * The one place where result codes become HTTP: status, code and document in the three dialects.
 * Pure. Thread: any. Sources: 002_4aedec23c83d0384.txt (Error), spec RFC 9457 problems of
 * HyperFleet; DESIGN 4 "Errors" and 10.4.
 */
#ifndef HFD_HTTP_REPLY_H
#define HFD_HTTP_REPLY_H

#include "driver/base/buf.h"
#include "handlers/http/http.h"
#include "schemas/validate.h"

/** An error before it has a form. */
struct hfd_problem {
    enum hfd_dialect dialect;
    hfd_rc rc;
    int status; /* 0 = what rc stands for; else the door's own: 404 and 405 of the router, 408, 414,
                   417, 431 */
    bool unknown_route;  /* the 404 of the router, which has a code of its own */
    const char *field;   /* "" or NULL = none */
    const char *message; /* NULL = the text of rc. Not shown with a 5xx: those say nothing of what
                            is inside. */
    const struct hfd_violations
        *fields;        /* all that is wrong with fields; NULL or empty = field and message alone */
    hfd_slice path;     /* of the request, without query */
    hfd_slice resource; /* the GUResID that a 400 of the driver's names; empty = none */
    hfd_slice request_id;
    int64_t now_us;
};

/**
 * Writes the document into b, and status, content type and Retry-After into reply; the body stays
 * with b (hfd_buf_finish tells whether it is whole). Messages are cut at 500 bytes and begin with
 * the field where there is one.
 */
void hfd_problem_format(const struct hfd_problem *p, struct hfd_buf *b, struct hfd_reply *reply);

/** The status that a code stands for in a dialect. */
int hfd_problem_status(enum hfd_dialect dialect, hfd_rc rc);

/** The reason phrase; "Unknown" for what we never send. */
const char *hfd_status_text(int status);

#endif
