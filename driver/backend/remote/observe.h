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
 * Takes over HyperFleet resources that carry the label of a driver resource. Thread: writer, inside
 * a transaction function.
 */

/** Returns whether the resource's label is on it. */
bool hfd_adopt_is_ours(const struct hfd_take *t, const struct hfd_wire_resource *doc);
/** Returns whether another server of this driver made it. */
bool hfd_adopt_is_foreign(const struct hfd_take *t, const struct hfd_wire_resource *doc);

/** Takes it over for a part that has no id yet, or refuses the operation. */
HFD_MUST_CHECK hfd_rc hfd_adopt_part(struct hfd_take *t, struct hfd_pass_part *part,
                                     const struct hfd_wire_resource *doc, struct hfd_err *err);
/** Makes a part of a nodepool of an adopted cluster. */
HFD_MUST_CHECK hfd_rc hfd_adopt_pool(struct hfd_take *t, const struct hfd_wire_resource *doc,
                                     struct hfd_err *err);
/** All nodepools of an adopted cluster are parts now: from here on it is made as its rows say. */
HFD_MUST_CHECK hfd_rc hfd_adopt_complete(struct hfd_take *t, struct hfd_err *err);
/** There is nothing to adopt: removes the rows of the resource. */
HFD_MUST_CHECK hfd_rc hfd_adopt_nothing(struct hfd_take *t, struct hfd_err *err);

/*
 * A POST whose answer never comes may still be carried out later, even after this process has
 * ended. The row of the work therefore has the time of the last such POST (unsure_us), written
 * before it is sent. Thread: writer, inside a transaction function.
 */

/* A POST without an answer may be carried out for this long. */
#define HFD_CREATION_UNSURE_US (60 * HFD_US_PER_S)

/** A POST comes next: sets the time in the row. */
void hfd_creation_announce(struct hfd_take *t);
/** The announced POST is not sent after all: sets the time back. */
void hfd_creation_withdraw(struct hfd_take *t);
/** A POST was sent: keeps the time if there was no answer, or if another POST comes next. */
void hfd_creation_conclude(struct hfd_take *t);
/** Returns whether a POST may still be carried out. */
bool hfd_creation_is_unsure(const struct hfd_take *t);
/** Returns whether a nodepool has to be created. @param but  not counted; may be NULL */
bool hfd_creation_is_left(const struct hfd_take *t, const struct hfd_pass_part *but);

/*
 * Ends an operation that cannot be carried out. The next PUT or DELETE begins anew. Thread: writer,
 * inside a transaction function.
 */

/**
 * Fails the operation and ends the pass. Takes back deleted_us of parts that are not going to be
 * deleted.
 * @param message  of wire.h; without p: memory was short
 * @return HFD_OK, HFD_NOMEM, HFD_IO, HFD_CORRUPT
 */
HFD_MUST_CHECK hfd_rc hfd_refuse(struct hfd_take *t, const char *code, hfd_slice message,
                                 struct hfd_err *err);
/**
 * A part's name or label is on this HyperFleet resource.
 * @param made_by  its server, empty = none; no p = it does not have the label of this resource
 */
HFD_MUST_CHECK hfd_rc hfd_refuse_taken(struct hfd_take *t, const struct hfd_pass_part *part,
                                       hfd_slice id, hfd_slice made_by, struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_refuse_invalid(struct hfd_take *t, const struct hfd_pass_part *part,
                                         struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_refuse_unable(struct hfd_take *t, const struct hfd_pass_part *part,
                                        struct hfd_err *err);
/** The answer is 401 or 403. Tries again later; refuses the operation after some in a row. */
HFD_MUST_CHECK hfd_rc hfd_refuse_credentials(struct hfd_take *t, struct hfd_err *err);

#endif
