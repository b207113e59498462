/* Sets up a transfer: URL, headers, TLS, limits. Thread: remote. */
#ifndef HFD_REMOTE_HTTP_SETUP_H
#define HFD_REMOTE_HTTP_SETUP_H

#include "driver/backend/remote/http_int.h"

/** Everything but the callbacks. @return false: memory is short */
bool hfd_remote_http_set_up(struct hfd_remote_transfer *t);

#endif
