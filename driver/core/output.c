/* See output.h. */
#include "driver/core/output.h"

#include "driver/base/check.h"
#include "driver/base/clock.h"
#include "driver/base/foreign.h"
#include "driver/base/jsonx.h"
#include "driver/base/log.h"
#include "driver/base/trouble.h"
#include "driver/core/drift.h"
#include "driver/core/driver.h"
#include "driver/core/keyring.h"
#include "driver/core/outcome.h"
#include "driver/core/parts.h"
#include "driver/core/transition.h"
#include "store/rows_report.h"
#include "store/rows_resource.h"

#include <sodium.h>

/* ---- manifests ---- */

/*
 * manifests of OutputData: Kubernetes objects that an adapter reports, for the orchestrator to put
 * into the cluster. Source: Humanitec Driver API 0.9.3, OutputData. Thread: writer, inside a
 * transaction function.
 */

#define LOGGED_MAX 10 /* of one resource at a time */
#define ADAPTER_SHOWN_MAX 64

/* A log line about a manifest that is left out. It is copied until the commit. */
struct line {
    char guresid[HFD_GURESID_MAX + 1];
    char adapter[ADAPTER_SHOWN_MAX + 1];
    int64_t index; /* in the array; -1 = the array itself */
    const char *reason;
};

/* The faults of the manifests of a resource. */
struct faults {
    struct line lines[LOGGED_MAX];
    size_t count;
};

static void write_line(const void *arg)
{
    const struct line *l = arg;

    HFD_LOG(HFD_LOG_WARN, "manifest left out", HFD_LOG_CSTR("guresid", l->guresid),
            HFD_LOG_CSTR("adapter", l->adapter), HFD_LOG_INT("index", l->index),
            HFD_LOG_CSTR("reason", l->reason));
}

static void note(struct faults *faults, int64_t index, const char *reason)
{
    if (faults->count < LOGGED_MAX)
        faults->lines[faults->count++] = (struct line){.index = index, .reason = reason};
}

static bool is_text(const json_t *obj, const char *key)
{
    const json_t *v = json_object_get(obj, key);

    return json_is_string(v) && json_string_length(v) > 0;
}

/* The places of the Driver API, each in the singular and the plural. */
static bool is_location(const json_t *v)
{
    static const char *const places[] = {"container", "volume", "namespace", "cluster"};
    const hfd_slice text = {json_string_value(v), json_string_length(v)};

    for (size_t i = 0; text.p != NULL && i < sizeof(places) / sizeof(places[0]); i++) {
        const size_t len = strlen(places[i]);

        if (hfd_slice_starts(text, hfd_slice_of(places[i])) &&
            (text.len == len || (text.len == len + 1 && text.p[len] == 's')))
            return true;
    }
    return false;
}

/* Says what is wrong with a manifest; NULL = nothing. */
static const char *fault_of(const json_t *item)
{
    const json_t *data = json_object_get(item, "data");

    if (!json_is_object(item))
        return "expected an object with location and data";
    if (!is_location(json_object_get(item, "location")))
        return "location: expected container, volume, namespace or cluster, or their plurals";
    if (!json_is_object(data))
        return "data: expected a Kubernetes object";
    if (!is_text(data, "apiVersion"))
        return "data.apiVersion: expected a text";
    if (!is_text(data, "kind"))
        return "data.kind: expected a text";
    return is_text(json_object_get(data, "metadata"), "name")
               ? NULL
               : "data.metadata.name: expected a text";
}

static void add_manifests(struct hfd_buf *b, const json_t *list, struct faults *faults)
{
    const char *sep = "{\"data\":";

    if (list != NULL && !json_is_array(list))
        note(faults, -1, "expected an array of manifests");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        const char *fault = fault_of(item);

        if (fault != NULL) {
            note(faults, (int64_t)i, fault);
            continue;
        }
        hfd_buf_add(b, hfd_slice_of(sep));
        sep = ",{\"data\":";
        hfd_json_dump_for_store(b, json_object_get(item, "data"));
        hfd_buf_lit(b, ",\"location\":");
        hfd_json_dump_for_store(b, json_object_get(item, "location"));
        hfd_buf_addc(b, '}');
    }
}

