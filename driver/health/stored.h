/*
 * A PacemakerCluster document as it is stored: a member of the data of an adapter's report, with
 * the time of its staleness beside it. Thread: that of the transaction; stored_data and
 * stored_join: any.
 */
#ifndef HFD_HEALTH_STORED_H
#define HFD_HEALTH_STORED_H

#include "driver/health/intake.h"
#include "store/rows_event.h"
#include "store/rows_watch.h"

struct hfd_health_stored {
    bool reported; /* there is a report, row */
    struct hfd_report_row row;
    bool has_document; /* it has a document; text, document and watch are its */
    hfd_slice text;
    struct hfd_health_document document;
    struct hfd_watch_row watch; /* stale_us is INT64_MAX while the document has no status */
    bool known;                 /* a verdict is known: the report has HFD_HEALTH_DEGRADED */
};

/** Reads what is stored. @return HFD_OK, also when there is nothing; HFD_CORRUPT, HFD_NOMEM */
HFD_MUST_CHECK hfd_rc hfd_health_stored_load(struct hfd_txn *tx, const struct hfd_health_key *key,
                                             struct hfd_arena *mem, struct hfd_health_stored *out,
                                             struct hfd_err *err);

/** The data of a report, and the counts of the objects in it and in its document. */
struct hfd_health_data {
    hfd_slice text;
    struct hfd_object_counts objects;
};

/** Puts a document into the data of a report, in place of the one that it has. */
HFD_MUST_CHECK hfd_rc hfd_health_stored_data(hfd_slice data, hfd_slice document,
                                             struct hfd_arena *mem, struct hfd_health_data *out,
                                             struct hfd_err *err);

struct hfd_health_join_texts {
    hfd_slice main;
    hfd_slice status; /* none = no status */
};

/** hfd_health_join of texts. */
HFD_MUST_CHECK hfd_rc hfd_health_stored_join(const struct hfd_health_join_texts *in,
                                             struct hfd_arena *mem, hfd_slice *out,
                                             struct hfd_err *err);

#endif
