/* Reads answers that are pages of lists. Thread: writer, inside a transaction function. */
#ifndef HFD_REMOTE_TAKE_LIST_H
#define HFD_REMOTE_TAKE_LIST_H

#include "driver/backend/remote/take.h"

/* A pass reads at most this number of pages of one list. */
#define HFD_TAKE_PAGES_MAX 200

/** A page of clusters or nodepools, without those that cannot be read. */
struct hfd_take_docs {
    struct hfd_wire_resource *docs;
    size_t count;
    bool last;
};

/** Reads the answer as a page, and counts it. Fails the pass if it is not a list. */
HFD_MUST_CHECK hfd_rc hfd_take_docs(struct hfd_take *t, enum hfd_kind kind,
                                    struct hfd_take_docs *out, struct hfd_err *err);

/** Counts a page of the present phase's list. @return whether it is the last one */
bool hfd_take_page(struct hfd_take *t, const struct hfd_wire_page *page, int64_t pages_max);
/** The list of the present phase begins anew. */
void hfd_take_restart_list(struct hfd_take *t);

typedef hfd_rc hfd_take_item_fn(struct hfd_take *t, const struct hfd_wire_resource *doc,
                                struct hfd_err *err);
/**
 * Calls fn for each resource of a long list, with memory of its own in t->mem. Skips what cannot be
 * read.
 */
HFD_MUST_CHECK hfd_rc hfd_take_items(struct hfd_take *t, const struct hfd_wire_page *page,
                                     hfd_take_item_fn *fn, struct hfd_err *err);
/** The kind that a list of MANY or SEARCH has in the present phase. */
enum hfd_kind hfd_take_kind(const struct hfd_take *t);

#endif
