/*
 * The clusters and nodepools behind a driver resource: reading and adopting them. parts.h makes
 * them what an input asks for. Thread: writer for what writes, else any, inside a transaction
 * function.
 *
 * Makes the parts of a resource what an input asks for, or says what that would change. Thread:
 * writer; any for hfd_parts_preview.
 */
#ifndef HFD_CORE_PARTS_H
#define HFD_CORE_PARTS_H

#include "driver/core/driver.h"
#include "driver/core/outcome.h"
#include "driver/core/preview.h"
#include "store/rows_resource.h"

/** A cluster or nodepool of a resource. */
struct hfd_part {
    struct hfd_part_row row;
    struct hfd_fleet_row fleet; /* valid when view.exists; without its documents and callers */
    struct hfd_part_view view;
};

struct hfd_parts {
    struct hfd_part *items; /* the cluster first, then nodepools by name */
    size_t count;
};

/**
 * Reads the parts of a resource with their reports. A part that no longer exists is in the list,
 * with view.exists false.
 */
HFD_MUST_CHECK hfd_rc hfd_parts_load(const struct hfd_ctx *c, hfd_slice guresid,
                                     struct hfd_parts *out);

/**
 * The adapters that decide for a cluster or nodepool: those of the settings. A remote HyperFleet
 * has its own: those of its <Adapter>Successful conditions, and those that its Ready says are
 * missing. A remote that names none has those that reported, unless the settings name some and it
 * is not ready.
 * @param seen      its conditions, and if it is ready
 * @param reported  the adapters that have reported on it
 * @param out       borrows from the settings, or is in c->mem
 */
struct hfd_part_seen {
    enum hfd_kind kind;
    bool ready;
    const struct hfd_conditions *conditions;
};
HFD_MUST_CHECK hfd_rc hfd_part_deciders(const struct hfd_ctx *c, const struct hfd_part_seen *seen,
                                        const struct hfd_adapter_names *reported,
                                        struct hfd_adapter_names *out);

/**
 * Reads the nodepools in the cluster of a resource that are no parts of it, with their reports. The
 * guresid of a row is empty if no resource has the nodepool.
 */
HFD_MUST_CHECK hfd_rc hfd_parts_load_strangers(const struct hfd_ctx *c,
                                               const struct hfd_parts *parts,
                                               struct hfd_parts *out);

/** The cluster of a resource, or the nodepool of a nodepool resource; NULL = it has no parts. */
const struct hfd_part *hfd_parts_main(const struct hfd_parts *parts);

/**
 * Reads a cluster or nodepool by its id and tells whether it is such an orphan; false as well if
 * there is none. Thread: any.
 */
HFD_MUST_CHECK hfd_rc hfd_parts_find_orphan(const struct hfd_ctx *c, hfd_slice guresid,
                                            const struct hfd_fleet_target *target,
                                            struct hfd_fleet_row *out, bool *yes);

/**
 * A nodepool became a part: the resource of its cluster, which may have listed it as a stranger, is
 * judged again with c->changes.
 */
HFD_MUST_CHECK hfd_rc hfd_part_adopted(const struct hfd_ctx *c, const struct hfd_fleet_row *row);

/** Has what was written carried out. Call it once per transaction, after the last write. */
HFD_MUST_CHECK hfd_rc hfd_parts_schedule(const struct hfd_ctx *c, hfd_slice guresid,
                                         enum hfd_backend_goal goal);

/** Writes that row. */
HFD_MUST_CHECK hfd_rc hfd_part_record(const struct hfd_ctx *c, hfd_slice guresid,
                                      const struct hfd_backend_written *w);

/** The result of hfd_parts_apply. */
struct hfd_applied {
    struct hfd_parts parts; /* as hfd_parts_load gives them now */
    bool made;              /* a part was created or adopted */
    bool anew; /* another part replaces the resource's own, which was removed in HyperFleet */
};

/**
 * Creates, patches and deletes until the parts are what call->input asks for. Creation, update,
 * re-target and new attempt all use it. It adopts an orphan with the resource's label instead of
 * creating another, if the input asks for the orphan's name, or for none.
 * @param row  guresid, kind and cluster_id of the resource ("" = no cluster yet); sets cluster_id
 * @return HFD_OK, HFD_INVALID (a name is taken, no such cluster), HFD_IMMUTABLE (a name cannot
 * change, or the orphan has another)
 */
HFD_MUST_CHECK hfd_rc hfd_parts_apply(const struct hfd_ctx *c, const struct hfd_call *call,
                                      struct hfd_resource_row *row, struct hfd_applied *out);
/**
 * Makes the same decisions, and writes nothing.
 * @param row   as for hfd_parts_apply; guresid may be empty: then there is nothing to adopt
 * @param anew  as in hfd_applied
 * @return as hfd_parts_apply
 */
HFD_MUST_CHECK hfd_rc hfd_parts_preview(const struct hfd_ctx *c, const struct hfd_call *call,
                                        struct hfd_resource_row *row, struct hfd_preview *out,
                                        bool *anew);

/** Notes what a PUT of new parts will read. Its outcome means nothing. */
HFD_MUST_CHECK hfd_rc hfd_apply_prefetch(const struct hfd_ctx *c, const struct hfd_call *call);

#endif
