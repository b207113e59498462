/* See rows_fleet.h. The SQL is the portable subset. Thread: that of the transaction. */
#include "store/rows_fleet.h"

#include "driver/base/arena.h"
#include "driver/base/check.h"
#include "store/kind.h"
#include "store/row_io.h"
#include "store/rows_report.h"
#include "store/rows_resource.h"
#include "store/totals.h"
#include "store/unit.h"

/* ---- names ---- */

/* Fails with HFD_CONFLICT: the name or the id is taken. */
static hfd_rc fleet_name_taken(const struct hfd_fleet_row *row, struct hfd_err *err)
{
    return hfd_fail(err, HFD_CONFLICT, "store: the name or the id of a %s is taken",
                    row->kind == HFD_KIND_CLUSTER ? "cluster" : "nodepool");
}

/*
 * Looks for the name where a write that is refused undoes the whole group. The names in a cluster
 * that the job itself has made need no look.
 * @param row    its seq is 0 when it is to be inserted
 * @param own    the kept row of its id, or NULL
 * @param owner  the kept row of its owner, or NULL
 * @return HFD_OK, HFD_CONFLICT, or as hfd_fleet_row_by_name
 */
static hfd_rc fleet_name_check(struct hfd_txn *tx, const struct hfd_fleet_row *row,
                               const struct hfd_kept *own, const struct hfd_kept *owner,
                               struct hfd_err *err)
{
    const struct hfd_fleet_name name = {row->kind, row->owner_id, row->name};
    struct hfd_fleet_row other;
    struct hfd_arena mem;
    hfd_rc rc;

    if (!hfd_db_gathers(tx->db) || (owner != NULL && owner->fresh))
        return HFD_OK;
    if (row->seq == 0 && own != NULL && own->row != NULL)
        return fleet_name_taken(row, err);
    hfd_arena_init(&mem, HFD_ROW_BYTES_MAX);
    if (tx->unit == NULL && row->seq == 0 &&
        hfd_fleet_row_get(tx, row->id, &mem, &other, NULL) == HFD_OK)
        rc = fleet_name_taken(row, err);
    else
        rc = hfd_fleet_row_by_name(tx, &name, &mem, &other, err);
    if (rc == HFD_OK && !hfd_slice_eq(other.id, row->id))
        rc = fleet_name_taken(row, err);
    hfd_arena_fini(&mem);
    return rc == HFD_NOT_FOUND ? HFD_OK : rc;
}

/* ---- nodepools of a cluster ---- */

/* The mark of columns that hfd_fleet_row_refer sets. */
#define HFD_FLEET_OWNED (HFD_COL_OWN << 3)

static struct hfd_query sql_children_refer = {
    .table = &hfd_fleet_table, .text = HFD_SQL_UPDATE, .marks = HFD_FLEET_OWNED};

static struct hfd_unit_key child_key(const void *row)
{
    const struct hfd_fleet_row *child = row;

    return (struct hfd_unit_key){child->owner_id, child->id};
}

/* The order of its query. */
static int compare_children(const void *a, const void *b)
{
    const struct hfd_fleet_row *x = a, *y = b;

    if (x->created_us != y->created_us)
        return x->created_us < y->created_us ? -1 : 1;
    return (x->seq > y->seq) - (x->seq < y->seq);
}

/* As its query gives them. */
static void behead_child(void *row)
{
    struct hfd_fleet_row *child = row;

    child->spec = child->labels = HFD_SLICE("{}");
    child->conditions = HFD_SLICE("[]");
}

/* Heads of HyperFleet resources, by the id of their cluster and their own. Never written. */
static const struct hfd_unit_form fleet_child_form = {
    .table = HFD_UNIT_CHILD,
    .rows = &hfd_fleet_table,
    .key_of = child_key,
    .compare = compare_children,
    .behead = behead_child,
};

