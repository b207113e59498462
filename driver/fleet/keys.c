/* See keys.h. */
#include "driver/fleet/keys.h"

#include "driver/base/clock.h"
#include "driver/base/jsonx.h"
#include "store/rows_fleet.h"

#include <stdlib.h>

/* ---- keys ---- */

#define LABEL_NAME_MAX 63
#define LABEL_PREFIX_MAX 253

bool hfd_is_subdomain(hfd_slice text)
{
    bool at_start = true;

    for (size_t i = 0; i < text.len; i++) {
        const char c = text.p[i];
        const bool alnum = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');

        if (c == '.' ? at_start || text.p[i - 1] == '-' : !alnum && (c != '-' || at_start))
            return false;
        at_start = c == '.';
    }
    return text.len > 0 && !at_start && text.p[text.len - 1] != '-';
}

bool hfd_is_qualified_name(hfd_slice text, size_t prefix_max, size_t name_max)
{
    const char *slash = text.len > 0 ? memchr(text.p, '/', text.len) : NULL;
    const size_t prefix = slash != NULL ? (size_t)(slash - text.p) : 0;
    hfd_slice name = text;

    if (slash != NULL) {
        name = (hfd_slice){slash + 1, text.len - prefix - 1};
        if (prefix > prefix_max || !hfd_is_subdomain((hfd_slice){text.p, prefix}))
            return false;
    }
    for (size_t i = 0; i < name.len; i++)
        if (!hfd_is_alnum(name.p[i]) && memchr("-_.", name.p[i], 3) == NULL)
            return false;
    return name.len > 0 && name.len <= name_max && hfd_is_alnum(name.p[0]) &&
           hfd_is_alnum(name.p[name.len - 1]);
}

/* A key of HyperFleet's first searches: lower-case letters, digits, underscores, of any length. */
static bool is_plain_label(hfd_slice key)
{
    for (size_t i = 0; i < key.len; i++) {
        const char c = key.p[i];

        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'))
            return false;
    }
    return key.len > 0;
}

bool hfd_label_searchable(hfd_slice key)
{
    return is_plain_label(key) || hfd_is_qualified_name(key, LABEL_PREFIX_MAX, LABEL_NAME_MAX);
}

bool hfd_condition_has_key(hfd_slice type)
{
    return !hfd_slice_is(type, "Reconciled") && !hfd_slice_is(type, "LastKnownReconciled");
}

static int by_key(const void *a, const void *b)
{
    const struct hfd_fleet_label *x = a, *y = b;

    return hfd_slice_cmp(x->key, y->key);
}

static hfd_rc copy_labels(json_t *doc, struct hfd_arena *mem, struct hfd_fleet_keys *out,
                          struct hfd_err *err)
{
    struct hfd_fleet_label *labels =
        hfd_arena_array(mem, json_object_size(doc) + 1, sizeof(*labels));
    const char *key;
    json_t *v;
    size_t n = 0;

    if (labels == NULL)
        return hfd_fail_nomem(err, "index a resource");
    json_object_foreach (doc, key, v) {
        if (!hfd_label_searchable(hfd_slice_of(key)) || !json_is_string(v))
            continue;
        labels[n].key = hfd_arena_dup(mem, hfd_slice_of(key));
        labels[n].value =
            hfd_arena_dup(mem, (hfd_slice){json_string_value(v), json_string_length(v)});
        if (labels[n].key.p == NULL || labels[n].value.p == NULL)
            return hfd_fail_nomem(err, "index a resource");
        n++;
    }
    qsort(labels, n, sizeof(*labels), by_key);
    out->labels = labels;
    out->label_count = n;
    return HFD_OK;
}

static hfd_rc take_labels(hfd_slice text, struct hfd_arena *mem, struct hfd_fleet_keys *out,
                          struct hfd_err *err)
{
    json_t *doc;
    hfd_rc rc;

    if (text.len == 0 || hfd_slice_is(text, "{}"))
        return HFD_OK;
    rc = hfd_json_parse(text, &doc, err);
    if (rc != HFD_OK)
        return rc;
    rc = copy_labels(doc, mem, out, err);
    json_decref(doc);
    return rc;
}

static hfd_rc take_conditions(const struct hfd_conditions *cs, struct hfd_arena *mem,
                              struct hfd_fleet_keys *out, struct hfd_err *err)
{
    struct hfd_fleet_condition *items;
    size_t n = 0;

    if (cs == NULL || cs->count == 0)
        return HFD_OK;
    items = hfd_arena_array(mem, cs->count, sizeof(*items));
    if (items == NULL)
        return hfd_fail_nomem(err, "index a resource");
    for (size_t i = 0; i < cs->count; i++) {
        const struct hfd_condition *c = &cs->items[i];

        if (!hfd_condition_has_key(c->type) || hfd_condition_find(cs, c->type) != c)
            continue; /* two adapter names can give the same type: the first counts */
        items[n++] = (struct hfd_fleet_condition){
            .type = c->type,
            .status = hfd_slice_of(hfd_status_name(c->status)),
        };
    }
    out->conditions = items;
    out->condition_count = n;
    return HFD_OK;
}

hfd_rc hfd_fleet_reindex(struct hfd_txn *tx, const struct hfd_fleet_row *row,
                         const struct hfd_fleet_reindex *change, struct hfd_arena *mem,
                         struct hfd_err *err)
{
    const struct hfd_fleet_found_by *was = &change->was, *is = &change->is;
    struct hfd_fleet_keys old = {0}, new = {0};
    hfd_rc rc = HFD_OK;

