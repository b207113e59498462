/*
 * The load: keep-alive connections that send one request after the other, on one thread. It prints
 * one JSON object with the answers, their speed, and the errors.
 *
 * Requests come from a template. A running number replaces `@n@`. The columns of a line of the
 * items file replace `@1@` to `@4@`. The time replaces `@now@`, each time a later one.
 *
 * Without --rate each connection sends as soon as it was answered, and a request's time begins when
 * it is sent. With --rate requests are due at fixed times, and a request's time begins when it is
 * due. So a server that stalls is charged for the requests that waited.
 */
#include "driver/base/buf.h"
#include "driver/base/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECTIONS_MAX 4096
#define PIECES_MAX 64
#define COLUMNS_MAX 5
#define REQUEST_MAX_BYTES ((size_t)2 << 20)
#define ANSWER_MAX_BYTES ((size_t)8 << 20)
#define HEAD_MAX_BYTES 16384
#define EVENTS_MAX 256
#define BUCKETS (1u << 21) /* of one microsecond; the last one holds what took longer */
#define STATUS_MAX 600
#define STRIDE                                                                                     \
    UINT64_C(2654435761)            /* a prime: all items have their turn before one comes again   \
                                     */
#define GRACE_US (5 * HFD_US_PER_S) /* for answers that are out when the time is over */

enum what {
    TEXT,
    NUMBER,
    COLUMN,
    NOW,
    LENGTH
};

struct piece {
    enum what what;
    hfd_slice text;
    size_t column;
};

struct template
{
    struct piece pieces[PIECES_MAX];
    size_t count;
};

struct options {
    int port;
    int64_t connections, first, count, seed, rate;
    int64_t duration_us, warm_us;
    const char *method, *path, *body_file, *items_file;
    bool in_order, spread;
};

struct items {
    char *text;
    hfd_slice *lines;
    size_t count;
};

struct conn {
    int fd;
    bool busy, connected;
    int64_t began_us;
    struct hfd_buf out;
    size_t sent;
    char *in;
    size_t in_len, in_cap;
    size_t wanted; /* bytes of the whole answer, once its head is there */
};

struct load {
    struct options opt;
    struct template head, body;
    char *body_text;
    struct items items;
    struct conn *conns;
    int epoll;
    int64_t start_us, measure_us, end_us, last_now_us;
    int64_t next_n, begun;
    uint64_t random;
    uint32_t *buckets;
    int64_t recorded, errors, late, longest_us;
    int64_t statuses[STATUS_MAX];
    int64_t bytes;
};

static int64_t mono_us(void)
{
    return hfd_clock_mono_us(&hfd_clock_system);
}

static _Noreturn void die(const char *what)
{
    (void)fprintf(stderr, "load: %s\n", what);
    exit(2);
}

/* ---- templates ---- */

static void add_piece(struct template *t, enum what what, hfd_slice text, size_t column)
{
    if (t->count == PIECES_MAX)
        die("a template has too many parts");
    t->pieces[t->count++] = (struct piece){what, text, column};
}

static bool token(hfd_slice text, enum what *what, size_t *column, size_t *len)
{
    static const struct {
        const char *name;
        enum what what;
    } names[] = {{"@n@", NUMBER}, {"@now@", NOW}, {"@length@", LENGTH}};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (hfd_slice_starts(text, hfd_slice_of(names[i].name))) {
            *what = names[i].what;
            *len = strlen(names[i].name);
            return true;
        }
    }
    if (text.len >= 3 && text.p[1] >= '1' && text.p[1] <= '0' + COLUMNS_MAX && text.p[2] == '@') {
        *what = COLUMN;
        *column = (size_t)(text.p[1] - '1');
        *len = 3;
        return true;
    }
    return false;
}

static void compile(struct template *t, hfd_slice text)
{
    size_t from = 0;

    t->count = 0;
    for (size_t i = 0; i < text.len;) {
        enum what what;
        size_t column = 0, len;

        if (text.p[i] != '@' ||
            !token((hfd_slice){text.p + i, text.len - i}, &what, &column, &len)) {
            i++;
            continue;
        }
        add_piece(t, TEXT, (hfd_slice){text.p + from, i - from}, 0);
        add_piece(t, what, HFD_SLICE_NONE, column);
        i += len;
        from = i;
    }
    add_piece(t, TEXT, (hfd_slice){text.p + from, text.len - from}, 0);
}

