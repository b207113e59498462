/* See repeats.h. */
#include "driver/events/repeats.h"

#include "driver/base/check.h"
#include "driver/base/log.h"
#include "driver/base/thread.h"
#include "store/rows_fleet.h"

#include <stdatomic.h>
#include <stdlib.h>

#define REPEATS_MAGIC 0x7265706eu
#define FIRST_US (10 * HFD_US_PER_S)
#define LONGEST_US (1800 * HFD_US_PER_S)
#define LOOK_US HFD_US_PER_S          /* between two looks */
#define WANTED_US (60 * HFD_US_PER_S) /* how long a reader that has left counts */
#define PAGE_ROWS 500                 /* of each walk, in a look */
#define PAGE_MAX_BYTES ((size_t)64 << 20)
#define BOARD_ROWS 1024
#define SLOTS_MIN ((size_t)1024)
#define SLOTS_MAX ((size_t)1 << 20) /* twice the resources that are remembered */

/* ---- the rule ---- */

bool hfd_repeat_is_due(struct hfd_repeat *r, const struct hfd_repeat_look *look)
{
    const int64_t first_us = look->reconciled ? LONGEST_US : FIRST_US;

    if (r->pause_us == 0 || r->state != look->state) {
        /* A change is seen a little late; the pause begins when it is seen. */
        r->next_us = (r->pause_us == 0 ? look->since_us : look->now_us) + first_us;
        r->pause_us = first_us;
        r->state = look->state;
    }
    /* No pause is longer than the longest: the clock may have been set back since. */
    if (look->now_us < r->next_us && r->next_us - look->now_us <= LONGEST_US)
        return false;
    r->pause_us = 2 * r->pause_us < LONGEST_US ? 2 * r->pause_us : LONGEST_US;
    r->next_us = look->now_us + r->pause_us;
    return true;
}

/* ---- the memory ---- */

/* A resource that was seen. */
struct slot {
    uint64_t id;   /* a hash; 0 = free */
    unsigned walk; /* of all, in which it was seen last */
    struct hfd_repeat repeat;
};

struct memory {
    struct slot *slots;
    size_t count, capacity; /* a power of two */
};

/* A resource; its texts are one piece of memory. */
struct note {
    struct hfd_due_row row;
    char *texts;
};

struct hfd_repeats {
    unsigned magic;
    struct hfd_repeats_parts parts;
    _Atomic int64_t wanted_us; /* mono: of the last reader */
    struct hfd_sleeper sleeper;
    pthread_mutex_t lock;
    uint64_t written; /* under lock, as the board: notes so far */
    struct note board[BOARD_ROWS];
    /* Only its thread uses these. */
    struct hfd_store_reader *reader;
    struct memory memory;
    unsigned walk;                     /* the number of the walk over all */
    struct hfd_pending_query walks[2]; /* over those that are not ready, and over all */
    int64_t rights;                    /* repeats that this look may still give */
    bool blind;                        /* the store cannot be read, and the log says so */
};

/* 0 is a free slot. */
static uint64_t hash_of(hfd_slice text)
{
    const uint64_t h = hfd_slice_hash(HFD_HASH_START, text);

    return h != 0 ? h : 1;
}

/* The place of a resource, or a free one. */
static struct slot *slot_of(const struct memory *m, uint64_t id)
{
    size_t at = (size_t)id & (m->capacity - 1);

    while (m->slots[at].id != 0 && m->slots[at].id != id)
        at = (at + 1) & (m->capacity - 1);
    return &m->slots[at];
}

/* Makes room, without those that the last walk over all did not see. @return false: there is none
 */
static bool make_room(struct memory *m, unsigned walk)
{
    struct memory old = *m;
    size_t kept = 0;

    if (m->capacity > 0 && 2 * m->count < m->capacity)
        return true;
    for (size_t i = 0; i < old.capacity; i++)
        kept += old.slots[i].id != 0 && walk - old.slots[i].walk <= 1;
    m->capacity = SLOTS_MIN;
    while (m->capacity < 4 * kept)
        m->capacity *= 2;
    m->slots = m->capacity <= SLOTS_MAX ? calloc(m->capacity, sizeof(*m->slots)) : NULL;
    if (m->slots == NULL) {
        *m = old;
        return m->count + 1 < m->capacity;
    }
    m->count = kept;
    for (size_t i = 0; i < old.capacity; i++)
        if (old.slots[i].id != 0 && walk - old.slots[i].walk <= 1)
            *slot_of(m, old.slots[i].id) = old.slots[i];
    free(old.slots);
    return true;
}

