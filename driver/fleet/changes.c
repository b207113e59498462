/* See changes.h. */
#include "driver/fleet/changes.h"

#include "driver/fleet/fleet.h"

#define CHANGES_AT_FIRST 8

static hfd_rc make_room(struct hfd_fleet_changes *c, struct hfd_err *err)
{
    const size_t capacity = c->capacity > 0 ? 2 * c->capacity : CHANGES_AT_FIRST;
    struct hfd_fleet_change *items;

    if (c->count < c->capacity)
        return HFD_OK;
    items = hfd_arena_array(c->mem, capacity, sizeof(*items));
    if (items == NULL)
        return hfd_fail_nomem(err, "list changes in HyperFleet");
    if (c->count > 0)
        memcpy(items, c->items, c->count * sizeof(*items));
    c->items = items;
    c->capacity = capacity;
    return HFD_OK;
}

hfd_rc hfd_fleet_note_change(const struct hfd_fleet_call *call,
                             const struct hfd_fleet_change *change, struct hfd_err *err)
{
    struct hfd_fleet_changes *c = call->changes;
    struct hfd_fleet_change *item;
    hfd_rc rc;

    if (c == NULL)
        return HFD_OK;
    for (size_t i = 0; i < c->count; i++)
        if (hfd_slice_eq(c->items[i].id, change->id)) {
            c->items[i].removed = c->items[i].removed || change->removed;
            c->items[i].reported = c->items[i].reported && change->reported;
            return HFD_OK;
        }
    rc = make_room(c, err);
    if (rc != HFD_OK)
        return rc;
    item = &c->items[c->count];
    *item = *change;
    item->id = hfd_arena_dup(c->mem, change->id);
    if (item->id.p == NULL)
        return hfd_fail_nomem(err, "list changes in HyperFleet");
    c->count++;
    return HFD_OK;
}

/* A fingerprint with an epoch: 16 fixed bits, 24 of the epoch, 24 of the fingerprint. */
#define EPOCH_TAG UINT64_C(0x5e7a)
#define EPOCH_MAX INT64_C(0xffffff)

int64_t hfd_fleet_fingerprint_of_epoch(int64_t fingerprint, int64_t epoch)
{
    const uint64_t bits = (uint64_t)fingerprint,
                   at = (uint64_t)(epoch < EPOCH_MAX ? epoch : EPOCH_MAX);

    return (int64_t)(EPOCH_TAG << 48 | at << 24 | (bits & 0xffffff));
}

/* The epoch that a stored fingerprint carries; 0 = none. */
static int64_t epoch_of(int64_t fingerprint)
{
    const uint64_t bits = (uint64_t)fingerprint;

    return bits >> 48 == EPOCH_TAG ? (int64_t)(bits >> 24 & 0xffffff) : 0;
}

hfd_rc hfd_fleet_set_observer_idle(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                                   const struct hfd_fleet_change *change, bool idle,
                                   struct hfd_err *err)
{
    const int64_t now = idle ? call->fleet->settings_fingerprint : 0;
    struct hfd_fleet_row row;
    hfd_rc rc;

    if (change->removed || change->observer_idle == now)
        return HFD_OK;
    rc = hfd_fleet_row_get(tx, change->id, call->mem, &row, err);
    if (rc != HFD_OK)
        return rc == HFD_NOT_FOUND ? HFD_OK : rc;
    /* A replica with older settings leaves what a newer one has noted. */
    if (now != 0 && epoch_of(row.observer_idle) > epoch_of(now) && epoch_of(now) != 0)
        return HFD_OK;
    row.observer_idle = now;
    return hfd_fleet_row_judged(tx, &row, &row, err);
}
