/* The handlers of probes and metrics. Thread: loop. */
#ifndef HFD_HTTP_OPS_H
#define HFD_HTTP_OPS_H

#include "handlers/http/http.h"

/** Handlers. */
void hfd_ops_live(struct hfd_exchange *x);
void hfd_ops_health(struct hfd_exchange *x);
void hfd_ops_ready(struct hfd_exchange *x);
void hfd_ops_metrics(struct hfd_exchange *x);

/** Give the exchange to the status page. */
void hfd_ops_home(struct hfd_exchange *x);
void hfd_ops_resource(struct hfd_exchange *x);
void hfd_ops_file(struct hfd_exchange *x);

#endif