/* Notes a row that is new or has changed. */
static void fleet_child_keep(struct hfd_txn *tx, const struct hfd_fleet_row *row)
{
    struct hfd_fleet_row head = *row;

    if (row->owner_id.len == 0 || !hfd_unit_has_all(tx, &fleet_child_form, row->owner_id))
        return;
    behead_child(&head);
    (void)hfd_unit_keep(tx, &fleet_child_form, &head);
}

/* Notes that a row is gone. */
static void fleet_child_lose(struct hfd_txn *tx, hfd_slice id)
{
    struct hfd_kept *k = tx->unit != NULL ? tx->unit->tables[HFD_UNIT_CHILD] : NULL;

    for (; k != NULL; k = k->in_table)
        if (hfd_slice_eq(k->key.second, id))
            k->row = NULL;
}

/* ---- another id of a cluster ---- */

static hfd_rc refer_owner(struct hfd_txn *tx, const struct hfd_fleet_row *child, hfd_slice to,
                          struct hfd_err *err)
{
    struct hfd_fleet_row new = *child;

    new.owner_id = to;
    return hfd_query_write(tx, &sql_children_refer, &new, NULL, err);
}

hfd_rc hfd_fleet_row_refer(struct hfd_txn *tx, hfd_slice from, hfd_slice to, struct hfd_arena *mem,
                           struct hfd_err *err)
{
    struct hfd_fleet_list children;
    hfd_rc rc = hfd_unit_write(tx, err); /* rows of three tables are found by this id */

    if (rc != HFD_OK)
        return rc;
    hfd_unit_forget(tx);
    rc = hfd_fleet_row_children(tx, from, mem, &children, err);
    for (size_t i = 0; rc == HFD_OK && i < children.count; i++)
        rc = refer_owner(tx, &children.rows[i], to, err);
    if (rc == HFD_OK)
        rc = hfd_part_row_refer(tx, from, to, mem, err);
    return rc == HFD_OK ? hfd_resource_row_refer(tx, from, to, mem, err) : rc;
}

/* ---- HyperFleet resources ---- */

/* Marks of columns that an update sets, besides HFD_FLEET_OWNED. */
#define ALL HFD_COL_OWN           /* all that hfd_fleet_row_update writes */
#define JUDGED (HFD_COL_OWN << 1) /* conditions and told */
#define MOVED (HFD_COL_OWN << 2)  /* also ready, ready_seen_us and pending_us */
#define FLEET_COL(type, member) HFD_COL(struct hfd_fleet_row, type, #member, member)

/* clang-format off */
static const struct hfd_col fleet_cols[] = {
    {FLEET_COL(I64, seq), .marks = HFD_COL_PRIMARY},
    {FLEET_COL(TEXT, id), .sum = 1},
    {FLEET_COL(KIND, kind), .sum = 1},
    {FLEET_COL(TEXT, owner_id), .sum = 2, .marks = HFD_FLEET_OWNED},
    {FLEET_COL(TEXT, name), .sum = 3, .marks = ALL},
    {FLEET_COL(I64, generation), .sum = 2, .marks = ALL},
    {FLEET_COL(TEXT, spec), .doc = 1, .marks = ALL, .head = "'{}'"},
    {FLEET_COL(TEXT, labels), .doc = 2, .marks = ALL, .head = "'{}'"},
    {FLEET_COL(TEXT, conditions), .doc = 3, .marks = ALL | JUDGED, .head = "'[]'"},
    {FLEET_COL(BOOL, ready), .sum = 3, .marks = ALL | MOVED},
    {FLEET_COL(I64, ready_seen_us), .sum = 4, .marks = ALL | MOVED},
    {FLEET_COL(I64, pending_us), .sum = 9, .marks = ALL | MOVED},
    {HFD_COL(struct hfd_fleet_row, I64, "told", observer_idle), .sum = 5, .marks = ALL | JUDGED},
    {FLEET_COL(I64, created_us), .sum = 6},
    {FLEET_COL(I64, updated_us), .sum = 7, .marks = ALL},
    {FLEET_COL(I64, deleted_us), .sum = 8, .marks = ALL},
    {FLEET_COL(TEXT, created_by), .sum = 4},
    {FLEET_COL(TEXT, updated_by), .sum = 5, .marks = ALL},
    {FLEET_COL(TEXT, deleted_by), .sum = 6, .marks = ALL},
    {FLEET_COL(I64, due_seq), .marks = ALL}, /* no checksum covers these: migration 0024 */
    {FLEET_COL(TEXT, trace), .marks = ALL},
    {.name = "sum", .type = HFD_COL_SUM, .marks = HFD_COL_FILLED | ALL | JUDGED | MOVED | HFD_FLEET_OWNED},
    {.name = "doc_sum", .type = HFD_COL_DOC_SUM, .marks = HFD_COL_FILLED | ALL | JUDGED | MOVED},
};
static struct hfd_query sql_fleet_children;
const struct hfd_table hfd_fleet_table = {
    HFD_TABLE("fleet", struct hfd_fleet_row, "HyperFleet resource", fleet_cols), .key = 1, .keys = 1,
    HFD_TABLE_GET(hfd_fleet_table), HFD_TABLE_REMOVE(hfd_fleet_table), .list = &sql_fleet_children};