static hfd_slice column_of(hfd_slice line, size_t column)
{
    const char *tab;

    for (;;) {
        tab = line.len != 0 ? memchr(line.p, '\t', line.len) : NULL;
        if (column == 0 || tab == NULL)
            break;
        column--;
        line = (hfd_slice){tab + 1, line.len - (size_t)(tab - line.p) - 1};
    }
    if (column != 0)
        return HFD_SLICE("");
    return tab != NULL ? (hfd_slice){line.p, (size_t)(tab - line.p)} : line;
}

static void add_now(struct load *l, struct hfd_buf *b)
{
    char text[HFD_TIME_TEXT_MAX];
    int64_t now_us = hfd_clock_wall_us(&hfd_clock_system);

    l->last_now_us = now_us > l->last_now_us ? now_us : l->last_now_us + 1;
    hfd_buf_add(b, (hfd_slice){text, hfd_time_format_us(l->last_now_us, text)});
}

/* The parts of one request that its template names. */
struct fill {
    int64_t n;
    hfd_slice item;
    size_t length; /* of the body */
};

static void expand(struct load *l, const struct template *t, const struct fill *fill,
                   struct hfd_buf *b)
{
    for (size_t i = 0; i < t->count; i++) {
        const struct piece *p = &t->pieces[i];

        switch (p->what) {
        case TEXT:
            hfd_buf_add(b, p->text);
            break;
        case NUMBER:
            hfd_buf_i64(b, fill->n);
            break;
        case COLUMN:
            hfd_buf_add(b, column_of(fill->item, p->column));
            break;
        case NOW:
            add_now(l, b);
            break;
        case LENGTH:
            hfd_buf_i64(b, (int64_t)fill->length);
            break;
        }
    }
}

/* ---- one connection ---- */

static void connect_to(struct load *l, struct conn *c)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)l->opt.port),
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct epoll_event ev = {.events = EPOLLIN, .data = {.ptr = c}};
    int on = 1;

    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || connect(c->fd, (const struct sockaddr *)(const void *)&at, sizeof(at)) != 0)
        die(strerror(errno));
    (void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, c->fd, &ev) != 0)
        die(strerror(errno));
    c->in_len = c->wanted = 0;
    c->connected = true;
}

static void drop(struct load *l, struct conn *c)
{
    if (c->busy)
        l->errors++;
    (void)close(c->fd);
    c->busy = c->connected = false;
}

/* Requests are small against a socket's buffer: a write that would block waits. */
static void write_out(struct load *l, struct conn *c)
{
    while (c->sent < c->out.len) {
        ssize_t n = send(c->fd, c->out.p + c->sent, c->out.len - c->sent, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            drop(l, c);
            return;
        }
        c->sent += (size_t)n;
    }
}

static uint64_t next_random(struct load *l)
{
    l->random ^= l->random << 13;
    l->random ^= l->random >> 7;
    l->random ^= l->random << 17;
    return l->random;
}

/* Any item, or each in its turn: as they stand, or far from the one before. */
static size_t pick(struct load *l, uint64_t n)
{
    if (l->opt.in_order)
        return (size_t)(n % l->items.count);
    return (size_t)((l->opt.spread ? n * STRIDE : next_random(l)) % l->items.count);
}

static void begin(struct load *l, struct conn *c, struct hfd_buf *body, int64_t began_us)
{
    struct fill fill = {.n = l->next_n++, .item = HFD_SLICE("")};

    if (l->items.count != 0)
        fill.item = l->items.lines[pick(l, (uint64_t)fill.n)];
    if (!c->connected)
        connect_to(l, c);
    hfd_buf_reset(body);
    expand(l, &l->body, &fill, body);
    fill.length = body->len;
    hfd_buf_reset(&c->out);
    expand(l, &l->head, &fill, &c->out);
    hfd_buf_add(&c->out, hfd_buf_slice(body));
    if (body->rc != HFD_OK || c->out.rc != HFD_OK)
        die("a request is too large");
    c->sent = 0;
    c->busy = true;
    c->began_us = began_us;
    l->begun++;
    write_out(l, c);
}

