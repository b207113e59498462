/* See search.h. */
#include "store/search.h"

#include "driver/base/check.h"
#include "store/filter.h"
#include "store/row_io.h"
#include "store/rows_fleet.h"
#include "store/totals.h"
#include "store/txn.h"
#include "store/unit.h"

#include <inttypes.h>

/* ---- search drive ---- */

/*
 * The set of (seq, at) that drives the query of a list, read from one index. `at` is the time of
 * creation.
 */

enum hfd_drive_by {
    HFD_BY_NOTHING,
    HFD_BY_ID,
    HFD_BY_NAME,
    HFD_BY_OWNER,
    HFD_BY_LABEL,
    HFD_BY_AGE,
    HFD_BY_PENDING,
    HFD_BY_CONDITION,
    HFD_BY_ANY
};

struct hfd_drive {
    enum hfd_drive_by by;
    const struct hfd_filter *f;     /* HFD_BY_AGE: the age; HFD_BY_ANY: the OR */
    const struct hfd_filter *ready; /* HFD_BY_AGE: the part that says what Ready is */
};

/* The filter's top-level AND, taken apart. */
struct hfd_filter_parts {
    const struct hfd_filter **items;
    size_t count;
};

/* How sets are written. */
struct hfd_drive_set {
    enum hfd_kind kind;
    struct hfd_arena *mem;
    bool probing; /* they are only counted: rows may come twice */
};

#define READY_SEEN_STEP_US INT64_C(16777216) /* of the index on PostgreSQL: 0021_room.sql */

/* ---- candidates ---- */

static size_t count_parts(const struct hfd_filter *f, enum hfd_filter_op op)
{
    return f->op == op ? count_parts(f->left, op) + count_parts(f->right, op) : 1;
}

static void add_parts(const struct hfd_filter *f, enum hfd_filter_op op,
                      struct hfd_filter_parts *out)
{
    if (f->op == op) {
        add_parts(f->left, op, out);
        add_parts(f->right, op, out);
    } else {
        out->items[out->count++] = f;
    }
}

/* Takes an AND or an OR apart. @return HFD_OK, HFD_NOMEM */
static hfd_rc filter_take_apart(const struct hfd_filter *f, enum hfd_filter_op op,
                                struct hfd_arena *mem, struct hfd_filter_parts *out)
{
    *out = (struct hfd_filter_parts){
        hfd_arena_array(mem, count_parts(f, op) + 1, sizeof(*out->items)), 0};
    if (out->items == NULL)
        return HFD_NOMEM;
    add_parts(f, op, out);
    return HFD_OK;
}

static bool says_ready(const struct hfd_filter *f)
{
    return f->op == HFD_FILTER_EQ && f->field == HFD_FIELD_CONDITION &&
           hfd_slice_is(f->name, "Ready");
}

/* Returns true when the comparison asks for Ready=True. */
static bool drive_is_true(const struct hfd_filter *ready)
{
    return hfd_slice_is(ready->values[0].text, "True");
}

static bool is_junction(const struct hfd_filter *f)
{
    return f->op == HFD_FILTER_AND || f->op == HFD_FILTER_OR || f->op == HFD_FILTER_NOT;
}

static enum hfd_drive_by drive_of_comparison(const struct hfd_filter *f)
{
    static const enum hfd_drive_by by_field[HFD_FIELD_COUNT] = {
        [HFD_FIELD_ID] = HFD_BY_ID,
        [HFD_FIELD_NAME] = HFD_BY_NAME,
        [HFD_FIELD_OWNER_ID] = HFD_BY_OWNER,
        [HFD_FIELD_LABEL] = HFD_BY_LABEL,
        [HFD_FIELD_CONDITION] = HFD_BY_CONDITION,
        [HFD_FIELD_CONDITION_PENDING] = HFD_BY_PENDING,
    };

    if ((f->op != HFD_FILTER_EQ && f->op != HFD_FILTER_IN) || f->value_count == 0)
        return HFD_BY_NOTHING;
    return by_field[f->field];
}

static hfd_rc branches_drive(const struct hfd_filter *f, struct hfd_arena *mem, bool *all);

