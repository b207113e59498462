/*
 * How a PacemakerCluster document may follow the stored one (rules R2 to R4 and R7), and how the
 * Kubernetes-shaped sub-resource puts two documents together. Pure. Thread: any. Source:
 * PacemakerCluster, "Status Subresource Design" and "Timestamp validation".
 */
#ifndef HFD_HEALTH_FOLLOW_H
#define HFD_HEALTH_FOLLOW_H

#include "driver/health/document.h"

enum hfd_health_follows {
    HFD_HEALTH_NEWER,   /* it takes the place of the stored one */
    HFD_HEALTH_SAME,    /* lastUpdated is equal: the stored one stays */
    HFD_HEALTH_EARLIER, /* refused, R7 */
    HFD_HEALTH_REMOVED, /* refused, R2: it has no status, and the stored one has */
};

/** @param stored  NULL = there is none */
enum hfd_health_follows hfd_health_follows(const struct hfd_health_document *stored,
                                           const struct hfd_health_document *next);

/** The texts of the two refusals. */
#define HFD_HEALTH_EARLIER_TEXT "lastUpdated may not be set to an earlier timestamp"
#define HFD_HEALTH_REMOVED_TEXT "status may not be removed once set"

/**
 * Makes a document with the status of one and everything else of another. A create takes the status
 * of none. PUT of the main resource takes that of the stored document. PUT of the status puts its
 * own into the stored document.
 * @param main    borrows
 * @param status  borrows; NULL = no status
 * @param out     gives; shares members with the two
 * @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_health_join(const json_t *main, const json_t *status, json_t **out,
                                      struct hfd_err *err);

#endif
