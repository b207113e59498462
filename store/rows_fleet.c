/* The SQL is the portable subset. Thread: that of the transaction. */
#include "store/rows_fleet.h"

#include "store/fleet_children.h"
#include "store/fleet_name.h"
#include "store/number.h"
#include "store/row_cache.h"
#include "store/row_io.h"
#include "store/row_sum.h"
#include "store/rows_fleet_sums.h"
#include "store/rows_report.h"
#include "store/totals.h"
#include "store/unit.h"

/* clang-format off */
#define FLEET_COLUMNS_GIVEN \
    "id, kind, owner_id, name, generation, spec, labels, conditions, ready, ready_seen_us, pending_us, told, created_us, updated_us, " \
    "deleted_us, created_by, updated_by, deleted_by, sum, doc_sum"
#define FLEET_COLUMNS "seq, " FLEET_COLUMNS_GIVEN

const char hfd_fleet_get_sql[] =
    "SELECT " FLEET_COLUMNS " FROM fleet WHERE id = ?1";
static const char sql_fleet_at[] =
    "SELECT " FLEET_COLUMNS " FROM fleet WHERE seq = ?1";
static const char sql_fleet_last[] =
    "SELECT seq FROM fleet ORDER BY seq DESC LIMIT 1";
static const char sql_fleet_insert[] = /* without RETURNING, which makes SQLite copy each page that it changes */
    "INSERT INTO fleet (" FLEET_COLUMNS ")"
    " VALUES (?18, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?21, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?19, ?20) ON CONFLICT DO NOTHING";
static const char sql_fleet_update[] =
    "UPDATE fleet SET name = ?2, generation = ?3, spec = ?4, labels = ?5, conditions = ?6, ready = ?7, ready_seen_us = ?8, told = ?13, pending_us = ?16,"
    " updated_us = ?9, deleted_us = ?10, updated_by = ?11, deleted_by = ?12,"
    " sum = ?14, doc_sum = ?15 WHERE id = ?1";
static const char sql_fleet_judged[] = /* a column that is set is written to its indexes, changed or not */
    "UPDATE fleet SET conditions = ?2, told = ?3, sum = ?4, doc_sum = ?5 WHERE id = ?1";
static const char sql_fleet_judged_moved[] =
    "UPDATE fleet SET conditions = ?2, told = ?3, sum = ?4, doc_sum = ?5, ready = ?6, ready_seen_us = ?7, pending_us = ?8 WHERE id = ?1";
static const char sql_fleet_delete[] =
    "DELETE FROM fleet WHERE id = ?1";
static const char sql_fleet_kind[] =
    "SELECT kind FROM fleet WHERE id = ?1";
static const char sql_fleet_by_name[] =
    "SELECT " FLEET_COLUMNS " FROM fleet WHERE kind = ?1 AND owner_id = ?2 AND name = ?3 AND deleted_us = 0";
static const char sql_fleet_children[] =
    "SELECT seq, id, kind, owner_id, name, generation, '{}', '{}', '[]', ready, ready_seen_us, pending_us, told, created_us, updated_us,"
    " deleted_us, created_by, updated_by, deleted_by, sum, NULL FROM fleet WHERE owner_id = ?1 AND owner_id <> '' ORDER BY created_us, seq";
static const char sql_fleet_pending[] =
    "SELECT " FLEET_COLUMNS " FROM fleet WHERE ready = 0 AND (created_us, seq) > (?1, ?2)"
    " ORDER BY created_us, seq LIMIT ?3";

/* ?1, the time, takes part so that both statements have the same parameters. */
static const char sql_fleet_all[] =
    "SELECT " FLEET_COLUMNS " FROM fleet WHERE seq > ?2 AND ?1 >= 0 ORDER BY seq LIMIT ?3";
/* clang-format on */

const size_t hfd_fleet_texts[HFD_FLEET_TEXTS] = {
    offsetof(struct hfd_fleet_row, id),         offsetof(struct hfd_fleet_row, owner_id),
    offsetof(struct hfd_fleet_row, name),       offsetof(struct hfd_fleet_row, created_by),
    offsetof(struct hfd_fleet_row, updated_by), offsetof(struct hfd_fleet_row, deleted_by),
    offsetof(struct hfd_fleet_row, spec),       offsetof(struct hfd_fleet_row, labels),
    offsetof(struct hfd_fleet_row, conditions),
};
#define HEAD_TEXTS 6u

