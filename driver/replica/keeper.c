/* See keeper.h. */
#include "driver/replica/keeper.h"

#include "driver/base/check.h"
#include "driver/base/clock.h"
#include "driver/base/log.h"
#include "driver/base/metrics.h"
#include "driver/base/rng.h"
#include "driver/base/slice.h"
#include "driver/base/thread.h"
#include "driver/replica/keeper_int.h"
#include "driver/replica/wake.h"
#include "store/rows_replica.h"
#include "store/store.h"
#include "store/totals.h"

#include <stdlib.h>

/* ---- the time of the database ---- */

/* The clock makes up for at most one second that it is ahead in this many seconds. */
#define SLOWER 2

static int64_t db_wall_us(void *ctx)
{
    struct hfd_db_clock *c = ctx;
    const long long now_us = hfd_clock_mono_us(c->under) + atomic_load(&c->offset_us);
    long long last_us = atomic_load(&c->last_us);

    while (now_us > last_us && !atomic_compare_exchange_weak(&c->last_us, &last_us, now_us))
        ;
    return now_us > last_us ? now_us : last_us;
}

static int64_t db_mono_us(void *ctx)
{
    const struct hfd_db_clock *c = ctx;

    return hfd_clock_mono_us(c->under);
}

void hfd_db_clock_init(struct hfd_db_clock *c, const struct hfd_clock *under)
{
    *c = (struct hfd_db_clock){.under = under,
                               .clock = {.wall_us = db_wall_us, .mono_us = db_mono_us, .ctx = c}};
    atomic_init(&c->offset_us, hfd_clock_wall_us(under) - hfd_clock_mono_us(under));
}

void hfd_db_clock_note(struct hfd_db_clock *c, const struct hfd_db_time *time)
{
    const int64_t offset_us = atomic_load(&c->offset_us);
    const int64_t least_us = time->db_us - time->after_us, most_us = time->db_us - time->before_us;
    int64_t next_us = offset_us;

    if (c->measured_us == 0)
        next_us = least_us + (most_us - least_us) / 2;
    else if (offset_us < least_us)
        next_us = least_us;
    else if (offset_us > most_us)
        next_us = most_us;
    if (c->measured_us != 0) {
        const int64_t slowest_us = offset_us - (time->after_us - c->measured_us) / SLOWER;

        next_us = next_us > slowest_us ? next_us : slowest_us;
    }
    c->measured_us = time->after_us;
    atomic_store(&c->offset_us, next_us);
}

int64_t hfd_db_clock_ahead_us(const struct hfd_db_clock *c)
{
    return hfd_clock_mono_us(c->under) + atomic_load(&c->offset_us) - hfd_clock_wall_us(c->under);
}

/* ---- settings ---- */

struct hfd_settings_epoch {
    int64_t epoch; /* of the newest settings, or of its own while they are the newest */
    bool outdated; /* the newest replica has other rules */
};

#define MEM_BYTES ((size_t)64 << 10)

/*
 * Compares with the newest settings.
 * @param starting  the replica starts: other settings become the newest
 */
static hfd_rc replica_settings_look(struct hfd_txn *tx, const struct hfd_replica_settings *own,
                                    bool starting, struct hfd_settings_epoch *out,
                                    struct hfd_err *err)
{
    struct hfd_settings_row newest = {.epoch = 0};
    struct hfd_arena mem;
    hfd_rc rc;

    *out = (struct hfd_settings_epoch){.epoch = 0};
    hfd_arena_init(&mem, MEM_BYTES);
    rc = hfd_settings_row_get(tx, &mem, &newest, err);
    hfd_arena_fini(&mem);
    if (rc == HFD_NOT_FOUND)
        rc = HFD_OK;
    if (rc == HFD_OK && (newest.epoch == 0 || (starting && newest.mark != own->mark))) {
        newest = (struct hfd_settings_row){newest.epoch + 1, own->mark, own->rules};
        rc = hfd_settings_row_put(tx, &newest, err);
    }
    if (rc == HFD_OK)
        *out = (struct hfd_settings_epoch){newest.epoch, newest.rules != own->rules};
    return rc;
}

/* ---- upkeep ---- */

