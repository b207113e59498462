/* The SQL is the portable subset. Thread: that of the transaction. */
#include "store/rows_report.h"

#include "store/row_io.h"
#include "store/row_sum.h"
#include "store/row_walk.h"
#include "store/search_int.h"
#include "store/unit.h"

/* clang-format off */
#define REPORT_COLUMNS \
    "fleet_id, adapter, observed_generation, observed_us, received_us, created_us, conditions, data, metadata, objects, secrets, brief, long_bytes, sum, doc_sum"

static const char sql_report_list[] =
    "SELECT " REPORT_COLUMNS " FROM report WHERE fleet_id = ?1 ORDER BY created_us, adapter LIMIT ?2 OFFSET ?3";
static const char sql_report_count[] =
    "SELECT COUNT(*) FROM report WHERE fleet_id = ?1";
static const char sql_report_heads[] =
    "SELECT fleet_id, adapter, observed_generation, observed_us, received_us, created_us,"
    " CASE WHEN brief = '' THEN conditions ELSE brief END, '', '', objects, NULL, brief, long_bytes, sum, NULL"
    " FROM report WHERE fleet_id = ?1 ORDER BY created_us, adapter";
static const char sql_report_get[] =
    "SELECT " REPORT_COLUMNS " FROM report WHERE fleet_id = ?1 AND adapter = ?2";
static const char sql_report_spend[] =
    "UPDATE report SET received_us = 0, sum = sum - received_us WHERE fleet_id = ?1";
static const char sql_report_delete_all[] =
    "DELETE FROM report WHERE fleet_id = ?1";
static const char sql_report_delete[] =
    "DELETE FROM report WHERE fleet_id = ?1 AND adapter = ?2";
static const char sql_report_put[] = /* created_us stays that of the first report */
    "INSERT INTO report (" REPORT_COLUMNS ")"
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)"
    " ON CONFLICT (fleet_id, adapter) DO UPDATE SET observed_generation = excluded.observed_generation,"
    " observed_us = excluded.observed_us, received_us = excluded.received_us, conditions = excluded.conditions,"
    " data = excluded.data, metadata = excluded.metadata, objects = excluded.objects, secrets = excluded.secrets, brief = excluded.brief,"
    " long_bytes = excluded.long_bytes, sum = excluded.sum, doc_sum = excluded.doc_sum";
static const char sql_report_keys[] =
    "SELECT fleet_id, adapter FROM report WHERE (fleet_id, adapter) > (?1, ?2) ORDER BY fleet_id, adapter LIMIT 100";
static const char sql_report_open[] =
    "SELECT fleet_id, adapter FROM report WHERE (fleet_id, adapter) > (?1, ?2) AND sum IS NULL ORDER BY fleet_id, adapter LIMIT 100";
static const char sql_report_fill[] =
    "UPDATE report SET sum = ?3, doc_sum = ?4 WHERE fleet_id = ?1 AND adapter = ?2";
/* clang-format on */

/*
 * Those that heads leave out, the one that may be none first, and then those of the head. The
 * checksum of a head with a brief form covers that form, and the other one the long conditions.
 */
static const size_t report_texts[] = {
    offsetof(struct hfd_report_row, secrets),  offsetof(struct hfd_report_row, data),
    offsetof(struct hfd_report_row, metadata), offsetof(struct hfd_report_row, fleet_id),
    offsetof(struct hfd_report_row, adapter),  offsetof(struct hfd_report_row, conditions),
    offsetof(struct hfd_report_row, objects),  offsetof(struct hfd_report_row, brief),
};
#define REPORT_TEXTS (sizeof(report_texts) / sizeof(report_texts[0]))
#define DOC_TEXTS 3u
#define HEAD_TEXTS 4u /* behind those; not brief, which is the conditions of its head */

