/*
 * Finds the resource behind a request, by its GUResID or by its cookie, and makes a lost row again.
 * README.md, "Lost and found". Thread: any for hfd_lookup and hfd_lookup_lost, else writer; inside
 * a transaction function.
 */
#ifndef HFD_CORE_LOOKUP_H
#define HFD_CORE_LOOKUP_H

#include "driver/core/cookie.h"
#include "driver/core/transition.h"

struct hfd_found {
    bool exists;                 /* there is a row */
    struct hfd_resource_row row; /* settled: a passed deadline is taken into account */
    bool is_late;                /* it is; `late` moved the copy in `row` from `stored` */
    struct hfd_move late;
    enum hfd_state stored;
    struct hfd_cookie cookie; /* the caller's, unless it is the row's own */
};

/**
 * Reads the row. A cookie must open even if it is not needed: a forged one is refused on every
 * method. The cookie of an earlier incarnation counts as none.
 * @return HFD_OK (also without a row), HFD_COOKIE
 */
HFD_MUST_CHECK hfd_rc hfd_lookup(const struct hfd_ctx *c, const struct hfd_call *call,
                                 struct hfd_found *out);

/** The knowledge about a resource that has a cookie and no row. */
enum hfd_lost {
    HFD_LOST_NOTHING, /* HyperFleet has nothing of it */
    HFD_LOST_IN_ROWS, /* the rows show its part: it can be made again at once */
    HFD_LOST_UNKNOWN  /* the backend has to find out */
};
HFD_MUST_CHECK hfd_rc hfd_lookup_lost(const struct hfd_ctx *c, const struct hfd_call *call,
                                      const struct hfd_found *found, enum hfd_lost *out);

/** Makes a lost row again, from the rows or with a place-holder. NOTHING changes nothing. */
HFD_MUST_CHECK hfd_rc hfd_lookup_restore(const struct hfd_ctx *c, const struct hfd_call *call,
                                         enum hfd_lost lost, struct hfd_found *found);

/** The member of a cluster's spec that says: its objects are to be found, and to be deleted. */
#define HFD_LOST_MEMBER "lost"
/**
 * Tells whether an adapter of this program may have objects of a resource that has a cookie of ours
 * and no row. Its history is asked too: a life that a DELETE ended has none.
 */
HFD_MUST_CHECK hfd_rc hfd_lookup_may_have_objects(const struct hfd_ctx *c,
                                                  const struct hfd_call *call,
                                                  const struct hfd_found *found, bool *out);
/** Makes the row again for a deletion, with a cluster that stands for what the adapter finds. */
HFD_MUST_CHECK hfd_rc hfd_lookup_restore_objects(const struct hfd_ctx *c,
                                                 const struct hfd_call *call,
                                                 struct hfd_found *found);

/**
 * Tells whether the cookie is of a life that a DELETE ended, while the resource is in another one.
 * Known as long as the history has the removal. Without a cookie: false.
 */
HFD_MUST_CHECK hfd_rc hfd_lookup_ended(const struct hfd_ctx *c, const struct hfd_found *found,
                                       bool *out);

/** True if the path is for resources of another kind. */
static inline bool hfd_lookup_other_kind(const struct hfd_call *call,
                                         const struct hfd_resource_row *row)
{
    return call->only != 0 && (int)row->kind != call->only;
}

#endif