/*
 * Parts of a sign of life beside the lease: the check of the schema, totals of lists, and rows of
 * programs that are gone. Thread: that of the transaction.
 */

#define HOUR_US (3600 * HFD_US_PER_S)
#define DAY_US (24 * HOUR_US)

/*
 * Refuses a program that is too old for the database: after `migrate --contract` no such program
 * gives a sign of life any more.
 * @param known  version of the schema that the program knows
 * @return HFD_OK, HFD_INVALID, or as hfd_replica_row_schema_min
 */
static hfd_rc replica_check_schema(struct hfd_txn *tx, int64_t known, struct hfd_err *err)
{
    int64_t min;
    hfd_rc rc = hfd_replica_row_schema_min(tx, &min, err);

    if (rc == HFD_OK && min > known)
        rc = hfd_fail(err, HFD_INVALID,
                      "store: the database needs programs that know schema version %lld, and this "
                      "one knows %lld. Start the newer hyperfleet-driver",
                      (long long)min, (long long)known);
    return rc;
}

/*
 * Brings the totals of all replicas together. Once an hour it removes old marks of commits of
 * programs that were killed. For a day the answer to a lost COMMIT may be looked up.
 * @param last_us  the last look at marks; 0 = none yet
 * @param out      the last look from now on
 */
static hfd_rc replica_tidy(struct hfd_txn *tx, int64_t now_us, int64_t last_us, int64_t *out,
                           struct hfd_err *err)
{
    const hfd_rc rc = hfd_totals_fold(tx, err);

    *out = last_us;
    if (rc != HFD_OK || (last_us != 0 && now_us - last_us < HOUR_US))
        return rc;
    *out = now_us;
    return hfd_replica_row_forget_commits(tx, now_us, now_us - DAY_US, err);
}

/* The end of a replica: its lease is free, its row is removed, its totals are those of all. */
static hfd_rc replica_leave(struct hfd_txn *tx, hfd_slice id, struct hfd_err *err)
{
    hfd_rc rc = hfd_lease_row_release(tx, id, err);

    if (rc == HFD_OK)
        rc = hfd_replica_row_delete(tx, id, err);
    return rc == HFD_OK ? hfd_totals_fold(tx, err) : rc;
}

/* ---- keeper ---- */

/* A beat is one transaction: all replicas decide one after another. */

#define HFD_REPLICA_BEAT_US (3 * HFD_US_PER_S)
#define LISTENERS_MAX 16
#define KEY_IDS_MAX 1024
#define NAME_MAX_BYTES 256
#define SCHEMA_OF_LEADER 23 /* programs before it work by shards */
#define BEAT_MEM_BYTES ((size_t)4 << 20)
#define AGAIN_US (HFD_US_PER_S / 4) /* after a failure */
#define FORGET_AFTER 10             /* times a lease: then the row of a dead replica goes */
/* A holder stops this share of a lease before others may take it. */
#define USE_US(lease_us) ((lease_us) - (lease_us) / 9)

struct listener {
    hfd_keeper_changed_fn *fn;
    void *ctx;
};

struct hfd_keeper {
    unsigned magic;
#define KEEPER_MAGIC 0x6b656570u
    struct hfd_keeper_config config;
    char id[HFD_REPLICA_ID_LEN + 1], name[NAME_MAX_BYTES];
    struct hfd_db_clock db_clock;
    struct hfd_sleeper sleeper;
    struct hfd_wake *wakes;          /* NULL = none */
    struct hfd_store_reader *reader; /* the thread's, or the one of the beats */

    pthread_mutex_t lock; /* of the rest */
    char key_ids[KEY_IDS_MAX];
    struct hfd_hold hold; /* valid until until_us */
    int64_t until_us;     /* monotonic */
    int64_t free_us;      /* wall clock of the database: when the lease of another runs out */
    int64_t epoch;        /* of the settings, at the start */
    int64_t started_us;   /* 0 = no beat yet */
    int64_t forgot_us;    /* the last look at the marks of commits; 0 = none yet */
    int live;
    bool outdated;
    bool failing;  /* the last beat failed, and the log says so */
    bool shut_out; /* the database needs a newer program */
    struct listener listeners[LISTENERS_MAX];
};

