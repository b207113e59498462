/*
 * Reports failed assertions. It uses the stack only, because the heap may be broken. See check.h.
 */
#include "driver/base/check.h"

#include <stdlib.h>

#include "driver/base/log.h"
#include "driver/base/metrics.h"

static void log_failed_check(const char *what, const char *expr, const char *file, int line)
{
    const struct hfd_log_field fields[] = {
        HFD_LOG_CSTR("expression", expr),
        HFD_LOG_CSTR("file", file),
        HFD_LOG_INT("line", line),
    };

    hfd_log_write(HFD_LOG_ERROR, what, fields, sizeof(fields) / sizeof(fields[0]));
}

void hfd_assert_failed(const char *expr, const char *file, int line)
{
    log_failed_check("assertion failed", expr, file, line);
    abort();
}

bool hfd_never_happened(const char *expr, const char *file, int line)
{
    log_failed_check("internal invariant broken", expr, file, line);
    hfd_metric_add(HFD_METRIC_NEVER, NULL, 1);
    return true;
}
