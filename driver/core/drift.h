/*
 * Drift: a difference between what the last accepted order of a resource wants, and what
 * HyperFleet has. Only fields that the order names count, and only while the resource is ready.
 * README.md, "Drift".
 *
 * The two documents of a part are its row in HyperFleet, and hfd_part_row.aside. The embedded
 * HyperFleet's row is what is there, and aside keeps what was ordered before others changed
 * it. The row of a remote is what was ordered, and aside keeps what was found there.
 *
 * Thread: writer inside a transaction function, if not said otherwise.
 */
#ifndef HFD_CORE_DRIFT_H
#define HFD_CORE_DRIFT_H

#include "driver/core/driver.h"
#include "driver/core/parts.h"

#define HFD_DRIFT_SHOWN_MAX 20  /* items of the list of one resource */
#define HFD_DRIFT_REPAIRS_MAX 5 /* of one field within HFD_DRIFT_REPAIRS_US */
#define HFD_DRIFT_REPAIRS_US (3600 * HFD_US_PER_S)
#define HFD_DRIFT_BACKOFF_US (10 * HFD_US_PER_S) /* after the first repair; it doubles */

/** hfd_resource_row.drift: to be looked for when the operation ends. */
#define HFD_DRIFT_UNKNOWN HFD_SLICE("?")

/** The news since the resource was judged before. */
struct hfd_drift_news {
    const char *what;  /* "drifted" or "mended", as in the history; NULL = nothing */
    hfd_slice text;    /* of "drifted": the first field, and how many others */
    hfd_slice gave_up; /* repair stops for a field: says so; empty = it does not */
};

/**
 * Judges the drift of a ready resource: sets drift, drift_count, mendable, repairs and repair_us of
 * its row. The row is not written.
 */
HFD_MUST_CHECK hfd_rc hfd_drift_judge(const struct hfd_ctx *c, const struct hfd_parts *parts,
                                      struct hfd_resource_row *row, struct hfd_drift_news *news);

/** Sets repair_us of a resource that failed because others removed nodepools of it. */
HFD_MUST_CHECK hfd_rc hfd_drift_judge_gone(const struct hfd_ctx *c, const struct hfd_parts *parts,
                                           struct hfd_resource_row *row);

/** Adds "drift" and "drift_count" of a row as members of an object, or nothing. Thread: any. */
void hfd_drift_format(struct hfd_buf *b, const struct hfd_resource_row *row);

/**
 * Keeps what was ordered of a part of the embedded HyperFleet, before others change it.
 * @param was  its row
 */
HFD_MUST_CHECK hfd_rc hfd_drift_keep(const struct hfd_ctx *c, struct hfd_part_row *part,
                                     const struct hfd_fleet_row *was);

/** A part, its row in HyperFleet, and hfd_resource_row.repairs of its resource, of this kind. */
struct hfd_drift_part {
    const struct hfd_part_row *row;
    const struct hfd_fleet_row *fleet;
    enum hfd_kind resource;
    hfd_slice given_up; /* fields that are given up stay as they are found; empty = none */
};

/** The documents that will be written to a part, and those that are there. */
struct hfd_drift_wish {
    hfd_slice spec, labels;
    hfd_slice found_spec, found_labels;
    hfd_slice aside; /* of the part after the write */
};

/**
 * Gives what a PUT writes to a part. That is what it wants, but for fields of driver.drift_ignore
 * that the order has as the last one had them. These stay as they are found. Thread: any.
 */
HFD_MUST_CHECK hfd_rc hfd_drift_wish(const struct hfd_ctx *c, const struct hfd_drift_part *p,
                                     const struct hfd_input_part *want, struct hfd_drift_wish *out);

/** Makes the order of a resource again, from what is kept of it. @param out  in c->mem */
HFD_MUST_CHECK hfd_rc hfd_drift_order(const struct hfd_ctx *c, const struct hfd_parts *parts,
                                      const struct hfd_resource_row *row, struct hfd_input *out);

/** Notes in the row that its drift is being mended without a PUT. */
HFD_MUST_CHECK hfd_rc hfd_drift_note_repair(const struct hfd_ctx *c, const struct hfd_parts *parts,
                                            struct hfd_resource_row *row);

#endif
