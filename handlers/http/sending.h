/*
 * Sends the body of an answer through h2o. Over TLS the library copies and encrypts all that it is
 * given, so it gets one step after the other. Over a Unix socket the steps show the progress of the
 * client, which the kernel does not tell. Thread: loop.
 */
#ifndef HFD_HTTP_SENDING_H
#define HFD_HTTP_SENDING_H

#include "handlers/http/loop.h"

/* More than a record of TLS, and little beside the bodies that are large. */
#define HFD_SENDING_STEP_BYTES ((size_t)65536)

struct hfd_sending {
    h2o_generator_t generator; /* first member: h2o gives it back */
    hfd_slice rest;
    size_t step_bytes;  /* SIZE_MAX = all at once */
    int64_t copy_bytes; /* taken from the memory of the server, until the caller gives it back */
};

/**
 * Starts the response that is set up in req, and sends the body.
 * @param s     zeroed; valid until h2o disposes of the request
 * @param body  valid as long; empty = none
 */
void hfd_sending_start(struct hfd_sending *s, h2o_req_t *req, hfd_slice body);

#endif