/* Reads the array that the setting names. The document holds it; both are NULL without a report. */
static hfd_rc read_list(const struct hfd_ctx *c, const struct hfd_part *main, json_t **document,
                        const json_t **list)
{
    const struct hfd_output_rule *rule = &c->driver->output_manifests;
    struct hfd_report_row r;
    hfd_rc rc = hfd_report_row_get(
        c->tx, &(struct hfd_report_key){main->row.fleet_id, rule->adapter}, c->mem, &r, c->err);

    *document = NULL;
    *list = NULL;
    if (rc == HFD_NOT_FOUND)
        return HFD_OK;
    if (rc == HFD_OK)
        rc = hfd_json_parse(r.data, document, c->err);
    if (rc == HFD_OK)
        *list = hfd_json_pointer(*document, rule->pointer);
    return rc;
}

static hfd_rc log_faults(const struct hfd_ctx *c, hfd_slice guresid, struct faults *faults)
{
    const hfd_slice adapter = c->driver->output_manifests.adapter;
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; rc == HFD_OK && i < faults->count; i++) {
        struct line *l = &faults->lines[i];

        (void)snprintf(l->guresid, sizeof(l->guresid), "%.*s", HFD_SLICE_FMT(guresid));
        (void)snprintf(l->adapter, sizeof(l->adapter), "%.*s", HFD_SLICE_FMT(adapter));
        rc = hfd_txn_after_commit(c->tx, write_line, l, sizeof(*l), c->err);
    }
    return rc;
}

/*
 * Adds the array of manifests that driver.outputs.manifests names in the report on the main part,
 * or nothing without that setting. Leaves a manifest out that is malformed, and logs it.
 * @param was  the array so far: the same one is not logged again
 * @return HFD_OK, HFD_NOMEM, HFD_CORRUPT; b has the failures of a buffer
 */
static hfd_rc manifests_add(const struct hfd_ctx *c, const struct hfd_part *main, hfd_slice was,
                            struct hfd_buf *b)
{
    const size_t start = b->len;
    struct faults faults = {.count = 0};
    const json_t *list;
    json_t *document;
    hfd_rc rc;

    if (c->driver->output_manifests.adapter.len == 0)
        return HFD_OK;
    rc = read_list(c, main, &document, &list);
    if (rc != HFD_OK)
        return rc;
    hfd_buf_addc(b, '[');
    add_manifests(b, list, &faults);
    hfd_buf_addc(b, ']');
    json_decref(document);
    if (b->rc != HFD_OK || hfd_slice_eq(was, (hfd_slice){b->p + start, b->len - start}))
        return HFD_OK;
    return log_faults(c, main->row.guresid, &faults);
}

/* ---- secrets ---- */

/* Seals with the driver's newest key. p is NULL when memory is short, also for the aad. */
static hfd_slice seal_at_rest(const struct hfd_driver *d, hfd_slice aad, hfd_slice plain,
                              struct hfd_arena *mem)
{
    if (aad.p == NULL)
        return HFD_SLICE_NONE;
    return hfd_keyring_seal(&(struct hfd_seal){d->ring, HFD_KEY_AT_REST, aad}, d->rng, plain, mem);
}

static hfd_rc open_at_rest(const struct hfd_driver *d, hfd_slice aad, hfd_slice sealed,
                           struct hfd_arena *mem, hfd_slice *plain)
{
    if (aad.p == NULL)
        return HFD_NOMEM;
    return hfd_keyring_open(&(struct hfd_seal){d->ring, HFD_KEY_AT_REST, aad}, sealed, mem, plain,
                            NULL);
}

