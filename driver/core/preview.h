/*
 * A list of what a PUT would do to the parts of a resource. Nothing here writes. Thread: any,
 * inside a transaction function.
 */
#ifndef HFD_CORE_PREVIEW_H
#define HFD_CORE_PREVIEW_H

#include "driver/core/driver.h"

/** A cluster or nodepool that the PUT would create, update or delete. */
struct hfd_preview_part {
    enum hfd_kind kind;
    hfd_slice name;          /* p is NULL if it follows from a GUResID that is not known */
    const char *action;      /* "create", "update", "delete" */
    const hfd_slice *fields; /* of an update: "spec.region", "labels.env" */
    size_t field_count;
};

struct hfd_drift_wish;

struct hfd_preview {
    struct hfd_preview_part *parts; /* in the order of the work */
    size_t count, room;
};

/** Takes memory for so many parts. @return HFD_OK, HFD_NOMEM */
HFD_MUST_CHECK hfd_rc hfd_preview_init(const struct hfd_ctx *c, size_t room,
                                       struct hfd_preview *out);
/** Notes that a part would be created or deleted. The name is borrowed. */
void hfd_preview_note(struct hfd_preview *preview, enum hfd_kind kind, hfd_slice name,
                      const char *action);
/**
 * Compares what HyperFleet has with what an order writes, and notes an update if they differ.
 * @param row  of the cluster or nodepool
 * @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_preview_patch(const struct hfd_ctx *c, const struct hfd_fleet_row *row,
                                        const struct hfd_drift_wish *want,
                                        struct hfd_preview *preview);

#endif
