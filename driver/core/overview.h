/*
 * The list of driver resources for people: filtered, in order, page by page. A page shows all
 * resources as of one time, which the first page sets. A resource that does not change meanwhile is
 * on exactly one of the pages. Thread: any reader, inside a transaction function.
 *
 * Orders of the last 24 hours and 7 days, how many failed and how long they took, for the status
 * page. Thread: any reader, inside a transaction function.
 *
 * Orphans: clusters and nodepools with the label humanitec_guresid that are a part of no resource.
 * They come from a store that was lost, another driver, or a label that a person copied. A PUT of
 * their GUResID adopts them; nothing else removes them but a person, with hfd_orphan_remove.
 * README.md, "Lost and found".
 */
#ifndef HFD_CORE_OVERVIEW_H
#define HFD_CORE_OVERVIEW_H

#include "driver/core/driver.h"
#include "driver/core/outcome.h"

struct hfd_cause;

#define HFD_OVERVIEW_SIZE_MAX 500
#define HFD_OVERVIEW_LABELS_MAX 16
/** Causes that are told apart in a list; of each kind of trouble, one more is for the others. */
#define HFD_OVERVIEW_CAUSES_MAX 60
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
    bool stuck, degraded, drifted; /* only those */
    hfd_slice who, reason;         /* of its cause, as hfd_cause; empty = any */
    enum hfd_overview_order order;
    size_t size;       /* of the page: 1 to HFD_OVERVIEW_SIZE_MAX */
    size_t cause_size; /* items of each cause */
    bool goes_on;      /* behind `after`, as of time_us; else from the beginning, as of c->now_us */
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
    int64_t usual_us; /* its first estimate, which never moves: what is usual */
    struct hfd_cause cause;
    hfd_slice code;    /* of a failure: "RES-104" */
    hfd_slice message; /* what it waits for, why it failed, or why it is degraded */
    hfd_slice drift;   /* of a ready one: hfd_resource_row.drift; empty = none */
    int64_t drift_count;
    hfd_slice health; /* of a ready one: "Healthy", "Progressing", "Degraded" */
    hfd_slice labels; /* JSON object, without the driver's own */
    hfd_slice cluster_id;
    int64_t created_us;
};

/* Kinds of trouble, the gravest first. */
enum hfd_overview_trouble {
    HFD_OVERVIEW_FAILED,
    HFD_OVERVIEW_STUCK,
    HFD_OVERVIEW_DEGRADED,
    HFD_OVERVIEW_TROUBLES
};
/** "failed", "stuck", "degraded". */
const char *hfd_overview_trouble_name(enum hfd_overview_trouble trouble);

/** A cause that resources in trouble have in common. */
struct hfd_overview_cause {
    enum hfd_overview_trouble trouble;
    struct hfd_cause
        cause; /* without words; a cause without reason is unknown, or stands for many */
    int64_t count;
    int64_t since_us;                /* of the oldest */
    struct hfd_overview_item *items; /* the oldest: cause_size of the query */
    size_t item_count;
};

struct hfd_overview {
    struct hfd_overview_item *items;
    size_t count;
    int64_t counts[HFD_STATE_COUNT];     /* of all that match everything but `states` */
    int64_t stuck_count, degraded_count; /* of the same */
    struct hfd_overview_cause *causes;   /* of the same: by trouble, the most frequent first */
    size_t cause_count;
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

#define HFD_DAY_US (24 * 3600 * INT64_C(1000000))
#define HFD_TREND_BARS_MAX 28

/** The sums of a piece of time. */
struct hfd_trend_bar {
    int64_t orders;            /* creations and changes that were asked for */
    int64_t failed;            /* operations that failed */
    int64_t finished;          /* orders whose resource became ready */
    int64_t median_us, p95_us; /* how long these took; 0 = there is none */
};

struct hfd_trend_range {
    int64_t bar_us;
    size_t count;
    struct hfd_trend_bar all, bars[HFD_TREND_BARS_MAX]; /* the oldest first */
};

struct hfd_trends {
    struct hfd_trend_range day, week; /* bars of an hour, and of 6 hours */
    int64_t first_us;                 /* the oldest action that is known; 0 = there is none */
    int64_t whole_since_us; /* older actions were not looked at (HFD_DAY_MAX); 0 = all were */
};

/** Reads it as of c->now_us. @return HFD_OK, HFD_NOMEM, HFD_IO, HFD_CORRUPT */
HFD_MUST_CHECK hfd_rc hfd_trends_read(const struct hfd_ctx *c, struct hfd_trends *out);

#define HFD_ORPHANS_MAX 1000 /* of each kind in one list */

struct hfd_orphans {
    struct hfd_orphan_list list; /* by GUResID and age, clusters before nodepools */
    bool more;                   /* there are more than the list has */
    struct hfd_backend_orphans_state as;
};

/**
 * Lists orphans. It reads the labels of all resources. Thread: reader.
 * @param owner  whose; a remote has none but this server's
 */
HFD_MUST_CHECK hfd_rc hfd_orphans_list(struct hfd_txn *tx, const struct hfd_backend *ops,
                                       const struct hfd_orphan_owner *owner, struct hfd_arena *mem,
                                       struct hfd_orphans *out, struct hfd_err *err);

/**
 * Adds the objects of an adapter of this program whose resource has no row here. An item has the
 * HyperFleet id of before, and its `error` names the object. Thread: reader.
 */
HFD_MUST_CHECK hfd_rc hfd_orphans_add_objects(const struct hfd_ctx *c, struct hfd_orphans *out);

struct hfd_orphan_choice {
    hfd_slice id;
    hfd_slice owner; /* the server that it must belong to; empty = this one */
};

/**
 * Deletes an orphan in HyperFleet as a DELETE there would. An orphan of a remote is read once more
 * and deleted later.
 * @param out  the orphan as it was read last; one of a remote has only kind, id, name and label
 * @return HFD_OK, HFD_NOT_FOUND (no such resource, or no such orphan is known), HFD_CONFLICT (it is
 * no orphan of that server)
 * Thread: writer.
 */
HFD_MUST_CHECK hfd_rc hfd_orphan_remove(const struct hfd_ctx *c, hfd_slice caller,
                                        const struct hfd_orphan_choice *chosen,
                                        struct hfd_fleet_deletion *out);

#endif
