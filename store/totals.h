/*
 * Changes of kept totals on their way to fleet_count. They are summed up by total over the jobs of
 * a commit, and written before it. (30 PUTs change ten totals, each 20 to 30 times.) Where two
 * totals meet in one place of the table, the older sum is written at once. So the table is never
 * full. Thread: writer.
 *
 * A row stays locked until its COMMIT is on disk. So each server of a database has a slot
 * (hfd_db_slot) with rows of its own, and waits for no other one. There fleet_count.kind is the
 * kind plus HFD_SLOT_KINDS times the slot. A total is the sum over all slots. hfd_totals_fold
 * brings them back to slot 0, the only one with SQLite or a single server.
 */
#ifndef HFD_STORE_TOTALS_H
#define HFD_STORE_TOTALS_H

#include "driver/base/err.h"
#include "store/kind.h"
#include "store/rows_fleet.h"
#include "store/txn.h"

#define HFD_TOTALS_PLACES 128u
#define HFD_TOTALS_TEXT_MAX 176u /* name and value; longer ones are written at once */
#define HFD_SLOT_KINDS 16        /* more than there are kinds */
/** SQL: the kinds of all slots. @param kind  text of an expression */
#define HFD_SQL_SLOTS(kind)                                                                        \
    "(" kind ", " kind " + 16, " kind " + 32, " kind " + 48, " kind " + 64, " kind " + 80, " kind  \
    " + 96, " kind " + 112)"

/** The kinds of totals: fleet_count.field. */
enum hfd_count_field {
    HFD_COUNT_ALL = 0, /* name and value are empty */
    HFD_COUNT_CONDITION = 1,
    HFD_COUNT_LABEL = 2,
    HFD_COUNT_RESOURCE = 3 /* driver resources: name is the type, value the number of its state */
};

struct hfd_count_key {
    enum hfd_kind kind;
    enum hfd_count_field field;
    hfd_slice name, value;
};

/** Returns true when the store keeps totals by this label. */
static inline bool hfd_label_is_counted(hfd_slice key)
{
    return !hfd_slice_is(key, HFD_LABEL_UNCOUNTED);
}

struct hfd_totals {
    uint64_t additions; /* ever: tells if a job changed a sum */
    struct hfd_totals_place {
        int64_t by; /* 0 = empty */
        enum hfd_kind kind;
        enum hfd_count_field field;
        uint16_t name_len, value_len;
        char text[HFD_TOTALS_TEXT_MAX]; /* the name, then the value */
    } places[HFD_TOTALS_PLACES];
};

/** Adds to tx->totals, or to the table itself where there is none. */
HFD_MUST_CHECK hfd_rc hfd_totals_add(struct hfd_txn *tx, const struct hfd_count_key *key,
                                     int64_t by, struct hfd_err *err);
/** The total of driver resources of one type, without its organisation, in one state. */
struct hfd_resource_total {
    hfd_slice type;
    int64_t state; /* enum hfd_state */
    int64_t n;
};

struct hfd_resource_totals {
    struct hfd_resource_total *rows;
    size_t count;
};

/** Gives a total that is on disk; 0 if it is not kept, or nothing counts. */
HFD_MUST_CHECK hfd_rc hfd_totals_get(struct hfd_txn *tx, const struct hfd_count_key *key,
                                     int64_t *out, struct hfd_err *err);
/** Lists the totals of driver resources that are on disk. */
HFD_MUST_CHECK hfd_rc hfd_totals_resources(struct hfd_txn *tx, struct hfd_arena *mem,
                                           struct hfd_resource_totals *out, struct hfd_err *err);

/**
 * Adds what other slots have to slot 0. It does nothing if there is nothing.
 * @param tx  alone: no other server writes meanwhile
 */
HFD_MUST_CHECK hfd_rc hfd_totals_fold(struct hfd_txn *tx, struct hfd_err *err);
/** Writes all sums of tx->totals and empties it. */
HFD_MUST_CHECK hfd_rc hfd_totals_write(struct hfd_txn *tx, struct hfd_err *err);
/** Forgets them: what they count was undone. */
void hfd_totals_drop(struct hfd_totals *totals);

#endif
