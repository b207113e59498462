/* What `doctor` looks at besides its own file. Thread: main. */
#ifndef HFD_CLI_DOCTOR_H
#define HFD_CLI_DOCTOR_H

#include "handlers/cli/cli.h"

/**
 * Asks the remote HyperFleet of the settings once, as the server would, and adds one line that says
 * what came of it.
 * @return whether all is well: it was reached, its certificate verified, our credentials were
 * taken, and it is a HyperFleet
 */
bool hfd_doctor_remote(const struct hfd_settings *s, struct hfd_buf *out);

#endif
