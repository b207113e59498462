/* See rows_resource.h. The SQL is the portable subset. Thread: that of the transaction. */
#include "store/rows_resource.h"

#include "driver/base/arena.h"
#include "driver/base/check.h"
#include "driver/base/etag.h"
#include "store/row_cache.h"
#include "store/row_io.h"
#include "store/rows_history.h"
#include "store/rows_report.h"
#include "store/totals.h"

/* ---- parts ---- */

#define PART_COL(type, member) HFD_COL(struct hfd_part_row, type, #member, member)

/* clang-format off */
static const struct hfd_col part_cols[] = {
    {PART_COL(TEXT, guresid), .sum = 1},
    {PART_COL(TEXT, fleet_id), .sum = 2},
    {PART_COL(KIND, kind), .sum = 1},
    {PART_COL(TEXT, name), .sum = 3},
    {PART_COL(I64, generation), .sum = 2},
    {PART_COL(BOOL, leaving), .sum = 3},
    {PART_COL(BOOL, pending), .sum = 4},
    {PART_COL(TEXT, aside)}, /* no checksum covers it: 0026_drift.sql */
    {.name = "sum", .type = HFD_COL_SUM, .marks = HFD_COL_FILLED},
};
static struct hfd_query sql_part_list;
const struct hfd_table hfd_part_table = {
    HFD_TABLE("part", struct hfd_part_row, "part", part_cols), .keys = 2,
    HFD_TABLE_GET(hfd_part_table), HFD_TABLE_PUT(hfd_part_table), HFD_TABLE_REMOVE(hfd_part_table), .list = &sql_part_list};

#define PART_AFTER HFD_UNIT_BIT(HFD_UNIT_PART) /* a part may be about to go */
static struct hfd_query sql_part_list = {.table = &hfd_part_table, .by = {"guresid"}, .text =
    "SELECT @cols FROM part WHERE guresid = ?1 ORDER BY kind, name, fleet_id"};
static struct hfd_query sql_parts_of = {.table = &hfd_part_table, .text =
    "SELECT @cols FROM part WHERE guresid IN (" HFD_SQL_TEXTS_OF("?1") ") ORDER BY guresid, kind, name, fleet_id"};
static struct hfd_query sql_part_by_fleet = {.table = &hfd_part_table, .by = {"fleet_id"}, .text =
    "SELECT @cols FROM part WHERE fleet_id = ?1 ORDER BY guresid LIMIT 1", .after = PART_AFTER};
static struct hfd_query sql_part_all_of = {.table = &hfd_part_table, .by = {"fleet_id"}, .text = "SELECT @cols FROM part WHERE fleet_id = ?1", .after = PART_AFTER};
static struct hfd_query sql_part_delete_all = {.table = &hfd_part_table, .by = {"guresid"}, .text = "DELETE FROM part WHERE guresid = ?1"};
/* clang-format on */

/* ---- how rows are kept ---- */

/* The order of sql_part_list. */
static int compare_parts(const void *a, const void *b)
{
    const struct hfd_part_row *x = a, *y = b;
    int order;

    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    order = hfd_slice_cmp(x->name, y->name);
    return order != 0 ? order : hfd_slice_cmp(x->fleet_id, y->fleet_id);
}

static const struct hfd_unit_form part_form = {
    .table = HFD_UNIT_PART,
    .rows = &hfd_part_table,
    .compare = compare_parts,
    .write = hfd_kept_write,
};

#define PART_PUT 1u
#define PART_DELETE 2u

/* ---- rows ---- */

static hfd_rc read_parts(struct hfd_txn *tx, hfd_slice guresid, struct hfd_arena *mem,
                         struct hfd_row_list *out, struct hfd_err *err)
{
    return hfd_query_all(tx, &sql_part_list, HFD_ARGS(hfd_arg_text(guresid)), mem, out, err);
}

