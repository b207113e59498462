/* See guard.h. */
#include "handlers/auth/guard_int.h"

#include "driver/base/check.h"
#include "driver/base/file.h"
#include "driver/base/log.h"
#include "handlers/auth/guard_watch.h"

#include <sodium.h>
#include <stdlib.h>
#include <unistd.h>

#define NOTE_US (60 * HFD_US_PER_S)
#define SEEN_MAX 64 /* JWT whose signature a loop remembers */
#define LIST_MAX_BYTES ((size_t)64 << 20)

/* ---- what is configured ---- */

/* Copies last uses from the keyset before, whose tokens may go on. Under the lock. */
static void take_over_uses(struct hfd_keyset *set, const struct hfd_keyset *before)
{
    size_t count;
    struct hfd_keyset_row *rows = hfd_keyset_rows(before, &count);

    for (size_t i = 0; i < count; i++) {
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

void hfd_guard_install_trust(struct hfd_guard *guard, struct hfd_trust *trust)
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
        HFD_LOG(HFD_LOG_INFO, "authentication is on from now on: the tokens file has a token");
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
 * Reads the tokens file. A file that cannot be used has no valid token; so has a missing one, which
 * is an error only once authentication is on.
 */
hfd_rc hfd_guard_read_tokens(struct hfd_guard *guard, struct hfd_err *err)
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
    if (list.count > 0 || (read != HFD_OK && read != HFD_NOT_FOUND))
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
    pthread_condattr_t attr;
    hfd_rc rc;

    *out = NULL;
    if (guard == NULL)
        return hfd_fail_nomem(err, "set up authentication");
    guard->config = *config;
    guard->usable = true;
    pthread_mutex_init(&guard->lock, NULL);
    hfd_failures_init(&guard->failures);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&guard->wake, &attr);
    pthread_condattr_destroy(&attr);
    rc = hfd_signers_open(&config->signers, &guard->signers, err);
    if (rc == HFD_OK) {
        atomic_store(&guard->on, hfd_signers_any(guard->signers));
        (void)hfd_guard_file_changed(guard);
        rc = hfd_guard_read_tokens(guard, err);
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
    HFD_ASSERT(!guard->started);
    hfd_keyset_unref(guard->set);
    hfd_trust_unref(guard->trust);
    hfd_signers_free(guard->signers);
    pthread_cond_destroy(&guard->wake);
    hfd_failures_fini(&guard->failures);
    pthread_mutex_destroy(&guard->lock);
    free(guard);
}

bool hfd_guard_is_on(const struct hfd_guard *guard)
{
    return atomic_load(&guard->on);
}

struct hfd_keyset *hfd_guard_set(struct hfd_guard *guard)
{
    struct hfd_keyset *set;

    pthread_mutex_lock(&guard->lock);
    set = guard->set;
    hfd_keyset_ref(set);
    pthread_mutex_unlock(&guard->lock);
    return set;
}

bool hfd_guard_is_usable(struct hfd_guard *guard)
{
    struct hfd_keyset *set = hfd_guard_set(guard);
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
    hfd_keyset_ref(view->set);
    view->trust = guard->trust;
    if (view->trust != NULL)
        hfd_trust_ref(view->trust);
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
            out->caller = (struct hfd_caller){.scopes = HFD_SCOPE_BIT(ADMIN),
                                              .name = HFD_SLICE("local@hyperfleet.local")};
        return;
    }
    if (row->token.expires_us != 0 && row->token.expires_us <= now_us) {
        out->caller.fault = HFD_AUTH_EXPIRED;
        return;
    }
    out->caller = (struct hfd_caller){.scopes = row->token.scopes, .name = row->identity};
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
        if (hfd_trust_check(view->trust, text, now_us, &seen->answer) != HFD_OK)
            seen->answer.fault = HFD_AUTH_UNKNOWN;
        if (seen->answer.new_key)
            atomic_store(&guard->wants_keys, true);
    }
    out->caller = (struct hfd_caller){.fault = seen->answer.fault,
                                      .scopes = seen->answer.scopes,
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

struct hfd_failures *hfd_guard_failures(struct hfd_guard *guard)
{
    return &guard->failures;
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
    struct hfd_keyset *set = hfd_guard_set(guard);
    size_t count;
    struct hfd_keyset_row *rows = hfd_keyset_rows(set, &count);
    bool ok;

    *out = (struct hfd_guard_tokens){.items = hfd_arena_array(mem, count + 1, sizeof(*out->items))};
    ok = out->items != NULL;
    pthread_mutex_lock(&guard->lock);
    for (size_t i = 0; ok && i < count; i++) {
        const struct hfd_token *t = &rows[i].token;
        struct hfd_guard_token *item = &out->items[out->count++];

        *item = (struct hfd_guard_token){.name = hfd_arena_dup(mem, t->name),
                                         .scopes = t->scopes,
                                         .created_us = t->created_us,
                                         .expires_us = t->expires_us,
                                         .used_us = atomic_load(&rows[i].used_us),
                                         .from = hfd_arena_dup(mem, hfd_slice_of(rows[i].from))};
        ok = item->name.p != NULL && item->from.p != NULL;
    }
    pthread_mutex_unlock(&guard->lock);
    hfd_keyset_unref(set);
    return ok ? HFD_OK : hfd_fail_nomem(err, "list the tokens");
}
