/*
 * Making connections. Each host of a URL has its own deadline, and a silent one does not hold the
 * others up. In asynchronous use libpq has no deadlines for its own list of hosts.
 */
#ifndef HFD_STORE_POSTGRES_CONNECT_H
#define HFD_STORE_POSTGRES_CONNECT_H

#include "store/postgres/conn.h"

/**
 * Gives item number `at` of a list with commas; the only item stands for each number.
 * @return false when there is no such item. Pure.
 */
bool hfd_pg_list_item(hfd_slice list, unsigned at, hfd_slice *out);

#endif
