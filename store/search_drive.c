#include "store/search_drive.h"

#include <inttypes.h>

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

hfd_rc hfd_filter_take_apart(const struct hfd_filter *f, enum hfd_filter_op op,
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

bool hfd_drive_is_true(const struct hfd_filter *ready)
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

hfd_rc hfd_drive_candidates(const struct hfd_filter_parts *parts, struct hfd_arena *mem,
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
    hfd_rc rc = hfd_filter_take_apart(f, HFD_FILTER_AND, mem, &parts);

    *out = (struct hfd_drive){HFD_BY_NOTHING, NULL, NULL};
    return rc == HFD_OK ? hfd_drive_candidates(&parts, mem, out, &count) : rc;
}

static hfd_rc branches_drive(const struct hfd_filter *f, struct hfd_arena *mem, bool *all)
{
    struct hfd_filter_parts branches;
    hfd_rc rc = hfd_filter_take_apart(f, HFD_FILTER_OR, mem, &branches);

    *all = true;
    for (size_t i = 0; rc == HFD_OK && *all && i < branches.count; i++) {
        struct hfd_drive d;

        rc = drive_of_branch(branches.items[i], mem, &d);
        *all = d.by != HFD_BY_NOTHING;
    }
    return rc;
}

/* ---- sets ---- */

void hfd_sql_value_list(struct hfd_sql *q, const struct hfd_filter *f)
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

static hfd_rc add_union(struct hfd_sql *q, const struct hfd_drive_set *set,
                        const struct hfd_filter *f)
{
    struct hfd_filter ids = {.op = HFD_FILTER_IN, .field = HFD_FIELD_ID};
    const char *sep = "";
    struct hfd_filter_parts branches;
    hfd_rc rc = hfd_filter_take_apart(f, HFD_FILTER_OR, set->mem, &branches);

    for (size_t i = 0; rc == HFD_OK && i < branches.count; i++) {
        struct hfd_drive d;

        rc = drive_of_branch(branches.items[i], set->mem, &d);
        if (rc == HFD_OK && d.by == HFD_BY_ID) {
            rc = collect(set->mem, &ids, d.f);
            continue;
        }
        hfd_buf_add(&q->text, hfd_slice_of(sep));
        if (rc == HFD_OK)
            rc = hfd_drive_add_set(q, set, &d);
        sep = set->probing ? " UNION ALL " : " UNION ";
    }
    if (rc != HFD_OK || ids.value_count == 0)
        return rc;
    hfd_buf_add(&q->text, hfd_slice_of(sep));
    return hfd_drive_add_set(q, set, &(struct hfd_drive){HFD_BY_ID, &ids, NULL});
}

/*
 * A SELECT of (seq, at). "+n.kind" keeps the planner from an index that begins with the kind: the
 * one meant here is the better one.
 */
hfd_rc hfd_drive_add_set(struct hfd_sql *q, const struct hfd_drive_set *set,
                         const struct hfd_drive *d)
{
    const enum hfd_kind kind = set->kind;

    switch (d->by) {
    case HFD_BY_ID:
        hfd_buf_lit(&q->text,
                    "SELECT n.seq AS seq, n.created_us AS at FROM fleet n WHERE n.id IN (");
        hfd_sql_value_list(q, d->f);
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
        hfd_buf_addf(&q->text, " AND n.ready = %d AND n.kind = ", hfd_drive_is_true(d->ready));
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