hfd_rc hfd_part_row_list(struct hfd_txn *tx, hfd_slice guresid, struct hfd_arena *mem,
                         struct hfd_part_list *out, struct hfd_err *err)
{
    struct hfd_row_list list = {NULL, 0};
    hfd_rc rc =
        hfd_unit_list(tx,
                      &(struct hfd_unit_list){
                          .form = &part_form, .first = guresid, .mem = mem, .read = read_parts},
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
    hfd_rc rc;

    if (kept != NULL)
        return hfd_unit_give(kept, mem, out, err);
    rc = hfd_query_one(tx, &sql_part_by_fleet, HFD_ARGS(hfd_arg_text(fleet_id)), mem, out, err);
    if (rc == HFD_OK)
        (void)hfd_unit_keep(tx, &part_form, out);
    return rc;
}

hfd_rc hfd_part_row_put(struct hfd_txn *tx, const struct hfd_part_row *row, struct hfd_err *err)
{
    return hfd_kept_put(tx, &part_form, row, PART_PUT, err);
}

hfd_rc hfd_part_row_delete(struct hfd_txn *tx, hfd_slice guresid, hfd_slice fleet_id,
                           struct hfd_err *err)
{
    const struct hfd_unit_key key = {guresid, fleet_id};
    struct hfd_kept *kept = hfd_unit_keep_absent(tx, &part_form, &key);

