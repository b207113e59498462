/* See rows_report.h. The SQL is the portable subset. Thread: that of the transaction. */
#include "store/rows_report.h"

#include "driver/base/arena.h"
#include "store/row_io.h"
#include "store/search.h"

/* ---- reports ---- */

#define REPORT_COL(type, member) HFD_COL(struct hfd_report_row, type, #member, member)

/* clang-format off */
static const struct hfd_col report_cols[] = {
    {REPORT_COL(TEXT, fleet_id), .sum = 1},
    {REPORT_COL(TEXT, adapter), .sum = 2},
    {REPORT_COL(I64, observed_generation), .sum = 1},
    {REPORT_COL(I64, observed_us), .sum = 2},
    {REPORT_COL(I64, received_us)}, /* sum_of adds it */
    {REPORT_COL(I64, created_us), .sum = 3, .marks = HFD_COL_STAYS}, /* that of the first report */
    {REPORT_COL(TEXT, conditions), .sum = 3, .doc = 4, .head = "CASE WHEN brief = '' THEN conditions ELSE brief END"},
    {REPORT_COL(TEXT, data), .doc = 2, .head = "''"},
    {REPORT_COL(TEXT, metadata), .doc = 3, .head = "''"},
    {REPORT_COL(TEXT, objects), .sum = 4},
    {REPORT_COL(NONE, secrets), .doc = 1, .head = "NULL"},
    {REPORT_COL(TEXT, brief)}, /* it is the conditions of its head */
    {REPORT_COL(I64, long_bytes), .sum = 4},
    {.name = "sum", .type = HFD_COL_SUM, .marks = HFD_COL_FILLED},
    {.name = "doc_sum", .type = HFD_COL_DOC_SUM, .marks = HFD_COL_FILLED},
};
static int64_t sum_of(const void *row, bool doc);
static struct hfd_query sql_report_heads;
const struct hfd_table hfd_report_table = {
    HFD_TABLE("report", struct hfd_report_row, "report", report_cols), .keys = 2, .sum = sum_of,
    HFD_TABLE_GET(hfd_report_table), HFD_TABLE_PUT(hfd_report_table), HFD_TABLE_REMOVE(hfd_report_table), .list = &sql_report_heads};
/* Without the documents and their checksum. */
static const struct hfd_table report_heads = {
    HFD_TABLE_OF("report", struct hfd_report_row, "report", report_cols, HFD_COUNT_OF(report_cols) - 1), .keys = 2, .sum = sum_of};

static struct hfd_query sql_report_list = {.table = &hfd_report_table, .by = {"fleet_id"}, .text =
    "SELECT @cols FROM report WHERE fleet_id = ?1 ORDER BY created_us, adapter LIMIT ?2 OFFSET ?3"};
static struct hfd_query sql_report_count = {.table = &hfd_report_table, .by = {"fleet_id"}, .text = "SELECT COUNT(*) FROM report WHERE fleet_id = ?1"};
static struct hfd_query sql_report_heads_of = {.table = &report_heads, .text =
    "SELECT @heads, NULL FROM report WHERE fleet_id IN (" HFD_SQL_TEXTS_OF("?1") ") ORDER BY fleet_id, created_us, adapter"};
static struct hfd_query sql_report_heads = {.table = &report_heads, .by = {"fleet_id"}, .text =
    "SELECT @heads, NULL FROM report WHERE fleet_id = ?1 ORDER BY created_us, adapter"};
static struct hfd_query sql_report_found = {.table = &hfd_report_table, .text = "SELECT @cols"};
static struct hfd_query sql_report_spend = {.table = &hfd_report_table, .by = {"fleet_id"}, .text =
    "UPDATE report SET received_us = 0, sum = sum - received_us WHERE fleet_id = ?1"};
static struct hfd_query sql_report_delete_all = {.table = &hfd_report_table, .by = {"fleet_id"}, .text = "DELETE FROM report WHERE fleet_id = ?1"};
/* clang-format on */

/*
 * The checksum of a head with a brief form covers that form, and the one of the documents the long
 * conditions.
 */
static int64_t sum_of(const void *row, bool doc)
{
    struct hfd_report_row r = *(const struct hfd_report_row *)row;

    if (doc && r.brief.len == 0)
        r.conditions = HFD_SLICE_NONE;
    if (!doc && r.brief.len > 0)
        r.conditions = r.brief;
    return (int64_t)((uint64_t)hfd_table_sum(&hfd_report_table, &r, doc) +
                     (doc ? 0 : (uint64_t)r.received_us));
}