    if (!hfd_slice_eq(was->labels, is->labels)) {
        rc = take_labels(was->labels, mem, &old, err);
        if (rc == HFD_OK)
            rc = take_labels(is->labels, mem, &new, err);
    }
    if (rc == HFD_OK)
        rc = take_conditions(was->conditions, mem, &old, err);
    if (rc == HFD_OK)
        rc = take_conditions(is->conditions, mem, &new, err);
    return rc == HFD_OK ? hfd_fleet_keys_put(tx, row, &old, &new, err) : rc;
}

/* ---- ksuid ---- */

/* Ids of clusters and nodepools. */

#define EPOCH_US (INT64_C(1400000000) * HFD_US_PER_S) /* the KSUID epoch, 2014-05-13T16:53:20Z */
#define LAST_US (INT64_C(0x100000000) * HFD_US_PER_S - 1)
#define HEAD_BYTES 7
#define RANDOM_BYTES 11
#define BASE 36
#define LIMBS (HFD_KSUID_BYTES / 4)
#define GROUP_DIGITS 6
#define GROUP UINT32_C(2176782336) /* 36^6: one division gives six digits */

_Static_assert(LIMBS * 4 == HFD_KSUID_BYTES, "whole limbs");

/*
 * Divides in place, 32 bits at a time.
 * @return the remainder
 */
static uint32_t divide(uint32_t number[LIMBS], uint32_t by)
{
    uint64_t carry = 0;

    for (size_t i = 0; i < LIMBS; i++) {
        carry = carry << 32 | number[i];
        number[i] = (uint32_t)(carry / by);
        carry %= by;
    }
    return (uint32_t)carry;
}

void hfd_ksuid_digits(const unsigned char number[HFD_KSUID_BYTES], char out[HFD_KSUID_LEN])
{
    static const char alphabet[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    uint32_t rest[LIMBS], group = 0;

    for (size_t i = 0; i < LIMBS; i++)
        rest[i] = (uint32_t)number[4 * i] << 24 | (uint32_t)number[4 * i + 1] << 16 |
                  (uint32_t)number[4 * i + 2] << 8 | number[4 * i + 3];
    for (size_t done = 0; done < HFD_KSUID_LEN; done++) {
        if (done % GROUP_DIGITS == 0)
            group = divide(rest, GROUP);
        out[HFD_KSUID_LEN - 1 - done] = alphabet[group % BASE];
        group /= BASE;
    }
}

/*
 * Microseconds since the epoch. A time outside the 32 bits of seconds becomes the nearest one
 * inside.
 */
static uint64_t us_of(int64_t now_us)
{
    if (now_us < EPOCH_US)
        return 0;
    return (uint64_t)(now_us - EPOCH_US < LAST_US ? now_us - EPOCH_US : LAST_US);
}

void hfd_ksuid_make(int64_t now_us, const struct hfd_rng *rng, char out[HFD_KSUID_LEN])
{
    unsigned char number[HFD_KSUID_BYTES] = {0};
    unsigned char *bits = number + HFD_KSUID_BYTES - HEAD_BYTES - RANDOM_BYTES + 1;
    const uint64_t us = us_of(now_us);
    const uint64_t head = us / HFD_US_PER_S << 20 | us % HFD_US_PER_S; /* 32 bits, then 20 bits */
    const uint64_t above = head << 2; /* the last byte has two more bits, which are random */

    hfd_rng_bytes(rng, number + HFD_KSUID_BYTES - RANDOM_BYTES, RANDOM_BYTES);
    bits[HEAD_BYTES - 1] = (unsigned char)((above & 0xfc) | (bits[HEAD_BYTES - 1] & 0x03));
    for (size_t i = 0; i < HEAD_BYTES - 1; i++)
        bits[i] = (unsigned char)(above >> (8 * (HEAD_BYTES - 1 - i)));
    hfd_ksuid_digits(number, out);
    out[0] = '2'; /* 134 bits are less than 36^26: this digit was 0 */
}

/* ---- names ---- */

/* The naming rules of clusters and nodepools. */

#define NAME_MIN 3
#define CLUSTER_NAME_MAX 53
#define NODEPOOL_NAME_MAX 15

static bool is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_label(hfd_slice name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!is_alnum(name.p[i]) && name.p[i] != '-')
            return false;
    return is_alnum(name.p[0]) && is_alnum(name.p[name.len - 1]);
}

hfd_rc hfd_name_check(enum hfd_kind kind, hfd_slice name, struct hfd_err *err)
{
    const size_t max = kind == HFD_KIND_CLUSTER ? CLUSTER_NAME_MAX : NODEPOOL_NAME_MAX;

    if (name.len == 0)
        return hfd_fail_field(err, HFD_INVALID, "name", "name is required");
    if (name.len < NAME_MIN)
        return hfd_fail_field(err, HFD_INVALID, "name", "name must be at least %d characters",
                              NAME_MIN);
    if (name.len > max)
        return hfd_fail_field(err, HFD_INVALID, "name", "name must be at most %zu characters", max);
    if (!is_label(name))
        return hfd_fail_field(err, HFD_INVALID, "name",
                              "name must start and end with lowercase letter or number, and "
                              "contain only lowercase letters, "
                              "numbers, and hyphens");
    return HFD_OK;
}

const char *hfd_kind_name(enum hfd_kind kind)
{
    return kind == HFD_KIND_CLUSTER ? "Cluster" : "NodePool";
}

const char *hfd_kind_word(enum hfd_kind kind)
{
    return kind == HFD_KIND_CLUSTER ? "cluster" : "nodepool";
}
