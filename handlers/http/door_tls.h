/*
 * TLS of one connection: its handshake, within bounds of time, number and memory. Thread: loop.
 */
#ifndef HFD_HTTP_DOOR_TLS_H
#define HFD_HTTP_DOOR_TLS_H

#include "handlers/http/door.h"

/** Begins the handshake; at its end the connection goes to h2o, or is closed. May free conn. */
void hfd_conn_begin_tls(struct hfd_conn *conn);
/** Logs and counts the end of an open connection by a fault of TLS; nothing for other ends. */
void hfd_conn_blame_tls(struct hfd_conn *conn, const char *err);
/** Gives back what TLS has taken for a connection that is closed. */
void hfd_conn_end_tls(struct hfd_conn *conn);

#endif
