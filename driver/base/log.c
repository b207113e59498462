/* Log lines: built on the stack, written with one write(2), dropped if that would block. */
#include "driver/base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "driver/base/clock.h"
#include "driver/base/foreign.h"
#include "driver/base/metrics.h"
#include "driver/base/trace.h"

/* PIPE_BUF on Linux: writes to a pipe of at most this size are never mixed. */
#define LINE_MAX_BYTES 4096
#define CUT_MARK ",\"cut\":true"
#define TEXT_CUT_MARK " cut=true"
/* Reserved for the end of a full line: the quote of a string, the mark, the end of the object. */
#define TAIL_MAX (sizeof("\"" CUT_MARK "}\n") - 1)
#define REQUEST_ID_MAX 40
#define NUMBER_MAX 24

static atomic_int min_level = HFD_LOG_INFO;
static atomic_int out_fd = -1;
static atomic_bool as_text;
/* Held from poll to write, so that no other thread fills the pipe in between. */
static pthread_mutex_t out_lock = PTHREAD_MUTEX_INITIALIZER;
static int64_t out_dropped; /* lines dropped since the last line written; under the lock */

static _Thread_local struct {
    char p[REQUEST_ID_MAX];
    size_t len;
} request_id;

static const char *const level_names[] = {
    [HFD_LOG_DEBUG] = "debug",
    [HFD_LOG_INFO] = "info",
    [HFD_LOG_WARN] = "warn",
    [HFD_LOG_ERROR] = "error",
};
#define LEVEL_COUNT (sizeof(level_names) / sizeof(level_names[0]))

struct line {
    size_t len;
    bool cut;
    bool text; /* not JSON */
    char p[LINE_MAX_BYTES];
};

void hfd_log_set_level(enum hfd_log_level level)
{
    atomic_store_explicit(&min_level, (int)level, memory_order_relaxed);
}

bool hfd_log_enabled(enum hfd_log_level level)
{
    return (int)level >= atomic_load_explicit(&min_level, memory_order_relaxed);
}

const char *hfd_log_level_name(enum hfd_log_level level)
{
    return (size_t)level < LEVEL_COUNT ? level_names[level] : "error";
}

hfd_rc hfd_log_level_parse(hfd_slice text, enum hfd_log_level *out, struct hfd_err *err)
{
    *out = HFD_LOG_INFO;
    for (size_t i = 0; i < LEVEL_COUNT; i++) {
        if (hfd_slice_is(text, level_names[i])) {
            *out = (enum hfd_log_level)i;
            return HFD_OK;
        }
    }
    return hfd_fail(err, HFD_INVALID, "expected debug, info, warn or error, got \"%.*s\"",
                    (int)(text.len < 40 ? text.len : 40), text.len > 0 ? text.p : "");
}

void hfd_log_set_text(bool text)
{
    atomic_store_explicit(&as_text, text, memory_order_relaxed);
}

void hfd_log_set_fd(int fd)
{
    pthread_mutex_lock(&out_lock);
    atomic_store_explicit(&out_fd, fd, memory_order_relaxed);
    out_dropped = 0;
    pthread_mutex_unlock(&out_lock);
}

void hfd_log_request_id(hfd_slice id)
{
    request_id.len = hfd_foreign_cut(id, REQUEST_ID_MAX);
    if (request_id.len > 0)
        memcpy(request_id.p, id.p, request_id.len);
}

/* Adds all of the bytes, or none if the line is full. */
static bool put(struct line *l, const char *p, size_t n)
{
    if (l->cut || l->len + n > LINE_MAX_BYTES - TAIL_MAX) {
        l->cut = true;
        return false;
    }
    memcpy(l->p + l->len, p, n);
    l->len += n;
    return true;
}

/* Adds a string with its quotes. If the line is full, the string is cut but still closed. */
static void put_string(struct line *l, hfd_slice s)
{
    struct hfd_foreign f = hfd_foreign_of(s);
    char shown[HFD_FOREIGN_CHAR_MAX];

    if (!put(l, "\"", 1))
        return;
    while (f.rest.len > 0 && !l->cut) {
        hfd_slice piece = hfd_foreign_next(&f, shown);

        const size_t room = LINE_MAX_BYTES - TAIL_MAX - l->len;
        const bool is_run = piece.p != shown; /* of characters of one byte */

        if (piece.len == 1 && (*piece.p == '"' || *piece.p == '\\')) {
            shown[1] = *piece.p;
            shown[0] = '\\';
            piece = (hfd_slice){shown, 2};
        } else if (is_run && piece.len > room) {
            (void)put(l, piece.p, room);
        }
        (void)put(l, piece.p, piece.len);
    }
    l->p[l->len++] = '"'; /* TAIL_MAX keeps this place free */
}

/* True for a value of a text line that needs no quotes. */
static bool is_bare(hfd_slice s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.p[i] <= ' ' || s.p[i] > '~' || s.p[i] == '"' || s.p[i] == '=')
            return false;
    return s.len > 0 && hfd_foreign_secret(s).p == NULL;
}

/* Adds ` key=` to a text line. */
static bool put_text_key(struct line *l, const char *key)
{
    const size_t before = l->len;

    if (put(l, " ", 1) && put(l, key, strlen(key)) && put(l, "=", 1) &&
        l->len + NUMBER_MAX <= LINE_MAX_BYTES - TAIL_MAX)
        return true;
    l->len = before;
    l->cut = true;
    return false;
}

