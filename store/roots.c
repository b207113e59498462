#include "store/roots.h"

hfd_rc hfd_root_resource(struct hfd_txn *tx, hfd_slice guresid, struct hfd_err *err)
{
    tx->rooted = true;
    return hfd_db_root(tx->db, HFD_DB_ROOT_RESOURCE, guresid, err);
}

hfd_rc hfd_root_fleet(struct hfd_txn *tx, hfd_slice id, struct hfd_err *err)
{
    tx->rooted = true;
    return hfd_db_root(tx->db, HFD_DB_ROOT_FLEET, id, err);
}

hfd_rc hfd_roots_leave(struct hfd_txn *tx, struct hfd_err *err)
{
    return hfd_db_exclusive(tx->db, err);
}