/* ---- a beat ---- */

/* One transaction, and what comes of it. */
struct beat {
    struct hfd_keeper *keeper;
    bool starting;
    bool shut_out; /* the schema does not take this program any more */
    bool older;    /* a program of before lives, which works by shards */
    char key_ids[KEY_IDS_MAX];
    int64_t now_us, started_us, forgot_us;
    struct hfd_arena mem;
    struct hfd_hold hold;
    int64_t free_us;
    int live; /* replicas */
    struct hfd_settings_epoch settings;
};

static hfd_rc now_of(const struct hfd_keeper *k, struct hfd_txn *tx, int64_t *out,
                     struct hfd_err *err)
{
    if (k->config.db == NULL)
        return hfd_txn_now(tx, out, err);
    *out = hfd_clock_wall_us(k->config.db);
    return HFD_OK;
}

static hfd_slice id_of(const struct hfd_keeper *k)
{
    return (hfd_slice){k->id, HFD_REPLICA_ID_LEN};
}

/* Counts the replicas that live. */
static hfd_rc count_replicas(struct hfd_txn *tx, struct beat *b, struct hfd_err *err)
{
    const hfd_slice own = id_of(b->keeper);
    struct hfd_replica_list list;
    const hfd_rc rc = hfd_replica_row_list(tx, &b->mem, &list, err);

    b->live = 1;
    b->older = false;
    for (size_t i = 0; i < list.count; i++) {
        const struct hfd_replica_row *row = &list.rows[i];

        if (hfd_slice_eq(row->id, own) || row->beat_us + b->keeper->config.lease_us <= b->now_us)
            continue;
        b->live++;
        b->older = b->older || row->schema < SCHEMA_OF_LEADER;
    }
    return rc;
}

static hfd_rc put_replica(struct hfd_txn *tx, struct beat *b, struct hfd_err *err)
{
    const struct hfd_keeper *k = b->keeper;
    struct hfd_replica_row row = {
        .id = id_of(k),
        .name = hfd_slice_of(k->name),
        .version = HFD_SLICE(HFD_VERSION),
        .schema = k->config.schema,
        .started_us = b->started_us != 0 ? b->started_us : b->now_us,
        .beat_us = b->now_us,
        .key_ids = hfd_slice_of(b->key_ids),
        .settings_epoch = b->starting ? b->settings.epoch : k->epoch,
    };
    char mark[24];
    hfd_rc rc;

    (void)snprintf(mark, sizeof(mark), "%016llx", (unsigned long long)k->config.settings.rules);
    row.settings_mark = hfd_slice_of(mark);
    rc = hfd_replica_row_put(tx, &row, err);
    return rc == HFD_OK
               ? hfd_replica_row_drop(tx, b->now_us - FORGET_AFTER * k->config.lease_us, err)
               : rc;
}

/*
 * Renews the lease, or takes it. One that has run out is free, also its holder's: another replica
 * may have seen it so. Then it has a new epoch.
 */
static hfd_rc move_lease(struct hfd_txn *tx, struct beat *b, struct hfd_err *err)
{
    const hfd_slice own = id_of(b->keeper);
    struct hfd_lease_row row;
    hfd_rc rc = hfd_lease_row_get(tx, &b->mem, &row, err);

    if (rc != HFD_OK || b->older)
        return rc;
    if (row.until_us <= b->now_us) {
        row.holder = own;
        row.epoch++;
    }
    if (!hfd_slice_eq(row.holder, own)) {
        b->free_us = row.until_us;
        return HFD_OK;
    }
    row.until_us = b->now_us + b->keeper->config.lease_us;
    b->hold = (struct hfd_hold){true, row.epoch};
    return hfd_lease_row_put(tx, &row, err);
}