static hfd_rc fits(const struct hfd_filter *f, enum hfd_drive_by by, bool with_ready,
                   struct hfd_arena *mem, bool *out)
{
    *out = false;
    if (by == HFD_BY_ANY)
        return f->op == HFD_FILTER_OR ? branches_drive(f, mem, out) : HFD_OK;
    if (by == HFD_BY_AGE)
        *out = with_ready && !is_junction(f) && hfd_sql_is_age(f);
    else
        *out = !is_junction(f) && drive_of_comparison(f) == by;
    return HFD_OK;
}

/*
 * Finds up to *count ways to drive a query by some of these parts, likely best ones first.
 * @param count  in: room in out; out: how many there are
 * @return HFD_OK, HFD_NOMEM
 */
static hfd_rc drive_candidates(const struct hfd_filter_parts *parts, struct hfd_arena *mem,
                               struct hfd_drive *out, size_t *count)
{
    const struct hfd_filter *ready = NULL;
    const size_t max = *count;
    size_t n = 0;

    for (size_t i = 0; i < parts->count && ready == NULL; i++)
        if (says_ready(parts->items[i]))
            ready = parts->items[i];
    for (enum hfd_drive_by by = HFD_BY_ID; by <= HFD_BY_ANY; by++) {
        for (size_t i = 0; i < parts->count && n < max; i++) {
            bool yes;
            hfd_rc rc = fits(parts->items[i], by, ready != NULL, mem, &yes);

            if (rc != HFD_OK)
                return rc;
            if (yes)
                out[n++] = (struct hfd_drive){by, parts->items[i], by == HFD_BY_AGE ? ready : NULL};
        }
    }
    *count = n;
    return HFD_OK;
}

/* The best way to drive one branch of an OR. */
static hfd_rc drive_of_branch(const struct hfd_filter *f, struct hfd_arena *mem,
                              struct hfd_drive *out)
{
    struct hfd_filter_parts parts;
    size_t count = 1;
    hfd_rc rc = filter_take_apart(f, HFD_FILTER_AND, mem, &parts);

    *out = (struct hfd_drive){HFD_BY_NOTHING, NULL, NULL};
    return rc == HFD_OK ? drive_candidates(&parts, mem, out, &count) : rc;
}

static hfd_rc branches_drive(const struct hfd_filter *f, struct hfd_arena *mem, bool *all)
{
    struct hfd_filter_parts branches;
    hfd_rc rc = filter_take_apart(f, HFD_FILTER_OR, mem, &branches);

    *all = true;
    for (size_t i = 0; rc == HFD_OK && *all && i < branches.count; i++) {
        struct hfd_drive d;

        rc = drive_of_branch(branches.items[i], mem, &d);
        *all = d.by != HFD_BY_NOTHING;
    }
    return rc;
}

/* ---- sets ---- */

/* Adds the values of a comparison, with commas. */
static void sql_value_list(struct hfd_sql *q, const struct hfd_filter *f)
{
    for (size_t i = 0; i < f->value_count; i++) {
        if (i > 0)
            hfd_buf_lit(&q->text, ", ");
        hfd_sql_value(q, &f->values[i]);
    }
}

/* Several values drive the index one by one, so that it is used for each. */
static void each_value(struct hfd_sql *q, const char *select, const char *table, const char *column,
                       const struct hfd_filter *f)
{
    hfd_buf_addf(&q->text, "%s FROM ", select);
    if (f->value_count == 1) {
        hfd_buf_addf(&q->text, "%s n WHERE %s = ", table, column);
        hfd_sql_value(q, &f->values[0]);
        return;
    }
    hfd_buf_lit(&q->text, "(SELECT DISTINCT column1 AS v FROM (VALUES ");
    for (size_t i = 0; i < f->value_count; i++) {
        hfd_buf_add(&q->text, i > 0 ? HFD_SLICE(", (") : HFD_SLICE("("));
        hfd_sql_value(q, &f->values[i]);
        hfd_buf_addc(&q->text, ')');
    }
    hfd_buf_addf(&q->text, ") w) x CROSS JOIN %s n WHERE %s = x.v", table, column);
}

