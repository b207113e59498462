/* The handler of the list of tokens, on the ops listener. Thread: loop. */
#ifndef HFD_HTTP_TOKENS_API_H
#define HFD_HTTP_TOKENS_API_H

#include "handlers/http/http.h"

/** Handler: names, scopes and last uses of the tokens; never a hash. */
void hfd_tokens_api_list(struct hfd_exchange *x);

#endif