    if (kept == NULL)
        return hfd_query_run(tx, hfd_part_table.remove,
                             HFD_ARGS(hfd_arg_text(guresid), hfd_arg_text(fleet_id)), err);
    hfd_unit_change(tx, kept, PART_DELETE);
    return HFD_OK;
}

/* Removes all parts of a driver resource. */
static hfd_rc part_row_delete_all(struct hfd_txn *tx, hfd_slice guresid, struct hfd_err *err)
{
    hfd_unit_lose_all(tx, &part_form, guresid);
    return hfd_query_run(tx, &sql_part_delete_all, HFD_ARGS(hfd_arg_text(guresid)), err);
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
    hfd_rc rc = hfd_query_all(tx, &sql_part_all_of, HFD_ARGS(hfd_arg_text(from)), mem, &list, err);

    rows = list.rows;
    for (size_t i = 0; rc == HFD_OK && i < list.count; i++)
        rc = refer_part(tx, &rows[i], to, err);
    return rc;
}

/* ---- secrets of orders ---- */

#define ORDER_COL(type, member) HFD_COL(struct hfd_order_row, type, #member, member)

static const struct hfd_col order_cols[] = {{ORDER_COL(TEXT, guresid)}, {ORDER_COL(BLOB, secrets)}};
const struct hfd_table hfd_order_table = {
    HFD_TABLE("order_secrets", struct hfd_order_row, "order's secrets", order_cols), .keys = 1,
    HFD_TABLE_GET(hfd_order_table), HFD_TABLE_PUT(hfd_order_table),
    HFD_TABLE_REMOVE(hfd_order_table)};

hfd_rc hfd_order_row_get(struct hfd_txn *tx, hfd_slice guresid, struct hfd_arena *mem,
                         struct hfd_order_row *out, struct hfd_err *err)
{
    return hfd_query_one(tx, hfd_order_table.get, HFD_ARGS(hfd_arg_text(guresid)), mem, out, err);
}

hfd_rc hfd_order_row_put(struct hfd_txn *tx, const struct hfd_order_row *row, struct hfd_err *err)
{
    return hfd_query_write(tx, hfd_order_table.put, row, NULL, err);
}

hfd_rc hfd_order_row_delete(struct hfd_txn *tx, hfd_slice guresid, struct hfd_err *err)
{
    return hfd_query_run(tx, hfd_order_table.remove, HFD_ARGS(hfd_arg_text(guresid)), err);
}

/* ---- driver resources ---- */

#define RESOURCE_COL(type, member) HFD_COL(struct hfd_resource_row, type, #member, member)

/* clang-format off */
static const struct hfd_col resource_cols[] = {
    {RESOURCE_COL(TEXT, guresid), .sum = 2},
    {RESOURCE_COL(TEXT, type), .sum = 3},
    {RESOURCE_COL(KIND, kind), .sum = 1},
    {RESOURCE_COL(INT, state), .sum = 2},
    {RESOURCE_COL(TEXT, incarnation), .sum = 4},
    {RESOURCE_COL(TEXT, cluster_id), .sum = 5},
    {RESOURCE_COL(BLOB, digest), .sum = 6},
    {RESOURCE_COL(BLOB, raw_digest), .sum = 7},
    {RESOURCE_COL(TEXT, cookie), .sum = 8},
    {RESOURCE_COL(I64, op_started_us), .sum = 3},
    {RESOURCE_COL(I64, op_estimate_us), .sum = 4},
    {RESOURCE_COL(I64, op_deadline_us), .sum = 5},
    {RESOURCE_COL(TEXT, fail_code), .sum = 9},
    {RESOURCE_COL(TEXT, fail_message), .sum = 10},
    {RESOURCE_COL(TEXT, output), .sum = 11},
    {RESOURCE_COL(NONE, secrets), .sum = 1},
    {RESOURCE_COL(I64, created_us), .sum = 6},
    {RESOURCE_COL(I64, updated_us), .sum = 7},
    {RESOURCE_COL(BOOL, degraded), .sum = 8},
    {RESOURCE_COL(INT, op), .sum = 9},
    {RESOURCE_COL(I64, op_size), .sum = 10},
    {RESOURCE_COL(TEXT, op_milestones), .sum = 12},
    {RESOURCE_COL(TEXT, op_plan), .sum = 13},
    {RESOURCE_COL(TEXT, op_waits), .sum = 14},
    {RESOURCE_COL(TEXT, op_usual), .sum = 15},
    {RESOURCE_COL(I64, seq), .sum = 11, .marks = HFD_COL_PRIMARY | HFD_COL_STAYS},
    {RESOURCE_COL(I64, instance), .sum = 12},
    {RESOURCE_COL(I64, op_expected_us), .sum = 13},
    {RESOURCE_COL(TEXT, cause)}, /* no checksum covers it: 0022_cause.sql */
    {RESOURCE_COL(TEXT, trace)}, /* nor this one: 0024_due.sql */
    {RESOURCE_COL(TEXT, drift)}, /* nor these: 0026_drift.sql */
    {RESOURCE_COL(I64, drift_count)},
    {RESOURCE_COL(BOOL, mendable)},
    {RESOURCE_COL(TEXT, repairs)},
    {RESOURCE_COL(I64, repair_us)},
    {RESOURCE_COL(TEXT, protect)}, /* nor these: 0027_protect.sql */
    {RESOURCE_COL(TEXT, op_match)},
    {.name = "sum", .type = HFD_COL_SUM, .marks = HFD_COL_FILLED},
};
static struct hfd_query sql_resource_of_cluster;
const struct hfd_table hfd_resource_table = {
    HFD_TABLE("resource", struct hfd_resource_row, "driver resource", resource_cols), .keys = 1,
    HFD_TABLE_GET(hfd_resource_table), HFD_TABLE_PUT(hfd_resource_table), HFD_TABLE_REMOVE(hfd_resource_table),
    .list = &sql_resource_of_cluster};

#define RESOURCE_AFTER HFD_UNIT_BIT(HFD_UNIT_RESOURCE)
static struct hfd_query sql_resource_at = {.table = &hfd_resource_table, .by = {"seq"}, .text =
    "SELECT @cols FROM resource WHERE seq = ?1", .after = RESOURCE_AFTER};
static struct hfd_query sql_resources_of = {.table = &hfd_resource_table, .text =
    "SELECT @cols FROM resource WHERE guresid IN (" HFD_SQL_TEXTS_OF("?1") ")"};
static struct hfd_query sql_resources_at = {.table = &hfd_resource_table, .text =
    "SELECT @cols FROM resource WHERE seq IN (" HFD_SQL_NUMBERS_OF("?1") ")", .after = RESOURCE_AFTER};
static struct hfd_query sql_resource_of_cluster = {.table = &hfd_resource_table, .by = {"cluster_id"}, .text =
    "SELECT @cols FROM resource WHERE cluster_id = ?1", .after = RESOURCE_AFTER};
static struct hfd_query sql_resource_oldest = {.table = &hfd_resource_table, .text = /* the list of states is that of the index */
    "SELECT COALESCE(MIN(op_started_us), 0) FROM resource WHERE state = ?1 AND state IN (1, 2, 5)", .after = RESOURCE_AFTER};
static struct hfd_query sql_resource_stuck = {.table = &hfd_resource_table, .text =
    "SELECT COUNT(*) FROM resource WHERE state = ?1 AND state IN (1, 2, 5) AND (state = 5 OR ?2 < op_deadline_us)"
    " AND ?2 - op_started_us > ?3 AND ?2 - op_started_us > 2 * (CASE op_expected_us WHEN 0 THEN op_estimate_us ELSE op_expected_us END - op_started_us)", .after = RESOURCE_AFTER};
/* clang-format on */

/* ---- how rows are kept ---- */

static const struct hfd_unit_form resource_form = {
    .table = HFD_UNIT_RESOURCE, .rows = &hfd_resource_table, .write = hfd_kept_write};

#define RESOURCE_PUT 1u

/* ---- rows ---- */

hfd_rc hfd_resource_row_get(struct hfd_txn *tx, hfd_slice guresid, struct hfd_arena *mem,
                            struct hfd_resource_row *out, struct hfd_err *err)
{
    return hfd_kept_get(tx, &resource_form, &(struct hfd_unit_key){guresid, HFD_SLICE_NONE}, mem,
                        out, err);
}

/* Keeps the rows of numbers. @param guresids  gives theirs, in mem */
static hfd_rc prefetch_at(struct hfd_txn *tx, struct hfd_resource_prefetch *w,
                          struct hfd_arena *mem, struct hfd_err *err)
{
    struct hfd_row_list list;
    struct hfd_buf json;
    hfd_slice text, *guresids;
    hfd_rc rc;

