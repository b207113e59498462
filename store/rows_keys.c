/*
 * What resources are found by: rows of fleet_label and fleet_condition. The SQL is the portable
 * subset. Thread: that of the transaction.
 */
#include "store/totals.h"

#include "driver/base/check.h"

/* clang-format off */
static const char sql_label_add[] =
    "INSERT INTO fleet_label (kind, key, value, created_us, fleet_seq) VALUES (?1, ?2, ?3, ?4, ?5)";
static const char sql_label_drop[] =
    "DELETE FROM fleet_label WHERE kind = ?1 AND key = ?2 AND value = ?3 AND created_us = ?4 AND fleet_seq = ?5";
static const char sql_condition_add[] =
    "INSERT INTO fleet_condition (kind, type, status, created_us, fleet_seq) VALUES (?1, ?2, ?3, ?4, ?5)";
static const char sql_condition_drop[] =
    "DELETE FROM fleet_condition WHERE kind = ?1 AND type = ?2 AND status = ?3 AND created_us = ?4 AND fleet_seq = ?5";
/* clang-format on */

/* Both tables have the same columns, but for two names. */
static hfd_rc write_key(struct hfd_txn *tx, const char *sql, const struct hfd_fleet_row *row,
                        hfd_slice name, hfd_slice value, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_row_write(tx, sql, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, row->kind);
    hfd_stmt_text(st, 2, hfd_row_some(name));
    hfd_stmt_text(st, 3, hfd_row_some(value));
    hfd_stmt_i64(st, 4, row->created_us);
    hfd_stmt_i64(st, 5, row->seq);
    return hfd_stmt_run(st, NULL, err);
}

/* @param by  1 or -1: whether it is added or dropped */
static hfd_rc put_label(struct hfd_txn *tx, const struct hfd_fleet_row *row,
                        const struct hfd_fleet_label *l, int by, struct hfd_err *err)
{
    hfd_rc rc = write_key(tx, by > 0 ? sql_label_add : sql_label_drop, row, l->key, l->value, err);

    if (rc != HFD_OK || !hfd_label_is_counted(l->key))
        return rc;
    return hfd_totals_add(tx, &(struct hfd_count_key){row->kind, HFD_COUNT_LABEL, l->key, l->value},
                          by, err);
}

static hfd_rc put_condition(struct hfd_txn *tx, const struct hfd_fleet_row *row,
                            const struct hfd_fleet_condition *c, int by, struct hfd_err *err)
{
    hfd_rc rc = write_key(tx, by > 0 ? sql_condition_add : sql_condition_drop, row, c->type,
                          c->status, err);

    if (rc != HFD_OK)
        return rc;
    return hfd_totals_add(
        tx, &(struct hfd_count_key){row->kind, HFD_COUNT_CONDITION, c->type, c->status}, by, err);
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
static hfd_rc put_labels(struct hfd_txn *tx, const struct hfd_fleet_row *row,
                         const struct hfd_fleet_keys *was, const struct hfd_fleet_keys *is,
                         struct hfd_err *err)
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
            rc = put_label(tx, row, old, -1, err);
        else if (new != NULL && order > 0)
            rc = put_label(tx, row, new, 1, err);
    }
    return rc;
}

static bool has(const struct hfd_fleet_keys *keys, const struct hfd_fleet_condition *c)
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
        if (!has(is, &was->conditions[i]))
            rc = put_condition(tx, row, &was->conditions[i], -1, err);
    for (size_t i = 0; rc == HFD_OK && i < is->condition_count; i++)
        if (!has(was, &is->conditions[i]))
            rc = put_condition(tx, row, &is->conditions[i], 1, err);
    return rc;
}

hfd_rc hfd_fleet_keys_put(struct hfd_txn *tx, const struct hfd_fleet_row *row,
                          const struct hfd_fleet_keys *was, const struct hfd_fleet_keys *is,
                          struct hfd_err *err)
{
    hfd_rc rc = put_labels(tx, row, was, is, err);

    return rc == HFD_OK ? put_conditions(tx, row, was, is, err) : rc;
}
