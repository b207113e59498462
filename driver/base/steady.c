/* A wall clock that does not jump. See steady.h. */
#include "driver/base/steady.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include <sodium.h>

#include "driver/base/file.h"
#include "driver/base/log.h"

#define CHECK_US (HFD_US_PER_S / 10)       /* between two comparisons with the wall clock */
#define MAKE_UP_MAX_US (60 * HFD_US_PER_S) /* a longer time without a call counts as this */
#define OFF_MAX_US (INT64_C(3652) * 86400 * HFD_US_PER_S) /* ten years */
#define JUMP_US (2 * HFD_US_PER_S)                        /* smaller jumps are not logged */
#define BOOT_ID_PATH "/proc/sys/kernel/random/boot_id"
#define BOOT_ID_MAX 64
#define FILE_MAX 256
#define CHECK_BYTES 8
#define CHECK_TEXT (2 * CHECK_BYTES + 1)

static int64_t limit_to(int64_t v, int64_t limit)
{
    return v > limit ? limit : v < -limit ? -limit : v;
}

/* Logs a jump once: when the gap between the clocks changes by JUMP_US or more. */
static void log_jump(struct hfd_steady *s, int64_t gap_us)
{
    const int64_t before_us = atomic_exchange(&s->gap_us, gap_us);

    if (limit_to(gap_us - before_us, JUMP_US) == gap_us - before_us)
        return;
    HFD_LOG(HFD_LOG_WARN, "the wall clock jumped; deadlines are not affected",
            HFD_LOG_INT("jump_ms", (gap_us - before_us) / 1000),
            HFD_LOG_INT("ahead_ms", gap_us / 1000));
}

/*
 * Compares the wall clock with the steady clock, at most every CHECK_US, and makes up for a part of
 * the gap. Of callers at the same time, one does this.
 */
static void check_wall_clock(struct hfd_steady *s, int64_t mono_us)
{
    long long checked_us = atomic_load(&s->checked_us);
    int64_t since_us = mono_us - checked_us, gap_us;

    if (since_us < CHECK_US ||
        !atomic_compare_exchange_strong(&s->checked_us, &checked_us, mono_us))
        return;
    since_us = since_us < MAKE_UP_MAX_US ? since_us : MAKE_UP_MAX_US;
    gap_us = hfd_clock_wall_us(s->under) - (mono_us + atomic_load(&s->offset_us));
    atomic_fetch_add(&s->offset_us, limit_to(gap_us, since_us / HFD_STEADY_FADE));
    log_jump(s, gap_us);
}

static int64_t steady_us(void *ctx)
{
    struct hfd_steady *s = ctx;
    const int64_t mono_us = hfd_clock_mono_us(s->under);
    long long last_us;
    int64_t now_us;

    check_wall_clock(s, mono_us);
    now_us = mono_us + atomic_load(&s->offset_us);
    last_us = atomic_load(&s->last_us);
    while (now_us > last_us && !atomic_compare_exchange_weak(&s->last_us, &last_us, now_us))
        ;
    return now_us > last_us ? now_us : last_us;
}

static int64_t skew_us(void *ctx)
{
    const struct hfd_steady *s = ctx;

    return hfd_clock_wall_us(s->under) - (hfd_clock_mono_us(s->under) + atomic_load(&s->offset_us));
}

static int64_t under_mono_us(void *ctx)
{
    const struct hfd_steady *s = ctx;

    return hfd_clock_mono_us(s->under);
}

static void start_at(struct hfd_steady *s, int64_t offset_us)
{
    const int64_t mono_us = hfd_clock_mono_us(s->under);

    atomic_store(&s->offset_us, offset_us);
    atomic_store(&s->checked_us, mono_us);
    atomic_store(&s->last_us, mono_us + offset_us);
    atomic_store(&s->gap_us, hfd_clock_wall_us(s->under) - (mono_us + offset_us));
}

void hfd_steady_init(struct hfd_steady *s, const struct hfd_clock *under)
{
    s->under = under;
    s->clock = (struct hfd_clock){
        .wall_us = steady_us, .mono_us = under_mono_us, .skew_us = skew_us, .ctx = s};
    start_at(s, hfd_clock_wall_us(under) - hfd_clock_mono_us(under));
}