/* ---- how rows are kept ---- */

/* The order of sql_report_heads. */
static int compare_reports(const void *a, const void *b)
{
    const struct hfd_report_row *x = a, *y = b;

    if (x->created_us != y->created_us)
        return x->created_us < y->created_us ? -1 : 1;
    return hfd_slice_cmp(x->adapter, y->adapter);
}

static void behead_report(void *row)
{
    struct hfd_report_row *report = row;

    report->data = report->metadata = HFD_SLICE("");
    report->secrets = HFD_SLICE_NONE;
    if (report->brief.len > 0)
        report->conditions = report->brief;
}

static const struct hfd_unit_form report_form = {
    .table = HFD_UNIT_REPORT,
    .rows = &hfd_report_table,
    .compare = compare_reports,
    .behead = behead_report,
    .write = hfd_kept_write,
};

#define REPORT_PUT 1u

/* ---- rows ---- */

/* Adds " FROM report f WHERE ..." with the filter. */
static void add_from(struct hfd_sql *q, const struct hfd_report_query *query)
{
    hfd_buf_lit(&q->text, " FROM report f WHERE f.fleet_id = ");
    hfd_sql_text(q, query->fleet_id);
    if (query->filter == NULL)
        return;
    hfd_buf_lit(&q->text, " AND ");
    hfd_sql_filter(q, HFD_KIND_CLUSTER, query->filter);
}

static void add_page(struct hfd_sql *q, const char *columns, const struct hfd_report_query *query)
{
    hfd_buf_add(&q->text, hfd_slice_of(columns));
    add_from(q, query);
    hfd_buf_lit(&q->text, " ORDER BY ");
    for (size_t i = 0; i < query->order_count; i++) {
        hfd_sql_field(q, query->order[i].field, query->order[i].name);
        hfd_buf_add(&q->text, query->order[i].descending ? HFD_SLICE(" DESC, ") : HFD_SLICE(", "));
    }
    hfd_buf_lit(&q->text, "f.created_us, f.adapter LIMIT ");
    hfd_sql_i64(q, query->limit);
    hfd_buf_lit(&q->text, " OFFSET ");
    hfd_sql_i64(q, query->offset);
}

static hfd_rc count_found(struct hfd_txn *tx, const struct hfd_report_query *query,
                          struct hfd_arena *mem, int64_t *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    struct hfd_sql q;
    hfd_rc rc;

    hfd_sql_init(&q, tx->db, mem);
    hfd_buf_lit(&q.text, "SELECT COUNT(*)");
    add_from(&q, query);
    rc = hfd_sql_prepare(&q, tx->db, &st, err);
    hfd_sql_fini(&q);
    if (rc == HFD_OK)
        return hfd_row_number(st, 0, out, err);
    hfd_stmt_done(st);
    return rc;
}

/* A search is composed: its statements are not kept. */
static hfd_rc read_found(struct hfd_txn *tx, const struct hfd_report_query *query,
                         struct hfd_arena *mem, struct hfd_report_list *out, struct hfd_err *err)
{
    struct hfd_row_list list = {NULL, 0};
    const char *columns;
    struct hfd_stmt *st;
    struct hfd_sql q;
    hfd_rc rc = count_found(tx, query, mem, &out->total, err);

    if (rc == HFD_OK)
        rc = hfd_query_sql(&sql_report_found, &columns, err);
    if (rc != HFD_OK)
        return rc;
    hfd_sql_init(&q, tx->db, mem);
    add_page(&q, columns, query);
    rc = hfd_sql_prepare(&q, tx->db, &st, err);
    if (rc == HFD_OK)
        rc = hfd_row_all(st, &hfd_report_table.form, mem, &list, err);
    else
        hfd_stmt_done(st);
    hfd_sql_fini(&q);
    out->rows = list.rows;
    out->count = list.count;
    return rc;
}

hfd_rc hfd_report_row_list(struct hfd_txn *tx, const struct hfd_report_query *query,
                           struct hfd_arena *mem, struct hfd_report_list *out, struct hfd_err *err)
{
    struct hfd_row_list list;
    hfd_rc rc = hfd_unit_write_table(tx, HFD_UNIT_REPORT, err);