    hfd_buf_init(&json, HFD_UNIT_READ_BYTES_MAX);
    for (size_t i = 0; i < w->count; i++) {
        hfd_buf_addc(&json, i > 0 ? ',' : '[');
        hfd_buf_i64(&json, w->seqs[i]);
    }
    hfd_buf_addc(&json, ']');
    rc = hfd_buf_finish(&json, &text, err);
    if (rc == HFD_OK)
        rc = hfd_query_all(tx, &sql_resources_at, HFD_ARGS(hfd_arg_text(text)), mem, &list, err);
    hfd_buf_fini(&json);
    if (rc != HFD_OK)
        return rc;
    guresids = hfd_arena_array(mem, list.count + 1, sizeof(*guresids));
    if (guresids == NULL)
        return hfd_fail_nomem(err, "read driver resources together");
    for (size_t i = 0; i < list.count; i++) {
        const struct hfd_resource_row *row = (const struct hfd_resource_row *)list.rows + i;

        guresids[i] = row->guresid;
        (void)hfd_unit_keep(tx, &resource_form, row);
    }
    w->guresids = guresids;
    w->count = list.count;
    return HFD_OK;
}

/* HyperFleet's rows of kept parts, and reports on them. */
static hfd_rc prefetch_fleet(struct hfd_txn *tx, bool reports, struct hfd_arena *mem,
                             struct hfd_err *err)
{
    size_t count = 0;
    hfd_slice *ids;
    hfd_rc rc;

    for (const struct hfd_kept *k = tx->unit->tables[HFD_UNIT_PART]; k != NULL; k = k->in_table)
        count += k->row != NULL;
    ids = hfd_arena_array(mem, count + 1, sizeof(*ids));
    if (ids == NULL)
        return hfd_fail_nomem(err, "read driver resources together");
    count = 0;
    for (const struct hfd_kept *k = tx->unit->tables[HFD_UNIT_PART]; k != NULL; k = k->in_table)
        if (k->row != NULL)
            ids[count++] = k->key.second;
    rc = hfd_fleet_row_prefetch(tx, ids, count, err);
    return rc == HFD_OK && reports ? hfd_report_row_prefetch(tx, ids, count, err) : rc;
}

hfd_rc hfd_resource_row_prefetch(struct hfd_txn *tx, const struct hfd_resource_prefetch *want,
                                 struct hfd_arena *mem, struct hfd_err *err)
{
    struct hfd_resource_prefetch w = *want;
    hfd_rc rc = HFD_OK;

