/*
 * The settings by which a resource is judged, as one number: what is ready and was judged by the
 * same ones need not be judged again for a report that says nothing new (hfd_fleet.mark). Thread:
 * any.
 */
#ifndef HFD_CORE_MARK_H
#define HFD_CORE_MARK_H

#include "driver/core/resource.h"

/**
 * Digests all of a driver that its observer reads: whoever lets the observer depend on another
 * setting adds it here. The version is among it, as another one may judge otherwise. Never 0.
 */
int64_t hfd_driver_mark(const struct hfd_driver *d);

#endif
