/* The handlers of documents: the OpenAPI document and the manual. Thread: loop. */
#ifndef HFD_HTTP_DOCS_API_H
#define HFD_HTTP_DOCS_API_H

#include "handlers/http/http.h"

/** Handlers. */
void hfd_docs_openapi_json(struct hfd_exchange *x);
void hfd_docs_openapi_page(struct hfd_exchange *x);
void hfd_docs_manual(struct hfd_exchange *x);

#endif
