/* Reports of fleet_api.h, and the secrets in them. Thread: the adapter's. */
#ifndef HFD_HYPERSHIFT_FLEET_API_SEND_H
#define HFD_HYPERSHIFT_FLEET_API_SEND_H

#include "driver/adapters/hypershift/fleet_api_int.h"

/** The secrets that were sent of a cluster, or empty. Borrowed until the next report. */
hfd_slice hfd_hs_api_sent(const struct hfd_hs_fleet_api *api, hfd_slice id);
/** Forgets them. */
void hfd_hs_api_forget(struct hfd_hs_fleet_api *api, hfd_slice id);

/** Posts what the API does not have. See hfd_hs_fleet_ops.send. */
HFD_MUST_CHECK hfd_rc hfd_hs_api_send(void *api, struct hfd_hs_work *work,
                                      const struct hfd_hs_reports *reports, struct hfd_err *err);

#endif
