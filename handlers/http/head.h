/*
 * The head of an HTTP/1 request, read strictly and before the library sees it, so that no two
 * readers of the same bytes can disagree about where a request ends. Refuses what RFC 9112 lets a
 * server refuse: bare LF, folded lines, white space before a colon, control characters, no Host or
 * two, both lengths, two lengths, odd transfer codings, bad chunk sizes. Pure: no sockets, no
 * allocation. Thread: any. Source: DESIGN 10.13.
 */
#ifndef HFD_HTTP_HEAD_H
#define HFD_HTTP_HEAD_H

#include "driver/base/slice.h"

#define HFD_HEAD_MAX_BYTES 32768
#define HFD_TARGET_MAX_BYTES                                                                       \
    16384 /* a search of 4096 characters, each percent-encoded, and what stands around it */
#define HFD_HEADERS_MAX 64
#define HFD_METHOD_MAX_BYTES 32

/** MORE: not decided by the bytes so far. */
enum hfd_head_verdict {
    HFD_HEAD_OK,
    HFD_HEAD_MORE,
    HFD_HEAD_BAD,
};

/** Why a request is turned away; texts are static. */
struct hfd_head_fault {
    int status;         /* 400, 413, 414, 417 or 431 */
    const char *reason; /* metric label */
    const char *text;   /* for the client */
};

/** Where the search for the end of a head stands. Zeroed = at the start. */
struct hfd_head_scan {
    size_t start;      /* of the request line, behind an empty line that some clients send */
    size_t at;         /* bytes seen */
    size_t line_start; /* of the line being read */
    bool line_checked; /* the request line was found well-formed */
};

enum hfd_framing {
    HFD_FRAMING_NONE,
    HFD_FRAMING_LENGTH,
    HFD_FRAMING_CHUNKED,
};

struct hfd_head {
    hfd_slice method;
    hfd_slice target; /* as received */
    hfd_slice path;   /* of the target in origin or absolute form */
    hfd_slice query;  /* behind the '?'; p is NULL when there is none */
    int minor;        /* HTTP/1.<minor> */
    size_t bytes;     /* of the head with its final empty line, from the start of the buffer */
    enum hfd_framing framing;
    uint64_t content_length;
    bool keep_alive; /* what version and Connection headers ask for */
    bool expects_continue;
    size_t expect_at,
        expect_bytes; /* the Expect line with its line end, from the start of the buffer */
};

/**
 * Looks for the end of the head in bytes[0, len), going on where it stopped. Checks each line end,
 * the sizes, and the request line as soon as it is complete, so that garbage is refused at once and
 * not at the time limit.
 */
enum hfd_head_verdict hfd_head_scan(struct hfd_head_scan *scan, const char *bytes, size_t len,
                                    struct hfd_head_fault *fault);

/**
 * Reads a head that hfd_head_scan found complete.
 * @param out  method and path are set as far as they could be read, also on HFD_HEAD_BAD; slices
 * point into bytes
 * @return HFD_HEAD_OK or HFD_HEAD_BAD
 */
enum hfd_head_verdict hfd_head_parse(const struct hfd_head_scan *scan, const char *bytes,
                                     struct hfd_head *out, struct hfd_head_fault *fault);

/**
 * Path and query of a target in origin form, or in absolute form, whose authority takes the place
 * of Host (RFC 9112 3.2.2) and is not looked at.
 * @param path   "/" where the target has none
 * @param query  behind the '?'; p is NULL when there is none
 * @return NULL, or what is wrong with the target: static words
 */
const char *hfd_target_split(hfd_slice target, hfd_slice *path, hfd_slice *query);

/**
 * What can be told of method and path from a head that is incomplete or wrong; empty where nothing
 * can. For the form of the refusal and the log.
 */
void hfd_head_peek(const struct hfd_head_scan *scan, const char *bytes, size_t len,
                   hfd_slice *method, hfd_slice *path);

/** The body in chunks, followed over the raw bytes. Zeroed = at the start. */
struct hfd_chunks {
    enum {
        HFD_CHUNK_SIZE,
        HFD_CHUNK_EXT,
        HFD_CHUNK_SIZE_LF,
        HFD_CHUNK_DATA,
        HFD_CHUNK_DATA_CR,
        HFD_CHUNK_DATA_LF,
        HFD_CHUNK_TRAILER,
        HFD_CHUNK_TRAILER_LF,
        HFD_CHUNK_DONE
    } state;
    unsigned digits;
    uint64_t left;       /* of the chunk */
    uint64_t body_bytes; /* decoded so far */
    size_t extra_bytes;  /* sizes, extensions, line ends and trailers so far */
    size_t line_bytes;   /* of the trailer line */
};

/**
 * Follows bytes[0, len) of a chunked body.
 * @param body_max  more decoded bytes are refused with 413
 * @param used      bytes that belong to the body; all of them unless the answer is HFD_HEAD_OK
 * @return HFD_HEAD_OK (the body is complete), HFD_HEAD_MORE, HFD_HEAD_BAD
 */
enum hfd_head_verdict hfd_chunks_walk(struct hfd_chunks *c, const char *bytes, size_t len,
                                      uint64_t body_max, size_t *used,
                                      struct hfd_head_fault *fault);

#endif
