/*
 * From the remote's documents to rows. Writes only what differs, and then runs the observer of the
 * core, as an embedded HyperFleet does. Thread: writer, inside a transaction function.
 */
#ifndef HFD_REMOTE_OBSERVE_H
#define HFD_REMOTE_OBSERVE_H

#include "driver/backend/remote/http.h"
#include "driver/base/err.h"
#include "driver/base/jsonx.h"
#include "driver/base/slice.h"

struct hfd_pass_part;
struct hfd_take;
struct hfd_wire_problem;
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

/* The meaning of an answer: the table "What answers mean" of README.md. Pure. Thread: any. */

enum hfd_remote_verdict {
    HFD_ON_WELL,    /* done, or the document is here */
    HFD_ON_LATER,   /* down, busy */
    HFD_ON_FOREIGN, /* not a word of HyperFleet: a proxy's, perhaps */
    HFD_ON_WRONG,   /* not a HyperFleet: a redirect, or its word that the path is not its own */
    HFD_ON_REFUSED, /* the credentials are refused */
    HFD_ON_MISSING, /* the resource does not exist (any more) */
    HFD_ON_TAKEN,   /* the name is taken */
    HFD_ON_LEAVING, /* the resource or its cluster is being deleted */
    HFD_ON_INVALID, /* the input is refused */
    HFD_ON_UNABLE   /* this HyperFleet has no such operation */
};

/** @param problem  from the answer's document, or zeroes */
enum hfd_remote_verdict hfd_remote_verdict_of(enum hfd_remote_method method,
                                              const struct hfd_remote_answer *a,
                                              const struct hfd_wire_problem *problem);

/** Finds the state of the remote that the answer shows. */
enum hfd_remote_health hfd_remote_health_of(const struct hfd_remote_answer *a);

#endif
