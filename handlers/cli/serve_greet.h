/*
 * The form of the server's log, and its greeting to a person at a terminal.
 *
 * The signals of the server: blocked in every thread, read by the main thread. A second one ends
 * the process at once.
 *
 * The file DATA/addresses: the addresses of the listeners while the server runs, one a line, the
 * main one first. Commands on this machine read it (ask.h). Thread: main.
 */
#ifndef HFD_CLI_SERVE_GREET_H
#define HFD_CLI_SERVE_GREET_H

#include "handlers/cli/cli.h"
#include "handlers/settings/settings.h"

#include <stdint.h>

struct hfd_server;

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

/** Blocks the signals, for this thread and those that it starts later. */
void hfd_serve_signals_block(void);
/** Returns a descriptor that the signals are read from, or -1 with errno. The caller closes it. */
int hfd_serve_signals_open(void);
/** Reads one signal. Returns its number; 0 if there was none. */
uint32_t hfd_serve_signals_read(int fd);
/** From now on SIGTERM or SIGINT ends the process at once, and SIGALRM does. */
void hfd_serve_signals_arm_second(int fd);

#endif