/* Ids of several branches become one set: an engine takes no more than 500 in a UNION. */
static hfd_rc collect(struct hfd_arena *mem, struct hfd_filter *ids, const struct hfd_filter *more)
{
    struct hfd_filter_value *values =
        hfd_arena_array(mem, ids->value_count + more->value_count, sizeof(*values));

    if (values == NULL)
        return HFD_NOMEM;
    if (ids->value_count > 0)
        memcpy(values, ids->values, ids->value_count * sizeof(*values));
    memcpy(values + ids->value_count, more->values, more->value_count * sizeof(*values));
    ids->values = values;
    ids->value_count += more->value_count;
    return HFD_OK;
}

static hfd_rc drive_add_set(struct hfd_sql *q, const struct hfd_drive_set *set,
                            const struct hfd_drive *d);

static hfd_rc add_union(struct hfd_sql *q, const struct hfd_drive_set *set,
                        const struct hfd_filter *f)
{
    struct hfd_filter ids = {.op = HFD_FILTER_IN, .field = HFD_FIELD_ID};
    const char *sep = "";
    struct hfd_filter_parts branches;
    hfd_rc rc = filter_take_apart(f, HFD_FILTER_OR, set->mem, &branches);

    for (size_t i = 0; rc == HFD_OK && i < branches.count; i++) {
        struct hfd_drive d;

        rc = drive_of_branch(branches.items[i], set->mem, &d);
        if (rc == HFD_OK && d.by == HFD_BY_ID) {
            rc = collect(set->mem, &ids, d.f);
            continue;
        }
        hfd_buf_add(&q->text, hfd_slice_of(sep));
        if (rc == HFD_OK)
            rc = drive_add_set(q, set, &d);
        sep = set->probing ? " UNION ALL " : " UNION ";
    }
    if (rc != HFD_OK || ids.value_count == 0)
        return rc;
    hfd_buf_add(&q->text, hfd_slice_of(sep));
    return drive_add_set(q, set, &(struct hfd_drive){HFD_BY_ID, &ids, NULL});
}

/*
 * Adds a SELECT of (seq, at). @return HFD_OK, HFD_NOMEM
 * "+n.kind" keeps the planner from an index that begins with the kind: the
 * one meant here is the better one.
 */
static hfd_rc drive_add_set(struct hfd_sql *q, const struct hfd_drive_set *set,
                            const struct hfd_drive *d)
{
    const enum hfd_kind kind = set->kind;

    switch (d->by) {
    case HFD_BY_ID:
        hfd_buf_lit(&q->text,
                    "SELECT n.seq AS seq, n.created_us AS at FROM fleet n WHERE n.id IN (");
        sql_value_list(q, d->f);
        hfd_buf_lit(&q->text, ") AND +n.kind = ");
        break;
    case HFD_BY_NAME:
        each_value(q, "SELECT n.seq AS seq, n.created_us AS at", "fleet", "n.name", d->f);
        hfd_buf_lit(&q->text, " AND n.kind = ");
        break;
    case HFD_BY_OWNER:
        each_value(q, "SELECT n.seq AS seq, n.created_us AS at", "fleet", "n.owner_id", d->f);
        hfd_buf_lit(&q->text, " AND n.owner_id <> '' AND +n.kind = ");
        break;
    case HFD_BY_LABEL:
        each_value(q, "SELECT n.fleet_seq AS seq, n.created_us AS at", "fleet_label", "n.value",
                   d->f);
        hfd_buf_lit(&q->text, " AND n.key = ");
        hfd_sql_text(q, d->f->name);
        hfd_buf_lit(&q->text, " AND n.kind = ");
        break;
    case HFD_BY_AGE:
        hfd_buf_lit(&q->text,
                    "SELECT n.seq AS seq, n.created_us AS at FROM fleet n WHERE n.ready_seen_us");
        hfd_buf_add(&q->text, d->f->op == HFD_FILTER_LT ? HFD_SLICE(" < ") : HFD_SLICE(" <= "));
        hfd_sql_value(q, &d->f->values[0]);
        hfd_buf_addf(&q->text, " /*postgres: AND n.ready_seen_step <= %" PRId64 " */",
                     d->f->values[0].num / READY_SEEN_STEP_US);
        hfd_buf_addf(&q->text, " AND n.ready = %d AND n.kind = ", drive_is_true(d->ready));
        break;
    case HFD_BY_PENDING:
        hfd_buf_lit(&q->text, "SELECT n.seq AS seq, n.created_us AS at FROM fleet n "
                              "WHERE n.pending_us > 0 AND +n.kind = ");
        break;
    case HFD_BY_CONDITION:
        each_value(q, "SELECT n.fleet_seq AS seq, n.created_us AS at", "fleet_condition",
                   "n.status", d->f);
        hfd_buf_lit(&q->text, " AND n.type = ");
        hfd_sql_text(q, d->f->name);
        hfd_buf_lit(&q->text, " AND n.kind = ");
        break;
    case HFD_BY_ANY:
        return add_union(q, set, d->f);
    case HFD_BY_NOTHING:
        hfd_buf_lit(&q->text,
                    "SELECT n.seq AS seq, n.created_us AS at FROM fleet n WHERE n.kind = ");
        break;
    }
    hfd_sql_i64(q, kind);
    return HFD_OK;
}

