/* See guard.h. */
#include "handlers/auth/guard.h"

#include "driver/base/check.h"
#include "driver/base/clock.h"
#include "driver/base/file.h"
#include "driver/base/log.h"
#include "driver/base/slice.h"
#include "driver/base/url.h"
#include "driver/core/driver.h"
#include "handlers/auth/decide.h"
#include "handlers/auth/token.h"
#include "handlers/auth/trust.h"
#include "store/rows_replica.h"
#include "store/store.h"

#include <sodium.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- guard watch ---- */

/* The thread of the guard. hfd_guard_start, hfd_guard_stop and hfd_guard_look are in guard.h. */

/*
 * The threads of the guard: one looks at the files, the other one waits for issuers and the store.
 * Also the token of the commands on this machine.
 */

#define PAUSE_US (HFD_US_PER_S / 4)
#define WRITE_US (60 * HFD_US_PER_S)
#define USES_MAX ((size_t)2 * HFD_TOKENS_MAX) /* rows of last uses */
#define USES_MAX_BYTES ((size_t)64 << 20)

/*
 * Returns true if the tokens file is another one than at the last call.
 * Notes the state of the file. A link that leads nowhere exists, and so may what cannot be seen.
 */
static bool guard_file_changed(struct hfd_guard *guard)
{
    const char *path = guard->config.tokens_file;
    struct stat now = {0};
    bool changed;

    if (stat(path, &now) != 0 && lstat(path, &now) != 0)
        now = (struct stat){.st_mode = errno == ENOENT || errno == ENOTDIR ? 0 : S_IFMT};
    changed = !hfd_file_same(&now, &guard->file) || now.st_mode != guard->file.st_mode ||
              now.st_uid != guard->file.st_uid;
    guard->file = now;
    return changed;
}

/* ---- last uses ---- */

struct reading {
    struct hfd_token_uses uses;
    struct hfd_keyset *set;
};

/* Reads the last uses. Beyond the bound, those of tokens that are no longer in the file go. */
static hfd_rc txn_read(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct reading *r = arg;
    hfd_rc rc;

    hfd_arena_fini(r->uses.mem);
    rc = hfd_token_use_list(tx, r->uses.mem, &r->uses, err);
    if (r->uses.count <= USES_MAX || r->set->count == 0) /* the file may be damaged */
        return rc;
    for (size_t i = 0; rc == HFD_OK && i < r->uses.count; i++)
        if (!hfd_keyset_has_name(r->set, r->uses.rows[i].name))
            rc = hfd_token_use_delete(tx, r->uses.rows[i].name, err);
    return rc;
}

static hfd_rc txn_write(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    const struct hfd_token_uses *uses = arg;
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; rc == HFD_OK && i < uses->count; i++)
        rc = hfd_token_use_put(tx, &uses->rows[i], err);
    return rc;
}

/* Fills in what the store knows, for tokens that were not used since. */
static void take_uses(struct hfd_guard *guard, const struct hfd_token_uses *uses)
{
    struct hfd_keyset_row *rows;

    pthread_mutex_lock(&guard->lock);
    rows = guard->set->rows;
    for (size_t i = 0; i < guard->set->count; i++) {
        for (size_t k = 0; k < uses->count; k++) {
            const struct hfd_token_use_row *use = &uses->rows[k];

            if (atomic_load(&rows[i].used_us) != 0 || use->created_us != rows[i].token.created_us ||
                !hfd_slice_eq(use->name, rows[i].token.name))
                continue;
            atomic_store(&rows[i].used_us, use->used_us);
            (void)snprintf(rows[i].from, sizeof(rows[i].from), "%.*s", HFD_SLICE_FMT(use->from));
        }
    }
    pthread_mutex_unlock(&guard->lock);
}

static struct hfd_keyset *guard_set(struct hfd_guard *guard);

