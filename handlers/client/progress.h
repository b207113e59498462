/*
 * Shows how far an operation is: a line that is written over on a terminal, else a line for each
 * news. Goes to stderr. Thread: main.
 */
#ifndef HFD_CLIENT_PROGRESS_H
#define HFD_CLIENT_PROGRESS_H

#include "driver/base/buf.h"
#include "handlers/client/order.h"

struct hfd_progress_view {
    const char *id;
    bool terminal; /* stderr is one */
    bool shown;    /* a line is on the terminal */
    int64_t began_us;
    char last[640]; /* the news that was printed last */
};

/** Begins to show an operation on a resource. id is borrowed. */
void hfd_progress_begin(struct hfd_progress_view *v, const char *id);
/** Shows an answer; for hfd_order_follow, with the view as ctx. */
void hfd_progress_show(void *ctx, const struct hfd_order_answer *a);
/** Clears the line. */
void hfd_progress_end(struct hfd_progress_view *v);

/** The times of an operation, in microseconds since its beginning; 0 = not known. */
struct hfd_progress_times {
    int64_t elapsed_us, total_us;
};

/**
 * Adds "creating  [=====>    ] 38 %  4:10 of ~11:00  waits for dns" for a hint, at most `columns`
 * wide. Pure.
 */
void hfd_progress_line(struct hfd_buf *b, const json_t *hint,
                       const struct hfd_progress_times *times, size_t columns);

#endif
