/* See work.h. */
#include "driver/backend/remote/work.h"

#include "driver/base/check.h"
#include "driver/base/clock.h"
#include "driver/base/rng.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* Which work is due. See work.h. */

/* With this number of observations due together, lists are fewer requests than single ones. */
#define MANY 5

/*
 * A list also observes resources that are due within this time. Otherwise each would soon be due
 * alone.
 */
static int64_t ahead_us(const struct hfd_remote_policy *policy)
{
    return policy->watch_us / 4;
}

enum hfd_remote_work_kind hfd_remote_work_kind(const struct hfd_remote_work *work)
{
    if (work->guresid.len == 0)
        return HFD_REMOTE_WORK_MANY;
    if (work->orphan.len > 0)
        return HFD_REMOTE_WORK_ORPHAN;
    return hfd_slice_eq(work->guresid, HFD_REMOTE_ORPHANS) ? HFD_REMOTE_WORK_SEARCH
                                                           : HFD_REMOTE_WORK_RESOURCE;
}

static void add_rows(const struct hfd_remote_list *list, size_t limit, struct hfd_due *out)
{
    for (size_t i = 0; i < list->count && out->count < limit; i++)
        out->works[out->count++] = (struct hfd_remote_work){.guresid = list->rows[i].guresid};
}

static hfd_rc add_orphans(struct hfd_txn *tx, const struct hfd_work_query *q, struct hfd_arena *mem,
                          struct hfd_due *out, struct hfd_err *err)
{
    struct hfd_remote_orphan_list list;
    hfd_rc rc = hfd_remote_orphan_row_due(
        tx, &(struct hfd_remote_orphan_query){.now_us = q->now_us, .limit = (int64_t)q->limit}, mem,
        &list, err);

    for (size_t i = 0; rc == HFD_OK && i < list.count && out->count < q->limit; i++) {
        const struct hfd_orphan_row *o = &list.rows[i].orphan;

        out->works[out->count++] = (struct hfd_remote_work){o->label, o->id, o->kind};
    }
    return rc;
}

/* The earliest time after now_us at which something is due. */
static hfd_rc next_due(struct hfd_txn *tx, const struct hfd_work_query *q, int64_t *next_us,
                       struct hfd_err *err)
{
    int64_t at_us;
    hfd_rc rc = hfd_remote_orphan_row_next(
        tx, &(struct hfd_remote_orphan_query){.now_us = q->now_us}, next_us, err);

    for (int w = HFD_WATCHED_NOT; rc == HFD_OK && w <= HFD_WATCHED_IDLY; w++) {
        const struct hfd_remote_due due = {.watched = (enum hfd_watched)w, .now_us = q->now_us};

        rc = hfd_remote_row_next(tx, &due, &at_us, err);
        *next_us = rc == HFD_OK && at_us < *next_us ? at_us : *next_us;
    }
    return rc;
}

/* Replaces resources in progress by one MANY, if there are enough of them. */
static void prefer_lists(const struct hfd_work_query *q, struct hfd_remote_list *watched,
                         struct hfd_due *out)
{
    if (watched->count >= MANY && watched->rows[0].due_us <= q->now_us) {
        out->works[out->count++] = (struct hfd_remote_work){.kind = HFD_KIND_CLUSTER};
        watched->count = 0;
    }
    while (watched->count > 0 && watched->rows[watched->count - 1].due_us > q->now_us)
        watched->count--;
}

hfd_rc hfd_remote_due(struct hfd_txn *tx, const struct hfd_work_query *q, struct hfd_arena *mem,
                      struct hfd_due *out, struct hfd_err *err)
{
    const struct hfd_remote_due not_watched = {HFD_WATCHED_NOT, q->now_us, (int64_t)q->limit};
    const struct hfd_remote_due closely = {HFD_WATCHED_CLOSELY, q->now_us + ahead_us(q->policy),
                                           MANY};
    const struct hfd_remote_due idly = {HFD_WATCHED_IDLY, q->now_us, (int64_t)q->limit};
    struct hfd_remote_list own, watched, settled;
    hfd_rc rc;

