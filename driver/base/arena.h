/*
 * The memory of one piece of work. A command, its transaction and its result allocate here, and one
 * call frees everything. An arena has a ceiling, so that no input can take all memory. Thread: one
 * at a time.
 *
 * Memory that many pieces of work share. Each takes its bytes before it allocates them, and gives
 * them back when they are freed. So no number of them together takes more than the bound.
 * Thread: any.
 */
#ifndef HFD_BASE_ARENA_H
#define HFD_BASE_ARENA_H

#include "driver/base/slice.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct hfd_arena_chunk;

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
    long long used = atomic_load(&b->used_bytes);

    while (used <= b->max_bytes - bytes)
        if (atomic_compare_exchange_weak(&b->used_bytes, &used, used + bytes))
            return true;
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

struct hfd_arena {
    struct hfd_arena_chunk *chunks; /* newest first */
    size_t used_bytes;              /* handed out in all, against max_bytes */
    size_t max_bytes;
    struct hfd_budget *budget; /* what its chunks are taken from; NULL = none */
    int64_t taken_bytes;       /* from the budget */
    bool wipe;                 /* it holds a secret: what is freed is overwritten first */
    bool full;                 /* the ceiling refused memory; malloc's refusals do not count */
};

/** Sets up an empty arena. Never fails, and allocates nothing yet. */
void hfd_arena_init(struct hfd_arena *a, size_t max_bytes);
/** Frees everything. The arena can be used again. */
void hfd_arena_fini(struct hfd_arena *a);

/**
 * Gives zeroed memory, aligned for any type. It lives until hfd_arena_fini or a rewind.
 * @return NULL when memory is out or the ceiling is reached; callers answer HFD_NOMEM
 */
void *hfd_arena_alloc(struct hfd_arena *a, size_t size_bytes);
/**
 * Gives memory for an array.
 * @return NULL also when count * size_bytes overflows
 */
void *hfd_arena_array(struct hfd_arena *a, size_t count, size_t size_bytes);

/** A fill level of an arena: hfd_arena_rewind frees what was handed out after it. */
struct hfd_arena_mark {
    struct hfd_arena_chunk *chunk;
    size_t chunk_used, used_bytes;
};

/** Notes the present fill level. */
struct hfd_arena_mark hfd_arena_mark(const struct hfd_arena *a);
/**
 * Frees what was handed out since the mark.
 * @param mark from this arena, and older than no later rewind or fini
 */
void hfd_arena_rewind(struct hfd_arena *a, struct hfd_arena_mark mark);

/**
 * Copies a slice, and adds a NUL behind it.
 * @return p is NULL on failure, and only then: an empty slice gives a pointer, too
 */
hfd_slice hfd_arena_dup(struct hfd_arena *a, hfd_slice s);
/**
 * Copies a text of others by hfd_foreign_sentence. It has at most max bytes, and no NUL behind it.
 * p is NULL if memory is short.
 */
hfd_slice hfd_arena_show(struct hfd_arena *a, hfd_slice text, size_t max);
/**
 * Formats a text.
 * @return p is NULL on failure
 */
hfd_slice hfd_arena_printf(struct hfd_arena *a, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
