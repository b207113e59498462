/* The page `/r/{GUResID}`: one resource in full. Pure. Thread: any. */
#ifndef HFD_WEB_RESOURCE_H
#define HFD_WEB_RESOURCE_H

#include "handlers/web/html.h"
#include "handlers/web/read.h"

/** Renders it. */
void hfd_web_resource(struct hfd_html *h, const struct hfd_web_page *p);
/** Renders the page of a resource that is not there. */
void hfd_web_missing(struct hfd_html *h, const struct hfd_web_page *p);

#endif
