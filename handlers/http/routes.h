/* The table of routes, and the pages that the program carries. Thread: any, unless said. */
#ifndef HFD_HTTP_ROUTES_H
#define HFD_HTTP_ROUTES_H

#include "driver/base/slice.h"
#include "handlers/http/http.h"

extern const struct hfd_route hfd_routes[];
extern const size_t hfd_route_count;

/** Returns how many rows of hfd_routes a program serves: the probes, all but HyperFleet's, or all.
 */
size_t hfd_route_count_of(const struct hfd_app *app);
/** Returns true for a probe, which gets its answer also when connections must make room. */
bool hfd_route_is_probe(const struct hfd_route *r);

/** The handler of the readiness probe. Thread: loop. */
void hfd_ops_ready(struct hfd_exchange *x);

/** Where the ops listener is, beside its setting. */
struct hfd_docs_place {
    int port;
    bool tls;
};

/**
 * Answers a browser at the main listener's "/", which is no route. The page says what this is and
 * where the pages are. @return false for all other requests, which it leaves alone
 */
bool hfd_docs_start(struct hfd_exchange *x, const struct hfd_docs_place *ops);

/*
 * The pages that the program carries. The build makes their source with pages_c.py, from
 * schemas/openapi.yaml, handlers/docs and search.js. Thread: any.
 */

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