/* Without the documents and their checksum. */
static const struct hfd_table fleet_heads = {
    HFD_TABLE_OF("fleet", struct hfd_fleet_row, "HyperFleet resource", fleet_cols, HFD_COUNT_OF(fleet_cols) - 1), .key = 1, .keys = 1};

#define FLEET_AFTER HFD_UNIT_BIT(HFD_UNIT_FLEET)
static struct hfd_query sql_fleet_at = {.table = &hfd_fleet_table, .by = {"seq"}, .text =
    "SELECT @cols FROM fleet WHERE seq = ?1", .after = FLEET_AFTER};
static const char sql_fleet_last[] =
    "SELECT seq FROM fleet ORDER BY seq DESC LIMIT 1";
static struct hfd_query sql_fleet_insert = {.table = &hfd_fleet_table, .text = /* without RETURNING, which makes SQLite copy each page that it changes */
    "INSERT INTO fleet (@cols) @values@skips"};
/* A column that is set is written to its indexes, changed or not. */
static struct hfd_query sql_fleet_update_all = {.table = &hfd_fleet_table, .text = HFD_SQL_UPDATE, .marks = ALL};
static struct hfd_query sql_fleet_update_judged = {.table = &hfd_fleet_table, .text = HFD_SQL_UPDATE, .marks = JUDGED};
static struct hfd_query sql_fleet_update_moved = {.table = &hfd_fleet_table, .text = HFD_SQL_UPDATE, .marks = JUDGED | MOVED};
static struct hfd_query sql_fleet_kind = {.table = &hfd_fleet_table, .by = {"id"}, .text = "SELECT kind FROM fleet WHERE id = ?1"};
static struct hfd_query sql_fleet_by_name = {.table = &hfd_fleet_table, .by = {"kind", "owner_id", "name"}, .text =
    "SELECT @cols FROM fleet WHERE kind = ?1 AND owner_id = ?2 AND name = ?3 AND deleted_us = 0", .after = FLEET_AFTER};
static struct hfd_query sql_fleet_children = {.table = &fleet_heads, .by = {"owner_id"}, .text =
    "SELECT @heads, NULL FROM fleet WHERE owner_id = ?1 AND owner_id <> '' ORDER BY created_us, seq"};
static struct hfd_query sql_fleet_of = {.table = &hfd_fleet_table, .text = "SELECT @cols FROM fleet WHERE id IN (" HFD_SQL_TEXTS_OF("?1") ")"};
static struct hfd_query sql_fleet_pending = {.table = &hfd_fleet_table, .text =
    "SELECT @cols FROM fleet WHERE ready = 0 AND (created_us, seq) > (?1, ?2) ORDER BY created_us, seq LIMIT ?3", .after = FLEET_AFTER};
static struct hfd_query sql_fleet_all = {.table = &hfd_fleet_table, .text = /* ?1, the time, takes part so that both have the same parameters */
    "SELECT @cols FROM fleet WHERE seq > ?2 AND ?1 >= 0 ORDER BY seq LIMIT ?3", .after = FLEET_AFTER};
