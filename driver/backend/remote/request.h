/*
 * Makes the requests of a pass: method, path, query and body, in the words of every HyperFleet
 * generation. Thread: any.
 */
#ifndef HFD_REMOTE_REQUEST_H
#define HFD_REMOTE_REQUEST_H

#include "driver/backend/remote/pass.h"
#include "store/rows_orphan.h"

/** One request in the making. */
struct hfd_request_maker {
    struct hfd_pass *pass;
    struct hfd_pass_memory *m; /* pass->now */
    struct hfd_pass_rows rows;
    struct hfd_remote_request *out;
    struct hfd_err *err;
    hfd_rc rc; /* the first failure: HFD_NOMEM, HFD_LIMIT */
};

/** A list of what carries the GUResID's label, for the own part. */
void hfd_request_find(struct hfd_request_maker *k, const struct hfd_pass_part *p);
/** A list of what has the part's name. */
void hfd_request_find_name(struct hfd_request_maker *k, const struct hfd_pass_part *p);
/** The cluster that a nodepool part names. */
void hfd_request_owner(struct hfd_request_maker *k, const struct hfd_pass_part *p);
void hfd_request_get(struct hfd_request_maker *k, const struct hfd_pass_part *p);
void hfd_request_pools(struct hfd_request_maker *k, const struct hfd_pass_part *cluster);
void hfd_request_reports(struct hfd_request_maker *k, const struct hfd_pass_part *p);
void hfd_request_post(struct hfd_request_maker *k, const struct hfd_pass_part *p);
/** Sends what differs from `seen`. */
void hfd_request_patch(struct hfd_request_maker *k, const struct hfd_pass_part *p,
                       const struct hfd_seen_part *seen);
void hfd_request_delete(struct hfd_request_maker *k, const struct hfd_pass_part *p);
/** A list of one cluster, which every HyperFleet can answer. */
void hfd_request_check_route(struct hfd_request_maker *k);
/**
 * All clusters or nodepools of this server that are not ready.
 * @param later_names  the remote reports Reconciled for Ready
 */
void hfd_request_many(struct hfd_request_maker *k, enum hfd_kind kind, bool later_names);
/** All clusters or nodepools of this server. */
void hfd_request_search(struct hfd_request_maker *k, enum hfd_kind kind);
/** GET or DELETE of an orphan. */
void hfd_request_orphan(struct hfd_request_maker *k, enum hfd_remote_method method,
                        const struct hfd_orphan_row *orphan);

#endif
