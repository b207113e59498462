/*
 * HTTP for the commands of the client: requests to one base URL, several at a time if need be.
 * Answers are bounded. It follows no redirect, and speaks http and https with HTTP/1.1 only.
 * Thread: one.
 */
#ifndef HFD_CLIENT_HTTP_H
#define HFD_CLIENT_HTTP_H

#include <signal.h>

#include "driver/base/http_client.h"

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

/** Texts are borrowed until the answer is there. */
struct hfd_client_request {
    const char *method;
    const char *path;                         /* behind the base URL, encoded: "3c0a19" */
    struct hfd_http_header headers[3];        /* more of them; zeroed = none */
    hfd_slice body;                           /* JSON; p is NULL for none */
    bool (*take)(void *ctx, hfd_slice piece); /* as in struct hfd_http_call */
    void *take_ctx;
    const volatile sig_atomic_t *stop; /* set by a signal: ends all requests; NULL = none does */
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

/**
 * Sends all requests at once, and waits for all answers. A status of 0: none came.
 * @param answers  gives, side by side with the requests; free each with hfd_http_answer_fini
 */
void hfd_client_send(struct hfd_client_http *http, const struct hfd_client_request *requests,
                     struct hfd_http_answer *answers, size_t count);

/** Waits, or returns soon after *stop is set by a signal. */
void hfd_client_wait(struct hfd_client_http *http, int64_t us, const volatile sig_atomic_t *stop);

#endif