/* clang-format on */

/* ---- how rows are kept ---- */

static hfd_rc write_kept(struct hfd_txn *tx, const struct hfd_kept *kept, struct hfd_err *err);

static const struct hfd_unit_form fleet_form = {
    .table = HFD_UNIT_FLEET, .rows = &hfd_fleet_table, .write = write_kept};

static struct hfd_kept *find(const struct hfd_txn *tx, hfd_slice id)
{
    return hfd_unit_find(tx, &fleet_form, &(struct hfd_unit_key){id, HFD_SLICE_NONE});
}

/* ---- reading ---- */

hfd_rc hfd_fleet_row_get(struct hfd_txn *tx, hfd_slice id, struct hfd_arena *mem,
                         struct hfd_fleet_row *out, struct hfd_err *err)
{
    return hfd_kept_get(tx, &fleet_form, &(struct hfd_unit_key){id, HFD_SLICE_NONE}, mem, out, err);
}

hfd_rc hfd_fleet_row_prefetch(struct hfd_txn *tx, const hfd_slice *ids, size_t count,
                              struct hfd_err *err)
{
    return hfd_unit_prefetch(
        tx,
        &(struct hfd_unit_prefetch){
            .form = &fleet_form, .query = &sql_fleet_of, .firsts = ids, .count = count},
        err);
}

hfd_rc hfd_fleet_row_at(struct hfd_txn *tx, int64_t seq, struct hfd_arena *mem,
                        struct hfd_fleet_row *out, struct hfd_err *err)
{
    return hfd_query_one(tx, &sql_fleet_at, HFD_ARGS(hfd_arg_i64(seq)), mem, out, err);
}

hfd_rc hfd_fleet_row_by_name(struct hfd_txn *tx, const struct hfd_fleet_name *name,
                             struct hfd_arena *mem, struct hfd_fleet_row *out, struct hfd_err *err)
{
    return hfd_query_one(
        tx, &sql_fleet_by_name,
        HFD_ARGS(hfd_arg_i64(name->kind), hfd_arg_text(name->owner_id), hfd_arg_text(name->name)),
        mem, out, err);
}

static hfd_rc read_children(struct hfd_txn *tx, hfd_slice cluster_id, struct hfd_arena *mem,
                            struct hfd_row_list *out, struct hfd_err *err)
{
    return hfd_query_all(tx, &sql_fleet_children, HFD_ARGS(hfd_arg_text(cluster_id)), mem, out,
                         err);
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
    const struct hfd_unit_list wanted = {.form = &fleet_child_form,
                                         .first = cluster_id,
                                         .mem = mem,
                                         .heads = true,
                                         .read = read_children};
    struct hfd_row_list list = {NULL, 0};
    hfd_rc rc = HFD_OK;

    if (!hfd_unit_has_all(tx, &fleet_child_form, cluster_id) && child_has_changed(tx, cluster_id))
        rc = hfd_unit_write_table(tx, HFD_UNIT_FLEET, err);
    if (rc == HFD_OK)
        rc = hfd_unit_list(tx, &wanted, &list, err);
    *out = (struct hfd_fleet_list){list.rows, list.count, (int64_t)list.count};
    return rc;
}

hfd_rc hfd_fleet_row_pending(struct hfd_txn *tx, const struct hfd_pending_query *query,
                             struct hfd_arena *mem, struct hfd_fleet_list *out, struct hfd_err *err)
{
    struct hfd_row_list list;
    const hfd_rc rc =
        hfd_query_all(tx, query->all ? &sql_fleet_all : &sql_fleet_pending,
                      HFD_ARGS(hfd_arg_i64(query->after_us), hfd_arg_i64(query->after_seq),
                               hfd_arg_i64(query->limit)),
                      mem, &list, err);

    *out = (struct hfd_fleet_list){list.rows, list.count, (int64_t)list.count};
    return rc;
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
    hfd_rc rc = hfd_unit_write_table(tx, HFD_UNIT_FLEET, err); /* the name may have become free */

