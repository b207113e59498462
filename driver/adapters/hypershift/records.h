/* The memory of the adapter: when to visit each cluster and nodepool. Thread: the adapter's. */
#ifndef HFD_HYPERSHIFT_RECORDS_H
#define HFD_HYPERSHIFT_RECORDS_H

#include "driver/adapters/hypershift/work.h"

#define HFD_HS_BUCKETS 4096u

struct hfd_hs_records {
    struct hfd_hs_record *buckets[HFD_HS_BUCKETS];
    size_t count;
};

/** Frees all records. */
void hfd_hs_records_fini(struct hfd_hs_records *records);

/** Finds the record of a cluster or nodepool, or NULL. */
struct hfd_hs_record *hfd_hs_record_find(const struct hfd_hs_records *records, hfd_slice id);
/**
 * Finds or makes the record of a row, and has it visited at once if the row is new or changed.
 * @return NULL: memory is short, or the id is longer than any of ours
 */
struct hfd_hs_record *hfd_hs_record_note(struct hfd_hs_records *records,
                                         const struct hfd_fleet_row *row);
/** Frees one record. */
void hfd_hs_record_remove(struct hfd_hs_records *records, struct hfd_hs_record *record);

/** Has a cluster or nodepool visited at once, and with a cluster all its nodepools. */
void hfd_hs_records_touch(struct hfd_hs_records *records, hfd_slice id);
/** Has all visited at once. */
void hfd_hs_records_touch_all(struct hfd_hs_records *records);
/** As touch, and has the objects applied again: secrets of an order have no generation. */
void hfd_hs_records_renew(struct hfd_hs_records *records, hfd_slice id);
/** The record that is due first, or NULL. */
struct hfd_hs_record *hfd_hs_records_first(const struct hfd_hs_records *records);

/** When to visit a resource again after a walk. @param random  any bits */
int64_t hfd_hs_next_visit_us(const struct hfd_hs_work *work, enum hfd_step_end end, bool watched,
                             uint32_t random);

#endif