int64_t hfd_fleet_sum(const struct hfd_fleet_row *row)
{
    const int64_t numbers[] = {row->kind,          row->generation,    row->ready,
                               row->ready_seen_us, row->observer_idle, row->created_us,
                               row->updated_us,    row->deleted_us,    row->pending_us};

    return hfd_row_sum(&(struct hfd_row_values){row, hfd_fleet_texts, HEAD_TEXTS, numbers,
                                                sizeof(numbers) / sizeof(numbers[0])});
}

int64_t hfd_fleet_doc_sum(const struct hfd_fleet_row *row)
{
    return hfd_row_sum(&(struct hfd_row_values){row, hfd_fleet_texts + HEAD_TEXTS,
                                                HFD_FLEET_TEXTS - HEAD_TEXTS, NULL, 0});
}

/* Does not check the documents. */
static void read_head(struct hfd_row_in *in, void *out)
{
    struct hfd_fleet_row *row = out;

    row->seq = hfd_row_i64(in);
    row->id = hfd_row_text(in);
    row->kind = hfd_row_kind(in);
    row->owner_id = hfd_row_text(in);
    row->name = hfd_row_text(in);
    row->generation = hfd_row_i64(in);
    row->spec = hfd_row_text(in);
    row->labels = hfd_row_text(in);
    row->conditions = hfd_row_text(in);
    row->ready = hfd_row_i64(in) != 0;
    row->ready_seen_us = hfd_row_i64(in);
    row->pending_us = hfd_row_i64(in);
    row->observer_idle = hfd_row_i64(in);
    row->created_us = hfd_row_i64(in);
    row->updated_us = hfd_row_i64(in);
    row->deleted_us = hfd_row_i64(in);
    row->created_by = hfd_row_text(in);
    row->updated_by = hfd_row_text(in);
    row->deleted_by = hfd_row_text(in);
    hfd_row_check(in, hfd_fleet_sum(row), &(struct hfd_row_name){"fleet", row->id, HFD_SLICE_NONE});
}

static void read_fleet(struct hfd_row_in *in, void *out)
{
    const struct hfd_fleet_row *row = out;

    read_head(in, out);
    hfd_row_check(in, hfd_fleet_doc_sum(row),
                  &(struct hfd_row_name){"fleet", row->id, HFD_SLICE_NONE});
}

const struct hfd_row_form hfd_fleet_form = {"HyperFleet resource", read_fleet,
                                            sizeof(struct hfd_fleet_row)};
static const struct hfd_row_form head_form = {"HyperFleet resource", read_head,
                                              sizeof(struct hfd_fleet_row)};

static hfd_rc all_fleet(struct hfd_stmt *st, const struct hfd_row_form *form, struct hfd_arena *mem,
                        struct hfd_fleet_list *out, struct hfd_err *err)
{
    struct hfd_row_list list;
    hfd_rc rc;

    rc = hfd_row_all(st, form, mem, &list, err);
    out->rows = list.rows;
    out->count = list.count;
    return rc;
}

/* ---- how rows are kept ---- */

static struct hfd_unit_key key_of(const void *row)
{
    return (struct hfd_unit_key){((const struct hfd_fleet_row *)row)->id, HFD_SLICE_NONE};
}

static hfd_rc write_kept(struct hfd_txn *tx, const struct hfd_kept *kept, struct hfd_err *err);

static const struct hfd_unit_form kept_form = {
    .table = HFD_UNIT_FLEET,
    .what = "HyperFleet resource",
    .size = sizeof(struct hfd_fleet_row),
    .texts = hfd_fleet_texts,
    .text_count = HFD_FLEET_TEXTS,
    .key_of = key_of,
    .write = write_kept,
};

#define CHANGE_JUDGED 1u /* conditions and told */
#define CHANGE_MOVED 2u  /* also ready, ready_seen_us and pending_us */
#define CHANGE_ALL 4u    /* all that hfd_fleet_row_update writes */

static struct hfd_kept *find(const struct hfd_txn *tx, hfd_slice id)
{
    return hfd_unit_find(tx, &kept_form, &(struct hfd_unit_key){id, HFD_SLICE_NONE});
}

