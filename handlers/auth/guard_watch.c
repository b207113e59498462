/*
 * The thread of the guard: looks at the files, writes last uses, and keeps the token of the
 * commands on this machine. See guard.h.
 */
#include "handlers/auth/guard_watch.h"

#include "driver/base/check.h"
#include "driver/base/file.h"
#include "driver/base/log.h"
#include "driver/base/thread.h"
#include "store/rows_token.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>
#include <unistd.h>

#define PAUSE_US HFD_US_PER_S
#define WRITE_US (60 * HFD_US_PER_S)
#define USES_MAX_BYTES ((size_t)16 << 20)

bool hfd_guard_file_changed(struct hfd_guard *guard)
{
    struct stat now = {0};
    bool changed;

    if (stat(guard->config.tokens_file, &now) != 0)
        now = (struct stat){0};
    changed = !hfd_file_same(&now, &guard->file) || now.st_mode != guard->file.st_mode ||
              now.st_uid != guard->file.st_uid;
    guard->file = now;
    return changed;
}

/* ---- last uses ---- */

static hfd_rc txn_read(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct hfd_token_uses *uses = arg;

    hfd_arena_fini(uses->mem);
    return hfd_token_use_list(tx, uses->mem, uses, err);
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
    size_t count;
    struct hfd_keyset_row *rows;

    pthread_mutex_lock(&guard->lock);
    rows = hfd_keyset_rows(guard->set, &count);
    for (size_t i = 0; i < count; i++) {
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

static void read_uses(struct hfd_guard *guard)
{
    struct hfd_token_uses uses = {.count = 0};
    struct hfd_arena mem;
    struct hfd_err err = {0};
    hfd_rc rc;

    hfd_arena_init(&mem, USES_MAX_BYTES);
    uses.mem = &mem;
    rc = hfd_store_update_wait(guard->store, txn_read, &uses, &err);
    if (rc == HFD_OK)
        take_uses(guard, &uses);
    else
        HFD_LOG(HFD_LOG_WARN, "cannot read the last uses of tokens",
                HFD_LOG_CSTR("error", err.msg));
    hfd_arena_fini(&mem);
}

/* Copies the uses that are not in the store. @return false if memory is short */
static bool collect(struct hfd_guard *guard, struct hfd_token_uses *uses)
{
    size_t count;
    struct hfd_keyset_row *rows;
    bool ok;

    pthread_mutex_lock(&guard->lock);
    rows = hfd_keyset_rows(guard->set, &count);
    uses->rows = hfd_arena_array(uses->mem, count + 1, sizeof(*uses->rows));
    ok = uses->rows != NULL;
    for (size_t i = 0; ok && i < count; i++) {
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

/* Writes new uses in one transaction. A failure loses them: the next use is noted again. */
static void write_uses(struct hfd_guard *guard)
{
    struct hfd_token_uses uses = {.count = 0};
    struct hfd_arena mem;
    struct hfd_err err = {0};

    hfd_arena_init(&mem, USES_MAX_BYTES);
    uses.mem = &mem;
    if (collect(guard, &uses) && uses.count > 0) {
        guard->written_us = hfd_clock_mono_us(&hfd_clock_system);
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

static void look(struct hfd_guard *guard, bool forced)
{
    struct hfd_err err = {0};

    if (hfd_guard_file_changed(guard) || forced) {
        if (hfd_guard_read_tokens(guard, &err) != HFD_OK) {
            guard->file = (struct stat){0}; /* again at the next look */
            HFD_LOG(HFD_LOG_WARN, "the tokens file was not read", HFD_LOG_CSTR("error", err.msg));
        } else if (hfd_guard_is_on(guard)) {
            read_uses(guard);
        }
    }
    hfd_guard_install_trust(
        guard, hfd_signers_look(guard->signers, atomic_exchange(&guard->wants_keys, false)));
    look_at_usable(guard);
    if (guard->written_us == 0 ||
        hfd_clock_mono_us(&hfd_clock_system) - guard->written_us >= WRITE_US)
        write_uses(guard);
}

/* Sleeps until the next look, or until it is asked for. @return true to stop */
static bool wait_for_next(struct hfd_guard *guard, bool *forced)
{
    const int64_t until_us = hfd_clock_mono_us(&hfd_clock_system) + PAUSE_US;
    const struct timespec until = {.tv_sec = (time_t)(until_us / HFD_US_PER_S),
                                   .tv_nsec = (long)(until_us % HFD_US_PER_S) * 1000};
    bool stop;
    int rc = 0;

    pthread_mutex_lock(&guard->lock);
    while (!guard->stop && !guard->look && rc == 0)
        rc = pthread_cond_timedwait(&guard->wake, &guard->lock, &until);
    stop = guard->stop;
    *forced = guard->look;
    guard->look = false;
    pthread_mutex_unlock(&guard->lock);
    return stop;
}

static void *run(void *arg)
{
    struct hfd_guard *guard = arg;
    bool forced = false;

    read_uses(guard);
    do
        look(guard, forced);
    while (!wait_for_next(guard, &forced));
    write_uses(guard);
    return NULL;
}

void hfd_guard_look(struct hfd_guard *guard)
{
    pthread_mutex_lock(&guard->lock);
    guard->look = true;
    pthread_cond_signal(&guard->wake);
    pthread_mutex_unlock(&guard->lock);
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
    (void)unlink(path); /* of a run before */
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
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
    hfd_rc rc = local_file[0] != '\0' ? make_local(guard, local_file, err) : HFD_OK;

    HFD_ASSERT(!guard->started);
    hfd_signers_prepare(guard->signers);
    hfd_guard_install_trust(guard, hfd_signers_look(guard->signers, false));
    guard->store = store;
    guard->stop = guard->look = false;
    guard->started = rc == HFD_OK; /* before the thread begins: it reads that */
    if (rc == HFD_OK)
        rc = hfd_thread_start(&(struct hfd_thread){"hfd-guard", "guard: thread", run, guard},
                              &guard->thread, err);
    if (rc != HFD_OK) {
        guard->started = false;
        hfd_guard_stop(guard);
    }
    return rc;
}

void hfd_guard_stop(struct hfd_guard *guard)
{
    if (guard->started) {
        pthread_mutex_lock(&guard->lock);
        guard->stop = true;
        pthread_cond_signal(&guard->wake);
        pthread_mutex_unlock(&guard->lock);
        pthread_join(guard->thread, NULL);
        guard->started = false;
    }
    if (guard->local_file != NULL)
        (void)unlink(guard->local_file);
    free(guard->local_file);
    guard->local_file = NULL;
    guard->has_local = false;
}
