/* The SQL is the portable subset. Thread: that of the transaction. */
#include "store/rows_part.h"

#include "store/row_io.h"
#include "store/row_sum.h"
#include "store/row_walk.h"
#include "store/unit.h"

/* clang-format off */
#define PART_COLUMNS "guresid, fleet_id, kind, name, generation, leaving, pending, sum"

static const char sql_part_list[] =
    "SELECT " PART_COLUMNS " FROM part WHERE guresid = ?1 ORDER BY kind, name, fleet_id";
static const char sql_part_get[] =
    "SELECT " PART_COLUMNS " FROM part WHERE guresid = ?1 AND fleet_id = ?2";
static const char sql_part_by_fleet[] =
    "SELECT " PART_COLUMNS " FROM part WHERE fleet_id = ?1 ORDER BY guresid LIMIT 1";
static const char sql_part_all_of[] =
    "SELECT " PART_COLUMNS " FROM part WHERE fleet_id = ?1";
static const char sql_part_put[] =
    "INSERT INTO part (" PART_COLUMNS ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
    " ON CONFLICT (guresid, fleet_id) DO UPDATE SET kind = excluded.kind, name = excluded.name,"
    " generation = excluded.generation, leaving = excluded.leaving, pending = excluded.pending, sum = excluded.sum";
static const char sql_part_delete[] =
    "DELETE FROM part WHERE guresid = ?1 AND fleet_id = ?2";
static const char sql_part_delete_all[] =
    "DELETE FROM part WHERE guresid = ?1";
static const char sql_part_keys[] =
    "SELECT guresid, fleet_id FROM part WHERE (guresid, fleet_id) > (?1, ?2) ORDER BY guresid, fleet_id LIMIT 100";
static const char sql_part_open[] =
    "SELECT guresid, fleet_id FROM part WHERE (guresid, fleet_id) > (?1, ?2) AND sum IS NULL ORDER BY guresid, fleet_id LIMIT 100";
static const char sql_part_fill[] =
    "UPDATE part SET sum = ?3 WHERE guresid = ?1 AND fleet_id = ?2";
/* clang-format on */

/* A new text goes last: row_sum.h. */
static const size_t part_texts[] = {
    offsetof(struct hfd_part_row, guresid),
    offsetof(struct hfd_part_row, fleet_id),
    offsetof(struct hfd_part_row, name),
};

#define PART_TEXTS (sizeof(part_texts) / sizeof(part_texts[0]))

static int64_t sum_of(const struct hfd_part_row *row)
{
    const int64_t numbers[] = {row->kind, row->generation, row->leaving, row->pending};

    return hfd_row_sum(&(struct hfd_row_values){row, part_texts, PART_TEXTS, numbers,
                                                sizeof(numbers) / sizeof(numbers[0])});
}

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
    hfd_row_check(in, sum_of(row), &(struct hfd_row_name){"part", row->guresid, row->fleet_id});
}

static const struct hfd_row_form part_form = {"part", read_part, sizeof(struct hfd_part_row)};

/* ---- how rows are kept ---- */

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
    .text_count = PART_TEXTS,
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
    hfd_stmt_i64(st, 8, sum_of(row));
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

/* The HyperFleet id is in the key: a row goes, and another one comes. */
static hfd_rc refer_part(struct hfd_txn *tx, const struct hfd_part_row *row, hfd_slice to,
                         struct hfd_err *err)
{
    struct hfd_part_row new = *row;
    hfd_rc rc = hfd_part_row_delete(tx, row->guresid, row->fleet_id, err);

    new.fleet_id = to;
    return rc == HFD_OK ? hfd_part_row_put(tx, &new, err) : rc;
}

hfd_rc hfd_part_row_refer(struct hfd_txn *tx, hfd_slice from, hfd_slice to, struct hfd_arena *mem,
                          struct hfd_err *err)
{
    const struct hfd_part_row *rows;
    struct hfd_row_list list;
    struct hfd_stmt *st;
    hfd_rc rc = hfd_unit_write_table(tx, HFD_UNIT_PART, err);

    if (rc == HFD_OK)
        rc = hfd_db_prepare(tx->db, sql_part_all_of, &st, err);
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(from));
    rc = hfd_row_all(st, &part_form, mem, &list, err);
    rows = list.rows;
    for (size_t i = 0; rc == HFD_OK && i < list.count; i++)
        rc = refer_part(tx, &rows[i], to, err);
    return rc;
}

hfd_rc hfd_part_row_follow(struct hfd_txn *tx, const char *via, hfd_slice key, struct hfd_err *err)
{
    return hfd_db_follow(tx->db, &(struct hfd_db_follow){via, sql_part_list}, key, err);
}

hfd_rc hfd_part_row_follow_fleet(struct hfd_txn *tx, const char *via, hfd_slice key,
                                 struct hfd_err *err)
{
    return hfd_db_follow(tx->db, &(struct hfd_db_follow){via, sql_part_by_fleet}, key, err);
}

/* ---- checksums ---- */

const struct hfd_sum_table hfd_part_sums = {
    "part", &part_form, sql_part_keys, sql_part_open, sql_part_get, sql_part_fill, 2};
