/*
 * The way of a request of h2o to its handler: it becomes an exchange, and is refused or routed.
 * Stands above the handlers; exchange.h is below them. Thread: loop.
 */
#ifndef HFD_HTTP_DISPATCH_H
#define HFD_HTTP_DISPATCH_H

#include "handlers/http/loop.h"

/** Handles a request of h2o. */
int hfd_dispatch_on_req(h2o_handler_t *self, h2o_req_t *req);

#endif
