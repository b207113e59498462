/*
 * Lines on stderr, JSON or text: one object a line, one write() a line, so lines of several threads
 * never mix. If the reader of the log does not read and its pipe is full, lines are dropped at
 * once. They are counted in hfd_log_lines_dropped_total; the next line that can be written is "log
 * lines dropped" with their number. Callers name each field, so bodies, headers and secrets stay
 * out. Thread: any.
 *
 * {"ts":"2025-01-01T00:00:00.000001Z","level":"info","msg":"request","request_id":"...", ...}
 * 2025-01-01T00:00:00.000001Z info  request request_id=... path="/a b"
 */
#ifndef HFD_BASE_LOG_H
#define HFD_BASE_LOG_H

#include "driver/base/slice.h"

enum hfd_log_level {
    HFD_LOG_DEBUG,
    HFD_LOG_INFO,
    HFD_LOG_WARN,
    HFD_LOG_ERROR
};

struct hfd_log_field {
    const char *key;
    enum {
        HFD_LOG_F_STR,
        HFD_LOG_F_INT
    } kind;
    hfd_slice str;
    int64_t num;
};

#define HFD_LOG_STR(k, s)                                                                          \
    {                                                                                              \
        .key = (k), .kind = HFD_LOG_F_STR, .str = (s)                                              \
    }
#define HFD_LOG_CSTR(k, s)                                                                         \
    {                                                                                              \
        .key = (k), .kind = HFD_LOG_F_STR, .str = hfd_slice_of(s)                                  \
    }
#define HFD_LOG_INT(k, v)                                                                          \
    {                                                                                              \
        .key = (k), .kind = HFD_LOG_F_INT, .num = (int64_t)(v)                                     \
    }

/** Sets the lowest level that HFD_LOG writes. Default: info. */
void hfd_log_set_level(enum hfd_log_level level);
bool hfd_log_enabled(enum hfd_log_level level);
/** "debug", "info", "warn", "error". */
const char *hfd_log_level_name(enum hfd_log_level level);
HFD_MUST_CHECK hfd_rc hfd_log_level_parse(hfd_slice text, enum hfd_log_level *out,
                                          struct hfd_err *err);
/** Chooses text, for people, in place of JSON. */
void hfd_log_set_text(bool text);
/** Sends the lines to another file; -1 = stderr. For tests. Borrows fd. */
void hfd_log_set_fd(int fd);

/**
 * Sets the request that this thread works on. Every line has it as "request_id", unless the line
 * names one itself. The id of a trace is "trace": driver/base/trace.h.
 * @param id  copied, at most 40 bytes; empty = none
 */
void hfd_log_request_id(hfd_slice id);

/**
 * Writes a line of any level, without heap memory and without blocking. A line over 4 KiB is cut to
 * a complete JSON object with "cut":true.
 */
void hfd_log_write(enum hfd_log_level level, const char *msg, const struct hfd_log_field *fields,
                   size_t n);

/** HFD_LOG(HFD_LOG_INFO, "request", HFD_LOG_STR("guresid", id), HFD_LOG_INT("status", 200)); */
#define HFD_LOG(level, msg, ...)                                                                   \
    do {                                                                                           \
        if (hfd_log_enabled(level)) {                                                              \
            const struct hfd_log_field hfd_log_f_[] = {__VA_ARGS__};                               \
            hfd_log_write((level), (msg), hfd_log_f_, sizeof(hfd_log_f_) / sizeof(hfd_log_f_[0])); \
        }                                                                                          \
    } while (0)

#endif
