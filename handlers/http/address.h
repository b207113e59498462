/*
 * The addresses of the two listeners, and their listening sockets. Thread: start-up.
 */
#ifndef HFD_HTTP_ADDRESS_H
#define HFD_HTTP_ADDRESS_H

#include <sys/socket.h>

#include "handlers/http/http.h"

struct hfd_address {
    struct sockaddr_storage addr;
    socklen_t len;
    bool local; /* only this machine reaches it */
};

/**
 * Parses listen and ops_listen, and checks that they differ.
 * @return HFD_OK, HFD_INVALID (the message names the setting)
 */
HFD_MUST_CHECK hfd_rc hfd_addresses_check(const struct hfd_settings *s,
                                          struct hfd_address out[HFD_LISTENER_COUNT],
                                          struct hfd_err *err);
/**
 * Checks that every caller of a listener has to log in, unless only this machine reaches it.
 * @param authenticated  authentication is on, and a caller can log in
 * @return HFD_OK, HFD_INVALID (the message names the setting and the ways out)
 */
HFD_MUST_CHECK hfd_rc hfd_addresses_check_open(const struct hfd_settings *s, bool authenticated,
                                               struct hfd_err *err);
/**
 * Opens a listening socket.
 * @param which   names the setting in errors
 * @param fd_out  gives; -1 unless HFD_OK
 * @return HFD_OK, HFD_IO
 */
HFD_MUST_CHECK hfd_rc hfd_address_listen(const struct hfd_address *e, const struct hfd_settings *s,
                                         enum hfd_listener which, int *fd_out, struct hfd_err *err);
/**
 * Finds out whether both addresses are free, where they name a port. Nothing stays open.
 * @return HFD_OK, HFD_INVALID, HFD_IO (one is in use, or cannot be had)
 */
HFD_MUST_CHECK hfd_rc hfd_addresses_probe(const struct hfd_settings *s, struct hfd_err *err);
/** Returns the path of a Unix socket; NULL for other addresses. */
const char *hfd_address_path(const struct hfd_address *e);
/** Returns the port that a socket is bound to; 0 if there is none. */
int hfd_address_port(int fd);

#endif
