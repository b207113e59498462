/*
 * The HTTP server: the addresses of two listeners, their sockets, and the threads that serve them.
 * Thread: start-up.
 */
#ifndef HFD_HTTP_SERVER_H
#define HFD_HTTP_SERVER_H

#include "handlers/http/http.h"

#include <sys/socket.h>

struct hfd_server;

/**
 * Checks the addresses of the listeners: they must differ.
 * @return HFD_OK, HFD_INVALID
 */
HFD_MUST_CHECK hfd_rc hfd_server_check(const struct hfd_settings *settings, struct hfd_err *err);
/**
 * Checks that a listener off loopback asks its callers to log in.
 * @param authenticated  authentication is on, and a caller can log in
 * @return HFD_OK, HFD_INVALID (the message has the ways out)
 */
HFD_MUST_CHECK hfd_rc hfd_server_check_open(const struct hfd_settings *settings, bool authenticated,
                                            struct hfd_err *err);
/**
 * Binds and listens. Prints nothing.
 * @param out  gives; free with hfd_server_free
 * @return HFD_OK, HFD_INVALID (as hfd_server_check and hfd_server_check_open), HFD_IO, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_server_open(const struct hfd_app *app, struct hfd_server **out,
                                      struct hfd_err *err);
/** Returns the port of a listener, also if the settings say 0. */
int hfd_server_port(const struct hfd_server *s, enum hfd_listener l);
/** Returns true if the listeners speak TLS. */
bool hfd_server_has_tls(const struct hfd_server *s);
/**
 * Looks at what may change while the server runs: the files of tls.*. To be called once the
 * server is open, every few seconds, and with `forced` at SIGHUP. Thread: main.
 */
void hfd_server_watch(struct hfd_server *s, bool forced);
/**
 * Returns the longest time that a loop has not turned. Every loop turns once a second at least,
 * unless it hangs. Thread: main.
 */
int64_t hfd_server_stall_us(const struct hfd_server *s);
/** Starts the loop threads. */
HFD_MUST_CHECK hfd_rc hfd_server_start(struct hfd_server *s, struct hfd_err *err);
/**
 * Stops accepting, lets requests finish for at most http.drain_timeout, closes idle connections,
 * and joins the loops.
 */
void hfd_server_stop(struct hfd_server *s);
void hfd_server_free(struct hfd_server **s);

/**
 * Finds out whether both addresses are free, where they name a port. Nothing stays open.
 * @return HFD_OK, HFD_INVALID, HFD_IO (one is in use, or cannot be had)
 */
HFD_MUST_CHECK hfd_rc hfd_addresses_probe(const struct hfd_settings *s, struct hfd_err *err);

#endif
