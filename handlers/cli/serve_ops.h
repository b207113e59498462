/*
 * The file DATA/ops: the address of the ops listener while the server runs. Commands on this
 * machine read it (ask.h). Thread: main.
 */
#ifndef HFD_CLI_SERVE_OPS_H
#define HFD_CLI_SERVE_OPS_H

#include "handlers/settings/settings.h"

/**
 * Writes the file, or a warning to the log.
 * @param port  that the listener got; not used for a Unix socket
 */
void hfd_serve_ops_write(struct hfd_settings *s, int port);
/** Removes the file. */
void hfd_serve_ops_remove(struct hfd_settings *s);

#endif
