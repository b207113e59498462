/*
 * Answers that wait: the 401 to failed logins, and those that do without a late job. A loop keeps
 * them in a list and looks at it between two runs. It never blocks. Thread: loop.
 */
#ifndef HFD_HTTP_LATER_H
#define HFD_HTTP_LATER_H

#include "handlers/http/loop.h"

#define HFD_LATER_MAX 256 /* answers of a loop that wait; further 401s do not wait */

/** An answer that waits; in the memory of its exchange. */
struct hfd_later {
    h2o_linklist_t link;
    struct hfd_exchange *x;
    int64_t until_us;           /* mono */
    hfd_handler_fn *do_without; /* answers; NULL = 401 with err */
    struct hfd_err err;
};

/**
 * Lets an answer wait.
 * @param later  in the memory of later->x; not linked yet
 * @return false if too many wait: answer now
 */
bool hfd_later_add(struct hfd_loop *loop, struct hfd_later *later);
/** Forgets an answer: its client has gone. */
void hfd_later_cancel(struct hfd_loop *loop, struct hfd_later *later);
/** Sends the answers that have waited long enough; all of them while the loop drains. */
void hfd_later_run(struct hfd_loop *loop, int64_t now_us);
/** Returns how long the loop may sleep, at most max_us. */
int64_t hfd_later_wait_us(const struct hfd_loop *loop, int64_t max_us);

#endif
