/* See output.h. */
#include "driver/core/output.h"

#include "driver/base/jsonx.h"
#include "driver/core/manifests.h"
#include "driver/core/secrets.h"
#include "store/rows_report.h"

#include <sodium.h>

#define OUTPUT_MAX_BYTES ((size_t)1024 * 1024)
/* Stands between the values and the manifests of a stored output. JSON text of ours has none. */
#define MANIFESTS_BEHIND '\n'

static hfd_rc fail_nomem(const struct hfd_ctx *c)
{
    return hfd_fail_nomem(c->err, "build an output");
}

hfd_slice hfd_output_values(const struct hfd_resource_row *row)
{
    const char *end =
        row->output.len > 0 ? memchr(row->output.p, MANIFESTS_BEHIND, row->output.len) : NULL;

    return end == NULL ? row->output : (hfd_slice){row->output.p, (size_t)(end - row->output.p)};
}

hfd_slice hfd_output_manifests(const struct hfd_resource_row *row)
{
    const size_t values = hfd_output_values(row).len;

    return values == row->output.len
               ? HFD_SLICE("")
               : (hfd_slice){row->output.p + values + 1, row->output.len - values - 1};
}

static hfd_slice output_aad(const struct hfd_resource_row *row, struct hfd_arena *mem)
{
    return hfd_arena_printf(mem, "output|%.*s|%.*s", HFD_SLICE_FMT(row->guresid),
                            HFD_SLICE_FMT(row->incarnation));
}

hfd_rc hfd_output_secrets(const struct hfd_ctx *c, const struct hfd_resource_row *row,
                          hfd_slice *out)
{
    hfd_slice aad;

    *out = HFD_SLICE("{}");
    if (row->secrets.len == 0)
        return HFD_OK;
    aad = output_aad(row, c->mem);
    if (aad.p == NULL)
        return fail_nomem(c);
    if (hfd_keyring_open(&(struct hfd_seal){c->driver->ring, HFD_KEY_AT_REST, aad}, row->secrets,
                         c->mem, out, NULL) != HFD_OK)
        return hfd_fail(
            c->err, HFD_CORRUPT,
            "the output secrets of '%.*s' cannot be opened: is a key missing from the key ring?",
            HFD_SLICE_FMT(row->guresid));
    return HFD_OK;
}

/* Replaces the redacted secrets in a report's data by the plain ones. */
static hfd_rc add_secrets(const struct hfd_ctx *c, const struct hfd_report_row *r, json_t *data)
{
    hfd_slice plain;
    json_t *doc;
    hfd_rc rc = hfd_report_secrets_open(c->driver, r, c->mem, &plain);

    if (rc == HFD_OK)
        rc = hfd_json_parse(plain, &doc, c->err);
    if (rc != HFD_OK)
        return hfd_fail(c->err, rc == HFD_NOMEM ? HFD_NOMEM : HFD_CORRUPT,
                        "the secrets of adapter %.*s's report on %.*s cannot be opened",
                        HFD_SLICE_FMT(r->adapter), HFD_SLICE_FMT(r->fleet_id));
    return json_object_set_new(data, "secrets", doc) == 0 ? HFD_OK : fail_nomem(c);
}

/* A report's data, with its secrets in plain or redacted as stored. Gives. */
static hfd_rc report_data(const struct hfd_ctx *c, const struct hfd_report_row *r, bool secrets,
                          json_t **out)
{
    hfd_rc rc = hfd_json_parse(r->data, out, c->err);

    if (rc != HFD_OK || !secrets || r->secrets.len == 0)
        return rc;
    rc = add_secrets(c, r, *out);
    if (rc != HFD_OK) {
        json_decref(*out);
        *out = NULL;
    }
    return rc;
}

/* The rules for one object of the output. */
struct mapping {
    const struct hfd_output_rule *rules;
    size_t count;
    bool secrets; /* rules see data.secrets in plain */
};

/* Adds what the rules take from the main part's reports as members of an object. */
static hfd_rc add_mapped(const struct hfd_ctx *c, const struct hfd_part *main,
                         const struct mapping *m, struct hfd_buf *b)
{
    for (size_t i = 0; i < m->count; i++) {
        struct hfd_report_row r;
        const json_t *value;
        json_t *data;
        hfd_rc rc;

        rc = hfd_report_row_get(c->tx,
                                &(struct hfd_report_key){main->row.fleet_id, m->rules[i].adapter},
                                c->mem, &r, c->err);
        if (rc == HFD_NOT_FOUND)
            continue;
        if (rc == HFD_OK)
            rc = report_data(c, &r, m->secrets, &data);
        if (rc != HFD_OK)
            return rc;
        value = hfd_json_pointer(data, m->rules[i].pointer);
        if (value != NULL) {
            if (b->len > 1)
                hfd_buf_addc(b, ',');
            hfd_buf_json_str(b, m->rules[i].name);
            hfd_buf_addc(b, ':');
            hfd_json_dump_for_store(b, value);
        }
        json_decref(data);
    }
    return HFD_OK;
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
        hfd_buf_member_str(b, first ? "{\"name\":" : ",{\"name\":", p->fleet.name);
        first = false;
        hfd_buf_member_str(b, ",\"id\":", p->fleet.id);
        href_member(b, &p->fleet);
        hfd_buf_addc(b, '}');
    }
    hfd_buf_addc(b, ']');
}

