/* The state of the check, its orders, and one exchange: shared by its parts. Thread: main. */
#ifndef HFD_CLIENT_CHECK_INT_H
#define HFD_CLIENT_CHECK_INT_H

#include "driver/base/check.h"
#include "driver/base/jsonx.h"
#include "handlers/client/check.h"

/* A resource that the check may have made. */
struct hfd_check_order {
    char id[HFD_CHECK_ID_LEN + 1];
    struct hfd_buf cookie; /* empty = none is sent */
    bool may_exist;
    const char *operation; /* what a hint should name; NULL = not known */
    char timeout[64];      /* of the present operation; "" = not seen yet */
};

struct hfd_check {
    struct hfd_client_http *http;
    const struct hfd_check_options *options;
    struct hfd_check_report *report;
    const struct hfd_rng *rng;
    struct hfd_check_order orders[HFD_CHECK_ORDERS_MAX];
    size_t order_count;
    bool get_is_served;
    char last[240]; /* the last answer of a poll, for `seen` */
    bool broken;    /* no answer came: nothing more can be judged */
};

enum hfd_check_method {
    HFD_CHECK_GET,
    HFD_CHECK_PUT,
    HFD_CHECK_DELETE
};

/* A request for an order. */
struct hfd_check_ask {
    struct hfd_check_order *order;
    enum hfd_check_method method;
    hfd_slice body;            /* of a PUT; ${id} is replaced; p is NULL for none */
    const char *cookie_header; /* NULL = Humanitec-Driver-Cookie; "" = no cookie is sent */
    hfd_slice cookie;          /* in place of the order's; p is NULL for that */
};

/* Its answer. */
struct hfd_check_answer {
    struct hfd_client_answer http;
    json_t *doc;    /* NULL without one */
    char text[240]; /* for `seen`: "PUT answered 500 (...)" */
};

/** A new order with an id of its own. */
struct hfd_check_order *hfd_check_new_order(struct hfd_check *k);

/** Sends a request, keeps its cookie, and judges all that holds for every answer. */
void hfd_check_send(struct hfd_check *k, const struct hfd_check_ask *ask,
                    struct hfd_check_answer *out);
/** As hfd_check_send, with `count` equal requests at once. */
void hfd_check_send_many(struct hfd_check *k, const struct hfd_check_ask *ask,
                         struct hfd_check_answer *out, size_t count);
void hfd_check_answer_fini(struct hfd_check_answer *a);

/** Fails a rule that is not met, or passes one that has not failed. @param seen  when it is not */
void hfd_check_judge(struct hfd_check *k, enum hfd_check_rule rule, bool met, const char *seen);
/** Says why a rule was not judged, if it was not. */
void hfd_check_skip(struct hfd_check *k, enum hfd_check_rule rule, const char *why);

/** True when no further step makes sense. */
bool hfd_check_stopped(const struct hfd_check *k);

/** Polls until an operation has ended, or patience has. @return the last status, or 0 */
int hfd_check_poll(struct hfd_check *k, const struct hfd_check_ask *ask, int while_status);

#endif
