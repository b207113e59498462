/*
 * OutputData of a ready resource. See output.h.
 */
#include "driver/core/output.h"

#include "driver/base/jsonx.h"
#include "store/rows_fleet.h"
#include "store/rows_report.h"
#include "store/rows_resource.h"

#define OUTPUT_MAX_BYTES ((size_t)1024 * 1024)

static hfd_rc no_memory(struct hfd_err *err)
{
    return hfd_fail(err, HFD_NOMEM, "out of memory while building an output");
}

static hfd_slice report_aad(hfd_slice fleet_id, hfd_slice adapter, struct hfd_arena *mem)
{
    return hfd_arena_printf(mem, "report|%.*s|%.*s", HFD_SLICE_FMT(fleet_id),
                            HFD_SLICE_FMT(adapter));
}

static hfd_slice output_aad(const struct hfd_resource_row *row, struct hfd_arena *mem)
{
    return hfd_arena_printf(mem, "output|%.*s|%.*s", HFD_SLICE_FMT(row->guresid),
                            HFD_SLICE_FMT(row->incarnation));
}

hfd_slice hfd_output_seal_report(void *ctx, hfd_slice fleet_id, hfd_slice adapter, hfd_slice plain,
                                 struct hfd_arena *mem)
{
    const struct hfd_driver *d = ctx;
    hfd_slice aad = report_aad(fleet_id, adapter, mem);

    if (aad.p == NULL)
        return HFD_SLICE_NONE;
    return hfd_keyring_seal(d->ring, HFD_KEY_AT_REST, d->rng, aad, plain, mem);
}

hfd_rc hfd_output_secrets(const struct hfd_driver *d, const struct hfd_resource_row *row,
                          struct hfd_arena *mem, hfd_slice *out, struct hfd_err *err)
{
    hfd_slice aad;

    *out = HFD_SLICE("{}");
    if (row->secrets.len == 0)
        return HFD_OK;
    aad = output_aad(row, mem);
    if (aad.p == NULL)
        return no_memory(err);
    if (hfd_keyring_open(d->ring, HFD_KEY_AT_REST, aad, row->secrets, mem, out, NULL) != HFD_OK)
        return hfd_fail(
            err, HFD_CORRUPT,
            "the output secrets of '%.*s' cannot be opened: is a key missing from the key ring?",
            HFD_SLICE_FMT(row->guresid));
    return HFD_OK;
}

/* A report's data; with `secrets` its data.secrets in plain, else redacted as stored. Gives. */
static hfd_rc report_data(const struct hfd_driver *d, const struct hfd_report_row *r, bool secrets,
                          struct hfd_arena *mem, json_t **out, struct hfd_err *err)
{
    hfd_slice aad, plain;
    json_t *doc;
    hfd_rc rc;

    rc = hfd_json_parse(r->data, out, err);
    if (rc != HFD_OK || !secrets || r->secrets.len == 0)
        return rc;
    aad = report_aad(r->fleet_id, r->adapter, mem);
    rc = aad.p == NULL
             ? no_memory(err)
             : hfd_keyring_open(d->ring, HFD_KEY_AT_REST, aad, r->secrets, mem, &plain, NULL);
    if (rc == HFD_OK)
        rc = hfd_json_parse(plain, &doc, err);
    if (rc != HFD_OK) {
        json_decref(*out);
        *out = NULL;
        return hfd_fail(err, rc == HFD_NOMEM ? HFD_NOMEM : HFD_CORRUPT,
                        "the secrets of adapter %.*s's report on %.*s cannot be opened",
                        HFD_SLICE_FMT(r->adapter), HFD_SLICE_FMT(r->fleet_id));
    }
    if (json_object_set_new(*out, "secrets", doc) != 0) {
        json_decref(*out);
        *out = NULL;
        return no_memory(err);
    }
    return HFD_OK;
}

/* One output under construction. */
struct work {
    struct hfd_txn *tx;
    const struct hfd_driver *d;
    const struct hfd_parts *
        parts; /* the first is the main part: the cluster, or the nodepool of a nodepool resource */
    struct hfd_arena *mem;
};

/*
 * Adds what the rules take from the main part's reports as members of an object under construction.
 */
static hfd_rc add_mapped(const struct work *w, const struct hfd_output_rule *rules, size_t count,
                         bool secrets, struct hfd_buf *b, struct hfd_err *err)
{
    for (size_t i = 0; i < count; i++) {
        struct hfd_report_row r;
        const json_t *value;
        json_t *data;
        hfd_rc rc;

        rc = hfd_report_row_get(
            w->tx, &(struct hfd_report_key){w->parts->items[0].row.fleet_id, rules[i].adapter},
            w->mem, &r, err);
        if (rc == HFD_NOT_FOUND)
            continue;
        if (rc == HFD_OK)
            rc = report_data(w->d, &r, secrets, w->mem, &data, err);
        if (rc != HFD_OK)
            return rc;
        value = hfd_json_pointer(data, rules[i].pointer);
        if (value != NULL) {
            if (b->len > 1)
                hfd_buf_addc(b, ',');
            hfd_buf_json_str(b, rules[i].name);
            hfd_buf_addc(b, ':');
            hfd_json_dump_for_store(b, value);
        }
        json_decref(data);
    }
    return HFD_OK;
}

