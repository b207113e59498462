/*
 * The addresses of the two listeners, and their listening sockets. Refuses addresses that are not
 * loopback, because there is no authentication. Thread: start-up.
 */
#ifndef HFD_HTTP_ADDRESS_H
#define HFD_HTTP_ADDRESS_H

#include <sys/socket.h>

#include "handlers/http/http.h"

struct hfd_address {
    struct sockaddr_storage addr;
    socklen_t len;
};

/**
 * Parses listen and ops_listen, and checks that both are loopback and differ.
 * @return HFD_OK, HFD_INVALID (the message names the setting)
 */
HFD_MUST_CHECK hfd_rc hfd_addresses_check(const struct hfd_settings *s,
                                          struct hfd_address out[HFD_LISTENER_COUNT],
                                          struct hfd_err *err);
/**
 * Opens a listening socket.
 * @param which   names the setting in errors
 * @param fd_out  gives; -1 unless HFD_OK
 * @return HFD_OK, HFD_IO
 */
HFD_MUST_CHECK hfd_rc hfd_address_listen(const struct hfd_address *e, const struct hfd_settings *s,
                                         enum hfd_listener which, int *fd_out, struct hfd_err *err);
/** Returns the port that a socket is bound to; 0 if there is none. */
int hfd_address_port(int fd);

#endif
