/*
 * Reads of HTTP requests beside a store, at random: they fail, their database's connections end,
 * clients leave, and the server stops. Each result comes once, and each client that waits has its
 * answers. On PostgreSQL another thread makes the reads (store/store.c), on SQLite the loop.
 */
#include "driver/base/base.h"
#include "driver/base/check.h"
#include "driver/base/log.h"
#include "driver/base/metrics.h"
#include "handlers/http/exchange.h"
#include "handlers/http/server.h"
#include "store/rows_resource.h"
#include "tests/lib/contains.h"
#include "tests/lib/place.h"
#include "tests/lib/seams.h"
#include "tests/lib/tmpdir.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define CLIENTS 6      /* threads, each with: */
#define CONNECTIONS 6  /* at a time */
#define REQUESTS_MAX 4 /* on a connection */
#define ROUNDS 40      /* of a thread */
#define IDS (2 * CLIENTS * CONNECTIONS * REQUESTS_MAX * ROUNDS)
#define QUEUE_MAX 24
#define RESOURCES 8 /* g-0 has no parts, g-7 has seven */
#define PATIENCE_MS 60000

/* ---- the clock: real time plus what the test has added ---- */

static atomic_llong added_us;

static int64_t wall_us(void *ctx)
{
    (void)ctx;
    return hfd_clock_wall_us(&hfd_clock_system);
}

static int64_t mono_us(void *ctx)
{
    (void)ctx;
    return hfd_clock_mono_us(&hfd_clock_system) + atomic_load(&added_us);
}

static const struct hfd_clock moved_clock = {.wall_us = wall_us, .mono_us = mono_us};

/* ---- requests ---- */

static struct {
    atomic_uint handled, answered;
} requests[IDS];
static atomic_uint next_id, answered_well;
#define GATE_ID (IDS - 1)

/* The gate holds the thread that reads. */
static atomic_bool gate_closed;
static atomic_uint at_gate;

/* The subject of a request's reads, in the memory of its exchange. */
struct probe {
    struct hfd_exchange *x;
    unsigned id, reads, thens; /* reads: how many it makes */
    char text[16];
    hfd_slice guresid; /* borrowed of text once `own` was called */
    size_t counts[2];
};

static char *resource_name(char out[16], unsigned n)
{
    (void)snprintf(out, 16, "g-%u", n % RESOURCES);
    return out;
}

static hfd_rc planned(unsigned id)
{
    return id % 8 == 0 ? HFD_INVALID : id % 8 == 1 ? HFD_CORRUPT : HFD_OK;
}

/* Two reads, the second of which depends on the first. It may run again. */
static hfd_rc txn_probe(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct probe *p = arg;
    struct hfd_arena *mem = hfd_exchange_mem(p->x);
    struct hfd_part_list list = {NULL, 0};
    char name[16];
    hfd_rc rc = hfd_part_row_list(tx, p->guresid, mem, &list, err);

    if (rc == HFD_OK && p->id % 2 == 0) {
        p->counts[0] = list.count;
        rc = hfd_part_row_list(tx, hfd_slice_of(resource_name(name, (unsigned)list.count + 3)), mem,
                               &list, err);
        p->counts[1] = list.count;
    } else if (rc == HFD_OK) {
        p->counts[0] = p->counts[1] = list.count;
    }
    return rc == HFD_OK && planned(p->id) != HFD_OK ? hfd_fail(err, planned(p->id), "as planned")
                                                    : rc;
}

static hfd_rc own_probe(void *arg, struct hfd_err *err)
{
    struct probe *p = arg;

    (void)err;
    p->guresid = hfd_slice_of(resource_name(p->text, p->id));
    return HFD_OK;
}

static void read_probe(struct probe *p);