static hfd_rc txn_beat(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct beat *b = arg;
    hfd_rc rc;

    hfd_arena_fini(&b->mem); /* it may run again */
    b->hold = (struct hfd_hold){.leads = false};
    b->free_us = INT64_MAX;
    rc = now_of(b->keeper, tx, &b->now_us, err);
    b->shut_out = false;
    if (rc == HFD_OK) {
        rc = replica_check_schema(tx, b->keeper->config.schema, err);
        b->shut_out = rc == HFD_INVALID;
    }
    if (rc == HFD_OK)
        rc = replica_settings_look(tx, &b->keeper->config.settings, b->starting, &b->settings, err);
    if (rc == HFD_OK)
        rc = count_replicas(tx, b, err);
    if (rc == HFD_OK)
        rc = put_replica(tx, b, err);
    if (rc == HFD_OK)
        rc = replica_tidy(tx, b->now_us, b->keeper->forgot_us, &b->forgot_us, err);
    return rc == HFD_OK ? move_lease(tx, b, err) : rc;
}

struct time_read {
    const struct hfd_keeper *keeper;
    int64_t at_us;
};

static hfd_rc txn_time(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct time_read *t = arg;

    return now_of(t->keeper, tx, &t->at_us, err);
}

/* Reads the database's time on a connection of its own: nothing waits before it. */
static hfd_rc measure(struct hfd_keeper *k, struct hfd_err *err)
{
    struct time_read t = {.keeper = k};
    struct hfd_db_time time;
    hfd_rc rc = HFD_OK;

    if (k->reader == NULL)
        rc = hfd_store_reader_open(k->config.store, &k->reader, err);
    time.before_us = hfd_clock_mono_us(k->config.clock);
    if (rc == HFD_OK)
        rc = hfd_store_read(k->reader, txn_time, &t, err);
    time.after_us = hfd_clock_mono_us(k->config.clock);
    time.db_us = t.at_us;
    if (rc == HFD_OK)
        hfd_db_clock_note(&k->db_clock, &time);
    return rc;
}

static bool leads(const struct hfd_keeper *k)
{
    return k->hold.leads && hfd_clock_mono_us(k->config.clock) < k->until_us;
}

static void show(const struct hfd_keeper *k)
{
    hfd_metric_set(HFD_METRIC_LEASES, NULL, leads(k) ? 1 : 0);
    hfd_metric_set(HFD_METRIC_REPLICAS, NULL, k->live);
    hfd_metric_set(HFD_METRIC_DB_CLOCK, NULL, hfd_db_clock_ahead_us(&k->db_clock) / HFD_US_PER_S);
}

/* Under the lock. */
static void call_listeners(const struct hfd_keeper *k)
{
    for (size_t i = 0; i < LISTENERS_MAX; i++)
        if (k->listeners[i].fn != NULL)
            k->listeners[i].fn(k->listeners[i].ctx);
}

/* A change of the leader, and of being outdated, is logged. Under the lock. */
static void tell(struct hfd_keeper *k, bool led, bool was_outdated)
{
    if (k->outdated && !was_outdated)
        HFD_LOG(HFD_LOG_ERROR, "a newer replica has other settings: this one is not ready until "
                               "it is restarted with them");
    if (!k->outdated && was_outdated)
        HFD_LOG(HFD_LOG_INFO, "the newest replica has the settings of this one again");
    if (leads(k) == led)
        return;
    HFD_LOG(HFD_LOG_INFO,
            led ? "this replica does not lead any more"
                : "this replica leads: it does the work in the background",
            HFD_LOG_INT("replicas", k->live));
    call_listeners(k);
}

static void take_in(struct hfd_keeper *k, const struct beat *b, int64_t began_us)
{
    const bool led = leads(k), was_outdated = k->outdated;

    k->hold = b->hold;
    k->until_us = began_us + USE_US(k->config.lease_us);
    k->free_us = b->free_us;
    k->live = b->live;
    k->outdated = b->settings.outdated;
    k->forgot_us = b->forgot_us;
    if (b->starting) {
        k->epoch = b->settings.epoch;
        k->started_us = b->now_us;
    }
    show(k);
    tell(k, led, was_outdated);
}

static void note_failure(struct hfd_keeper *k, hfd_rc rc, const struct hfd_err *err)
{
    if (rc != HFD_OK && !k->failing && !k->shut_out)
        HFD_LOG(HFD_LOG_WARN, "cannot renew the lease of this replica; will try again",
                HFD_LOG_CSTR("code", hfd_rc_name(rc)), HFD_LOG_CSTR("reason", err->msg));
    k->failing = rc != HFD_OK;
}

