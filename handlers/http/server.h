/*
 * The HTTP server: two listeners and the threads that serve them. Thread: start-up.
 */
#ifndef HFD_HTTP_SERVER_H
#define HFD_HTTP_SERVER_H

#include "handlers/http/http.h"

struct hfd_server;

/**
 * Checks the addresses of the listeners: both must be loopback, and they must differ.
 * @return HFD_OK, HFD_INVALID
 */
HFD_MUST_CHECK hfd_rc hfd_server_check(const struct hfd_settings *settings, struct hfd_err *err);
/**
 * Binds and listens. Prints nothing.
 * @param out  gives; free with hfd_server_free
 * @return HFD_OK, HFD_INVALID (as hfd_server_check), HFD_IO, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_server_open(const struct hfd_app *app, struct hfd_server **out,
                                      struct hfd_err *err);
/** Returns the port of a listener, also if the settings say 0. */
int hfd_server_port(const struct hfd_server *s, enum hfd_listener l);
/** Starts the loop threads. */
HFD_MUST_CHECK hfd_rc hfd_server_start(struct hfd_server *s, struct hfd_err *err);
/**
 * Stops accepting, lets requests finish for at most http.drain_timeout, closes idle connections,
 * and joins the loops.
 */
void hfd_server_stop(struct hfd_server *s);
void hfd_server_free(struct hfd_server **s);

#endif