    row->seq = 0;
    if (rc == HFD_OK)
        rc = fleet_name_check(tx, row, find(tx, row->id), find(tx, row->owner_id), err);
    if (rc == HFD_OK)
        rc = next_seq(tx, &row->seq, err);
    if (rc == HFD_OK)
        rc = hfd_query_write(tx, &sql_fleet_insert, row, &changed, err);
    if (rc == HFD_OK && changed == 0)
        rc = fleet_name_taken(row, err);
    if (rc != HFD_OK)
        return rc;
    kept = hfd_unit_keep(tx, &fleet_form, row);
    if (kept != NULL)
        kept->fresh = true;
    fleet_child_keep(tx, row);
    return hfd_totals_add(tx, &(struct hfd_count_key){.kind = row->kind}, 1, err);
}

/* @param change  marks */
static hfd_rc write_change(struct hfd_txn *tx, const struct hfd_fleet_row *row, unsigned change,
                           struct hfd_err *err)
{
    struct hfd_query *update = (change & ALL) != 0     ? &sql_fleet_update_all
                               : (change & MOVED) != 0 ? &sql_fleet_update_moved
                                                       : &sql_fleet_update_judged;
    int64_t changed;
    const hfd_rc rc = hfd_query_write(tx, update, row, &changed, err);

    return rc == HFD_OK && changed == 0
               ? hfd_fail(err, HFD_NOT_FOUND, "no such HyperFleet resource is stored")
               : rc;
}

static hfd_rc write_kept(struct hfd_txn *tx, const struct hfd_kept *kept, struct hfd_err *err)
{
    return write_change(tx, kept->row, kept->change, err);
}

/* Keeps the new form of a row; without room for it, it is written at once. */
static hfd_rc change_row(struct hfd_txn *tx, const struct hfd_fleet_row *new, unsigned change,
                         struct hfd_err *err)
{
    fleet_child_keep(tx, new);
    return hfd_kept_put(tx, &fleet_form, new, change, err);
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
        rc = fleet_name_check(tx, new, find(tx, new->id), find(tx, new->owner_id), err);
    if (rc == HFD_OK)
        rc = write_change(tx, new, ALL, err);
    if (rc == HFD_OK)
        (void)hfd_unit_keep(tx, &fleet_form, new);
    if (rc == HFD_OK)
        fleet_child_keep(tx, new);
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
        rc = claims_name(&was, row) ? write_claim(tx, &new, err) : change_row(tx, &new, ALL, err);
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
        rc = change_row(tx, &new, moved ? MOVED : JUDGED, err);
    }
    hfd_arena_fini(&mem);
    return rc;
}

static hfd_rc kind_of(struct hfd_txn *tx, hfd_slice id, int64_t *out, struct hfd_err *err)
{
    const struct hfd_kept *kept = find(tx, id);

    *out = 0;
    if (kept != NULL && kept->row != NULL)
        *out = ((const struct hfd_fleet_row *)kept->row)->kind;
    return kept == NULL
               ? hfd_query_number(tx, &sql_fleet_kind, HFD_ARGS(hfd_arg_text(id)), 0, out, err)
               : HFD_OK;
}

/* Written at once: what is inserted later must not go with it. */
hfd_rc hfd_fleet_row_delete(struct hfd_txn *tx, hfd_slice id, struct hfd_err *err)
{
    const struct hfd_unit_key key = {id, HFD_SLICE_NONE};
    int64_t was = 0;
    hfd_rc rc = hfd_report_row_delete_all(tx, id, err);

    if (rc == HFD_OK)
        rc = kind_of(tx, id, &was, err);
    if (rc != HFD_OK || was == 0)
        return rc;
    (void)hfd_unit_keep_absent(tx, &fleet_form, &key);
    fleet_child_lose(tx, id);
    rc = hfd_query_run(tx, hfd_fleet_table.remove, HFD_ARGS(hfd_arg_text(id)), err);
    return rc == HFD_OK
               ? hfd_totals_add(tx, &(struct hfd_count_key){.kind = (enum hfd_kind)was}, -1, err)
               : rc;
}

