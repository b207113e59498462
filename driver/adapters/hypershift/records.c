/* See records.h. */
#include "driver/adapters/hypershift/records.h"

#include <stdlib.h>

#define WATCHED_WAIT_US (30 * HFD_US_PER_S)
#define AGAIN_US (HFD_US_PER_S / 10)
#define AGAIN_MAX_US HFD_US_PER_S

static struct hfd_hs_record **bucket_of(const struct hfd_hs_records *r, hfd_slice id)
{
    const size_t at = hfd_slice_hash(HFD_HASH_START, id) % HFD_HS_BUCKETS;

    return (struct hfd_hs_record **)(uintptr_t)&r->buckets[at];
}

void hfd_hs_records_fini(struct hfd_hs_records *r)
{
    for (size_t i = 0; i < HFD_HS_BUCKETS; i++) {
        while (r->buckets[i] != NULL) {
            struct hfd_hs_record *next = r->buckets[i]->next;

            free(r->buckets[i]);
            r->buckets[i] = next;
        }
    }
    r->count = 0;
}

struct hfd_hs_record *hfd_hs_record_find(const struct hfd_hs_records *r, hfd_slice id)
{
    struct hfd_hs_record *record = *bucket_of(r, id);

    while (record != NULL && !hfd_slice_is(id, record->id))
        record = record->next;
    return record;
}

static struct hfd_hs_record *make(struct hfd_hs_records *r, const struct hfd_fleet_row *row)
{
    struct hfd_hs_record **bucket = bucket_of(r, row->id);
    struct hfd_hs_record *record;

    if (row->id.len > HFD_HS_ID_MAX || row->owner_id.len > HFD_HS_ID_MAX)
        return NULL;
    record = calloc(1, sizeof(*record));
    if (record == NULL)
        return NULL;
    memcpy(record->id, row->id.p, row->id.len);
    if (row->owner_id.len > 0)
        memcpy(record->owner_id, row->owner_id.p, row->owner_id.len);
    record->next = *bucket;
    *bucket = record;
    r->count++;
    return record;
}

struct hfd_hs_record *hfd_hs_record_note(struct hfd_hs_records *r, const struct hfd_fleet_row *row)
{
    struct hfd_hs_record *record = hfd_hs_record_find(r, row->id);
    const bool deleting = row->deleted_us != 0;

    if (record == NULL)
        record = make(r, row);
    if (record == NULL)
        return NULL;
    if (record->generation != row->generation || record->deleting != deleting) {
        record->due_us = 0;
        record->attempts = 0;
    }
    record->generation = row->generation;
    record->deleting = deleting;
    return record;
}

void hfd_hs_record_remove(struct hfd_hs_records *r, struct hfd_hs_record *record)
{
    struct hfd_hs_record **at = bucket_of(r, hfd_slice_of(record->id));

    while (*at != record)
        at = &(*at)->next;
    *at = record->next;
    r->count--;
    free(record);
}

void hfd_hs_records_touch(struct hfd_hs_records *r, hfd_slice id)
{
    struct hfd_hs_record *record = hfd_hs_record_find(r, id);

    if (record == NULL)
        return;
    record->due_us = 0;
    if (record->owner_id[0] != '\0')
        return;
    for (size_t i = 0; i < HFD_HS_BUCKETS; i++)
        for (record = r->buckets[i]; record != NULL; record = record->next)
            if (hfd_slice_is(id, record->owner_id))
                record->due_us = 0;
}

void hfd_hs_records_renew(struct hfd_hs_records *r, hfd_slice id)
{
    struct hfd_hs_record *record = hfd_hs_record_find(r, id);

    if (record != NULL)
        record->applied_generation = 0;
    hfd_hs_records_touch(r, id);
}

void hfd_hs_records_touch_all(struct hfd_hs_records *r)
{
    for (size_t i = 0; i < HFD_HS_BUCKETS; i++)
        for (struct hfd_hs_record *record = r->buckets[i]; record != NULL; record = record->next)
            record->due_us = 0;
}

struct hfd_hs_record *hfd_hs_records_first(const struct hfd_hs_records *r)
{
    struct hfd_hs_record *first = NULL;

    for (size_t i = 0; i < HFD_HS_BUCKETS; i++)
        for (struct hfd_hs_record *k = r->buckets[i]; k != NULL; k = k->next)
            if (first == NULL || k->due_us < first->due_us)
                first = k;
    return first;
}

int64_t hfd_hs_next_visit_us(const struct hfd_hs_work *w, enum hfd_step_end end, bool watched,
                             uint32_t random)
{
    const struct hfd_hs_record *r = w->record;
    const int64_t wait_us = w->server->pauses.min_us;
    const bool timed = r->down_since_us != 0 || r->invalid_since_us != 0;

    switch (end) {
    case HFD_STEP_WAITS:
        return w->mono_us + (watched && !timed && w->row.deleted_us == 0 && w->object.doc != NULL
                                 ? WATCHED_WAIT_US
                                 : wait_us);
    case HFD_STEP_AGAIN:
        return w->mono_us +
               (r->attempts * AGAIN_US < AGAIN_MAX_US ? r->attempts * AGAIN_US : AGAIN_MAX_US);
    case HFD_STEP_FAULT:
        if (w->server->closed_until_us > w->mono_us)
            return w->server->closed_until_us;
        return w->mono_us + hfd_kube_backoff_us(&w->server->pauses, r->attempts, random);
    case HFD_STEP_DONE:
    case HFD_STEP_REFUSED:
    case HFD_STEP_STOPPED:
        break;
    }
    if (timed)
        return w->mono_us + wait_us;
    return w->mono_us + w->resync_us - w->resync_us / 10 * (int64_t)(random % 1024) / 1024;
}