    *out = (struct hfd_report_list){.count = 0};
    if (rc == HFD_OK && (query->filter != NULL || query->order_count > 0))
        return read_found(tx, query, mem, out, err);
    if (rc == HFD_OK)
        rc = hfd_query_number(tx, &sql_report_count, HFD_ARGS(hfd_arg_text(query->fleet_id)), 0,
                              &out->total, err);
    if (rc != HFD_OK)
        return rc;
    rc = hfd_query_all(tx, &sql_report_list,
                       HFD_ARGS(hfd_arg_text(query->fleet_id), hfd_arg_i64(query->limit),
                                hfd_arg_i64(query->offset)),
                       mem, &list, err);
    *out = (struct hfd_report_list){list.rows, list.count, out->total};
    return rc;
}

static hfd_rc read_heads(struct hfd_txn *tx, hfd_slice fleet_id, struct hfd_arena *mem,
                         struct hfd_row_list *out, struct hfd_err *err)
{
    return hfd_query_all(tx, &sql_report_heads, HFD_ARGS(hfd_arg_text(fleet_id)), mem, out, err);
}

hfd_rc hfd_report_row_heads(struct hfd_txn *tx, hfd_slice fleet_id, struct hfd_arena *mem,
                            struct hfd_report_list *out, struct hfd_err *err)
{
    const struct hfd_unit_list heads = {
        .form = &report_form, .first = fleet_id, .mem = mem, .heads = true, .read = read_heads};
    struct hfd_row_list list;
    const hfd_rc rc = hfd_unit_list(tx, &heads, &list, err);

    *out = (struct hfd_report_list){list.rows, list.count, (int64_t)list.count};
    return rc;
}

hfd_rc hfd_report_row_prefetch(struct hfd_txn *tx, const hfd_slice *fleet_ids, size_t count,
                               struct hfd_err *err)
{
    return hfd_unit_prefetch(tx,
                             &(struct hfd_unit_prefetch){.form = &report_form,
                                                         .query = &sql_report_heads_of,
                                                         .firsts = fleet_ids,
                                                         .count = count,
                                                         .heads = true},
                             err);
}

hfd_rc hfd_report_row_get(struct hfd_txn *tx, const struct hfd_report_key *key,
                          struct hfd_arena *mem, struct hfd_report_row *out, struct hfd_err *err)
{
    return hfd_kept_get(tx, &report_form, &(struct hfd_unit_key){key->fleet_id, key->adapter}, mem,
                        out, err);
}

/* Written at once: it is one statement for all reports. */
hfd_rc hfd_report_row_spend(struct hfd_txn *tx, hfd_slice fleet_id, struct hfd_err *err)
{
    struct hfd_kept *k = tx->unit != NULL ? tx->unit->tables[HFD_UNIT_REPORT] : NULL;

    for (; k != NULL; k = k->in_table)
        if (k->row != NULL && hfd_slice_eq(k->key.first, fleet_id))
            ((struct hfd_report_row *)k->row)->received_us = 0;
    return hfd_query_run(tx, &sql_report_spend, HFD_ARGS(hfd_arg_text(fleet_id)), err);
}

/* Reads when the report that is replaced was made. A damaged one is not written over. */
static hfd_rc read_created(struct hfd_txn *tx, struct hfd_report_row *row, struct hfd_err *err)
{
    const struct hfd_report_key key = {row->fleet_id, row->adapter};
    struct hfd_report_row was;
    struct hfd_arena mem;
    hfd_rc rc;

    hfd_arena_init(&mem, HFD_ROW_BYTES_MAX);
    rc = hfd_report_row_get(tx, &key, &mem, &was, err);
    if (rc == HFD_OK)
        row->created_us = was.created_us;
    hfd_arena_fini(&mem);
    return rc == HFD_NOT_FOUND ? HFD_OK : rc;
}

hfd_rc hfd_report_row_put(struct hfd_txn *tx, const struct hfd_report_row *row, struct hfd_err *err)
{
    const struct hfd_unit_key key = {row->fleet_id, row->adapter};
    const struct hfd_kept *kept = hfd_unit_find(tx, &report_form, &key);
    struct hfd_report_row new = *row;
    hfd_rc rc = HFD_OK;

    if (kept != NULL && kept->row != NULL)
        new.created_us = ((const struct hfd_report_row *)kept->row)->created_us;
    else if (kept == NULL && !hfd_unit_has_all(tx, &report_form, row->fleet_id))
        rc = read_created(tx, &new, err);
    return rc == HFD_OK ? hfd_kept_put(tx, &report_form, &new, REPORT_PUT, err) : rc;
}

hfd_rc hfd_report_row_delete_all(struct hfd_txn *tx, hfd_slice fleet_id, struct hfd_err *err)
{
    hfd_unit_lose_all(tx, &report_form, fleet_id);
    return hfd_query_run(tx, &sql_report_delete_all, HFD_ARGS(hfd_arg_text(fleet_id)), err);
}

