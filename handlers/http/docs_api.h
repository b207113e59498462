/* The handlers of documents: the OpenAPI document and the manual. Thread: loop. */
#ifndef HFD_HTTP_DOCS_API_H
#define HFD_HTTP_DOCS_API_H

#include "handlers/http/http.h"

/** Handlers. */
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

#endif