/* lead: what stands before the value, as in ",\"name\":". */
static void member(struct hfd_buf *b, const char *lead, hfd_slice value)
{
    hfd_buf_add(b, hfd_slice_of(lead));
    hfd_buf_json_str(b, value);
}

static void href_member(struct hfd_buf *b, const struct hfd_fleet_row *row)
{
    hfd_buf_lit(b, ",\"href\":\"");
    hfd_fleet_href(b, row);
    hfd_buf_addf(b, "\",\"generation\":%lld", (long long)row->generation);
}

static void nodepool_list(struct hfd_buf *b, const struct hfd_parts *parts)
{
    bool first = true;

    hfd_buf_lit(b, ",\"nodepools\":[");
    for (size_t i = 0; i < parts->count; i++) {
        const struct hfd_part *p = &parts->items[i];

        if (p->row.kind != HFD_KIND_NODEPOOL || !p->view.exists || p->row.leaving)
            continue;
        member(b, first ? "{\"name\":" : ",{\"name\":", p->fleet.name);
        first = false;
        member(b, ",\"id\":", p->fleet.id);
        href_member(b, &p->fleet);
        hfd_buf_addc(b, '}');
    }
    hfd_buf_addc(b, ']');
}

static void values(struct hfd_buf *b, const struct hfd_driver *d, const struct hfd_parts *parts,
                   const struct hfd_outcome *outcome, const struct hfd_resource_row *row)
{
    const struct hfd_fleet_row *own = &parts->items[0].fleet;

    member(b, "{\"name\":", own->name);
    member(b, ",\"cluster_id\":", row->cluster_id);
    if (row->kind == HFD_KIND_NODEPOOL)
        member(b, ",\"nodepool_id\":", own->id);
    href_member(b, own);
    member(b, ",\"health\":", hfd_slice_of(outcome->health));
    if (outcome->health_reason.len > 0)
        member(b, ",\"health_reason\":", outcome->health_reason);
    if (outcome->health_message.len > 0)
        member(b, ",\"health_message\":", outcome->health_message);
    nodepool_list(b, parts);
    if (d->demo)
        hfd_buf_lit(b, ",\"demo\":true");
}

static hfd_rc finish(struct hfd_buf *b, struct hfd_arena *mem, hfd_slice *out, struct hfd_err *err)
{
    hfd_rc rc;

    hfd_buf_addc(b, '}');
    rc = hfd_buf_to_arena(b, mem, out, err);
    if (rc == HFD_LIMIT)
        return hfd_fail_field(err, HFD_LIMIT, "data",
                              "the outputs that driver.outputs takes from the adapters' data would "
                              "take more than %zu bytes",
                              OUTPUT_MAX_BYTES);
    return rc;
}

static hfd_rc build_secrets(const struct work *w, struct hfd_resource_row *row, struct hfd_err *err)
{
    const struct hfd_driver *d = w->d;
    struct hfd_arena *mem = w->mem;
    hfd_slice plain, aad, was;
    struct hfd_buf b;
    hfd_rc rc;

    if (d->output_secret_count == 0) {
        row->secrets = HFD_SLICE_NONE;
        return HFD_OK;
    }
    hfd_buf_init(&b, OUTPUT_MAX_BYTES);
    hfd_buf_addc(&b, '{');
    rc = add_mapped(w, d->output_secrets, d->output_secret_count, true, &b, err);
    if (rc == HFD_OK)
        rc = finish(&b, mem, &plain, err);
    hfd_buf_fini(&b);
    if (rc != HFD_OK)
        return rc;
    /*
     * Sealing draws a new nonce: what did not change keeps its bytes, so that the row is not
     * written for nothing.
     */
    if (row->secrets.len > 0 && hfd_output_secrets(d, row, mem, &was, NULL) == HFD_OK &&
        hfd_slice_eq(was, plain))
        return HFD_OK;
    aad = output_aad(row, mem);
    if (aad.p != NULL)
        row->secrets = hfd_keyring_seal(d->ring, HFD_KEY_AT_REST, d->rng, aad, plain, mem);
    return aad.p != NULL && row->secrets.p != NULL ? HFD_OK : no_memory(err);
}

hfd_rc hfd_output_build(struct hfd_txn *tx, const struct hfd_driver *d,
                        const struct hfd_parts *parts, const struct hfd_outcome *outcome,
                        struct hfd_arena *mem, struct hfd_resource_row *row, struct hfd_err *err)
{
    const struct work w = {tx, d, parts, mem};
    struct hfd_buf b;
    hfd_rc rc;

    hfd_buf_init(&b, OUTPUT_MAX_BYTES);
    values(&b, d, parts, outcome, row);
    rc = add_mapped(&w, d->output_values, d->output_value_count, false, &b, err);
    if (rc == HFD_OK)
        rc = finish(&b, mem, &row->output, err);
    hfd_buf_fini(&b);
    return rc == HFD_OK ? build_secrets(&w, row, err) : rc;
}
