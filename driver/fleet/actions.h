/*
 * Actions on clusters that no driver resource ordered, as entries of the one history
 * (store/rows_history.h). A cluster's row tells its creation and its deletion as long as it is
 * there. An update is written when it is made. All are written when the cluster is removed. Thread:
 * writer for what writes, else any, inside a transaction function.
 */
#ifndef HFD_FLEET_ACTIONS_H
#define HFD_FLEET_ACTIONS_H

#include "driver/fleet/fleet_int.h"
#include "store/rows_history.h"

#define HFD_TOMBSTONES_MAX 10000

/** The tombstones that are kept at this time: driver.tombstone, at most HFD_TOMBSTONES_MAX. */
struct hfd_tombstone_limits hfd_fleet_tombstone_limits(const struct hfd_fleet *fleet,
                                                       int64_t now_us);

/** The entry of a cluster's creation, without seq. Pure. */
struct hfd_history_row hfd_fleet_action_create(const struct hfd_fleet_row *row);
/** The entry of the request to delete it, without seq. Pure. */
struct hfd_history_row hfd_fleet_action_delete(const struct hfd_fleet_row *row);

/** Writes that a PATCH raised the generation. Anything but such a cluster: nothing. */
HFD_MUST_CHECK hfd_rc hfd_fleet_action_updated(const struct hfd_fleet_work *w,
                                               const struct hfd_fleet_row *row);
/** Writes all that its row told, and its tombstone. Anything but such a cluster: nothing. */
HFD_MUST_CHECK hfd_rc hfd_fleet_action_removed(const struct hfd_fleet_work *w,
                                               const struct hfd_fleet_row *row);

#endif
