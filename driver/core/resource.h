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
 * @return HFD_OK, HFD_INVALID (a name is taken, no such cluster), HFD_IMMUTABLE, HFD_COOKIE
 */
HFD_MUST_CHECK hfd_rc hfd_resource_put(struct hfd_txn *tx, const struct hfd_call *call,
                                       struct hfd_answer_doc *out, struct hfd_err *err);

/**
 * Answers a PUT that another operation is in the way of: 409 with its hint. The message says since
 * when, and in which field the order differs. Writes nothing.
 */
HFD_MUST_CHECK hfd_rc hfd_resource_answer_busy(const struct hfd_ctx *c, const struct hfd_call *call,
                                               const struct hfd_resource_row *row,
                                               struct hfd_answer_doc *out);

/**
 * Says how a PUT deals with an existing resource.
 * @param same  the input is the one of the present state
 */
enum hfd_put_action hfd_resource_put_action(const struct hfd_resource_row *row, bool same);
/** The operation that a PUT begins. @param anew  another part replaces the resource's own */
enum hfd_op hfd_resource_op_of_put(const struct hfd_resource_row *row, bool anew);
/** The type of a resource stays. @return HFD_OK, HFD_IMMUTABLE */
HFD_MUST_CHECK hfd_rc hfd_resource_check_type(const struct hfd_resource_row *row,
                                              const struct hfd_input *in, struct hfd_err *err);

/** Answers a DELETE if nothing can change; else out->decided is false. */
HFD_MUST_CHECK hfd_rc hfd_resource_delete_peek(struct hfd_txn *tx, const struct hfd_call *call,
                                               struct hfd_answer_doc *out, struct hfd_err *err);
/** Carries out a DELETE. @return HFD_OK, HFD_INVALID (a path for another kind), HFD_COOKIE */
HFD_MUST_CHECK hfd_rc hfd_resource_delete(struct hfd_txn *tx, const struct hfd_call *call,
                                          struct hfd_answer_doc *out, struct hfd_err *err);

/** Names the rows that hfd_resource_put will read. Its outcome means nothing. */
HFD_MUST_CHECK hfd_rc hfd_resource_put_prefetch(struct hfd_txn *tx, const struct hfd_call *call,
                                                struct hfd_err *err);
/** Names the rows that hfd_resource_delete will read. */
HFD_MUST_CHECK hfd_rc hfd_resource_delete_prefetch(struct hfd_txn *tx, const struct hfd_call *call,
                                                   struct hfd_err *err);

#endif
