/*
 * The ops listener of `adapter`: probes and metrics. It is there if the settings give its address.
 * Thread: main.
 */
#ifndef HFD_CLI_ADAPTER_OPS_H
#define HFD_CLI_ADAPTER_OPS_H

#include "handlers/cli/serve_hypershift.h"
#include "handlers/http/server.h"

struct hfd_adapter_ops {
    struct hfd_serve_hypershift *hypershift;
    struct hfd_app app;
    struct hfd_server *server; /* NULL = none */
};

/**
 * Opens the listener, if `ops_listen` is set. It borrows both until hfd_adapter_ops_close.
 * @return HFD_OK, HFD_INVALID (an address or certificate), HFD_IO (in use), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_adapter_ops_open(struct hfd_adapter_ops *ops,
                                           const struct hfd_settings *settings,
                                           struct hfd_serve_hypershift *hypershift,
                                           struct hfd_err *err);
/** Looks at the files of tls.*. @param forced  at SIGHUP */
void hfd_adapter_ops_watch(struct hfd_adapter_ops *ops, bool forced);
void hfd_adapter_ops_close(struct hfd_adapter_ops *ops);

#endif
