/*
 * A black-box check of any driver of the Humanitec Driver API 0.9.3. It makes resources under
 * GUResIDs of its own and watches every answer. In the end it deletes what it made. Thread: main.
 */
#ifndef HFD_CLIENT_CHECK_H
#define HFD_CLIENT_CHECK_H

#include <signal.h>

#include "driver/base/clock.h"
#include "driver/base/rng.h"
#include "handlers/client/check_rules.h"
#include "handlers/client/http.h"

enum hfd_check_verdict {
    HFD_CHECK_SKIP,
    HFD_CHECK_PASS,
    HFD_CHECK_FAIL
};

struct hfd_check_result {
    enum hfd_check_verdict verdict;
    char seen[320]; /* failed: the first answer that broke the rule; skipped: why */
};

#define HFD_CHECK_ORDERS_MAX 6
#define HFD_CHECK_ID_LEN 32

/* The task of a check. Texts are borrowed. */
struct hfd_check_options {
    const char *target;
    hfd_slice input, update; /* documents; ${id} is the GUResID. update.p is NULL without one */
    int64_t patience_us;     /* of one operation */
    int64_t interval_us;     /* between polls; 0 = as the driver asks, or 1 to 10 s */
    void (*say)(const char *text);     /* progress; NULL = none */
    const volatile sig_atomic_t *stop; /* set: no more steps, clean up */
};

struct hfd_check_report {
    struct hfd_check_result of[HFD_CHECK_RULE_COUNT];
    char left[HFD_CHECK_ORDERS_MAX][HFD_CHECK_ID_LEN + 1]; /* GUResIDs that could not be deleted */
    size_t left_count;
};

/**
 * Checks a driver.
 * @param rng  where GUResIDs come from
 * @return HFD_OK: the report is filled; HFD_IO: the driver cannot be reached, or refuses the
 * caller; HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_check_run(struct hfd_client_http *http,
                                    const struct hfd_check_options *options,
                                    const struct hfd_rng *rng, struct hfd_check_report *report,
                                    struct hfd_err *err);

#endif
