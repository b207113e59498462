#include "store/rows_fleet_sums.h"

#include "store/row_walk.h"

/* clang-format off */
static const char sql_fleet_keys[] =
    "SELECT id, '' FROM fleet WHERE id > ?1 AND ?2 = '' ORDER BY id LIMIT 100";
static const char sql_fleet_open[] =
    "SELECT id, '' FROM fleet WHERE id > ?1 AND ?2 = '' AND sum IS NULL ORDER BY id LIMIT 100";
static const char sql_fleet_fill[] =
    "UPDATE fleet SET sum = ?2, doc_sum = ?3 WHERE id = ?1";
/* clang-format on */

const struct hfd_sum_table hfd_fleet_sums = {
    "fleet", &hfd_fleet_form, sql_fleet_keys, sql_fleet_open, hfd_fleet_get_sql, sql_fleet_fill, 1};
