/* The SQL is the portable subset. Thread: that of the transaction. */
#include "store/orphan_io.h"
#include "store/unit.h"
#include "store/rows_orphan.h"

/* clang-format off */
#define ORPHAN_FROM \
    " FROM fleet_label l JOIN fleet f ON f.seq = l.fleet_seq" \
    " WHERE l.kind = ?1 AND l.key = ?2 AND NOT EXISTS (SELECT 1 FROM part p WHERE p.fleet_id = f.id)"

static const char sql_orphans[] =
    "SELECT " HFD_ORPHAN_COLUMNS("f.", "l.value") ORPHAN_FROM " ORDER BY l.value, l.created_us, l.fleet_seq LIMIT ?3";
static const char sql_orphans_of[] =
    "SELECT /*empty: fleet_label.value = ?4, part*/ " HFD_ORPHAN_COLUMNS("f.", "l.value") ORPHAN_FROM " AND l.value = ?4 ORDER BY l.created_us, l.fleet_seq LIMIT ?3";
/* clang-format on */

static void read_orphan(struct hfd_row_in *in, void *out)
{
    hfd_row_orphan(in, out);
}

static const struct hfd_row_form orphan_form = {"HyperFleet resource", read_orphan,
                                                sizeof(struct hfd_orphan_row)};

hfd_rc hfd_orphan_row_list(struct hfd_txn *tx, const struct hfd_orphan_query *query,
                           struct hfd_arena *mem, struct hfd_orphan_list *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    struct hfd_row_list list;
    hfd_rc rc;

    *out = (struct hfd_orphan_list){.count = 0};
    rc = hfd_unit_write(tx, err);
    if (rc == HFD_OK)
        rc =
            hfd_db_prepare(tx->db, query->value.p != NULL ? sql_orphans_of : sql_orphans, &st, err);
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, query->kind);
    hfd_stmt_text(st, 2, hfd_row_some(query->key));
    hfd_stmt_i64(st, 3, query->limit);
    if (query->value.p != NULL)
        hfd_stmt_text(st, 4, query->value);
    rc = hfd_row_all(st, &orphan_form, mem, &list, err);
    out->rows = list.rows;
    out->count = list.count;
    return rc;
}
