/* Answers that are errors. Thread: that of the exchange's loop. */
#ifndef HFD_HTTP_EXCHANGE_FAIL_H
#define HFD_HTTP_EXCHANGE_FAIL_H

#include "driver/base/err.h"

struct hfd_exchange;
struct hfd_violations;
struct hfd_health_violations;
struct hfd_problem;

/** Sends an error in the route's dialect: RES-1xx, problem+json, or plain JSON (reply.c). */
void hfd_exchange_fail(struct hfd_exchange *x, hfd_rc rc, const struct hfd_err *err);
/** The same with another status than that of rc. */
void hfd_exchange_fail_as(struct hfd_exchange *x, int status, hfd_rc rc, const struct hfd_err *err);
/**
 * The same, with every violation of the body in errors[] of the problem. err is the first of them.
 * fields may be empty.
 */
void hfd_exchange_fail_fields(struct hfd_exchange *x, hfd_rc rc, const struct hfd_err *err,
                              const struct hfd_violations *fields);
/** The same with the rules of a PacemakerCluster document that are violated; they may be none. */
void hfd_exchange_fail_rules(struct hfd_exchange *x, hfd_rc rc, const struct hfd_err *err,
                             const struct hfd_health_violations *rules);

/** Sends a problem as it is. @param allow  the header Allow; NULL = none */
void hfd_exchange_problem(struct hfd_exchange *x, struct hfd_problem *p, const char *allow);

#endif
