/*
 * The sources of objects for EMCO's status query. A source is the report of an adapter on a cluster
 * or nodepool, or what was kept of it when an instance ended. Thread: any, inside a transaction
 * function.
 *
 * The end of an instance. The objects that its reports list are kept with the history, for EMCO's
 * status query. An instance ends when another one begins, or when its
 * cluster or nodepool is removed. Thread: writer, inside a transaction function.
 */
#ifndef HFD_CORE_SOURCES_H
#define HFD_CORE_SOURCES_H

#include "driver/core/driver.h"
#include "driver/status/status.h"
#include "store/rows_history.h"

/** Where a cluster is, as EMCO names it. */
struct hfd_place {
    hfd_slice provider; /* spec.platform.type in lower case, or "hyperfleet" */
    hfd_slice cluster;  /* its name; its id while it does not exist */
    hfd_slice project;  /* its label `project`, or empty */
    bool exists, deleting;
    bool labelled; /* it has the label of a GUResID */
    int64_t generation;
};

/** Reads the place of a cluster, which need not exist. */
HFD_MUST_CHECK hfd_rc hfd_place_read(const struct hfd_ctx *c, hfd_slice cluster_id,
                                     struct hfd_place *out);
/** Makes a provider of a spec.platform.type. */
HFD_MUST_CHECK hfd_rc hfd_place_provider(const struct hfd_ctx *c, hfd_slice text, hfd_slice *out);

/** The report of an adapter on a cluster or nodepool; also one that is missing. */
struct hfd_source {
    hfd_slice app;
    hfd_slice fleet_id;
    enum hfd_kind kind;
    hfd_slice name;              /* of the cluster or nodepool */
    hfd_slice provider, cluster; /* where its objects are unless they say so */
    bool counted;                /* its objects decide the status of the instance */
    bool ended;                  /* of an instance that has ended: objects are in `kept` */
    bool has_document;           /* the report has a PacemakerCluster document */
    bool done;                   /* the adapter is; while nothing is being deleted */
    struct hfd_status_verdict verdict;
    struct hfd_object_counts counts; /* none: a pseudo-object stands for it */
    hfd_slice kept;
    hfd_slice conditions; /* of the report, as stored; empty = there is none */
    hfd_slice waiting;    /* why it is not done; empty = it is */
};

struct hfd_sources {
    struct hfd_source *items;
    size_t count, room;
};

/** A cluster or nodepool and the operation on it. */
struct hfd_source_part {
    const struct hfd_fleet_row *row;
    const struct hfd_place *place;
    int64_t generation;                /* that the operation has made */
    int64_t started_us;                /* of the operation */
    bool pending;                      /* HyperFleet has not taken what was last asked for */
    struct hfd_adapter_names required; /* set by hfd_sources_add_part: that decide */
};

/** Adds the adapters of a part: those that have reported, and required ones that have not. */
HFD_MUST_CHECK hfd_rc hfd_sources_add_part(const struct hfd_ctx *c,
                                           const struct hfd_source_part *part,
                                           struct hfd_sources *out);
/** Adds what was kept of an instance. */
HFD_MUST_CHECK hfd_rc hfd_sources_add_ended(const struct hfd_ctx *c,
                                            const struct hfd_ended_query *query,
                                            struct hfd_sources *out);

/** One object, while it is read. */
struct hfd_source_entry {
    const struct hfd_source *source;
    const struct hfd_object *object;
    const json_t *json; /* its entry in the report; NULL = it was kept without */
    const json_t *data; /* of the report, likewise */
};

/** @return HFD_OK, or what ends the reading */
typedef hfd_rc hfd_source_fn(void *arg, const struct hfd_source_entry *entry);

/**
 * Calls fn for each object that a source lists. The entry is valid during the call.
 * @return HFD_OK, HFD_LIMIT (the objects were too many to be kept), or what fn returned
 */
HFD_MUST_CHECK hfd_rc hfd_source_each(const struct hfd_ctx *c, const struct hfd_source *source,
                                      hfd_source_fn *fn, void *arg);

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
