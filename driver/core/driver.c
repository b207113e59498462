/* See driver.h. */
#include "driver/core/driver.h"

#include "driver/backend/backend.h"
#include "driver/base/arena.h"
#include "driver/base/container.h"
#include "driver/base/jsonx.h"
#include "driver/base/slice.h"
#include "driver/core/keyring.h"
#include "driver/core/life.h"
#include "driver/core/output.h"
#include "driver/core/sources.h"
#include "store/rows_resource.h"

#include <sodium.h>

#include <stdio.h>

/* ---- driver ---- */

const char *hfd_op_name(enum hfd_op op)
{
    static const char *const names[HFD_OP_COUNT] = {"create", "update", "delete"};

    return (unsigned)op < HFD_OP_COUNT ? names[op] : "none";
}

/* ---- the fingerprint ---- */

/* The length stands in front, so that no two lists give the same bytes. */
static void add_text(crypto_generichash_state *hash, hfd_slice text)
{
    const uint64_t len = text.len;

    (void)crypto_generichash_update(hash, (const unsigned char *)&len, sizeof(len));
    if (text.len > 0)
        (void)crypto_generichash_update(hash, (const unsigned char *)text.p, text.len);
}

static void add_texts(crypto_generichash_state *hash, const hfd_slice *texts, size_t count)
{
    const uint64_t n = count;

    add_text(hash, (hfd_slice){(const char *)&n, sizeof(n)});
    for (size_t i = 0; i < count; i++)
        add_text(hash, texts[i]);
}

static void add_rules(crypto_generichash_state *hash, const struct hfd_output_rule *rules,
                      size_t count)
{
    const uint64_t n = count;

    add_text(hash, (hfd_slice){(const char *)&n, sizeof(n)});
    for (size_t i = 0; i < count; i++)
        add_texts(hash, (const hfd_slice[]){rules[i].name, rules[i].adapter, rules[i].pointer}, 3);
}

/*
 * Covers each setting that the observer reads: a change that lets it read another one adds that
 * here. The version is among them, because another version may judge otherwise. Never 0.
 */
static int64_t settings_fingerprint(const struct hfd_driver *d, hfd_slice version)
{
    unsigned char out[crypto_generichash_BYTES];
    crypto_generichash_state hash;
    int64_t fingerprint;

    (void)crypto_generichash_init(&hash, NULL, 0, sizeof(out));
    add_texts(&hash,
              (const hfd_slice[]){version, d->backend, d->demo ? HFD_SLICE("demo") : HFD_SLICE("")},
              3);
    for (int kind = HFD_KIND_CLUSTER; kind <= HFD_KIND_NODEPOOL; kind++)
        add_texts(&hash, d->fleet.required[kind].items, d->fleet.required[kind].count);
    add_texts(&hash, d->fleet.observers.items, d->fleet.observers.count);
    add_texts(&hash, d->terminal_reasons, d->terminal_reason_count);
    add_texts(&hash, d->drift_ignore, d->drift_ignore_count);
    (void)crypto_generichash_update(&hash, (const unsigned char *)&d->drift, sizeof(d->drift));
    add_texts(&hash, d->protect_labels, d->protect_label_count); /* replicas must agree in it */
    add_rules(&hash, d->output_values, d->output_value_count);
    add_rules(&hash, d->output_secrets, d->output_secret_count);
    add_rules(&hash, &d->output_manifests, 1);
    (void)crypto_generichash_final(&hash, out, sizeof(out));
    memcpy(&fingerprint, out, sizeof(fingerprint));
    return fingerprint != 0 ? fingerprint : 1;
}

/* ---- the driver ---- */

const struct hfd_driver *hfd_driver_of_fleet(const struct hfd_fleet *fleet)
{
    return HFD_CONTAINER_OF((struct hfd_fleet *)(uintptr_t)fleet, struct hfd_driver, fleet);
}

/* hfd_fleet.seal */
static hfd_slice seal_report(const struct hfd_fleet *fleet, const struct hfd_fleet_secret *secret,
                             struct hfd_arena *mem)
{
    return hfd_report_secrets_seal(hfd_driver_of_fleet(fleet), secret, mem);
}

static bool has_output(const struct hfd_output_rule *rules, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (hfd_slice_is(rules[i].name, name))
            return true;
    return false;
}

/* The outputs without which the orchestrator cannot deploy to a k8s-cluster. */
static void find_lacking_outputs(struct hfd_driver *d)
{
    const struct {
        bool given;
        const char *setting;
    } needed[] = {
        {has_output(d->output_values, d->output_value_count, "cluster_type"),
         "driver.outputs.values.cluster_type"},
        {has_output(d->output_values, d->output_value_count, "cluster_data"),
         "driver.outputs.values.cluster_data"},
        {has_output(d->output_secrets, d->output_secret_count, "credentials"),
         "driver.outputs.secrets.credentials"},
    };
    char *out = d->rules.lacking_outputs;

    out[0] = '\0';
    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
        const size_t len = strlen(out);

        if (!needed[i].given)
            (void)snprintf(out + len, sizeof(d->rules.lacking_outputs) - len, "%s%s",
                           len > 0 ? ", " : "", needed[i].setting);
    }
}

