/* See serve_keys.h. */
#include "handlers/cli/serve_keys.h"

#include "driver/base/check.h"
#include "driver/base/clock.h"
#include "driver/base/file.h"
#include "driver/base/log.h"
#include "driver/base/metrics.h"
#include "driver/base/thread.h"
#include "driver/base/trouble.h"
#include "driver/core/driver.h"
#include "driver/core/keyring.h"
#include "driver/core/ring_check.h"
#include "driver/replica/keeper.h"
#include "handlers/cli/cli.h"

#include <stdlib.h>
#include <sys/stat.h>

static hfd_rc push(struct hfd_serve_keys *k, struct hfd_keyring *ring, const struct stat *file,
                   struct hfd_err *err)
{
    struct hfd_serve_ring *r = malloc(sizeof(*r));

    if (r == NULL)
        return hfd_fail_nomem(err, "load the key ring");
    *r = (struct hfd_serve_ring){ring, k->rings};
    k->rings = r;
    k->file = *file;
    return HFD_OK;
}

/* Reads the state of the file first, so that the next reload finds a later change. */
static hfd_rc load(const struct hfd_serve_keys *k, struct stat *file, struct hfd_keyring **out,
                   struct hfd_err *err)
{
    *out = NULL;
    if (stat(k->path, file) != 0)
        *file = (struct stat){0};
    return hfd_keyring_load(k->path, out, err);
}

static hfd_rc make(const char *path, struct hfd_err *err)
{
    hfd_rc rc = hfd_keyring_create(path, &hfd_rng_system, err);

    if (rc == HFD_OK)
        HFD_LOG(HFD_LOG_WARN,
                "made a new key ring; back it up: without it driver cookies and stored secrets "
                "cannot be opened",
                HFD_LOG_CSTR("path", path));
    return rc == HFD_CONFLICT ? HFD_OK : rc; /* another process created one meanwhile */
}

static enum hfd_exit miss(const char *path, enum hfd_serve_ring_need need, struct hfd_err *err)
{
    if (need == HFD_SERVE_RING_SHARED)
        (void)hfd_fail(err, HFD_NOT_FOUND,
                       "key ring %.100s is missing. With a PostgreSQL store all replicas need the "
                       "same one, and none makes it: `hyperfleet-driver keygen --keys FILE` does, "
                       "once",
                       path);
    else
        (void)hfd_fail(err, HFD_NOT_FOUND,
                       "key ring %.100s is missing, and the stored data is sealed with it. Restore "
                       "it from a backup, or give up the sealed data with "
                       "`hyperfleet-driver keygen`",
                       path);
    return HFD_EXIT_KEYS;
}

enum hfd_exit hfd_serve_keys_open(struct hfd_serve_keys *k, const char *path,
                                  enum hfd_serve_ring_need need, struct hfd_err *err)
{
    struct hfd_keyring *ring;
    struct stat file;
    hfd_rc rc;

    *k = (struct hfd_serve_keys){.path = path, .shared = need == HFD_SERVE_RING_SHARED};
    rc = load(k, &file, &ring, err);
    if (rc == HFD_NOT_FOUND && need != HFD_SERVE_RING_MAKE)
        return miss(path, need, err);
    if (rc == HFD_NOT_FOUND) {
        rc = make(path, err);
        if (rc != HFD_OK)
            return rc == HFD_NOMEM ? HFD_EXIT_INTERNAL : HFD_EXIT_DATA;
        rc = load(k, &file, &ring, err);
    }
    if (rc == HFD_OK)
        rc = push(k, ring, &file, err);
    k->looked = file;
    if (rc == HFD_OK)
        return HFD_EXIT_OK;
    hfd_keyring_free(ring);
    return rc == HFD_NOMEM ? HFD_EXIT_INTERNAL : HFD_EXIT_KEYS;
}

void hfd_serve_keys_close(struct hfd_serve_keys *k)
{
    while (k->rings != NULL) {
        struct hfd_serve_ring *r = k->rings;

        k->rings = r->next;
        hfd_keyring_free(r->ring);
        free(r);
    }
}

/* Returns true if the new ring has the active key of the current one. */
static hfd_rc check_successor(const struct hfd_keyring *present, const struct hfd_keyring *next,
                              const char *path, struct hfd_err *err)
{
    const hfd_slice probe = HFD_SLICE("probe");
    struct hfd_arena mem;
    hfd_slice sealed, opened;
    hfd_rc rc = HFD_NOMEM;

    hfd_arena_init(&mem, 4096);
    sealed = hfd_keyring_seal(&(struct hfd_seal){present, HFD_KEY_AT_REST, probe}, &hfd_rng_system,
                              probe, &mem);
    if (sealed.p != NULL)
        rc = hfd_keyring_open(&(struct hfd_seal){next, HFD_KEY_AT_REST, probe}, sealed, &mem,
                              &opened, NULL);
    hfd_arena_fini(&mem);
    if (rc == HFD_COOKIE)
        return hfd_fail(
            err, HFD_CONFLICT,
            "key ring %.100s lacks the key in use; keep that key in the file as retired", path);
    return rc == HFD_OK ? HFD_OK : hfd_fail(err, rc, "out of memory");
}

