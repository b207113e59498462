/*
 * HyperFleet's documents: request bodies parsed and checked in HyperFleet's order and words,
 * resources and reports written. Pure. Sources: 000_b453de1dc0312d98.txt; spec/hyperfleet-api.md
 * sections 3 to 6 and 10. Thread: loop.
 */
#ifndef HFD_HTTP_FLEET_JSON_H
#define HFD_HTTP_FLEET_JSON_H

#include "driver/fleet/fleet.h"
#include "driver/fleet/vocabulary.h"
#include "schemas/validate.h"

/**
 * Writes a Cluster or NodePool, its conditions in the words of the vocabulary. What fails sticks
 * to b.
 */
void hfd_fleet_json_resource(struct hfd_buf *b, const struct hfd_fleet_row *row,
                             enum hfd_vocabulary vocabulary);
/** Writes an AdapterStatus. */
void hfd_fleet_json_report(struct hfd_buf *b, const struct hfd_report_row *row);

/**
 * One reading of a body. An error is the first thing wrong, in HyperFleet's order; `found` has it
 * and all that is wrong with other fields.
 */
struct hfd_fleet_reading {
    struct hfd_arena *mem;                /* keeps what is read, and the texts of `found` */
    const struct hfd_schema *spec_schema; /* that a spec must satisfy; NULL = any object */
    struct hfd_violations found;
};

/**
 * Fills in->name, spec and labels. in->kind is given.
 * @return HFD_OK, HFD_MALFORMED, HFD_INVALID, HFD_LIMIT (of the schema's work), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_fleet_json_create(hfd_slice body, struct hfd_fleet_reading *r,
                                            struct hfd_fleet_create *in, struct hfd_err *err);
/**
 * Fills in->spec and labels; at least one must be there; unknown members are refused.
 * @return as create, and HFD_BAD_REQUEST for an empty patch
 */
HFD_MUST_CHECK hfd_rc hfd_fleet_json_patch(hfd_slice body, struct hfd_fleet_reading *r,
                                           struct hfd_fleet_patch *in, struct hfd_err *err);
/** The reason of a forced deletion: 1 to 1024 characters. @return as create */
HFD_MUST_CHECK hfd_rc hfd_fleet_json_reason(hfd_slice body, struct hfd_fleet_reading *r,
                                            hfd_slice *out, struct hfd_err *err);
/**
 * Fills all but the ids; data.secrets is split off and its values are redacted in data. @return as
 * create
 */
HFD_MUST_CHECK hfd_rc hfd_fleet_json_status(hfd_slice body, struct hfd_fleet_reading *r,
                                            struct hfd_fleet_report *in, struct hfd_err *err);

#endif
