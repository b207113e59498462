/* The SQL is the portable subset. Thread: that of the transaction. */
#include "store/rows_keys.h"

#include "driver/base/check.h"
#include "store/row_io.h"
#include "store/totals.h"

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

/* Where resources are found: a table of search keys, and the totals that go with it. */
struct key_table {
    const char *add, *drop;
    enum hfd_count_field field;
};

static const struct key_table labels = {sql_label_add, sql_label_drop, HFD_COUNT_LABEL};
static const struct key_table conditions = {sql_condition_add, sql_condition_drop,
                                            HFD_COUNT_CONDITION};

/* One key of a resource, to be added (by 1) or dropped (by -1). */
struct key_change {
    const struct key_table *table;
    hfd_slice name, value;
    int by;
};

static hfd_rc change_key(struct hfd_txn *tx, const struct hfd_fleet_row *row,
                         const struct key_change *c, struct hfd_err *err)
{
    const struct hfd_count_key count = {row->kind, c->table->field, c->name, c->value};
    struct hfd_stmt *st;
    hfd_rc rc = hfd_row_write(tx, c->by > 0 ? c->table->add : c->table->drop, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, row->kind);
    hfd_stmt_text(st, 2, hfd_row_some(c->name));
    hfd_stmt_text(st, 3, hfd_row_some(c->value));
    hfd_stmt_i64(st, 4, row->created_us);
    hfd_stmt_i64(st, 5, row->seq);
    rc = hfd_stmt_run(st, NULL, err);
    if (rc != HFD_OK || (c->table == &labels && !hfd_label_is_counted(c->name)))
        return rc;
    return hfd_totals_add(tx, &count, c->by, err);
}

static hfd_rc change_label(struct hfd_txn *tx, const struct hfd_fleet_row *row,
                           const struct hfd_fleet_label *l, int by, struct hfd_err *err)
{
    return change_key(tx, row, &(struct key_change){&labels, l->key, l->value, by}, err);
}

static hfd_rc change_condition(struct hfd_txn *tx, const struct hfd_fleet_row *row,
                               const struct hfd_fleet_condition *c, int by, struct hfd_err *err)
{
    return change_key(tx, row, &(struct key_change){&conditions, c->type, c->status, by}, err);
}

/* Orders labels; an absent one comes last. */
static int compare(const struct hfd_fleet_label *a, const struct hfd_fleet_label *b)
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
        const int order = compare(old, new);

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
            rc = change_condition(tx, row, &was->conditions[i], -1, err);
    for (size_t i = 0; rc == HFD_OK && i < is->condition_count; i++)
        if (!has(was, &is->conditions[i]))
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