static hfd_rc reload(struct hfd_serve_keys *k, bool *changed, struct hfd_err *err)
{
    struct hfd_keyring *ring;
    struct stat file;
    hfd_rc rc;

    *changed = false;
    if (stat(k->path, &file) == 0 && hfd_file_same(&file, &k->file))
        return HFD_OK;
    rc = load(k, &file, &ring, err);
    if (rc == HFD_OK)
        rc = check_successor(k->rings->ring, ring, k->path, err);
    if (rc == HFD_OK)
        rc = push(k, ring, &file, err);
    if (rc == HFD_OK)
        *changed = true;
    else
        hfd_keyring_free(ring);
    return rc;
}

/* Gives up the newest ring, which nothing uses yet. The file is read again the next time. */
static void drop_newest(struct hfd_serve_keys *k)
{
    struct hfd_serve_ring *r = k->rings;

    HFD_ASSERT(r->next != NULL);
    k->rings = r->next;
    k->file = (struct stat){0};
    hfd_keyring_free(r->ring);
    free(r);
}

hfd_rc hfd_serve_keys_check(const struct hfd_serve_keys *k, struct hfd_store *store,
                            struct hfd_err *err)
{
    struct hfd_ring_call call = {.ring = k->rings->ring, .path = k->path, .shared = k->shared};

    return hfd_store_update_wait(store, hfd_ring_check, &call, err);
}

/*
 * Reads the file again if it changed, gives the driver the new ring, and logs what came of it.
 * Keeps the old ring if the new one lacks the active key, or is the ring of another database.
 */
static void take_file(struct hfd_serve_keys *k, struct hfd_store *store, struct hfd_driver *driver)
{
    struct hfd_err err = {0};
    bool changed;
    hfd_rc rc = reload(k, &changed, &err);

    if (rc == HFD_OK && changed) {
        rc = hfd_serve_keys_check(k, store, &err);
        if (rc != HFD_OK)
            drop_newest(k);
    }
    if (rc != HFD_OK) {
        HFD_LOG(HFD_LOG_ERROR, "key ring not reloaded; the current one stays in use",
                HFD_LOG_CSTR("error", err.msg));
        return;
    }
    if (changed)
        driver->ring = k->rings->ring;
    HFD_LOG(HFD_LOG_INFO, changed ? "key ring reloaded" : "key ring unchanged",
            HFD_LOG_CSTR("path", k->path));
}

bool hfd_serve_keys_look(struct hfd_serve_keys *k, struct hfd_store *store,
                         struct hfd_driver *driver, bool forced)
{
    struct stat now;

    if (!forced) {
        if (stat(k->path, &now) != 0)
            now = (struct stat){0};
        if (hfd_file_same(&now, &k->looked))
            return false;
        k->looked = now;
    }
    take_file(k, store, driver);
    return true;
}

void hfd_serve_keys_name(const struct hfd_keyring *ring, char out[HFD_SERVE_KEY_IDS_MAX])
{
    size_t len = 0;

    out[0] = '\0';
    for (size_t i = 0; i < hfd_keyring_count(ring); i++) {
        struct hfd_key_view key;

        hfd_keyring_view(ring, i, &key);
        if (len + sizeof(key.name) + 1 > HFD_SERVE_KEY_IDS_MAX)
            return;
        len += (size_t)snprintf(out + len, HFD_SERVE_KEY_IDS_MAX - len, "%s%s", i > 0 ? "," : "",
                                key.name);
    }
}

/* ---- sealing again ---- */

#define AGAIN_US (600 * HFD_US_PER_S)
#define SOON_US (30 * HFD_US_PER_S) /* after a failure: the database may be away for a moment */
#define NONE (-1)

struct hfd_serve_reseal {
    struct hfd_serve_reseal_parts parts;
    struct hfd_sleeper sleeper; /* rung when it is wanted, and when another replica may lead */
    atomic_bool wanted, stop;
    int64_t due_us; /* mono; of the thread, as the rest */
    bool failing;   /* the last work failed, and the log says so */
    int64_t epoch;  /* of the lease, when it worked last; NONE = it did not */
};

/* Counts what needs each key of the ring. */
static hfd_rc count_uses(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    const struct hfd_keyring *ring = arg;
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; rc == HFD_OK && i < hfd_keyring_count(ring); i++) {
        struct hfd_key_view key;
        int64_t uses;

        hfd_keyring_view(ring, i, &key);
        rc = hfd_ring_uses(tx, &key, &uses, err);
        if (rc == HFD_OK)
            hfd_metric_set(HFD_METRIC_KEY_ROWS, HFD_LABELS(key.name, hfd_key_state_name(key.state)),
                           uses);
    }
    return rc;
}