/* Reads the boot id of the machine; empty when it cannot be read. */
static void read_boot_id(char out[BOOT_ID_MAX])
{
    const int fd = open(BOOT_ID_PATH, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd >= 0 ? read(fd, out, BOOT_ID_MAX - 1) : 0;

    if (fd >= 0)
        (void)close(fd);
    out[n > 0 ? n : 0] = '\0';
    out[strcspn(out, "\n")] = '\0';
}

/* Makes the check value behind a line: hex digits that change with each of its bits. */
static void make_check(hfd_slice line, char out[CHECK_TEXT])
{
    unsigned char full[crypto_generichash_BYTES_MIN];

    (void)crypto_generichash(full, sizeof(full), (const unsigned char *)line.p, line.len, NULL, 0);
    (void)sodium_bin2hex(out, CHECK_TEXT, full, CHECK_BYTES);
}

/*
 * Splits "BOOT-ID OFFSET CHECK" and its line end.
 * @return false: the file is not whole
 */
static bool parse_line(hfd_slice text, hfd_slice *boot_id, int64_t *offset_us)
{
    const size_t behind = sizeof(" \n") - 1 + CHECK_TEXT - 1;
    char check[CHECK_TEXT];
    const char *gap;
    hfd_slice line;

    if (text.len <= behind || text.p[text.len - 1] != '\n' || text.p[text.len - behind] != ' ')
        return false;
    line = (hfd_slice){text.p, text.len - behind};
    make_check(line, check);
    gap = memchr(line.p, ' ', line.len);
    if (gap == NULL || !hfd_slice_is((hfd_slice){line.p + line.len + 1, CHECK_TEXT - 1}, check))
        return false;
    *boot_id = (hfd_slice){line.p, (size_t)(gap - line.p)};
    return hfd_parse_i64((hfd_slice){gap + 1, line.len - boot_id->len - 1}, -INT64_MAX, INT64_MAX,
                         offset_us, NULL) == HFD_OK;
}

/* Returns true if the clock would start within OFF_MAX_US of the wall clock. */
static bool is_near(const struct hfd_steady *s, int64_t offset_us)
{
    int64_t at_us, off_us;

    return !__builtin_add_overflow(hfd_clock_mono_us(s->under), offset_us, &at_us) &&
           !__builtin_sub_overflow(at_us, hfd_clock_wall_us(s->under), &off_us) &&
           limit_to(off_us, OFF_MAX_US) == off_us;
}

bool hfd_steady_reach(struct hfd_steady *s, int64_t at_us)
{
    const int64_t mono_us = hfd_clock_mono_us(s->under);
    int64_t offset_us;

    if (at_us <= mono_us + atomic_load(&s->offset_us))
        return true;
    if (__builtin_sub_overflow(at_us, mono_us, &offset_us) || !is_near(s, offset_us))
        return false;
    start_at(s, offset_us);
    return true;
}

/*
 * Reads the offset that was saved since the same boot.
 * @return false: there is none, or it cannot be right
 */
static bool read_offset(const struct hfd_steady *s, const char *path, int64_t *offset_us)
{
    char boot_id[BOOT_ID_MAX];
    const char *wrong = NULL;
    struct hfd_buf b;
    hfd_slice saved_in;
    bool ok;

    read_boot_id(boot_id);
    hfd_buf_init(&b, FILE_MAX);
    ok = hfd_file_read_own(path, "clock file", &b, NULL) == HFD_OK && b.len > 0;
    if (ok && !parse_line(hfd_buf_slice(&b), &saved_in, offset_us))
        wrong = "it is damaged";
    else if (ok && hfd_slice_is(saved_in, boot_id) && !is_near(s, *offset_us))
        wrong = "its time is more than ten years from the wall clock";
    ok = ok && wrong == NULL && boot_id[0] != '\0' && hfd_slice_is(saved_in, boot_id);
    hfd_buf_fini(&b);
    if (wrong != NULL)
        HFD_LOG(HFD_LOG_WARN, "the clock file is not used; the clock starts at the wall clock",
                HFD_LOG_CSTR("path", path), HFD_LOG_CSTR("reason", wrong));
    return ok;
}

hfd_rc hfd_steady_save(const struct hfd_steady *s, const char *path, struct hfd_err *err)
{
    char boot_id[BOOT_ID_MAX], line[FILE_MAX / 2], check[CHECK_TEXT], text[FILE_MAX];
    int n;

    read_boot_id(boot_id);
    n = snprintf(line, sizeof(line), "%s %" PRId64, boot_id, (int64_t)atomic_load(&s->offset_us));
    make_check((hfd_slice){line, (size_t)n}, check);
    n = snprintf(text, sizeof(text), "%s %s\n", line, check);
    return hfd_file_replace(path, "clock file", (hfd_slice){text, (size_t)n}, err);
}

hfd_rc hfd_steady_resume(struct hfd_steady *s, const char *path, struct hfd_err *err)
{
    int64_t offset_us;

    if (read_offset(s, path, &offset_us))
        start_at(s, offset_us);
    return hfd_steady_save(s, path, err);
}