/* ---- search keys ---- */

/* Where a resource is found. */
struct found {
    int64_t kind;
    hfd_slice name, value;
    int64_t created_us, fleet_seq;
};
#define FOUND_COL(type, as, member) HFD_COL(struct found, type, as, member)

/* clang-format off */
static const struct hfd_col label_cols[] = {
    {FOUND_COL(I64, "kind", kind)}, {FOUND_COL(TEXT, "key", name)}, {FOUND_COL(TEXT, "value", value)}, {FOUND_COL(I64, "created_us", created_us)},
    {FOUND_COL(I64, "fleet_seq", fleet_seq)},
};
const struct hfd_table hfd_fleet_label_table = {
    HFD_TABLE("fleet_label", struct found, "label", label_cols), .keys = 5};
static const struct hfd_col condition_cols[] = {
    {FOUND_COL(I64, "kind", kind)}, {FOUND_COL(TEXT, "type", name)}, {FOUND_COL(TEXT, "status", value)}, {FOUND_COL(I64, "created_us", created_us)},
    {FOUND_COL(I64, "fleet_seq", fleet_seq)},
};
const struct hfd_table hfd_fleet_condition_table = {
    HFD_TABLE("fleet_condition", struct found, "condition", condition_cols), .keys = 5};

#define SQL_ADD "INSERT INTO @table (@cols) @values"
/* clang-format on */

/* A table of search keys, and the totals that go with it. */
struct key_table {
    struct hfd_query add, drop;
    enum hfd_count_field field;
};

static struct key_table label_keys = {{.table = &hfd_fleet_label_table, .text = SQL_ADD},
                                      {.table = &hfd_fleet_label_table, .text = HFD_SQL_REMOVE},
                                      HFD_COUNT_LABEL};
static struct key_table condition_keys = {
    {.table = &hfd_fleet_condition_table, .text = SQL_ADD},
    {.table = &hfd_fleet_condition_table, .text = HFD_SQL_REMOVE},
    HFD_COUNT_CONDITION};

/* One key of a resource, to be added (by 1) or dropped (by -1). */
struct key_change {
    struct key_table *table;
    hfd_slice name, value;
    int by;
};

static hfd_rc change_key(struct hfd_txn *tx, const struct hfd_fleet_row *row,
                         const struct key_change *c, struct hfd_err *err)
{
    const struct hfd_count_key count = {row->kind, c->table->field, c->name, c->value};
    const struct found found = {row->kind, c->name, c->value, row->created_us, row->seq};
    const hfd_rc rc =
        hfd_query_write(tx, c->by > 0 ? &c->table->add : &c->table->drop, &found, NULL, err);

    if (rc != HFD_OK || (c->table == &label_keys && !hfd_label_is_counted(c->name)))
        return rc;
    return hfd_totals_add(tx, &count, c->by, err);
}

static hfd_rc change_label(struct hfd_txn *tx, const struct hfd_fleet_row *row,
                           const struct hfd_fleet_label *l, int by, struct hfd_err *err)
{
    return change_key(tx, row, &(struct key_change){&label_keys, l->key, l->value, by}, err);
}

static hfd_rc change_condition(struct hfd_txn *tx, const struct hfd_fleet_row *row,
                               const struct hfd_fleet_condition *c, int by, struct hfd_err *err)
{
    return change_key(tx, row, &(struct key_change){&condition_keys, c->type, c->status, by}, err);
}

/* Orders labels; an absent one comes last. */
static int compare_labels(const struct hfd_fleet_label *a, const struct hfd_fleet_label *b)
{
    int order;

    if (a == NULL || b == NULL)
        return a == NULL ? 1 : -1;
    order = hfd_slice_cmp(a->key, b->key);
    return order != 0 ? order : hfd_slice_cmp(a->value, b->value);
}

