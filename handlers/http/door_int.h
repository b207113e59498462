/* How the door ends connections, for its own files. Thread: loop. */
#ifndef HFD_HTTP_DOOR_INT_H
#define HFD_HTTP_DOOR_INT_H

#include "handlers/settings/network.h"
#include "handlers/http/door.h"

/**
 * Makes h2o close the connection, by an error for its read callback. Not while h2o has a request.
 * Frees conn.
 */
void hfd_conn_close(struct hfd_conn *conn, const char *why);
/** Makes the kernel end the connection. h2o notices at its next read or write. */
void hfd_conn_cut(struct hfd_conn *conn, const char *why);
/**
 * Answers instead of h2o and ends the connection, because the bytes after a bad request cannot be
 * trusted.
 */
void hfd_conn_refuse(struct hfd_conn *conn, const struct hfd_head_fault *fault);
/** Writes a refusal that has waited. */
void hfd_conn_refuse_now(struct hfd_conn *conn);
/**
 * Logs and counts a refusal, and writes its answer into conn->refusal, whose rc tells if it is
 * complete.
 */
void hfd_conn_format_refusal(struct hfd_conn *conn, const struct hfd_head_fault *fault);
/** Hands the connection to h2o, behind the door, and reads what has arrived already. */
void hfd_conn_begin(struct hfd_conn *conn);
/** Formats the address of the peer. */
void hfd_conn_format_peer(const struct hfd_conn *conn, char out[HFD_ADDRESS_TEXT_MAX]);
/** Returns the connection of a socket. */
struct hfd_conn *hfd_conn_of_socket(h2o_socket_t *sock);

#endif
