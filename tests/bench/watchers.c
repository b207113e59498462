/*
 * Watchers of events: connections that take GET /api/hyperfleet/v1/events as a stream, on one
 * thread. One more connection patches a cluster again and again. Each time it waits until all
 * watchers have the event.
 *
 *     watchers PORT WATCHERS CHANGES HREF
 *
 * It prints how long the events took, from the sending of the PATCH: {"p50_us":..,"p99_us":..,
 * "max_us":..,"went_us":..}. The last one is the middle time of the PATCH's answer.
 */
#include "driver/base/clock.h"
#include "driver/base/err.h"
#include "driver/base/slice.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define READY_MAX 512
#define WAIT_MS 30000
#define ONE_ADDRESS 20000 /* connections from one address: it has fewer than 28,232 ports */

/* Counts the lines that begin with these words, in pieces as they come. */
static const char event_line[] = "\ndata:", first_line[] = "\nretry:";

struct watcher {
    int fd;
    size_t event_at, first_at; /* how much of the words was seen */
    long events, firsts;
};

static struct {
    int epoll, port;
    struct watcher *all;
    long count;
    int64_t *took_us; /* of each event */
    size_t taken;
    int64_t sent_us;
} w;

static void fail(const char *what)
{
    (void)fprintf(stderr, "watchers: %s: %s\n", what, strerror(errno));
    exit(2);
}

static int64_t now_us(void)
{
    return hfd_clock_mono_us(&hfd_clock_system);
}

static int connect_to(int port, uint32_t from)
{
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)},
                             own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(from)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

    if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0 ||
        bind(fd, (const struct sockaddr *)&own, sizeof(own)) != 0 ||
        connect(fd, (const struct sockaddr *)&to, sizeof(to)) != 0)
        fail("connect");
    return fd;
}

static void send_all(int fd, const char *p, size_t len)
{
    while (len > 0) {
        const ssize_t n = send(fd, p, len, MSG_NOSIGNAL);

        if (n <= 0)
            fail("send");
        p += n;
        len -= (size_t)n;
    }
}

/* Returns how often the words are completed by a piece. */
static long count(const char *words, size_t *at, const char *p, size_t len)
{
    long found = 0;

    for (size_t i = 0; i < len; i++) {
        *at = p[i] == words[*at] ? *at + 1 : p[i] == words[0] ? 1 : 0;
        if (words[*at] == '\0') {
            found++;
            *at = 0;
        }
    }
    return found;
}

static void read_from(struct watcher *one)
{
    char buf[16384];
    const ssize_t n = recv(one->fd, buf, sizeof(buf), 0);
    long events;

    if (n <= 0)
        fail("a watcher was cut off");
    one->firsts += count(first_line, &one->first_at, buf, (size_t)n);
    events = count(event_line, &one->event_at, buf, (size_t)n);
    one->events += events;
    for (; events > 0 && w.took_us != NULL; events--)
        w.took_us[w.taken++] = now_us() - w.sent_us;
}

/* Reads until all watchers have had so many first lines and events. */
static void read_until(long firsts, long events)
{
    struct epoll_event ready[READY_MAX];
    long have = 0;

    for (long i = 0; i < w.count; i++)
        have += w.all[i].firsts >= firsts && w.all[i].events >= events;
    while (have < w.count) {
        const int n = epoll_wait(w.epoll, ready, READY_MAX, WAIT_MS);

        if (n <= 0)
            fail("nothing comes");
        for (int i = 0; i < n; i++) {
            struct watcher *one = ready[i].data.ptr;
            const bool had = one->firsts >= firsts && one->events >= events;

            read_from(one);
            have += !had && one->firsts >= firsts && one->events >= events;
        }
    }
}

static void open_all(void)
{
    static const char request[] = "GET /api/hyperfleet/v1/events HTTP/1.1\r\nHost: localhost\r\n"
                                  "Accept: text/event-stream\r\n\r\n";

    for (long i = 0; i < w.count; i++) {
        struct watcher *one = &w.all[i];
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = one};

        one->fd = connect_to(w.port, INADDR_LOOPBACK + (uint32_t)(i / ONE_ADDRESS));
        send_all(one->fd, request, sizeof(request) - 1);
        if (epoll_ctl(w.epoll, EPOLL_CTL_ADD, one->fd, &e) != 0)
            fail("epoll_ctl");
    }
    read_until(1, 0);
}

/* Returns how long the answer took. */
static int64_t patch(int fd, const char *href, long n)
{
    char body[64], request[1024], answer[16384];
    const int body_len = snprintf(body, sizeof(body), "{\"spec\":{\"n\":%ld}}", n);
    const int len = snprintf(request, sizeof(request),
                             "PATCH %s HTTP/1.1\r\nHost: localhost\r\n"
                             "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
                             href, body_len, body);

    w.sent_us = now_us();
    send_all(fd, request, (size_t)len);
    if (recv(fd, answer, sizeof(answer), 0) < 12 || memcmp(answer + 9, "200", 3) != 0)
        fail("a PATCH was refused");
    return now_us() - w.sent_us;
}

static int compare(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

static void need_files(long count_of)
{
    struct rlimit limit = {.rlim_cur = 0};

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        fail("getrlimit");
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur < (rlim_t)count_of + 64) {
        errno = EMFILE;
        fail("too few files");
    }
}

static int64_t number(const char *text, int64_t max)
{
    struct hfd_err err;
    int64_t v;

    if (hfd_parse_i64(hfd_slice_of(text), 1, max, &v, &err) == HFD_OK)
        return v;
    (void)fprintf(stderr, "watchers: %s: %s\n", text, err.msg);
    exit(2);
}

int main(int argc, char **argv)
{
    int64_t *went_us;
    long changes;
    int fd;

    if (argc != 5) {
        (void)fprintf(stderr, "usage: watchers PORT WATCHERS CHANGES HREF\n");
        return 2;
    }
    w.port = (int)number(argv[1], 65535);
    w.count = (long)number(argv[2], 100000);
    changes = (long)number(argv[3], 100000);
    went_us = calloc((size_t)changes, sizeof(*went_us));
    need_files(w.count);
    w.all = calloc((size_t)w.count, sizeof(*w.all));
    w.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (w.all == NULL || went_us == NULL || w.epoll < 0)
        fail("start");
    open_all();
    fd = connect_to(w.port, INADDR_LOOPBACK);
    w.took_us = calloc((size_t)(w.count * changes), sizeof(*w.took_us));
    if (w.took_us == NULL)
        fail("start");
    for (long i = 1; i <= changes; i++) {
        went_us[i - 1] = patch(fd, argv[4], i);
        read_until(1, i);
    }
    qsort(w.took_us, w.taken, sizeof(*w.took_us), compare);
    qsort(went_us, (size_t)changes, sizeof(*went_us), compare);
    (void)printf("{\"p50_us\":%lld,\"p99_us\":%lld,\"max_us\":%lld,\"went_us\":%lld}\n",
                 (long long)w.took_us[w.taken / 2], (long long)w.took_us[w.taken * 99 / 100],
                 (long long)w.took_us[w.taken - 1], (long long)went_us[changes / 2]);
    (void)fflush(stdout);
    (void)getchar(); /* the server's memory is looked at before they leave */
    return 0;
}
