/*
 * See amqp.h. libcurl makes the connection, with TLS and deadlines. librabbitmq encodes and decodes
 * methods. Its own connections wait without an end for a broker that reads nothing, as RabbitMQ
 * does when it lacks memory. They keep each frame of an unknown type. Sources: AMQP 0-9-1;
 * RabbitMQ, Consumer Acknowledgements and Publisher Confirms.
 */
#include "driver/events/amqp.h"

#include "driver/base/buf.h"
#include "driver/base/foreign.h"
#include "driver/base/password.h"

#include <amqp.h>
#include <amqp_framing.h>
#include <curl/curl.h>

#include <endian.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#define HEAD_BYTES 7         /* of a frame: type, channel, size; one more byte is its end */
#define FRAME_MAX_BYTES 8192 /* of both sides; RabbitMQ 4.1 takes no less */
#define BODY_MAX_BYTES (FRAME_MAX_BYTES - HEAD_BYTES - 1)
#define OUT_MAX_BYTES ((size_t)64 << 20)
#define CHANNEL 1 /* the only one; 0 is the connection itself */
#define HEARTBEAT_S 60
#define US_PER_MS 1000

struct amqp {
    struct hfd_amqp_place place;
    CURL *easy; /* NULL = there is no connection */
    int64_t deadline_us;
    struct hfd_err err; /* why the connection failed */
    uint64_t tag;       /* of the last event that was published on this connection */
    amqp_pool_t pool;   /* what was decoded of the last frame */
    size_t in_len;
    unsigned char in[FRAME_MAX_BYTES]; /* payload of the last frame, and its end */
    struct hfd_buf out;                /* frames that are not written yet */
};

/* Keeps why the connection failed. @return false */
static bool fail(struct amqp *a, hfd_rc rc, const char *what, hfd_slice words)
{
    char line[160];
    const size_t len = hfd_foreign_line(words, sizeof(line), line);

    (void)hfd_fail(&a->err, rc, "%.100s:%d: %s%.*s", a->place.url.host, a->place.url.port, what,
                   (int)len, line);
    return false;
}

static bool fail_answer(struct amqp *a)
{
    return fail(a, HFD_MALFORMED, "it does not answer as a RabbitMQ broker", HFD_SLICE(""));
}

/* ---- bytes ---- */

static int64_t left_us(const struct amqp *a)
{
    return a->deadline_us - hfd_clock_mono_us(&hfd_clock_system);
}

/* True if it can be read or written, or has ended. Waits for that. */
static bool is_ready(const struct amqp *a, short events, int64_t timeout_us)
{
    curl_socket_t fd = CURL_SOCKET_BAD;
    struct pollfd p = {.events = events};

    (void)curl_easy_getinfo(a->easy, CURLINFO_ACTIVESOCKET, &fd);
    p.fd = fd;
    return fd == CURL_SOCKET_BAD || poll(&p, 1, (int)(timeout_us / US_PER_MS) + 1) != 0;
}

/* Goes on after a piece. A peer that never stops meets the deadline too. */
static bool go_on(struct amqp *a, CURLcode code, short events)
{
    const int64_t us = left_us(a);

    if (us <= 0 || (code == CURLE_AGAIN && !is_ready(a, events, us)))
        return fail(a, HFD_TIMEOUT, "no answer in time", HFD_SLICE(""));
    return code == CURLE_OK || code == CURLE_AGAIN ||
           fail(a, HFD_AWAY, "the connection was lost", HFD_SLICE(""));
}

static bool flush(struct amqp *a)
{
    bool ok = a->out.rc == HFD_OK || fail(a, a->out.rc, "too much at a time", HFD_SLICE(""));
    size_t n;

    for (size_t at = 0; ok && at < a->out.len; at += n) {
        const CURLcode code = curl_easy_send(a->easy, a->out.p + at, a->out.len - at, &n);

        n = code == CURLE_OK ? n : 0;
        ok = go_on(a, code, POLLOUT);
    }
    if (a->out.p != NULL)
        explicit_bzero(a->out.p, a->out.len);
    hfd_buf_reset(&a->out);
    return ok;
}

static bool receive(struct amqp *a, unsigned char *p, size_t len)
{
    bool ok = true;
    size_t n;

    for (; ok && len > 0; p += n, len -= n) {
        CURLcode code = curl_easy_recv(a->easy, p, len, &n);

        if (code == CURLE_OK && n == 0)
            code = CURLE_RECV_ERROR; /* its end */
        n = code == CURLE_OK ? n : 0;
        ok = go_on(a, code, POLLIN);
    }
    return ok;
}

/* ---- frames ---- */

