/*
 * Turns result codes into HTTP: status, code and document in three dialects. The only place that
 * does. Pure. Thread: any. Sources: Humanitec Driver API 0.9.3, Error; HyperFleet API, problems
 * (RFC 9457).
 */
#ifndef HFD_HTTP_REPLY_H
#define HFD_HTTP_REPLY_H

#include "driver/base/buf.h"
#include "driver/health/document.h"
#include "handlers/http/http.h"
#include "schemas/validate.h"

/** An error without its form. */
struct hfd_problem {
    enum hfd_dialect dialect;
    hfd_rc rc;
    int status; /* 0 = the status of rc; else 404 and 405 of the router, 408, 414, 417, 431 of the
                   door */
    bool unknown_route; /* the 404 of the router, with its own code */
    const char *field;  /* "" or NULL = none */
    const char
        *message; /* NULL = the text of rc; not shown with a 5xx, which reveals nothing internal */
    const struct hfd_violations
        *fields; /* all violations; NULL or empty = field and message only */
    const struct hfd_health_violations *rules; /* likewise, of a document; one of the two */
    hfd_slice path;                            /* of the request, without query */
    hfd_slice resource; /* the GUResID that a 400 of the Driver API names; empty = none */
    hfd_slice request_id;
    int64_t now_us;
};

/**
 * Writes the document into b; status, content type and Retry-After into reply. The body stays in b;
 * hfd_buf_finish tells if it is complete. Messages are cut at 500 bytes and begin with the field,
 * if there is one.
 */
void hfd_problem_format(const struct hfd_problem *p, struct hfd_buf *b, struct hfd_reply *reply);

/** Returns the status of a code in a dialect. */
int hfd_problem_status(enum hfd_dialect dialect, hfd_rc rc);

/** Returns the reason phrase; "Unknown" for a status that is never sent. */
const char *hfd_status_text(int status);

#endif
