/*
 * The driver contract: PUT, GET and DELETE of a GUResID as transaction functions. Source: Humanitec
 * Driver API 0.9.3; where it is silent, the decision tables in life.h. Thread: any reader for
 * hfd_resource_get and the peeks, else writer.
 *
 * Names the rows that the commands of the Driver API will read: hfd_job.prefetch. Thread: writer.
 */
#ifndef HFD_CORE_RESOURCE_H
#define HFD_CORE_RESOURCE_H

#include "driver/core/driver.h"
#include "driver/core/preview.h"

/**
 * Answers a GET. out->decided is false for a lost row that hfd_resource_get_restored can make
 * again.
 * @return HFD_OK (also for FAILED and ABSENT), HFD_COOKIE
 */
HFD_MUST_CHECK hfd_rc hfd_resource_get(struct hfd_txn *tx, const struct hfd_call *call,
                                       struct hfd_answer_doc *out, struct hfd_err *err);
/** Makes the lost row again, and answers the GET. */
HFD_MUST_CHECK hfd_rc hfd_resource_get_restored(struct hfd_txn *tx, const struct hfd_call *call,
                                                struct hfd_answer_doc *out, struct hfd_err *err);

/**
 * Answers a PUT if its bytes are those of the PUT that made the present state, and nothing can
 * change; else out->decided is false. Needs no call->input: this is the polling path.
 */
HFD_MUST_CHECK hfd_rc hfd_resource_put_peek(struct hfd_txn *tx, const struct hfd_call *call,
                                            struct hfd_answer_doc *out, struct hfd_err *err);

/**
 * Carries out a PUT. call->input is needed.
 * @return HFD_OK, HFD_INVALID (a name is taken, no such cluster), HFD_IMMUTABLE, HFD_COOKIE,
 * HFD_PRECONDITION, HFD_PROTECTED (a nodepool would go)
 */
HFD_MUST_CHECK hfd_rc hfd_resource_put(struct hfd_txn *tx, const struct hfd_call *call,
                                       struct hfd_answer_doc *out, struct hfd_err *err);

/** Answers a DELETE if nothing can change; else out->decided is false. */
HFD_MUST_CHECK hfd_rc hfd_resource_delete_peek(struct hfd_txn *tx, const struct hfd_call *call,
                                               struct hfd_answer_doc *out, struct hfd_err *err);
/**
 * Carries out a DELETE.
 * @return HFD_OK, HFD_INVALID (a path for another kind), HFD_COOKIE, HFD_PRECONDITION,
 * HFD_PROTECTED
 */
HFD_MUST_CHECK hfd_rc hfd_resource_delete(struct hfd_txn *tx, const struct hfd_call *call,
                                          struct hfd_answer_doc *out, struct hfd_err *err);

/** Names the rows that hfd_resource_put will read. Its outcome means nothing. */
HFD_MUST_CHECK hfd_rc hfd_resource_put_prefetch(struct hfd_txn *tx, const struct hfd_call *call,
                                                struct hfd_err *err);
/** Names the rows that hfd_resource_delete will read. */
HFD_MUST_CHECK hfd_rc hfd_resource_delete_prefetch(struct hfd_txn *tx, const struct hfd_call *call,
                                                   struct hfd_err *err);

struct hfd_validated {
    const char *action;   /* "create", "update", "none"; NULL = the PUT would be 409 */
    struct hfd_hint hint; /* 409: the operation in the way */
    hfd_slice name; /* of the cluster, or of a nodepool resource's nodepool; p is NULL if it follows
                       from a GUResID that is not known */
    struct hfd_preview changes;
    bool protected; /* the resource, after the PUT */
    hfd_slice plan; /* hfd_put_plan_name, for If-Match of the PUT; empty with a 409 */
};

/**
 * Mends the drift of a resource whose repair is due.
 * @param later_us  not 0: it could not be mended, and is tried again then
 * @return HFD_OK, and as hfd_resource_put
 * Thread: writer.
 */
HFD_MUST_CHECK hfd_rc hfd_resource_repair(const struct hfd_ctx *c, hfd_slice guresid,
                                          int64_t later_us);

/**
 * Says what a PUT of an input would do: does what hfd_resource_put does, without a cookie, up to
 * the first write. Thread: any reader.
 * @param call  guresid may be empty: a new resource whose GUResID is not known yet
 * @return HFD_OK, or what the PUT would fail with: HFD_INVALID, HFD_IMMUTABLE
 */
HFD_MUST_CHECK hfd_rc hfd_resource_validate(struct hfd_txn *tx, const struct hfd_call *call,
                                            struct hfd_validated *out, struct hfd_err *err);

#endif
