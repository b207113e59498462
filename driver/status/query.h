/*
 * The parameters of EMCO's status query. Repeats of app, cluster and resource widen, different
 * parameters narrow. Pure. Source: EMCO status query, "Status Query". Thread: any.
 */
#ifndef HFD_STATUS_QUERY_H
#define HFD_STATUS_QUERY_H

#include "driver/base/arena.h"

enum hfd_status_type {
    HFD_STATUS_TYPE_RSYNC,
    HFD_STATUS_TYPE_CLUSTER
};

enum hfd_status_output {
    HFD_STATUS_OUTPUT_ALL,
    HFD_STATUS_OUTPUT_SUMMARY,
    HFD_STATUS_OUTPUT_DETAIL
};

/** Values of one parameter, each of which is enough. */
struct hfd_status_values {
    hfd_slice *items;
    size_t count; /* 0 = all */
};

/** How often each filter may be given. */
#define HFD_STATUS_VALUES_MAX 100

/** All 0: the defaults. */
struct hfd_status_query {
    enum hfd_status_type type;
    enum hfd_status_output output;
    struct hfd_status_values apps, clusters, resources; /* a cluster is PROVIDER+CLUSTER */
    bool has_instance;
    hfd_slice instance;
    bool type_given, output_given; /* the first one counts */
};

/**
 * Takes a parameter. One that it does not know changes nothing.
 * @param value  decoded; copied into mem
 * @return HFD_OK, HFD_BAD_REQUEST, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_status_query_take(struct hfd_status_query *q, hfd_slice name,
                                            hfd_slice value, struct hfd_arena *mem,
                                            struct hfd_err *err);

/** An object's place and name. */
struct hfd_status_place {
    hfd_slice app, provider, cluster, name;
};

/** True if no filter is given: the query is about all objects. */
bool hfd_status_query_is_whole(const struct hfd_status_query *q);
/** Tells if the query is about an adapter, whatever else. */
bool hfd_status_query_has_app(const struct hfd_status_query *q, hfd_slice app);
/** Tells if the query is about an object. */
bool hfd_status_query_has(const struct hfd_status_query *q, const struct hfd_status_place *place);

/** A name of an app, a cluster or an object: letters and digits, inside also "-", "_", ".", ":". */
bool hfd_status_name_ok(hfd_slice text);

#endif