hfd_rc hfd_keeper_beat(struct hfd_keeper *k, struct hfd_err *err)
{
    struct beat b = {.keeper = k};
    int64_t began_us;
    hfd_rc rc = measure(k, err);

    (void)pthread_mutex_lock(&k->lock);
    b.starting = k->started_us == 0;
    b.started_us = k->started_us;
    memcpy(b.key_ids, k->key_ids, sizeof(b.key_ids));
    (void)pthread_mutex_unlock(&k->lock);
    hfd_arena_init(&b.mem, BEAT_MEM_BYTES);
    began_us = hfd_clock_mono_us(k->config.clock);
    if (rc == HFD_OK)
        rc = hfd_store_update_wait(k->config.store, txn_beat, &b, err);
    hfd_arena_fini(&b.mem);
    (void)pthread_mutex_lock(&k->lock);
    if (rc == HFD_OK)
        take_in(k, &b, began_us);
    else
        show(k);
    k->shut_out = rc != HFD_OK && b.shut_out;
    note_failure(k, rc, err);
    (void)pthread_mutex_unlock(&k->lock);
    return rc;
}

int64_t hfd_keeper_wait_us(struct hfd_keeper *k)
{
    const int64_t now_us = hfd_clock_wall_us(&k->db_clock.clock);
    int64_t wait_us = k->config.beat_us;

    (void)pthread_mutex_lock(&k->lock);
    if (k->failing)
        wait_us = AGAIN_US;
    else if (k->free_us < now_us + wait_us) /* a lease that is not renewed until then */
        wait_us = k->free_us > now_us ? k->free_us - now_us : 0;
    (void)pthread_mutex_unlock(&k->lock);
    return wait_us < AGAIN_US && wait_us < k->config.beat_us ? AGAIN_US : wait_us;
}

static hfd_rc txn_leave(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    return replica_leave(tx, id_of(arg), err);
}

void hfd_keeper_leave(struct hfd_keeper *k)
{
    struct hfd_err err;
    hfd_rc rc;

    (void)pthread_mutex_lock(&k->lock);
    k->hold.leads = false;
    (void)pthread_mutex_unlock(&k->lock);
    rc = hfd_store_update_wait(k->config.store, txn_leave, k, &err);
    if (rc != HFD_OK)
        HFD_LOG(HFD_LOG_WARN, "the lease of this replica is not given back; it runs out",
                HFD_LOG_CSTR("code", hfd_rc_name(rc)), HFD_LOG_CSTR("reason", err.msg));
}

/* ---- for loops of work ---- */

void hfd_keeper_hold(struct hfd_keeper *k, struct hfd_hold *out)
{
    if (k == NULL) {
        *out = (struct hfd_hold){.leads = true};
        return;
    }
    HFD_CHECK_OBJ(k, KEEPER_MAGIC);
    (void)pthread_mutex_lock(&k->lock);
    *out = (struct hfd_hold){leads(k), k->hold.epoch};
    (void)pthread_mutex_unlock(&k->lock);
}

bool hfd_keeper_holds(struct hfd_keeper *k, const struct hfd_hold *hold)
{
    bool holds;

    if (k == NULL)
        return true;
    (void)pthread_mutex_lock(&k->lock);
    holds = leads(k) && k->hold.epoch == hold->epoch;
    (void)pthread_mutex_unlock(&k->lock);
    return holds;
}

hfd_rc hfd_keeper_check(const struct hfd_keeper *k, struct hfd_txn *tx, const struct hfd_hold *hold,
                        struct hfd_err *err)
{
    struct hfd_lease_row row;
    struct hfd_arena mem;
    hfd_rc rc;

    if (k == NULL)
        return HFD_OK;
    hfd_arena_init(&mem, BEAT_MEM_BYTES);
    rc = hfd_lease_row_get(tx, &mem, &row, err);
    if (rc == HFD_OK && (!hfd_slice_eq(row.holder, id_of(k)) || row.epoch != hold->epoch))
        rc = hfd_fail(err, HFD_CONFLICT, "another replica leads now");
    hfd_arena_fini(&mem);
    return rc;
}

