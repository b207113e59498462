/* The SQL is the portable subset. Thread: that of the transaction. */
#include "store/rows_part.h"

#include "store/row_io.h"
#include "store/unit.h"

/* clang-format off */
#define PART_COLUMNS "guresid, fleet_id, kind, name, generation, leaving, pending"

static const char sql_part_list[] =
    "SELECT " PART_COLUMNS " FROM part WHERE guresid = ?1 ORDER BY kind, name, fleet_id";
static const char sql_part_by_fleet[] =
    "SELECT " PART_COLUMNS " FROM part WHERE fleet_id = ?1 ORDER BY guresid LIMIT 1";
static const char sql_part_put[] =
    "INSERT INTO part (" PART_COLUMNS ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"
    " ON CONFLICT (guresid, fleet_id) DO UPDATE SET kind = excluded.kind, name = excluded.name,"
    " generation = excluded.generation, leaving = excluded.leaving, pending = excluded.pending";
static const char sql_part_delete[] =
    "DELETE FROM part WHERE guresid = ?1 AND fleet_id = ?2";
static const char sql_part_delete_all[] =
    "DELETE FROM part WHERE guresid = ?1";
/* clang-format on */

static void read_part(struct hfd_row_in *in, void *out)
{
    struct hfd_part_row *row = out;

    row->guresid = hfd_row_text(in);
    row->fleet_id = hfd_row_text(in);
    row->kind = hfd_row_kind(in);
    row->name = hfd_row_text(in);
    row->generation = hfd_row_i64(in);
    row->leaving = hfd_row_i64(in) != 0;
    row->pending = hfd_row_i64(in) != 0;
}

static const struct hfd_row_form part_form = {"part", read_part, sizeof(struct hfd_part_row)};

/* ---- how rows are kept ---- */

static const size_t part_texts[] = {
    offsetof(struct hfd_part_row, guresid),
    offsetof(struct hfd_part_row, fleet_id),
    offsetof(struct hfd_part_row, name),
};

static struct hfd_unit_key key_of(const void *row)
{
    const struct hfd_part_row *part = row;

    return (struct hfd_unit_key){part->guresid, part->fleet_id};
}

/* The order of sql_part_list. */
static int compare(const void *a, const void *b)
{
    const struct hfd_part_row *x = a, *y = b;
    int order;

    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    order = hfd_slice_cmp(x->name, y->name);
    return order != 0 ? order : hfd_slice_cmp(x->fleet_id, y->fleet_id);
}

static hfd_rc write_kept(struct hfd_txn *tx, const struct hfd_kept *kept, struct hfd_err *err);

static const struct hfd_unit_form kept_form = {
    .table = HFD_UNIT_PART,
    .what = "part",
    .size = sizeof(struct hfd_part_row),
    .texts = part_texts,
    .text_count = sizeof(part_texts) / sizeof(part_texts[0]),
    .key_of = key_of,
    .compare = compare,
    .write = write_kept,
};

#define CHANGE_PUT 1u
#define CHANGE_DELETE 2u

/* ---- rows ---- */

static hfd_rc read_list(struct hfd_txn *tx, hfd_slice guresid, struct hfd_arena *mem,
                        struct hfd_row_list *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_db_prepare(tx->db, sql_part_list, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(guresid));
    return hfd_row_all(st, &part_form, mem, out, err);
}

hfd_rc hfd_part_row_list(struct hfd_txn *tx, hfd_slice guresid, struct hfd_arena *mem,
                         struct hfd_part_list *out, struct hfd_err *err)
{
    struct hfd_row_list list = {NULL, 0};
    hfd_rc rc =
        hfd_unit_list(tx,
                      &(struct hfd_unit_list){
                          .form = &kept_form, .first = guresid, .mem = mem, .read = read_list},
                      &list, err);

    *out = (struct hfd_part_list){list.rows, list.count};
    return rc;
}

/* The kept part of a HyperFleet resource; NULL = not known. */
static const struct hfd_kept *find_by_fleet(const struct hfd_txn *tx, hfd_slice fleet_id)
{
    const struct hfd_kept *k = tx->unit != NULL ? tx->unit->tables[HFD_UNIT_PART] : NULL;

    while (k != NULL && (k->row == NULL || !hfd_slice_eq(k->key.second, fleet_id)))
        k = k->in_table;
    return k;
}

hfd_rc hfd_part_row_by_fleet(struct hfd_txn *tx, hfd_slice fleet_id, struct hfd_arena *mem,
                             struct hfd_part_row *out, struct hfd_err *err)
{
    const struct hfd_kept *kept = find_by_fleet(tx, fleet_id);
    struct hfd_stmt *st;
    hfd_rc rc;

    if (kept != NULL)
        return hfd_unit_give(kept, mem, out, err);
    rc = hfd_unit_write_table(tx, HFD_UNIT_PART, err); /* a part may be about to go */
    if (rc == HFD_OK)
        rc = hfd_db_prepare(tx->db, sql_part_by_fleet, &st, err);
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(fleet_id));
    rc = hfd_row_one(st, &part_form, mem, out, err);
    if (rc == HFD_OK)
        (void)hfd_unit_keep(tx, &kept_form, out);
    return rc;
}

static hfd_rc write_row(struct hfd_txn *tx, const struct hfd_part_row *row, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_row_write(tx, sql_part_put, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(row->guresid));
    hfd_stmt_text(st, 2, hfd_row_some(row->fleet_id));
    hfd_stmt_i64(st, 3, row->kind);
    hfd_stmt_text(st, 4, hfd_row_some(row->name));
    hfd_stmt_i64(st, 5, row->generation);
    hfd_stmt_i64(st, 6, row->leaving);
    hfd_stmt_i64(st, 7, row->pending);
    return hfd_stmt_run(st, NULL, err);
}

static hfd_rc write_kept(struct hfd_txn *tx, const struct hfd_kept *kept, struct hfd_err *err)
{
    if (kept->row != NULL)
        return write_row(tx, kept->row, err);
    return hfd_row_run(tx, sql_part_delete, kept->key.first, kept->key.second, err);
}

hfd_rc hfd_part_row_put(struct hfd_txn *tx, const struct hfd_part_row *row, struct hfd_err *err)
{
    struct hfd_kept *kept = hfd_unit_keep(tx, &kept_form, row);

    if (kept == NULL)
        return write_row(tx, row, err);
    hfd_unit_change(tx, kept, CHANGE_PUT);
    return HFD_OK;
}

hfd_rc hfd_part_row_delete(struct hfd_txn *tx, hfd_slice guresid, hfd_slice fleet_id,
                           struct hfd_err *err)
{
    const struct hfd_unit_key key = {guresid, fleet_id};
    struct hfd_kept *kept = hfd_unit_keep_absent(tx, &kept_form, &key);

    if (kept == NULL)
        return hfd_row_run(tx, sql_part_delete, guresid, fleet_id, err);
    hfd_unit_change(tx, kept, CHANGE_DELETE);
    return HFD_OK;
}

hfd_rc hfd_part_row_delete_all(struct hfd_txn *tx, hfd_slice guresid, struct hfd_err *err)
{
    hfd_unit_lose_all(tx, &kept_form, guresid);
    return hfd_row_run(tx, sql_part_delete_all, guresid, HFD_SLICE_NONE, err);
}