static void put_frame(struct amqp *a, uint8_t type, uint16_t channel, hfd_slice payload)
{
    const struct __attribute__((packed)) {
        uint8_t type;
        uint16_t channel;
        uint32_t len;
    } head = {type, htobe16(channel), htobe32((uint32_t)payload.len)};

    hfd_buf_add(&a->out, (hfd_slice){(const char *)&head, sizeof(head)});
    hfd_buf_add(&a->out, payload);
    hfd_buf_addc(&a->out, (char)AMQP_FRAME_END);
}

static void put_method(struct amqp *a, uint16_t channel, amqp_method_number_t id, void *method)
{
    unsigned char p[AMQP_FRAME_MIN_SIZE - HEAD_BYTES - 1];
    const uint32_t id_be = htobe32(id);
    /* It fits: each name and the password have a limit. */
    const int len = amqp_encode_method(
        id, method, (amqp_bytes_t){sizeof(p) - sizeof(id_be), p + sizeof(id_be)});

    memcpy(p, &id_be, sizeof(id_be));
    put_frame(a, AMQP_FRAME_METHOD, channel,
              (hfd_slice){(const char *)p, sizeof(id_be) + (len > 0 ? (size_t)len : 0)});
    explicit_bzero(p, sizeof(p));
}

/* Reads a frame, after a look at its size. @param id  of its method; 0 = it has none */
static bool read_frame(struct amqp *a, amqp_method_number_t *id)
{
    unsigned char head[HEAD_BYTES];
    uint32_t be;

    *id = 0;
    if (!receive(a, head, sizeof(head)))
        return false;
    memcpy(&be, head + 3, sizeof(be));
    a->in_len = be32toh(be);
    if (a->in_len > BODY_MAX_BYTES || head[1] != 0 || head[2] > CHANNEL)
        return fail_answer(a);
    if (!receive(a, a->in, a->in_len + 1))
        return false;
    if (head[0] == AMQP_FRAME_METHOD && a->in_len >= sizeof(be)) {
        memcpy(&be, a->in, sizeof(be));
        *id = be32toh(be);
    }
    return a->in[a->in_len] == AMQP_FRAME_END || fail_answer(a);
}

/* The method of the last frame; NULL = it is broken. Valid until the next one. */
static const void *decoded(struct amqp *a, amqp_method_number_t id)
{
    const amqp_bytes_t bytes = {a->in_len - sizeof(id), a->in + sizeof(id)};
    void *method = NULL;

    recycle_amqp_pool(&a->pool);
    return amqp_decode_method(id, &a->pool, bytes, &method) >= 0 ? method : NULL;
}

/* Reads up to the next method. A broker that closes the connection or the channel is a failure. */
static bool read_method(struct amqp *a, amqp_method_number_t *id)
{
    const amqp_connection_close_t *m; /* the channel's has the same fields */
    bool ok;

    do
        ok = read_frame(a, id);
    while (ok && *id == 0);
    if (!ok || (*id != AMQP_CONNECTION_CLOSE_METHOD && *id != AMQP_CHANNEL_CLOSE_METHOD))
        return ok;
    m = decoded(a, *id);
    return m == NULL
               ? fail_answer(a)
               : fail(a, HFD_CONFLICT,
                      "the broker refuses: ", (hfd_slice){m->reply_text.bytes, m->reply_text.len});
}

/* Writes what is there, and reads the method that has to come now. */
static bool expect(struct amqp *a, amqp_method_number_t wanted)
{
    amqp_method_number_t id;

    return flush(a) && read_method(a, &id) && (id == wanted || fail_answer(a));
}

static bool ask(struct amqp *a, uint16_t channel, amqp_method_number_t id, void *method,
                amqp_method_number_t wanted)
{
    put_method(a, channel, id, method);
    return expect(a, wanted);
}

/* ---- the connection ---- */

static void disconnect(struct amqp *a)
{
    curl_easy_cleanup(a->easy);
    a->easy = NULL;
    hfd_buf_reset(&a->out);
}