static int64_t sum_of(const struct hfd_report_row *row)
{
    const int64_t numbers[] = {row->observed_generation, row->observed_us, row->created_us,
                               row->long_bytes};
    struct hfd_report_row head = *row;
    int64_t sum;

    if (row->brief.len > 0)
        head.conditions = row->brief;
    sum = hfd_row_sum(&(struct hfd_row_values){&head, report_texts + DOC_TEXTS, HEAD_TEXTS, numbers,
                                               sizeof(numbers) / sizeof(numbers[0])});

    return (int64_t)((uint64_t)sum + (uint64_t)row->received_us);
}

static int64_t doc_sum_of(const struct hfd_report_row *row)
{
    const size_t texts[] = {report_texts[0], report_texts[1], report_texts[2],
                            offsetof(struct hfd_report_row, conditions)};

    return hfd_row_sum(&(struct hfd_row_values){
        row, texts, row->brief.len > 0 ? DOC_TEXTS + 1 : DOC_TEXTS, NULL, 0});
}

static void read_head(struct hfd_row_in *in, void *out)
{
    struct hfd_report_row *row = out;

    row->fleet_id = hfd_row_text(in);
    row->adapter = hfd_row_text(in);
    row->observed_generation = hfd_row_i64(in);
    row->observed_us = hfd_row_i64(in);
    row->received_us = hfd_row_i64(in);
    row->created_us = hfd_row_i64(in);
    row->conditions = hfd_row_text(in);
    row->data = hfd_row_text(in);
    row->metadata = hfd_row_text(in);
    row->objects = hfd_row_text(in);
    row->secrets = hfd_row_blob(in);
    row->brief = hfd_row_text(in);
    row->long_bytes = hfd_row_i64(in);
    hfd_row_check(in, sum_of(row), &(struct hfd_row_name){"report", row->fleet_id, row->adapter});
}

static void read_report(struct hfd_row_in *in, void *out)
{
    const struct hfd_report_row *row = out;

    read_head(in, out);
    hfd_row_check(in, doc_sum_of(row),
                  &(struct hfd_row_name){"report", row->fleet_id, row->adapter});
}

static const struct hfd_row_form report_form = {"report", read_report,
                                                sizeof(struct hfd_report_row)};
static const struct hfd_row_form head_form = {"report", read_head, sizeof(struct hfd_report_row)};

/* ---- how rows are kept ---- */

static struct hfd_unit_key key_of(const void *row)
{
    const struct hfd_report_row *report = row;

    return (struct hfd_unit_key){report->fleet_id, report->adapter};
}

/* The order of sql_report_heads. */
static int compare(const void *a, const void *b)
{
    const struct hfd_report_row *x = a, *y = b;

    if (x->created_us != y->created_us)
        return x->created_us < y->created_us ? -1 : 1;
    return hfd_slice_cmp(x->adapter, y->adapter);
}

static void behead(void *row)
{
    struct hfd_report_row *report = row;

    report->data = report->metadata = HFD_SLICE("");
    report->secrets = HFD_SLICE_NONE;
    if (report->brief.len > 0)
        report->conditions = report->brief;
}

static hfd_rc write_kept(struct hfd_txn *tx, const struct hfd_kept *kept, struct hfd_err *err);

static const struct hfd_unit_form kept_form = {
    .table = HFD_UNIT_REPORT,
    .what = "report",
    .size = sizeof(struct hfd_report_row),
    .texts = report_texts,
    .text_count = REPORT_TEXTS,
    .none_count = 1, /* secrets */
    .key_of = key_of,
    .compare = compare,
    .behead = behead,
    .write = write_kept,
};

#define CHANGE_PUT 1u

/* ---- rows ---- */