static void on_probed(struct hfd_exchange *x, void *arg, hfd_rc rc, const struct hfd_err *err)
{
    struct probe *p = arg;
    struct hfd_reply reply = {.status = 200, .content_type = "text/plain"};

    hfd_slice here;

    p->thens++;
    HFD_ASSERT(hfd_exchange_header(x, "x-here", &here, NULL) == HFD_OK && here.len > 0);
    HFD_ASSERT(p->x == x && p->thens <= p->reads);
    if (rc == HFD_OK && p->thens < p->reads) {
        read_probe(p);
        return;
    }
    HFD_ASSERT(atomic_fetch_add(&requests[p->id].answered, 1) == 0);
    if (rc != HFD_OK) {
        hfd_exchange_fail(x, rc, err);
        return;
    }
    HFD_ASSERT(planned(p->id) == HFD_OK && p->counts[0] == p->id % RESOURCES);
    HFD_ASSERT(p->counts[1] == (p->id % 2 == 0 ? (p->counts[0] + 3) % RESOURCES : p->counts[0]));
    atomic_fetch_add(&answered_well, 1);
    reply.body = hfd_arena_printf(hfd_exchange_mem(x), "id %u;", p->id);
    hfd_exchange_reply(x, &reply);
}

static void read_probe(struct probe *p)
{
    hfd_exchange_read(p->x, &(struct hfd_exchange_read){txn_probe, p, own_probe, on_probed});
}

static void handle_probe(struct hfd_exchange *x)
{
    struct probe *p = hfd_arena_alloc(hfd_exchange_mem(x), sizeof(*p));
    const hfd_slice id = hfd_exchange_param(x, "id");
    char name[16]; /* gone when the read runs */
    int64_t number = 0;

    HFD_ASSERT(p != NULL && hfd_parse_i64(id, 0, IDS - 1, &number, NULL) == HFD_OK);
    *p = (struct probe){.x = x, .id = (unsigned)number};
    p->reads = p->id % 3 == 2 ? 2 : 1;
    p->guresid = hfd_slice_of(resource_name(name, p->id));
    HFD_ASSERT(atomic_fetch_add(&requests[p->id].handled, 1) == 0);
    read_probe(p);
}

static hfd_rc txn_gate(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    (void)tx;
    (void)arg;
    (void)err;
    atomic_fetch_add(&at_gate, 1);
    while (atomic_load(&gate_closed))
        (void)sched_yield();
    return HFD_OK;
}

static void on_gate_passed(struct hfd_exchange *x, void *arg, hfd_rc rc, const struct hfd_err *err)
{
    (void)arg;
    atomic_fetch_add(&requests[GATE_ID].answered, 1);
    if (rc != HFD_OK)
        hfd_exchange_fail(x, rc, err);
    else
        hfd_exchange_reply(x, &(struct hfd_reply){.status = 200, .content_type = "text/plain"});
}

static void handle_gate(struct hfd_exchange *x)
{
    atomic_fetch_add(&requests[GATE_ID].handled, 1);
    hfd_exchange_read(x, &(struct hfd_exchange_read){txn_gate, NULL, NULL, on_gate_passed});
}

/* clang-format off */
static const struct hfd_route table[] = {
    {HFD_LISTENER_MAIN, HFD_METHOD_GET, "/probe/{id}", "probe", HFD_DIALECT_DRIVER, handle_probe, NULL, 0, HFD_NEED_OPEN},
    {HFD_LISTENER_MAIN, HFD_METHOD_GET, "/gate",       "gate",  HFD_DIALECT_DRIVER, handle_gate,  NULL, 0, HFD_NEED_OPEN},
};
/* clang-format on */

/* ---- the server under test ---- */

static struct {
    char base[TMPDIR_MAX], dir[TMPDIR_MAX + 8];
    struct hfd_settings *settings;
    struct hfd_store *store;
    struct hfd_app app;
    struct hfd_server *server;
    pthread_t stopper;
    bool stopping;
    unsigned gone_before;
} fx; /* not on a stack: the loops outlive a test that fails */

/* Returns how many requests have had no result. */
static unsigned without_result(void)
{
    unsigned sum = 0;

    for (int i = 0; i < IDS; i++)
        sum += atomic_load(&requests[i].handled) - atomic_load(&requests[i].answered);
    return sum;
}

