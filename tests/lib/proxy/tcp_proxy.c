/*
 * A TCP proxy for tests of faults: tcp_proxy PORT (of the target, on 127.0.0.1).
 *
 * It writes "port N" and then obeys lines of its standard input. It answers each with one line, and
 * ends with its input.
 *
 *   cut N before|after   cuts the connection of the N-th COMMIT from now on: before the server gets
 *                        it, or before the client gets the answer
 *   hold N before|after  the same, but the connection stays open, and nothing moves in it
 *   match TEXT           counts COMMITs of connections that sent a statement with this text
 *   count                "ok SENT ANSWERED FIRED": COMMITs since cut or hold; if it was done
 *   delay MS             each piece of data waits so long
 *   stall, go            nothing moves, connections stay; moves again
 *   drop                 cuts all connections
 *   refuse, accept       new connections are cut at once; are served again
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "driver/base/clock.h"
#include "driver/base/slice.h"
#include "tests/lib/proxy/pgwire.h"

enum {
    PAIRS = 256,
    PIECE = 65536
};

/* One direction: what was read at `from` and goes to the other side's socket. */
struct side {
    int from;
    size_t have, sent;
    int64_t due_ms;
    struct pgwire wire;
    char data[PIECE];
};

struct pair {
    bool used, held;
    unsigned untyped;    /* bytes of answers without a message, still to come */
    struct side side[2]; /* of the client, of the server */
};

static struct proxy {
    int listener, pairs_epoll, main_epoll, target;
    bool refusing, stalled;
    int delay_ms;
    char match[64];
    long nth; /* 0: no fault is waited for */
    bool before, hold, fired;
    long sent, answered;
    struct pair pairs[PAIRS];
} proxy;

static int64_t now_ms(void)
{
    return hfd_clock_mono_us(&hfd_clock_system) / 1000;
}

/* A number in a text; 0 when it is none. */
static int number(const char *text)
{
    int64_t n = 0;
    struct hfd_err err;
    return hfd_parse_i64(hfd_slice_of(text), 0, 1000000, &n, &err) == HFD_OK ? (int)n : 0;
}

static void must(bool good, const char *what)
{
    if (good)
        return;
    perror(what);
    exit(1);
}

static void pair_close(struct pair *p)
{
    close(p->side[0].from);
    close(p->side[1].from);
    p->used = false;
}

/* Tells epoll the events of one socket: data when the last piece is gone; room for a piece. */
static void side_wait(struct pair *p, int i)
{
    const struct side *in = &p->side[i], *out = &p->side[1 - i];
    uint32_t events = 0;
    if (in->have == 0)
        events |= EPOLLIN;
    if (out->have > 0 && out->due_ms <= now_ms())
        events |= EPOLLOUT;
    struct epoll_event e = {.events = events, .data.u32 = (uint32_t)((p - proxy.pairs) * 2 + i)};
    epoll_ctl(proxy.pairs_epoll, EPOLL_CTL_MOD, in->from, &e);
}

static void pair_accept(void)
{
    int client = accept4(proxy.listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (client < 0)
        return;
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)proxy.target),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    size_t at = 0;
    while (at < PAIRS && proxy.pairs[at].used)
        at++;
    if (proxy.refusing || at == PAIRS || server < 0 ||
        connect(server, (struct sockaddr *)&to, sizeof to) != 0) {
        close(client);
        if (server >= 0)
            close(server);
        return;
    }
    fcntl(server, F_SETFL, O_NONBLOCK);
    int fds[2] = {client, server}, yes = 1;
    struct pair *p = &proxy.pairs[at];
    p->used = true;
    p->held = false;
    p->untyped = 0;
    for (int i = 0; i < 2; i++) {
        struct side *s = &p->side[i];
        s->from = fds[i];
        s->have = s->sent = 0;
        s->wire = (struct pgwire){0};
        setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        struct epoll_event e = {.events = EPOLLIN, .data.u32 = (uint32_t)(at * 2 + (size_t)i)};
        must(epoll_ctl(proxy.pairs_epoll, EPOLL_CTL_ADD, fds[i], &e) == 0, "epoll_ctl");
    }
}

