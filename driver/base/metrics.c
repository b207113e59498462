/* See metrics.h. */
#include "driver/base/metrics.h"

#include "driver/base/buf.h"
#include "driver/base/check.h"
#include "driver/base/utf8.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- procstat ---- */

/*
 * The process_* metrics that Prometheus clients agree on, read from /proc/self. A value that cannot
 * be read is left out. Thread: any.
 */

/* Metrics of the process, read from the kernel. */

enum proc {
    CPU,
    START_TIME,
    VIRTUAL_MEMORY,
    RESIDENT_MEMORY,
    OPEN_FDS,
    MAX_FDS,
    PROC_COUNT
};
static const struct {
    const char *name, *type, *help;
} metrics[PROC_COUNT] = {
    [CPU] = {"process_cpu_seconds_total", "counter",
             "Total user and system CPU time spent in seconds."},
    [START_TIME] = {"process_start_time_seconds", "gauge",
                    "Start time of the process since unix epoch in seconds."},
    [VIRTUAL_MEMORY] = {"process_virtual_memory_bytes", "gauge", "Virtual memory size in bytes."},
    [RESIDENT_MEMORY] = {"process_resident_memory_bytes", "gauge",
                         "Resident memory size in bytes."},
    [OPEN_FDS] = {"process_open_fds", "gauge", "Number of open file descriptors."},
    [MAX_FDS] = {"process_max_fds", "gauge", "Maximum number of open file descriptors."},
};

static void add_head(struct hfd_buf *b, enum proc m)
{
    hfd_buf_addf(b, "# HELP %s %s\n# TYPE %s %s\n", metrics[m].name, metrics[m].help,
                 metrics[m].name, metrics[m].type);
}

static void add_gauge(struct hfd_buf *b, enum proc m, int64_t value)
{
    add_head(b, m);
    hfd_buf_addf(b, "%s %" PRId64 "\n", metrics[m].name, value);
}

/* Reads the first bytes of a file under /proc as text. */
static bool read_text(const char *path, char *out, size_t cap)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    if (fd < 0)
        return false;
    n = read(fd, out, cap - 1);
    close(fd);
    if (n <= 0)
        return false;
    out[n] = '\0';
    return true;
}

/*
 * The number in the given field (counted from 0) of a text with single spaces between fields; -1
 * when there is none.
 */
static int64_t number_at(const char *text, int index)
{
    const char *p = text;
    int64_t v;

    for (; index > 0 && p != NULL; index--) {
        p = strchr(p, ' ');
        p = p != NULL ? p + 1 : NULL;
    }
    if (p == NULL ||
        hfd_parse_i64((hfd_slice){p, strcspn(p, " \n")}, 0, INT64_MAX, &v, NULL) != HFD_OK)
        return -1;
    return v;
}

static void add_memory(struct hfd_buf *b)
{
    char text[256];
    int64_t page = sysconf(_SC_PAGESIZE);

    if (!read_text("/proc/self/statm", text, sizeof(text)))
        return;
    add_gauge(b, VIRTUAL_MEMORY, number_at(text, 0) * page);
    add_gauge(b, RESIDENT_MEMORY, number_at(text, 1) * page);
}

