/*
 * The HTML pages that the program carries. The build makes their source with pages_c.py, from
 * schemas/openapi.yaml and handlers/docs. Thread: any.
 */
#ifndef HFD_HTTP_PAGES_H
#define HFD_HTTP_PAGES_H

#include "driver/base/slice.h"

/** A page of the manual. */
struct hfd_manual_page {
    const char *name; /* file name with .html; empty for the index */
    hfd_slice html;
};

extern const struct hfd_manual_page hfd_manual[];
extern const size_t hfd_manual_count;
/** The OpenAPI document as a page. */
extern const hfd_slice hfd_openapi_page;
/** The Content-Security-Policy of every page: its own style, and nothing else. */
extern const char hfd_page_policy[];

#endif