static bool connect_to(struct amqp *a)
{
    const struct hfd_amqp_url *u = &a->place.url;
    const char *ca_file = a->place.ca_file;
    char url[HFD_AMQP_NAME_MAX + 32], why[CURL_ERROR_SIZE] = "";
    const struct {
        CURLoption option;
        long value;
    } numbers[] = {{CURLOPT_CONNECT_ONLY, 1},
                   {CURLOPT_CONNECTTIMEOUT_MS, (long)(left_us(a) / US_PER_MS) + 1},
                   {CURLOPT_NOSIGNAL, 1},
                   {CURLOPT_QUICK_EXIT, 1}, /* waits for no name server at the end */
                   {CURLOPT_TCP_KEEPALIVE, 1},
                   {CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2},
                   {CURLOPT_SSL_ENABLE_ALPN, 0}};
    const struct {
        CURLoption option;
        const char *value;
    } texts[] = {{CURLOPT_URL, url},
                 {CURLOPT_PROXY, ""},
                 {CURLOPT_ERRORBUFFER, why},
                 {CURLOPT_CAPATH, NULL}, /* these two only with a file */
                 {CURLOPT_CAINFO, ca_file}};
    const size_t text_count = ca_file != NULL ? 5 : 3;
    CURLcode code = CURLE_OK;

    (void)snprintf(url, sizeof(url), "http%s://%s:%d", u->tls ? "s" : "", u->host, u->port);
    a->easy = curl_easy_init();
    if (a->easy == NULL)
        return fail(a, HFD_NOMEM, "could not connect: out of memory", HFD_SLICE(""));
    for (size_t i = 0; code == CURLE_OK && i < sizeof(numbers) / sizeof(numbers[0]); i++)
        code = curl_easy_setopt(a->easy, numbers[i].option, numbers[i].value);
    for (size_t i = 0; code == CURLE_OK && i < text_count; i++)
        code = curl_easy_setopt(a->easy, texts[i].option, texts[i].value);
    if (code == CURLE_OK)
        code = curl_easy_perform(a->easy);
    (void)curl_easy_setopt(a->easy, CURLOPT_ERRORBUFFER, NULL);
    return code == CURLE_OK || fail(a, HFD_AWAY, "could not connect: ",
                                    hfd_slice_of(why[0] != '\0' ? why : curl_easy_strerror(code)));
}

static amqp_bytes_t bytes_of(hfd_slice s)
{
    return (amqp_bytes_t){s.len, (void *)(uintptr_t)s.p};
}

/* Proves the user. The broker says why it refuses only to a client with this capability. */
static bool put_login(struct amqp *a)
{
    char response[HFD_AMQP_NAME_MAX + HFD_PASSWORD_MAX + 1], *password = response + 1;
    amqp_table_entry_t reason = {.key = amqp_cstring_bytes("authentication_failure_close"),
                                 .value = {.kind = AMQP_FIELD_KIND_BOOLEAN, .value.boolean = 1}};
    amqp_table_entry_t about[] = {
        {.key = amqp_cstring_bytes("product"),
         .value = {.kind = AMQP_FIELD_KIND_UTF8,
                   .value.bytes = amqp_cstring_bytes("hyperfleet-driver " HFD_VERSION)}},
        {.key = amqp_cstring_bytes("capabilities"),
         .value = {.kind = AMQP_FIELD_KIND_TABLE, .value.table = {1, &reason}}}};
    amqp_connection_start_ok_t m = {
        {2, about}, amqp_cstring_bytes("PLAIN"), {0, response}, amqp_cstring_bytes("en_US")};
    bool ok;

    response[0] = '\0';
    password = stpcpy(password, a->place.url.user) + 1;
    memcpy(password, "guest", sizeof("guest"));
    ok = a->place.password_file == NULL ||
         hfd_password_read("events.amqp.password_file", a->place.password_file, password,
                           &a->err) == HFD_OK;
    m.response.len = (size_t)(password - response) + strlen(password);
    if (ok)
        put_method(a, 0, AMQP_CONNECTION_START_OK_METHOD, &m);
    explicit_bzero(response, sizeof(response));
    return ok;
}

static bool log_in(struct amqp *a)
{
    amqp_connection_open_t open = {amqp_cstring_bytes(a->place.url.vhost), amqp_empty_bytes, 0};
    amqp_connection_tune_ok_t ours = {CHANNEL, FRAME_MAX_BYTES, HEARTBEAT_S};
    const amqp_connection_tune_t *tune;

    hfd_buf_lit(&a->out, "AMQP\0\0\x09\x01");
    if (!expect(a, AMQP_CONNECTION_START_METHOD) || !put_login(a) ||
        !expect(a, AMQP_CONNECTION_TUNE_METHOD))
        return false;
    tune = decoded(a, AMQP_CONNECTION_TUNE_METHOD);
    if (tune == NULL || (tune->frame_max != 0 && tune->frame_max < ours.frame_max))
        return fail(a, HFD_CONFLICT, "expected a broker with a frame_max of 8192 or more",
                    HFD_SLICE(""));
    put_method(a, 0, AMQP_CONNECTION_TUNE_OK_METHOD, &ours);
    return ask(a, 0, AMQP_CONNECTION_OPEN_METHOD, &open, AMQP_CONNECTION_OPEN_OK_METHOD);
}

