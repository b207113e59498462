/*
 * Plans a list and runs it.
 *
 * A set of (seq, at), read from one index, drives the query (search_drive.h). The rest of the
 * filter is checked on the rows of that set. Candidates are the parts of the filter's top-level AND
 * that name an index. Of several, the smallest set is taken: each is counted up to a bound. Without
 * candidates the set is the whole kind, newest first.
 */
#include "store/search.h"

#include "driver/base/check.h"
#include "store/row_io.h"
#include "store/search_drive.h"
#include "store/totals.h"
#include "store/unit.h"

#define PROBE_ROWS                                                                                 \
    INT64_C(                                                                                       \
        1000) /* the first bound of counting; it rises tenfold while every candidate reaches it */
#define PROBE_ROWS_MAX INT64_C(1000000)
#define CANDIDATES_MAX 8

struct plan {
    const struct hfd_fleet_query *query;
    struct hfd_arena *mem;
    struct hfd_filter_parts parts;
    struct hfd_drive drive;
    bool sorted; /* by more than the time of creation */
    bool rows;   /* something is asked of the fleet's rows themselves */
};

/* ---- choosing ---- */

static hfd_rc run_count(struct hfd_txn *tx, struct hfd_sql *q, int64_t *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    bool row = false;
    hfd_rc rc = hfd_sql_prepare(q, tx->db, &st, err);

    if (rc == HFD_OK)
        rc = hfd_stmt_step(st, &row, err);
    HFD_ASSERT(rc != HFD_OK || row);
    *out = rc == HFD_OK ? hfd_stmt_col_i64(st, 0) : 0;
    hfd_stmt_done(st);
    return rc;
}

/* A way to drive the query, and how many rows its set has. */
struct probe {
    const struct hfd_drive *drive;
    int64_t bound; /* rows are counted up to it */
    int64_t rows;
};

static hfd_rc run_probe(struct hfd_txn *tx, const struct plan *plan, struct probe *p,
                        struct hfd_err *err)
{
    struct hfd_sql q;
    hfd_rc rc;

    hfd_sql_init(&q, tx->db, plan->mem);
    hfd_buf_lit(&q.text, "SELECT count(*) FROM (SELECT 1 FROM (");
    rc = hfd_drive_add_set(&q, &(struct hfd_drive_set){plan->query->kind, plan->mem, true},
                           p->drive);
    hfd_buf_lit(&q.text, ") s LIMIT ");
    hfd_sql_i64(&q, p->bound);
    hfd_buf_lit(&q.text, ") t");
    if (rc == HFD_OK)
        rc = run_count(tx, &q, &p->rows, err);
    hfd_sql_fini(&q);
    return rc;
}

static hfd_rc choose(struct hfd_txn *tx, struct plan *plan, struct hfd_err *err)
{
    struct hfd_drive options[CANDIDATES_MAX];
    size_t count = CANDIDATES_MAX, best = 0;
    hfd_rc rc = hfd_drive_candidates(&plan->parts, plan->mem, options, &count);

    if (rc != HFD_OK)
        return hfd_fail(err, rc, "out of memory while planning a search");
    if (count == 0)
        return HFD_OK;
    for (int64_t bound = PROBE_ROWS; count > 1 && bound <= PROBE_ROWS_MAX; bound *= 10) {
        int64_t least = bound;

        for (size_t i = 0; i < count; i++) {
            struct probe p = {.drive = &options[i], .bound = least};

            rc = run_probe(tx, plan, &p, err);
            if (rc != HFD_OK)
                return rc;
            if (p.rows < least) {
                least = p.rows;
                best = i;
            }
        }
        if (least < bound)
            break;
    }
    plan->drive = options[best];
    return HFD_OK;
}

/* ---- the statements ---- */

static bool driven_by(const struct plan *plan, const struct hfd_filter *part)
{
    if (plan->drive.by == HFD_BY_ANY)
        return false; /* each of its branches was used in part */
    return plan->drive.f == part || (plan->drive.ready == part && hfd_drive_is_true(part));
}

/* Returns true when the set and the rows are one: there is no drive, and something to check. */
static bool is_scan(const struct plan *plan)
{
    return plan->drive.by == HFD_BY_NOTHING && plan->rows;
}

/*
 * " FROM ... WHERE ..." with what the drive leaves to be checked. The fleet's row is only joined
 * where it is needed.
 */
