/* See ring_check.h. */
#include "driver/core/ring_check.h"

#include "driver/base/log.h"
#include "driver/core/cookie.h"
#include "driver/core/driver.h"
#include "driver/core/keyring.h"
#include "driver/core/output.h"
#include "store/rows_replica.h"
#include "store/rows_report.h"
#include "store/rows_resource.h"
#include "store/store.h"

#include <sodium.h>

/* ---- ring check ---- */

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

/* ---- reseal ---- */

#define RESEAL_MEM_MAX ((size_t)64 << 20)

/* One step: a page of rows, found in a snapshot and sealed in one transaction. */
struct step {
    const struct hfd_reseal *r;
    struct hfd_key_view key;
    struct hfd_sealed_query query;
    struct hfd_arena mem; /* of the page */
    struct hfd_sealed_list page;
    int64_t sealed, left;
};

static hfd_rc find_page(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct step *s = arg;

    return hfd_sealed_row_list(tx, &s->query, &s->mem, &s->page, err);
}

static hfd_rc seal_resource(const struct hfd_ctx *c, const struct hfd_sealed_key *key)
{
    struct hfd_resource_row row;
    hfd_rc rc = hfd_resource_row_get(c->tx, key->first, c->mem, &row, c->err);

    if (rc == HFD_OK)
        rc = hfd_output_reseal(c, &row);
    return rc == HFD_OK ? hfd_resource_row_put(c->tx, &row, c->err) : rc;
}

static hfd_rc seal_order(const struct hfd_ctx *c, const struct hfd_sealed_key *key)
{
    return hfd_order_secrets_reseal(c, key->first);
}

static hfd_rc seal_report(const struct hfd_ctx *c, const struct hfd_sealed_key *key)
{
    const struct hfd_report_key report = {key->first, key->second};
    struct hfd_report_row row;
    hfd_slice plain;
    hfd_rc rc = hfd_report_row_get(c->tx, &report, c->mem, &row, c->err);

    if (rc != HFD_OK || row.secrets.len == 0)
        return rc;
    rc = hfd_report_secrets_open(c->driver, &row, c->mem, &plain);
    if (rc != HFD_OK)
        return hfd_fail(c->err, rc == HFD_NOMEM ? rc : HFD_CORRUPT,
                        "the secrets of a report of '%.*s' cannot be opened",
                        HFD_SLICE_FMT(key->second));
    row.secrets = hfd_report_secrets_seal(
        c->driver, &(struct hfd_fleet_secret){row.fleet_id, row.adapter, plain}, c->mem);
    if (row.secrets.p == NULL)
        return hfd_fail_nomem(c->err, "seal the secrets of a report");
    return hfd_report_row_put(c->tx, &row, c->err);
}

typedef hfd_rc seal_fn(const struct hfd_ctx *c, const struct hfd_sealed_key *key);

static seal_fn *const seal_row[HFD_SEALED_COUNT] = {
    [HFD_SEALED_RESOURCES] = seal_resource,
    [HFD_SEALED_REPORTS] = seal_report,
    [HFD_SEALED_ORDERS] = seal_order,
};

/* Rows that cannot be opened or read stay as they are. One that was removed meanwhile is no fault.
 */
static hfd_rc seal_page(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct step *s = arg;
    hfd_rc rc = HFD_OK;

    s->sealed = s->left = 0;
    for (size_t i = 0; rc == HFD_OK && i < s->page.count; i++) {
        struct hfd_arena mem;
        struct hfd_ctx c = {.tx = tx, .driver = s->r->driver, .mem = &mem, .err = err};

        hfd_arena_init(&mem, RESEAL_MEM_MAX);
        rc = seal_row[s->query.table](&c, &s->page.rows[i]);
        hfd_arena_fini(&mem);
        s->sealed += rc == HFD_OK;
        s->left += rc == HFD_CORRUPT || rc == HFD_DAMAGED;
        if (rc == HFD_CORRUPT || rc == HFD_DAMAGED)
            HFD_LOG(HFD_LOG_ERROR, "stored secrets are not sealed again",
                    HFD_LOG_STR("id", s->page.rows[i].first), HFD_LOG_CSTR("error", err->msg));
        if (rc == HFD_CORRUPT || rc == HFD_DAMAGED || rc == HFD_NOT_FOUND)
            rc = HFD_OK;
    }
    return rc;
}

/* Goes on behind the last row of the page. Its key moves into the other arena. */
static hfd_rc step_on(struct step *s, struct hfd_arena *last, struct hfd_err *err)
{
    const struct hfd_sealed_key *key = &s->page.rows[s->page.count - 1];

    hfd_arena_fini(last);
    s->query.after.first = hfd_arena_dup(last, key->first);
    s->query.after.second = hfd_arena_dup(last, key->second);
    hfd_arena_fini(&s->mem);
    return s->query.after.first.p != NULL && s->query.after.second.p != NULL
               ? HFD_OK
               : hfd_fail_nomem(err, "seal secrets again");
}

static hfd_rc seal_table(struct hfd_reseal *r, enum hfd_sealed_table table, struct hfd_err *err)
{
    struct step s = {.r = r, .query = {.table = table}, .page = {NULL, 1}};
    struct hfd_arena last;
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; i < hfd_keyring_count(r->driver->ring) && !s.key.active; i++)
        hfd_keyring_view(r->driver->ring, i, &s.key);
    s.query.active = (hfd_slice){(const char *)s.key.id, sizeof(s.key.id)};
    hfd_arena_init(&s.mem, RESEAL_MEM_MAX);
    hfd_arena_init(&last, RESEAL_MEM_MAX);
    while (rc == HFD_OK && s.page.count > 0 && !atomic_load(r->stop)) {
        rc = hfd_store_read(r->reader, find_page, &s, err);
        if (rc != HFD_OK || s.page.count == 0)
            break;
        rc = hfd_store_update_wait(r->store, seal_page, &s, err);
        r->count += rc == HFD_OK ? s.sealed : 0;
        r->left += rc == HFD_OK ? s.left : 0;
        if (rc == HFD_OK)
            rc = step_on(&s, &last, err);
    }
    hfd_arena_fini(&last);
    hfd_arena_fini(&s.mem);
    return rc;
}

hfd_rc hfd_reseal_all(struct hfd_reseal *r, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    for (unsigned i = 0; rc == HFD_OK && i < HFD_SEALED_COUNT; i++)
        rc = seal_table(r, (enum hfd_sealed_table)i, err);
    return rc;
}