/* ---- reading ---- */

hfd_rc hfd_fleet_row_get(struct hfd_txn *tx, hfd_slice id, struct hfd_arena *mem,
                         struct hfd_fleet_row *out, struct hfd_err *err)
{
    const struct hfd_unit_key key = {id, HFD_SLICE_NONE};
    const struct hfd_kept *kept = find(tx, id);
    struct hfd_stmt *st;
    hfd_rc rc;

    if (kept != NULL)
        return hfd_unit_give(kept, mem, out, err);
    rc = hfd_db_prepare(tx->db, hfd_fleet_get_sql, &st, err);
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(id));
    rc = hfd_row_one(st, &hfd_fleet_form, mem, out, err);
    if (rc == HFD_OK)
        (void)hfd_unit_keep(tx, &kept_form, out);
    else if (rc == HFD_NOT_FOUND)
        (void)hfd_unit_keep_absent(tx, &kept_form, &key);
    return rc;
}

hfd_rc hfd_fleet_row_at(struct hfd_txn *tx, int64_t seq, struct hfd_arena *mem,
                        struct hfd_fleet_row *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_unit_write_table(tx, HFD_UNIT_FLEET, err);

    if (rc == HFD_OK)
        rc = hfd_db_prepare(tx->db, sql_fleet_at, &st, err);
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, seq);
    return hfd_row_one(st, &hfd_fleet_form, mem, out, err);
}

hfd_rc hfd_fleet_row_by_name(struct hfd_txn *tx, const struct hfd_fleet_name *name,
                             struct hfd_arena *mem, struct hfd_fleet_row *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_unit_write_table(tx, HFD_UNIT_FLEET, err);

    if (rc == HFD_OK)
        rc = hfd_db_prepare(tx->db, sql_fleet_by_name, &st, err);
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, name->kind);
    hfd_stmt_text(st, 2, hfd_row_some(name->owner_id));
    hfd_stmt_text(st, 3, hfd_row_some(name->name));
    return hfd_row_one(st, &hfd_fleet_form, mem, out, err);
}

static hfd_rc read_children(struct hfd_txn *tx, hfd_slice cluster_id, struct hfd_arena *mem,
                            struct hfd_row_list *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    const hfd_rc rc = hfd_db_prepare(tx->db, sql_fleet_children, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(cluster_id));
    return hfd_row_all(st, &head_form, mem, out, err);
}

/* Returns true when the database has one of the children in an older form. */
static bool child_has_changed(const struct hfd_txn *tx, hfd_slice cluster_id)
{
    const struct hfd_kept *k = tx->unit != NULL ? tx->unit->tables[HFD_UNIT_FLEET] : NULL;

    while (k != NULL &&
           (k->change == 0 ||
            !hfd_slice_eq(((const struct hfd_fleet_row *)k->row)->owner_id, cluster_id)))
        k = k->in_table;
    return k != NULL;
}

hfd_rc hfd_fleet_row_children(struct hfd_txn *tx, hfd_slice cluster_id, struct hfd_arena *mem,
                              struct hfd_fleet_list *out, struct hfd_err *err)
{
    const struct hfd_unit_list children = {.form = &hfd_fleet_child_form,
                                           .first = cluster_id,
                                           .mem = mem,
                                           .heads = true,
                                           .read = read_children};
    struct hfd_row_list list = {NULL, 0};
    hfd_rc rc = HFD_OK;

    if (!hfd_unit_has_all(tx, &hfd_fleet_child_form, cluster_id) &&
        child_has_changed(tx, cluster_id))
        rc = hfd_unit_write_table(tx, HFD_UNIT_FLEET, err);
    if (rc == HFD_OK)
        rc = hfd_unit_list(tx, &children, &list, err);
    *out = (struct hfd_fleet_list){list.rows, list.count, (int64_t)list.count};
    return rc;
}