/* Notes a failure. The first one in a row is logged. */
static void note_failure(struct hfd_serve_reseal *r, hfd_rc rc, const struct hfd_err *err)
{
    if (rc != HFD_OK && !r->failing && !atomic_load(&r->stop))
        HFD_LOG(HFD_LOG_ERROR, "stored secrets are not all sealed with the active key",
                HFD_LOG_CSTR("error", err->msg));
    r->failing = rc != HFD_OK;
    if (r->failing)
        (void)hfd_trouble_note(HFD_TROUBLE_SEALING, HFD_SLICE(""),
                               hfd_clock_wall_us(&hfd_clock_system), hfd_slice_of(err->msg));
    else
        (void)hfd_trouble_end(HFD_TROUBLE_SEALING, HFD_SLICE(""));
    if (r->failing && rc != HFD_DAMAGED) /* damage does not go by itself */
        r->due_us = hfd_clock_mono_us(&hfd_clock_system) + SOON_US;
}

static void work(struct hfd_serve_reseal *r)
{
    /* Two replicas that work do no harm: each step is one transaction and may be repeated. */
    const struct hfd_keyring *ring = r->parts.driver->ring;
    struct hfd_reseal all = {.driver = r->parts.driver, .store = r->parts.store, .stop = &r->stop};
    struct hfd_err err = {0};
    hfd_rc rc;

    if (hfd_keyring_count(ring) < 2)
        return;
    rc = hfd_store_reader_open(r->parts.store, &all.reader, &err);
    if (rc == HFD_OK)
        rc = hfd_reseal_all(&all, &err);
    if (rc == HFD_OK)
        rc = hfd_store_read(all.reader, count_uses, (void *)(uintptr_t)ring, &err);
    hfd_store_reader_close(&all.reader);
    if (all.count > 0)
        HFD_LOG(HFD_LOG_INFO, "stored secrets are sealed with the active key",
                HFD_LOG_INT("rows", all.count));
    if (rc == HFD_OK && all.left > 0)
        rc = hfd_fail(&err, HFD_DAMAGED, "%lld row%s cannot be read or opened: the log has the ids",
                      (long long)all.left, all.left == 1 ? "" : "s");
    note_failure(r, rc, &err);
}

/* Works if this replica leads, and is wanted to or has just taken it over. */
static void look(struct hfd_serve_reseal *r, bool wanted)
{
    struct hfd_hold hold;

    hfd_keeper_hold(r->parts.keeper, &hold);
    if (wanted) {
        r->due_us = hfd_clock_mono_us(&hfd_clock_system) + AGAIN_US;
        r->epoch = NONE;
    }
    if (!hold.leads || hold.epoch == r->epoch)
        return;
    r->epoch = hold.epoch;
    work(r);
}

static void *reseal_main(void *arg)
{
    struct hfd_serve_reseal *r = arg;
    bool rung;

    while (!hfd_sleeper_wait(&r->sleeper, r->due_us - hfd_clock_mono_us(&hfd_clock_system), &rung))
        look(r, atomic_exchange(&r->wanted, false) || !rung);
    return NULL;
}

hfd_rc hfd_serve_reseal_start(const struct hfd_serve_reseal_parts *parts,
                              struct hfd_serve_reseal **out, struct hfd_err *err)
{
    struct hfd_serve_reseal *r = calloc(1, sizeof(*r));
    hfd_rc rc;

    *out = NULL;
    if (r == NULL)
        return hfd_fail_nomem(err, "start the server");
    r->parts = *parts;
    r->sleeper = (struct hfd_sleeper)HFD_SLEEPER_INIT;
    rc = hfd_sleeper_start(
        &r->sleeper, &(struct hfd_thread){"hfd-reseal", "thread for sealing again", reseal_main, r},
        err);
    if (rc != HFD_OK) {
        free(r);
        return rc;
    }
    hfd_keeper_listen(parts->keeper, hfd_sleeper_ring, &r->sleeper);
    *out = r;
    return HFD_OK;
}

void hfd_serve_reseal_wake(struct hfd_serve_reseal *r)
{
    atomic_store(&r->wanted, true);
    hfd_sleeper_ring(&r->sleeper);
}

void hfd_serve_reseal_stop(struct hfd_serve_reseal **rp)
{
    struct hfd_serve_reseal *r = *rp;

    *rp = NULL;
    if (r == NULL)
        return;
    hfd_keeper_unlisten(r->parts.keeper, &r->sleeper);
    atomic_store(&r->stop, true);
    hfd_sleeper_stop(&r->sleeper);
    free(r);
}
