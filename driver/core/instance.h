/*
 * The end of an instance. The objects that its reports list are kept with the history, for EMCO's
 * status query. An instance ends when another one begins, or when its
 * cluster or nodepool is removed. Thread: writer, inside a transaction function.
 */
#ifndef HFD_CORE_INSTANCE_H
#define HFD_CORE_INSTANCE_H

#include "driver/core/driver.h"
#include "store/rows_ended.h"
#include "store/rows_part.h"

/** The ended instances of a subject whose objects are kept. */
#define HFD_INSTANCES_KEPT 10

/** The reports of an instance that may end. */
struct hfd_instance {
    struct hfd_ended_row *rows; /* in c->mem */
    size_t count, room;
};

/** Reads the present instance of a resource, before anything changes. Writes nothing. */
HFD_MUST_CHECK hfd_rc hfd_instance_read(const struct hfd_ctx *c, const struct hfd_resource_row *row,
                                        struct hfd_instance *out);
/** Keeps it: another one has begun. */
HFD_MUST_CHECK hfd_rc hfd_instance_keep(const struct hfd_ctx *c,
                                        const struct hfd_instance *instance);

/**
 * hfd_fleet.ending: a cluster or nodepool is removed, or a PATCH changes it.
 * @param call  its fleet is a driver's
 */
HFD_MUST_CHECK hfd_rc hfd_instance_ending(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                                          const struct hfd_fleet_row *row, bool removed,
                                          struct hfd_err *err);

#endif