hfd_rc hfd_fleet_row_pending(struct hfd_txn *tx, const struct hfd_pending_query *query,
                             struct hfd_arena *mem, struct hfd_fleet_list *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc;

    *out = (struct hfd_fleet_list){.count = 0};
    rc = hfd_unit_write_table(tx, HFD_UNIT_FLEET, err);
    if (rc == HFD_OK)
        rc = hfd_db_prepare(tx->db, query->all ? sql_fleet_all : sql_fleet_pending, &st, err);
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, query->after_us);
    hfd_stmt_i64(st, 2, query->after_seq);
    hfd_stmt_i64(st, 3, query->limit);
    rc = all_fleet(st, &hfd_fleet_form, mem, out, err);
    out->total = (int64_t)out->count;
    return rc;
}

hfd_rc hfd_fleet_row_follow(struct hfd_txn *tx, const char *via, hfd_slice key, struct hfd_err *err)
{
    return hfd_db_follow(tx->db, &(struct hfd_db_follow){via, hfd_fleet_get_sql}, key, err);
}

hfd_rc hfd_fleet_row_follow_children(struct hfd_txn *tx, const char *via, hfd_slice key,
                                     struct hfd_err *err)
{
    return hfd_db_follow(tx->db, &(struct hfd_db_follow){via, sql_fleet_children}, key, err);
}

/* ---- writing ---- */

/* The number of the next resource. Numbers rise as long as the store is open. */
static hfd_rc next_seq(struct hfd_txn *tx, int64_t *out, struct hfd_err *err)
{
    return hfd_number_next(tx, tx->unit != NULL ? &tx->unit->seqs : NULL, sql_fleet_last, out, err);
}

/* Written at once: only the database knows whether the name is taken. */
hfd_rc hfd_fleet_row_insert(struct hfd_txn *tx, struct hfd_fleet_row *row, struct hfd_err *err)
{
    int64_t changed = 0;
    struct hfd_kept *kept;
    struct hfd_stmt *st;
    hfd_rc rc = hfd_unit_write_table(tx, HFD_UNIT_FLEET, err); /* the name may have become free */

    row->seq = 0;
    if (rc == HFD_OK)
        rc = hfd_fleet_name_check(tx, row, find(tx, row->id), find(tx, row->owner_id), err);
    if (rc == HFD_OK)
        rc = next_seq(tx, &row->seq, err);
    if (rc == HFD_OK)
        rc = hfd_row_write(tx, sql_fleet_insert, &st, err);
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(row->id));
    hfd_stmt_i64(st, 2, row->kind);
    hfd_stmt_text(st, 3, hfd_row_some(row->owner_id));
    hfd_stmt_text(st, 4, hfd_row_some(row->name));
    hfd_stmt_i64(st, 5, row->generation);
    hfd_stmt_text(st, 6, hfd_row_some(row->spec));
    hfd_stmt_text(st, 7, hfd_row_some(row->labels));
    hfd_stmt_text(st, 8, hfd_row_some(row->conditions));
    hfd_stmt_i64(st, 9, row->ready);
    hfd_stmt_i64(st, 10, row->ready_seen_us);
    hfd_stmt_i64(st, 11, row->observer_idle);
    hfd_stmt_i64(st, 12, row->created_us);
    hfd_stmt_i64(st, 13, row->updated_us);
    hfd_stmt_i64(st, 14, row->deleted_us);
    hfd_stmt_text(st, 15, hfd_row_some(row->created_by));
    hfd_stmt_text(st, 16, hfd_row_some(row->updated_by));
    hfd_stmt_text(st, 17, hfd_row_some(row->deleted_by));
    hfd_stmt_i64(st, 18, row->seq);
    hfd_stmt_i64(st, 19, hfd_fleet_sum(row));
    hfd_stmt_i64(st, 20, hfd_fleet_doc_sum(row));
    hfd_stmt_i64(st, 21, row->pending_us);
    rc = hfd_stmt_run(st, &changed, err);
    if (rc == HFD_OK && changed == 0)
        rc = hfd_fleet_name_taken(row, err);
    if (rc != HFD_OK)
        return rc;
    kept = hfd_unit_keep(tx, &kept_form, row);
    if (kept != NULL)
        kept->fresh = true;
    hfd_fleet_child_keep(tx, row);
    return hfd_totals_add(tx, &(struct hfd_count_key){.kind = row->kind}, 1, err);
}

