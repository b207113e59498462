/* The form of the server's log, and its greeting to a person at a terminal. Thread: main. */
#ifndef HFD_CLI_SERVE_GREET_H
#define HFD_CLI_SERVE_GREET_H

#include "handlers/cli/cli.h"
#include "handlers/http/server.h"

/** True for a log in text: by log.format, or for a person at a terminal. */
bool hfd_serve_logs_text(const struct hfd_settings *s);

/** A server that is ready. */
struct hfd_serve_ready {
    struct hfd_settings *settings;
    struct hfd_server *server;
    bool guarded; /* authentication is on */
};
/** Writes the address of its ops listener to the data folder, logs where it is, and greets. */
void hfd_serve_ready(const struct hfd_serve_ready *r);

/** "http://127.0.0.1:8000" with the port in use, in the memory of s; a Unix socket as it is set. */
hfd_slice hfd_serve_url(struct hfd_settings *s, bool tls, hfd_slice listen, int port);

/** Says in a sentence where the server listens and what to try, if the log is text. */
void hfd_serve_greet(const struct hfd_settings *s, hfd_slice main_url, hfd_slice ops_url);

#endif
