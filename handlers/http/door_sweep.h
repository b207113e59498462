/*
 * Ends connections that are slow, idle, or in the way. Thread: loop, between two runs of it only.
 */
#ifndef HFD_HTTP_DOOR_SWEEP_H
#define HFD_HTTP_DOOR_SWEEP_H

#include "handlers/http/loop.h"

/**
 * Ends slow readers, slow writers and idle connections. Once a second, between two runs of the loop
 * only.
 */
void hfd_conn_sweep(struct hfd_loop *loop, int64_t now_us);
/** Closes connections without a request in flight. Between two runs of the loop only. */
void hfd_conn_close_idle(struct hfd_loop *loop, enum hfd_listener which);
/**
 * Closes the connection that has waited longest for a request, or for the rest of one. Between two
 * runs of the loop only.
 */
void hfd_conn_close_longest(struct hfd_loop *loop, enum hfd_listener which);
/** Ends all connections in any state. Between two runs of the loop only. */
void hfd_conn_cut_all(struct hfd_loop *loop, const char *why);

#endif