static hfd_rc run_update(struct hfd_stmt *st, struct hfd_err *err)
{
    int64_t changed;
    hfd_rc rc = hfd_stmt_run(st, &changed, err);

    if (rc == HFD_OK && changed == 0)
        rc = hfd_fail(err, HFD_NOT_FOUND, "no such HyperFleet resource is stored");
    return rc;
}

static hfd_rc write_all(struct hfd_txn *tx, const struct hfd_fleet_row *row, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_row_write(tx, sql_fleet_update, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(row->id));
    hfd_stmt_text(st, 2, hfd_row_some(row->name));
    hfd_stmt_i64(st, 3, row->generation);
    hfd_stmt_text(st, 4, hfd_row_some(row->spec));
    hfd_stmt_text(st, 5, hfd_row_some(row->labels));
    hfd_stmt_text(st, 6, hfd_row_some(row->conditions));
    hfd_stmt_i64(st, 7, row->ready);
    hfd_stmt_i64(st, 8, row->ready_seen_us);
    hfd_stmt_i64(st, 9, row->updated_us);
    hfd_stmt_i64(st, 10, row->deleted_us);
    hfd_stmt_text(st, 11, hfd_row_some(row->updated_by));
    hfd_stmt_text(st, 12, hfd_row_some(row->deleted_by));
    hfd_stmt_i64(st, 13, row->observer_idle);
    hfd_stmt_i64(st, 14, hfd_fleet_sum(row));
    hfd_stmt_i64(st, 15, hfd_fleet_doc_sum(row));
    hfd_stmt_i64(st, 16, row->pending_us);
    return run_update(st, err);
}

static hfd_rc write_judged(struct hfd_txn *tx, const struct hfd_fleet_row *row, bool moved,
                           struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_row_write(tx, moved ? sql_fleet_judged_moved : sql_fleet_judged, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(row->id));
    hfd_stmt_text(st, 2, hfd_row_some(row->conditions));
    hfd_stmt_i64(st, 3, row->observer_idle);
    hfd_stmt_i64(st, 4, hfd_fleet_sum(row));
    hfd_stmt_i64(st, 5, hfd_fleet_doc_sum(row));
    if (moved) {
        hfd_stmt_i64(st, 6, row->ready);
        hfd_stmt_i64(st, 7, row->ready_seen_us);
        hfd_stmt_i64(st, 8, row->pending_us);
    }
    return run_update(st, err);
}

static hfd_rc write_change(struct hfd_txn *tx, const struct hfd_fleet_row *row, unsigned change,
                           struct hfd_err *err)
{
    if ((change & CHANGE_ALL) != 0)
        return write_all(tx, row, err);
    return write_judged(tx, row, (change & CHANGE_MOVED) != 0, err);
}

static hfd_rc write_kept(struct hfd_txn *tx, const struct hfd_kept *kept, struct hfd_err *err)
{
    return write_change(tx, kept->row, kept->change, err);
}

/* Keeps the new form of a row; without room for it, it is written at once. */
static hfd_rc change_row(struct hfd_txn *tx, const struct hfd_fleet_row *new, unsigned change,
                         struct hfd_err *err)
{
    struct hfd_kept *kept = find(tx, new->id);
    const unsigned all = kept != NULL ? kept->change | change : change;

    hfd_fleet_child_keep(tx, new);
    kept = hfd_unit_keep(tx, &kept_form, new);
    if (kept == NULL)
        return write_change(tx, new, all, err);
    hfd_unit_change(tx, kept, all);
    return HFD_OK;
}

/* Gives the row as it is now. Its texts are in mem, or in the unit of work. */
static hfd_rc present_row(struct hfd_txn *tx, hfd_slice id, struct hfd_arena *mem,
                          struct hfd_fleet_row *out, struct hfd_err *err)
{
    const struct hfd_kept *kept = find(tx, id);

    if (kept == NULL)
        return hfd_fleet_row_get(tx, id, mem, out, err);
    if (kept->row == NULL)
        return hfd_fail(err, HFD_NOT_FOUND, "no such HyperFleet resource is stored");
    *out = *(const struct hfd_fleet_row *)kept->row;
    return HFD_OK;
}

/* Returns true when the update takes a name: the database must say at once if it is free. */
static bool claims_name(const struct hfd_fleet_row *was, const struct hfd_fleet_row *row)
{
    return row->deleted_us == 0 && (was->deleted_us != 0 || !hfd_slice_eq(was->name, row->name));
}

