/*
 * From the remote's documents to rows. Writes only what differs, and then runs the observer of the
 * core, as an embedded HyperFleet does. Thread: writer, inside a transaction function.
 */
#ifndef HFD_REMOTE_OBSERVE_H
#define HFD_REMOTE_OBSERVE_H

#include "driver/backend/remote/take.h"

/** The document of a part: what differs from its row is held until its reports are read. */
HFD_MUST_CHECK hfd_rc hfd_observe_document(struct hfd_take *t, struct hfd_pass_part *part,
                                           const struct hfd_wire_resource *doc,
                                           struct hfd_err *err);
/** The document that answered a POST or PATCH: the part is no longer pending. */
HFD_MUST_CHECK hfd_rc hfd_observe_written(struct hfd_take *t, struct hfd_pass_part *part,
                                          const struct hfd_wire_resource *doc, struct hfd_err *err);
/**
 * Gives a part the id of a HyperFleet resource. Adopting, it also gives name, spec and labels.
 * @param available  false: the HyperFleet resource belongs to another part, and nothing is changed
 */
HFD_MUST_CHECK hfd_rc hfd_observe_id(struct hfd_take *t, struct hfd_pass_part *part,
                                     const struct hfd_wire_resource *doc, bool *available,
                                     struct hfd_err *err);
/** A report of the part whose reports are read. Skips one that cannot be read. */
HFD_MUST_CHECK hfd_rc hfd_observe_report(struct hfd_take *t, hfd_slice fleet_id, json_t *doc,
                                         struct hfd_err *err);
/** All reports of a held part are read: writes its document. */
HFD_MUST_CHECK hfd_rc hfd_observe_release(struct hfd_take *t, struct hfd_pass_part *part,
                                          struct hfd_err *err);
/** A part does not exist any more. The nodepools of a cluster go with it. */
HFD_MUST_CHECK hfd_rc hfd_observe_gone(struct hfd_take *t, struct hfd_pass_part *part,
                                       struct hfd_err *err);
/** Returns whether the remote has what the part wants. */
bool hfd_observe_equal(const struct hfd_pass_part *part, hfd_slice spec, hfd_slice labels);

#endif
