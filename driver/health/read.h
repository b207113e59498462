/*
 * PacemakerCluster documents as they come in: checked, pruned and parsed. Pure. Thread: any.
 */
#ifndef HFD_HEALTH_READ_H
#define HFD_HEALTH_READ_H

#include "driver/health/document.h"
#include "driver/health/rules.h"

/** The member of a report's data that has the document. */
#define HFD_HEALTH_MEMBER "pacemakerCluster"

/** A document as it came in, checked and pruned. */
struct hfd_health_reading {
    bool present;   /* false: the report has no document */
    hfd_slice text; /* canonical JSON */
    struct hfd_health_document document;
    struct hfd_health_violations violations; /* when it was refused */
};

/**
 * Checks a document. Drops its unknown fields.
 * @param doc   changed in place
 * @param root  its path for the fields of violations
 * @param mem   keeps what out points to
 * @return HFD_OK, HFD_INVALID (out->violations), HFD_TOO_LARGE, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_health_read(json_t *doc, const char *root, struct hfd_arena *mem,
                                      struct hfd_health_reading *out, struct hfd_err *err);

/** The same with the document in the data of a report, if it has one. */
HFD_MUST_CHECK hfd_rc hfd_health_read_report(hfd_slice data, struct hfd_arena *mem,
                                             struct hfd_health_reading *out, struct hfd_err *err);

#endif