static void read_uses(struct hfd_guard *guard)
{
    struct hfd_arena mem;
    struct reading r = {.uses = {.mem = &mem}, .set = guard_set(guard)};
    struct hfd_err err = {0};
    hfd_rc rc;

    hfd_arena_init(&mem, USES_MAX_BYTES);
    rc = hfd_store_update_wait(guard->store, txn_read, &r, &err);
    if (rc == HFD_OK)
        take_uses(guard, &r.uses);
    else
        HFD_LOG(HFD_LOG_WARN, "cannot read the last uses of tokens",
                HFD_LOG_CSTR("error", err.msg));
    hfd_arena_fini(&mem);
    hfd_keyset_unref(r.set);
}

/* Copies the uses that are not in the store. @return false if memory is short */
static bool collect(struct hfd_guard *guard, struct hfd_token_uses *uses)
{
    struct hfd_keyset_row *rows;
    bool ok;

    pthread_mutex_lock(&guard->lock);
    rows = guard->set->rows;
    uses->rows = hfd_arena_array(uses->mem, guard->set->count + 1, sizeof(*uses->rows));
    ok = uses->rows != NULL;
    for (size_t i = 0; ok && i < guard->set->count; i++) {
        struct hfd_token_use_row *use = &uses->rows[uses->count];

        if (!rows[i].dirty)
            continue;
        *use = (struct hfd_token_use_row){.name = hfd_arena_dup(uses->mem, rows[i].token.name),
                                          .created_us = rows[i].token.created_us,
                                          .used_us = atomic_load(&rows[i].used_us),
                                          .from =
                                              hfd_arena_dup(uses->mem, hfd_slice_of(rows[i].from))};
        ok = use->name.p != NULL && use->from.p != NULL;
        rows[i].dirty = !ok;
        uses->count += ok;
    }
    pthread_mutex_unlock(&guard->lock);
    return ok;
}

/*
 * Writes new uses in one transaction. A failure loses them: the next use is noted again.
 * @param written_us  mono: gets the time if there were any
 */
static void write_uses(struct hfd_guard *guard, int64_t *written_us)
{
    struct hfd_token_uses uses = {.count = 0};
    struct hfd_arena mem;
    struct hfd_err err = {0};

    hfd_arena_init(&mem, USES_MAX_BYTES);
    uses.mem = &mem;
    if (collect(guard, &uses) && uses.count > 0) {
        *written_us = hfd_clock_mono_us(&hfd_clock_system);
        if (hfd_store_update_wait(guard->store, txn_write, &uses, &err) != HFD_OK)
            HFD_LOG(HFD_LOG_WARN, "cannot write the last uses of tokens",
                    HFD_LOG_CSTR("error", err.msg));
    }
    hfd_arena_fini(&mem);
}

/* ---- looking ---- */

/* Says once when no credential is left, and once when there is one again. */
static void look_at_usable(struct hfd_guard *guard)
{
    const bool usable = !hfd_guard_is_on(guard) || hfd_guard_is_usable(guard);

    if (usable == guard->usable)
        return;
    guard->usable = usable;
    if (usable)
        HFD_LOG(HFD_LOG_INFO, "credentials are valid again");
    else
        HFD_LOG(HFD_LOG_ERROR,
                "no credential is valid: every token is revoked, expired or unreadable, and every "
                "call is answered with 401",
                HFD_LOG_CSTR("tokens_file", guard->config.tokens_file));
}

static hfd_rc guard_read_tokens(struct hfd_guard *guard, struct hfd_err *err);
static void guard_install_trust(struct hfd_guard *guard, struct hfd_trust *trust);

static void look(struct hfd_guard *guard, bool forced)
{
    struct hfd_err err = {0};

    if (guard_file_changed(guard) || forced) {
        if (guard_read_tokens(guard, &err) != HFD_OK) {
            guard->file = (struct stat){0}; /* again at the next look */
            HFD_LOG(HFD_LOG_WARN, "the tokens file was not read", HFD_LOG_CSTR("error", err.msg));
        } else if (hfd_guard_is_on(guard)) {
            atomic_store(&guard->wants_uses, true);
        }
    }
    guard_install_trust(guard, hfd_signers_look(guard->signers));
    look_at_usable(guard);
}