/* Both lists ascend by key, so one walk through both finds the differences. */
static hfd_rc put_labels(struct hfd_txn *tx, const struct hfd_fleet_row *row,
                         const struct hfd_fleet_keys *was, const struct hfd_fleet_keys *is,
                         struct hfd_err *err)
{
    size_t w = 0, i = 0;
    hfd_rc rc = HFD_OK;

    while (rc == HFD_OK && (w < was->label_count || i < is->label_count)) {
        const struct hfd_fleet_label *old = w < was->label_count ? &was->labels[w] : NULL;
        const struct hfd_fleet_label *new = i < is->label_count ? &is->labels[i] : NULL;
        const int order = compare_labels(old, new);

        HFD_ASSERT(order > 0 ? new != NULL : old != NULL); /* an absent one comes last */
        w += order <= 0;
        i += order >= 0;
        if (old != NULL && order < 0)
            rc = change_label(tx, row, old, -1, err);
        else if (new != NULL && order > 0)
            rc = change_label(tx, row, new, 1, err);
    }
    return rc;
}

static bool has_condition(const struct hfd_fleet_keys *keys, const struct hfd_fleet_condition *c)
{
    for (size_t i = 0; i < keys->condition_count; i++)
        if (hfd_slice_eq(keys->conditions[i].type, c->type) &&
            hfd_slice_eq(keys->conditions[i].status, c->status))
            return true;
    return false;
}

static hfd_rc put_conditions(struct hfd_txn *tx, const struct hfd_fleet_row *row,
                             const struct hfd_fleet_keys *was, const struct hfd_fleet_keys *is,
                             struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; rc == HFD_OK && i < was->condition_count; i++)
        if (!has_condition(is, &was->conditions[i]))
            rc = change_condition(tx, row, &was->conditions[i], -1, err);
    for (size_t i = 0; rc == HFD_OK && i < is->condition_count; i++)
        if (!has_condition(was, &is->conditions[i]))
            rc = change_condition(tx, row, &is->conditions[i], 1, err);
    return rc;
}

hfd_rc hfd_fleet_keys_put(struct hfd_txn *tx, const struct hfd_fleet_row *row,
                          const struct hfd_fleet_keys *was, const struct hfd_fleet_keys *is,
                          struct hfd_err *err)
{
    hfd_rc rc = put_labels(tx, row, was, is, err);

    return rc == HFD_OK ? put_conditions(tx, row, was, is, err) : rc;
}

/* ---- counts ---- */

struct counts_row {
    enum hfd_kind kind;
    bool deleting;
    struct hfd_unreconciled n;
};
#define COUNTS_COL(type, sql, member) HFD_COL(struct counts_row, type, sql, member)

/* clang-format off */
static const struct hfd_col counts_cols[] = { /* +: by the index of what is pending, not of the kind */
    {COUNTS_COL(KIND, "+kind AS of_kind", kind)},
    {COUNTS_COL(BOOL, "CASE WHEN deleted_us > 0 THEN 1 ELSE 0 END AS deleting", deleting)},
    {COUNTS_COL(I64, "count(*)", n.count)},
    {COUNTS_COL(I64, "count(CASE WHEN pending_us < ?1 THEN 1 END)", n.stuck)},
    {COUNTS_COL(I64, "min(pending_us)", n.oldest_us)},
};
static const struct hfd_table counts = {HFD_TABLE(NULL, struct counts_row, "count of HyperFleet resources", counts_cols)};

static struct hfd_query sql_unreconciled = {.table = &counts, .text =
    "SELECT @cols FROM fleet WHERE pending_us > 0 GROUP BY of_kind, deleting", .after = HFD_UNIT_BIT(HFD_UNIT_FLEET)};
/* clang-format on */

hfd_rc hfd_fleet_row_unreconciled(struct hfd_txn *tx, int64_t stuck_before_us,
                                  struct hfd_arena *mem, struct hfd_unreconciled_counts *out,
                                  struct hfd_err *err)
{
    struct hfd_row_list list;
    const hfd_rc rc = hfd_query_all(tx, &sql_unreconciled, HFD_ARGS(hfd_arg_i64(stuck_before_us)),
                                    mem, &list, err);