static void add_values(struct hfd_buf *b, const struct hfd_parts *parts,
                       const struct hfd_outcome *outcome, const struct hfd_resource_row *row)
{
    const struct hfd_fleet_row *own = &parts->items[0].fleet;

    hfd_buf_member_str(b, "{\"name\":", own->name);
    hfd_buf_member_str(b, ",\"cluster_id\":", row->cluster_id);
    if (row->kind == HFD_KIND_NODEPOOL)
        hfd_buf_member_str(b, ",\"nodepool_id\":", own->id);
    href_member(b, own);
    hfd_buf_member_str(b, ",\"health\":", hfd_slice_of(outcome->health));
    if (outcome->health_reason.len > 0)
        hfd_buf_member_str(b, ",\"health_reason\":", outcome->health_reason);
    if (outcome->health_message.len > 0)
        hfd_buf_member_str(b, ",\"health_message\":", outcome->health_message);
    nodepool_list(b, parts);
}

static hfd_rc finish(const struct hfd_ctx *c, struct hfd_buf *b, hfd_slice *out)
{
    const hfd_rc rc = hfd_buf_to_arena(b, c->mem, out, c->err);

    if (rc == HFD_LIMIT)
        return hfd_fail_field(c->err, HFD_LIMIT, "data",
                              "the outputs that driver.outputs takes from the adapters' data would "
                              "take more than %zu bytes",
                              OUTPUT_MAX_BYTES);
    return rc;
}

/*
 * Seals the secrets of an output. Sealing draws a new nonce, so secrets that did not change keep
 * their bytes: else the row would be written for nothing.
 */
static hfd_rc seal_secrets(const struct hfd_ctx *c, hfd_slice plain, struct hfd_resource_row *row)
{
    const struct hfd_driver *d = c->driver;
    struct hfd_ctx quiet = *c;
    hfd_slice aad, was;

    quiet.err = NULL;
    if (row->secrets.len > 0 && hfd_output_secrets(&quiet, row, &was) == HFD_OK &&
        hfd_slice_eq(was, plain))
        return HFD_OK;
    aad = output_aad(row, c->mem);
    if (aad.p != NULL)
        row->secrets = hfd_keyring_seal(&(struct hfd_seal){d->ring, HFD_KEY_AT_REST, aad}, d->rng,
                                        plain, c->mem);
    return aad.p != NULL && row->secrets.p != NULL ? HFD_OK : fail_nomem(c);
}

hfd_rc hfd_output_reseal(const struct hfd_ctx *c, struct hfd_resource_row *row)
{
    const hfd_slice aad = output_aad(row, c->mem);
    hfd_slice plain;
    hfd_rc rc = hfd_output_secrets(c, row, &plain);

    if (rc != HFD_OK || row->secrets.len == 0)
        return rc;
    if (aad.p == NULL)
        return fail_nomem(c);
    row->secrets = hfd_keyring_seal(&(struct hfd_seal){c->driver->ring, HFD_KEY_AT_REST, aad},
                                    c->driver->rng, plain, c->mem);
    sodium_memzero((void *)(uintptr_t)plain.p, plain.len);
    return row->secrets.p != NULL ? HFD_OK : fail_nomem(c);
}

static hfd_rc build_secrets(const struct hfd_ctx *c, const struct hfd_parts *parts,
                            struct hfd_resource_row *row)
{
    const struct mapping m = {c->driver->output_secrets, c->driver->output_secret_count, true};
    hfd_slice plain;
    struct hfd_buf b;
    hfd_rc rc;

    if (m.count == 0) {
        row->secrets = HFD_SLICE_NONE;
        return HFD_OK;
    }
    hfd_buf_init(&b, OUTPUT_MAX_BYTES);
    hfd_buf_addc(&b, '{');
    rc = add_mapped(c, hfd_parts_main(parts), &m, &b);
    hfd_buf_addc(&b, '}');
    if (rc == HFD_OK)
        rc = finish(c, &b, &plain);
    hfd_buf_fini(&b);
    return rc == HFD_OK ? seal_secrets(c, plain, row) : rc;
}

hfd_rc hfd_output_build(const struct hfd_ctx *c, const struct hfd_parts *parts,
                        const struct hfd_outcome *outcome, struct hfd_resource_row *row)
{
    const struct mapping m = {c->driver->output_values, c->driver->output_value_count, false};
    struct hfd_buf b;
    hfd_rc rc;

    hfd_buf_init(&b, OUTPUT_MAX_BYTES);
    add_values(&b, parts, outcome, row);
    if (c->driver->demo)
        hfd_buf_lit(&b, ",\"demo\":true");
    rc = add_mapped(c, hfd_parts_main(parts), &m, &b);
    hfd_buf_addc(&b, '}');
    if (rc == HFD_OK && c->driver->output_manifests.adapter.len > 0) {
        hfd_buf_addc(&b, MANIFESTS_BEHIND);
        rc = hfd_manifests_add(c, hfd_parts_main(parts), hfd_output_manifests(row), &b);
    }
    if (rc == HFD_OK)
        rc = finish(c, &b, &row->output);
    hfd_buf_fini(&b);
    return rc == HFD_OK ? build_secrets(c, parts, row) : rc;
}
