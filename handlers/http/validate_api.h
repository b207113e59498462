/* The handler that checks the body of a PUT and stores nothing. Thread: loop. */
#ifndef HFD_HTTP_VALIDATE_API_H
#define HFD_HTTP_VALIDATE_API_H

#include "handlers/http/http.h"

/** POST /validate, and POST /{driver}/validate. */
void hfd_validate_api(struct hfd_exchange *x);

#endif
