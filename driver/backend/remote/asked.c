/* See asked.h. A table with buckets of four; a ring has the places of the names that wait. */
#include "driver/backend/remote/asked.h"

#include "driver/base/check.h"

#include <pthread.h>
#include <stdlib.h>

#define WAYS 4

struct entry {
    struct hfd_asked_id id; /* len 0 = free */
    bool waits;
    int64_t taken_us;
};

struct hfd_asked {
    pthread_mutex_t lock; /* of all below */
    int64_t again_us;
    size_t capacity;
    struct entry *entries;
    size_t *ring; /* places of names that wait, from `first` on */
    size_t first, waiting;
};

hfd_rc hfd_asked_new(size_t capacity, int64_t again_us, struct hfd_asked **out, struct hfd_err *err)
{
    struct hfd_asked *a = calloc(1, sizeof(*a));

    *out = NULL;
    HFD_ASSERT(capacity >= WAYS && capacity % WAYS == 0);
    if (a == NULL)
        return hfd_fail_nomem(err, "make room for polls");
    (void)pthread_mutex_init(&a->lock, NULL);
    a->again_us = again_us;
    a->capacity = capacity;
    a->entries = calloc(capacity, sizeof(*a->entries));
    a->ring = calloc(capacity, sizeof(*a->ring));
    if (a->entries == NULL || a->ring == NULL) {
        hfd_asked_free(a);
        return hfd_fail_nomem(err, "make room for polls");
    }
    *out = a;
    return HFD_OK;
}

void hfd_asked_free(struct hfd_asked *a)
{
    if (a == NULL)
        return;
    free(a->entries);
    free(a->ring);
    (void)pthread_mutex_destroy(&a->lock);
    free(a);
}

static hfd_slice name_of(const struct entry *e)
{
    return (hfd_slice){e->id.text, e->id.len};
}

/* The place of the name, or of the name to replace, taken longest ago. NULL = all of them wait. */
static struct entry *place_of(struct hfd_asked *a, hfd_slice id, bool *known)
{
    /* Names that are made to collide replace each other, as too many names do anyway. */
    const size_t at = hfd_slice_hash(HFD_HASH_START, id) % (a->capacity / WAYS) * WAYS;
    struct entry *bucket = &a->entries[at], *oldest = NULL;

    *known = true;
    for (size_t i = 0; i < WAYS; i++)
        if (hfd_slice_eq(name_of(&bucket[i]), id))
            return &bucket[i];
    *known = false;
    for (size_t i = 0; i < WAYS; i++) {
        if (bucket[i].id.len == 0)
            return &bucket[i];
        if (!bucket[i].waits && (oldest == NULL || bucket[i].taken_us < oldest->taken_us))
            oldest = &bucket[i];
    }
    return oldest;
}

static bool take_in(struct hfd_asked *a, hfd_slice id, int64_t now_us)
{
    bool known;
    struct entry *e = place_of(a, id, &known);

    if (e == NULL || (known && (e->waits || now_us - e->taken_us < a->again_us)))
        return false;
    e->id.len = id.len;
    memcpy(e->id.text, id.p, id.len);
    e->waits = true;
    a->ring[(a->first + a->waiting++) % a->capacity] = (size_t)(e - a->entries);
    return a->waiting == 1;
}

bool hfd_asked_push(struct hfd_asked *a, hfd_slice id, int64_t now_us)
{
    bool wake;

    if (id.len == 0 || id.len > HFD_ASKED_ID_MAX)
        return false;
    (void)pthread_mutex_lock(&a->lock);
    wake = take_in(a, id, now_us);
    (void)pthread_mutex_unlock(&a->lock);
    return wake;
}

size_t hfd_asked_take(struct hfd_asked *a, struct hfd_asked_id *out, size_t max, int64_t now_us)
{
    size_t count = 0;

    (void)pthread_mutex_lock(&a->lock);
    while (count < max && a->waiting > 0) {
        struct entry *e = &a->entries[a->ring[a->first]];

        out[count++] = e->id;
        e->waits = false;
        e->taken_us = now_us;
        a->first = (a->first + 1) % a->capacity;
        a->waiting--;
    }
    (void)pthread_mutex_unlock(&a->lock);
    return count;
}
