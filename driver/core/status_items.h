/*
 * The objects of a status query's answer: filtered, counted, and with their details. Thread: any,
 * inside a transaction function.
 */
#ifndef HFD_CORE_STATUS_ITEMS_H
#define HFD_CORE_STATUS_ITEMS_H

#include "driver/core/sources.h"
#include "driver/status/view.h"

/**
 * Counts the objects that the query is about, and lists them unless it asks for a summary. A
 * summary without a filter reads stored counts alone.
 * @param view  its counts and items are set, unsorted
 * @return HFD_OK, HFD_LIMIT
 */
HFD_MUST_CHECK hfd_rc hfd_status_items(const struct hfd_ctx *c, const struct hfd_status_query *q,
                                       const struct hfd_sources *sources,
                                       struct hfd_status_view *view);

#endif
