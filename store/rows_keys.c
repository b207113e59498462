/* What resources are found by: rows of fleet_label and fleet_condition. The SQL is the portable subset. Thread: that of the transaction. */
#include "store/totals.h"

#include "driver/base/check.h"

/* clang-format off */
static const char sql_label_add[] =
    "INSERT INTO fleet_label (kind, key, value, created_us, fleet_id) VALUES (?1, ?2, ?3, ?4, ?5)";
static const char sql_label_drop[] =
    "DELETE FROM fleet_label WHERE kind = ?1 AND key = ?2 AND value = ?3 AND created_us = ?4 AND fleet_id = ?5";
static const char sql_condition_add[] =
    "INSERT INTO fleet_condition (fleet_id, type, observed_generation, last_updated_us, last_transition_us, ready_since_us,"
    " kind, created_us, status) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
static const char sql_condition_change[] = /* not the status: that would write the index by status, changed or not */
    "UPDATE fleet_condition SET observed_generation = ?3, last_updated_us = ?4, last_transition_us = ?5, ready_since_us = ?6"
    " WHERE fleet_id = ?1 AND type = ?2";
static const char sql_condition_drop[] =
    "DELETE FROM fleet_condition WHERE fleet_id = ?1 AND type = ?2";
/* clang-format on */

static hfd_rc write_label(struct hfd_txn *tx, const char *sql, const struct hfd_fleet_row *row, const struct hfd_fleet_label *l,
                          struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_row_write(tx, sql, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, row->kind);
    hfd_stmt_text(st, 2, hfd_row_some(l->key));
    hfd_stmt_text(st, 3, hfd_row_some(l->value));
    hfd_stmt_i64(st, 4, row->created_us);
    hfd_stmt_text(st, 5, hfd_row_some(row->id));
    return hfd_stmt_run(st, NULL, err);
}

static hfd_rc drop_condition(struct hfd_txn *tx, const struct hfd_fleet_row *row, const struct hfd_fleet_condition *c, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_row_write(tx, sql_condition_drop, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(row->id));
    hfd_stmt_text(st, 2, hfd_row_some(c->type));
    return hfd_stmt_run(st, NULL, err);
}

/* @param add  whether it has no row yet; else its status is what the row says */
static hfd_rc put_condition(struct hfd_txn *tx, const struct hfd_fleet_row *row, const struct hfd_fleet_condition *c, bool add,
                            struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_row_write(tx, add ? sql_condition_add : sql_condition_change, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(row->id));
    hfd_stmt_text(st, 2, hfd_row_some(c->type));
    hfd_stmt_i64(st, 3, c->observed_generation);
    hfd_stmt_i64(st, 4, c->last_updated_us);
    hfd_stmt_i64(st, 5, c->last_transition_us);
    if (hfd_slice_is(c->type, "Ready") && hfd_slice_is(c->status, "True"))
        hfd_stmt_i64(st, 6, c->last_updated_us);
    else
        hfd_stmt_null(st, 6);
    if (add) {
        hfd_stmt_i64(st, 7, row->kind);
        hfd_stmt_i64(st, 8, row->created_us);
        hfd_stmt_text(st, 9, hfd_row_some(c->status));
    }
    return hfd_stmt_run(st, NULL, err);
}

static hfd_rc add_label(struct hfd_txn *tx, const struct hfd_fleet_row *row, const struct hfd_fleet_label *l, struct hfd_err *err)
{
    hfd_rc rc = write_label(tx, sql_label_add, row, l, err);

    if (rc != HFD_OK || !hfd_label_is_counted(l->key))
        return rc;
    return hfd_totals_add(tx, &(struct hfd_count_key){row->kind, HFD_COUNT_LABEL, l->key, l->value}, 1, err);
}

