/*
 * The HyperFleet that the adapter works for, behind a seam: the embedded one through the store
 * (fleet.h), or another one over its API (fleet_api.h). Thread: the adapter's, unless said.
 *
 * The embedded HyperFleet, through the store. Thread: the adapter's.
 */
#ifndef HFD_HYPERSHIFT_FLEET_H
#define HFD_HYPERSHIFT_FLEET_H

#include "driver/adapters/hypershift/report.h"
#include "driver/adapters/news.h"
#include "driver/replica/keeper.h"

struct hfd_driver;
struct hfd_hs_fleet_ops;

/**
 * `store`, `driver` and `keeper` are set before the start, and borrowed; the rest belongs to the
 * module.
 */
struct hfd_hs_fleet_store {
    struct hfd_store *store;
    const struct hfd_driver *driver;
    struct hfd_keeper *keeper; /* it works while this leads; NULL = always */
    struct hfd_news news;
    struct hfd_hold hold; /* when a resource was loaded last */
    struct hfd_hold seen; /* at the last look */
};

/** The seam, with `impl` a struct hfd_hs_fleet_store. */
extern const struct hfd_hs_fleet_ops hfd_hs_fleet_store_ops;

/** All fail with HFD_IO, HFD_NOMEM or HFD_BUSY, and with what is said. */
struct hfd_hs_fleet_ops {
    bool embedded; /* it is this program's own, and in the same store */
    /* Called first and last on the adapter's thread. */
    hfd_rc (*open)(void *fleet, struct hfd_err *err);
    void (*close)(void *fleet);
    hfd_rc (*look)(void *fleet, const struct hfd_news_look *look, struct hfd_err *err);
    /* Reads all that there is on a resource into the work. HFD_NOT_FOUND: it is gone; HFD_CONFLICT:
       another replica of this program works for it. */
    hfd_rc (*load)(void *fleet, struct hfd_hs_work *work, hfd_slice id, struct hfd_err *err);
    /* True while generation and deletion are as they were loaded. */
    bool (*is_current)(void *fleet, struct hfd_hs_work *work);
    /* Hands over what is new. A resource that is gone meanwhile is no failure. */
    hfd_rc (*send)(void *fleet, struct hfd_hs_work *work, const struct hfd_hs_reports *reports,
                   struct hfd_err *err);
    /* Gives a row another spec and generation. NULL = this HyperFleet has none that need it. */
    hfd_rc (*set_spec)(void *fleet, struct hfd_hs_work *work, hfd_slice spec, struct hfd_err *err);
    /* True if there are resources to work for that another replica had. NULL = there are none. */
    bool (*has_gained)(void *fleet);
    void (*stop)(void *fleet); /* ends a wait, for ever; thread: any; NULL = it never waits */
};

struct hfd_hs_fleet {
    const struct hfd_hs_fleet_ops *ops;
    void *impl;
};

/** Sets work->validated: a report of the validation adapter has passed this generation. */
HFD_MUST_CHECK hfd_rc hfd_hs_read_validated(struct hfd_hs_work *work, struct hfd_err *err);

#endif
