/*
 * The trace of a request, as W3C Trace Context has it. A thread that works for a request carries
 * its traceparent: into log lines, events and requests to others. It goes on as it came, as this
 * program makes no spans. Thread: any; each has its own.
 */
#ifndef HFD_BASE_TRACE_H
#define HFD_BASE_TRACE_H

#include "driver/base/slice.h"

#include <stdbool.h>

#define HFD_TRACE_LEN 55

/** A traceparent; empty = none. */
struct hfd_trace {
    char text[HFD_TRACE_LEN + 1];
};

/** Reads a traceparent. One of another version or form is none. */
struct hfd_trace hfd_trace_parse(hfd_slice header);
/** The id that all parts of the trace share; empty without one. */
hfd_slice hfd_trace_id(const struct hfd_trace *trace);

/** Sets the trace that this thread works for from now on. NULL = none. */
void hfd_trace_enter(const struct hfd_trace *trace);
/** The trace that this thread works for. It changes with hfd_trace_enter. */
const struct hfd_trace *hfd_trace_now(void);

#endif