static hfd_rc drop_label(struct hfd_txn *tx, const struct hfd_fleet_row *row, const struct hfd_fleet_label *l, struct hfd_err *err)
{
    hfd_rc rc = write_label(tx, sql_label_drop, row, l, err);

    if (rc != HFD_OK || !hfd_label_is_counted(l->key))
        return rc;
    return hfd_totals_add(tx, &(struct hfd_count_key){row->kind, HFD_COUNT_LABEL, l->key, l->value}, -1, err);
}

/* Which comes first; what is absent comes last. */
static int compare(const struct hfd_fleet_label *a, const struct hfd_fleet_label *b)
{
    int order;

    if (a == NULL || b == NULL)
        return a == NULL ? 1 : -1;
    order = hfd_slice_cmp(a->key, b->key);
    return order != 0 ? order : hfd_slice_cmp(a->value, b->value);
}

/* Both lists ascend by key, so one walk through both finds what differs. */
static hfd_rc put_labels(struct hfd_txn *tx, const struct hfd_fleet_row *row, const struct hfd_fleet_keys *was,
                         const struct hfd_fleet_keys *is, struct hfd_err *err)
{
    size_t w = 0, i = 0;
    hfd_rc rc = HFD_OK;

    while (rc == HFD_OK && (w < was->label_count || i < is->label_count)) {
        const struct hfd_fleet_label *old = w < was->label_count ? &was->labels[w] : NULL;
        const struct hfd_fleet_label *new = i < is->label_count ? &is->labels[i] : NULL;
        const int order = compare(old, new);

        HFD_ASSERT(order > 0 ? new != NULL : old != NULL); /* what is absent comes last */
        w += order <= 0;
        i += order >= 0;
        if (old != NULL && order < 0)
            rc = drop_label(tx, row, old, err);
        else if (new != NULL && order > 0)
            rc = add_label(tx, row, new, err);
    }
    return rc;
}

static const struct hfd_fleet_condition *find(const struct hfd_fleet_keys *keys, hfd_slice type)
{
    for (size_t i = 0; i < keys->condition_count; i++)
        if (hfd_slice_eq(keys->conditions[i].type, type))
            return &keys->conditions[i];
    return NULL;
}

static bool same_place(const struct hfd_fleet_condition *a, const struct hfd_fleet_condition *b)
{
    return b != NULL && hfd_slice_eq(a->status, b->status);
}

static bool same(const struct hfd_fleet_condition *a, const struct hfd_fleet_condition *b)
{
    return same_place(a, b) && a->observed_generation == b->observed_generation && a->last_updated_us == b->last_updated_us &&
           a->last_transition_us == b->last_transition_us;
}

static hfd_rc put_conditions(struct hfd_txn *tx, const struct hfd_fleet_row *row, const struct hfd_fleet_keys *was,
                             const struct hfd_fleet_keys *is, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; rc == HFD_OK && i < was->condition_count; i++) {
        const struct hfd_fleet_condition *c = &was->conditions[i];

        if (same_place(c, find(is, c->type)))
            continue;
        rc = drop_condition(tx, row, c, err);
        if (rc == HFD_OK)
            rc = hfd_totals_add(tx, &(struct hfd_count_key){row->kind, HFD_COUNT_CONDITION, c->type, c->status}, -1, err);
    }
    for (size_t i = 0; rc == HFD_OK && i < is->condition_count; i++) {
        const struct hfd_fleet_condition *c = &is->conditions[i], *before = find(was, c->type);

        if (!same(c, before))
            rc = put_condition(tx, row, c, !same_place(c, before), err);
        if (rc == HFD_OK && !same_place(c, before))
            rc = hfd_totals_add(tx, &(struct hfd_count_key){row->kind, HFD_COUNT_CONDITION, c->type, c->status}, 1, err);
    }
    return rc;
}

hfd_rc hfd_fleet_keys_put(struct hfd_txn *tx, const struct hfd_fleet_row *row, const struct hfd_fleet_keys *was,
                          const struct hfd_fleet_keys *is, struct hfd_err *err)
{
    hfd_rc rc = put_labels(tx, row, was, is, err);

    return rc == HFD_OK ? put_conditions(tx, row, was, is, err) : rc;
}
