/*
 * The side of an exchange that faces h2o and the loop. Handlers use exchange.h. Thread: loop,
 * unless said.
 */
#ifndef HFD_HTTP_EXCHANGE_INT_H
#define HFD_HTTP_EXCHANGE_INT_H

#include "handlers/http/exchange.h"
#include "handlers/http/loop.h"

/** Handles a request of h2o. */
int hfd_exchange_on_req(h2o_handler_t *self, h2o_req_t *req);
/** Receives finished jobs. */
void hfd_exchange_on_finished(h2o_multithread_receiver_t *receiver, h2o_linklist_t *messages);
/** hfd_sink.post of a loop: sends finished jobs to it. Thread: writer, readers. */
void hfd_exchange_post(struct hfd_sink *sink, struct hfd_job *list);

#endif