static void record(struct load *l, const struct conn *c, int status, int64_t now_us)
{
    int64_t took_us = now_us - c->began_us;

    if (status >= 0 && status < STATUS_MAX)
        l->statuses[status]++;
    l->bytes += (int64_t)c->wanted;
    if (c->began_us < l->measure_us || now_us > l->end_us) {
        l->late += now_us > l->end_us;
        return;
    }
    l->recorded++;
    l->longest_us = took_us > l->longest_us ? took_us : l->longest_us;
    l->buckets[took_us < 0 ? 0 : took_us < BUCKETS ? (size_t)took_us : BUCKETS - 1]++;
}

/* Where the answer ends, once its head is whole; 0 before. */
static size_t answer_end(const struct conn *c)
{
    static const char name[] = "\r\ncontent-length:";
    const char *end = memmem(c->in, c->in_len, "\r\n\r\n", 4), *at;
    size_t length = 0;

    if (end == NULL)
        return 0;
    for (at = c->in; at < end && strncasecmp(at, name, sizeof(name) - 1) != 0; at++)
        continue;
    if (at < end) {
        for (at += sizeof(name) - 1; *at == ' ' || (*at >= '0' && *at <= '9'); at++)
            length = *at == ' ' ? length : length * 10 + (size_t)(*at - '0');
    }
    return (size_t)(end - c->in) + 4 + length;
}

