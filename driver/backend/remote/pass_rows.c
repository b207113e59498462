/* See pass_rows.h. */
#include "driver/backend/remote/pass_rows.h"

#include <stdint.h>

static hfd_rc load_parts(struct hfd_txn *tx, hfd_slice guresid, struct hfd_arena *mem,
                         struct hfd_pass_rows *out, struct hfd_err *err)
{
    struct hfd_part_list list;
    hfd_rc rc = hfd_part_row_list(tx, guresid, mem, &list, err);

    if (rc != HFD_OK)
        return rc;
    out->parts = hfd_arena_array(mem, list.count + 1, sizeof(*out->parts));
    if (out->parts == NULL)
        return hfd_fail_nomem(err, "load the parts of a resource");
    out->count = list.count;
    for (size_t i = 0; i < list.count; i++) {
        struct hfd_pass_part *p = &out->parts[i];

        p->row = list.rows[i];
        rc = hfd_fleet_row_get(tx, p->row.fleet_id, mem, &p->fleet, err);
        if (rc != HFD_OK && rc != HFD_NOT_FOUND)
            return rc;
        p->exists = rc == HFD_OK;
        if (out->own == SIZE_MAX && p->row.kind == out->res.kind)
            out->own = i;
    }
    return HFD_OK;
}

hfd_rc hfd_pass_rows_load(struct hfd_txn *tx, hfd_slice guresid, struct hfd_arena *mem,
                          struct hfd_pass_rows *out, struct hfd_err *err)
{
    hfd_rc rc;

    *out = (struct hfd_pass_rows){.own = SIZE_MAX};
    rc = hfd_remote_row_get(tx, guresid, mem, &out->remote, err);
    if (rc == HFD_OK && out->remote.goal != HFD_GOAL_ABSENT)
        rc = hfd_resource_row_get(tx, guresid, mem, &out->res, err);
    if (rc == HFD_NOT_FOUND || (rc == HFD_OK && out->remote.goal == HFD_GOAL_ABSENT))
        return HFD_OK;
    if (rc != HFD_OK)
        return rc;
    out->found = true;
    return load_parts(tx, guresid, mem, out, err);
}

struct hfd_pass_part *hfd_pass_own(const struct hfd_pass_rows *rows)
{
    return rows->own < rows->count ? &rows->parts[rows->own] : NULL;
}

struct hfd_pass_part *hfd_pass_part_by_id(const struct hfd_pass_rows *rows, hfd_slice fleet_id)
{
    for (size_t i = 0; i < rows->count; i++)
        if (hfd_slice_eq(rows->parts[i].row.fleet_id, fleet_id))
            return &rows->parts[i];
    return NULL;
}
