/* The meaning of an answer: the table "What answers mean" of README.md. Pure. Thread: any. */
#ifndef HFD_REMOTE_VERDICT_H
#define HFD_REMOTE_VERDICT_H

#include "driver/backend/remote/exchange.h"
#include "driver/backend/remote/wire.h"

enum hfd_remote_verdict {
    HFD_ON_WELL,    /* done, or the document is here */
    HFD_ON_LATER,   /* down, busy, not a document */
    HFD_ON_WRONG,   /* not a HyperFleet */
    HFD_ON_REFUSED, /* the credentials are refused */
    HFD_ON_MISSING, /* the resource does not exist (any more) */
    HFD_ON_TAKEN,   /* the name is taken */
    HFD_ON_LEAVING, /* the resource or its cluster is being deleted */
    HFD_ON_INVALID, /* the input is refused */
    HFD_ON_UNABLE   /* this HyperFleet has no such operation */
};

/** @param problem  from the answer's document, or zeroes */
enum hfd_remote_verdict hfd_remote_verdict_of(enum hfd_remote_method method,
                                              const struct hfd_remote_answer *a,
                                              const struct hfd_wire_problem *problem);

/** Finds the state of the remote that the answer shows. */
enum hfd_remote_health hfd_remote_health_of(const struct hfd_remote_answer *a);

#endif
