/*
 * The OpenAPI document as a page for people: made once, complete without a script or anything from
 * elsewhere. Every text of the document is escaped. Pure. Thread: any.
 */
#ifndef HFD_HTTP_OPENAPI_PAGE_H
#define HFD_HTTP_OPENAPI_PAGE_H

#include <jansson.h>

#include "driver/base/buf.h"

/** Writes the page; what fails sticks to b. */
void hfd_openapi_page(struct hfd_buf *b, const json_t *doc);

/** What stands in the page's one style element: a Content-Security-Policy names its hash. */
hfd_slice hfd_openapi_page_style(void);

#endif
