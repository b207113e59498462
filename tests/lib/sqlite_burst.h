/* Bursts of store/postgres/gather.h on SQLite, one statement after the other. */
#ifndef HFD_TESTS_SQLITE_BURST_H
#define HFD_TESTS_SQLITE_BURST_H

#include "store/postgres/gather.h"

hfd_rc sqlite_burst(struct hfd_db *inner, struct hfd_burst *burst, struct hfd_err *err);

#endif