hfd_rc hfd_report_row_delete(struct hfd_txn *tx, const struct hfd_report_key *key,
                             struct hfd_err *err)
{
    const struct hfd_unit_key kept_key = {key->fleet_id, key->adapter};

    (void)hfd_unit_keep_absent(tx, &report_form, &kept_key);
    return hfd_query_run(tx, hfd_report_table.remove,
                         HFD_ARGS(hfd_arg_text(key->fleet_id), hfd_arg_text(key->adapter)), err);
}

/* ---- events ---- */

#define EVENT_COL(type, member) HFD_COL(struct hfd_event_row, type, #member, member)

/* clang-format off */
static const struct hfd_col event_cols[] = {
    {EVENT_COL(TEXT, fleet_id)}, {EVENT_COL(I64, seq)}, {EVENT_COL(I64, first_us)}, {EVENT_COL(I64, last_us)},
    {EVENT_COL(I64, count)}, {EVENT_COL(BOOL, warning)}, {EVENT_COL(TEXT, reason)}, {EVENT_COL(TEXT, message)},
};
const struct hfd_table hfd_event_table = {
    HFD_TABLE("event", struct hfd_event_row, "event", event_cols), .keys = 2};

static struct hfd_query sql_event_find = {.table = &hfd_event_table, .by = {"fleet_id", "reason", "message"}, .text =
    "SELECT @cols FROM event WHERE fleet_id = ?1 AND reason = ?2 AND message = ?3 ORDER BY seq DESC LIMIT 1"};
static struct hfd_query sql_event_add = {.table = &hfd_event_table, .text =
    "INSERT INTO event (@cols)"
    " SELECT ?1, COALESCE(MAX(seq), 0) + 1, ?2, ?3, ?4, ?5, ?6, ?7 FROM event WHERE fleet_id = ?1"};
static struct hfd_query sql_event_trim = {.table = &hfd_event_table, .text =
    "DELETE FROM event WHERE fleet_id = ?1 AND seq <= (SELECT MAX(seq) FROM event WHERE fleet_id = ?1) - ?2"};
static struct hfd_query sql_event_repeat = {.table = &hfd_event_table, .by = {"fleet_id", "seq"}, .text =
    "UPDATE event SET last_us = ?3, count = ?4 WHERE fleet_id = ?1 AND seq = ?2"};
static struct hfd_query sql_event_count = {.table = &hfd_event_table, .by = {"fleet_id"}, .text = "SELECT COUNT(*) FROM event WHERE fleet_id = ?1"};
static struct hfd_query sql_event_list = {.table = &hfd_event_table, .by = {"fleet_id"}, .text =
    "SELECT @cols FROM event WHERE fleet_id = ?1 ORDER BY seq LIMIT ?2 OFFSET ?3"};
static struct hfd_query sql_event_delete_all = {.table = &hfd_event_table, .by = {"fleet_id"}, .text = "DELETE FROM event WHERE fleet_id = ?1"};
/* clang-format on */

hfd_rc hfd_event_row_find(struct hfd_txn *tx, const struct hfd_event_row *like,
                          struct hfd_arena *mem, struct hfd_event_row *out, struct hfd_err *err)
{
    return hfd_query_one(tx, &sql_event_find,
                         HFD_ARGS(hfd_arg_text(like->fleet_id), hfd_arg_text(like->reason),
                                  hfd_arg_text(like->message)),
                         mem, out, err);
}

hfd_rc hfd_event_row_add(struct hfd_txn *tx, const struct hfd_event_row *row, int64_t keep,
                         struct hfd_err *err)
{
    const hfd_rc rc = hfd_query_run(tx, &sql_event_add,
                                    HFD_ARGS(hfd_arg_text(row->fleet_id),
                                             hfd_arg_i64(row->first_us), hfd_arg_i64(row->last_us),
                                             hfd_arg_i64(row->count), hfd_arg_i64(row->warning),
                                             hfd_arg_text(row->reason), hfd_arg_text(row->message)),
                                    err);

    return rc == HFD_OK
               ? hfd_query_run(tx, &sql_event_trim,
                               HFD_ARGS(hfd_arg_text(row->fleet_id), hfd_arg_i64(keep)), err)
               : rc;
}

