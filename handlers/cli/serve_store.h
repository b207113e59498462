/*
 * The store of `serve`: its configuration, and the wait for a database that cannot be reached at
 * the start. Thread: main.
 */
#ifndef HFD_CLI_SERVE_STORE_H
#define HFD_CLI_SERVE_STORE_H

#include "handlers/cli/cli.h"
#include "store/store.h"

/** Waits for a time. @return false: the server is to end. */
typedef bool hfd_serve_pause_fn(void *ctx, int64_t pause_us);

/**
 * Opens the store. While a PostgreSQL database cannot be reached it tries on, and logs the reason.
 * Any other failure ends the attempt: a wrong password, a database without C collation.
 * @param pause  called between two attempts
 * @param out    gives; NULL if `pause` ended the wait
 * @return OK (also with NULL), DATA, INTERNAL
 */
enum hfd_exit hfd_serve_store_open(struct hfd_settings *settings, hfd_serve_pause_fn *pause,
                                   void *ctx, struct hfd_store **out, struct hfd_err *err);

#endif
