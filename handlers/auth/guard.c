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
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&guard->wake, &attr);
    pthread_condattr_destroy(&attr);
    (void)hfd_guard_file_changed(guard);
    rc = hfd_guard_read_tokens(guard, err);
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
    pthread_cond_destroy(&guard->wake);
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
    const bool usable = hfd_keyset_usable(set, hfd_guard_now_us(guard)) > 0;

    hfd_keyset_unref(set);
    return usable;
}

/* ---- requests ---- */

/* Renews the view if the guard has another keyset. */
static void renew(struct hfd_guard *guard, struct hfd_guard_view *view)
{
    const unsigned version = atomic_load(&guard->version);

    if (view->set != NULL && view->version == version)
        return;
    hfd_keyset_unref(view->set);
    view->set = hfd_guard_set(guard);
    view->version = version;
}

void hfd_guard_view_close(struct hfd_guard_view *view)
{
    hfd_keyset_unref(view->set);
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

void hfd_guard_check(struct hfd_guard *guard, struct hfd_guard_view *view, hfd_slice secret,
                     int64_t now_us, struct hfd_guard_answer *out)
{
    *out = (struct hfd_guard_answer){.caller = {.fault = HFD_AUTH_UNKNOWN}};
    renew(guard, view);
    if (hfd_token_is(secret))
        check_token(guard, view, secret, now_us, out);
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
