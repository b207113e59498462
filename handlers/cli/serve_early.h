/*
 * The probes of a server that waits for its database. The ops listener answers /livez with 200 and
 * /readyz with 503 before the other parts are open. So no orchestrator restarts it. Thread: main.
 */
#ifndef HFD_CLI_SERVE_EARLY_H
#define HFD_CLI_SERVE_EARLY_H

#include "handlers/http/server.h"

struct hfd_serve_early {
    struct hfd_app app;
    struct hfd_server *server; /* NULL = none */
};

/**
 * Opens the ops listener for probes and metrics alone. With SQLite it opens none: no database is
 * away, or shared with a server that migrates it.
 * @param settings  outlives it
 * @return HFD_OK, HFD_INVALID, HFD_IO (an address in use), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_serve_early_open(struct hfd_serve_early *early,
                                           const struct hfd_settings *settings,
                                           struct hfd_err *err);
/** Closes it, once the server itself listens there as well. Closed already: no error. */
void hfd_serve_early_close(struct hfd_serve_early *early);

#endif
