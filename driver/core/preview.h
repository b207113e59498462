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
    int64_t generation; /* of what is updated or deleted; 0 = it is new */
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
                      const char *action, int64_t generation);
/**
 * Compares what HyperFleet has with what an order writes, and notes an update if they differ.
 * @param row  of the cluster or nodepool
 * @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_preview_patch(const struct hfd_ctx *c, const struct hfd_fleet_row *row,
                                        const struct hfd_drift_wish *want,
                                        struct hfd_preview *preview);

/** A plan: what a PUT would do, so that a later PUT can ask for just that. */
struct hfd_put_plan {
    const char *action;     /* as of hfd_validated */
    hfd_slice canonical;    /* of the input */
    hfd_slice was, protect; /* hfd_resource_row.protect before and after */
    const struct hfd_preview *changes;
};

/**
 * Gives the name of a plan: "plan-" and a keyed digest of all that it says, with the generations of
 * what it changes. That of a new resource does not depend on its GUResID.
 * @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_put_plan_name(const struct hfd_ctx *c, const struct hfd_put_plan *plan,
                                        hfd_slice *out);
/** True if If-Match asks for a plan. Pure. */
bool hfd_put_plan_is_asked(hfd_slice if_match);
/** Fails with what would be done now, as it is another plan. @return HFD_PRECONDITION, HFD_NOMEM */
HFD_MUST_CHECK hfd_rc hfd_put_plan_fail(const struct hfd_ctx *c, const struct hfd_put_plan *now);

#endif
