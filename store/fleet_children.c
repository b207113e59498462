#include "store/fleet_children.h"

#include "store/rows_fleet_sums.h"
#include "store/rows_part.h"
#include "store/rows_resource.h"

/* clang-format off */
static const char sql_refer_owner[] =
    "UPDATE fleet SET owner_id = ?2, sum = ?3 WHERE id = ?1";
/* clang-format on */

static struct hfd_unit_key key_of(const void *row)
{
    const struct hfd_fleet_row *child = row;

    return (struct hfd_unit_key){child->owner_id, child->id};
}

/* The order of sql_fleet_children. */
static int compare(const void *a, const void *b)
{
    const struct hfd_fleet_row *x = a, *y = b;

    if (x->created_us != y->created_us)
        return x->created_us < y->created_us ? -1 : 1;
    return (x->seq > y->seq) - (x->seq < y->seq);
}

/* As sql_fleet_children gives them. */
static void behead(void *row)
{
    struct hfd_fleet_row *child = row;

    child->spec = child->labels = HFD_SLICE("{}");
    child->conditions = HFD_SLICE("[]");
}

const struct hfd_unit_form hfd_fleet_child_form = {
    .table = HFD_UNIT_CHILD,
    .what = "nodepool",
    .size = sizeof(struct hfd_fleet_row),
    .texts = hfd_fleet_texts,
    .text_count = HFD_FLEET_TEXTS,
    .key_of = key_of,
    .compare = compare,
    .behead = behead,
};

void hfd_fleet_child_keep(struct hfd_txn *tx, const struct hfd_fleet_row *row)
{
    struct hfd_fleet_row head = *row;

    if (row->owner_id.len == 0 || !hfd_unit_has_all(tx, &hfd_fleet_child_form, row->owner_id))
        return;
    behead(&head);
    (void)hfd_unit_keep(tx, &hfd_fleet_child_form, &head);
}

void hfd_fleet_child_lose(struct hfd_txn *tx, hfd_slice id)
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
    struct hfd_stmt *st;
    hfd_rc rc = hfd_row_write(tx, sql_refer_owner, &st, err);

    if (rc != HFD_OK)
        return rc;
    new.owner_id = to;
    hfd_stmt_text(st, 1, hfd_row_some(new.id));
    hfd_stmt_text(st, 2, hfd_row_some(to));
    hfd_stmt_i64(st, 3, hfd_fleet_sum(&new));
    return hfd_stmt_run(st, NULL, err);
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