static void forget_all(struct hfd_repeats *r)
{
    free(r->memory.slots);
    r->memory = (struct memory){0};
    r->walks[0] = (struct hfd_pending_query){.limit = PAGE_ROWS};
    r->walks[1] = (struct hfd_pending_query){.limit = PAGE_ROWS, .all = true};
}

/* ---- the board ---- */

static bool put_on_board(struct hfd_repeats *r, const struct hfd_fleet_row *row, int64_t now_us)
{
    char *texts = malloc(row->id.len + row->owner_id.len + row->labels.len + row->trace.len + 1),
         *at = texts;
    struct note *note = &r->board[r->written % BOARD_ROWS];

    if (texts == NULL)
        return false;
    (void)pthread_mutex_lock(&r->lock);
    free(note->texts);
    *note = (struct note){.texts = texts,
                          .row = {.seq = row->due_seq,
                                  .id = hfd_slice_put(&at, row->id),
                                  .kind = row->kind,
                                  .owner_id = hfd_slice_put(&at, row->owner_id),
                                  .generation = row->generation,
                                  .labels = hfd_slice_put(&at, row->labels),
                                  .at_us = now_us,
                                  .trace = hfd_slice_put(&at, row->trace)}};
    r->written++;
    (void)pthread_mutex_unlock(&r->lock);
    return true;
}

hfd_rc hfd_repeats_read(struct hfd_repeats *repeats, uint64_t *place, struct hfd_arena *mem,
                        struct hfd_due_page *rows, struct hfd_err *err)
{
    uint64_t at;

    *rows = (struct hfd_due_page){0};
    if (repeats == NULL)
        return HFD_OK;
    HFD_CHECK_OBJ(repeats, REPEATS_MAGIC);
    (void)pthread_mutex_lock(&repeats->lock);
    at = *place > repeats->written ? repeats->written : *place;
    if (repeats->written - at > BOARD_ROWS)
        at = repeats->written - BOARD_ROWS;
    rows->rows = hfd_arena_array(mem, (size_t)(repeats->written - at) + 1, sizeof(*rows->rows));
    for (; rows->rows != NULL && at < repeats->written; at++) {
        struct hfd_due_row *row = &rows->rows[rows->count++];

        *row = repeats->board[at % BOARD_ROWS].row;
        row->id = hfd_arena_dup(mem, row->id);
        row->owner_id = hfd_arena_dup(mem, row->owner_id);
        row->labels = hfd_arena_dup(mem, row->labels);
        row->trace = hfd_arena_dup(mem, row->trace);
        if (row->id.p == NULL || row->owner_id.p == NULL || row->labels.p == NULL ||
            row->trace.p == NULL)
            rows->rows = NULL;
    }
    *place = repeats->written;
    (void)pthread_mutex_unlock(&repeats->lock);
    return rows->rows != NULL ? HFD_OK : hfd_fail_nomem(err, "repeat events");
}

/* ---- the walks ---- */

/* One page of a walk. */
struct page {
    const struct hfd_pending_query *query;
    struct hfd_arena mem;
    struct hfd_fleet_list list;
};

static hfd_rc txn_page(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct page *p = arg;

    hfd_arena_fini(&p->mem);
    return hfd_fleet_row_pending(tx, p->query, &p->mem, &p->list, err);
}

static struct hfd_repeat_look look_of(const struct hfd_fleet_row *row, int64_t now_us)
{
    const int64_t stamps[] = {row->due_seq, row->ready_seen_us};
    const uint64_t state =
        hfd_slice_hash(hash_of(row->conditions), (hfd_slice){(const char *)stamps, sizeof(stamps)});

    return (struct hfd_repeat_look){
        .state = state,
        .reconciled = row->pending_us == 0 && row->ready,
        .since_us = row->pending_us == 0 && row->ready && row->ready_seen_us > row->updated_us
                        ? row->ready_seen_us
                        : row->updated_us,
        .now_us = now_us,
    };
}

/* @return false: no more in this look */
static bool visit(struct hfd_repeats *r, const struct hfd_fleet_row *row, int64_t now_us)
{
    const struct hfd_repeat_look look = look_of(row, now_us);
    const uint64_t id = hash_of(row->id);
    struct slot *slot;

    if (r->rights == 0)
        return false;
    if (!make_room(&r->memory, r->walk))
        return true; /* more than are remembered: those beyond have no repeats */
    slot = slot_of(&r->memory, id);
    r->memory.count += slot->id == 0;
    slot->id = id;
    slot->walk = r->walk;
    if (hfd_repeat_is_due(&slot->repeat, &look) && put_on_board(r, row, now_us))
        r->rights--;
    return true;
}

