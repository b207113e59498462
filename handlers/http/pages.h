/*
 * The pages that the program carries. The build makes their source with pages_c.py, from
 * schemas/openapi.yaml, handlers/docs and search.js. Thread: any.
 */
#ifndef HFD_HTTP_PAGES_H
#define HFD_HTTP_PAGES_H

#include "driver/base/slice.h"

/** A page, or a file of the pages. */
struct hfd_doc {
    const char *name;   /* file name; empty for the start */
    const char *type;   /* Content-Type */
    const char *policy; /* Content-Security-Policy: its own style; in the manual, its search too */
    hfd_slice body;
};

/** The manual. */
extern const struct hfd_doc hfd_manual[];
extern const size_t hfd_manual_count;
/** The OpenAPI document: the start, a page of each tag, and one of the schemas. */
extern const struct hfd_doc hfd_openapi_docs[];
extern const size_t hfd_openapi_docs_count;

/** The page at "/" of the main listener. The mark stands for the address of the ops listener. */
#define HFD_START_MARK "@OPS@"
extern const hfd_slice hfd_start_page;

#endif
