/*
 * The handlers of the admin API on the ops listener: orphans, tokens, replicas, and an online copy
 * of the store. Thread: loop.
 */
#ifndef HFD_HTTP_ADMIN_H
#define HFD_HTTP_ADMIN_H

#include "handlers/http/http.h"

/** Handlers. */
void hfd_admin_list_orphans(struct hfd_exchange *x);
void hfd_admin_delete_orphan(struct hfd_exchange *x);

/** Handler: names, scopes and last uses of the tokens; never a hash. */
void hfd_tokens_api_list(struct hfd_exchange *x);

/** Handler: the replicas of a shared store; an empty list with SQLite. */
void hfd_replicas_api_list(struct hfd_exchange *x);

/** Handler. */
void hfd_backup_api(struct hfd_exchange *x);

#endif
