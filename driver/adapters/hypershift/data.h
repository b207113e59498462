/* The data of a report: progress, objects, outputs. Thread: the adapter's. */
#ifndef HFD_HYPERSHIFT_DATA_H
#define HFD_HYPERSHIFT_DATA_H

#include "driver/adapters/hypershift/work.h"
#include "driver/fleet/objects.h"

/** The part of the data beside objects and outputs. */
struct hfd_hs_progress {
    int64_t serves;      /* the generation that was reached; 0 = none */
    int64_t updating_to; /* 0 = no update of what serves is going on */
    const char *step;    /* "GATE Available", "SYNC Validated"; NULL = complete */
    const char *message;
    int percent;
    const char *rsync; /* EMCO's word for the object: "Applied" */
};

/** The data of a report, in the memory of the work. */
struct hfd_hs_data {
    hfd_slice text;    /* JSON, secrets redacted */
    hfd_slice secrets; /* JSON, plain; empty = none */
    struct hfd_object_counts objects;
};

/** Makes the data. @return HFD_OK, HFD_NOMEM */
HFD_MUST_CHECK hfd_rc hfd_hs_data_make(const struct hfd_hs_work *work,
                                       const struct hfd_hs_progress *progress,
                                       struct hfd_hs_data *out);

/** The percent of this step, not below what was reported of the same generation. */
int hfd_hs_percent(const struct hfd_hs_work *work, int64_t generation, int percent);

#endif