/* Makes the exchanges, unless they are there, and asks for confirms. */
static bool prepare(struct amqp *a)
{
    amqp_channel_open_t open = {amqp_empty_bytes};
    amqp_confirm_select_t confirm = {0};
    bool ok = ask(a, CHANNEL, AMQP_CHANNEL_OPEN_METHOD, &open, AMQP_CHANNEL_OPEN_OK_METHOD);

    for (int kind = HFD_KIND_CLUSTER; ok && kind <= HFD_KIND_NODEPOOL; kind++) {
        amqp_exchange_declare_t m = {.exchange = bytes_of(a->place.exchanges[kind]),
                                     .type = amqp_cstring_bytes("topic"),
                                     .durable = 1};

        ok = ask(a, CHANNEL, AMQP_EXCHANGE_DECLARE_METHOD, &m, AMQP_EXCHANGE_DECLARE_OK_METHOD);
    }
    a->tag = 0;
    return ok &&
           ask(a, CHANNEL, AMQP_CONFIRM_SELECT_METHOD, &confirm, AMQP_CONFIRM_SELECT_OK_METHOD);
}

/* ---- events ---- */

static void put_event(struct amqp *a, const struct hfd_outgoing *e)
{
    amqp_basic_publish_t m = {.exchange = bytes_of(a->place.exchanges[e->kind]), .mandatory = 1};
    amqp_table_entry_t id = {
        .key = amqp_cstring_bytes("_watermill_message_uuid"),
        .value = {.kind = AMQP_FIELD_KIND_UTF8, .value.bytes = bytes_of(e->id)}};
    amqp_basic_properties_t about = {._flags =
                                         AMQP_BASIC_HEADERS_FLAG | AMQP_BASIC_DELIVERY_MODE_FLAG,
                                     .headers = {1, &id},
                                     .delivery_mode = AMQP_DELIVERY_PERSISTENT};
    struct __attribute__((packed)) {
        uint16_t class_id, weight;
        uint64_t size;
        char about[512];
    } head = {htobe16(AMQP_BASIC_CLASS), 0, htobe64(e->body.len), ""};
    const int len = amqp_encode_properties(AMQP_BASIC_CLASS, &about,
                                           (amqp_bytes_t){sizeof(head.about), head.about});
    hfd_slice rest = e->body;

    put_method(a, CHANNEL, AMQP_BASIC_PUBLISH_METHOD, &m);
    put_frame(a, AMQP_FRAME_HEADER, CHANNEL,
              (hfd_slice){(const char *)&head,
                          sizeof(head) - sizeof(head.about) + (len > 0 ? (size_t)len : 0)});
    while (rest.len > 0) {
        const size_t n = rest.len < BODY_MAX_BYTES ? rest.len : BODY_MAX_BYTES;

        put_frame(a, AMQP_FRAME_BODY, CHANNEL, (hfd_slice){rest.p, n});
        rest = (hfd_slice){rest.p + n, rest.len - n};
    }
}

/* The word of the broker on an event. A return comes before its confirm. */
enum word {
    WAITING,
    RETURNED,
    CONFIRMED,
    UNROUTED,
    REFUSED
};

/* The events of a call, and what the broker has said of each. */
struct batch {
    struct hfd_outgoing *events;
    size_t count, waiting;
    unsigned char *words;
    uint64_t first_tag;
};

/* Takes a confirm. One that is not waited for changes nothing. */
static void settle(struct batch *b, uint64_t tag, bool multiple, bool refused)
{
    for (size_t i = 0; i < b->count; i++) {
        const uint64_t its = b->first_tag + i;

        if (b->words[i] > RETURNED || (multiple ? its > tag : its != tag))
            continue;
        b->words[i] = refused ? REFUSED : b->words[i] == RETURNED ? UNROUTED : CONFIRMED;
        b->waiting--;
    }
}

/* Takes a word of the broker. A return does not say of which event it is: it counts for all of its
 * exchange that wait, as these meet the same bindings. */
static bool take_word(struct amqp *a, struct batch *b, amqp_method_number_t id)
{
    const bool refused = id == AMQP_BASIC_NACK_METHOD, is_return = id == AMQP_BASIC_RETURN_METHOD;
    const void *m = refused || is_return || id == AMQP_BASIC_ACK_METHOD ? decoded(a, id) : NULL;

    if (m == NULL)
        return fail_answer(a);
    if (is_return) {
        const amqp_bytes_t exchange = ((const amqp_basic_return_t *)m)->exchange;

        for (size_t i = 0; i < b->count; i++)
            if (b->words[i] == WAITING && hfd_slice_eq(a->place.exchanges[b->events[i].kind],
                                                       (hfd_slice){exchange.bytes, exchange.len}))
                b->words[i] = RETURNED;
    } else {
        const amqp_basic_ack_t *confirm = m; /* a nack begins with the same fields */

        settle(b, confirm->delivery_tag, confirm->multiple != 0, refused);
    }
    return true;
}