    for (size_t kind = 0; kind <= HFD_KIND_NODEPOOL; kind++)
        out->of[kind][0] = out->of[kind][1] = (struct hfd_unreconciled){0, 0, INT64_MAX};
    for (size_t i = 0; rc == HFD_OK && i < list.count; i++) {
        const struct counts_row *row = (const struct counts_row *)list.rows + i;

        out->of[row->kind][row->deleting] = row->n;
    }
    return rc;
}

/* ---- orphans ---- */

#define ORPHAN_COL(type, member) HFD_COL(struct hfd_orphan_row, type, "f." #member, member)

/* clang-format off */
static const struct hfd_col orphan_cols[] = {
    {ORPHAN_COL(TEXT, id)}, {ORPHAN_COL(KIND, kind)}, {ORPHAN_COL(TEXT, owner_id)}, {HFD_COL(struct hfd_orphan_row, TEXT, "l.value", label)}, {ORPHAN_COL(TEXT, name)},
    {ORPHAN_COL(I64, generation)}, {ORPHAN_COL(BOOL, ready)}, {ORPHAN_COL(I64, created_us)}, {ORPHAN_COL(I64, deleted_us)}, {ORPHAN_COL(TEXT, created_by)},
};
static const struct hfd_table orphans = {HFD_TABLE(NULL, struct hfd_orphan_row, "HyperFleet resource", orphan_cols)};

#define ORPHAN_FROM \
    " FROM fleet_label l JOIN fleet f ON f.seq = l.fleet_seq" \
    " WHERE l.kind = ?1 AND l.key = ?2 AND NOT EXISTS (SELECT 1 FROM part p WHERE p.fleet_id = f.id)"
#define OWNED \
    "(SELECT o.fleet_seq FROM fleet_label o WHERE o.kind = ?1 AND o.key = '" HFD_LABEL_OWNER "' AND o.value"
#define IN_ORDER " ORDER BY l.value, l.created_us, l.fleet_seq LIMIT ?3"

static struct hfd_query sql_orphans = {.table = &orphans, .text =
    "SELECT @cols" ORPHAN_FROM " AND l.fleet_seq NOT IN " OWNED " NOT IN ('', ?4))" IN_ORDER, .after = HFD_UNIT_ALL};
static struct hfd_query sql_orphans_of_owner = {.table = &orphans, .text =
    "SELECT @cols" ORPHAN_FROM " AND l.fleet_seq IN " OWNED " = ?4)" IN_ORDER, .after = HFD_UNIT_ALL};
static const struct hfd_query_empty no_label = {"fleet_label", "value", 4, "part"};
static struct hfd_query sql_orphans_of = {.table = &orphans, .empty = &no_label, .text =
    "SELECT @cols" ORPHAN_FROM " AND l.value = ?4 ORDER BY l.created_us, l.fleet_seq LIMIT ?3", .after = HFD_UNIT_ALL};
/* clang-format on */

hfd_rc hfd_orphan_row_list(struct hfd_txn *tx, const struct hfd_orphan_query *query,
                           struct hfd_arena *mem, struct hfd_orphan_list *out, struct hfd_err *err)
{
    const bool own = query->owner.of.len == 0 || hfd_slice_eq(query->owner.of, query->owner.own);
    struct hfd_query *sql = own ? &sql_orphans : &sql_orphans_of_owner;
    hfd_slice wanted = own ? query->owner.own : query->owner.of;
    struct hfd_row_list list;
    hfd_rc rc;

    if (query->value.p != NULL) {
        sql = &sql_orphans_of;
        wanted = query->value;
    }
    rc = hfd_query_all(tx, sql,
                       HFD_ARGS(hfd_arg_i64(query->kind), hfd_arg_text(query->key),
                                hfd_arg_i64(query->limit), hfd_arg_text(wanted)),
                       mem, &list, err);
    *out = (struct hfd_orphan_list){list.rows, list.count};
    for (size_t i = 0; i < out->count; i++)
        out->rows[i].error = HFD_SLICE("");
    return rc;
}
