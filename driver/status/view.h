/*
 * The answer to EMCO's status query: its document, and the order of its objects. Equal states give
 * equal bytes. Pure. Source: EMCO status query, "Output of Status Query". Thread: any.
 */
#ifndef HFD_STATUS_VIEW_H
#define HFD_STATUS_VIEW_H

#include "driver/status/query.h"
#include "driver/status/rules.h"
#include "driver/status/state.h"

/** One object of the answer. Texts live as long as the view. */
struct hfd_status_item {
    struct hfd_status_place place;
    hfd_slice group, version, kind;
    hfd_slice node; /* of a PacemakerCluster document */
    enum hfd_rsync rsync;
    enum hfd_presence presence;
    /* With output=detail; each may be empty. */
    hfd_slice detail;     /* JSON object */
    hfd_slice conditions; /* JSON array */
    hfd_slice waiting;    /* why it is not there yet */
    bool has_progress;
    int64_t progress; /* percent */
};

struct hfd_status_view {
    hfd_slice name, id;
    hfd_slice type, project; /* empty = left out */
    struct hfd_status_state state;
    bool has_phase; /* there is an instance */
    enum hfd_status_phase phase;
    struct hfd_status_counts counts; /* of what the query asks for */
    struct hfd_status_item *items;   /* none for a summary */
    size_t item_count;
    /* With output=detail. */
    int64_t progress;     /* percent of all objects of the instance */
    hfd_slice conditions; /* JSON array, or empty */
    hfd_slice message;    /* what the operation waits for, or empty */
};

/** Puts the objects in their order: app, cluster, name, kind. Equal ones keep theirs. */
HFD_MUST_CHECK hfd_rc hfd_status_view_sort(struct hfd_status_view *view, struct hfd_arena *mem,
                                           struct hfd_err *err);

/** Adds the document of a sorted view. */
void hfd_status_view_format(struct hfd_buf *b, const struct hfd_status_query *q,
                            const struct hfd_status_view *view);

/** Percent of objects that are done: Applied, or Terminated when that was asked for. */
int64_t hfd_status_progress(const int64_t rsync[HFD_RSYNC_COUNT], bool terminating);

#endif
