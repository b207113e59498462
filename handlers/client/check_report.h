/* Writes the result of a check: a table, JSON, or JUnit's XML. Pure. Thread: any. */
#ifndef HFD_CLIENT_CHECK_REPORT_H
#define HFD_CLIENT_CHECK_REPORT_H

#include "driver/base/buf.h"
#include "handlers/client/check.h"

/* A result to report. */
struct hfd_check_summary {
    const char *target;
    const struct hfd_check_report *report;
    const struct hfd_check_choice *choice;
};

struct hfd_check_counts {
    size_t passed, failed, skipped; /* failed: of must and should */
};

/** Counts the chosen rules. A broken rule of level `may` counts nowhere. */
struct hfd_check_counts hfd_check_count(const struct hfd_check_summary *s);

/** Add the report to b, in one of three forms. */
void hfd_check_write_table(const struct hfd_check_summary *s, struct hfd_buf *b);
void hfd_check_write_json(const struct hfd_check_summary *s, struct hfd_buf *b);
void hfd_check_write_junit(const struct hfd_check_summary *s, struct hfd_buf *b);

#endif