static hfd_rc add_from(struct hfd_sql *q, const struct plan *plan)
{
    const char *sep = " WHERE ";
    hfd_rc rc = HFD_OK;

    if (is_scan(plan)) {
        hfd_buf_lit(&q->text, " FROM fleet f WHERE f.kind = ");
        hfd_sql_i64(q, plan->query->kind);
        sep = " AND ";
    } else {
        q->seq = "s.seq";
        q->at = "s.at";
        hfd_buf_lit(&q->text, " FROM (");
        rc = hfd_drive_add_set(q, &(struct hfd_drive_set){plan->query->kind, plan->mem, false},
                               &plan->drive);
        hfd_buf_lit(&q->text, ") s");
        if (plan->rows) {
            hfd_buf_lit(&q->text, " CROSS JOIN fleet f WHERE f.seq = s.seq");
            sep = " AND ";
        }
    }
    for (size_t i = 0; rc == HFD_OK && i < plan->parts.count; i++) {
        if (driven_by(plan, plan->parts.items[i]))
            continue;
        hfd_buf_add(&q->text, hfd_slice_of(sep));
        hfd_sql_filter(q, plan->query->kind, plan->parts.items[i]);
        sep = " AND ";
    }
    return rc;
}

/* Returns true when the rows of the drive carry the order: newest or oldest first. */
static bool is_by_creation(const struct hfd_fleet_query *query)
{
    return query->order_count == 0 ||
           (query->order_count == 1 && query->order[0].field == HFD_FIELD_CREATED_TIME);
}

static void add_order(struct hfd_sql *q, const struct plan *plan)
{
    const struct hfd_fleet_query *query = plan->query;
    const char *direction = query->order_count == 1 && !query->order[0].descending ? "" : " DESC";

    hfd_buf_lit(&q->text, " ORDER BY ");
    if (!plan->sorted) { /* oldest first turns the tie-breaker round as well, so that an index can
                            be read backwards */
        hfd_buf_addf(&q->text, "%s%s, %s%s", q->at, direction, q->seq, direction);
        return;
    }
    for (size_t i = 0; i < query->order_count; i++) {
        const struct hfd_order *o = &query->order[i];

        hfd_sql_field(q, o->field, o->name);
        hfd_buf_add(&q->text, o->descending ? HFD_SLICE(" DESC") : HFD_SLICE(" ASC"));
        if (o->field == HFD_FIELD_LABEL ||
            o->field == HFD_FIELD_DELETED_TIME) /* engines differ where nothing is said */
            hfd_buf_add(&q->text,
                        o->descending ? HFD_SLICE(" NULLS FIRST") : HFD_SLICE(" NULLS LAST"));
        hfd_buf_lit(&q->text, ", ");
    }
    hfd_buf_addf(&q->text, "%s DESC, %s DESC", q->at, q->seq);
}

/* Adds the query for a kept total: of all, or by one condition or label. False: not kept. */
static bool kept_total(struct hfd_sql *q, const struct plan *plan)
{
    const struct hfd_filter *only = plan->parts.count == 1 ? plan->parts.items[0] : NULL;
    enum hfd_count_field field = HFD_COUNT_ALL;

    if (plan->parts.count > 1 || (only != NULL && !driven_by(plan, only)))
        return false;
    if (only != NULL && plan->drive.by == HFD_BY_CONDITION)
        field = HFD_COUNT_CONDITION;
    else if (only != NULL && plan->drive.by == HFD_BY_LABEL && hfd_label_is_counted(only->name))
        field = HFD_COUNT_LABEL;
    else if (only != NULL)
        return false;
    hfd_buf_lit(&q->text,
                "SELECT CAST(COALESCE(sum(n), 0) AS BIGINT) FROM fleet_count WHERE kind IN ");
    hfd_buf_add(&q->text, plan->query->kind == HFD_KIND_CLUSTER ? HFD_SLICE(HFD_SQL_SLOTS("1"))
                                                                : HFD_SLICE(HFD_SQL_SLOTS("2")));
    hfd_buf_lit(&q->text, " AND field = ");
    hfd_sql_i64(q, field);
    hfd_buf_lit(&q->text, " AND name = ");
    hfd_sql_text(q, only != NULL ? only->name : HFD_SLICE(""));
    hfd_buf_lit(&q->text, " AND value IN (");
    if (only != NULL)
        hfd_sql_value_list(q, only);
    else
        hfd_sql_text(q, HFD_SLICE(""));
    hfd_buf_addc(&q->text, ')');
    return true;
}

static hfd_rc compose(const struct plan *plan, struct hfd_search_sql *out)
{
    const bool scan = is_scan(plan);
    hfd_rc rc = HFD_OK;

    if (!kept_total(&out->total, plan)) {
        hfd_buf_lit(&out->total.text, "SELECT count(*)");
        rc = add_from(&out->total, plan);
    }
    if (rc != HFD_OK)
        return rc;
    hfd_buf_add(&out->page.text, scan ? HFD_SLICE("SELECT f.seq") : HFD_SLICE("SELECT s.seq"));
    rc = add_from(&out->page, plan);
    add_order(&out->page, plan);
    hfd_buf_lit(&out->page.text, " LIMIT ");
    hfd_sql_i64(&out->page, plan->query->limit);
    hfd_buf_lit(&out->page.text, " OFFSET ");
    hfd_sql_i64(&out->page, plan->query->offset);
    return rc;
}

