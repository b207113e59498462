/* The part of `doctor` that checks a remote. Thread: main. */
#ifndef HFD_CLI_DOCTOR_REMOTE_H
#define HFD_CLI_DOCTOR_REMOTE_H

#include "handlers/cli/cli.h"

/**
 * Sends one request to the remote as the server would, and adds the result, without an
 * end of line.
 * @return true if it was reached, its certificate is valid, our credentials were accepted, and it
 *         is a HyperFleet API
 */
bool hfd_doctor_remote(const struct hfd_settings *s, struct hfd_buf *out);

#endif
