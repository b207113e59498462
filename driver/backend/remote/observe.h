/*
 * From the remote's documents to rows. Writes only what differs, and then runs the observer of the
 * core, as an embedded HyperFleet does. Thread: writer, inside a transaction function.
 */
#ifndef HFD_REMOTE_OBSERVE_H
#define HFD_REMOTE_OBSERVE_H

#include "driver/backend/remote/http.h"
#include "driver/base/clock.h"
#include "driver/base/err.h"
#include "driver/base/jsonx.h"
#include "driver/base/slice.h"

struct hfd_pass_part;
struct hfd_take;
struct hfd_wire_page;
struct hfd_wire_resource;

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

/*
 * A POST whose answer never comes may still be carried out later, even after this process has
 * ended. The row of the work therefore has the time of the last such POST (unsure_us), written
 * before it is sent. Thread: writer, inside a transaction function.
 */

/* A POST without an answer may be carried out for this long. */
#define HFD_CREATION_UNSURE_US (60 * HFD_US_PER_S)

/** A POST was sent: keeps the time if there was no answer, or if another POST comes next. */
void hfd_creation_conclude(struct hfd_take *t);
/** Returns whether a POST may still be carried out. */
bool hfd_creation_is_unsure(const struct hfd_take *t);

/*
 * Lists: what carries the resource's label, what has a name, the nodepools of a cluster. A list is
 * read page by page. Takes over HyperFleet resources that carry the label. Thread: writer, inside a
 * transaction function.
 */

/** Counts a page of the present phase's list. @return whether it is the last one */
bool hfd_take_page(struct hfd_take *t, const struct hfd_wire_page *page, int64_t pages_max);
/** A page of what carries the resource's label: adopts it, refuses, or goes on to CREATE. */
HFD_MUST_CHECK hfd_rc hfd_take_find(struct hfd_take *t, struct hfd_err *err);
/** A page of what has the name that is taken: adopts it or refuses. */
HFD_MUST_CHECK hfd_rc hfd_take_find_name(struct hfd_take *t, struct hfd_err *err);
/** FIND or FIND_NAME was answered 404: the cluster of a nodepool is missing, or no HyperFleet. */
HFD_MUST_CHECK hfd_rc hfd_take_find_missing(struct hfd_take *t, struct hfd_err *err);
/** A page of the cluster's nodepools. */
HFD_MUST_CHECK hfd_rc hfd_take_pools(struct hfd_take *t, struct hfd_err *err);

#endif