static hfd_slice report_aad(hfd_slice fleet_id, hfd_slice adapter, struct hfd_arena *mem)
{
    return hfd_arena_printf(mem, "report|%.*s|%.*s", HFD_SLICE_FMT(fleet_id),
                            HFD_SLICE_FMT(adapter));
}

hfd_slice hfd_report_secrets_seal(const struct hfd_driver *d, const struct hfd_fleet_secret *secret,
                                  struct hfd_arena *mem)
{
    return seal_at_rest(d, report_aad(secret->fleet_id, secret->adapter, mem), secret->plain, mem);
}

hfd_rc hfd_report_secrets_open(const struct hfd_driver *d, const struct hfd_report_row *report,
                               struct hfd_arena *mem, hfd_slice *plain)
{
    return open_at_rest(d, report_aad(report->fleet_id, report->adapter, mem), report->secrets, mem,
                        plain);
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
    const struct hfd_order_row row = {
        .guresid = guresid,
        .secrets = seal_at_rest(c->driver, order_aad(guresid, c->mem), plain, c->mem)};

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
    struct hfd_order_row row;
    hfd_rc rc = hfd_order_row_get(c->tx, guresid, c->mem, &row, c->err);

    *plain = HFD_SLICE("{}");
    if (rc != HFD_OK)
        return rc == HFD_NOT_FOUND ? HFD_OK : rc;
    rc = open_at_rest(c->driver, order_aad(guresid, c->mem), row.secrets, c->mem, plain);
    if (rc == HFD_NOMEM)
        return hfd_fail_nomem(c->err, "read the secrets of an order");
    if (rc != HFD_OK)
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

/* ---- output ---- */

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

/* A JSON array, or empty for none. Borrowed from the row. */
static hfd_slice manifests_of(const struct hfd_resource_row *row)
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

/* The plain secrets of a row, "{}" when it has none. */
static hfd_rc secrets_of(const struct hfd_ctx *c, const struct hfd_resource_row *row,
                         hfd_slice *out)
{
    hfd_rc rc;

    *out = HFD_SLICE("{}");
    if (row->secrets.len == 0)
        return HFD_OK;
    rc = open_at_rest(c->driver, output_aad(row, c->mem), row->secrets, c->mem, out);
    if (rc == HFD_NOMEM)
        return fail_nomem(c);
    if (rc != HFD_OK)
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
    hfd_drift_format(b, row);
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
    struct hfd_ctx quiet = *c;
    hfd_slice was;

    quiet.err = NULL;
    if (row->secrets.len > 0 && secrets_of(&quiet, row, &was) == HFD_OK && hfd_slice_eq(was, plain))
        return HFD_OK;
    row->secrets = seal_at_rest(c->driver, output_aad(row, c->mem), plain, c->mem);
    return row->secrets.p != NULL ? HFD_OK : fail_nomem(c);
}

hfd_rc hfd_output_reseal(const struct hfd_ctx *c, struct hfd_resource_row *row)
{
    hfd_slice plain;
    hfd_rc rc = secrets_of(c, row, &plain);

    if (rc != HFD_OK || row->secrets.len == 0)
        return rc;
    row->secrets = seal_at_rest(c->driver, output_aad(row, c->mem), plain, c->mem);
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
        rc = manifests_add(c, hfd_parts_main(parts), manifests_of(row), &b);
    }
    if (rc == HFD_OK)
        rc = finish(c, &b, &row->output);
    hfd_buf_fini(&b);
    return rc == HFD_OK ? build_secrets(c, parts, row) : rc;
}

/* ---- answers ---- */

#define SILENT_US (60 * HFD_US_PER_S) /* after a start adapters need a moment */
#define SILENT_MAX_BYTES ((size_t)250)

/*
 * Gives what an operation waits for, and the adapters that are silent for every resource. The row
 * cannot have these: it does not change when they come.
 */
