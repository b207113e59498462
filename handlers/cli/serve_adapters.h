/* The adapters that run inside `serve`, each with its thread. Thread: main. */
#ifndef HFD_CLI_SERVE_ADAPTERS_H
#define HFD_CLI_SERVE_ADAPTERS_H

#include "driver/adapters/aging.h"
#include "driver/adapters/demo.h"
#include "handlers/cli/serve_hypershift.h"

struct hfd_serve_adapters {
    struct hfd_aging *aging;
    struct hfd_demo *demo;
    struct hfd_serve_hypershift hypershift; /* opened and closed by its own functions */
};

struct hfd_serve_adapters_parts {
    const struct hfd_settings *settings;
    struct hfd_store *store;
    const struct hfd_driver *driver;
    const struct hfd_clock *clock;
    struct hfd_keeper *keeper; /* NULL = the only server */
};

/**
 * Starts those that the settings turn on. If one does not start, stops the others.
 * @return HFD_OK, HFD_INVALID, HFD_IO, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_serve_adapters_start(struct hfd_serve_adapters *a,
                                               const struct hfd_serve_adapters_parts *parts,
                                               struct hfd_err *err);
/** Stops them. */
void hfd_serve_adapters_stop(struct hfd_serve_adapters *a);

#endif
