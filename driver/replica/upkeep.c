/* See upkeep.h. */
#include "driver/replica/upkeep.h"

#include "driver/base/clock.h"
#include "store/rows_replica.h"
#include "store/totals.h"

#define HOUR_US (3600 * HFD_US_PER_S)
#define DAY_US (24 * HOUR_US)

hfd_rc hfd_replica_check_schema(struct hfd_txn *tx, int64_t known, struct hfd_err *err)
{
    int64_t min;
    hfd_rc rc = hfd_replica_row_schema_min(tx, &min, err);

    if (rc == HFD_OK && min > known)
        rc = hfd_fail(err, HFD_INVALID,
                      "store: the database needs programs that know schema version %lld, and this "
                      "one knows %lld. Start the newer hyperfleet-driver",
                      (long long)min, (long long)known);
    return rc;
}

hfd_rc hfd_replica_tidy(struct hfd_txn *tx, int64_t now_us, int64_t last_us, int64_t *out,
                        struct hfd_err *err)
{
    const hfd_rc rc = hfd_totals_fold(tx, err);

    *out = last_us;
    if (rc != HFD_OK || (last_us != 0 && now_us - last_us < HOUR_US))
        return rc;
    *out = now_us;
    return hfd_replica_row_forget_commits(tx, now_us, now_us - DAY_US, err);
}

hfd_rc hfd_replica_leave(struct hfd_txn *tx, hfd_slice id, struct hfd_err *err)
{
    hfd_rc rc = hfd_lease_row_release(tx, id, err);

    if (rc == HFD_OK)
        rc = hfd_replica_row_delete(tx, id, err);
    return rc == HFD_OK ? hfd_totals_fold(tx, err) : rc;
}