static hfd_slice waits_of(const struct hfd_ctx *c, const struct hfd_resource_row *row)
{
    hfd_slice all = row->op_waits;
    struct hfd_buf silent;

    hfd_buf_init(&silent, SILENT_MAX_BYTES);
    hfd_troubles_tell(HFD_TROUBLE_SILENT, c->now_us - SILENT_US, &silent);
    if (silent.len > 0 && row->op_waits.len > 0)
        all = hfd_arena_printf(c->mem, "%.*s%.*s",
                               HFD_FOREIGN_CUT(row->op_waits, HFD_WAITING_MAX_BYTES - silent.len),
                               (int)silent.len, silent.p);
    hfd_buf_fini(&silent);
    return all.p != NULL ? all : row->op_waits;
}

static struct hfd_hint hint_of(const struct hfd_ctx *c, const struct hfd_resource_row *row)
{
    const char *status = row->state == HFD_STATE_DELETING   ? "deleting"
                         : row->state == HFD_STATE_UPDATING ? "updating"
                                                            : "creating";

    return hfd_hint_make(&(struct hfd_hint_input){
        .status = status,
        .started_us = row->op_started_us,
        .estimate_us = row->op_estimate_us,
        .deadline_us = row->op_deadline_us,
        .now_us = c->now_us,
        .plan = row->op_plan,
        .message = waits_of(c, row),
    });
}

/* A late deletion goes on: its error is answered, and not stored. */
static hfd_rc answer_late(const struct hfd_ctx *c, const struct hfd_resource_row *row,
                          struct hfd_answer_doc *out)
{
    struct hfd_outcome o;
    hfd_rc rc = hfd_judge_outcome(c, row, NULL, &o);

    if (rc != HFD_OK || HFD_NEVER(o.code == NULL))
        return rc;
    out->error = hfd_slice_of(o.code);
    out->message = o.message;
    return HFD_OK;
}

hfd_rc hfd_answer_row(const struct hfd_ctx *c, const struct hfd_resource_row *row,
                      struct hfd_answer_doc *out)
{
    const bool late = row->state == HFD_STATE_DELETING && hfd_resource_overdue(row, c->now_us);
    hfd_rc rc;

    out->decided = true;
    out->answer = hfd_life_get((enum hfd_state)row->state, late);
    switch (out->answer) {
    case HFD_ANSWER_OUTPUT:
        out->type = row->type;
        out->values = hfd_output_values(row);
        out->manifests = manifests_of(row);
        rc = secrets_of(c, row, &out->secrets);
        return rc == HFD_OK ? hfd_resource_row_tag(row, c->mem, &out->etag, c->err) : rc;
    case HFD_ANSWER_FAILED:
        out->error = row->fail_code;
        out->message = row->fail_message;
        return late ? answer_late(c, row, out) : HFD_OK;
    case HFD_ANSWER_HINT:
    case HFD_ANSWER_BUSY:
        out->hint = hint_of(c, row);
        out->began_us = row->op_started_us;
        out->waits = row->op_waits;
        return HFD_OK;
    case HFD_ANSWER_ABSENT:
        return HFD_OK;
    }
    return hfd_fail(c->err, HFD_CORRUPT, "resource %.*s is in no known state",
                    HFD_SLICE_FMT(row->guresid));
}

hfd_rc hfd_answer_put(const struct hfd_ctx *c, const struct hfd_resource_row *row, bool conflict,
                      struct hfd_answer_doc *out)
{
    hfd_rc rc = HFD_OK;

    if (conflict) {
        /* A late deletion is still in the way: 409 with a hint, not 400 with its error. */
        out->hint = hint_of(c, row);
        out->answer = HFD_ANSWER_BUSY;
        out->decided = true;
    } else {
        rc = hfd_answer_row(c, row, out);
    }
    out->has_cookie = rc == HFD_OK && out->answer != HFD_ANSWER_FAILED;
    out->cookie = row->cookie;
    return rc;
}
