/* See reseal.h. */
#include "driver/core/reseal.h"

#include "driver/base/log.h"
#include "driver/core/output.h"
#include "driver/core/secrets.h"
#include "store/rows_report.h"
#include "store/rows_resource.h"
#include "store/rows_ring_key.h"

#define MEM_MAX ((size_t)64 << 20)

/* One step: a page of rows, found in a snapshot and sealed in one transaction. */
struct step {
    const struct hfd_reseal *r;
    struct hfd_key_view key;
    struct hfd_sealed_query query;
    struct hfd_arena mem; /* of the page */
    struct hfd_sealed_list page;
    int64_t sealed;
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

    s->sealed = 0;
    for (size_t i = 0; rc == HFD_OK && i < s->page.count; i++) {
        struct hfd_arena mem;
        struct hfd_ctx c = {.tx = tx, .driver = s->r->driver, .mem = &mem, .err = err};

        hfd_arena_init(&mem, MEM_MAX);
        rc = seal_row[s->query.table](&c, &s->page.rows[i]);
        hfd_arena_fini(&mem);
        s->sealed += rc == HFD_OK;
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
    hfd_arena_init(&s.mem, MEM_MAX);
    hfd_arena_init(&last, MEM_MAX);
    while (rc == HFD_OK && s.page.count > 0 && !atomic_load(r->stop)) {
        rc = hfd_store_read(r->reader, find_page, &s, err);
        if (rc != HFD_OK || s.page.count == 0)
            break;
        rc = hfd_store_update_wait(r->store, seal_page, &s, err);
        r->count += rc == HFD_OK ? s.sealed : 0;
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
