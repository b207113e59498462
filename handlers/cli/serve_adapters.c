/* See serve_adapters.h. */
#include "handlers/cli/serve_adapters.h"

static hfd_rc start_aging(struct hfd_serve_adapters *a, const struct hfd_serve_adapters_parts *p,
                          struct hfd_err *err)
{
    const struct hfd_aging_config config = {
        .store = p->store, .keeper = p->keeper, .driver = p->driver, .clock = p->clock};

    return hfd_aging_start(&config, &a->aging, err);
}

static hfd_rc start_demo(struct hfd_serve_adapters *a, const struct hfd_serve_adapters_parts *p,
                         struct hfd_err *err)
{
    const struct hfd_demo_config config = {
        .store = p->store,
        .keeper = p->keeper,
        .driver = p->driver,
        .clock = p->clock,
        .total_us = p->settings->demo_us,
    };

    return config.total_us >= 0 ? hfd_demo_start(&config, &a->demo, err) : HFD_OK;
}

hfd_rc hfd_serve_adapters_start(struct hfd_serve_adapters *a,
                                const struct hfd_serve_adapters_parts *p, struct hfd_err *err)
{
    const struct hfd_serve_hypershift_parts parts = {p->store, p->driver, p->clock, p->keeper};
    hfd_rc rc = start_aging(a, p, err);

    if (rc == HFD_OK)
        rc = start_demo(a, p, err);
    if (rc == HFD_OK)
        rc = hfd_serve_hypershift_start(&a->hypershift, &parts, err);
    if (rc != HFD_OK)
        hfd_serve_adapters_stop(a);
    return rc;
}

void hfd_serve_adapters_stop(struct hfd_serve_adapters *a)
{
    hfd_serve_hypershift_stop(&a->hypershift);
    hfd_demo_stop(&a->demo);
    hfd_aging_stop(&a->aging);
}
