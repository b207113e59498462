/*
 * Fetches a document over HTTP. It follows no redirect and uses no proxy of the environment, so it
 * speaks only to the URL of the settings. Thread: any that may wait for the network.
 */
#ifndef HFD_AUTH_FETCH_H
#define HFD_AUTH_FETCH_H

#include "driver/base/buf.h"

/**
 * Gets a URL, within ten seconds.
 * @param ca_file  PEM file with the authorities for its certificate, instead of those of the
 * system; NULL = none. It is read each time.
 * @param body     its ceiling bounds the document
 * @return HFD_OK, HFD_IO (the message says why), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_fetch(const char *url, const char *ca_file, struct hfd_buf *body,
                                struct hfd_err *err);

#endif