static void on_heard(void *ctx)
{
    struct hfd_keeper *k = ctx;

    (void)pthread_mutex_lock(&k->lock);
    call_listeners(k);
    (void)pthread_mutex_unlock(&k->lock);
}

void hfd_keeper_note(struct hfd_keeper *k)
{
    if (k != NULL && k->wakes != NULL)
        hfd_wake_note(k->wakes);
}

const struct hfd_clock *hfd_keeper_clock(const struct hfd_keeper *k)
{
    return &k->db_clock.clock;
}

int64_t hfd_keeper_epoch(const struct hfd_keeper *k)
{
    return k->epoch;
}

void hfd_keeper_set_keys(struct hfd_keeper *k, const char *key_ids)
{
    (void)pthread_mutex_lock(&k->lock);
    (void)snprintf(k->key_ids, sizeof(k->key_ids), "%s", key_ids);
    (void)pthread_mutex_unlock(&k->lock);
}

void hfd_keeper_state(struct hfd_keeper *k, struct hfd_keeper_state *out)
{
    *out = (struct hfd_keeper_state){.ahead_us = hfd_db_clock_ahead_us(&k->db_clock)};
    memcpy(out->id, k->id, sizeof(out->id));
    (void)pthread_mutex_lock(&k->lock);
    out->leads = leads(k);
    out->live = k->live;
    out->outdated = k->outdated;
    out->shut_out = k->shut_out;
    (void)pthread_mutex_unlock(&k->lock);
}

void hfd_keeper_listen(struct hfd_keeper *k, hfd_keeper_changed_fn *fn, void *ctx)
{
    size_t i = 0;

    if (k == NULL)
        return;
    (void)pthread_mutex_lock(&k->lock);
    while (i < LISTENERS_MAX && k->listeners[i].fn != NULL)
        i++;
    if (i < LISTENERS_MAX) /* one that finds no room polls */
        k->listeners[i] = (struct listener){fn, ctx};
    (void)pthread_mutex_unlock(&k->lock);
}

void hfd_keeper_unlisten(struct hfd_keeper *k, const void *ctx)
{
    if (k == NULL)
        return;
    (void)pthread_mutex_lock(&k->lock);
    for (size_t i = 0; i < LISTENERS_MAX; i++)
        if (k->listeners[i].ctx == ctx)
            k->listeners[i] = (struct listener){.fn = NULL};
    (void)pthread_mutex_unlock(&k->lock);
}

/* ---- its life ---- */

static void make_id(struct hfd_keeper *k)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuv";

    hfd_rng_bytes(k->config.rng, k->id, HFD_REPLICA_ID_LEN);
    for (size_t i = 0; i < HFD_REPLICA_ID_LEN; i++)
        k->id[i] = digits[(unsigned char)k->id[i] % 32];
    k->id[HFD_REPLICA_ID_LEN] = '\0';
}

hfd_rc hfd_keeper_new(const struct hfd_keeper_config *config, struct hfd_keeper **out,
                      struct hfd_err *err)
{
    struct hfd_keeper *k = calloc(1, sizeof(*k));

    *out = NULL;
    if (k == NULL)
        return hfd_fail_nomem(err, "start the replica");
    k->magic = KEEPER_MAGIC;
    k->config = *config;
    k->config.beat_us = config->beat_us != 0 ? config->beat_us : HFD_REPLICA_BEAT_US;
    k->config.lease_us = config->lease_us != 0 ? config->lease_us : HFD_REPLICA_LEASE_US;
    k->free_us = INT64_MAX;
    make_id(k);
    (void)snprintf(k->key_ids, sizeof(k->key_ids), "%s", config->key_ids);
    (void)snprintf(k->name, sizeof(k->name), "%s", config->name);
    hfd_db_clock_init(&k->db_clock, config->clock);
    (void)pthread_mutex_init(&k->lock, NULL);
    k->sleeper = (struct hfd_sleeper)HFD_SLEEPER_INIT;
    *out = k;
    return HFD_OK;
}