    if (tx->unit == NULL || w.count == 0)
        return HFD_OK;
    if (w.seqs != NULL)
        rc = prefetch_at(tx, &w, mem, err);
    else
        rc = hfd_unit_prefetch(tx,
                               &(struct hfd_unit_prefetch){.form = &resource_form,
                                                           .query = &sql_resources_of,
                                                           .firsts = w.guresids,
                                                           .count = w.count},
                               err);
    if (rc == HFD_OK)
        rc = hfd_unit_prefetch(
            tx,
            &(struct hfd_unit_prefetch){
                .form = &part_form, .query = &sql_parts_of, .firsts = w.guresids, .count = w.count},
            err);
    return rc == HFD_OK ? prefetch_fleet(tx, w.reports, mem, err) : rc;
}

hfd_rc hfd_resource_row_at(struct hfd_txn *tx, int64_t seq, struct hfd_arena *mem,
                           struct hfd_resource_row *out, struct hfd_err *err)
{
    const struct hfd_kept *k = tx->unit != NULL ? tx->unit->tables[HFD_UNIT_RESOURCE] : NULL;

    while (k != NULL && (k->row == NULL || ((const struct hfd_resource_row *)k->row)->seq != seq))
        k = k->in_table;
    if (k != NULL)
        return hfd_unit_give(k, mem, out, err);
    return hfd_query_one(tx, &sql_resource_at, HFD_ARGS(hfd_arg_i64(seq)), mem, out, err);
}

hfd_rc hfd_resource_row_recent(struct hfd_txn *tx, hfd_slice guresid, struct hfd_arena *mem,
                               struct hfd_resource_row *out, struct hfd_err *err)
{
    hfd_slice tag = HFD_SLICE_NONE;
    hfd_rc rc;

    if (tx->cache != NULL && hfd_row_cache_get(tx->cache, guresid, mem, out))
        return HFD_OK;
    rc = hfd_resource_row_get(tx, guresid, mem, out, err);
    if (rc != HFD_OK || tx->cache == NULL)
        return rc;
    if (out->output.len > 0)
        rc = hfd_resource_row_tag(out, mem, &tag, err);
    if (tag.len > 0 && tag.len < sizeof(out->etag))
        memcpy(out->etag, tag.p, tag.len);
    if (rc == HFD_OK)
        hfd_row_cache_put(tx->cache, out, tx->seq);
    return rc;
}

hfd_rc hfd_resource_row_tag(const struct hfd_resource_row *row, struct hfd_arena *mem,
                            hfd_slice *out, struct hfd_err *err)
{
    const hfd_slice texts[] = {row->type, row->output, row->secrets};

    if (row->etag[0] == '\0')
        return hfd_etag_make(texts, HFD_COUNT_OF(texts), mem, out, err);
    *out = hfd_arena_dup(mem, hfd_slice_of(row->etag));
    return out->p != NULL ? HFD_OK : hfd_fail_nomem(err, "answer a request");
}

static void note_change(const struct hfd_txn *tx, hfd_slice guresid)
{
    if (tx->stamps != NULL)
        hfd_row_stamps_change(tx->stamps, guresid);
}

hfd_rc hfd_resource_row_put(struct hfd_txn *tx, const struct hfd_resource_row *row,
                            struct hfd_err *err)
{
    struct hfd_resource_row own;
    hfd_rc rc;

