/*
 * Says what a PUT of an input would do, by the rules of the PUT, and stores nothing. Thread: any
 * reader.
 */
#ifndef HFD_CORE_VALIDATE_H
#define HFD_CORE_VALIDATE_H

#include "driver/core/preview.h"

struct hfd_validated {
    const char *action;   /* "create", "update", "none"; NULL = the PUT would be 409 */
    struct hfd_hint hint; /* 409: the operation in the way */
    hfd_slice name; /* of the cluster, or of a nodepool resource's nodepool; p is NULL if it follows
                       from a GUResID that is not known */
    struct hfd_preview changes;
};

/**
 * Does what hfd_resource_put does, without a cookie, up to the first write.
 * @param call  guresid may be empty: a new resource whose GUResID is not known yet
 * @return HFD_OK, or what the PUT would fail with: HFD_INVALID, HFD_IMMUTABLE
 */
HFD_MUST_CHECK hfd_rc hfd_resource_validate(struct hfd_txn *tx, const struct hfd_call *call,
                                            struct hfd_validated *out, struct hfd_err *err);

#endif
