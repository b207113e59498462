/* See keyset.h. */
#include "handlers/auth/keyset.h"

#include "driver/base/check.h"
#include "driver/core/identity.h"

#include <sodium.h>
#include <stdlib.h>

#define MEM_MAX_BYTES ((size_t)64 << 20)

struct hfd_keyset {
    atomic_uint refs;
    struct hfd_arena mem;
    struct hfd_keyset_row *rows;
    size_t count;
    struct hfd_keyset_row **slots; /* open addressing by the first bytes of the hash */
    size_t mask;
};

static size_t slot_of(const struct hfd_keyset *set, const unsigned char *hash)
{
    size_t at;

    memcpy(&at, hash, sizeof(at));
    return at & set->mask;
}

static hfd_rc add_row(struct hfd_keyset *set, const struct hfd_token *token, struct hfd_err *err)
{
    struct hfd_keyset_row *row = &set->rows[set->count];
    size_t at = slot_of(set, token->hash);
    hfd_rc rc;

    row->token = *token;
    row->token.name = hfd_arena_dup(&set->mem, token->name);
    if (row->token.name.p == NULL)
        return hfd_fail_nomem(err, "take up the tokens");
    rc = hfd_identity_make(token->name, &set->mem, &row->identity, err);
    if (rc != HFD_OK)
        return rc;
    while (set->slots[at] != NULL)
        at = (at + 1) & set->mask;
    set->slots[at] = row;
    set->count++;
    return HFD_OK;
}

hfd_rc hfd_keyset_new(const struct hfd_token_list *list, struct hfd_keyset **out,
                      struct hfd_err *err)
{
    struct hfd_keyset *set = calloc(1, sizeof(*set));
    size_t slots = 8;
    hfd_rc rc = HFD_OK;

    *out = NULL;
    if (set == NULL)
        return hfd_fail_nomem(err, "take up the tokens");
    while (slots < list->count * 2)
        slots *= 2;
    atomic_init(&set->refs, 1);
    hfd_arena_init(&set->mem, MEM_MAX_BYTES);
    set->mask = slots - 1;
    set->slots = hfd_arena_array(&set->mem, slots, sizeof(struct hfd_keyset_row *));
    set->rows = hfd_arena_array(&set->mem, list->count + 1, sizeof(*set->rows));
    if (set->slots == NULL || set->rows == NULL)
        rc = hfd_fail_nomem(err, "take up the tokens");
    for (size_t i = 0; rc == HFD_OK && i < list->count; i++)
        rc = add_row(set, &list->items[i], err);
    if (rc == HFD_OK)
        *out = set;
    else
        hfd_keyset_unref(set);
    return rc;
}

void hfd_keyset_ref(struct hfd_keyset *set)
{
    (void)atomic_fetch_add(&set->refs, 1);
}

void hfd_keyset_unref(struct hfd_keyset *set)
{
    if (set == NULL || atomic_fetch_sub(&set->refs, 1) != 1)
        return;
    hfd_arena_fini(&set->mem);
    free(set);
}

struct hfd_keyset_row *hfd_keyset_find(const struct hfd_keyset *set,
                                       const unsigned char hash[HFD_TOKEN_HASH_BYTES])
{
    for (size_t at = slot_of(set, hash); set->slots[at] != NULL; at = (at + 1) & set->mask)
        if (sodium_memcmp(set->slots[at]->token.hash, hash, HFD_TOKEN_HASH_BYTES) == 0)
            return set->slots[at];
    return NULL;
}

struct hfd_keyset_row *hfd_keyset_rows(const struct hfd_keyset *set, size_t *count)
{
    *count = set->count;
    return set->rows;
}

size_t hfd_keyset_usable(const struct hfd_keyset *set, int64_t now_us)
{
    size_t n = 0;

    for (size_t i = 0; i < set->count; i++)
        n += set->rows[i].token.expires_us == 0 || set->rows[i].token.expires_us > now_us;
    return n;
}
