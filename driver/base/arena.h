/*
 * Memory of one piece of work: everything a command, its transaction and its result allocate lives
 * here and goes away in one call. It has a ceiling, so that no input can take all memory. Owned by
 * one thread at a time.
 */
#ifndef HFD_BASE_ARENA_H
#define HFD_BASE_ARENA_H

#include "driver/base/slice.h"

struct hfd_arena_chunk;

struct hfd_arena {
    struct hfd_arena_chunk *chunks; /* newest first */
    size_t used_bytes;              /* handed out in all, against max_bytes */
    size_t max_bytes;
};

/** Never fails; allocates nothing yet. */
void hfd_arena_init(struct hfd_arena *a, size_t max_bytes);
/** Frees everything; the arena can be used again. */
void hfd_arena_fini(struct hfd_arena *a);

/**
 * Zeroed memory, aligned for any type.
 * @return NULL when out of memory or over the ceiling: callers answer HFD_NOMEM
 */
void *hfd_arena_alloc(struct hfd_arena *a, size_t size_bytes);
/** As alloc for an array; NULL on overflow as well. */
void *hfd_arena_array(struct hfd_arena *a, size_t count, size_t size_bytes);

/** How far an arena was filled: hfd_arena_rewind takes back what was handed out after it. */
struct hfd_arena_mark {
    struct hfd_arena_chunk *chunk;
    size_t chunk_used, used_bytes;
};

/** How far it is filled now. */
struct hfd_arena_mark hfd_arena_mark(const struct hfd_arena *a);
/** @param mark  of this arena, and not of after a later rewind or fini */
void hfd_arena_rewind(struct hfd_arena *a, struct hfd_arena_mark mark);

/**
 * A copy, NUL-terminated for convenience. p is NULL on failure (and never otherwise, even for len
 * 0).
 */
hfd_slice hfd_arena_dup(struct hfd_arena *a, hfd_slice s);
/** Formatted text; p is NULL on failure. */
hfd_slice hfd_arena_printf(struct hfd_arena *a, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
