/*
 * A 404 in other words than HyperFleet's may come from a gateway. Then the pass asks for a list,
 * and believes the 404 if a HyperFleet answers that. Thread: writer, inside a transaction function.
 */
#ifndef HFD_REMOTE_TAKE_ROUTE_H
#define HFD_REMOTE_TAKE_ROUTE_H

#include "driver/backend/remote/take.h"

/** Returns whether the answer is such a 404, and the list was not asked for yet. */
bool hfd_take_is_doubtful(const struct hfd_take *t);
/** Goes to CHECK_ROUTE. */
void hfd_take_doubt(struct hfd_take *t);
/** Takes the list: resumes the phase before CHECK_ROUTE. @return whether a HyperFleet answered */
bool hfd_take_route(struct hfd_take *t);

#endif
