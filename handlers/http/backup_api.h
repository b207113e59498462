/* GET /admin/backup on the ops listener: streams an online copy of the store. Thread: loop. */
#ifndef HFD_HTTP_BACKUP_API_H
#define HFD_HTTP_BACKUP_API_H

#include "handlers/http/http.h"

/** Handler. */
void hfd_backup_api(struct hfd_exchange *x);

#endif
