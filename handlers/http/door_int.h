/* How the door ends connections, for its own files. Thread: loop. */
#ifndef HFD_HTTP_DOOR_INT_H
#define HFD_HTTP_DOOR_INT_H

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

#endif
