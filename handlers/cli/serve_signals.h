/*
 * The signals of the server: blocked in every thread, read by the main thread. A second one ends
 * the process at once. Thread: main.
 */
#ifndef HFD_CLI_SERVE_SIGNALS_H
#define HFD_CLI_SERVE_SIGNALS_H

#include <stdint.h>

/** Blocks the signals, for this thread and those that it starts later. */
void hfd_serve_signals_block(void);
/** Returns a descriptor that the signals are read from, or -1 with errno. The caller closes it. */
int hfd_serve_signals_open(void);
/** Reads one signal. Returns its number; 0 if there was none. */
uint32_t hfd_serve_signals_read(int fd);
/** From now on SIGTERM or SIGINT ends the process at once, and SIGALRM does. */
void hfd_serve_signals_arm_second(int fd);

#endif
