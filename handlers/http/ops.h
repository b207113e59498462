/*
 * The handlers of probes and metrics, and of documents: the OpenAPI document and the manual.
 * Thread: loop.
 */
#ifndef HFD_HTTP_OPS_H
#define HFD_HTTP_OPS_H

#include "driver/base/slice.h"
#include "handlers/http/http.h"

/** Handlers. */
void hfd_ops_live(struct hfd_exchange *x);
void hfd_ops_health(struct hfd_exchange *x);
void hfd_ops_ready(struct hfd_exchange *x);
void hfd_ops_metrics(struct hfd_exchange *x);

/** Give the exchange to the status page. */
void hfd_ops_home(struct hfd_exchange *x);
void hfd_ops_resource(struct hfd_exchange *x);
void hfd_ops_file(struct hfd_exchange *x);

/** Handlers of documents. */
void hfd_docs_openapi_json(struct hfd_exchange *x);
void hfd_docs_openapi_page(struct hfd_exchange *x);
void hfd_docs_manual(struct hfd_exchange *x);
/** Answers 204: the pages have no icon, which each browser asks for. */
void hfd_docs_no_icon(struct hfd_exchange *x);

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
