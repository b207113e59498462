/* Metrics of the process, read from the kernel. See procstat.h. */
#include "driver/base/procstat.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/resource.h>
#include <unistd.h>

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

void hfd_procstat_render(struct hfd_buf *b)
{
    add_cpu(b);
    add_start_time(b);
    add_memory(b);
    add_descriptors(b);
}

void hfd_procstat_table(struct hfd_buf *b)
{
    for (size_t i = 0; i < PROC_COUNT; i++)
        hfd_buf_addf(b, "| `%s` | %s | | %s |\n", metrics[i].name, metrics[i].type,
                     metrics[i].help);
}
