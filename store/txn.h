/* What a transaction function works with. Opaque to the domain, which only passes it on to store/rows.h. */
#ifndef HFD_STORE_TXN_H
#define HFD_STORE_TXN_H

#include "store/db.h"

struct hfd_txn {
    struct hfd_db *db;
    bool writable; /* asserted by every row function that writes */
};

#endif
