/*
 * The side of an exchange that faces h2o and the loop. Handlers use exchange.h. Thread: loop,
 * unless said.
 */
#ifndef HFD_HTTP_EXCHANGE_INT_H
#define HFD_HTTP_EXCHANGE_INT_H

#include "handlers/settings/network.h"
#include "handlers/http/exchange.h"
#include "handlers/http/loop.h"

/** Copies the name of the caller. Returns false if memory is short. */
bool hfd_exchange_set_caller(struct hfd_exchange *x, hfd_slice name);
/** Returns the token of the path; empty if there is none. */
hfd_slice hfd_exchange_path_token(const struct hfd_exchange *x);
/** Returns the connection of a request that is not answered yet. */
struct hfd_conn *hfd_exchange_conn(const struct hfd_exchange *x);
/** Handles a request of h2o. */
int hfd_exchange_on_req(h2o_handler_t *self, h2o_req_t *req);
/**
 * The client has gone: a view that is out ends soon, with HFD_TIMEOUT. Updates are not
 * affected.
 */
void hfd_exchange_cancel(struct hfd_exchange *x);
/** Returns true while a view is out. */
bool hfd_exchange_is_viewing(const struct hfd_exchange *x);
/** Receives finished jobs. */
void hfd_exchange_on_finished(h2o_multithread_receiver_t *receiver, h2o_linklist_t *messages);
/** hfd_sink.post of a loop: sends finished jobs to it. Thread: writer, readers. */
void hfd_exchange_post(struct hfd_sink *sink, struct hfd_job *list);

/** Returns the address of the client (peer.h), before the answer. */
struct hfd_host_address hfd_exchange_client(const struct hfd_exchange *x);
/** Formats that address. */
void hfd_exchange_format_client(const struct hfd_exchange *x, char out[HFD_ADDRESS_TEXT_MAX]);

#endif