/* ---- search ---- */

/*
 * Plans a list and runs it.
 *
 * A set of (seq, at), read from one index, drives the query (search.h). The rest of the
 * filter is checked on the rows of that set. Candidates are the parts of the filter's top-level AND
 * that name an index. Of several, the smallest set is taken: each is counted up to a bound. Without
 * candidates the set is the whole kind, newest first.
 */

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
    rc = drive_add_set(&q, &(struct hfd_drive_set){plan->query->kind, plan->mem, true}, p->drive);
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
    hfd_rc rc = drive_candidates(&plan->parts, plan->mem, options, &count);

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
    return plan->drive.f == part || (plan->drive.ready == part && drive_is_true(part));
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
        rc = drive_add_set(q, &(struct hfd_drive_set){plan->query->kind, plan->mem, false},
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
        sql_value_list(q, only);
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
    return all != NULL ? filter_take_apart(all, HFD_FILTER_AND, plan->mem, &plan->parts) : HFD_OK;
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

/* The rows of a JSON array of numbers, in its order. For PostgreSQL alone. */
static struct hfd_query sql_fleet_page = {
    .table = &hfd_fleet_table,
    .text = "SELECT @cols FROM jsonb_array_elements_text(CAST(CAST(?1 AS TEXT) AS JSONB)) WITH "
            "ORDINALITY AS "
            "k(v, nth)"
            " CROSS JOIN fleet WHERE seq = CAST(k.v AS BIGINT) ORDER BY k.nth"};

static void read_seq(struct hfd_row_in *in, void *out)
{
    *(int64_t *)out = hfd_row_i64(in);
}

static const struct hfd_row_form seq_form = {"HyperFleet resource", read_seq, sizeof(int64_t)};

/* Reads the rows of a page by one statement, where each is a round trip. */
static hfd_rc read_together(struct hfd_txn *tx, const struct hfd_row_list *seqs,
                            struct hfd_arena *mem, struct hfd_fleet_list *out, struct hfd_err *err)
{
    struct hfd_row_list list;
    struct hfd_buf json;
    hfd_slice text;
    hfd_rc rc;

    hfd_buf_init(&json, HFD_SQL_MAX_BYTES);
    for (size_t i = 0; i < seqs->count; i++) {
        hfd_buf_addc(&json, i > 0 ? ',' : '[');
        hfd_buf_i64(&json, ((const int64_t *)seqs->rows)[i]);
    }
    hfd_buf_addc(&json, ']');
    rc = hfd_buf_finish(&json, &text, err);
    if (rc == HFD_OK)
        rc = hfd_query_all(tx, &sql_fleet_page, HFD_ARGS(hfd_arg_text(text)), mem, &list, err);
    hfd_buf_fini(&json);
    if (rc == HFD_OK && list.count != seqs->count)
        return hfd_fail(err, HFD_CORRUPT, "store: a resource that an index names is not stored");
    if (rc == HFD_OK) {
        out->rows = list.rows;
        out->count = list.count;
    }
    return rc;
}

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
    if (hfd_db_shared(tx->db))
        return read_together(tx, &list, mem, out, err);
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