static hfd_rc write_claim(struct hfd_txn *tx, const struct hfd_fleet_row *new, struct hfd_err *err)
{
    hfd_rc rc = hfd_unit_write_table(tx, HFD_UNIT_FLEET, err); /* the name may have become free */

    if (rc == HFD_OK)
        rc = hfd_fleet_name_check(tx, new, find(tx, new->id), find(tx, new->owner_id), err);
    if (rc == HFD_OK)
        rc = write_all(tx, new, err);
    if (rc == HFD_OK)
        (void)hfd_unit_keep(tx, &kept_form, new);
    if (rc == HFD_OK)
        hfd_fleet_child_keep(tx, new);
    return rc;
}

hfd_rc hfd_fleet_row_update(struct hfd_txn *tx, const struct hfd_fleet_row *row,
                            struct hfd_err *err)
{
    struct hfd_fleet_row was, new = *row;
    struct hfd_arena mem;
    hfd_rc rc;

    hfd_arena_init(&mem, HFD_ROW_BYTES_MAX);
    rc = present_row(tx, row->id, &mem, &was, err);
    if (rc == HFD_OK) {
        new.observer_idle = 0;
        new.seq = was.seq;
        new.kind = was.kind;
        new.owner_id = was.owner_id;
        new.created_us = was.created_us;
        new.created_by = was.created_by;
        rc = claims_name(&was, row) ? write_claim(tx, &new, err)
                                    : change_row(tx, &new, CHANGE_ALL, err);
    }
    hfd_arena_fini(&mem);
    return rc;
}

hfd_rc hfd_fleet_row_judged(struct hfd_txn *tx, const struct hfd_fleet_row *row,
                            const struct hfd_fleet_row *was, struct hfd_err *err)
{
    const bool moved = row->ready != was->ready || row->ready_seen_us != was->ready_seen_us ||
                       row->pending_us != was->pending_us;
    struct hfd_fleet_row new;
    struct hfd_arena mem;
    hfd_rc rc;

    hfd_arena_init(&mem, HFD_ROW_BYTES_MAX);
    rc = present_row(tx, row->id, &mem, &new, err);
    if (rc == HFD_OK) {
        new.conditions = row->conditions;
        new.observer_idle = row->observer_idle;
        if (moved) {
            new.ready = row->ready;
            new.ready_seen_us = row->ready_seen_us;
            new.pending_us = row->pending_us;
        }
        rc = change_row(tx, &new, moved ? CHANGE_MOVED : CHANGE_JUDGED, err);
    }
    hfd_arena_fini(&mem);
    return rc;
}

static hfd_rc kind_of(struct hfd_txn *tx, hfd_slice id, int64_t *out, struct hfd_err *err)
{
    const struct hfd_kept *kept = find(tx, id);
    struct hfd_stmt *st;
    hfd_rc rc;

    *out = 0;
    if (kept != NULL && kept->row != NULL)
        *out = ((const struct hfd_fleet_row *)kept->row)->kind;
    if (kept != NULL)
        return HFD_OK;
    rc = hfd_db_prepare(tx->db, sql_fleet_kind, &st, err);
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(id));
    return hfd_row_number(st, 0, out, err);
}

/* Written at once: what is inserted later must not go with it. */
hfd_rc hfd_fleet_row_delete(struct hfd_txn *tx, hfd_slice id, struct hfd_err *err)
{
    const struct hfd_unit_key key = {id, HFD_SLICE_NONE};
    int64_t kind = 0;
    hfd_rc rc = hfd_report_row_delete_all(tx, id, err);

    if (rc == HFD_OK)
        rc = kind_of(tx, id, &kind, err);
    if (rc != HFD_OK || kind == 0)
        return rc;
    (void)hfd_unit_keep_absent(tx, &kept_form, &key);
    hfd_fleet_child_lose(tx, id);
    rc = hfd_row_run(tx, sql_fleet_delete, id, HFD_SLICE_NONE, err);
    return rc == HFD_OK
               ? hfd_totals_add(tx, &(struct hfd_count_key){.kind = (enum hfd_kind)kind}, -1, err)
               : rc;
}