/* Adds `,"key":`, or nothing if no value would fit behind it. */
static bool put_key(struct line *l, const char *key)
{
    size_t before = l->len;
    char last = before > 0 ? l->p[before - 1] : '\0';

    if (l->text)
        return put_text_key(l, key);
    if (last != '{' && !put(l, ",", 1))
        return false;
    put_string(l, hfd_slice_of(key));
    put(l, ":", 1);
    /* Room for at least a number, or the quotes and one character. */
    if (!l->cut && l->len + NUMBER_MAX <= LINE_MAX_BYTES - TAIL_MAX)
        return true;
    l->len = before;
    l->cut = true;
    return false;
}

static void put_field(struct line *l, const struct hfd_log_field *f)
{
    char number[NUMBER_MAX];
    int n;

    if (!put_key(l, f->key))
        return;
    if (f->kind == HFD_LOG_F_STR) {
        if (!l->text || !is_bare(f->str) || !put(l, f->str.p, f->str.len))
            put_string(l, f->str);
        return;
    }
    n = snprintf(number, sizeof(number), "%" PRId64, f->num);
    put(l, number, (size_t)n);
}

static void put_text_field(struct line *l, const char *key, hfd_slice value)
{
    const struct hfd_log_field f = HFD_LOG_STR(key, value);

    put_field(l, &f);
}

static bool names_request(const struct hfd_log_field *fields, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(fields[i].key, "request_id") == 0)
            return true;
    return false;
}

static void end_line(struct line *l)
{
    const hfd_slice mark = l->text ? HFD_SLICE(TEXT_CUT_MARK) : HFD_SLICE(CUT_MARK),
                    end = l->text ? HFD_SLICE("\n") : HFD_SLICE("}\n");

    if (l->cut) {
        memcpy(l->p + l->len, mark.p, mark.len);
        l->len += mark.len;
    }
    memcpy(l->p + l->len, end.p, end.len);
    l->len += end.len;
}

static void begin_line(struct line *l, enum hfd_log_level level, const char *msg)
{
    char ts[HFD_TIME_TEXT_MAX];
    size_t ts_len = hfd_time_format_us(hfd_clock_wall_us(&hfd_clock_system), ts);

    l->len = 0;
    l->cut = false;
    l->text = atomic_load_explicit(&as_text, memory_order_relaxed);
    if (l->text) {
        l->len = (size_t)snprintf(l->p, sizeof(l->p), "%.*s %-5s %.200s", (int)ts_len, ts,
                                  hfd_log_level_name(level), msg);
        return;
    }
    put(l, "{", 1);
    put_text_field(l, "ts", (hfd_slice){ts, ts_len});
    put_text_field(l, "level", hfd_slice_of(hfd_log_level_name(level)));
    put_text_field(l, "msg", hfd_slice_of(msg));
}

/*
 * Returns true if a write would not block. For a pipe, POLLOUT promises room for PIPE_BUF bytes,
 * and no line is longer. If poll fails, the write finds out.
 */
static bool is_writable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    int n;

    do {
        n = poll(&p, 1, 0);
    } while (n < 0 && errno == EINTR);
    return n != 0;
}

/*
 * Writes the line if that does not block. Returns false if the line must be dropped because its
 * reader does not read. Any other error loses the line without a word: there is no place to log it.
 */
static bool try_write(int fd, const struct line *l)
{
    ssize_t n;

    if (!is_writable(fd))
        return false;
    do {
        n = write(fd, l->p, l->len);
    } while (n < 0 && errno == EINTR);
    return n >= 0 || errno != EAGAIN;
}

/* Writes how many lines were dropped, in their place. Under the lock. */
static bool write_dropped(int fd)
{
    const struct hfd_log_field f = HFD_LOG_INT("lines", out_dropped);
    struct line l;

    begin_line(&l, HFD_LOG_WARN, "log lines dropped");
    put_field(&l, &f);
    end_line(&l);
    if (!try_write(fd, &l))
        return false;
    out_dropped = 0;
    return true;
}

static void write_line(const struct line *l)
{
    int fd = atomic_load_explicit(&out_fd, memory_order_relaxed);
    bool written;

    fd = fd >= 0 ? fd : STDERR_FILENO;
    pthread_mutex_lock(&out_lock);
    written = (out_dropped == 0 || write_dropped(fd)) && try_write(fd, l);
    if (!written)
        out_dropped++;
    pthread_mutex_unlock(&out_lock);
    if (!written)
        hfd_metric_add(HFD_METRIC_LOG_DROPPED, NULL, 1);
}

void hfd_log_write(enum hfd_log_level level, const char *msg, const struct hfd_log_field *fields,
                   size_t n)
{
    const hfd_slice trace = hfd_trace_id(hfd_trace_now());
    int saved_errno = errno;
    struct line l;

    begin_line(&l, level, msg);
    if (request_id.len > 0 && !names_request(fields, n))
        put_text_field(&l, "request_id", (hfd_slice){request_id.p, request_id.len});
    if (trace.len > 0)
        put_text_field(&l, "trace", trace);
    for (size_t i = 0; i < n && !l.cut; i++)
        put_field(&l, &fields[i]);
    end_line(&l);
    write_line(&l);
    errno = saved_errno;
}
