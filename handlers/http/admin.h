/* The handlers of the admin API on the ops listener. Thread: loop. */
#ifndef HFD_HTTP_ADMIN_H
#define HFD_HTTP_ADMIN_H

#include "handlers/http/http.h"

/** Handlers. */
void hfd_admin_list_orphans(struct hfd_exchange *x);
void hfd_admin_delete_orphan(struct hfd_exchange *x);

#endif