/* Waits for the disk of this machine only: what it decides must not be late. */
static void *run_looks(void *arg)
{
    struct hfd_guard *guard = arg;
    bool forced = false;

    do
        look(guard, forced);
    while (!hfd_sleeper_wait(&guard->looks, PAUSE_US, &forced));
    return NULL;
}

/* Waits for issuers and for the store. */
static void *run_waits(void *arg)
{
    struct hfd_guard *guard = arg;
    int64_t written_us = 0;

    while (!atomic_load(&guard->stop)) {
        if (hfd_signers_fetch(guard->signers, atomic_exchange(&guard->wants_keys, false), PAUSE_US))
            hfd_guard_look(guard);
        if (atomic_exchange(&guard->wants_uses, false))
            read_uses(guard);
        if (written_us == 0 || hfd_clock_mono_us(&hfd_clock_system) - written_us >= WRITE_US)
            write_uses(guard, &written_us);
    }
    write_uses(guard, &written_us);
    return NULL;
}

void hfd_guard_look(struct hfd_guard *guard)
{
    hfd_sleeper_ring(&guard->looks);
}

/* ---- the token of this run ---- */

/* Writes a new token into the local file. Commands of the same user read it there. */
static hfd_rc make_local(struct hfd_guard *guard, const char *path, struct hfd_err *err)
{
    char text[HFD_TOKEN_CHARS + 1];
    ssize_t n = -1;
    int fd;

    guard->local_file = strdup(path);
    if (guard->local_file == NULL)
        return hfd_fail_nomem(err, "set up authentication");
    hfd_token_make(&hfd_rng_system, text);
    hfd_token_hash((hfd_slice){text, HFD_TOKEN_CHARS}, guard->local_hash);
    fd = hfd_file_make(path); /* without that of a run before */
    if (fd >= 0) {
        text[HFD_TOKEN_CHARS] = '\n';
        n = write(fd, text, sizeof(text));
        (void)close(fd);
    }
    sodium_memzero(text, sizeof(text));
    guard->has_local = n == (ssize_t)sizeof(text);
    return guard->has_local ? HFD_OK
                            : hfd_fail(err, HFD_IO, "write %.150s: %s", path, strerror(errno));
}

hfd_rc hfd_guard_start(struct hfd_guard *guard, struct hfd_store *store, const char *local_file,
                       struct hfd_err *err)
{
    hfd_rc rc = hfd_signers_prepare(guard->signers, err);

    HFD_ASSERT(!guard->looks.started);
    if (rc == HFD_OK && local_file[0] != '\0')
        rc = make_local(guard, local_file, err);
    guard_install_trust(guard, hfd_signers_look(guard->signers));
    guard->store = store;
    guard->started = true;
    atomic_store(&guard->stop, false);
    atomic_store(&guard->wants_uses, true);
    if (rc == HFD_OK)
        rc = hfd_sleeper_start(&guard->looks,
                               &(struct hfd_thread){"hfd-guard", "guard: thread", run_looks, guard},
                               err);
    if (rc == HFD_OK)
        rc = hfd_sleeper_start(
            &guard->waits,
            &(struct hfd_thread){"hfd-guard-waits", "guard: thread", run_waits, guard}, err);
    if (rc != HFD_OK)
        hfd_guard_stop(guard);
    return rc;
}

void hfd_guard_stop(struct hfd_guard *guard)
{
    atomic_store(&guard->stop, true);
    if (guard->looks.started)
        hfd_signers_wake(guard->signers);
    hfd_sleeper_stop(&guard->waits);
    hfd_sleeper_stop(&guard->looks);
    guard->started = false;
    if (guard->local_file != NULL)
        (void)unlink(guard->local_file);
    free(guard->local_file);
    guard->local_file = NULL;
    guard->has_local = false;
}

/* ---- failures ---- */

#define HFD_FAILURES_WAYS 4          /* places of one address */
#define HFD_FAILURES_FULL 100        /* the failure with the longest delay */
#define HFD_FAILURE_DELAY_US 20000   /* for each failure: 2 s at the hundredth */
#define HFD_FAILURE_FADES_US 6000000 /* one failure is forgotten in this time */