    if (row->seq == 0) {
        own = *row;
        rc = hfd_history_next_seq(tx, &own.seq, err);
        if (rc != HFD_OK)
            return rc;
        row = &own;
    }
    note_change(tx, row->guresid);
    return hfd_kept_put(tx, &resource_form, row, RESOURCE_PUT, err);
}

hfd_rc hfd_resource_row_count(struct hfd_txn *tx, const struct hfd_resource_row *row, int state,
                              int64_t by, struct hfd_err *err)
{
    const char *slash = row->type.len > 0 ? memchr(row->type.p, '/', row->type.len) : NULL;
    const size_t org = slash != NULL ? (size_t)(slash + 1 - row->type.p) : 0;
    const char digit = (char)('0' + state);

    HFD_ASSERT(state >= 0 && state <= 9);
    return hfd_totals_add(
        tx,
        &(struct hfd_count_key){
            row->kind, HFD_COUNT_RESOURCE, {row->type.p + org, row->type.len - org}, {&digit, 1}},
        by, err);
}

hfd_rc hfd_resource_row_oldest(struct hfd_txn *tx, int state, int64_t *out, struct hfd_err *err)
{
    return hfd_query_number(tx, &sql_resource_oldest, HFD_ARGS(hfd_arg_i64(state)), 0, out, err);
}

hfd_rc hfd_resource_row_stuck(struct hfd_txn *tx, const struct hfd_resource_stuck *query,
                              int64_t *out, struct hfd_err *err)
{
    return hfd_query_number(tx, &sql_resource_stuck,
                            HFD_ARGS(hfd_arg_i64(query->state), hfd_arg_i64(query->now_us),
                                     hfd_arg_i64(query->after_us)),
                            0, out, err);
}

/* Written at once: a row that is added later is another one. */
hfd_rc hfd_resource_row_delete(struct hfd_txn *tx, hfd_slice guresid, struct hfd_err *err)
{
    const struct hfd_unit_key key = {guresid, HFD_SLICE_NONE};
    hfd_rc rc = part_row_delete_all(tx, guresid, err);

    note_change(tx, guresid);
    (void)hfd_unit_keep_absent(tx, &resource_form, &key);
    if (rc == HFD_OK)
        rc = hfd_order_row_delete(tx, guresid, err);
    return rc == HFD_OK
               ? hfd_query_run(tx, hfd_resource_table.remove, HFD_ARGS(hfd_arg_text(guresid)), err)
               : rc;
}

hfd_rc hfd_resource_row_of_cluster(struct hfd_txn *tx, hfd_slice cluster_id, struct hfd_arena *mem,
                                   struct hfd_resource_list *out, struct hfd_err *err)
{
    struct hfd_row_list list;
    const hfd_rc rc = hfd_query_all(tx, &sql_resource_of_cluster,
                                    HFD_ARGS(hfd_arg_text(cluster_id)), mem, &list, err);

    *out = (struct hfd_resource_list){list.rows, list.count};
    return rc;
}

hfd_rc hfd_resource_row_refer(struct hfd_txn *tx, hfd_slice from, hfd_slice to,
                              struct hfd_arena *mem, struct hfd_err *err)
{
    struct hfd_resource_list list;
    hfd_rc rc = hfd_resource_row_of_cluster(tx, from, mem, &list, err);

    for (size_t i = 0; rc == HFD_OK && i < list.count; i++) {
        list.rows[i].cluster_id = to;
        rc = hfd_resource_row_put(tx, &list.rows[i], err);
    }
    return rc;
}

/* ---- what a job reads, noted beforehand ---- */

/* clang-format off */
static const char sql_ids_of_parts[] =
    "SELECT fleet_id FROM part WHERE guresid = ?1";
static const char sql_cluster_of[] =
    "SELECT cluster_id FROM resource WHERE guresid = ?1 AND kind = 1";
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
        rc = hfd_query_follow(tx, hfd_fleet_table.get, sql_ids_of_parts, guresid, err);
    return rc == HFD_OK
               ? hfd_query_follow(tx, hfd_report_table.list, sql_ids_of_parts, guresid, err)
               : rc;
}

hfd_rc hfd_prefetch_deletion(struct hfd_txn *tx, hfd_slice guresid, struct hfd_err *err)
{
    hfd_rc rc = hfd_prefetch_resource(tx, guresid, err);

    if (rc == HFD_OK)
        rc = hfd_query_follow(tx, hfd_resource_table.list, sql_cluster_of, guresid, err);
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
        rc = hfd_query_follow(tx, &sql_part_by_fleet, sql_if_observed, id, err);
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
