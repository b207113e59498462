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

/**
 * Connects db->conn to the first host that takes writes, beginning with db->host, and sets db->host
 * to it. The next host is asked as soon as one refuses, or has been silent for a quarter of a
 * second. While one is silent, the others are asked again: a standby may become the primary. It
 * fails once each host has refused, or was silent for store.connect_timeout.
 * @return HFD_OK, HFD_AWAY, HFD_INVALID (the URL, the user, the password, the database), HFD_IO
 * (the password's file), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_pg_reach(struct hfd_db *db, struct hfd_err *err);

#endif
