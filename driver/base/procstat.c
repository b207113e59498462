/* The process as the kernel sees it. */
#include "driver/base/procstat.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/resource.h>
#include <unistd.h>

static void head(struct hfd_buf *b, const char *name, const char *type, const char *help)
{
    hfd_buf_addf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void sample(struct hfd_buf *b, const char *name, const char *help, int64_t value)
{
    head(b, name, "gauge", help);
    hfd_buf_addf(b, "%s %" PRId64 "\n", name, value);
}

/* The first bytes of a file under /proc as text. */
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
 * The number in the given field (from 0) of a text with single spaces between fields; -1 if it is
 * not there.
 */
static int64_t field(const char *text, int index)
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

static void memory(struct hfd_buf *b)
{
    char text[256];
    int64_t page = sysconf(_SC_PAGESIZE);

    if (!read_text("/proc/self/statm", text, sizeof(text)))
        return;
    sample(b, "process_virtual_memory_bytes", "Virtual memory size in bytes.",
           field(text, 0) * page);
    sample(b, "process_resident_memory_bytes", "Resident memory size in bytes.",
           field(text, 1) * page);
}

static void cpu(struct hfd_buf *b)
{
    struct rusage u;
    int64_t us;

    if (getrusage(RUSAGE_SELF, &u) != 0)
        return;
    us = ((int64_t)u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000 + u.ru_utime.tv_usec +
         u.ru_stime.tv_usec;
    head(b, "process_cpu_seconds_total", "counter",
         "Total user and system CPU time spent in seconds.");
    hfd_buf_addf(b, "process_cpu_seconds_total %" PRId64 ".%06" PRId64 "\n", us / 1000000,
                 us % 1000000);
}

static void descriptors(struct hfd_buf *b)
{
    DIR *d = opendir("/proc/self/fd");
    struct rlimit limit;
    int64_t count = 0;

    if (d != NULL) {
        for (const struct dirent *e = readdir(d); e != NULL; e = readdir(d))
            count += e->d_name[0] != '.' ? 1 : 0;
        closedir(d);
        sample(b, "process_open_fds", "Number of open file descriptors.",
               count - 1); /* without the one for reading */
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < INT64_MAX)
        sample(b, "process_max_fds", "Maximum number of open file descriptors.",
               (int64_t)limit.rlim_cur);
}

static void start_time(struct hfd_buf *b)
{
    /*
     * /proc/stat is long: the line of the boot time stands behind one line per core and that of the
     * interrupts.
     */
    static const char boot_key[] = "\nbtime ";
    char text[65536];
    const char *p;
    int64_t ticks;
    int64_t hz = sysconf(_SC_CLK_TCK);

    if (!read_text("/proc/self/stat", text, 1024))
        return;
    p = strrchr(text, ')'); /* the name before it may contain anything */
    ticks = p != NULL ? field(p + 1, 20) : -1;
    if (ticks < 0 || hz <= 0 || !read_text("/proc/stat", text, sizeof(text)))
        return;
    p = strstr(text, boot_key);
    if (p == NULL)
        return;
    sample(b, "process_start_time_seconds",
           "Start time of the process since unix epoch in seconds.",
           field(p + sizeof(boot_key) - 1, 0) + ticks / hz);
}

void hfd_procstat_render(struct hfd_buf *b)
{
    cpu(b);
    start_time(b);
    memory(b);
    descriptors(b);
}