static void add_cpu(struct hfd_buf *b)
{
    struct rusage u;
    int64_t us;

    if (getrusage(RUSAGE_SELF, &u) != 0)
        return;
    us = ((int64_t)u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000 + u.ru_utime.tv_usec +
         u.ru_stime.tv_usec;
    add_head(b, CPU);
    hfd_buf_addf(b, "process_cpu_seconds_total %" PRId64 ".%06" PRId64 "\n", us / 1000000,
                 us % 1000000);
}

static void add_descriptors(struct hfd_buf *b)
{
    DIR *d = opendir("/proc/self/fd");
    struct rlimit limit;
    int64_t count = 0;

    if (d != NULL) {
        for (const struct dirent *e = readdir(d); e != NULL; e = readdir(d))
            count += e->d_name[0] != '.' ? 1 : 0;
        closedir(d);
        add_gauge(b, OPEN_FDS, count - 1); /* not the one that reads the folder */
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < INT64_MAX)
        add_gauge(b, MAX_FDS, (int64_t)limit.rlim_cur);
}

static void add_start_time(struct hfd_buf *b)
{
    /*
     * /proc/stat is long: the line of the boot time follows one line for each core and the line of
     * the interrupts.
     */
    static const char boot_key[] = "\nbtime ";
    char text[65536];
    const char *p;
    int64_t ticks;
    int64_t hz = sysconf(_SC_CLK_TCK);

    if (!read_text("/proc/self/stat", text, 1024))
        return;
    p = strrchr(text, ')'); /* the process name before it may contain anything */
    ticks = p != NULL ? number_at(p + 1, 20) : -1;
    if (ticks < 0 || hz <= 0 || !read_text("/proc/stat", text, sizeof(text)))
        return;
    p = strstr(text, boot_key);
    if (p == NULL)
        return;
    add_gauge(b, START_TIME, number_at(p + sizeof(boot_key) - 1, 0) + ticks / hz);
}

/* Adds the metrics with HELP and TYPE. */
static void procstat_render(struct hfd_buf *b)
{
    add_cpu(b);
    add_start_time(b);
    add_memory(b);
    add_descriptors(b);
}

/* Adds the rows of the table of hfd_metrics_table. */
static void procstat_table(struct hfd_buf *b)
{
    for (size_t i = 0; i < PROC_COUNT; i++)
        hfd_buf_addf(b, "| `%s` | %s | | %s |\n", metrics[i].name, metrics[i].type,
                     metrics[i].help);
}

/* ---- metrics ---- */

/*
 * Metrics. A series is found without a lock and is never freed; a new series is made
 * under a mutex.
 */

enum kind {
    COUNTER,
    GAUGE,
    SET_GAUGE, /* a gauge without labels that has no sample until it is set */
    HISTOGRAM,
    FROM_5_MS, /* a histogram whose first bucket is 5 ms, as in HyperFleet */
};

#define LABELS_MAX 3
#define LABEL_VALUE_MAX 64
#define SLOTS 64
#define ROW(name, kind, text, constants, labels, help)                                             \
    [HFD_METRIC_##name] = {kind, text, constants, labels, help},
static const struct def {
    enum kind kind;
    const char *name;
    const char *constants; /* constant labels, as they are printed */
    const char *labels;
    const char *help;
} defs[HFD_METRIC_COUNT] = {HFD_METRIC_LIST(ROW)};
#undef ROW

/* Upper bounds, as Prometheus prints them. */
static const struct {
    int64_t us;
    const char *text;
} bounds[] = {
    {1000, "0.001"},  {2500, "0.0025"}, {5000, "0.005"},  {10000, "0.01"}, {25000, "0.025"},
    {50000, "0.05"},  {100000, "0.1"},  {250000, "0.25"}, {500000, "0.5"}, {1000000, "1"},
    {2500000, "2.5"}, {5000000, "5"},   {10000000, "10"},
};
#define BOUNDS (sizeof(bounds) / sizeof(bounds[0]))
#define BOUND_5_MS 2

struct hfd_series {
    struct hfd_series *next_in_slot; /* set before the series is published, constant afterwards */
    struct hfd_series *next;
    char label[LABELS_MAX][LABEL_VALUE_MAX + 1];
    _Atomic int64_t value;                /* counter or gauge; a histogram's sum in microseconds */
    _Atomic uint64_t buckets[BOUNDS + 1]; /* not cumulative; the last is +Inf */
};

struct family {
    struct hfd_series *_Atomic slots[SLOTS];
    struct hfd_series *_Atomic newest;
    size_t count; /* changed under the lock */
};

static struct family families[HFD_METRIC_COUNT];
/* Metrics without labels. Each exists, with 0, from the start; a SET_GAUGE from its first value. */
static struct hfd_series singles[HFD_METRIC_COUNT];
static atomic_bool were_set[HFD_METRIC_COUNT]; /* for SET_GAUGE */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_histogram(enum hfd_metric m)
{
    return defs[m].kind == HISTOGRAM || defs[m].kind == FROM_5_MS;
}

static size_t label_count(enum hfd_metric m)
{
    const char *s = defs[m].labels;
    size_t n = *s != '\0' ? 1 : 0;

    for (; *s != '\0'; s++)
        n += *s == ',' ? 1 : 0;
    return n;
}

/* The length that is stored of a value, so that a long value finds its series again. */
static size_t value_len(const char *v)
{
    return strnlen(v, LABEL_VALUE_MAX);
}

static size_t slot_of(const char *const *labels, size_t n)
{
    uint32_t h = 2166136261u; /* FNV-1a */

    for (size_t i = 0; i < n; i++) {
        size_t len = value_len(labels[i]);

        for (size_t k = 0; k < len; k++)
            h = (h ^ (unsigned char)labels[i][k]) * 16777619u;
        h = (h ^ 0xffu) * 16777619u;
    }
    return h % SLOTS;
}

static struct hfd_series *find_series(struct family *f, size_t slot, const char *const *labels,
                                      size_t n)
{
    struct hfd_series *s = atomic_load_explicit(&f->slots[slot], memory_order_acquire);

    for (; s != NULL; s = s->next_in_slot) {
        size_t i = 0;

        while (i < n && strlen(s->label[i]) == value_len(labels[i]) &&
               memcmp(s->label[i], labels[i], value_len(labels[i])) == 0)
            i++;
        if (i == n)
            return s;
    }
    return NULL;
}

/*
 * Makes and publishes a series. Called under the lock.
 * @return NULL when memory is short: the sample is lost, the work goes on
 */
static struct hfd_series *add_series(struct family *f, const char *const *labels, size_t n)
{
    size_t slot = slot_of(labels, n);
    struct hfd_series *s = find_series(f, slot, labels, n);

    if (s != NULL)
        return s;
    s = calloc(1, sizeof(*s));
    if (s == NULL)
        return NULL;
    for (size_t i = 0; i < n; i++)
        memcpy(s->label[i], labels[i], value_len(labels[i]));
    s->next_in_slot = atomic_load_explicit(&f->slots[slot], memory_order_relaxed);
    s->next = atomic_load_explicit(&f->newest, memory_order_relaxed);
    atomic_store_explicit(&f->slots[slot], s, memory_order_release);
    atomic_store_explicit(&f->newest, s, memory_order_release);
    f->count++;
    return s;
}

struct hfd_series *hfd_metric_series(enum hfd_metric m, const char *const *labels)
{
    static const char *const other[LABELS_MAX] = {"other", "other", "other"};
    size_t n = label_count(m);
    struct family *f = &families[m];
    struct hfd_series *s;

    HFD_ASSERT(n <= LABELS_MAX && (n == 0) == (labels == NULL));
    if (n == 0)
        return &singles[m];
    s = find_series(f, slot_of(labels, n), labels, n);
    if (s != NULL)
        return s;
    pthread_mutex_lock(&lock);
    /* One series is kept for "other". */
    s = find_series(f, slot_of(labels, n), labels, n);
    if (s == NULL)
        s = add_series(f, f->count < HFD_METRIC_SERIES_MAX - 1 ? labels : other, n);
    pthread_mutex_unlock(&lock);
    return s;
}

void hfd_series_add(struct hfd_series *s, int64_t delta)
{
    if (s != NULL)
        atomic_fetch_add_explicit(&s->value, delta, memory_order_relaxed);
}

int64_t hfd_series_value(const struct hfd_series *s)
{
    return s != NULL ? atomic_load_explicit(&s->value, memory_order_relaxed) : 0;
}

void hfd_metric_add(enum hfd_metric m, const char *const *labels, int64_t delta)
{
    HFD_ASSERT(defs[m].kind == GAUGE || (defs[m].kind == COUNTER && delta >= 0));
    hfd_series_add(hfd_metric_series(m, labels), delta);
}

void hfd_metric_set(enum hfd_metric m, const char *const *labels, int64_t value)
{
    struct hfd_series *s = hfd_metric_series(m, labels);

    HFD_ASSERT(defs[m].kind == GAUGE || defs[m].kind == SET_GAUGE);
    if (s != NULL)
        atomic_store_explicit(&s->value, value, memory_order_relaxed);
    if (defs[m].kind == SET_GAUGE)
        atomic_store_explicit(&were_set[m], true, memory_order_release);
}

int64_t hfd_metric_value(enum hfd_metric m, const char *const *labels)
{
    const size_t n = label_count(m);

    return hfd_series_value(n == 0 ? &singles[m]
                                   : find_series(&families[m], slot_of(labels, n), labels, n));
}

void hfd_series_observe_us(struct hfd_series *s, int64_t duration_us)
{
    size_t i = 0;

    if (s == NULL)
        return;
    if (duration_us < 0)
        duration_us = 0;
    while (i < BOUNDS && duration_us > bounds[i].us)
        i++;
    atomic_fetch_add_explicit(&s->buckets[i], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&s->value, duration_us, memory_order_relaxed);
}

void hfd_metric_observe_us(enum hfd_metric m, const char *const *labels, int64_t duration_us)
{
    HFD_ASSERT(is_histogram(m));
    hfd_series_observe_us(hfd_metric_series(m, labels), duration_us);
}

/* Adds a label value. Escapes backslash, quote and line feed; replaces what is not UTF-8. */
static void add_value(struct hfd_buf *b, const char *v)
{
    hfd_slice s = hfd_slice_of(v);

    while (s.len > 0) {
        size_t n = hfd_utf8_len(s);

        if (n == 0)
            hfd_buf_lit(b, "\xef\xbf\xbd");
        else if (*s.p == '\n')
            hfd_buf_lit(b, "\\n");
        else if (*s.p == '"' || *s.p == '\\')
            hfd_buf_addf(b, "\\%c", *s.p);
        else
            hfd_buf_add(b, (hfd_slice){s.p, n});
        n = n == 0 ? 1 : n;
        s.p += n;
        s.len -= n;
    }
}

/* Adds `{a="x",le="0.1"} `, or only a space when there are no labels. */
static void add_labels(struct hfd_buf *b, enum hfd_metric m, const struct hfd_series *s,
                       const char *le)
{
    const char *name = defs[m].labels;
    const char *sep = "{";

    if (defs[m].constants[0] != '\0') {
        hfd_buf_addf(b, "{%s", defs[m].constants);
        sep = ",";
    }
    for (size_t i = 0; i < label_count(m); i++) {
        size_t len = strcspn(name, ",");

        hfd_buf_addf(b, "%s%.*s=\"", sep, (int)len, name);
        add_value(b, s->label[i]);
        hfd_buf_addc(b, '"');
        sep = ",";
        name += len + 1;
    }
    if (le != NULL) {
        hfd_buf_addf(b, "%sle=\"%s\"", sep, le);
        sep = ",";
    }
    hfd_buf_add(b, hfd_slice_of(*sep == ',' ? "} " : " "));
}

static void render_histogram(struct hfd_buf *b, enum hfd_metric m, struct hfd_series *s)
{
    const char *name = defs[m].name;
    int64_t sum_us = atomic_load_explicit(&s->value, memory_order_relaxed);
    uint64_t seen = 0;

    for (size_t i = 0; i <= BOUNDS; i++) {
        seen += atomic_load_explicit(&s->buckets[i], memory_order_relaxed);
        if (defs[m].kind == FROM_5_MS && i < BOUND_5_MS)
            continue; /* counted in the next bucket */
        hfd_buf_addf(b, "%s_bucket", name);
        add_labels(b, m, s, i < BOUNDS ? bounds[i].text : "+Inf");
        hfd_buf_addf(b, "%" PRIu64 "\n", seen);
    }
    hfd_buf_addf(b, "%s_sum", name);
    add_labels(b, m, s, NULL);
    hfd_buf_addf(b, "%" PRId64 ".%06" PRId64 "\n", sum_us / 1000000, sum_us % 1000000);
    /*
     * The count comes from the buckets read above: +Inf and the count must agree while other
     * threads observe.
     */
    hfd_buf_addf(b, "%s_count", name);
    add_labels(b, m, s, NULL);
    hfd_buf_addf(b, "%" PRIu64 "\n", seen);
}

static void render_series(struct hfd_buf *b, enum hfd_metric m, struct hfd_series *s)
{
    if (is_histogram(m)) {
        render_histogram(b, m, s);
        return;
    }
    hfd_buf_add(b, hfd_slice_of(defs[m].name));
    add_labels(b, m, s, NULL);
    hfd_buf_addf(b, "%" PRId64 "\n", atomic_load_explicit(&s->value, memory_order_relaxed));
}

static const char *type_name(enum hfd_metric m)
{
    switch (defs[m].kind) {
    case COUNTER:
        return "counter";
    case GAUGE:
    case SET_GAUGE:
        return "gauge";
    case HISTOGRAM:
    case FROM_5_MS:
        break;
    }
    return "histogram";
}

void hfd_metrics_render(struct hfd_buf *b)
{
    for (enum hfd_metric m = 0; m < HFD_METRIC_COUNT; m++) {
        struct hfd_series *s = atomic_load_explicit(&families[m].newest, memory_order_acquire);

        hfd_buf_addf(b, "# HELP %s %s\n# TYPE %s %s\n", defs[m].name, defs[m].help, defs[m].name,
                     type_name(m));
        if (label_count(m) == 0 &&
            (defs[m].kind != SET_GAUGE || atomic_load_explicit(&were_set[m], memory_order_acquire)))
            render_series(b, m, &singles[m]);
        for (; s != NULL; s = s->next)
            render_series(b, m, s);
    }
    procstat_render(b);
}

/* Adds the names of a metric's labels: "`a`, `b`". Constant labels look like a="x",b="y". */
static void add_label_names(struct hfd_buf *b, enum hfd_metric m)
{
    const char *name = defs[m].constants;
    const char *before = "";

    while (*name != '\0') {
        hfd_buf_addf(b, "%s`%.*s`", before, (int)strcspn(name, "="), name);
        before = ", ";
        name += strcspn(name, ",");
        name += *name == ',' ? 1 : 0;
    }
    for (name = defs[m].labels; *name != '\0'; name += *name == ',' ? 1 : 0) {
        hfd_buf_addf(b, "%s`%.*s`", before, (int)strcspn(name, ","), name);
        before = ", ";
        name += strcspn(name, ",");
    }
}

void hfd_metrics_table(struct hfd_buf *b)
{
    hfd_buf_lit(b, "| Metric | Type | Labels | Meaning |\n|---|---|---|---|\n");
    for (enum hfd_metric m = 0; m < HFD_METRIC_COUNT; m++) {
        hfd_buf_addf(b, "| `%s` | %s | ", defs[m].name, type_name(m));
        add_label_names(b, m);
        hfd_buf_addf(b, "%s| %s |\n", label_count(m) > 0 || defs[m].constants[0] != '\0' ? " " : "",
                     defs[m].help);
    }
    procstat_table(b);
}
