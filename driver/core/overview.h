/*
 * The list of driver resources for people: filtered, in order, page by page. A page shows all
 * resources as of one time, which the first page sets. A resource that does not change meanwhile is
 * on exactly one of the pages. Thread: any reader, inside a transaction function.
 */
#ifndef HFD_CORE_OVERVIEW_H
#define HFD_CORE_OVERVIEW_H

#include "driver/core/driver.h"

#define HFD_OVERVIEW_SIZE_MAX 500
#define HFD_OVERVIEW_LABELS_MAX 16
/** An operation is not stuck before this time. */
#define HFD_STUCK_AFTER_US (5 * 60 * INT64_C(1000000))

enum hfd_overview_order {
    HFD_ORDER_TROUBLE, /* failed, stuck, degraded, under way, ready; each the longest waiting first
                        */
    HFD_ORDER_CREATED, /* the newest first */
    HFD_ORDER_NAME,
    HFD_ORDERS
};
/** "trouble", "created", "name". */
const char *hfd_overview_order_name(enum hfd_overview_order order);

/** The place of a resource in an order. */
struct hfd_overview_place {
    int rank;
    int64_t at;
    char name[64]; /* cut, not terminated */
    size_t name_len;
    int64_t seq;
};

struct hfd_overview_label {
    hfd_slice key, value;
};

struct hfd_overview_query {
    unsigned states;  /* bits 1u << enum hfd_state; 0 = all */
    hfd_slice type;   /* as ordered, or its part behind "org/"; empty = all */
    hfd_slice search; /* in GUResID, name and labels, whatever the case of ASCII; empty = all */
    struct hfd_overview_label labels[HFD_OVERVIEW_LABELS_MAX]; /* all of them */
    size_t label_count;
    bool stuck; /* only those */
    enum hfd_overview_order order;
    size_t size;  /* of the page: 1 to HFD_OVERVIEW_SIZE_MAX */
    bool goes_on; /* behind `after`, as of time_us; else from the beginning, as of c->now_us */
    struct hfd_overview_place after;
    int64_t time_us;
};

/** One resource of the list. A time is 0, and a text empty, where there is none. */
struct hfd_overview_item {
    hfd_slice guresid, type, name;
    enum hfd_kind kind;
    enum hfd_state state;  /* settled: a passed deadline is taken into account */
    const char *operation; /* "create", "update", "delete" under way, or failed; else NULL */
    bool stuck;
    int64_t since_us;                              /* in this state */
    int64_t started_us, estimated_us, deadline_us; /* of an operation under way */
    hfd_slice code;                                /* of a failure: "RES-104" */
    hfd_slice message; /* what it waits for, why it failed, or why it is degraded */
    hfd_slice health;  /* of a ready one: "Healthy", "Progressing", "Degraded" */
    hfd_slice labels;  /* JSON object, without the driver's own */
    hfd_slice cluster_id;
    int64_t created_us;
};

struct hfd_overview {
    struct hfd_overview_item *items;
    size_t count;
    int64_t counts[HFD_STATE_COUNT];     /* of all that match everything but `states` */
    int64_t stuck_count, degraded_count; /* of the same */
    bool more;
    struct hfd_overview_place next; /* the place of the last item, when there are more */
    int64_t time_us;
};

/** Returns true for a page that indexes give, whatever the number of healthy resources is. */
bool hfd_overview_is_short(const struct hfd_overview_query *q);

/** Reads a page. @return HFD_OK, HFD_TIMEOUT, HFD_NOMEM, HFD_IO, HFD_CORRUPT */
HFD_MUST_CHECK hfd_rc hfd_overview_read(const struct hfd_ctx *c, const struct hfd_overview_query *q,
                                        struct hfd_overview *out);

/** Fills an item from the row of a resource as of c->now_us. */
HFD_MUST_CHECK hfd_rc hfd_overview_item_of(const struct hfd_ctx *c,
                                           const struct hfd_resource_row *row,
                                           struct hfd_overview_item *out);

/** When an operation under way counts as stuck: twice its first estimate, at least 5 minutes. */
int64_t hfd_overview_stuck_us(int64_t started_us, int64_t expected_us);

/**
 * Writes the token of the next page: the place, the time of the first page, and what was asked for.
 * @return p is NULL when memory is short
 */
hfd_slice hfd_overview_token(const struct hfd_overview_query *q, const struct hfd_overview *page,
                             struct hfd_arena *mem);
/**
 * Reads a token into q->after and q->time_us. All other members of q are set before, but size: a
 * token of another question is refused.
 * @return HFD_OK, HFD_INVALID (err->field is "after")
 */
HFD_MUST_CHECK hfd_rc hfd_overview_go_on(hfd_slice token, struct hfd_overview_query *q,
                                         struct hfd_err *err);

#endif
