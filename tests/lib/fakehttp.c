#include "tests/lib/fakehttp.h"

#include "driver/base/check.h"
#include "driver/base/slice.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#define REQUEST_MAX 65536

struct fakehttp_conn {
    struct fakehttp *server;
    struct fakehttp_conn *next;
    pthread_t thread;
    int fd;
    int number;
    SSL *ssl;
    size_t len;
    char buf[REQUEST_MAX + 1];
};

struct fakehttp {
    fakehttp_fn *fn;
    void *ctx;
    SSL_CTX *tls;
    int fd, port;
    pthread_t acceptor;
    pthread_mutex_t lock; /* of what follows */
    struct fakehttp_conn *conns;
    int count;
    bool stopping;
};

/* ---- bytes ---- */

static ssize_t read_some(struct fakehttp_conn *c, char *out, size_t cap)
{
    ssize_t n;

    if (c->ssl != NULL)
        return SSL_read(c->ssl, out, (int)cap);
    do
        n = recv(c->fd, out, cap, 0);
    while (n < 0 && errno == EINTR);
    return n;
}

void fakehttp_write(struct fakehttp_conn *c, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = c->ssl != NULL ? SSL_write(c->ssl, bytes, (int)len)
                                   : send(c->fd, bytes, len, MSG_NOSIGNAL);

        if (n <= 0)
            return; /* the client has gone: the next read tells */
        bytes += n;
        len -= (size_t)n;
    }
}

void fakehttp_answer(struct fakehttp_conn *c, int status, const char *headers, const char *body)
{
    char head[1024];
    int n = snprintf(head, sizeof(head), "HTTP/1.1 %d Scripted\r\nContent-Length: %zu\r\n%s\r\n",
                     status, strlen(body), headers);

    HFD_ASSERT(n > 0 && (size_t)n < sizeof(head));
    fakehttp_write(c, head, (size_t)n);
    fakehttp_write(c, body, strlen(body));
}

void fakehttp_hold(struct fakehttp_conn *c)
{
    char byte;

    while (read_some(c, &byte, 1) > 0)
        continue;
}

const char *fakehttp_header(const struct fakehttp_request *request, const char *name, char *out,
                            size_t cap)
{
    const size_t len = strlen(name);

    out[0] = '\0';
    for (const char *line = strstr(request->head, "\r\n"); line != NULL;
         line = strstr(line, "\r\n")) {
        line += 2;
        if (strncasecmp(line, name, len) == 0 && line[len] == ':') {
            const char *value = line + len + 1 + strspn(line + len + 1, " ");

            (void)snprintf(out, cap, "%.*s", (int)strcspn(value, "\r"), value);
        }
    }
    return out;
}

/* ---- connections ---- */

/* Reads one whole request to the start of buf. @return its length, 0 when there is none */
static size_t read_request(struct fakehttp_conn *c, struct fakehttp_request *out, char *head)
{
    for (;;) {
        char *end, number[32];
        size_t head_len;
        int64_t body_len;

        c->buf[c->len] = '\0';
        end = strstr(c->buf, "\r\n\r\n");
        if (end != NULL) {
            head_len = (size_t)(end - c->buf) + 4;
            memcpy(head, c->buf, head_len);
            head[head_len] = '\0';
            out->head = head;
            body_len = 0;
            if (fakehttp_header(out, "content-length", number, sizeof(number))[0] != '\0')
                HFD_ASSERT(hfd_parse_i64(hfd_slice_of(number), 0, REQUEST_MAX, &body_len, NULL) ==
                           HFD_OK);
            if (c->len >= head_len + (size_t)body_len) {
                const size_t method_len = strcspn(head, " "),
                             target_len = strcspn(head + method_len + 1, " ");

                HFD_ASSERT(method_len < sizeof(out->method) && target_len < sizeof(out->target));
                memcpy(out->method, head, method_len);
                memcpy(out->target, head + method_len + 1, target_len);
                out->body = c->buf + head_len;
                return head_len + (size_t)body_len;
            }
        }
        HFD_ASSERT(c->len < REQUEST_MAX);
        {
            ssize_t n = read_some(c, c->buf + c->len, REQUEST_MAX - c->len);

            if (n <= 0)
                return 0;
            c->len += (size_t)n;
        }
    }
}

static void *conn_main(void *arg)
{
    struct fakehttp_conn *c = arg;
    char *head = malloc(REQUEST_MAX + 1);
    bool again = c->ssl == NULL || SSL_accept(c->ssl) == 1;

    HFD_ASSERT(head != NULL);
    while (again) {
        struct fakehttp_request request = {.connection = c->number};
        size_t used = read_request(c, &request, head);
        char next;

        if (used == 0)
            break;
        next = c->buf[used]; /* this program's client never sends two at once */
        HFD_ASSERT(next == '\0' && c->len == used);
        again = c->server->fn(c->server->ctx, c, &request);
        c->len = 0;
    }
    if (c->ssl != NULL)
        (void)SSL_shutdown(c->ssl);
    (void)shutdown(c->fd, SHUT_RDWR); /* the acceptor's side closes it */
    ERR_clear_error();
    free(head);
    return NULL;
}