void hfd_driver_complete(struct hfd_driver *d)
{
    _Static_assert(sizeof(d->fleet.owner) > HFD_FINGERPRINT_CHARS, "an owner is a fingerprint");

    find_lacking_outputs(d);
    d->fleet.settings_fingerprint = settings_fingerprint(d, HFD_SLICE(HFD_VERSION));
    d->fleet.seal = seal_report;
    d->fleet.ending = hfd_instance_ending;
    if (d->ring != NULL)
        hfd_keyring_fingerprint(d->ring, d->fleet.owner);
}

int64_t hfd_driver_rules_fingerprint(const struct hfd_driver *d)
{
    return settings_fingerprint(d, HFD_SLICE(""));
}

void hfd_driver_polled(const struct hfd_driver *d, hfd_slice guresid)
{
    if (d->worker.polled != NULL)
        d->worker.polled(d->worker.ctx, guresid);
}

static void wake(const void *arg)
{
    const struct hfd_backend_worker *worker = arg;

    worker->wake(worker->ctx);
}

hfd_rc hfd_ctx_wake_worker(const struct hfd_ctx *c)
{
    const struct hfd_backend_worker *worker = &c->driver->worker;

    return worker->wake != NULL ? hfd_txn_after_commit(c->tx, wake, worker, sizeof(*worker), c->err)
                                : HFD_OK;
}

/* ---- guresid ---- */

/* The id that the orchestrator gives. */

static bool is_guresid(hfd_slice text)
{
    if (text.len == 0 || text.len > HFD_GURESID_MAX)
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (!hfd_is_alnum(text.p[i]) && text.p[i] != '.' && text.p[i] != '_' && text.p[i] != '-')
            return false;
    return hfd_is_alnum(text.p[0]) && hfd_is_alnum(text.p[text.len - 1]);
}

hfd_rc hfd_guresid_check(hfd_slice text, struct hfd_err *err)
{
    if (is_guresid(text))
        return HFD_OK;
    return hfd_fail_field(err, HFD_INVALID, "GUResID",
                          "GUResID must be 1 to %d letters, digits, '-', '_' or '.', beginning and "
                          "ending with a letter or digit",
                          HFD_GURESID_MAX);
}

/* ---- labels ---- */

hfd_rc hfd_labels_given(hfd_slice stored, struct hfd_arena *mem, hfd_slice *out,
                        struct hfd_err *err)
{
    json_t *labels;
    hfd_rc rc = hfd_json_parse(stored, &labels, err);

    if (rc != HFD_OK)
        return rc;
    (void)json_object_del(labels, HFD_GURESID_LABEL);
    *out = hfd_json_dump_arena(mem, labels);
    json_decref(labels);
    return out->p != NULL ? HFD_OK : hfd_fail_nomem(err, "read labels");
}

/* ---- identity ---- */

#define HFD_IDENTITY_MAX_BYTES 254 /* of an e-mail address: RFC 5321 */

static bool is_visible(hfd_slice s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.p[i] <= ' ' || s.p[i] > '~')
            return false;
    return true;
}

/* At most one @, with something on both sides of it. */
static bool is_name(hfd_slice s, const char *at)
{
    if (s.len == 0 || !is_visible(s))
        return false;
    return at == NULL || (at != s.p && at != s.p + s.len - 1 && memrchr(s.p, '@', s.len) == at);
}

hfd_rc hfd_identity_make(hfd_slice value, struct hfd_arena *mem, hfd_slice *out,
                         struct hfd_err *err)
{
    const hfd_slice s = hfd_slice_trim(value);
    const char *at = s.len > 0 ? memchr(s.p, '@', s.len) : NULL;
    const size_t len = s.len + (at == NULL ? sizeof(HFD_IDENTITY_DOMAIN) : 0);

    if (len > HFD_IDENTITY_MAX_BYTES || !is_name(s, at)) {
        *out = HFD_SLICE(HFD_IDENTITY_SYSTEM);
        return HFD_OK;
    }
    *out = at != NULL ? hfd_arena_dup(mem, s)
                      : hfd_arena_printf(mem, "%.*s@" HFD_IDENTITY_DOMAIN, HFD_SLICE_FMT(s));
    return out->p != NULL ? HFD_OK
                          : hfd_fail(err, HFD_NOMEM, "out of memory for the caller's name");
}

/* Cuts spaces and dots off the end. */
static hfd_slice without_dots(hfd_slice s)
{
    s = hfd_slice_trim(s);
    while (s.len > 0 && (s.p[s.len - 1] == '.' || s.p[s.len - 1] == ' '))
        s.len--;
    return s;
}

bool hfd_identity_is_ours(hfd_slice value)
{
    static const char *const names[] = {"system", "local", "operator"};
    const hfd_slice s = without_dots(value);
    const char *at = s.len > 0 ? memrchr(s.p, '@', s.len) : NULL;

    if (at != NULL)
        return hfd_slice_ieq(hfd_slice_trim((hfd_slice){at + 1, s.len - (size_t)(at + 1 - s.p)}),
                             HFD_SLICE(HFD_IDENTITY_DOMAIN));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (hfd_slice_ieq(s, hfd_slice_of(names[i])))
            return true;
    return false;
}