/* @return whether the answer is whole */
static bool read_in(struct load *l, struct conn *c)
{
    ssize_t n;

    if (c->in_len == c->in_cap) {
        size_t cap = c->in_cap == 0 ? HEAD_MAX_BYTES : c->in_cap * 2;
        char *in = cap <= ANSWER_MAX_BYTES ? realloc(c->in, cap) : NULL;

        if (in == NULL)
            die("an answer is too large");
        c->in = in;
        c->in_cap = cap;
    }
    n = recv(c->fd, c->in + c->in_len, c->in_cap - c->in_len, MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return false;
    if (n <= 0) {
        drop(l, c);
        return false;
    }
    c->in_len += (size_t)n;
    if (c->wanted == 0)
        c->wanted = answer_end(c);
    return c->wanted != 0 && c->in_len >= c->wanted;
}

static void on_answer(struct load *l, struct conn *c)
{
    static const char version[] = "HTTP/1.1 ";
    const size_t at = sizeof(version) - 1;
    int status = -1;

    if (c->in_len > at + 3 && memcmp(c->in, version, at) == 0)
        status = (c->in[at] - '0') * 100 + (c->in[at + 1] - '0') * 10 + (c->in[at + 2] - '0');
    if (status < 100 || status >= STATUS_MAX || c->in_len != c->wanted)
        l->errors++;
    else
        record(l, c, status, mono_us());
    c->busy = false;
    c->in_len = c->wanted = 0;
}

/* ---- the run ---- */

static bool may_begin(const struct load *l, int64_t now_us)
{
    return now_us < l->end_us && (l->opt.count == 0 || l->begun < l->opt.count);
}

static struct conn *idle_conn(struct load *l)
{
    for (int64_t i = 0; i < l->opt.connections; i++)
        if (!l->conns[i].busy)
            return &l->conns[i];
    return NULL;
}

/* Sends what is due. @return how long to wait for the next one, in microseconds */
static int64_t send_due(struct load *l, struct hfd_buf *body)
{
    for (;;) {
        int64_t now_us = mono_us(), due_us = l->start_us + l->begun * HFD_US_PER_S / l->opt.rate;
        struct conn *c;

        if (!may_begin(l, now_us))
            return HFD_US_PER_S / 10;
        if (due_us > now_us)
            return due_us - now_us;
        c = idle_conn(l);
        if (c == NULL)
            return HFD_US_PER_S / 10;
        begin(l, c, body, due_us);
    }
}

static bool any_busy(const struct load *l)
{
    for (int64_t i = 0; i < l->opt.connections; i++)
        if (l->conns[i].busy)
            return true;
    return false;
}

static void wait_and_answer(struct load *l, struct hfd_buf *body, int64_t wait_us)
{
    struct timespec wait = {.tv_sec = wait_us / HFD_US_PER_S,
                            .tv_nsec = wait_us % HFD_US_PER_S * 1000};
    struct epoll_event events[EVENTS_MAX];
    int n = epoll_pwait2(l->epoll, events, EVENTS_MAX, &wait, NULL);

    for (int i = 0; i < n; i++) {
        struct conn *c = events[i].data.ptr;

        if (!c->connected)
            continue;
        if (read_in(l, c))
            on_answer(l, c);
        if (!c->busy && l->opt.rate == 0 && may_begin(l, mono_us()))
            begin(l, c, body, mono_us());
    }
}

static void run(struct load *l)
{
    struct hfd_buf body;

    hfd_buf_init(&body, REQUEST_MAX_BYTES);
    for (int64_t i = 0; i < l->opt.connections; i++) {
        hfd_buf_init(&l->conns[i].out, REQUEST_MAX_BYTES);
        connect_to(l, &l->conns[i]);
    }
    l->start_us = mono_us();
    l->measure_us = l->start_us + l->opt.warm_us;
    l->end_us = l->measure_us + l->opt.duration_us;
    for (int64_t i = 0; i < l->opt.connections && l->opt.rate == 0; i++)
        if (may_begin(l, l->start_us))
            begin(l, &l->conns[i], &body, mono_us());
    for (;;) {
        int64_t now_us = mono_us(), wait_us = HFD_US_PER_S / 10;

        if (l->opt.rate != 0)
            wait_us = send_due(l, &body);
        if (!may_begin(l, now_us) && (!any_busy(l) || now_us > l->end_us + GRACE_US))
            break;
        wait_and_answer(l, &body, wait_us);
    }
    /* Ended by the count: the time that it took is the time that counts. */
    if (mono_us() < l->end_us)
        l->end_us = mono_us();
    for (int64_t i = 0; i < l->opt.connections; i++) {
        l->errors += l->conns[i].busy;
        if (l->conns[i].connected)
            (void)close(l->conns[i].fd);
        hfd_buf_fini(&l->conns[i].out);
        free(l->conns[i].in);
    }
    hfd_buf_fini(&body);
}

/* The time within which this many of a million requests were answered. */
static int64_t percentile_us(const struct load *l, int64_t ppm)
{
    int64_t wanted = (l->recorded * ppm + 999999) / 1000000, seen = 0;

    for (size_t i = 0; i < BUCKETS - 1; i++) {
        seen += l->buckets[i];
        if (seen >= wanted && seen > 0)
            return (int64_t)i;
    }
    return l->longest_us;
}

static void print(const struct load *l)
{
    double seconds = (double)(l->end_us - l->measure_us) / HFD_US_PER_S;
    const char *sep = "";

    (void)printf("{\"requests\": %lld, \"seconds\": %.6f, \"rate\": %.1f, \"p50_us\": %lld, "
                 "\"p90_us\": %lld, \"p99_us\": %lld, "
                 "\"p999_us\": %lld, \"max_us\": %lld, \"errors\": %lld, \"late\": %lld, \"next\": "
                 "%lld, \"bytes\": %lld, \"statuses\": {",
                 (long long)l->recorded, seconds, seconds > 0 ? (double)l->recorded / seconds : 0,
                 (long long)percentile_us(l, 500000), (long long)percentile_us(l, 900000),
                 (long long)percentile_us(l, 990000), (long long)percentile_us(l, 999000),
                 (long long)l->longest_us, (long long)l->errors, (long long)l->late,
                 (long long)l->next_n, (long long)l->bytes);
    for (int i = 0; i < STATUS_MAX; i++) {
        if (l->statuses[i] == 0)
            continue;
        (void)printf("%s\"%d\": %lld", sep, i, (long long)l->statuses[i]);
        sep = ", ";
    }
    (void)printf("}}\n");
}

/* ---- the command line ---- */

static char *read_file(const char *path, size_t *len)
{
    FILE *f = fopen(path, "r");
    char *text = NULL;
    size_t cap = 0;

    if (f == NULL)
        die(path);
    *len = 0;
    for (;;) {
        size_t n;

        if (*len == cap) {
            cap = cap == 0 ? 65536 : cap * 2;
            text = realloc(text, cap + 1);
            if (text == NULL)
                die("out of memory");
        }
        n = fread(text + *len, 1, cap - *len, f);
        *len += n;
        if (n == 0)
            break;
    }
    (void)fclose(f);
    text[*len] = '\0';
    return text;
}

static void read_items(struct items *items, const char *path)
{
    size_t len, cap = 0;
    char *at, *end;

    items->text = read_file(path, &len);
    for (at = items->text; at < items->text + len; at = end + 1) {
        end = memchr(at, '\n', (size_t)(items->text + len - at));
        if (end == NULL)
            end = items->text + len;
        if (items->count == cap) {
            cap = cap == 0 ? 1024 : cap * 2;
            items->lines = realloc(items->lines, cap * sizeof(*items->lines));
            if (items->lines == NULL)
                die("out of memory");
        }
        items->lines[items->count++] = (hfd_slice){at, (size_t)(end - at)};
    }
    if (items->count == 0)
        die("there are no items");
}

static const char *text_or(const char *text, const char *otherwise)
{
    return text != NULL ? text : otherwise;
}

static int64_t number(const char *text, const char *otherwise, int64_t min, int64_t max)
{
    struct hfd_err err;
    int64_t v;

    if (hfd_parse_i64(hfd_slice_of(text_or(text, otherwise)), min, max, &v, &err) != HFD_OK)
        die(err.msg);
    return v;
}

static void parse(struct options *o, int argc, char **argv)
{
    static const struct option names[] = {
        {"port", required_argument, NULL, 'p'},
        {"connections", required_argument, NULL, 'c'},
        {"ms", required_argument, NULL, 'd'},
        {"warm-ms", required_argument, NULL, 'w'},
        {"method", required_argument, NULL, 'm'},
        {"path", required_argument, NULL, 'u'},
        {"body", required_argument, NULL, 'b'},
        {"items", required_argument, NULL, 'i'},
        {"in-order", no_argument, NULL, 'o'},
        {"first", required_argument, NULL, 'f'},
        {"count", required_argument, NULL, 'n'},
        {"rate", required_argument, NULL, 'r'},
        {"seed", required_argument, NULL, 's'},
        {"spread", no_argument, NULL, 'e'},
        {NULL, 0, NULL, 0},
    };
    const char *text[128] = {0};
    int c;

    while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (c < 0 || c >= 128 || c == '?')
            exit(2);
        text[c] = optarg != NULL ? optarg : "";
    }
    *o = (struct options){
        .port = (int)number(text['p'], "", 1, 65535),
        .connections = number(text['c'], "1", 1, CONNECTIONS_MAX),
        .duration_us = number(text['d'], "1000", 1, 3600000) * 1000,
        .warm_us = number(text['w'], "0", 0, 60000) * 1000,
        .method = text_or(text['m'], "GET"),
        .path = text_or(text['u'], "/"),
        .body_file = text['b'],
        .items_file = text['i'],
        .in_order = text['o'] != NULL,
        .spread = text['e'] != NULL,
        .first = number(text['f'], "0", 0, INT64_MAX / 2),
        .count = number(text['n'], "0", 0, INT64_MAX),
        .rate = number(text['r'], "0", 0, 1000000),
        .seed = number(text['s'], "1", 1, INT64_MAX),
    };
}

