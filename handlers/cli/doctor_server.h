/* The part of `doctor` that asks a server over the network. Thread: main. */
#ifndef HFD_CLI_DOCTOR_SERVER_H
#define HFD_CLI_DOCTOR_SERVER_H

#include "handlers/cli/ask.h"
#include "handlers/cli/doctor_lines.h"

/**
 * Checks what a client can see of a server, and says what only its machine can check. It changes
 * nothing. Requests that show a scope name a cluster that does not exist.
 * @return OK; USAGE (a URL or the token file cannot be used), INTERNAL: said on stderr
 */
enum hfd_exit hfd_doctor_server(struct hfd_doctor_lines *l, const struct hfd_cli_address *a);

#endif
