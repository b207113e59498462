/*
 * Documents of the HyperFleet API: parses and checks request bodies in HyperFleet's order, and
 * writes resources and reports. Error texts are HyperFleet's. Pure. Source: HyperFleet API. Thread:
 * loop.
 */
#ifndef HFD_HTTP_FLEET_JSON_H
#define HFD_HTTP_FLEET_JSON_H

#include "driver/fleet/condition.h"
#include "driver/fleet/report.h"
#include "schemas/validate.h"

/** Writes a Cluster or NodePool; vocabulary names its conditions. A failure is kept in b. */
void hfd_fleet_json_resource(struct hfd_buf *b, const struct hfd_fleet_row *row,
                             enum hfd_vocabulary vocabulary);
/** Writes an AdapterStatus. */
void hfd_fleet_json_report(struct hfd_buf *b, const struct hfd_report_row *row);

/**
 * The reading of one body. An error is the first one in HyperFleet's order; `found` has it and all
 * errors of other fields.
 */
struct hfd_fleet_reading {
    struct hfd_arena *mem;                /* holds the values and the texts of `found` */
    const struct hfd_schema *spec_schema; /* schema of a spec; NULL = any object */
    int64_t now_us;                       /* the server's clock */
    struct hfd_violations found;
};

/**
 * Reads the body of a creation: fills in->name, spec and labels. in->kind is given.
 * @return HFD_OK, HFD_MALFORMED, HFD_INVALID, HFD_LIMIT (too much work for the schema), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_fleet_json_create(hfd_slice body, struct hfd_fleet_reading *r,
                                            struct hfd_fleet_create *in, struct hfd_err *err);
/**
 * Reads the body of a patch: fills in->spec and labels. At least one must be present; unknown
 * members are refused.
 * @return as create, and HFD_BAD_REQUEST for an empty patch
 */
HFD_MUST_CHECK hfd_rc hfd_fleet_json_patch(hfd_slice body, struct hfd_fleet_reading *r,
                                           struct hfd_fleet_patch *in, struct hfd_err *err);
/**
 * Reads the reason of a forced deletion: 1 to 1024 characters.
 * @return as create
 */
HFD_MUST_CHECK hfd_rc hfd_fleet_json_reason(hfd_slice body, struct hfd_fleet_reading *r,
                                            hfd_slice *out, struct hfd_err *err);
/**
 * Reads a report: fills all members of in but the ids. Splits off data.secrets and redacts its
 * values in data.
 * @return as create
 */
HFD_MUST_CHECK hfd_rc hfd_fleet_json_status(hfd_slice body, struct hfd_fleet_reading *r,
                                            struct hfd_fleet_report *in, struct hfd_err *err);

#endif