/* Counts a COMMIT; says if it is the one that the fault is for. */
static bool counted(const struct pair *p, bool by_client)
{
    if (proxy.match[0] != '\0' && !p->side[0].wire.seen_match)
        return false;
    long n = by_client ? ++proxy.sent : ++proxy.answered;
    return proxy.nth > 0 && !proxy.fired && proxy.before == by_client && n == proxy.nth;
}

/*
 * Looks for COMMITs in a new piece; the fault leaves what stands before it.
 *
 * @return false when the fault is to be done
 */
static bool side_scan(struct pair *p, int i)
{
    struct side *s = &p->side[i];
    size_t at = 0;
    if (i == 1)
        for (; at < s->have && p->untyped > 0; at++)
            p->untyped--;
    while (at < s->have) {
        size_t n = s->have - at;
        const char *match = proxy.match[0] != '\0' ? proxy.match : NULL;
        size_t used = i == 0 ? pgwire_client(&s->wire, s->data + at, n, match)
                             : pgwire_server(&s->wire, s->data + at, n);
        if (s->wire.found == PGWIRE_UNTYPED_ANSWER) {
            p->untyped++;
        }
        if (s->wire.found == PGWIRE_COMMIT && counted(p, i == 0)) {
            s->have = at + s->wire.begin;
            proxy.fired = true;
            return false;
        }
        at += used;
    }
    return true;
}

static bool side_write(struct pair *p, int i)
{
    struct side *s = &p->side[i];
    ssize_t n = send(p->side[1 - i].from, s->data + s->sent, s->have - s->sent, MSG_NOSIGNAL);
    if (n < 0)
        return errno == EAGAIN;
    s->sent += (size_t)n;
    if (s->sent == s->have)
        s->have = s->sent = 0;
    return true;
}

/* Nothing moves any more. Sockets that stay in epoll would wake it without end. */
static void pair_hold(struct pair *p)
{
    p->held = true;
    for (int i = 0; i < 2; i++)
        epoll_ctl(proxy.pairs_epoll, EPOLL_CTL_DEL, p->side[i].from, NULL);
}

/* Reads a piece; false when the connection is to be cut. */
static bool side_read(struct pair *p, int i)
{
    struct side *s = &p->side[i];
    ssize_t n = recv(s->from, s->data, PIECE, 0);
    if (n <= 0)
        return n < 0 && errno == EAGAIN;
    s->have = (size_t)n;
    s->due_ms = now_ms() + proxy.delay_ms;
    if (!side_scan(p, i)) {
        if (s->have > 0)
            side_write(p, i);
        if (proxy.hold)
            pair_hold(p);
        return proxy.hold;
    }
    return proxy.delay_ms > 0 || side_write(p, i);
}

static void pair_event(uint32_t key, uint32_t events)
{
    struct pair *p = &proxy.pairs[key / 2];
    int i = (int)(key % 2);
    if (!p->used || p->held)
        return;
    bool good = true;
    struct side *out = &p->side[1 - i];
    if ((events & EPOLLOUT) != 0 && out->have > 0)
        good = side_write(p, 1 - i);
    if (good && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && p->side[i].have == 0)
        good = side_read(p, i);
    if (!good) {
        pair_close(p);
        return;
    }
    for (int k = 0; k < 2 && !p->held; k++)
        side_wait(p, k);
}

/* Pieces whose delay has passed; returns how long to wait for the next one, or -1. */
static int delayed(void)
{
    int64_t now = now_ms(), next = -1;
    for (size_t at = 0; at < PAIRS && !proxy.stalled; at++) {
        struct pair *p = &proxy.pairs[at];
        for (int i = 0; i < 2 && p->used && !p->held; i++) {
            if (p->side[i].have == 0)
                continue;
            side_wait(p, 1 - i);
            int64_t wait = p->side[i].due_ms - now;
            if (wait > 0 && (next < 0 || wait < next))
                next = wait;
        }
    }
    return (int)next;
}