    out->count = 0;
    out->next_us = INT64_MAX;
    if (q->limit == 0)
        return HFD_OK;
    rc = hfd_remote_row_due(tx, &not_watched, mem, &own, err);
    if (rc == HFD_OK)
        rc = hfd_remote_row_due(tx, &closely, mem, &watched, err);
    if (rc == HFD_OK)
        rc = hfd_remote_row_due(tx, &idly, mem, &settled, err);
    if (rc == HFD_OK)
        rc = next_due(tx, q, &out->next_us, err);
    if (rc != HFD_OK)
        return rc;
    prefer_lists(q, &watched, out);
    add_rows(&own, q->limit, out);
    add_rows(&watched, q->limit, out);
    rc = add_orphans(tx, q, mem, out, err);
    if (rc == HFD_OK)
        add_rows(&settled, q->limit, out);
    return rc;
}

/*
 * Returns whether a poll makes a row due earlier. It does not after a failure or a refusal, or
 * while the row waits for another resource.
 */
static bool can_hurry(const struct hfd_remote_row *row, int64_t due_us, int64_t older_us)
{
    return row->due_us > due_us && row->due_us != INT64_MAX && row->checked_us < older_us &&
           row->tries == 0 && row->goal != HFD_GOAL_OBSERVE;
}

hfd_rc hfd_remote_hurry(struct hfd_txn *tx, hfd_slice guresid, int64_t older_us, int64_t now_us,
                        struct hfd_err *err)
{
    const int64_t quarter_us = (now_us - older_us) / 4;
    const int64_t due_us = quarter_us > 0 ? (now_us / quarter_us + 1) * quarter_us : now_us;
    struct hfd_remote_row row;
    struct hfd_arena mem;
    hfd_rc rc;

    hfd_arena_init(&mem, HFD_MIRROR_SCRATCH_MAX_BYTES);
    rc = hfd_remote_row_get(tx, guresid, &mem, &row, err);
    if (rc == HFD_NOT_FOUND && hfd_slice_eq(guresid, HFD_REMOTE_ORPHANS)) {
        row = (struct hfd_remote_row){.guresid = HFD_REMOTE_ORPHANS,
                                      .goal = HFD_GOAL_ORPHANS,
                                      .watched = HFD_WATCHED_IDLY,
                                      .due_us = INT64_MAX - 1};
        rc = HFD_OK;
    }
    if (rc == HFD_OK && can_hurry(&row, due_us, older_us)) {
        row.due_us = due_us;
        rc = hfd_remote_row_put(tx, &row, err);
    }
    hfd_arena_fini(&mem);
    return rc == HFD_NOT_FOUND ? HFD_OK : rc;
}

/* A table with buckets of four; a ring has the places of the names that wait. */

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

/* ---- breaker, rate, what is set aside ---- */

#define TO(s) (1u << HFD_BREAKER_##s)
static const unsigned next_states[HFD_BREAKER_STATE_COUNT] = {
    [HFD_BREAKER_CLOSED] = TO(OPEN),
    [HFD_BREAKER_OPEN] = TO(HALF_OPEN) | TO(CLOSED),
    [HFD_BREAKER_HALF_OPEN] = TO(OPEN) | TO(CLOSED),
};

static void move(struct hfd_breaker *b, enum hfd_breaker_state to)
{
    HFD_ASSERT((next_states[b->state] & (1u << to)) != 0);
    b->state = to;
    b->ill = 0;
}

void hfd_breaker_init(struct hfd_breaker *b, int64_t pause_min_us, int64_t pause_max_us)
{
    HFD_ASSERT(pause_min_us > 0 && pause_min_us <= pause_max_us);
    *b = (struct hfd_breaker){.pause_min_us = pause_min_us, .pause_max_us = pause_max_us};
}

bool hfd_breaker_begin(struct hfd_breaker *b, int64_t now_us)
{
    if (b->state == HFD_BREAKER_OPEN && now_us >= b->until_us) {
        move(b, HFD_BREAKER_HALF_OPEN);
        return true;
    }
    return b->state == HFD_BREAKER_CLOSED;
}

int64_t hfd_breaker_next_us(const struct hfd_breaker *b)
{
    if (b->state == HFD_BREAKER_CLOSED)
        return 0;
    return b->state == HFD_BREAKER_OPEN ? b->until_us : INT64_MAX;
}

