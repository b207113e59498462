/* See secrets.h. */
#include "driver/core/secrets.h"

static hfd_slice report_aad(hfd_slice fleet_id, hfd_slice adapter, struct hfd_arena *mem)
{
    return hfd_arena_printf(mem, "report|%.*s|%.*s", HFD_SLICE_FMT(fleet_id),
                            HFD_SLICE_FMT(adapter));
}

hfd_slice hfd_report_secrets_seal(const struct hfd_driver *d, const struct hfd_fleet_secret *secret,
                                  struct hfd_arena *mem)
{
    const hfd_slice aad = report_aad(secret->fleet_id, secret->adapter, mem);

    if (aad.p == NULL)
        return HFD_SLICE_NONE;
    return hfd_keyring_seal(&(struct hfd_seal){d->ring, HFD_KEY_AT_REST, aad}, d->rng,
                            secret->plain, mem);
}

hfd_rc hfd_report_secrets_open(const struct hfd_driver *d, const struct hfd_report_row *report,
                               struct hfd_arena *mem, hfd_slice *plain)
{
    const hfd_slice aad = report_aad(report->fleet_id, report->adapter, mem);

    if (aad.p == NULL)
        return HFD_NOMEM;
    return hfd_keyring_open(&(struct hfd_seal){d->ring, HFD_KEY_AT_REST, aad}, report->secrets, mem,
                            plain, NULL);
}
