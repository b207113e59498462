/*
 * An HTTP/1.1 server in the test's own process, on 127.0.0.1, plain or with TLS. The test chooses
 * what it does with each request: it answers whole, in pieces or in part, hangs, or goes away. A
 * thread for each connection.
 */
#ifndef HFD_TESTS_FAKEHTTP_H
#define HFD_TESTS_FAKEHTTP_H

#include <stdbool.h>
#include <stddef.h>

struct fakehttp;
struct fakehttp_conn;

struct fakehttp_request {
    char method[16];
    char target[4096];
    const char *head; /* the whole of it, NUL-terminated */
    const char *body; /* NUL-terminated */
    int connection;   /* which one it came on, from 1 */
};

/**
 * Answers one request with the functions below. Thread: the connection's. @return whether the
 * connection may be used again
 */
typedef bool fakehttp_fn(void *ctx, struct fakehttp_conn *conn,
                         const struct fakehttp_request *request);

struct fakehttp_tls {
    const char *cert_file, *key_file;
    const char *client_ca_file; /* NULL = no client certificate is asked for */
};

/** @param tls  NULL = plain */
struct fakehttp *fakehttp_start(const struct fakehttp_tls *tls, fakehttp_fn *fn, void *ctx);
/** Cuts everything off. */
void fakehttp_stop(struct fakehttp *s);
int fakehttp_port(const struct fakehttp *s);
/** Connections accepted so far. */
int fakehttp_connections(struct fakehttp *s);

void fakehttp_write(struct fakehttp_conn *conn, const char *bytes, size_t len);
/** A whole answer. headers: lines with their "\r\n", or "". */
void fakehttp_answer(struct fakehttp_conn *conn, int status, const char *headers, const char *body);
/** Waits until the client hangs up or the server is stopped. */
void fakehttp_hold(struct fakehttp_conn *conn);
/** The value of a request header, copied into out; "" when it is absent. */
const char *fakehttp_header(const struct fakehttp_request *request, const char *name, char *out,
                            size_t cap);

/**
 * Writes a fresh key and a certificate that it signed itself. san: "IP:127.0.0.1" or "DNS:name".
 */
void fakehttp_make_cert(const char *cert_file, const char *key_file, const char *san);

#endif
