/* See not_required.h. */
#include "driver/fleet/not_required.h"

#include "driver/base/buf.h"
#include "driver/base/log.h"
#include "driver/base/metrics.h"
#include "driver/base/nearest.h"
#include "store/store.h"

#define ADAPTER_MAX_BYTES 64 /* a label has no more */
#define LINE_MAX_BYTES 1024

/* A report that waits for the commit. */
struct note {
    const struct hfd_adapter_names *required;
    char adapter[ADAPTER_MAX_BYTES + 1];
};

hfd_slice hfd_fleet_required_near(hfd_slice adapter, const struct hfd_adapter_names *required)
{
    struct hfd_nearest n = hfd_nearest_to(adapter);
    hfd_slice near = HFD_SLICE("");

    for (size_t i = 0; i < required->count; i++)
        if (hfd_nearest_consider(&n, required->items[i]))
            near = required->items[i];
    return near;
}

static void log_first(const struct note *n)
{
    struct hfd_buf b;
    hfd_slice near;

    hfd_buf_init(&b, LINE_MAX_BYTES);
    hfd_buf_addf(&b, "adapter %s reports and is not required; required: ", n->adapter);
    for (size_t i = 0; i < n->required->count; i++)
        hfd_buf_addf(&b, "%s%.*s", i > 0 ? ", " : "", HFD_SLICE_FMT(n->required->items[i]));
    if (n->required->count == 0)
        hfd_buf_lit(&b, "none");
    near = hfd_fleet_required_near(hfd_slice_of(n->adapter), n->required);
    if (near.len > 0)
        hfd_buf_addf(&b, "; did you mean %.*s?", HFD_SLICE_FMT(near));
    hfd_buf_addc(&b, '\0');
    if (b.rc == HFD_OK)
        HFD_LOG(HFD_LOG_WARN, b.p, HFD_LOG_CSTR("adapter", n->adapter));
    hfd_buf_fini(&b);
}

/* Only the writer counts, so the value does not change in between. */
static void count_note(const void *arg)
{
    const struct note *n = arg;
    struct hfd_series *s = hfd_metric_series(HFD_METRIC_NOT_REQUIRED, HFD_LABELS(n->adapter));

    if (s != NULL && hfd_series_value(s) == 0)
        log_first(n);
    hfd_series_add(s, 1);
}

hfd_rc hfd_fleet_count_not_required(struct hfd_txn *tx, hfd_slice adapter,
                                    const struct hfd_adapter_names *required, struct hfd_err *err)
{
    struct note n = {.required = required};
    const size_t len = adapter.len < ADAPTER_MAX_BYTES ? adapter.len : ADAPTER_MAX_BYTES;

    if (len > 0)
        memcpy(n.adapter, adapter.p, len);
    return hfd_txn_after_commit(tx, count_note, &n, sizeof(n), err);
}