static hfd_rc read_page(struct hfd_txn *tx, const struct hfd_report_query *query,
                        struct hfd_arena *mem, struct hfd_report_list *out, struct hfd_err *err)
{
    struct hfd_row_list list;
    struct hfd_stmt *st;
    hfd_rc rc = hfd_db_prepare(tx->db, sql_report_list, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(query->fleet_id));
    hfd_stmt_i64(st, 2, query->limit);
    hfd_stmt_i64(st, 3, query->offset);
    rc = hfd_row_all(st, &report_form, mem, &list, err);
    out->rows = list.rows;
    out->count = list.count;
    return rc;
}

static hfd_rc count_all(struct hfd_txn *tx, hfd_slice fleet_id, int64_t *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_db_prepare(tx->db, sql_report_count, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(fleet_id));
    return hfd_row_number(st, 0, out, err);
}

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

static void add_page(struct hfd_sql *q, const struct hfd_report_query *query)
{
    hfd_buf_lit(&q->text, "SELECT " REPORT_COLUMNS);
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
    struct hfd_stmt *st;
    struct hfd_sql q;
    hfd_rc rc = count_found(tx, query, mem, &out->total, err);

    if (rc != HFD_OK)
        return rc;
    hfd_sql_init(&q, tx->db, mem);
    add_page(&q, query);
    rc = hfd_sql_prepare(&q, tx->db, &st, err);
    if (rc == HFD_OK)
        rc = hfd_row_all(st, &report_form, mem, &list, err);
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
    hfd_rc rc = hfd_unit_write_table(tx, HFD_UNIT_REPORT, err);

    *out = (struct hfd_report_list){.count = 0};
    if (rc == HFD_OK && (query->filter != NULL || query->order_count > 0))
        return read_found(tx, query, mem, out, err);
    if (rc == HFD_OK)
        rc = count_all(tx, query->fleet_id, &out->total, err);
    return rc == HFD_OK ? read_page(tx, query, mem, out, err) : rc;
}

static hfd_rc read_heads(struct hfd_txn *tx, hfd_slice fleet_id, struct hfd_arena *mem,
                         struct hfd_row_list *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_db_prepare(tx->db, sql_report_heads, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(fleet_id));
    return hfd_row_all(st, &head_form, mem, out, err);
}

hfd_rc hfd_report_row_heads(struct hfd_txn *tx, hfd_slice fleet_id, struct hfd_arena *mem,
                            struct hfd_report_list *out, struct hfd_err *err)
{
    const struct hfd_unit_list heads = {
        .form = &kept_form, .first = fleet_id, .mem = mem, .heads = true, .read = read_heads};
    struct hfd_row_list list;
    const hfd_rc rc = hfd_unit_list(tx, &heads, &list, err);

    *out = (struct hfd_report_list){list.rows, list.count, (int64_t)list.count};
    return rc;
}

hfd_rc hfd_report_row_get(struct hfd_txn *tx, const struct hfd_report_key *key,
                          struct hfd_arena *mem, struct hfd_report_row *out, struct hfd_err *err)
{
    const struct hfd_unit_key kept_key = {key->fleet_id, key->adapter};
    const struct hfd_kept *kept = hfd_unit_find(tx, &kept_form, &kept_key);
    struct hfd_stmt *st;
    hfd_rc rc;

    if (kept != NULL && !kept->head)
        return hfd_unit_give(kept, mem, out, err);
    if (kept == NULL && hfd_unit_has_all(tx, &kept_form, key->fleet_id))
        return hfd_fail(err, HFD_NOT_FOUND, "no such report is stored");
    rc = hfd_db_prepare(tx->db, sql_report_get, &st, err);
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(key->fleet_id));
    hfd_stmt_text(st, 2, hfd_row_some(key->adapter));
    rc = hfd_row_one(st, &report_form, mem, out, err);
    if (rc == HFD_OK)
        (void)hfd_unit_keep(tx, &kept_form, out);
    else if (rc == HFD_NOT_FOUND)
        (void)hfd_unit_keep_absent(tx, &kept_form, &kept_key);
    return rc;
}

