/* See backup_note.h. */
#include "driver/core/backup_note.h"

#include "driver/base/clock.h"
#include "driver/base/jsonx.h"
#include "driver/core/ring_check.h"
#include "store/totals.h"

#define FORM 1 /* of the file; another one is refused */
#define SUM_BYTES 32
#define SUM_CHARS ((size_t)2 * SUM_BYTES)
#define END_CHARS (SUM_CHARS + sizeof("\"}") - 1) /* what stands behind the summed text */
#define KEYS_MAX 256

void hfd_backup_sum_init(struct hfd_backup_sum *sum)
{
    crypto_generichash_state state;

    (void)crypto_generichash_init(&state, NULL, 0, SUM_BYTES);
    memcpy(sum->state, &state, sizeof(state));
}

void hfd_backup_sum_add(struct hfd_backup_sum *sum, const char *bytes, size_t len)
{
    crypto_generichash_state state;

    memcpy(&state, sum->state, sizeof(state));
    (void)crypto_generichash_update(&state, (const unsigned char *)bytes, len);
    memcpy(sum->state, &state, sizeof(state));
}

/* The sum with the text of the note behind it, in hex. */
static void finish(const struct hfd_backup_sum *sum, hfd_slice text, char hex[SUM_CHARS + 1])
{
    crypto_generichash_state state;
    unsigned char bytes[SUM_BYTES];

    memcpy(&state, sum->state, sizeof(state));
    (void)crypto_generichash_update(&state, (const unsigned char *)text.p, text.len);
    (void)crypto_generichash_final(&state, bytes, sizeof(bytes));
    (void)sodium_bin2hex(hex, SUM_CHARS + 1, bytes, sizeof(bytes));
}

hfd_rc hfd_backup_note_format(const struct hfd_backup_note *note, const struct hfd_backup_sum *sum,
                              char out[HFD_BACKUP_NOTE_BYTES], struct hfd_err *err)
{
    char hex[SUM_CHARS + 1];
    struct hfd_buf b;
    hfd_slice text;
    hfd_rc rc;

    hfd_buf_init(&b, HFD_BACKUP_NOTE_BYTES - 1);
    hfd_buf_addf(&b, "{\"hyperfleet_driver_backup\":%d,\"version\":\"%s\",\"taken_time\":", FORM,
                 HFD_VERSION);
    hfd_buf_json_time(&b, note->taken_us);
    hfd_buf_member_time(&b, ",\"clock_time\":", note->clock_us);
    hfd_buf_addf(&b, ",\"resources\":%lld,\"database_bytes\":%lld,\"keys\":[",
                 (long long)note->resources, (long long)note->bytes);
    for (size_t i = 0; i < note->key_count; i++) {
        if (i > 0)
            hfd_buf_addc(&b, ',');
        hfd_buf_json_str(&b, note->keys[i]);
    }
    hfd_buf_lit(&b, "],\"blake2b\":\"");
    if (b.rc == HFD_OK) {
        finish(sum, hfd_buf_slice(&b), hex);
        hfd_buf_addf(&b, "%s\"}", hex);
    }
    rc = hfd_buf_finish(&b, &text, err);
    if (rc == HFD_OK) {
        memset(out, ' ', HFD_BACKUP_NOTE_BYTES);
        memcpy(out, text.p, text.len);
        out[HFD_BACKUP_NOTE_BYTES - 1] = '\n';
    } else if (rc == HFD_LIMIT) {
        rc = hfd_fail(err, HFD_LIMIT,
                      "the key ring has more keys in use than a backup can name: "
                      "wait until secrets are sealed again, and remove old keys");
    }
    hfd_buf_fini(&b);
    return rc;
}

/* The JSON text of a note; empty if it is none. */
static hfd_slice text_of(const char text[HFD_BACKUP_NOTE_BYTES])
{
    size_t len = HFD_BACKUP_NOTE_BYTES;

    if (text[0] != '{' || text[len - 1] != '\n')
        return HFD_SLICE_NONE;
    len--;
    while (len > 0 && text[len - 1] == ' ')
        len--;
    return (hfd_slice){text, len};
}

static hfd_rc get_time(const json_t *doc, const char *key, int64_t *out, struct hfd_err *err)
{
    hfd_slice text;
    const hfd_rc rc = hfd_json_get_string(HFD_JSON_REQUIRED(doc, "", key), &text, err);

    return rc == HFD_OK ? hfd_time_parse(text, out, err) : rc;
}

