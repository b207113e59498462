/*
 * Request bytes, as the door hands them to the library. The whole HTTP/1 side of the library reads
 * them from a socket pair. It calls its handler once, with the method, target, version and body
 * that the door found. So it never refuses, nor waits for, what the door took for a whole request.
 */
#include "tests/fuzz/fuzz.h"

#include "driver/base/check.h"
#include "handlers/http/head.h"
#include "handlers/http/loop.h"

#include <sys/socket.h>
#include <unistd.h>

#define BODY_MAX_BYTES 4096
#define REQUEST_MAX_BYTES 65536
#define TURNS_MAX 64 /* of the loop: more than one request needs */

/* The request that the handler saw. */
static struct seen {
    unsigned calls;
    int version;
    char method[REQUEST_MAX_BYTES], target[REQUEST_MAX_BYTES], body[REQUEST_MAX_BYTES];
    size_t method_len, target_len, body_len;
} seen;

static size_t copy(char *to, const char *from, size_t len)
{
    HFD_ASSERT(len <= REQUEST_MAX_BYTES);
    if (len > 0)
        memcpy(to, from, len);
    return len;
}

static int on_req(h2o_handler_t *self, h2o_req_t *req)
{
    static h2o_generator_t generator;

    (void)self;
    seen.calls++;
    seen.version = req->version;
    seen.method_len = copy(seen.method, req->input.method.base, req->input.method.len);
    seen.target_len = copy(seen.target, req->input.path.base, req->input.path.len);
    seen.body_len = copy(seen.body, req->entity.base, req->entity.len);
    req->res.status = 204;
    req->res.reason = "No Content";
    req->http1_is_persistent = 0;
    h2o_start_response(req, &generator);
    h2o_send(req, NULL, 0, H2O_SEND_STATE_FINAL);
    return 0;
}

static h2o_context_t *library(void)
{
    static h2o_globalconf_t conf;
    static h2o_context_t context;
    static bool ready;
    h2o_hostconf_t *host;

    if (ready)
        return &context;
    ready = true;
    h2o_config_init(&conf);
    conf.http1.upgrade_to_http2 = 0; /* as in handlers/http/server.c */
    conf.max_request_entity_size = (size_t)BODY_MAX_BYTES * 2;
    host = h2o_config_register_host(&conf, h2o_iovec_init("default", 7), 65535);
    h2o_create_handler(h2o_config_register_path(host, "/", 0), sizeof(h2o_handler_t))->on_req =
        on_req;
    h2o_create_handler(&host->fallback_path, sizeof(h2o_handler_t))->on_req = on_req;
    h2o_context_init(&context, h2o_evloop_create(), &conf);
    return &context;
}

static void on_close(void *closed)
{
    *(bool *)closed = true;
}

/* Gives the library the bytes of one request, and lets it work until it has closed. */
static void serve(const char *bytes, size_t len)
{
    h2o_context_t *context = library();
    h2o_accept_ctx_t accept = {.ctx = context, .hosts = context->globalconf->hosts};
    bool closed = false, ended = false;
    h2o_socket_t *sock;
    int fds[2];

    seen = (struct seen){.calls = 0};
    HFD_ASSERT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
    HFD_ASSERT(write(fds[1], bytes, len) == (ssize_t)len);
    sock = h2o_evloop_socket_create(context->loop, fds[0], 0);
    sock->on_close.cb = on_close;
    sock->on_close.data = &closed;
    h2o_http1_accept(&accept, sock, (struct timeval){.tv_sec = 0});
    for (int i = 0; i < TURNS_MAX && !closed; i++) {
        (void)h2o_evloop_run(context->loop, 0);
        if (i > 2 && seen.calls == 0 && !ended) { /* it waits for more: the end makes it stop */
            ended = true;
            HFD_ASSERT(shutdown(fds[1], SHUT_WR) == 0);
        }
    }
    HFD_ASSERT(closed);
    (void)close(fds[1]);
}

/* Reads a chunked body as the door does. @return false: it is not whole, or bad */
static bool read_chunks(hfd_slice bytes, struct hfd_chunks *chunks, size_t *used)
{
    struct hfd_head_fault fault;

    return hfd_chunks_walk(chunks, bytes, BODY_MAX_BYTES, used, &fault) == HFD_HEAD_OK;
}

/* The door's changes to a head: README.md in handlers/http. @return bytes of the request */
static size_t prepare(const struct hfd_head_scan *scan, struct hfd_head *head, char *bytes,
                      size_t len)
{
    const size_t behind = head->expect_at + head->expect_bytes;

    if (head->trails)
        hfd_head_tidy(scan, bytes);
    if (head->expect_bytes == 0)
        return len;
    memmove(bytes + head->expect_at, bytes + behind, len - behind);
    head->bytes -= head->expect_bytes;
    return len - head->expect_bytes;
}

static void compare(const char *method, const char *target, const struct hfd_head *head,
                    uint64_t body_bytes)
{
    HFD_ASSERT(seen.calls == 1);
    HFD_ASSERT(seen.version == (0x100 | head->minor));
    HFD_ASSERT(seen.method_len == head->method.len &&
               memcmp(seen.method, method, seen.method_len) == 0);
    HFD_ASSERT(seen.target_len == head->target.len &&
               memcmp(seen.target, target, seen.target_len) == 0);
    HFD_ASSERT(seen.body_len == body_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char bytes[REQUEST_MAX_BYTES], method[REQUEST_MAX_BYTES], target[REQUEST_MAX_BYTES];
    struct hfd_head_scan scan = {0};
    struct hfd_head_fault fault;
    struct hfd_chunks chunks = {0};
    struct hfd_head head = {0};
    uint64_t body_bytes;
    size_t len, used = 0;

    if (size > sizeof(bytes) || size == 0)
        return 0;
    memcpy(bytes, data, size);
    if (hfd_head_scan(&scan, bytes, size, &fault) != HFD_HEAD_OK ||
        hfd_head_parse(&scan, bytes, &head, &fault) != HFD_HEAD_OK)
        return 0;
    if (head.framing == HFD_FRAMING_CHUNKED &&
        !read_chunks((hfd_slice){bytes + head.bytes, size - head.bytes}, &chunks, &used))
        return 0;
    if (head.framing == HFD_FRAMING_LENGTH) {
        if (head.content_length > BODY_MAX_BYTES || size - head.bytes < head.content_length)
            return 0;
        used = (size_t)head.content_length;
    }
    body_bytes = head.framing == HFD_FRAMING_CHUNKED ? chunks.body_bytes : used;
    (void)copy(method, head.method.p, head.method.len);
    (void)copy(target, head.target.p, head.target.len);
    len = prepare(&scan, &head, bytes, head.bytes + used);
    serve(bytes, len);
    compare(method, target, &head, body_bytes);
    return 0;
}