/* Written at once: it is one statement for all reports. */
hfd_rc hfd_report_row_spend(struct hfd_txn *tx, hfd_slice fleet_id, struct hfd_err *err)
{
    struct hfd_kept *k = tx->unit != NULL ? tx->unit->tables[HFD_UNIT_REPORT] : NULL;

    for (; k != NULL; k = k->in_table)
        if (k->row != NULL && hfd_slice_eq(k->key.first, fleet_id))
            ((struct hfd_report_row *)k->row)->received_us = 0;
    return hfd_row_run(tx, sql_report_spend, fleet_id, HFD_SLICE_NONE, err);
}

static hfd_rc write_row(struct hfd_txn *tx, const struct hfd_report_row *row, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_row_write(tx, sql_report_put, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(row->fleet_id));
    hfd_stmt_text(st, 2, hfd_row_some(row->adapter));
    hfd_stmt_i64(st, 3, row->observed_generation);
    hfd_stmt_i64(st, 4, row->observed_us);
    hfd_stmt_i64(st, 5, row->received_us);
    hfd_stmt_i64(st, 6, row->created_us);
    hfd_stmt_text(st, 7, hfd_row_some(row->conditions));
    hfd_stmt_text(st, 8, hfd_row_some(row->data));
    hfd_stmt_text(st, 9, hfd_row_some(row->metadata));
    hfd_stmt_text(st, 10, hfd_row_some(row->objects));
    hfd_stmt_blob(st, 11, row->secrets);
    hfd_stmt_text(st, 12, hfd_row_some(row->brief));
    hfd_stmt_i64(st, 13, row->long_bytes);
    hfd_stmt_i64(st, 14, sum_of(row));
    hfd_stmt_i64(st, 15, doc_sum_of(row));
    return hfd_stmt_run(st, NULL, err);
}

static hfd_rc write_kept(struct hfd_txn *tx, const struct hfd_kept *kept, struct hfd_err *err)
{
    return write_row(tx, kept->row, err);
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
    const struct hfd_unit_key key = key_of(row);
    struct hfd_kept *kept = hfd_unit_find(tx, &kept_form, &key);
    struct hfd_report_row new = *row;
    hfd_rc rc = HFD_OK;

    if (kept != NULL && kept->row != NULL)
        new.created_us = ((const struct hfd_report_row *)kept->row)->created_us;
    else if (kept == NULL && !hfd_unit_has_all(tx, &kept_form, row->fleet_id))
        rc = read_created(tx, &new, err);
    if (rc != HFD_OK)
        return rc;
    kept = hfd_unit_keep(tx, &kept_form, &new);
    if (kept == NULL)
        return write_row(tx, &new, err);
    hfd_unit_change(tx, kept, CHANGE_PUT);
    return HFD_OK;
}

hfd_rc hfd_report_row_delete_all(struct hfd_txn *tx, hfd_slice fleet_id, struct hfd_err *err)
{
    hfd_unit_lose_all(tx, &kept_form, fleet_id);
    return hfd_row_run(tx, sql_report_delete_all, fleet_id, HFD_SLICE_NONE, err);
}

hfd_rc hfd_report_row_delete(struct hfd_txn *tx, const struct hfd_report_key *key,
                             struct hfd_err *err)
{
    const struct hfd_unit_key kept_key = {key->fleet_id, key->adapter};

    (void)hfd_unit_keep_absent(tx, &kept_form, &kept_key);
    return hfd_row_run(tx, sql_report_delete, key->fleet_id, key->adapter, err);
}

hfd_rc hfd_report_row_follow(struct hfd_txn *tx, const char *via, hfd_slice key,
                             struct hfd_err *err)
{
    return hfd_db_follow(tx->db, &(struct hfd_db_follow){via, sql_report_heads}, key, err);
}

/* ---- checksums ---- */

const struct hfd_sum_table hfd_report_sums = {
    "report", &report_form, sql_report_keys, sql_report_open, sql_report_get, sql_report_fill, 2};