void hfd_failures_init(struct hfd_failures *f)
{
    memset(f->items, 0, sizeof(f->items));
    f->second_us = f->lines = f->silent = 0;
    pthread_mutex_init(&f->lock, NULL);
}

void hfd_failures_fini(struct hfd_failures *f)
{
    pthread_mutex_destroy(&f->lock);
}

/* Returns what stands for an address. A host has at least 2^64 addresses of IPv6: they are one. */
static uint64_t network_of(const char *from)
{
    const hfd_slice text = hfd_slice_of(from);
    struct hfd_ip ip;
    const bool is_ip = hfd_ip_parse(text, &ip);
    const hfd_slice bytes = {(const char *)ip.bytes, ip.bits == 32 ? 4 : 8};
    const uint64_t network = hfd_slice_hash(HFD_HASH_START, is_ip ? bytes : text);

    return network != 0 ? network : 1;
}

static unsigned count_now(const struct hfd_failure *item, int64_t now_us)
{
    const int64_t faded = (now_us - item->at_us) / HFD_FAILURE_FADES_US;

    return faded >= (int64_t)item->count ? 0 : item->count - (unsigned)faded;
}

/* Finds the place of an address: its own, a free one, or that with the fewest failures. */
static struct hfd_failure *failures_place_of(struct hfd_failures *f, uint64_t network,
                                             int64_t now_us)
{
    struct hfd_failure *set =
        &f->items[network % (HFD_FAILURES_MAX / HFD_FAILURES_WAYS) * HFD_FAILURES_WAYS];
    struct hfd_failure *best = set;

    for (size_t i = 0; i < HFD_FAILURES_WAYS; i++) {
        if (set[i].network == network)
            return &set[i];
        if (count_now(&set[i], now_us) < count_now(best, now_us))
            best = &set[i];
    }
    *best = (struct hfd_failure){.network = network, .at_us = now_us};
    return best;
}

static int64_t add(struct hfd_failures *f, const char *from, int64_t now_us)
{
    struct hfd_failure *item = failures_place_of(f, network_of(from), now_us);

    item->count = count_now(item, now_us);
    item->at_us = now_us;
    if (item->count < HFD_FAILURES_FULL)
        item->count++;
    return (int64_t)item->count * HFD_FAILURE_DELAY_US;
}

static void take_line(struct hfd_failures *f, int64_t now_us, struct hfd_failure_note *note)
{
    if (now_us - f->second_us >= HFD_US_PER_S || now_us < f->second_us) {
        f->second_us = now_us;
        f->lines = 0;
    }
    note->log = f->lines < HFD_FAILURE_LINES_PER_S;
    if (!note->log) {
        f->silent++;
        return;
    }
    f->lines++;
    note->silent = f->silent;
    f->silent = 0;
}

struct hfd_failure_note hfd_failures_note(struct hfd_failures *f, const char *from, int64_t now_us)
{
    struct hfd_failure_note note = {.log = false};

    pthread_mutex_lock(&f->lock);
    if (from != NULL)
        note.delay_us = add(f, from, now_us);
    take_line(f, now_us, &note);
    pthread_mutex_unlock(&f->lock);
    return note;
}

/* ---- guard ---- */

/* Returns the wall clock of this machine. */
static inline int64_t hfd_guard_now_us(const struct hfd_guard *guard)
{
    return hfd_clock_wall_us(guard->config.clock) + hfd_clock_skew_us(guard->config.clock);
}

#define NOTE_US (60 * HFD_US_PER_S)
#define SEEN_MAX 64 /* JWT whose signature a loop remembers */
#define LIST_MAX_BYTES ((size_t)64 << 20)

/* ---- what is configured ---- */

/* Copies last uses from the keyset before, whose tokens may go on. Under the lock. */
static void take_over_uses(struct hfd_keyset *set, const struct hfd_keyset *before)
{
    struct hfd_keyset_row *rows = before->rows;

    for (size_t i = 0; i < before->count; i++) {
        struct hfd_keyset_row *row = hfd_keyset_find(set, rows[i].token.hash);

        if (row == NULL)
            continue;
        atomic_store(&row->used_us, atomic_load(&rows[i].used_us));
        memcpy(row->from, rows[i].from, sizeof(row->from));
        row->dirty = rows[i].dirty;
    }
}

