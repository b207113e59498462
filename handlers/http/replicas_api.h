/* The handler of the list of replicas, on the ops listener. Thread: loop. */
#ifndef HFD_HTTP_REPLICAS_API_H
#define HFD_HTTP_REPLICAS_API_H

#include "handlers/http/http.h"

/** Handler: the replicas of a shared store; an empty list with SQLite. */
void hfd_replicas_api_list(struct hfd_exchange *x);

#endif