static void *accept_main(void *arg)
{
    struct fakehttp *s = arg;

    for (;;) {
        int fd = accept(s->fd, NULL, NULL), at_once = 1;
        struct fakehttp_conn *c;

        if (fd < 0 && errno == EINTR)
            continue;
        if (fd < 0)
            return NULL;
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof(at_once));
        c = calloc(1, sizeof(*c));
        HFD_ASSERT(c != NULL);
        c->server = s;
        c->fd = fd;
        if (s->tls != NULL) {
            c->ssl = SSL_new(s->tls);
            HFD_ASSERT(c->ssl != NULL && SSL_set_fd(c->ssl, fd) == 1);
        }
        (void)pthread_mutex_lock(&s->lock);
        c->number = ++s->count;
        c->next = s->conns;
        s->conns = c;
        if (s->stopping)
            (void)shutdown(fd, SHUT_RDWR);
        HFD_ASSERT(pthread_create(&c->thread, NULL, conn_main, c) == 0);
        (void)pthread_mutex_unlock(&s->lock);
    }
}

/* ---- the server ---- */

struct fakehttp *fakehttp_start(const struct fakehttp_tls *tls, fakehttp_fn *fn, void *ctx)
{
    struct fakehttp *s = calloc(1, sizeof(*s));
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);

    HFD_ASSERT(s != NULL);
    s->fn = fn;
    s->ctx = ctx;
    (void)pthread_mutex_init(&s->lock, NULL);
    if (tls != NULL) {
        s->tls = SSL_CTX_new(TLS_server_method());
        HFD_ASSERT(s->tls != NULL &&
                   SSL_CTX_use_certificate_chain_file(s->tls, tls->cert_file) == 1 &&
                   SSL_CTX_use_PrivateKey_file(s->tls, tls->key_file, SSL_FILETYPE_PEM) == 1);
        if (tls->client_ca_file != NULL) {
            HFD_ASSERT(SSL_CTX_load_verify_locations(s->tls, tls->client_ca_file, NULL) == 1);
            SSL_CTX_set_verify(s->tls, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
        }
    }
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    HFD_ASSERT(s->fd >= 0 && bind(s->fd, (struct sockaddr *)&at, sizeof(at)) == 0 &&
               listen(s->fd, 64) == 0 && getsockname(s->fd, (struct sockaddr *)&at, &len) == 0);
    s->port = ntohs(at.sin_port);
    HFD_ASSERT(pthread_create(&s->acceptor, NULL, accept_main, s) == 0);
    return s;
}

void fakehttp_stop(struct fakehttp *s)
{
    (void)pthread_mutex_lock(&s->lock);
    s->stopping = true;
    for (struct fakehttp_conn *c = s->conns; c != NULL; c = c->next)
        (void)shutdown(c->fd, SHUT_RDWR);
    (void)pthread_mutex_unlock(&s->lock);
    (void)shutdown(s->fd, SHUT_RDWR); /* wakes accept */
    (void)pthread_join(s->acceptor, NULL);
    (void)close(s->fd);
    while (s->conns != NULL) {
        struct fakehttp_conn *c = s->conns;

        s->conns = c->next;
        (void)pthread_join(c->thread, NULL);
        SSL_free(c->ssl);
        (void)close(c->fd);
        free(c);
    }
    SSL_CTX_free(s->tls);
    (void)pthread_mutex_destroy(&s->lock);
    free(s);
}

int fakehttp_port(const struct fakehttp *s)
{
    return s->port;
}

int fakehttp_connections(struct fakehttp *s)
{
    int n;

    (void)pthread_mutex_lock(&s->lock);
    n = s->count;
    (void)pthread_mutex_unlock(&s->lock);
    return n;
}

/* ---- certificates ---- */

static void write_pem(const char *path, X509 *cert, EVP_PKEY *key)
{
    FILE *f = fopen(path, "w");

    HFD_ASSERT(f != NULL);
    HFD_ASSERT(cert != NULL ? PEM_write_X509(f, cert) == 1
                            : PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL) == 1);
    HFD_ASSERT(fclose(f) == 0);
}

static void add_extension(X509 *cert, int nid, const char *value)
{
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, NULL, nid, value);

    HFD_ASSERT(e != NULL && X509_add_ext(cert, e, -1) == 1);
    X509_EXTENSION_free(e);
}

void fakehttp_make_cert(const char *cert_file, const char *key_file, const char *san)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = X509_new();
    X509_NAME *name;

    HFD_ASSERT(key != NULL && cert != NULL);
    name = X509_get_subject_name(cert);
    HFD_ASSERT(X509_set_version(cert, 2) == 1 &&
               ASN1_INTEGER_set(X509_get_serialNumber(cert), 1) == 1);
    HFD_ASSERT(X509_gmtime_adj(X509_getm_notBefore(cert), -86400) != NULL &&
               X509_gmtime_adj(X509_getm_notAfter(cert), 86400) != NULL);
    HFD_ASSERT(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)san, -1,
                                          -1, 0) == 1);
    HFD_ASSERT(X509_set_issuer_name(cert, name) == 1 && X509_set_pubkey(cert, key) == 1);
    add_extension(cert, NID_subject_alt_name, san);
    add_extension(cert, NID_basic_constraints, "critical,CA:TRUE");
    HFD_ASSERT(X509_sign(cert, key, EVP_sha256()) > 0);
    write_pem(cert_file, cert, NULL);
    write_pem(key_file, NULL, key);
    X509_free(cert);
    EVP_PKEY_free(key);
}
