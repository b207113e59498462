/*
 * A PacemakerCluster document and its verdict as the API shows them. Pure. Thread: any.
 */
#ifndef HFD_HEALTH_SHOW_H
#define HFD_HEALTH_SHOW_H

#include "driver/health/verdict.h"

/** A stored document and the verdict on it now. */
struct hfd_health_view {
    hfd_slice text;
    struct hfd_health_document document;
    struct hfd_health_verdict verdict;
};

/** Adds the document with its verdict as the member "health". */
void hfd_health_format(struct hfd_buf *b, const struct hfd_health_view *view);

#endif
