/* See progress.h. */
#include "handlers/client/progress.h"

#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define BAR_COLUMNS 20
#define COLUMNS_DEFAULT 100
#define COLUMNS_MIN 40
#define LINE_MAX_BYTES ((size_t)4096)

static const char *text_of(const json_t *doc, const char *key)
{
    const char *text = json_string_value(json_object_get(doc, key));

    return text != NULL ? text : "";
}

/* Adds "4:10", or "1:04:10". */
static void add_clock(struct hfd_buf *b, int64_t us)
{
    const long long s = us / HFD_US_PER_S;

    if (s >= 3600)
        hfd_buf_addf(b, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
    else
        hfd_buf_addf(b, "%lld:%02lld", s / 60, s % 60);
}

static void add_bar(struct hfd_buf *b, const struct hfd_progress_times *times)
{
    int64_t percent = times->total_us > 0 ? times->elapsed_us * 100 / times->total_us : 0;
    int64_t full;

    percent = percent > 99 ? 99 : percent;
    full = percent * BAR_COLUMNS / 100;
    hfd_buf_lit(b, "  [");
    for (int64_t i = 0; i < BAR_COLUMNS; i++)
        hfd_buf_addc(b, i < full ? '=' : i == full ? '>' : ' ');
    hfd_buf_addf(b, "] %lld %%  ", (long long)percent);
    add_clock(b, times->elapsed_us);
    hfd_buf_lit(b, " of ~");
    add_clock(b, times->total_us);
}

/* Cuts a text at a column. A character has as many columns as it has leading bytes: one. */
static void cut(struct hfd_buf *b, size_t columns)
{
    size_t at = 0, count = 0;

    while (at < b->len) {
        count += ((unsigned char)b->p[at] & 0xc0) != 0x80;
        if (count > columns)
            break;
        at++;
    }
    b->len = at;
}

void hfd_progress_line(struct hfd_buf *b, const json_t *hint,
                       const struct hfd_progress_times *times, size_t columns)
{
    const char *status = text_of(hint, "status");

    hfd_buf_add(b, hfd_slice_of(status[0] != '\0' ? status : "under way"));
    if (times->total_us > 0)
        add_bar(b, times);
    if (text_of(hint, "message")[0] != '\0') {
        hfd_buf_lit(b, "  ");
        hfd_buf_add(b, hfd_slice_of(text_of(hint, "message")));
    }
    for (size_t i = 0; i < b->len; i++)
        if ((unsigned char)b->p[i] < ' ' || b->p[i] == '\x7f')
            b->p[i] = ' ';
    cut(b, columns);
}

static size_t terminal_columns(void)
{
    struct winsize size;

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return COLUMNS_DEFAULT;
    return size.ws_col > COLUMNS_MIN ? size.ws_col : COLUMNS_MIN;
}

void hfd_progress_begin(struct hfd_progress_view *v, const char *id)
{
    *v = (struct hfd_progress_view){.id = id,
                                    .terminal = isatty(STDERR_FILENO) == 1,
                                    .began_us = hfd_clock_mono_us(&hfd_clock_system)};
}

/* The estimate is by the driver's clock; so is the present time. */
static struct hfd_progress_times times_of(const struct hfd_progress_view *v, const json_t *hint)
{
    struct hfd_progress_times t = {.elapsed_us =
                                       hfd_clock_mono_us(&hfd_clock_system) - v->began_us};
    int64_t now_us, end_us;

    if (hfd_time_parse(hfd_slice_of(text_of(hint, "current_time")), &now_us, NULL) == HFD_OK &&
        hfd_time_parse(hfd_slice_of(text_of(hint, "estimated_completion_time")), &end_us, NULL) ==
            HFD_OK &&
        end_us > now_us)
        t.total_us = t.elapsed_us + end_us - now_us;
    return t;
}

/* A line for a log: only news. */
static void print_news(struct hfd_progress_view *v, const json_t *hint)
{
    char news[sizeof(v->last)];

    (void)snprintf(news, sizeof(news), "%s%s%s", text_of(hint, "status"),
                   text_of(hint, "message")[0] != '\0' ? ": " : "", text_of(hint, "message"));
    if (strcmp(news, v->last) == 0)
        return;
    (void)snprintf(v->last, sizeof(v->last), "%s", news);
    (void)fprintf(stderr, "%s %s\n", v->id, news);
}

void hfd_progress_show(void *ctx, const struct hfd_order_answer *a)
{
    struct hfd_progress_view *v = ctx;
    struct hfd_progress_times times;
    struct hfd_buf b;

    if (a->http.status != 202 || !json_is_object(a->doc))
        return;
    if (!v->terminal) {
        print_news(v, a->doc);
        return;
    }
    times = times_of(v, a->doc);
    hfd_buf_init(&b, LINE_MAX_BYTES);
    hfd_buf_addf(&b, "%s  ", v->id);
    hfd_progress_line(&b, a->doc, &times, terminal_columns());
    cut(&b, terminal_columns() - 1);
    (void)fprintf(stderr, "\r%.*s\033[K", HFD_SLICE_FMT(hfd_buf_slice(&b)));
    (void)fflush(stderr);
    v->shown = true;
    hfd_buf_fini(&b);
}

void hfd_progress_end(struct hfd_progress_view *v)
{
    if (v->shown)
        (void)fprintf(stderr, "\r\033[K");
    v->shown = false;
}