/* Replaces the keyset. Takes set. */
static void install(struct hfd_guard *guard, struct hfd_keyset *set)
{
    struct hfd_keyset *before;

    pthread_mutex_lock(&guard->lock);
    before = guard->set;
    if (before != NULL)
        take_over_uses(set, before);
    guard->set = set;
    atomic_fetch_add(&guard->version, 1);
    pthread_mutex_unlock(&guard->lock);
    hfd_keyset_unref(before);
}

/* Replaces the trust. Takes it; NULL = it stays. */
static void guard_install_trust(struct hfd_guard *guard, struct hfd_trust *trust)
{
    struct hfd_trust *before;

    if (trust == NULL)
        return;
    pthread_mutex_lock(&guard->lock);
    before = guard->trust;
    guard->trust = trust;
    atomic_fetch_add(&guard->version, 1);
    pthread_mutex_unlock(&guard->lock);
    hfd_trust_unref(before);
}

static hfd_rc install_list(struct hfd_guard *guard, const struct hfd_token_list *list,
                           struct hfd_err *err)
{
    struct hfd_keyset *set;
    hfd_rc rc = hfd_keyset_new(list, &set, err);

    if (rc == HFD_OK)
        install(guard, set);
    return rc;
}

static void turn_on(struct hfd_guard *guard)
{
    if (!atomic_exchange(&guard->on, true) && guard->started)
        HFD_LOG(HFD_LOG_INFO, "authentication is on from now on: there is a tokens file");
}

/* Logs why no token is taken, once for each reason. */
static void say_unusable(struct hfd_guard *guard, const struct hfd_err *why)
{
    if (strcmp(guard->said, why->msg) == 0)
        return;
    memcpy(guard->said, why->msg, sizeof(guard->said));
    HFD_LOG(HFD_LOG_ERROR, "the tokens file cannot be used: no token is valid",
            HFD_LOG_CSTR("error", why->msg));
}

/*
 * Reads the tokens file and takes it up. @return HFD_OK, HFD_NOMEM (nothing changes)
 * Reads the tokens file. A file that cannot be used has no valid token; so has a missing one, which
 * is an error only once authentication is on.
 */
static hfd_rc guard_read_tokens(struct hfd_guard *guard, struct hfd_err *err)
{
    struct hfd_token_list list;
    struct hfd_err why = {0};
    struct hfd_arena mem;
    hfd_rc rc, read;

    hfd_arena_init(&mem, LIST_MAX_BYTES);
    read = hfd_token_file_read(guard->config.tokens_file, &mem, &list, &why);
    if (read == HFD_NOMEM) {
        hfd_arena_fini(&mem);
        return hfd_fail_nomem(err, "read the tokens file");
    }
    rc = install_list(guard, &list, err);
    hfd_arena_fini(&mem);
    if (rc != HFD_OK)
        return rc;
    if (read == HFD_OK)
        guard->said[0] = '\0';
    if (read != HFD_NOT_FOUND)
        turn_on(guard);
    guard->had_file = guard->had_file || read != HFD_NOT_FOUND;
    if (read != HFD_OK && guard->had_file && hfd_guard_is_on(guard))
        say_unusable(guard, &why);
    return HFD_OK;
}

hfd_rc hfd_guard_open(const struct hfd_guard_config *config, struct hfd_guard **out,
                      struct hfd_err *err)
{
    struct hfd_guard *guard = calloc(1, sizeof(*guard));
    hfd_rc rc;

    *out = NULL;
    if (guard == NULL)
        return hfd_fail_nomem(err, "set up authentication");
    guard->config = *config;
    guard->usable = true;
    pthread_mutex_init(&guard->lock, NULL);
    hfd_failures_init(&guard->failures);
    guard->looks = guard->waits = (struct hfd_sleeper)HFD_SLEEPER_INIT;
    rc = hfd_signers_open(&config->signers, &guard->signers, err);
    if (rc == HFD_OK) {
        atomic_store(&guard->on, hfd_signers_any(guard->signers));
        (void)guard_file_changed(guard);
        rc = guard_read_tokens(guard, err);
    }
    if (rc == HFD_OK)
        *out = guard;
    else
        hfd_guard_free(guard);
    return rc;
}

