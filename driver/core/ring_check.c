/* See ring_check.h. */
#include "driver/core/ring_check.h"

#include "driver/core/cookie.h"
#include "store/rows_ring_key.h"

#include <sodium.h>

#define MEM_MAX ((size_t)1 << 20)

static bool find_key(const struct hfd_keyring *ring, hfd_slice name, struct hfd_key_view *out)
{
    for (size_t i = 0; i < hfd_keyring_count(ring); i++) {
        hfd_keyring_view(ring, i, out);
        if (hfd_slice_is(name, out->name))
            return true;
    }
    return false;
}

hfd_rc hfd_ring_uses(struct hfd_txn *tx, const struct hfd_key_view *key, int64_t *out,
                     struct hfd_err *err)
{
    char cookie[HFD_COOKIE_MARK_CHARS + 1];

    hfd_cookie_mark(key->id, cookie);
    return hfd_ring_key_uses(tx,
                             &(struct hfd_ring_key_marks){{(const char *)key->id, sizeof(key->id)},
                                                          hfd_slice_of(cookie)},
                             out, err);
}

/* Counts the rows that need a key which the ring may lack. */
static hfd_rc uses_of(struct hfd_txn *tx, const struct hfd_ring_key_row *row, int64_t *out,
                      struct hfd_err *err)
{
    struct hfd_key_view key = {.active = false};
    size_t len = 0;

    (void)sodium_hex2bin(key.id, sizeof(key.id), row->id.p, row->id.len, NULL, &len, NULL);
    return hfd_ring_uses(tx, &key, out, err);
}

hfd_rc hfd_ring_needed(struct hfd_txn *tx, struct hfd_arena *mem, struct hfd_ring_ids *out,
                       struct hfd_err *err)
{
    struct hfd_ring_key_list stored;
    hfd_rc rc = hfd_ring_key_row_list(tx, mem, &stored, err);

    *out = (struct hfd_ring_ids){NULL, 0};
    if (rc != HFD_OK)
        return rc;
    out->items = hfd_arena_array(mem, stored.count + 1, sizeof(*out->items));
    if (out->items == NULL)
        return hfd_fail_nomem(err, "list the keys that rows need");
    for (size_t i = 0; rc == HFD_OK && i < stored.count; i++) {
        int64_t uses;

        rc = uses_of(tx, &stored.rows[i], &uses, err);
        if (rc == HFD_OK && uses > 0)
            out->items[out->count++] = stored.rows[i].id;
    }
    return rc;
}

/* A key that the ring has no more: forgotten, unless something needs it. */
static hfd_rc miss_key(struct hfd_txn *tx, const struct hfd_ring_call *call,
                       const struct hfd_ring_key_row *row, struct hfd_err *err)
{
    int64_t uses;
    hfd_rc rc = uses_of(tx, row, &uses, err);

    if (rc == HFD_OK && uses > 0)
        return hfd_fail(err, HFD_CONFLICT,
                        "key ring %.80s lacks key %.*s, which %lld rows need: put its line back "
                        "from a backup, as retired",
                        call->path, HFD_SLICE_FMT(row->id), (long long)uses);
    return rc == HFD_OK && !call->look ? hfd_ring_key_row_delete(tx, row->id, err) : rc;
}

static hfd_rc check_keys(struct hfd_txn *tx, const struct hfd_ring_call *call,
                         const struct hfd_ring_key_list *stored, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; rc == HFD_OK && i < stored->count; i++) {
        const struct hfd_ring_key_row *row = &stored->rows[i];
        struct hfd_key_view key;

        if (!find_key(call->ring, row->id, &key))
            rc = miss_key(tx, call, row, err);
        else if (row->mark.len != sizeof(key.mark) ||
                 memcmp(row->mark.p, key.mark, sizeof(key.mark)) != 0)
            rc = hfd_fail(err, HFD_INVALID,
                          "key ring %.80s: key %s is not the key that the data was sealed with: "
                          "restore the key ring from a backup",
                          call->path, key.name);
    }
    return rc;
}

static bool has_key(const struct hfd_ring_key_list *stored, const char *name)
{
    for (size_t i = 0; i < stored->count; i++)
        if (hfd_slice_is(stored->rows[i].id, name))
            return true;
    return false;
}

/* Refuses the ring of another database: it has none of the keys that were noted. */
static hfd_rc check_shared(const struct hfd_ring_call *call, const struct hfd_ring_key_list *stored,
                           struct hfd_err *err)
{
    struct hfd_key_view key;

    for (size_t i = 0; i < stored->count; i++)
        if (find_key(call->ring, stored->rows[i].id, &key))
            return HFD_OK;
    if (stored->count == 0)
        return HFD_OK;
    return hfd_fail(err, HFD_CONFLICT,
                    "key ring %.80s is not that of the database: it has none of its keys, such as "
                    "%.*s. All replicas need the same key ring",
                    call->path, HFD_SLICE_FMT(stored->rows[0].id));
}

hfd_rc hfd_ring_check(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    const struct hfd_ring_call *call = arg;
    struct hfd_ring_key_list stored;
    struct hfd_arena mem;
    hfd_rc rc;

    hfd_arena_init(&mem, MEM_MAX);
    rc = hfd_ring_key_row_list(tx, &mem, &stored, err);
    if (rc == HFD_OK && call->shared)
        rc = check_shared(call, &stored, err);
    if (rc == HFD_OK)
        rc = check_keys(tx, call, &stored, err);
    for (size_t i = 0; rc == HFD_OK && !call->look && i < hfd_keyring_count(call->ring); i++) {
        struct hfd_key_view key;

        hfd_keyring_view(call->ring, i, &key);
        if (!has_key(&stored, key.name))
            rc = hfd_ring_key_row_put(
                tx,
                &(struct hfd_ring_key_row){hfd_slice_of(key.name),
                                           {(const char *)key.mark, sizeof(key.mark)}},
                err);
    }
    hfd_arena_fini(&mem);
    return rc;
}
