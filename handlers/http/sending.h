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
    struct hfd_gzip *gzip; /* NULL = the body goes out as it is */
    size_t step_bytes;     /* SIZE_MAX = all at once */
    int64_t copy_bytes;    /* taken from the memory of the server, until the caller gives it back */
};

/**
 * Has the body compressed. Without memory for that it goes out as it is.
 * @param body  valid until hfd_sending_end
 * @param len   gets the length of what goes out; SIZE_MAX = it is not known yet
 * @return false: out of memory
 */
bool hfd_sending_compress(struct hfd_sending *s, h2o_req_t *req, hfd_slice body, size_t *len);

/**
 * Starts the response that is set up in req, and sends the body.
 * @param s     zeroed, or with what hfd_sending_compress made; valid until h2o disposes of the
 * request
 * @param body  valid as long; empty = none
 */
void hfd_sending_start(struct hfd_sending *s, h2o_req_t *req, hfd_slice body);
/** Frees its memory. h2o has disposed of the request. */
void hfd_sending_end(struct hfd_sending *s);

#endif