/* The owner of a nested list is one more part, beside whatever the search says. */
static hfd_rc take_query_apart(struct plan *plan)
{
    const struct hfd_fleet_query *query = plan->query;
    struct hfd_filter *owner = hfd_arena_alloc(plan->mem, sizeof(*owner));
    struct hfd_filter_value *id = hfd_arena_alloc(plan->mem, sizeof(*id));
    const struct hfd_filter *all = query->filter;

    if (owner == NULL || id == NULL)
        return HFD_NOMEM;
    *id = (struct hfd_filter_value){.kind = HFD_VALUE_TEXT, .text = query->owner_id};
    *owner = (struct hfd_filter){
        .op = HFD_FILTER_EQ, .field = HFD_FIELD_OWNER_ID, .values = id, .value_count = 1};
    if (query->owner_id.len > 0) {
        struct hfd_filter *both = hfd_arena_alloc(plan->mem, sizeof(*both));

        if (both == NULL)
            return HFD_NOMEM;
        *both = (struct hfd_filter){.op = HFD_FILTER_AND, .left = owner, .right = all};
        all = all != NULL ? both : owner;
    }
    return all != NULL ? hfd_filter_take_apart(all, HFD_FILTER_AND, plan->mem, &plan->parts)
                       : HFD_OK;
}

hfd_rc hfd_search_compose(struct hfd_txn *tx, const struct hfd_fleet_query *query,
                          struct hfd_arena *mem, struct hfd_search_sql *out, struct hfd_err *err)
{
    struct plan plan = {.query = query, .mem = mem, .drive = {HFD_BY_NOTHING, NULL, NULL}};
    hfd_rc rc;

    HFD_ASSERT(query->offset >= 0 && query->limit >= 0);
    hfd_sql_init(&out->page, tx->db, mem);
    hfd_sql_init(&out->total, tx->db, mem);
    rc = take_query_apart(&plan);
    if (rc != HFD_OK)
        return hfd_fail(err, rc, "out of memory while planning a search");
    rc = choose(tx, &plan, err);
    if (rc != HFD_OK)
        return rc;
    plan.sorted = !is_by_creation(query);
    plan.rows = plan.sorted;
    for (size_t i = 0; i < plan.parts.count; i++)
        plan.rows = plan.rows || (!driven_by(&plan, plan.parts.items[i]) &&
                                  hfd_sql_needs_row(plan.parts.items[i], false));
    rc = compose(&plan, out);
    return rc == HFD_OK ? rc : hfd_fail(err, rc, "out of memory while planning a search");
}

/* ---- the run ---- */

static void read_seq(struct hfd_row_in *in, void *out)
{
    *(int64_t *)out = hfd_row_i64(in);
}

static const struct hfd_row_form seq_form = {"HyperFleet resource", read_seq, sizeof(int64_t)};

static hfd_rc read_page(struct hfd_txn *tx, struct hfd_sql *page, struct hfd_arena *mem,
                        struct hfd_fleet_list *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    int64_t *seqs;
    struct hfd_row_list list;
    hfd_rc rc = hfd_sql_prepare(page, tx->db, &st, err);

    if (rc != HFD_OK) {
        hfd_stmt_done(st);
        return rc;
    }
    rc = hfd_row_all(st, &seq_form, mem, &list, err);
    seqs = list.rows;
    if (rc != HFD_OK || list.count == 0)
        return rc;
    out->rows = hfd_arena_array(mem, list.count, sizeof(*out->rows));
    if (out->rows == NULL)
        return hfd_fail(err, HFD_NOMEM, "store: out of memory for a list of %zu", list.count);
    for (size_t i = 0; rc == HFD_OK && i < list.count; i++)
        rc = hfd_fleet_row_at(tx, seqs[i], mem, &out->rows[i], err);
    out->count = rc == HFD_OK ? list.count : 0;
    if (rc == HFD_NOT_FOUND)
        return hfd_fail(err, HFD_CORRUPT, "store: a resource that an index names is not stored");
    return rc;
}

hfd_rc hfd_fleet_row_search(struct hfd_txn *tx, const struct hfd_fleet_query *query,
                            struct hfd_arena *mem, struct hfd_fleet_list *out, struct hfd_err *err)
{
    struct hfd_search_sql sql;
    hfd_rc rc;

    *out = (struct hfd_fleet_list){.count = 0};
    rc = hfd_unit_write(tx, err);
    if (rc == HFD_OK && tx->totals != NULL)
        rc = hfd_totals_write(tx, err);
    if (rc != HFD_OK)
        return rc;
    rc = hfd_search_compose(tx, query, mem, &sql, err);
    if (rc == HFD_OK)
        rc = run_count(tx, &sql.total, &out->total, err);
    if (rc == HFD_OK && query->offset < out->total && query->limit > 0)
        rc = read_page(tx, &sql.page, mem, out, err);
    hfd_sql_fini(&sql.page);
    hfd_sql_fini(&sql.total);
    return rc;
}
