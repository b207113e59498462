/*
 * The one HTTP client of this program, on libcurl: calls to servers, many at a time from one
 * thread, over kept connections. Each call has deadlines and a bounded answer. The client refuses
 * redirects, cookies and compression. It speaks http and https with HTTP/1.1 only. It refuses TLS
 * below 1.2, and certificates that do not verify, unless its server says otherwise.
 * Thread: the one that opened it, unless said.
 */
#ifndef HFD_BASE_HTTP_CLIENT_H
#define HFD_BASE_HTTP_CLIENT_H

#include "driver/base/buf.h"
#include "driver/base/clock.h"
#include "driver/base/peer.h"
#include "driver/base/secret.h"

/** The way to a server, and what an exchange with it may take. Zero or NULL is none. */
struct hfd_http_server {
    int64_t connect_timeout_us, timeout_us; /* of the connection, and of the whole exchange */
    int64_t silence_s;                      /* an exchange ends if nothing arrives for so long */
    size_t head_max_bytes;                  /* zero = 256 KiB */
    size_t answer_max_bytes;
    /* PEM texts. With an authority, those of the system do not count. */
    const struct hfd_secret *ca, *cert, *key, *token;
    const char *ca_file;     /* authorities as a file */
    const char *socket_path; /* a Unix socket in place of the host */
    const char *pin;         /* of the server's key, in place of its certificate */
    bool any_certificate;
    bool system_ca;            /* beside those of ca_file */
    bool proxy_of_environment; /* for commands of a user; else no proxy is used */
    bool closes;               /* the connection is not kept */
    bool wants_expiry;         /* answers say when the server's certificate expires */
};

/** The answer to a call, or why there is none. Zeroed is empty. */
struct hfd_http_answer {
    /* HFD_OK: a whole answer. Else HFD_TIMEOUT (none came), HFD_TOO_LARGE, HFD_NOMEM. */
    hfd_rc rc;
    int status;          /* zero = none was read */
    struct hfd_buf head; /* the lines of the header */
    struct hfd_buf body; /* without what a call takes as it comes; our token is blotted out */
    char type[HFD_PEER_TYPE_MAX]; /* of hfd_peer_type */
    int64_t retry_after_us;       /* from Retry-After; 0 = none */
    int64_t expiry_us;            /* of the server's certificate; 0 = none, or unknown */
    /* Why there is none; static: */
    const char *why;     /* in the words of libcurl */
    const char *meaning; /* "could not connect"; NULL = no word for it */
    const char *refused; /* why the rest was not read; NULL = it was not refused */
    bool left;           /* the peer closed the connection right after the TLS handshake */
    char detail[256];    /* `why` with what libcurl adds to it */
};

/** Frees what it has, and wipes it. */
void hfd_http_answer_fini(struct hfd_http_answer *answer);
/** The value of a header; p is NULL without it. Borrowed from the answer. */
hfd_slice hfd_http_header(const struct hfd_http_answer *answer, const char *name);
/** The time that the header Date names, in seconds; -1 without one. */
int64_t hfd_http_date_s(const struct hfd_http_answer *answer);

struct hfd_http_header {
    const char *name;
    hfd_slice value; /* empty = the header is not sent */
};

#define HFD_HTTP_HEADERS_MAX 5

/** A request, in memory of the caller that does not move until its end. All texts are borrowed. */
struct hfd_http_call {
    const struct hfd_http_server *server;
    const char *method;
    hfd_slice url[3]; /* pieces that follow each other */
    struct hfd_http_header headers[HFD_HTTP_HEADERS_MAX];
    hfd_slice body; /* POST and PUT have one, if empty */
    bool is_unsafe; /* it must not be sent again when a kept connection breaks */
    /*
     * Takes a 200 as it comes: an empty piece behind the head, then its body; false ends the
     * call. NULL = the answer keeps its body.
     */
    bool (*take)(void *ctx, hfd_slice piece);
    void (*done)(void *ctx); /* there is an answer; NULL = nothing to call */
    void *ctx;
    struct hfd_http_answer *answer; /* gives, from start on */
    /* The module's own: */
    struct hfd_http_client *client;
    void *easy; /* NULL = not under way */
    struct curl_slist *lines;
    size_t head_bytes;
};

struct hfd_http_client;

/**
 * @param clock            for dates in Retry-After
 * @param connections_max  at most so many at a time; zero = as many as calls
 * @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_http_client_open(const struct hfd_clock *clock, int64_t connections_max,
                                           struct hfd_http_client **out, struct hfd_err *err);
/** All calls must have ended. Accepts a pointer to NULL. */
void hfd_http_client_close(struct hfd_http_client **client);

/** Sends a request, with the trace of this thread. @return false: memory is short, and `done` is
 * not called */
HFD_MUST_CHECK bool hfd_http_call_start(struct hfd_http_client *client, struct hfd_http_call *call);
/** Ends a call that is under way, without calling `done`. Accepts any other. */
void hfd_http_call_end(struct hfd_http_call *call);
/** True from the start until the answer is there. */
bool hfd_http_call_is_open(const struct hfd_http_call *call);

/**
 * Carries on with all calls. Waits for up to wait_us unless one ends at once.
 * @return false: libcurl cannot go on
 */
bool hfd_http_client_run(struct hfd_http_client *client, int64_t wait_us);
/** Ends the present wait, or the next one. Thread: any. */
void hfd_http_client_wake(struct hfd_http_client *client);

#endif