static hfd_rc get_number(const json_t *doc, const char *key, int64_t *out, struct hfd_err *err)
{
    bool present;

    return hfd_json_get_i64(HFD_JSON_REQUIRED(doc, "", key), (struct hfd_json_range){0, INT64_MAX},
                            &present, out, err);
}

static hfd_rc get_keys(const json_t *doc, struct hfd_arena *mem, struct hfd_backup_note *out,
                       struct hfd_err *err)
{
    json_t *list;
    const hfd_rc rc = hfd_json_get_array(HFD_JSON_REQUIRED(doc, "", "keys"), &list, err);
    const size_t count = rc == HFD_OK ? json_array_size(list) : 0;

    if (rc != HFD_OK || count > KEYS_MAX)
        return rc != HFD_OK ? rc : hfd_fail(err, HFD_INVALID, "too many keys");
    out->keys = hfd_arena_array(mem, count + 1, sizeof(*out->keys));
    if (out->keys == NULL)
        return hfd_fail_nomem(err, "read a backup");
    for (size_t i = 0; i < count; i++) {
        const char *id = json_string_value(json_array_get(list, i));

        if (id == NULL)
            return hfd_fail(err, HFD_INVALID, "a key is no text");
        out->keys[i] = hfd_arena_dup(mem, hfd_slice_of(id));
        if (out->keys[i].p == NULL)
            return hfd_fail_nomem(err, "read a backup");
    }
    out->key_count = count;
    return HFD_OK;
}

static hfd_rc read_members(const json_t *doc, struct hfd_arena *mem, struct hfd_backup_note *out,
                           struct hfd_err *err)
{
    int64_t form = 0;
    hfd_rc rc = get_number(doc, "hyperfleet_driver_backup", &form, err);

    if (rc == HFD_OK && form != FORM)
        return hfd_fail(err, HFD_INVALID, "it has form %lld, and this version reads form %d",
                        (long long)form, FORM);
    if (rc == HFD_OK)
        rc = get_time(doc, "taken_time", &out->taken_us, err);
    if (rc == HFD_OK)
        rc = get_time(doc, "clock_time", &out->clock_us, err);
    if (rc == HFD_OK)
        rc = get_number(doc, "resources", &out->resources, err);
    if (rc == HFD_OK)
        rc = get_number(doc, "database_bytes", &out->bytes, err);
    return rc == HFD_OK ? get_keys(doc, mem, out, err) : rc;
}

hfd_rc hfd_backup_note_parse(const char text[HFD_BACKUP_NOTE_BYTES], struct hfd_arena *mem,
                             struct hfd_backup_note *out, struct hfd_err *err)
{
    const hfd_slice json = text_of(text);
    struct hfd_err why = {0};
    json_t *doc = NULL;
    hfd_rc rc;

    *out = (struct hfd_backup_note){.taken_us = 0};
    if (json.len == 0)
        return hfd_fail(err, HFD_INVALID,
                        "it is no backup of hyperfleet-driver, or its end is missing");
    rc = hfd_json_parse(json, &doc, &why);
    if (rc == HFD_OK)
        rc = read_members(doc, mem, out, &why);
    json_decref(doc);
    if (rc == HFD_NOMEM)
        return hfd_fail_nomem(err, "read a backup");
    return rc == HFD_OK
               ? rc
               : hfd_fail(err, HFD_INVALID, "the note at its end cannot be read: %s", why.msg);
}

bool hfd_backup_note_matches(const char text[HFD_BACKUP_NOTE_BYTES],
                             const struct hfd_backup_sum *sum)
{
    const hfd_slice json = text_of(text);
    char hex[SUM_CHARS + 1];

    if (json.len <= END_CHARS)
        return false;
    finish(sum, (hfd_slice){json.p, json.len - END_CHARS}, hex);
    return memcmp(json.p + json.len - END_CHARS, hex, SUM_CHARS) == 0;
}

hfd_rc hfd_backup_note_collect(struct hfd_txn *tx, struct hfd_arena *mem,
                               struct hfd_backup_note *out, struct hfd_err *err)
{
    struct hfd_resource_totals totals;
    struct hfd_ring_ids keys;
    hfd_rc rc = hfd_totals_resources(tx, mem, &totals, err);

    out->resources = 0;
    for (size_t i = 0; rc == HFD_OK && i < totals.count; i++)
        out->resources += totals.rows[i].n;
    if (rc == HFD_OK)
        rc = hfd_ring_needed(tx, mem, &keys, err);
    if (rc != HFD_OK)
        return rc;
    out->keys = keys.items;
    out->key_count = keys.count;
    return HFD_OK;
}