void hfd_guard_free(struct hfd_guard *guard)
{
    if (guard == NULL)
        return;
    HFD_ASSERT(!guard->looks.started);
    hfd_keyset_unref(guard->set);
    hfd_trust_unref(guard->trust);
    hfd_signers_free(guard->signers);
    hfd_failures_fini(&guard->failures);
    pthread_mutex_destroy(&guard->lock);
    free(guard);
}

/* Returns a reference to the present keyset. */
static struct hfd_keyset *guard_set(struct hfd_guard *guard)
{
    struct hfd_keyset *set;

    pthread_mutex_lock(&guard->lock);
    set = guard->set;
    (void)atomic_fetch_add(&set->refs, 1);
    pthread_mutex_unlock(&guard->lock);
    return set;
}

bool hfd_guard_is_usable(struct hfd_guard *guard)
{
    struct hfd_keyset *set = guard_set(guard);
    const bool usable =
        hfd_keyset_usable(set, hfd_guard_now_us(guard)) > 0 || hfd_signers_any(guard->signers);

    hfd_keyset_unref(set);
    return usable;
}

/* ---- requests ---- */

/* A JWT whose signature was good, so that a poll does not check it again. */
struct hfd_seen_jwt {
    unsigned char hash[HFD_TOKEN_HASH_BYTES];
    struct hfd_trust_answer answer;
};

/* Renews the view if the guard has another keyset. */
static void renew(struct hfd_guard *guard, struct hfd_guard_view *view)
{
    const unsigned version = atomic_load(&guard->version);

    if (view->set != NULL && view->version == version)
        return;
    hfd_keyset_unref(view->set);
    hfd_trust_unref(view->trust);
    if (view->seen != NULL)
        memset(view->seen, 0, SEEN_MAX * sizeof(*view->seen));
    pthread_mutex_lock(&guard->lock);
    view->set = guard->set;
    (void)atomic_fetch_add(&view->set->refs, 1);
    view->trust = guard->trust;
    if (view->trust != NULL)
        (void)atomic_fetch_add(&view->trust->refs, 1);
    pthread_mutex_unlock(&guard->lock);
    view->version = version;
}

void hfd_guard_view_close(struct hfd_guard_view *view)
{
    hfd_keyset_unref(view->set);
    hfd_trust_unref(view->trust);
    free(view->seen);
    *view = (struct hfd_guard_view){.set = NULL};
}

static bool is_local(const struct hfd_guard *guard, const unsigned char *hash)
{
    return guard->has_local && sodium_memcmp(guard->local_hash, hash, HFD_TOKEN_HASH_BYTES) == 0;
}

static void check_token(struct hfd_guard *guard, const struct hfd_guard_view *view,
                        hfd_slice secret, int64_t now_us, struct hfd_guard_answer *out)
{
    unsigned char hash[HFD_TOKEN_HASH_BYTES];
    struct hfd_keyset_row *row;

    hfd_token_hash(secret, hash);
    row = hfd_keyset_find(view->set, hash);
    if (row == NULL) {
        if (is_local(guard, hash))
            out->caller = (struct hfd_caller){.grant = {.scopes = HFD_SCOPE_BIT(ADMIN)},
                                              .name = HFD_SLICE(HFD_IDENTITY_LOCAL)};
        return;
    }
    if (row->token.expires_us != 0 && row->token.expires_us <= now_us) {
        out->caller.fault = HFD_AUTH_EXPIRED;
        return;
    }
    out->caller = (struct hfd_caller){.grant = row->token.grant, .name = row->identity};
    if (now_us - atomic_load(&row->used_us) >= NOTE_US)
        out->used = row;
}

