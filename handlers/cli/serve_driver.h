/* The driver that the settings describe, for `serve`. Thread: main. */
#ifndef HFD_CLI_SERVE_DRIVER_H
#define HFD_CLI_SERVE_DRIVER_H

#include "driver/core/driver.h"
#include "handlers/cli/cli.h"

/**
 * Fills a driver from the settings and attaches it. Borrows from the settings; their memory holds
 * the output rules.
 * @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_serve_driver_init(struct hfd_driver *d, struct hfd_settings *s,
                                            const struct hfd_keyring *ring, struct hfd_err *err);

#endif
