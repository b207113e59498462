/* Signals from server to server on one database: LISTEN and NOTIFY, on a connection of their own.
 */
#ifndef HFD_STORE_POSTGRES_SIGNAL_H
#define HFD_STORE_POSTGRES_SIGNAL_H

#include "store/postgres/conn.h"

/** hfd_db_signal. */
HFD_MUST_CHECK hfd_rc hfd_pg_signal(struct hfd_db *db, const struct hfd_db_signal *signal,
                                    bool *heard, struct hfd_err *err);

#endif
