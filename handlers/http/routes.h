/* The handlers that the table in routes.c names, by the file they stand in. */
#ifndef HFD_HTTP_ROUTES_H
#define HFD_HTTP_ROUTES_H

#include "handlers/http/http.h"

/* ops.c */
void hfd_ops_live(struct hfd_exchange *x);
void hfd_ops_health(struct hfd_exchange *x);
void hfd_ops_ready(struct hfd_exchange *x);
void hfd_ops_metrics(struct hfd_exchange *x);

/* admin.c */
void hfd_admin_list_orphans(struct hfd_exchange *x);
void hfd_admin_delete_orphan(struct hfd_exchange *x);

/* docs_api.c */
void hfd_docs_openapi_json(struct hfd_exchange *x);
void hfd_docs_openapi_page(struct hfd_exchange *x);
void hfd_docs_manual(struct hfd_exchange *x);

#endif