static void open_for(struct hfd_breaker *b, int64_t pause_us, int64_t now_us,
                     const struct hfd_rng *rng)
{
    uint64_t random;

    hfd_rng_bytes(rng, &random, sizeof(random));
    b->pause_us = pause_us < b->pause_max_us ? pause_us : b->pause_max_us;
    b->until_us = now_us + b->pause_us - (int64_t)(random % (uint64_t)(b->pause_us / 2 + 1));
    move(b, HFD_BREAKER_OPEN);
}

bool hfd_breaker_answer(struct hfd_breaker *b, bool good, int64_t now_us, const struct hfd_rng *rng)
{
    if (good) {
        b->ill = 0;
        if (b->state == HFD_BREAKER_CLOSED)
            return false;
        move(b, HFD_BREAKER_CLOSED);
        return true;
    }
    if (b->state == HFD_BREAKER_HALF_OPEN) {
        open_for(b, b->pause_us <= b->pause_max_us / 2 ? b->pause_us * 2 : b->pause_max_us, now_us,
                 rng);
    } else if (b->state == HFD_BREAKER_CLOSED && ++b->ill >= HFD_BREAKER_ILL_MAX) {
        open_for(b, b->pause_min_us, now_us, rng);
        return true;
    }
    return false;
}

void hfd_breaker_unused(struct hfd_breaker *b, int64_t now_us)
{
    if (b->state != HFD_BREAKER_HALF_OPEN)
        return;
    b->until_us = now_us;
    move(b, HFD_BREAKER_OPEN);
}

static int64_t cost_us(const struct hfd_rate *r)
{
    return HFD_US_PER_S / r->per_second;
}

/* The level at now_us. A clock that ran backwards adds nothing. */
static int64_t level_at(const struct hfd_rate *r, int64_t now_us)
{
    const int64_t most_us = r->burst * cost_us(r);
    const int64_t passed_us = now_us > r->at_us ? now_us - r->at_us : 0;

    return passed_us >= most_us - r->level_us ? most_us : r->level_us + passed_us;
}

void hfd_rate_init(struct hfd_rate *r, int64_t per_second, int64_t now_us)
{
    HFD_ASSERT(per_second >= 1 && per_second <= HFD_US_PER_S);
    *r = (struct hfd_rate){
        .per_second = per_second, .burst = per_second >= 5 ? per_second / 5 : 1, .at_us = now_us};
    r->level_us = r->burst * cost_us(r);
}

bool hfd_rate_take(struct hfd_rate *r, int64_t now_us)
{
    const int64_t level_us = level_at(r, now_us);

    if (level_us < cost_us(r))
        return false;
    r->level_us = level_us - cost_us(r);
    r->at_us = now_us;
    return true;
}

int64_t hfd_rate_next_us(const struct hfd_rate *r, int64_t now_us)
{
    const int64_t missing_us = cost_us(r) - level_at(r, now_us);

    return missing_us > 0 ? now_us + missing_us : now_us;
}

bool hfd_skip_list_add(struct hfd_skip_list *a, hfd_slice guresid, int64_t until_us)
{
    struct hfd_asked_id *id;

    if (a->count == HFD_SKIP_LIST_MAX || guresid.len > HFD_ASKED_ID_MAX)
        return false;
    id = &a->items[a->count].id;
    id->len = guresid.len;
    if (guresid.len > 0)
        memcpy(id->text, guresid.p, guresid.len);
    a->items[a->count++].until_us = until_us;
    return true;
}

bool hfd_skip_list_has(const struct hfd_skip_list *a, hfd_slice guresid)
{
    for (size_t i = 0; i < a->count; i++)
        if (hfd_slice_eq((hfd_slice){a->items[i].id.text, a->items[i].id.len}, guresid))
            return true;
    return false;
}

bool hfd_skip_list_expire(struct hfd_skip_list *a, int64_t now_us)
{
    const size_t before = a->count;

    a->count = 0;
    for (size_t i = 0; i < before; i++)
        if (a->items[i].until_us > now_us)
            a->items[a->count++] = a->items[i];
    return a->count != before;
}

int64_t hfd_skip_list_next_us(const struct hfd_skip_list *a)
{
    int64_t next_us = INT64_MAX;

    for (size_t i = 0; i < a->count; i++)
        if (a->items[i].until_us < next_us)
            next_us = a->items[i].until_us;
    return next_us;
}