/* Returns how many results had no client any more, as the metric has it. */
static unsigned clients_gone(void)
{
    static const char name[] = "hfd_http_refused_total{reason=\"client_gone\"} ";
    struct hfd_buf b;
    const char *at;
    unsigned count = 0;

    hfd_buf_init(&b, (size_t)1 << 20);
    hfd_metrics_render(&b);
    hfd_buf_addc(&b, '\0');
    at = b.p != NULL ? strstr(b.p, name) : NULL;
    for (at += at != NULL ? strlen(name) : 0; at != NULL && *at >= '0' && *at <= '9'; at++)
        count = 10 * count + (unsigned)(*at - '0');
    hfd_buf_fini(&b);
    return count;
}

static hfd_rc put_parts(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    (void)arg;
    for (unsigned n = 0; n < RESOURCES; n++)
        for (unsigned k = 0; rc == HFD_OK && k < n; k++) {
            char guresid[16], id[16] = "";
            struct hfd_part_row row = {.guresid = hfd_slice_of(resource_name(guresid, n)),
                                       .fleet_id = hfd_slice_of(id),
                                       .kind = HFD_KIND_NODEPOOL,
                                       .name = hfd_slice_of(id),
                                       .generation = 1};

            (void)snprintf(id, sizeof(id), "f-%u-%u", n, k);
            row.fleet_id = row.name = hfd_slice_of(id);
            rc = hfd_part_row_put(tx, &row, err);
        }
    return rc;
}

static int start(void **state)
{
    static const char *const argv[] = {
        "--listen",       "127.0.0.1:0", "--ops-listen",         "127.0.0.1:0",
        "--http-threads", "3",           "--http-in-flight-max", "30"};
    static const char *const no_env[] = {NULL};
    struct hfd_store_config config = {.queue_max = QUEUE_MAX};
    struct hfd_err err;

    (void)state;
    memset(&fx, 0, sizeof(fx));
    fx.gone_before = clients_gone();
    memset(requests, 0, sizeof(requests));
    atomic_store(&next_id, 0);
    atomic_store(&at_gate, 0);
    atomic_store(&added_us, 0);
    atomic_store(&gate_closed, false);
    if (hfd_settings_load(8, argv, no_env, &fx.settings, &err) != HFD_OK)
        fail_msg("%s: %s", err.field, err.msg);
    tmpdir_make(fx.base);
    (void)snprintf(fx.dir, sizeof(fx.dir), "%s/data", fx.base);
    config.place = test_place(fx.dir);
    if (hfd_store_open(&config, &fx.store, &err) != HFD_OK ||
        hfd_store_update_wait(fx.store, put_parts, NULL, &err) != HFD_OK)
        fail_msg("%s", err.msg);
    fx.app = (struct hfd_app){.settings = fx.settings,
                              .store = fx.store,
                              .clock = &moved_clock,
                              .rng = &hfd_rng_system,
                              .routes = table,
                              .route_count = sizeof(table) / sizeof(table[0])};
    if (hfd_server_open(&fx.app, &fx.server, &err) != HFD_OK ||
        hfd_server_start(fx.server, &err) != HFD_OK)
        fail_msg("%s: %s", err.field, err.msg);
    return 0;
}

static void *stop_main(void *arg)
{
    hfd_server_stop(arg);
    return NULL;
}

static void begin_stop(void)
{
    fx.stopping = pthread_create(&fx.stopper, NULL, stop_main, fx.server) == 0;
    assert_true(fx.stopping);
}

/* Each result has come, or its client had gone before. */
static void end_stop(void)
{
    (void)pthread_join(fx.stopper, NULL);
    fx.stopping = false;
    hfd_server_free(&fx.server);
    assert_int_equal(without_result(), clients_gone() - fx.gone_before);
}

static int finish(void **state)
{
    (void)state;
    atomic_store(&gate_closed, false);
    if (fx.stopping)
        (void)pthread_join(fx.stopper, NULL);
    else if (fx.server != NULL)
        hfd_server_stop(fx.server);
    hfd_server_free(&fx.server);
    hfd_store_close(&fx.store);
    hfd_settings_free(fx.settings);
    tmpdir_remove(fx.base);
    return 0;
}

/* ---- clients ---- */