void hfd_keeper_free(struct hfd_keeper *k)
{
    if (k == NULL)
        return;
    HFD_CHECK_OBJ(k, KEEPER_MAGIC);
    hfd_wake_stop(&k->wakes);
    hfd_store_reader_close(&k->reader);
    (void)pthread_mutex_destroy(&k->lock);
    k->magic = 0;
    free(k);
}

static void *run(void *arg)
{
    struct hfd_keeper *k = arg;

    HFD_CHECK_OBJ(k, KEEPER_MAGIC);
    while (!k->shut_out && !hfd_sleeper_wait(&k->sleeper, hfd_keeper_wait_us(k), NULL)) {
        struct hfd_err err;

        (void)!hfd_keeper_beat(k, &err); /* it logs a failure */
        if (k->shut_out)
            hfd_store_break(k->config.store, &err);
    }
    hfd_store_reader_close(&k->reader);
    return NULL;
}

hfd_rc hfd_keeper_start(const struct hfd_keeper_config *config, struct hfd_keeper **out,
                        struct hfd_err *err)
{
    struct hfd_keeper *k;
    hfd_rc rc = hfd_keeper_new(config, &k, err);

    *out = NULL;
    if (rc != HFD_OK)
        return rc;
    rc = hfd_keeper_beat(k, err);
    hfd_store_reader_close(&k->reader); /* the thread opens its own */
    if (rc == HFD_OK && !config->alone)
        rc = hfd_wake_start(&(struct hfd_wake_config){config->store, on_heard, k}, &k->wakes, err);
    if (rc == HFD_OK)
        rc = hfd_sleeper_start(
            &k->sleeper, &(struct hfd_thread){"hfd-replica", "thread of the lease", run, k}, err);
    if (rc == HFD_OK)
        *out = k;
    else
        hfd_keeper_free(k);
    return rc;
}

void hfd_keeper_stop(struct hfd_keeper **out)
{
    struct hfd_keeper *k = *out;

    if (k == NULL)
        return;
    HFD_CHECK_OBJ(k, KEEPER_MAGIC);
    hfd_sleeper_stop(&k->sleeper);
    if (!k->shut_out) /* its rows are those of the newer programs now */
        hfd_keeper_leave(k);
    hfd_keeper_free(k);
    *out = NULL;
}

/* ---- the list of replicas, for people ---- */

/* Marks those whose settings are older than those of a live one. */
static void mark_outdated(const struct hfd_replicas_seen *all)
{
    int64_t newest = 0;

    for (size_t i = 0; i < all->count; i++)
        if (all->items[i].live && all->items[i].settings_epoch > newest)
            newest = all->items[i].settings_epoch;
    for (size_t i = 0; i < all->count; i++)
        all->items[i].outdated = all->items[i].settings_epoch < newest;
}

hfd_rc hfd_replicas_read(struct hfd_txn *tx, int64_t now_us, struct hfd_arena *mem,
                         struct hfd_replicas_seen *out, struct hfd_err *err)
{
    struct hfd_lease_row lease;
    struct hfd_replica_list list;
    hfd_rc rc = hfd_replica_row_list(tx, mem, &list, err);

    *out = (struct hfd_replicas_seen){.count = 0};
    if (rc == HFD_OK)
        rc = hfd_lease_row_get(tx, mem, &lease, err);
    if (rc != HFD_OK || list.count == 0)
        return rc;
    out->items = hfd_arena_array(mem, list.count, sizeof(*out->items));
    if (out->items == NULL)
        return hfd_fail_nomem(err, "list the replicas");
    for (size_t i = 0; i < list.count; i++) {
        const struct hfd_replica_row *row = &list.rows[i];

        out->items[i] = (struct hfd_replica_seen){
            .id = row->id,
            .name = row->name,
            .version = row->version,
            .schema = row->schema,
            .started_us = row->started_us,
            .beat_us = row->beat_us,
            .settings_epoch = row->settings_epoch,
            .leads = hfd_slice_eq(lease.holder, row->id) && lease.until_us > now_us,
            .live = row->beat_us > now_us - HFD_REPLICA_LEASE_US};
    }
    out->count = list.count;
    mark_outdated(out);
    return HFD_OK;
}
