#include "store/rows_prefetch.h"

#include "store/row_io.h"
#include "store/rows_report.h"
#include "store/rows_resource.h"

/* clang-format off */
static const char sql_parts_of[] =
    "SELECT fleet_id FROM part WHERE guresid = ?1";
static const char sql_clusters_of[] =
    "SELECT fleet_id FROM part WHERE guresid = ?1 AND kind = 1";
/* Of a HyperFleet resource whose observer needs each report: told is hfd_fleet_row.observer_idle. */
static const char sql_if_observed[] =
    "SELECT id FROM fleet WHERE id = ?1 AND told = 0";
static const char sql_resource_of[] =
    "SELECT p.guresid FROM fleet f JOIN part p ON p.fleet_id = f.id WHERE f.id = ?1 AND f.told = 0";
static const char sql_parts_beside[] = /* without itself, which is wanted already */
    "SELECT s.fleet_id FROM fleet f JOIN part p ON p.fleet_id = f.id JOIN part s ON s.guresid = p.guresid"
    " WHERE f.id = ?1 AND f.told = 0 AND s.fleet_id <> ?1";
static const char sql_itself[] =
    "SELECT CAST(?1 AS TEXT)";
/* clang-format on */

hfd_rc hfd_prefetch_resource(struct hfd_txn *tx, hfd_slice guresid, struct hfd_err *err)
{
    hfd_rc rc = hfd_query_follow(tx, hfd_resource_table.get, sql_itself, guresid, err);

    if (rc == HFD_OK)
        rc = hfd_query_follow(tx, hfd_part_table.list, sql_itself, guresid, err);
    if (rc == HFD_OK)
        rc = hfd_query_follow(tx, hfd_fleet_table.get, sql_parts_of, guresid, err);
    return rc == HFD_OK ? hfd_query_follow(tx, hfd_report_table.list, sql_parts_of, guresid, err)
                        : rc;
}

hfd_rc hfd_prefetch_deletion(struct hfd_txn *tx, hfd_slice guresid, struct hfd_err *err)
{
    const hfd_rc rc = hfd_prefetch_resource(tx, guresid, err);

    return rc == HFD_OK ? hfd_query_follow(tx, hfd_fleet_table.list, sql_clusters_of, guresid, err)
                        : rc;
}

hfd_rc hfd_prefetch_report(struct hfd_txn *tx, const struct hfd_prefetch_report *of,
                           struct hfd_err *err)
{
    const hfd_slice id = of->fleet_id;
    const struct hfd_report_key key = {id, of->adapter};
    struct hfd_report_row report;
    hfd_rc rc = hfd_query_follow(tx, hfd_fleet_table.get, sql_itself, of->owner_id, err);

    if (rc == HFD_OK)
        rc = hfd_query_follow(tx, hfd_fleet_table.get, sql_itself, id, err);
    if (rc == HFD_OK)
        rc = hfd_query_follow(tx, hfd_report_table.list, sql_itself, id, err);
    if (rc == HFD_OK)
        rc = hfd_part_row_follow_fleet(tx, sql_if_observed, id, err);
    if (rc == HFD_OK)
        rc = hfd_query_follow(tx, hfd_resource_table.get, sql_resource_of, id, err);
    if (rc == HFD_OK)
        rc = hfd_query_follow(tx, hfd_part_table.list, sql_resource_of, id, err);
    if (rc == HFD_OK)
        rc = hfd_query_follow(tx, hfd_fleet_table.get, sql_parts_beside, id, err);
    if (rc == HFD_OK)
        rc = hfd_query_follow(tx, hfd_report_table.list, sql_parts_beside, id, err);
    return rc == HFD_OK ? hfd_report_row_get(tx, &key, of->mem, &report, err) : rc;
}

/* ---- roots ---- */

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
