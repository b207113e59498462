/*
 * Makes the parts of a resource what an input asks for, or says what that would change. Thread:
 * writer; any for hfd_parts_preview.
 */
#ifndef HFD_CORE_APPLY_H
#define HFD_CORE_APPLY_H

#include "driver/core/parts.h"
#include "driver/core/preview.h"

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
HFD_MUST_CHECK hfd_rc hfd_apply_wants(const struct hfd_ctx *c, const struct hfd_call *call);

#endif