static hfd_rc walk_on(struct hfd_repeats *r, struct hfd_pending_query *query, struct hfd_err *err)
{
    const int64_t now_us = hfd_clock_wall_us(r->parts.clock);
    struct page p = {.query = query};
    size_t seen = 0;
    hfd_rc rc = HFD_OK;

    hfd_arena_init(&p.mem, PAGE_MAX_BYTES);
    if (r->reader == NULL)
        rc = hfd_store_reader_open(r->parts.store, &r->reader, err);
    if (rc == HFD_OK)
        rc = hfd_store_read(r->reader, txn_page, &p, err);
    while (rc == HFD_OK && seen < p.list.count && visit(r, &p.list.rows[seen], now_us)) {
        query->after_us = query->all ? 0 : p.list.rows[seen].created_us;
        query->after_seq = p.list.rows[seen].seq;
        seen++;
    }
    if (rc == HFD_OK && seen == p.list.count && p.list.count < PAGE_ROWS) { /* the end */
        query->after_us = query->after_seq = 0;
        r->walk += query->all;
    }
    hfd_arena_fini(&p.mem);
    if (rc != HFD_OK)
        hfd_store_reader_close(&r->reader); /* the database may be away */
    return rc;
}

static void look_once(struct hfd_repeats *r)
{
    const uint64_t before = r->written;
    struct hfd_err err;
    hfd_rc rc = HFD_OK;

    r->rights = r->parts.per_second;
    for (int i = 0; rc == HFD_OK && i < 2; i++)
        rc = walk_on(r, &r->walks[i], &err);
    if (rc != HFD_OK && !r->blind)
        HFD_LOG(HFD_LOG_WARN, "cannot look for events to repeat; will try again",
                HFD_LOG_CSTR("code", hfd_rc_name(rc)), HFD_LOG_CSTR("reason", err.msg));
    r->blind = rc != HFD_OK;
    if (r->written != before)
        hfd_bell_wake(r->parts.bell);
}

/* ---- the thread ---- */

static bool is_wanted(const struct hfd_repeats *r)
{
    const int64_t wanted_us = atomic_load(&r->wanted_us);

    return wanted_us != 0 && hfd_clock_mono_us(&hfd_clock_system) - wanted_us < WANTED_US;
}

static void *run(void *arg)
{
    struct hfd_repeats *r = arg;

    HFD_CHECK_OBJ(r, REPEATS_MAGIC);
    while (!hfd_sleeper_wait(&r->sleeper, LOOK_US, NULL)) {
        if (is_wanted(r))
            look_once(r);
        else if (r->memory.capacity > 0)
            forget_all(r);
    }
    hfd_store_reader_close(&r->reader);
    return NULL;
}

struct hfd_repeats *hfd_repeats_new(void)
{
    struct hfd_repeats *r = calloc(1, sizeof(*r));

    if (r == NULL)
        return NULL;
    r->magic = REPEATS_MAGIC;
    forget_all(r);
    (void)pthread_mutex_init(&r->lock, NULL);
    r->sleeper = (struct hfd_sleeper)HFD_SLEEPER_INIT;
    return r;
}

void hfd_repeats_free(struct hfd_repeats *repeats)
{
    if (repeats == NULL)
        return;
    HFD_CHECK_OBJ(repeats, REPEATS_MAGIC);
    HFD_ASSERT(!repeats->sleeper.started);
    forget_all(repeats);
    for (size_t i = 0; i < BOARD_ROWS; i++)
        free(repeats->board[i].texts);
    (void)pthread_mutex_destroy(&repeats->lock);
    repeats->magic = 0;
    free(repeats);
}

hfd_rc hfd_repeats_start(struct hfd_repeats *repeats, const struct hfd_repeats_parts *parts,
                         struct hfd_err *err)
{
    if (repeats == NULL)
        return HFD_OK;
    HFD_CHECK_OBJ(repeats, REPEATS_MAGIC);
    repeats->parts = *parts;
    return hfd_sleeper_start(
        &repeats->sleeper,
        &(struct hfd_thread){"hfd-repeats", "repeats of events: thread", run, repeats}, err);
}

void hfd_repeats_stop(struct hfd_repeats *repeats)
{
    if (repeats != NULL)
        hfd_sleeper_stop(&repeats->sleeper);
}

void hfd_repeats_want(struct hfd_repeats *repeats)
{
    if (repeats != NULL)
        atomic_store(&repeats->wanted_us, hfd_clock_mono_us(&hfd_clock_system));
}