hfd_rc hfd_event_row_repeat(struct hfd_txn *tx, const struct hfd_event_row *row,
                            struct hfd_err *err)
{
    return hfd_query_run(tx, &sql_event_repeat,
                         HFD_ARGS(hfd_arg_text(row->fleet_id), hfd_arg_i64(row->seq),
                                  hfd_arg_i64(row->last_us), hfd_arg_i64(row->count)),
                         err);
}

hfd_rc hfd_event_row_list(struct hfd_txn *tx, const struct hfd_event_query *query,
                          struct hfd_arena *mem, struct hfd_event_list *out, struct hfd_err *err)
{
    struct hfd_row_list list = {NULL, 0};
    hfd_rc rc = hfd_query_number(tx, &sql_event_count, HFD_ARGS(hfd_arg_text(query->fleet_id)), 0,
                                 &out->total, err);

    if (rc == HFD_OK)
        rc = hfd_query_all(tx, &sql_event_list,
                           HFD_ARGS(hfd_arg_text(query->fleet_id), hfd_arg_i64(query->limit),
                                    hfd_arg_i64(query->offset)),
                           mem, &list, err);
    *out = (struct hfd_event_list){list.rows, list.count, out->total};
    return rc;
}

hfd_rc hfd_event_row_delete_all(struct hfd_txn *tx, hfd_slice fleet_id, struct hfd_err *err)
{
    return hfd_query_run(tx, &sql_event_delete_all, HFD_ARGS(hfd_arg_text(fleet_id)), err);
}

/* ---- documents that age ---- */

#define WATCH_COL(type, member) HFD_COL(struct hfd_watch_row, type, #member, member)

/* clang-format off */
static const struct hfd_col watch_cols[] = {
    {WATCH_COL(TEXT, fleet_id)}, {WATCH_COL(TEXT, adapter)}, {WATCH_COL(I64, stale_us)}, {WATCH_COL(BOOL, told)},
};
const struct hfd_table hfd_watch_table = {
    HFD_TABLE("watch", struct hfd_watch_row, "watch", watch_cols), .keys = 2,
    HFD_TABLE_GET(hfd_watch_table), HFD_TABLE_PUT(hfd_watch_table), HFD_TABLE_REMOVE(hfd_watch_table)};

static struct hfd_query sql_watch_delete_all = {.table = &hfd_watch_table, .by = {"fleet_id"}, .text = "DELETE FROM watch WHERE fleet_id = ?1"};
static struct hfd_query sql_watch_next = {.table = &hfd_watch_table, .text =
    "SELECT stale_us FROM watch WHERE told = 0 ORDER BY stale_us LIMIT 1"};
static struct hfd_query sql_watch_stale = {.table = &hfd_watch_table, .text =
    "SELECT @cols FROM watch WHERE told = 0 AND stale_us < ?1 ORDER BY stale_us LIMIT ?2"};
/* clang-format on */

hfd_rc hfd_watch_row_get(struct hfd_txn *tx, const struct hfd_watch_row *key, struct hfd_arena *mem,
                         struct hfd_watch_row *out, struct hfd_err *err)
{
    return hfd_query_one(tx, hfd_watch_table.get,
                         HFD_ARGS(hfd_arg_text(key->fleet_id), hfd_arg_text(key->adapter)), mem,
                         out, err);
}

hfd_rc hfd_watch_row_put(struct hfd_txn *tx, const struct hfd_watch_row *row, struct hfd_err *err)
{
    return hfd_query_write(tx, hfd_watch_table.put, row, NULL, err);
}

hfd_rc hfd_watch_row_delete(struct hfd_txn *tx, const struct hfd_watch_row *key,
                            struct hfd_err *err)
{
    if (key->adapter.len == 0)
        return hfd_query_run(tx, &sql_watch_delete_all, HFD_ARGS(hfd_arg_text(key->fleet_id)), err);
    return hfd_query_run(tx, hfd_watch_table.remove,
                         HFD_ARGS(hfd_arg_text(key->fleet_id), hfd_arg_text(key->adapter)), err);
}

hfd_rc hfd_watch_row_next(struct hfd_txn *tx, int64_t *out, struct hfd_err *err)
{
    return hfd_query_number(tx, &sql_watch_next, HFD_ARGS_NONE, INT64_MAX, out, err);
}

hfd_rc hfd_watch_row_stale(struct hfd_txn *tx, const struct hfd_watch_query *query,
                           struct hfd_arena *mem, struct hfd_watch_list *out, struct hfd_err *err)
{
    return HFD_QUERY_LIST(tx, &sql_watch_stale,
                          HFD_ARGS(hfd_arg_i64(query->before_us), hfd_arg_i64(query->limit)), mem,
                          out, err);
}
