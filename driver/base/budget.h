/*
 * Memory that many pieces of work share. Each takes its bytes before it allocates them, and gives
 * them back when they are freed. So no number of them together takes more than the bound.
 * Thread: any.
 */
#ifndef HFD_BASE_BUDGET_H
#define HFD_BASE_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Allocations up to this size are not counted: there are few of them for each request. */
#define HFD_BUDGET_FREE_BYTES 4096

struct hfd_budget {
    atomic_llong used_bytes;
    int64_t max_bytes;
};

/** Takes bytes whatever the bound is: the memory is there already. */
static inline void hfd_budget_add(struct hfd_budget *b, int64_t bytes)
{
    if (bytes != 0)
        atomic_fetch_add(&b->used_bytes, bytes);
}

/** Takes bytes if they are within the bound. @return false: nothing is taken */
static inline bool hfd_budget_take(struct hfd_budget *b, int64_t bytes)
{
    if (atomic_fetch_add(&b->used_bytes, bytes) <= b->max_bytes - bytes)
        return true;
    atomic_fetch_sub(&b->used_bytes, bytes);
    return false;
}

/** Gives bytes back. */
static inline void hfd_budget_give(struct hfd_budget *b, int64_t bytes)
{
    if (bytes != 0)
        atomic_fetch_sub(&b->used_bytes, bytes);
}

/** Returns true if nothing is left. */
static inline bool hfd_budget_is_spent(const struct hfd_budget *b)
{
    return atomic_load(&b->used_bytes) >= b->max_bytes;
}

#endif
