/* Finds the name that a misspelt one is nearest to. Pure. Thread: any. */
#ifndef HFD_BASE_NEAREST_H
#define HFD_BASE_NEAREST_H

#include "driver/base/slice.h"

/** A search among names. */
struct hfd_nearest {
    hfd_slice given; /* borrows */
    size_t edits;    /* of the nearest so far; at first one more than what counts as near */
};

/** Begins a search. Near means an edit in three characters at most; a swap of two is one edit. */
static inline struct hfd_nearest hfd_nearest_to(hfd_slice given)
{
    return (struct hfd_nearest){given, given.len / 3 + 1};
}

/** Returns true if a name is near, and nearer than all before. Names over 80 bytes never are. */
bool hfd_nearest_consider(struct hfd_nearest *n, hfd_slice name);

#endif
