/*
 * gzip (RFC 1952) for answers: which ones, and their bytes. Answers that may have secrets are never
 * compressed, as their length would tell of them (BREACH). Those are all of the Driver API but
 * /status, and all for administrators. Thread: loop.
 */
#ifndef HFD_HTTP_ENCODING_H
#define HFD_HTTP_ENCODING_H

#include "handlers/http/loop.h"

/** Answers up to this size are not compressed. */
#define HFD_GZIP_FROM_BYTES 1024
/** The part of a body that is compressed at once: less than a millisecond. */
#define HFD_GZIP_STEP_BYTES ((size_t)65536)

struct hfd_exchange;

struct hfd_encoding {
    bool varies;  /* the answer depends on Accept-Encoding */
    bool is_weak; /* its ETag is a weak one: the same tag names the plain bytes */
    bool gzip;
};

/** Chooses the encoding of an answer. */
struct hfd_encoding hfd_encoding_choose(const struct hfd_exchange *x,
                                        const struct hfd_reply *reply);

/** Returns true if a value of Accept-Encoding takes gzip. Pure. Source: RFC 9110, 12.5.3. */
bool hfd_encoding_takes_gzip(hfd_slice value);

struct hfd_gzip;

/**
 * Begins to compress, and makes the first part.
 * @param body   valid as long as the result
 * @param bytes  gets the memory that it takes
 * @return gives; NULL when memory is short
 */
struct hfd_gzip *hfd_gzip_new(hfd_slice body, int64_t *bytes);
/** Accepts NULL. */
void hfd_gzip_free(struct hfd_gzip *g);
/** The current part, never empty; valid until the next one is made. */
hfd_slice hfd_gzip_part(const struct hfd_gzip *g);
/** Returns true when the current part is the last one. */
bool hfd_gzip_is_last(const struct hfd_gzip *g);
/** Makes the next part. */
void hfd_gzip_go_on(struct hfd_gzip *g);

#endif
