/* The system's clocks, and times as RFC 3339 text. See clock.h. */
#include "driver/base/clock.h"

#include <time.h>

#define SECONDS_MAX INT64_C(253402300799) /* 9999-12-31T23:59:59Z */

static int64_t read_us(clockid_t id)
{
    struct timespec ts;

    if (clock_gettime(id, &ts) != 0)
        return 0; /* fails only for a clock that does not exist */
    return (int64_t)ts.tv_sec * HFD_US_PER_S + ts.tv_nsec / 1000;
}

static int64_t system_wall_us(void *ctx)
{
    (void)ctx;
    return read_us(CLOCK_REALTIME);
}

static int64_t system_mono_us(void *ctx)
{
    (void)ctx;
    return read_us(CLOCK_MONOTONIC);
}

static int64_t system_boot_us(void *ctx)
{
    (void)ctx;
    return read_us(CLOCK_BOOTTIME);
}

const struct hfd_clock hfd_clock_system = {.wall_us = system_wall_us, .mono_us = system_mono_us};
const struct hfd_clock hfd_clock_boot = {.wall_us = system_wall_us, .mono_us = system_boot_us};

int64_t hfd_clock_wall_us(const struct hfd_clock *c)
{
    return c->wall_us(c->ctx);
}

int64_t hfd_clock_mono_us(const struct hfd_clock *c)
{
    return c->mono_us(c->ctx);
}

int64_t hfd_clock_skew_us(const struct hfd_clock *c)
{
    return c->skew_us != NULL ? c->skew_us(c->ctx) : 0;
}

/*
 * Days since 1970-01-01 of a date in the Gregorian calendar, and back. The year begins in March
 * here, so that the leap day is its last day.
 */
static int64_t days_from_date(int64_t year, int64_t month, int64_t day)
{
    /* 400 years are one turn of the calendar: with them no division is negative in year 0. */
    int64_t y = 400 + (month <= 2 ? year - 1 : year);
    int64_t m = month <= 2 ? month + 9 : month - 3;
    int64_t day_of_year = (153 * m + 2) / 5 + day - 1;

    return 365 * y + y / 4 - y / 100 + y / 400 + day_of_year - 719468 - 146097;
}

static void date_from_days(int64_t days, int *year, int *month, int *day)
{
    int64_t z = days + 719468; /* days since 0000-03-01 */
    int64_t era = z / 146097;
    int64_t day_of_era = z - era * 146097;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t m = (5 * day_of_year + 2) / 153;

    *day = (int)(day_of_year - (153 * m + 2) / 5 + 1);
    *month = (int)(m < 10 ? m + 3 : m - 9);
    *year = (int)(year_of_era + era * 400 + (*month <= 2 ? 1 : 0));
}

/*
 * Writes `digits` digits and the character behind them.
 * @return the place behind both
 */
static char *put_number(char *at, int v, int digits, char behind)
{
    for (int i = digits; i-- > 0; v /= 10)
        at[i] = (char)('0' + v % 10);
    at[digits] = behind;
    return at + digits + 1;
}

/*
 * Writes date and time without fraction and Z.
 * @return the length
 */
static size_t format_seconds(int64_t seconds, char out[HFD_TIME_TEXT_MAX])
{
    const int in_day = (int)(seconds % 86400);
    char *at = out;
    int year, month, day;

    date_from_days(seconds / 86400, &year, &month, &day);
    at = put_number(at, year, 4, '-');
    at = put_number(at, month, 2, '-');
    at = put_number(at, day, 2, 'T');
    at = put_number(at, in_day / 3600, 2, ':');
    at = put_number(at, in_day / 60 % 60, 2, ':');
    at = put_number(at, in_day % 60, 2, '\0');
    return (size_t)(at - out) - 1;
}

static int64_t clamp_time(int64_t at_us)
{
    if (at_us < 0)
        return 0;
    return at_us / HFD_US_PER_S > SECONDS_MAX ? SECONDS_MAX * HFD_US_PER_S + 999999 : at_us;
}

/* Writes the time with a fraction of `digits` digits, 0 to 6. */
static size_t format_digits(int64_t at_us, int digits, char out[HFD_TIME_TEXT_MAX])
{
    int64_t us = at_us % HFD_US_PER_S;
    size_t n = format_seconds(at_us / HFD_US_PER_S, out);

    if (digits > 0) {
        out[n] = '.';
        for (int i = 6; i > 0; i--, us /= 10)
            out[n + (size_t)i] = (char)('0' + us % 10);
        n += (size_t)digits + 1;
    }
    out[n++] = 'Z';
    out[n] = '\0';
    return n;
}

