/*
 * Documents below /api/driver/v1: the list of resources, one resource, the event feed. A member
 * without a value is null. Pure. Thread: any.
 */
#ifndef HFD_HTTP_OVERVIEW_JSON_H
#define HFD_HTTP_OVERVIEW_JSON_H

#include "driver/core/detail.h"
#include "driver/core/feed.h"

/** Each adds a document; a failure is kept in b. */
/** @param next  the token of the next page; p is NULL = there is none */
void hfd_overview_format(struct hfd_buf *b, const struct hfd_overview *page, hfd_slice next);
void hfd_detail_format(struct hfd_buf *b, const struct hfd_detail *d);
void hfd_feed_format(struct hfd_buf *b, const struct hfd_feed *feed);

#endif