static int dial(void)
{
    const struct sockaddr_in addr = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)hfd_server_port(fx.server, HFD_LISTENER_MAIN)),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    HFD_ASSERT(fd >= 0);
    if (connect(fd, (const struct sockaddr *)(const void *)&addr, sizeof(addr)) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

struct connection {
    int fd; /* -1 = refused */
    unsigned ids[REQUESTS_MAX];
    unsigned count;
    bool stays; /* and reads its answers */
};

static void send_probe(const struct connection *c, unsigned i)
{
    char text[128];
    const int len = snprintf(text, sizeof(text),
                             "GET /probe/%u HTTP/1.1\r\nHost: localhost\r\nX-Here: 1\r\n%s\r\n",
                             c->ids[i], i + 1 == c->count ? "Connection: close\r\n" : "");

    (void)!send(c->fd, text, (size_t)len, MSG_NOSIGNAL);
}

/* Connects, and sends the first of its requests. */
static void begin_probes(struct connection *c, struct test_rng *rng)
{
    c->fd = dial();
    c->count = 1 + (unsigned)test_rng_below(rng, REQUESTS_MAX);
    c->stays = test_rng_below(rng, 3) != 0;
    for (unsigned i = 0; i < c->count; i++)
        c->ids[i] = atomic_fetch_add(&next_id, 1);
    if (c->fd >= 0)
        send_probe(c, 0);
}

static bool is_whole(const char *answer)
{
    const char *end = strstr(answer, "\r\n\r\n"), *length = strstr(answer, "Content-Length: ");
    int64_t bytes;

    if (end == NULL || length == NULL)
        return false;
    length += strlen("Content-Length: ");
    return hfd_parse_i64((hfd_slice){length, strcspn(length, "\r")}, 0, INT32_MAX, &bytes, NULL) ==
               HFD_OK &&
           (int64_t)strlen(end + 4) >= bytes;
}

/*
 * Reads the answers, and sends each of the other requests behind the last answer.
 * @return false: nothing comes any more
 */
static bool end_probes(const struct connection *c, char *out, size_t cap)
{
    size_t len = 0;
    ssize_t n = 1;

    out[0] = '\0';
    for (unsigned i = 0; i < c->count && n > 0; i++) {
        const char *answer = out + len;

        if (i > 0)
            send_probe(c, i);
        while (n > 0 && len + 1 < cap && (i + 1 == c->count || !is_whole(answer))) {
            struct pollfd p = {.fd = c->fd, .events = POLLIN};

            if (poll(&p, 1, PATIENCE_MS) != 1)
                return false;
            n = recv(c->fd, out + len, cap - len - 1, 0);
            len += n > 0 ? (size_t)n : 0;
            out[len] = '\0';
        }
    }
    return true;
}

/* Reads to the end. @return false: nothing comes any more */
static bool hear_all(int fd, char *out, size_t cap)
{
    return end_probes(&(struct connection){.fd = fd, .count = 1}, out, cap);
}

/* Each request has one answer, in order: the planned one, or 503. @return those with 503 */
static unsigned check_answers(const struct connection *c, const char *text)
{
    unsigned refused = 0;

    for (unsigned i = 0; i < c->count; i++) {
        const hfd_rc rc = planned(c->ids[i]);
        char body[32];
        int status;

        text = strstr(text, "HTTP/1.1 ");
        HFD_ASSERT(text != NULL);
        status = (text[9] - '0') * 100 + (text[10] - '0') * 10 + (text[11] - '0');
        (void)snprintf(body, sizeof(body), "id %u;", c->ids[i]);
        refused += status == 503;
        HFD_ASSERT(status == 503 || status == (rc == HFD_OK ? 200 : rc == HFD_INVALID ? 400 : 500));
        HFD_ASSERT(status != 200 || strstr(text, body) != NULL);
        HFD_ASSERT(atomic_load(&requests[c->ids[i]].answered) ==
                   atomic_load(&requests[c->ids[i]].handled));
        text += 9;
    }
    HFD_ASSERT(strstr(text, "HTTP/1.1 ") == NULL);
    return refused;
}

/* One of the threads with clients. */
struct crowd {
    pthread_t thread;
    struct test_rng rng;
    atomic_bool *ends; /* the server may stop: connections end early */
    unsigned answers, refused, left;
};

static void run_round(struct crowd *c)
{
    static _Thread_local char text[1 << 14];
    struct connection all[CONNECTIONS];

    for (int i = 0; i < CONNECTIONS; i++)
        begin_probes(&all[i], &c->rng);
    for (int i = 0; i < CONNECTIONS; i++) {
        if (all[i].fd < 0) {
            HFD_ASSERT(atomic_load(c->ends));
            continue;
        }
        if (all[i].stays) {
            HFD_ASSERT(end_probes(&all[i], text, sizeof(text)));
            if (!atomic_load(c->ends)) {
                c->refused += check_answers(&all[i], text);
                c->answers += all[i].count;
            }
        } else {
            const struct linger reset = {.l_onoff = 1};

            c->left++;
            for (uint64_t turns = test_rng_below(&c->rng, 50); turns > 0; turns--)
                (void)sched_yield();
            (void)setsockopt(all[i].fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
        }
        (void)close(all[i].fd);
    }
}

static void *crowd_main(void *arg)
{
    struct crowd *c = arg;

    for (int round = 0; round < ROUNDS; round++) {
        const unsigned before = c->refused;

        run_round(c);
        if (c->refused > before) /* it is no use to ask at once again */
            (void)poll(NULL, 0, 40);
    }
    return NULL;
}

static void start_crowds(struct crowd crowds[CLIENTS], uint64_t seed, atomic_bool *ends)
{
    for (int i = 0; i < CLIENTS; i++) {
        crowds[i] = (struct crowd){.ends = ends};
        test_rng_init(&crowds[i].rng, seed + (uint64_t)i);
        assert_int_equal(pthread_create(&crowds[i].thread, NULL, crowd_main, &crowds[i]), 0);
    }
}

struct cutter {
    pthread_t thread;
    atomic_bool stop;
    int count; /* connections that ended */
};

static void *cut_main(void *arg)
{
    struct cutter *c = arg;
    struct test_rng rng;

    test_rng_init(&rng, 5);
    while (!atomic_load(&c->stop)) {
        const unsigned before = atomic_load(&answered_well);

        c->count += test_place_cut(1 + (int)test_rng_below(&rng, 30));
        (void)poll(NULL, 0, 10 + (int)test_rng_below(&rng, 100));
        while (!atomic_load(&c->stop) && atomic_load(&answered_well) == before)
            (void)sched_yield(); /* a slow machine connects again first */
    }
    return NULL;
}

/* ---- rules ---- */

/* Loops, failures, cut connections and clients that leave at random; then the server stops. */
static void each_result_comes_once(void **state)
{
    static struct crowd crowds[CLIENTS];
    struct cutter cutter = {.stop = false};
    atomic_bool ends = false;
    struct test_rng rng;
    struct connection last = {.count = 0};
    unsigned answers = 0, refused = 0, left = 0;

    (void)state;
    assert_int_equal(pthread_create(&cutter.thread, NULL, cut_main, &cutter), 0);
    start_crowds(crowds, 1, &ends);
    for (int i = 0; i < CLIENTS; i++) {
        (void)pthread_join(crowds[i].thread, NULL);
        answers += crowds[i].answers;
        refused += crowds[i].refused;
        left += crowds[i].left;
    }
    atomic_store(&cutter.stop, true);
    (void)pthread_join(cutter.thread, NULL);
    print_message("             %u answers, %u of them 503; %u clients left, %d cuts\n", answers,
                  refused, left, cutter.count);
    assert_true(answers > 0 && left > 0 && (cutter.count > 0) == test_on_postgres());
    test_rng_init(&rng, 9);
    for (bool well = false; !well; (void)close(last.fd)) { /* it goes on by itself */
        char text[1 << 14];

        begin_probes(&last, &rng);
        assert_true(end_probes(&last, text, sizeof(text)));
        well = check_answers(&last, text) == 0;
    }
    atomic_store(&ends, true);
    start_crowds(crowds, 100, &ends);
    while (atomic_load(&requests[atomic_load(&next_id) / 2].handled) == 0 ||
           atomic_load(&next_id) < IDS / 2 + 200)
        (void)sched_yield();
    begin_stop();
    for (int i = 0; i < CLIENTS; i++)
        (void)pthread_join(crowds[i].thread, NULL);
    end_stop();
}

/* A read that holds the thread of the reads, until the gate opens. @return its connection */
static int hold_reads(void)
{
    static const char text[] = "GET /gate HTTP/1.1\r\nHost: localhost\r\n\r\n";
    const int fd = dial();

    atomic_store(&gate_closed, true);
    assert_true(send(fd, text, sizeof(text) - 1, MSG_NOSIGNAL) > 0);
    while (atomic_load(&at_gate) == 0)
        (void)sched_yield();
    return fd;
}

/* A connection with one request, which makes one read that succeeds. */
static struct connection send_good(void)
{
    struct connection c = {.fd = dial(), .count = 1};
    char text[128];

    do
        c.ids[0] = atomic_fetch_add(&next_id, 1);
    while (planned(c.ids[0]) != HFD_OK || c.ids[0] % 3 == 2);
    (void)snprintf(text, sizeof(text),
                   "GET /probe/%u HTTP/1.1\r\nHost: localhost\r\nX-Here: 1\r\n"
                   "Connection: close\r\n\r\n",
                   c.ids[0]);
    assert_true(send(c.fd, text, strlen(text), MSG_NOSIGNAL) > 0);
    return c;
}

/* Reads that find no place are refused at once. Those that wait are answered, in a stop as well. */
static void a_full_queue_refuses(void **state)
{
    struct connection all[QUEUE_MAX + 3];
    struct pollfd polled[QUEUE_MAX + 3];
    char text[1 << 14];
    int gate, refused = 0;

    (void)state;
    if (!test_on_postgres()) /* there the loops read */
        skip();
    gate = hold_reads();
    for (int i = 0; i < QUEUE_MAX + 3; i++) {
        all[i] = send_good();
        polled[i] = (struct pollfd){.fd = all[i].fd, .events = POLLIN};
    }
    while (refused < 3) {
        assert_true(poll(polled, QUEUE_MAX + 3, PATIENCE_MS) > 0);
        for (int i = 0; i < QUEUE_MAX + 3; i++)
            if (polled[i].fd >= 0 && polled[i].revents != 0) {
                assert_true(hear_all(all[i].fd, text, sizeof(text)));
                assert_contains(hfd_slice_of(text), "HTTP/1.1 503 ");
                assert_contains(hfd_slice_of(text), "\r\nRetry-After: ");
                refused++;
                polled[i].fd = -1;
            }
    }
    begin_stop();
    atomic_store(&gate_closed, false);
    for (int i = 0; i < QUEUE_MAX + 3; i++) {
        if (polled[i].fd >= 0) {
            assert_true(hear_all(all[i].fd, text, sizeof(text)));
            assert_int_equal(check_answers(&all[i], text), 0);
        }
        (void)close(all[i].fd);
    }
    (void)close(gate);
    end_stop();
}

/* A stop that lasts too long cuts connections. Their reads go on, and their results come later. */
static void results_outlive_connections(void **state)
{
    struct connection all[QUEUE_MAX];
    char text[1 << 14];
    int gate;

    (void)state;
    if (!test_on_postgres())
        skip();
    gate = hold_reads();
    for (int i = 0; i < QUEUE_MAX; i++)
        all[i] = send_good();
    for (int i = 0; i < QUEUE_MAX; i++)
        while (atomic_load(&requests[all[i].ids[0]].handled) == 0)
            (void)sched_yield();
    begin_stop();
    for (int fd; (fd = dial()) >= 0; (void)close(fd)) /* every loop has seen it then */
        ;
    atomic_fetch_add(&added_us, 3600 * HFD_US_PER_S);
    for (int i = 0; i < QUEUE_MAX; i++) {
        assert_true(hear_all(all[i].fd, text, sizeof(text)));
        assert_string_equal(text, "");
        (void)close(all[i].fd);
    }
    assert_true(hear_all(gate, text, sizeof(text)));
    (void)close(gate);
    atomic_store(&gate_closed, false);
    end_stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_result_comes_once, start, finish),
        cmocka_unit_test_setup_teardown(a_full_queue_refuses, start, finish),
        cmocka_unit_test_setup_teardown(results_outlive_connections, start, finish),
    };

    hfd_log_set_fd(open("/dev/null", O_WRONLY | O_CLOEXEC));
    return hfd_base_init(NULL) == HFD_OK ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