int main(int argc, char **argv)
{
    static struct load l;
    struct hfd_buf head;
    size_t len = 0;

    parse(&l.opt, argc, argv);
    if (l.opt.body_file != NULL)
        l.body_text = read_file(l.opt.body_file, &len);
    compile(&l.body, (hfd_slice){l.body_text, len});
    if (l.opt.items_file != NULL)
        read_items(&l.items, l.opt.items_file);
    hfd_buf_init(&head, HEAD_MAX_BYTES);
    hfd_buf_addf(&head, "%s %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n", l.opt.method, l.opt.path,
                 l.opt.body_file != NULL
                     ? "Content-Type: application/json\r\nContent-Length: @length@\r\n"
                     : "");
    if (head.rc != HFD_OK)
        die("the path is too long");
    compile(&l.head, hfd_buf_slice(&head));
    l.next_n = l.opt.first;
    l.random = (uint64_t)l.opt.seed * UINT64_C(0x9E3779B97F4A7C15);
    l.conns = calloc((size_t)l.opt.connections, sizeof(*l.conns));
    l.buckets = calloc(BUCKETS, sizeof(*l.buckets));
    l.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (l.conns == NULL || l.buckets == NULL || l.epoll < 0)
        die("out of memory");
    run(&l);
    print(&l);
    hfd_buf_fini(&head);
    (void)close(l.epoll);
    free(l.conns);
    free(l.buckets);
    free(l.body_text);
    free(l.items.lines);
    free(l.items.text);
    return l.errors == 0 ? 0 : 1;
}