/* Publishes all, and reads until the broker has said its word of each. */
static bool publish(struct amqp *a, struct batch *b)
{
    amqp_method_number_t id;
    bool ok = a->easy != NULL || (connect_to(a) && log_in(a) && prepare(a));

    b->first_tag = a->tag + 1;
    for (size_t i = 0; ok && i < b->count; i++)
        put_event(a, &b->events[i]);
    a->tag += b->count;
    ok = ok && flush(a);
    while (ok && b->waiting > 0)
        ok = read_method(a, &id) && take_word(a, b, id);
    if (!ok)
        disconnect(a);
    return ok;
}

/* Says which events are sent. @return the words of the first that is not */
static hfd_rc judge(const struct amqp *a, const struct batch *b, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    for (size_t i = b->count; i-- > 0;) {
        const hfd_slice exchange = a->place.exchanges[b->events[i].kind];

        b->events[i].sent = b->words[i] == CONFIRMED;
        if (b->words[i] == UNROUTED || b->words[i] == REFUSED)
            rc = hfd_fail(err, HFD_CONFLICT, "%.100s:%d: exchange %.*s %s", a->place.url.host,
                          a->place.url.port, HFD_SLICE_FMT(exchange),
                          b->words[i] == UNROUTED ? "has no queue for it: bind one"
                                                  : "did not take it: see the broker's log");
        else if (b->words[i] != CONFIRMED)
            rc = hfd_fail(err, a->err.rc, "%s", a->err.msg);
    }
    return rc;
}

/* Sends a heartbeat, and reads the broker's. A method means that it closes the connection. */
static void beat(struct amqp *a)
{
    amqp_method_number_t id = 0;
    bool ok;

    put_frame(a, AMQP_FRAME_HEARTBEAT, 0, HFD_SLICE(""));
    ok = flush(a);
    while (ok && is_ready(a, POLLIN, 0))
        ok = read_frame(a, &id) && id == 0;
    if (!ok)
        disconnect(a);
}

static hfd_rc send_events(void *ctx, struct hfd_outgoing *events, size_t count, struct hfd_err *err)
{
    struct amqp *a = ctx;
    struct batch b = {.events = events, .count = count, .waiting = count};
    const bool is_kept = a->easy != NULL;
    hfd_rc rc;

    a->deadline_us = hfd_clock_mono_us(&hfd_clock_system) + HFD_SEND_MAX_US;
    if (count == 0) {
        if (is_kept)
            beat(a);
        return HFD_OK;
    }
    b.words = calloc(count, sizeof(*b.words));
    if (b.words == NULL)
        return hfd_fail_nomem(err, "send events");
    /* A kept connection may have ended long before: then a new one carries the events. */
    if (!publish(a, &b) && is_kept && b.waiting == count && left_us(a) > 0) {
        memset(b.words, WAITING, count);
        (void)publish(a, &b);
    }
    rc = judge(a, &b, err);
    free(b.words);
    return rc;
}

static void close_sender(void *ctx)
{
    struct amqp *a = ctx;
    amqp_connection_close_t m = {.reply_code = AMQP_REPLY_SUCCESS};

    a->deadline_us = hfd_clock_mono_us(&hfd_clock_system) + HFD_US_PER_S;
    if (a->easy != NULL)
        (void)ask(a, 0, AMQP_CONNECTION_CLOSE_METHOD, &m, AMQP_CONNECTION_CLOSE_OK_METHOD);
    disconnect(a);
    hfd_buf_fini(&a->out);
    empty_amqp_pool(&a->pool);
    free(a);
    curl_global_cleanup();
}

hfd_rc hfd_amqp_open(const struct hfd_amqp_place *place, struct hfd_sender *out,
                     struct hfd_err *err)
{
    struct amqp *a = calloc(1, sizeof(*a));

    if (a == NULL || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        free(a);
        return hfd_fail_nomem(err, "open a sender");
    }
    a->place = *place;
    hfd_buf_init(&a->out, OUT_MAX_BYTES);
    init_amqp_pool(&a->pool, sizeof(a->in));
    *out = (struct hfd_sender){.send = send_events, .close = close_sender, .ctx = a};
    return HFD_OK;
}