size_t hfd_time_format(int64_t at_us, char out[HFD_TIME_TEXT_MAX])
{
    int64_t t = clamp_time(at_us);
    int64_t us = t % HFD_US_PER_S;
    int digits = us == 0 ? 0 : 6;

    for (; us != 0 && us % 10 == 0; us /= 10)
        digits--;
    return format_digits(t, digits, out);
}

size_t hfd_time_format_s(int64_t at_us, char out[HFD_TIME_TEXT_MAX])
{
    return format_digits(clamp_time(at_us), 0, out);
}

size_t hfd_time_format_us(int64_t at_us, char out[HFD_TIME_TEXT_MAX])
{
    return format_digits(clamp_time(at_us), 6, out);
}

/* A position in the text. The functions below move it forward, or set `failed` for good. */
struct reader {
    hfd_slice s;
    size_t pos;
    bool failed;
};

static int take_number(struct reader *r, int width, int min, int max)
{
    int v = 0;

    for (int i = 0; i < width; i++, r->pos++) {
        if (r->pos >= r->s.len || r->s.p[r->pos] < '0' || r->s.p[r->pos] > '9') {
            r->failed = true;
            return min;
        }
        v = v * 10 + (r->s.p[r->pos] - '0');
    }
    if (v < min || v > max) {
        r->failed = true;
        return min;
    }
    return v;
}

/* Takes one character of `set`. */
static char take_char(struct reader *r, const char *set)
{
    char c = r->pos < r->s.len ? r->s.p[r->pos] : '\0';

    if (c == '\0' || strchr(set, c) == NULL) {
        r->failed = true;
        return '\0';
    }
    r->pos++;
    return c;
}

static int take_fraction_us(struct reader *r)
{
    int us = 0;
    int digits = 0;

    if (r->pos >= r->s.len || r->s.p[r->pos] != '.')
        return 0;
    for (r->pos++; r->pos < r->s.len && r->s.p[r->pos] >= '0' && r->s.p[r->pos] <= '9';
         r->pos++, digits++)
        if (digits < 6)
            us = us * 10 + (r->s.p[r->pos] - '0');
    if (digits < 1 || digits > 9)
        r->failed = true;
    for (int i = digits; i < 6; i++)
        us *= 10;
    return us;
}

static int take_offset_s(struct reader *r)
{
    char c = take_char(r, "Zz+-");
    int hours;
    int minutes;

    if (c == 'Z' || c == 'z' || r->failed)
        return 0;
    hours = take_number(r, 2, 0, 23);
    take_char(r, ":");
    minutes = take_number(r, 2, 0, 59);
    return (c == '-' ? -1 : 1) * (hours * 3600 + minutes * 60);
}

static int days_in_month(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

    return days[month - 1] + (month == 2 && leap ? 1 : 0);
}

static hfd_rc parse_time(hfd_slice text, int first_year, int64_t *at_us, struct hfd_err *err)
{
    struct reader r = {.s = text};
    int year = take_number(&r, 4, first_year, 9999);
    int month = (take_char(&r, "-"), take_number(&r, 2, 1, 12));
    int day = (take_char(&r, "-"), take_number(&r, 2, 1, days_in_month(year, month)));
    int hour = (take_char(&r, "Tt"), take_number(&r, 2, 0, 23));
    int minute = (take_char(&r, ":"), take_number(&r, 2, 0, 59));
    int second = (take_char(&r, ":"), take_number(&r, 2, 0, 60));
    int us = take_fraction_us(&r);
    int offset_s = take_offset_s(&r);
    int64_t seconds = days_from_date(year, month, day) * 86400 + hour * 3600 + minute * 60 +
                      (second == 60 ? 59 : second) - offset_s;

    *at_us = 0;
    if (r.failed || r.pos != text.len || (seconds < 0 && first_year > 0) || seconds > SECONDS_MAX)
        return hfd_fail(err, HFD_INVALID,
                        "expected a date and time like 2025-01-01T00:00:00Z, got \"%.*s\"",
                        (int)(text.len < 40 ? text.len : 40), text.len > 0 ? text.p : "");
    *at_us = seconds * HFD_US_PER_S + us;
    return HFD_OK;
}

hfd_rc hfd_time_parse(hfd_slice text, int64_t *at_us, struct hfd_err *err)
{
    return parse_time(text, 1970, at_us, err);
}

hfd_rc hfd_time_parse_any(hfd_slice text, int64_t *at_us, struct hfd_err *err)
{
    return parse_time(text, 0, at_us, err);
}
