/* The state of the remote as answers show it: metrics, breaker, log. Thread: remote. */
#ifndef HFD_REMOTE_HEALTH_H
#define HFD_REMOTE_HEALTH_H

#include "driver/backend/remote/remote_int.h"

/** Takes note of an answer, or of its absence. */
void hfd_remote_learn(struct hfd_remote *r, const struct hfd_remote_call *call);
/** Adds to the number of requests in flight. */
void hfd_remote_count_in_flight(struct hfd_remote *r, int by);
/** Asks for a list at the start, so that a wrong URL or token is logged at once. */
void hfd_remote_greet(struct hfd_remote *r);

#endif