static void move(bool on)
{
    if (on != proxy.stalled)
        return;
    struct epoll_event e = {.events = EPOLLIN, .data.u32 = 1};
    int op = on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL;
    must(epoll_ctl(proxy.main_epoll, op, proxy.pairs_epoll, &e) == 0, "epoll_ctl");
    proxy.stalled = !on;
}

static void arm(const char *nth, const char *when, bool hold)
{
    proxy.nth = number(nth);
    proxy.before = strcmp(when, "before") == 0;
    proxy.hold = hold;
    proxy.fired = false;
    proxy.sent = proxy.answered = 0;
}

static void drop(void)
{
    for (size_t at = 0; at < PAIRS; at++) {
        if (proxy.pairs[at].used) {
            pair_close(&proxy.pairs[at]);
        }
    }
}

/* One line of the standard input; false at its end. */
static bool obey(void)
{
    char line[256];
    const char *words[3] = {"", "", ""};
    if (fgets(line, sizeof line, stdin) == NULL) {
        return false;
    }
    char *rest = line;
    for (size_t i = 0; i < 3; i++) {
        const char *word = strtok_r(NULL, " \n", &rest);
        words[i] = word != NULL ? word : "";
    }
    const char *order = words[0];
    if (strcmp(order, "cut") == 0 || strcmp(order, "hold") == 0) {
        arm(words[1], words[2], order[0] == 'h');
    } else if (strcmp(order, "match") == 0) {
        snprintf(proxy.match, sizeof proxy.match, "%s", words[1]);
    } else if (strcmp(order, "delay") == 0) {
        proxy.delay_ms = number(words[1]);
    } else if (strcmp(order, "stall") == 0 || strcmp(order, "go") == 0) {
        move(order[0] == 'g');
    } else if (strcmp(order, "refuse") == 0 || strcmp(order, "accept") == 0) {
        proxy.refusing = order[0] == 'r';
    } else if (strcmp(order, "drop") == 0) {
        drop();
    } else if (strcmp(order, "count") != 0) {
        printf("unknown: %s\n", order);
        return true;
    }
    printf("ok %ld %ld %d\n", proxy.sent, proxy.answered, proxy.fired);
    return true;
}

static void begin(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    proxy.listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    must(bind(proxy.listener, (struct sockaddr *)&at, size) == 0, "bind");
    must(listen(proxy.listener, 128) == 0, "listen");
    must(getsockname(proxy.listener, (struct sockaddr *)&at, &size) == 0, "getsockname");
    proxy.pairs_epoll = epoll_create1(EPOLL_CLOEXEC);
    proxy.main_epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event e = {.events = EPOLLIN, .data.u32 = UINT32_MAX};
    must(epoll_ctl(proxy.pairs_epoll, EPOLL_CTL_ADD, proxy.listener, &e) == 0, "epoll_ctl");
    e.data.u32 = 0;
    must(epoll_ctl(proxy.main_epoll, EPOLL_CTL_ADD, STDIN_FILENO, &e) == 0, "epoll_ctl");
    proxy.stalled = true;
    move(true);
    setvbuf(stdin, NULL, _IONBF, 0); /* epoll sees each line */
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("port %d\n", ntohs(at.sin_port));
}

int main(int argc, char **argv)
{
    proxy.target = argc == 2 ? number(argv[1]) : 0;
    if (proxy.target <= 0) {
        fputs("usage: tcp_proxy PORT\n", stderr);
        return 2;
    }
    begin();
    for (;;) {
        struct epoll_event ready[2], events[64];
        int n = epoll_wait(proxy.main_epoll, ready, 2, delayed());
        for (int i = 0; i < n; i++) {
            if (ready[i].data.u32 == 0) {
                if (!obey())
                    return 0;
                continue;
            }
            int m = proxy.stalled ? 0 : epoll_wait(proxy.pairs_epoll, events, 64, 0);
            for (int k = 0; k < m; k++) {
                if (events[k].data.u32 == UINT32_MAX)
                    pair_accept();
                else
                    pair_event(events[k].data.u32, events[k].events);
            }
        }
    }
}
