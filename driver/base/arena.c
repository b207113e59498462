/* See arena.h. */
#include "driver/base/arena.h"

#include "driver/base/foreign.h"
#include "driver/base/slice.h"

#include <sodium.h>

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* An arena: bump allocation in chunks. */

#define ALIGN sizeof(max_align_t)
#define CHUNK_MIN 2048
#define CHUNK_MAX 65536
#define PRINTF_FIRST_BYTES 256

struct hfd_arena_chunk {
    struct hfd_arena_chunk *next;
    size_t cap;
    size_t used;
    _Alignas(max_align_t) char bytes[];
};

void hfd_arena_init(struct hfd_arena *a, size_t max_bytes)
{
    *a = (struct hfd_arena){.max_bytes = max_bytes};
}

/* Overwrites a chunk from a place on, if the arena holds a secret. */
static void wipe(const struct hfd_arena *a, struct hfd_arena_chunk *c, size_t from)
{
    if (a->wipe)
        sodium_memzero(c->bytes + from, c->used - from);
}

void hfd_arena_fini(struct hfd_arena *a)
{
    struct hfd_arena_chunk *c = a->chunks;

    while (c != NULL) {
        struct hfd_arena_chunk *next = c->next;

        wipe(a, c, 0);
        free(c);
        c = next;
    }
    a->chunks = NULL;
    a->used_bytes = 0;
    a->full = a->wipe = false;
    if (a->budget != NULL)
        hfd_budget_give(a->budget, a->taken_bytes);
    a->taken_bytes = 0;
}

/* Takes the bytes of a chunk from the budget. Returns false if it has not so many. */
static bool take(struct hfd_arena *a, size_t cap)
{
    if (a->budget == NULL || cap <= HFD_BUDGET_FREE_BYTES)
        return true;
    if (cap > INT64_MAX || !hfd_budget_take(a->budget, (int64_t)cap))
        return false;
    a->taken_bytes += (int64_t)cap;
    return true;
}

static void give(struct hfd_arena *a, size_t cap)
{
    if (a->budget == NULL || cap <= HFD_BUDGET_FREE_BYTES)
        return;
    hfd_budget_give(a->budget, (int64_t)cap);
    a->taken_bytes -= (int64_t)cap;
}

/*
 * Puts a chunk with room for `need` bytes in front. Each chunk is twice as large as the one before,
 * so that many small pieces cost few calls.
 * @return NULL when memory is out
 */
static struct hfd_arena_chunk *add_chunk(struct hfd_arena *a, size_t need)
{
    size_t cap = a->chunks != NULL ? a->chunks->cap * 2 : CHUNK_MIN;
    struct hfd_arena_chunk *c;

    if (cap > CHUNK_MAX)
        cap = CHUNK_MAX;
    if (cap < need)
        cap = need;
    if (cap > SIZE_MAX - sizeof(*c))
        return NULL;
    if (!take(a, cap))
        return NULL;
    c = malloc(sizeof(*c) + cap);
    if (c == NULL) {
        give(a, cap);
        return NULL;
    }
    c->cap = cap;
    c->used = 0;
    c->next = a->chunks;
    a->chunks = c;
    return c;
}

/* Gives memory that is not zeroed. Its errors are those of hfd_arena_alloc. */
static void *bump(struct hfd_arena *a, size_t size_bytes)
{
    struct hfd_arena_chunk *c = a->chunks;
    size_t need;
    void *p;

    if (size_bytes > SIZE_MAX - ALIGN)
        return NULL;
    need = size_bytes == 0 ? ALIGN : (size_bytes + ALIGN - 1) / ALIGN * ALIGN;
    if (a->used_bytes > a->max_bytes || need > a->max_bytes - a->used_bytes) {
        a->full = true;
        return NULL;
    }
    if (c == NULL || need > c->cap - c->used) {
        c = add_chunk(a, need);
        if (c == NULL)
            return NULL;
    }
    p = c->bytes + c->used;
    c->used += need;
    a->used_bytes += need;
    return p;
}

void *hfd_arena_alloc(struct hfd_arena *a, size_t size_bytes)
{
    void *p = bump(a, size_bytes);

    return p != NULL ? memset(p, 0, size_bytes) : NULL;
}

void *hfd_arena_array(struct hfd_arena *a, size_t count, size_t size_bytes)
{
    size_t total;

    return __builtin_mul_overflow(count, size_bytes, &total) ? NULL : hfd_arena_alloc(a, total);
}

struct hfd_arena_mark hfd_arena_mark(const struct hfd_arena *a)
{
    return (struct hfd_arena_mark){a->chunks, a->chunks != NULL ? a->chunks->used : 0,
                                   a->used_bytes};
}

void hfd_arena_rewind(struct hfd_arena *a, struct hfd_arena_mark mark)
{
    while (a->chunks != mark.chunk) {
        struct hfd_arena_chunk *c = a->chunks;

        a->chunks = c->next;
        give(a, c->cap);
        wipe(a, c, 0);
        free(c);
    }
    if (a->chunks != NULL) {
        wipe(a, a->chunks, mark.chunk_used);
        a->chunks->used = mark.chunk_used;
    }
    a->used_bytes = mark.used_bytes;
}

hfd_slice hfd_arena_dup(struct hfd_arena *a, hfd_slice s)
{
    char *p;

    if (s.len == SIZE_MAX)
        return HFD_SLICE_NONE;
    p = bump(a, s.len + 1);
    if (p == NULL)
        return HFD_SLICE_NONE;
    if (s.len > 0)
        memcpy(p, s.p, s.len);
    p[s.len] = '\0';
    return (hfd_slice){p, s.len};
}

hfd_slice hfd_arena_show(struct hfd_arena *a, hfd_slice text, size_t max)
{
    const size_t room =
        text.len < max / HFD_FOREIGN_CHAR_MAX ? text.len * HFD_FOREIGN_CHAR_MAX : max;
    char *p = hfd_arena_alloc(a, room + 1);

    return p != NULL ? (hfd_slice){p, hfd_foreign_sentence(text, max, p)} : HFD_SLICE_NONE;
}

hfd_slice hfd_arena_printf(struct hfd_arena *a, const char *fmt, ...)
{
    char first[PRINTF_FIRST_BYTES]; /* formatting is dear, so most texts are formatted once */
    va_list ap;
    char *p;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(first, sizeof(first), fmt, ap);
    va_end(ap);
    if (n < 0)
        return HFD_SLICE_NONE;
    p = bump(a, (size_t)n + 1);
    if (p == NULL)
        return HFD_SLICE_NONE;
    if ((size_t)n < sizeof(first)) {
        memcpy(p, first, (size_t)n + 1);
        return (hfd_slice){p, (size_t)n};
    }
    va_start(ap, fmt);
    n = vsnprintf(p, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return (hfd_slice){p, (size_t)n};
}
