/*
 * Entries stand in pairs. A new one replaces the older of its pair, so that two rows with the same
 * hash do not push each other out.
 */
#include "store/row_cache.h"

#include "store/table.h"

#include <stdlib.h>

#define PAIRS 2048u
#define BYTES_MAX ((size_t)2 << 20)
#define ROW_MAX_BYTES 8192u

/* The row and its text in one piece. */
struct entry {
    int64_t seq;
    size_t text_bytes;
    struct hfd_resource_row row;
    char text[];
};

struct hfd_row_cache {
    const struct hfd_row_stamps *stamps;
    size_t bytes;
    struct entry *pairs[PAIRS][2]; /* the newer one first */
};

static uint64_t hash(hfd_slice s)
{
    const uint64_t h = hfd_slice_hash(HFD_HASH_START, s);

    return h ^ h >> 32;
}

void hfd_row_stamps_change(struct hfd_row_stamps *stamps, hfd_slice guresid)
{
    atomic_store(&stamps->changed[hash(guresid) % HFD_STAMP_SLOTS],
                 atomic_load(&stamps->committed) + 1);
    stamps->touched = true;
}

bool hfd_row_stamps_commit(struct hfd_row_stamps *stamps)
{
    const bool touched = stamps->touched;

    stamps->touched = false;
    atomic_fetch_add(&stamps->committed, 1);
    return touched;
}

struct hfd_row_mark hfd_row_stamps_mark(const struct hfd_row_stamps *stamps, hfd_slice guresid)
{
    return (struct hfd_row_mark){hash(guresid) % HFD_STAMP_SLOTS, atomic_load(&stamps->committed),
                                 atomic_load(&stamps->others)};
}

/* A commit that is on its way does not count: nothing could be read yet. */
bool hfd_row_stamps_changed(const struct hfd_row_stamps *stamps, const struct hfd_row_mark *mark)
{
    const int64_t changed = atomic_load(&stamps->changed[mark->slot]);

    return atomic_load(&stamps->others) != mark->others ||
           (changed > mark->own && changed <= atomic_load(&stamps->committed));
}

struct hfd_row_cache *hfd_row_cache_new(const struct hfd_row_stamps *stamps)
{
    struct hfd_row_cache *cache = calloc(1, sizeof(*cache));

    if (cache != NULL)
        cache->stamps = stamps;
    return cache;
}

static size_t size_of(const struct entry *e)
{
    return e == NULL ? 0 : sizeof(*e) + e->text_bytes;
}

void hfd_row_cache_free(struct hfd_row_cache *cache)
{
    if (cache == NULL)
        return;
    for (size_t i = 0; i < PAIRS; i++) {
        free(cache->pairs[i][0]);
        free(cache->pairs[i][1]);
    }
    free(cache);
}

bool hfd_row_cache_get(const struct hfd_row_cache *cache, hfd_slice guresid, struct hfd_arena *mem,
                       struct hfd_resource_row *out)
{
    const uint64_t h = hash(guresid);
    struct entry *const *pair = cache->pairs[h % PAIRS];

    for (size_t i = 0; i < 2; i++) {
        const struct entry *e = pair[i];
        char *text;

        if (e == NULL || !hfd_slice_eq(e->row.guresid, guresid))
            continue;
        if (atomic_load(&cache->stamps->changed[h % HFD_STAMP_SLOTS]) > e->seq)
            return false;
        text = hfd_arena_alloc(mem, e->text_bytes);
        if (text == NULL)
            return false;
        *out = e->row;
        hfd_table_take(&hfd_resource_table, out, text);
        return true;
    }
    return false;
}

static struct entry *entry_of(const struct hfd_resource_row *row, int64_t seq)
{
    const size_t n = hfd_table_bytes(&hfd_resource_table, row);
    struct entry *e;

    if (n > ROW_MAX_BYTES)
        return NULL;
    e = malloc(sizeof(*e) + n);
    if (e == NULL)
        return NULL;
    e->seq = seq;
    e->text_bytes = n;
    e->row = *row;
    hfd_table_take(&hfd_resource_table, &e->row, e->text);
    return e;
}

void hfd_row_cache_put(struct hfd_row_cache *cache, const struct hfd_resource_row *row, int64_t seq)
{
    struct entry **pair = cache->pairs[hash(row->guresid) % PAIRS], *e = entry_of(row, seq);
    const size_t out = pair[0] != NULL && hfd_slice_eq(pair[0]->row.guresid, row->guresid) ? 0 : 1;

    if (e == NULL || cache->bytes - size_of(pair[out]) + size_of(e) > BYTES_MAX) {
        free(e);
        return;
    }
    cache->bytes += size_of(e) - size_of(pair[out]);
    free(pair[out]);
    if (out == 1)
        pair[1] = pair[0];
    pair[0] = e;
}
