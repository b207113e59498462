/* See seen.h. */
#include "driver/replica/seen.h"

#include "driver/replica/keeper.h"
#include "store/rows_replica.h"

/* Marks those whose settings are older than those of a live one. */
static void mark_outdated(const struct hfd_replicas_seen *all)
{
    int64_t newest = 0;

    for (size_t i = 0; i < all->count; i++)
        if (all->items[i].live && all->items[i].settings_epoch > newest)
            newest = all->items[i].settings_epoch;
    for (size_t i = 0; i < all->count; i++)
        all->items[i].outdated = all->items[i].settings_epoch < newest;
}

hfd_rc hfd_replicas_read(struct hfd_txn *tx, int64_t now_us, struct hfd_arena *mem,
                         struct hfd_replicas_seen *out, struct hfd_err *err)
{
    struct hfd_lease_row lease;
    struct hfd_replica_list list;
    hfd_rc rc = hfd_replica_row_list(tx, mem, &list, err);

    *out = (struct hfd_replicas_seen){.count = 0};
    if (rc == HFD_OK)
        rc = hfd_lease_row_get(tx, mem, &lease, err);
    if (rc != HFD_OK || list.count == 0)
        return rc;
    out->items = hfd_arena_array(mem, list.count, sizeof(*out->items));
    if (out->items == NULL)
        return hfd_fail_nomem(err, "list the replicas");
    for (size_t i = 0; i < list.count; i++) {
        const struct hfd_replica_row *row = &list.rows[i];

        out->items[i] = (struct hfd_replica_seen){
            .id = row->id,
            .name = row->name,
            .version = row->version,
            .schema = row->schema,
            .started_us = row->started_us,
            .beat_us = row->beat_us,
            .settings_epoch = row->settings_epoch,
            .leads = hfd_slice_eq(lease.holder, row->id) && lease.until_us > now_us,
            .live = row->beat_us > now_us - HFD_REPLICA_LEASE_US};
    }
    out->count = list.count;
    mark_outdated(out);
    return HFD_OK;
}
