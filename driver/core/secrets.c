/* See secrets.h. */
#include "driver/core/secrets.h"

#include "store/rows_order.h"

static hfd_slice report_aad(hfd_slice fleet_id, hfd_slice adapter, struct hfd_arena *mem)
{
    return hfd_arena_printf(mem, "report|%.*s|%.*s", HFD_SLICE_FMT(fleet_id),
                            HFD_SLICE_FMT(adapter));
}

hfd_slice hfd_report_secrets_seal(const struct hfd_driver *d, const struct hfd_fleet_secret *secret,
                                  struct hfd_arena *mem)
{
    const hfd_slice aad = report_aad(secret->fleet_id, secret->adapter, mem);

    if (aad.p == NULL)
        return HFD_SLICE_NONE;
    return hfd_keyring_seal(&(struct hfd_seal){d->ring, HFD_KEY_AT_REST, aad}, d->rng,
                            secret->plain, mem);
}

hfd_rc hfd_report_secrets_open(const struct hfd_driver *d, const struct hfd_report_row *report,
                               struct hfd_arena *mem, hfd_slice *plain)
{
    const hfd_slice aad = report_aad(report->fleet_id, report->adapter, mem);

    if (aad.p == NULL)
        return HFD_NOMEM;
    return hfd_keyring_open(&(struct hfd_seal){d->ring, HFD_KEY_AT_REST, aad}, report->secrets, mem,
                            plain, NULL);
}

/* ---- orders ---- */

static hfd_slice order_aad(hfd_slice guresid, struct hfd_arena *mem)
{
    return hfd_arena_printf(mem, "order|%.*s", HFD_SLICE_FMT(guresid));
}

/* Gives the secrets without `account` in mem; empty if nothing is left. */
static hfd_rc without_account(const struct hfd_ctx *c, hfd_slice secrets, hfd_slice *out)
{
    json_t *doc;
    hfd_rc rc;

    *out = HFD_SLICE("");
    if (secrets.len == 0)
        return HFD_OK;
    rc = hfd_json_parse(secrets, &doc, c->err);
    if (rc != HFD_OK)
        return rc;
    (void)json_object_del(doc, "account");
    if (json_object_size(doc) > 0)
        *out = hfd_json_dump_arena(c->mem, doc);
    json_decref(doc);
    return out->p != NULL ? HFD_OK : hfd_fail_nomem(c->err, "store the secrets of an order");
}

static hfd_rc seal_order(const struct hfd_ctx *c, hfd_slice guresid, hfd_slice plain)
{
    const hfd_slice aad = order_aad(guresid, c->mem);
    struct hfd_order_row row = {.guresid = guresid};

    if (aad.p != NULL)
        row.secrets = hfd_keyring_seal(&(struct hfd_seal){c->driver->ring, HFD_KEY_AT_REST, aad},
                                       c->driver->rng, plain, c->mem);
    return row.secrets.p != NULL ? hfd_order_row_put(c->tx, &row, c->err)
                                 : hfd_fail_nomem(c->err, "store the secrets of an order");
}

hfd_rc hfd_order_secrets_keep(const struct hfd_ctx *c, hfd_slice guresid, hfd_slice secrets)
{
    hfd_slice plain;
    hfd_rc rc = without_account(c, secrets, &plain);

    if (rc != HFD_OK)
        return rc;
    return plain.len > 0 ? seal_order(c, guresid, plain)
                         : hfd_order_row_delete(c->tx, guresid, c->err);
}

hfd_rc hfd_order_secrets_open(const struct hfd_ctx *c, hfd_slice guresid, hfd_slice *plain)
{
    const hfd_slice aad = order_aad(guresid, c->mem);
    struct hfd_order_row row;
    hfd_rc rc = hfd_order_row_get(c->tx, guresid, c->mem, &row, c->err);

    *plain = HFD_SLICE("{}");
    if (rc != HFD_OK)
        return rc == HFD_NOT_FOUND ? HFD_OK : rc;
    if (aad.p == NULL)
        return hfd_fail_nomem(c->err, "read the secrets of an order");
    if (hfd_keyring_open(&(struct hfd_seal){c->driver->ring, HFD_KEY_AT_REST, aad}, row.secrets,
                         c->mem, plain, NULL) != HFD_OK)
        return hfd_fail(c->err, HFD_CORRUPT,
                        "the secrets of the order of '%.*s' cannot be opened: is a key missing "
                        "from the key ring?",
                        HFD_SLICE_FMT(guresid));
    return HFD_OK;
}

/* A row that was removed meanwhile is not made again. */
hfd_rc hfd_order_secrets_reseal(const struct hfd_ctx *c, hfd_slice guresid)
{
    struct hfd_order_row row;
    hfd_slice plain;
    hfd_rc rc = hfd_order_row_get(c->tx, guresid, c->mem, &row, c->err);

    if (rc == HFD_OK)
        rc = hfd_order_secrets_open(c, guresid, &plain);
    if (rc != HFD_OK)
        return rc;
    rc = seal_order(c, guresid, plain);
    explicit_bzero((void *)(uintptr_t)plain.p, plain.len);
    return rc;
}
