/*
 * HTTP for the commands of the client: requests to one base URL, several at a time if need be.
 * Answers are bounded. It follows no redirect, and speaks http and https with HTTP/1.1 only.
 * Thread: one.
 */
#ifndef HFD_CLIENT_HTTP_H
#define HFD_CLIENT_HTTP_H

#include <signal.h>

#include "driver/base/buf.h"

#define HFD_CLIENT_ANSWER_MAX_BYTES ((size_t)16 * 1024 * 1024)

struct hfd_client_http;

/** Texts are borrowed until close. */
struct hfd_client_config {
    const char *url;         /* the base: a GUResID comes behind it */
    const char *token_file;  /* NULL = no token */
    const char *ca_file;     /* NULL = the system's certificates */
    int64_t timeout_us;      /* of one request; 0 = as long as something arrives */
    const char *socket_path; /* a Unix socket in place of the host; NULL = none */
    const char *pin;         /* of the server's key, in place of its certificate; NULL = none */
    bool wants_expiry;       /* answers say when the server's certificate expires */
};

struct hfd_client_header {
    const char *name;
    hfd_slice value;
};

#define HFD_CLIENT_HEADERS_MAX 4

/** Takes a piece of the body of a 200. @return false to end the request */
typedef bool hfd_client_take_fn(void *ctx, hfd_slice piece);

/** Texts are borrowed until the answer is there. */
struct hfd_client_request {
    const char *method;
    const char *path; /* behind the base URL, encoded: "3c0a19" */
    struct hfd_client_header headers[HFD_CLIENT_HEADERS_MAX];
    size_t header_count;
    hfd_slice body;           /* JSON; p is NULL for none */
    hfd_client_take_fn *take; /* NULL = the answer keeps its body */
    void *take_ctx;
};

struct hfd_client_answer {
    int status;          /* 0 = none came */
    char why[160];       /* why none came */
    struct hfd_buf head; /* the lines of the header */
    struct hfd_buf body;
    int64_t expiry_us; /* with wants_expiry: the end of the certificate; 0 = none, or unknown */
};

/**
 * Checks the URL and reads the token.
 * @param out  gives
 * @return HFD_OK, HFD_INVALID or HFD_IO (which file or URL, and why), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_client_open(const struct hfd_client_config *config,
                                      struct hfd_client_http **out, struct hfd_err *err);
/** Accepts a pointer to NULL. */
void hfd_client_close(struct hfd_client_http **http);

/** Requests and their answers, side by side. */
struct hfd_client_batch {
    const struct hfd_client_request *requests;
    struct hfd_client_answer *answers; /* gives; free each with hfd_client_answer_fini */
    size_t count;
};

/** Sends all requests at once, and waits for all answers. */
void hfd_client_send(struct hfd_client_http *http, const struct hfd_client_batch *batch);
void hfd_client_answer_fini(struct hfd_client_answer *answer);

/** The value of a header; p is NULL without it. Borrowed from the answer. */
hfd_slice hfd_client_header(const struct hfd_client_answer *answer, const char *name);

/** Waits, or returns soon after *stop is set by a signal. */
void hfd_client_wait(struct hfd_client_http *http, int64_t us, const volatile sig_atomic_t *stop);

#endif