/* Finds the place of a JWT, which may have another one. @return NULL if memory is short */
static struct hfd_seen_jwt *place_of(struct hfd_guard_view *view, const unsigned char *hash)
{
    if (view->seen == NULL)
        view->seen = calloc(SEEN_MAX, sizeof(*view->seen));
    return view->seen != NULL ? &view->seen[hash[0] % SEEN_MAX] : NULL;
}

static void check_jwt(struct hfd_guard *guard, struct hfd_guard_view *view, hfd_slice text,
                      int64_t now_us, struct hfd_guard_answer *out)
{
    unsigned char hash[HFD_TOKEN_HASH_BYTES];
    struct hfd_seen_jwt *seen;

    hfd_token_hash(text, hash);
    seen = place_of(view, hash);
    if (seen == NULL || view->trust == NULL)
        return;
    if (seen->answer.name[0] == '\0' ||
        sodium_memcmp(seen->hash, hash, HFD_TOKEN_HASH_BYTES) != 0) {
        memcpy(seen->hash, hash, sizeof(hash));
        if (hfd_trust_check(view->trust, view->set, text, now_us, &seen->answer) != HFD_OK)
            seen->answer.fault = HFD_AUTH_UNKNOWN;
        if (seen->answer.new_key)
            atomic_store(&guard->wants_keys, true);
    }
    out->caller = (struct hfd_caller){.fault = seen->answer.fault,
                                      .grant = seen->answer.grant,
                                      .name = hfd_slice_of(seen->answer.name)};
    if (seen->answer.fault != HFD_AUTH_NONE)
        seen->answer.name[0] = '\0'; /* not kept */
    else if (seen->answer.expires_us != 0 && now_us >= seen->answer.expires_us)
        out->caller = (struct hfd_caller){.fault = HFD_AUTH_EXPIRED};
}

void hfd_guard_check(struct hfd_guard *guard, struct hfd_guard_view *view, hfd_slice secret,
                     int64_t now_us, struct hfd_guard_answer *out)
{
    *out = (struct hfd_guard_answer){.caller = {.fault = HFD_AUTH_UNKNOWN}};
    renew(guard, view);
    if (hfd_token_is(secret))
        check_token(guard, view, secret, now_us, out);
    else if (hfd_jwt_is(secret))
        check_jwt(guard, view, secret, now_us, out);
}

void hfd_guard_note(struct hfd_guard *guard, struct hfd_keyset_row *used, const char *from,
                    int64_t now_us)
{
    pthread_mutex_lock(&guard->lock);
    atomic_store(&used->used_us, now_us);
    (void)snprintf(used->from, sizeof(used->from), "%s", from);
    used->dirty = true;
    pthread_mutex_unlock(&guard->lock);
}

/* ---- the operator's list ---- */

hfd_rc hfd_guard_list(struct hfd_guard *guard, struct hfd_arena *mem, struct hfd_guard_tokens *out,
                      struct hfd_err *err)
{
    struct hfd_keyset *set = guard_set(guard);
    bool ok;

    *out = (struct hfd_guard_tokens){.items =
                                         hfd_arena_array(mem, set->count + 1, sizeof(*out->items))};
    ok = out->items != NULL;
    pthread_mutex_lock(&guard->lock);
    for (size_t i = 0; ok && i < set->count; i++) {
        const struct hfd_token *t = &set->rows[i].token;
        struct hfd_guard_token *item = &out->items[out->count++];

        *item = (struct hfd_guard_token){
            .name = hfd_arena_dup(mem, t->name),
            .grant = {t->grant.scopes, hfd_arena_dup(mem, t->grant.adapters)},
            .created_us = t->created_us,
            .expires_us = t->expires_us,
            .used_us = atomic_load(&set->rows[i].used_us),
            .from = hfd_arena_dup(mem, hfd_slice_of(set->rows[i].from))};
        ok = item->name.p != NULL && item->from.p != NULL && item->grant.adapters.p != NULL;
    }
    pthread_mutex_unlock(&guard->lock);
    hfd_keyset_unref(set);
    return ok ? HFD_OK : hfd_fail_nomem(err, "list the tokens");
}
