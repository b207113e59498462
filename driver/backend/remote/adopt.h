/*
 * Takes over HyperFleet resources that carry the label of a driver resource. Thread: writer, inside
 * a transaction function.
 */
#ifndef HFD_REMOTE_ADOPT_H
#define HFD_REMOTE_ADOPT_H

#include "driver/backend/remote/take.h"

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

#endif
