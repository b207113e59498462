/*
 * The strict parser of an HTTP/1 head. It runs before h2o's parser, so that both agree where a
 * request ends. Refuses what RFC 9112 lets a server refuse; README.md in this folder lists it.
 * Pure: no sockets, no allocation. Thread: any.
 */
#ifndef HFD_HTTP_HEAD_H
#define HFD_HTTP_HEAD_H

#include "driver/base/slice.h"
#include "handlers/settings/network.h"
#include "handlers/settings/settings.h"

#define HFD_HEAD_MAX_BYTES 32768
/*
 * A search of 4096 percent-encoded characters, and the rest of the target. A token in its path does
 * not count.
 */
#define HFD_TARGET_MAX_BYTES 16384
#define HFD_HEADERS_MAX 64
#define HFD_METHOD_MAX_BYTES 32

/** MORE: the bytes so far do not decide. */
enum hfd_head_verdict {
    HFD_HEAD_OK,
    HFD_HEAD_MORE,
    HFD_HEAD_BAD,
};

/** Why a request is refused; texts are static, or live until the refusal is written. */
struct hfd_head_fault {
    int status;         /* 400, 401, 403, 408, 413, 414, 417, 421, 431 or 503 */
    const char *reason; /* metric label */
    const char *text;   /* for the client */
};

/** State of the search for the end of a head. Zeroed = at the start. */
struct hfd_head_scan {
    size_t start;      /* of the request line, after an empty line that some clients send */
    size_t at;         /* bytes seen */
    size_t line_start; /* of the current line */
    bool line_checked; /* the request line is well-formed */
};

enum hfd_framing {
    HFD_FRAMING_NONE,
    HFD_FRAMING_LENGTH,
    HFD_FRAMING_CHUNKED,
};

struct hfd_head {
    hfd_slice method;
    hfd_slice target;    /* as received */
    hfd_slice path;      /* path of the target in origin or absolute form */
    hfd_slice query;     /* after the '?'; p is NULL if there is none */
    hfd_slice authority; /* of a target in absolute form; p is NULL if there is none */
    hfd_slice host;      /* of these three p is NULL without such a header */
    hfd_slice origin;
    hfd_slice fetch_site;    /* Sec-Fetch-Site */
    hfd_slice authorization; /* p is NULL without one; empty: two different ones */
    int minor;               /* HTTP/1.<minor> */
    size_t bytes;            /* length of the head with its final empty line */
    enum hfd_framing framing;
    uint64_t content_length;
    bool keep_alive; /* from the version and the Connection headers */
    bool expects_continue;
    bool trails; /* white space stands behind a value that the library compares: hfd_head_tidy */
    size_t expect_at, expect_bytes; /* the Expect line with its line end; offset in the buffer */
};

/**
 * Searches bytes[0, len) for the end of the head, and continues where it stopped. Checks each line
 * end, the sizes, and the request line as soon as it is complete. So garbage is refused at once,
 * not at the time limit.
 */
enum hfd_head_verdict hfd_head_scan(struct hfd_head_scan *scan, const char *bytes, size_t len,
                                    struct hfd_head_fault *fault);

/**
 * Parses a head that hfd_head_scan found complete.
 * @param out  method and path are set as far as they could be parsed, also on HFD_HEAD_BAD; slices
 *          point into bytes
 * @return HFD_HEAD_OK, HFD_HEAD_BAD
 */
enum hfd_head_verdict hfd_head_parse(const struct hfd_head_scan *scan, const char *bytes,
                                     struct hfd_head *out, struct hfd_head_fault *fault);

/**
 * Moves white space from behind the values of Content-Length, Transfer-Encoding and Expect to their
 * front. It means nothing (RFC 9110, 5.5), but the library takes it as a part of the value.
 * @param bytes  the head that hfd_head_parse read; its length stays
 */
void hfd_head_tidy(const struct hfd_head_scan *scan, char *bytes);

/**
 * Splits a target in origin form, or in absolute form, whose authority hfd_target_authority gives
 * (RFC 9112, 3.2.2).
 * @param path   "/" if the target has none
 * @param query  after the '?'; p is NULL if there is none
 * @return NULL, or the error as static text
 */
const char *hfd_target_split(hfd_slice target, hfd_slice *path, hfd_slice *query);

/**
 * Finds method and path in a head that is incomplete or wrong; empty if unknown. For refusals and
 * the log.
 */
void hfd_head_peek(const struct hfd_head_scan *scan, const char *bytes, size_t len,
                   hfd_slice *method, hfd_slice *path);

/** State of a chunked body. Zeroed = at the start. */
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
    uint64_t left;       /* left of the chunk */
    uint64_t body_bytes; /* decoded so far */
    size_t extra_bytes;  /* bytes of sizes, extensions, line ends and trailers */
    size_t line_bytes;   /* length of the trailer line */
};

/**
 * Follows the next bytes of a chunked body.
 * @param body_max  limit of decoded bytes; more are refused with 413
 * @param used      bytes of the body in the buffer; all unless HFD_HEAD_OK
 * @return HFD_HEAD_OK (the body is complete), HFD_HEAD_MORE, HFD_HEAD_BAD
 */
enum hfd_head_verdict hfd_chunks_walk(struct hfd_chunks *c, hfd_slice bytes, uint64_t body_max,
                                      size_t *used, struct hfd_head_fault *fault);

/*
 * Tells web pages from callers, and finds the address of a client. Without authentication, every
 * page that a browser on this machine opens could send requests to a listener. A page reaches it
 * under a foreign host name (DNS rebinding), or says in Origin or Sec-Fetch-Site that it comes from
 * elsewhere. With authentication a browser sends its password along with the requests of such a
 * page.
 *
 * A client has the address of the connection, or, behind a proxy of http.trusted_proxies, the one
 * that the proxy gives in X-Forwarded-For.
 */

struct hfd_origin_rule {
    const struct hfd_list *hosts; /* http.hosts: own names beside those of loopback */
    bool authenticated;           /* any host will do, and any origin for GET and HEAD */
    bool admin;                   /* but for these: GET starts backups */
    bool local; /* only this machine reaches the listener; else any host will do */
};

/**
 * Checks where a request was sent to, and from.
 * @param fault  421 for a foreign host, 403 for a foreign origin
 * @return HFD_HEAD_OK, HFD_HEAD_BAD
 */
enum hfd_head_verdict hfd_origin_check(const struct hfd_origin_rule *rule,
                                       const struct hfd_head *head, struct hfd_head_fault *fault);

/**
 * Returns the address of the client: the last of X-Forwarded-For that is no trusted proxy, or the
 * first. Text that is no address is an unknown client, which is in no network: it is never replaced
 * by the proxy's own address.
 * @param head  of the request, well-formed
 */
struct hfd_host_address hfd_peer_client(const struct hfd_settings *settings,
                                        const struct hfd_host_address *peer, hfd_slice head);
/** Returns true if a network of the list has the address. */
bool hfd_peer_is_in(const struct hfd_list *networks, const struct hfd_host_address *a);

#endif
