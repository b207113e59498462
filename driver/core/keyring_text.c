/* See keyring_text.h. */
#include "driver/core/keyring_text.h"

#include "driver/base/check.h"

#include <sodium.h>

#define ID_CHARS HFD_KEY_ID_CHARS
#define KEY_CHARS 43 /* base64url of HFD_KEY_BYTES without padding */
#define PREFIX_CHARS (ID_CHARS + 1 + KEY_CHARS + 1)
#define BASE64 sodium_base64_VARIANT_URLSAFE_NO_PADDING

_Static_assert(sodium_base64_ENCODED_LEN(HFD_KEY_BYTES, sodium_base64_VARIANT_URLSAFE_NO_PADDING) ==
                   KEY_CHARS + 1,
               "text of a key");

static const char file_head[] =
    "# The key ring of hyperfleet-driver. It seals driver cookies and the secrets kept in the "
    "database.\n"
    "# Keep it private and back it up: if it is lost, cookies and stored secrets cannot be read "
    "any more.\n"
    "# One key a line: 8 hex digits, the key, and active (seals and opens; exactly one), retired "
    "(opens only)\n"
    "# or prepared (opens only, until keygen --activate).\n";

static const char *const state_names[] = {
    [HFD_KEY_RETIRED] = "retired", [HFD_KEY_ACTIVE] = "active", [HFD_KEY_PREPARED] = "prepared"};
#define STATE_COUNT (sizeof(state_names) / sizeof(state_names[0]))

const char *hfd_key_state_name(enum hfd_key_state state)
{
    return state_names[state];
}

/* ---- reading ---- */

static bool parse_id(const char *p, unsigned char id[HFD_KEY_ID_BYTES])
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < ID_CHARS; i++) {
        const char *d = p[i] != '\0' ? strchr(digits, p[i]) : NULL;

        if (d == NULL)
            return false;
        id[i / 2] = (unsigned char)(id[i / 2] << 4 | (d - digits));
    }
    return true;
}

static bool parse_state(hfd_slice text, enum hfd_key_state *out)
{
    for (size_t i = 0; i < STATE_COUNT; i++) {
        *out = (enum hfd_key_state)i;
        if (hfd_slice_is(text, state_names[i]))
            return true;
    }
    return false;
}

static bool parse_line(hfd_slice line, unsigned char id[HFD_KEY_ID_BYTES],
                       unsigned char key[HFD_KEY_BYTES], enum hfd_key_state *state)
{
    const char *text = line.p + ID_CHARS + 1;
    size_t len = 0;

    if (line.len < PREFIX_CHARS || line.p[ID_CHARS] != ':' || line.p[PREFIX_CHARS - 1] != ':' ||
        !parse_id(line.p, id))
        return false;
    if (sodium_base642bin(key, HFD_KEY_BYTES, text, KEY_CHARS, NULL, &len, NULL, BASE64) != 0 ||
        len != HFD_KEY_BYTES)
        return false;
    return parse_state((hfd_slice){line.p + PREFIX_CHARS, line.len - PREFIX_CHARS}, state);
}

/* Cuts the next line off *rest. */
static hfd_slice next_line(hfd_slice *rest)
{
    const char *end = memchr(rest->p, '\n', rest->len);
    hfd_slice line = {rest->p, end != NULL ? (size_t)(end - rest->p) : rest->len};
    size_t used = line.len + (end != NULL ? 1 : 0);

    rest->p += used;
    rest->len -= used;
    return line;
}

static bool is_key_line(hfd_slice line)
{
    return line.len > 0 && line.p[0] != '#';
}

static bool has_id(const struct hfd_key_list *keys, const unsigned char id[HFD_KEY_ID_BYTES])
{
    for (size_t i = 0; i < keys->count; i++)
        if (memcmp(keys->ids[i], id, HFD_KEY_ID_BYTES) == 0)
            return true;
    return false;
}

static hfd_rc parse_keys(hfd_slice text, struct hfd_key_list *out, struct hfd_err *err)
{
    bool have_active = false;

    for (int number = 1; text.len > 0; number++) {
        hfd_slice line = next_line(&text);
        unsigned char id[HFD_KEY_ID_BYTES] = {0};
        enum hfd_key_state state;

        if (!is_key_line(line))
            continue;
        if (out->count == HFD_KEYS_MAX)
            return hfd_fail(err, HFD_INVALID, "key ring, line %d: more than %d keys", number,
                            HFD_KEYS_MAX);
        if (!parse_line(line, id, out->masters.p + out->count * HFD_KEY_BYTES, &state))
            return hfd_fail(
                err, HFD_INVALID,
                "key ring, line %d: expected id:key:active, id:key:retired or id:key:prepared with "
                "8 lower-case hex digits and a key of 32 bytes in base64url",
                number);
        if (has_id(out, id))
            return hfd_fail(err, HFD_INVALID, "key ring, line %d: the id is given twice", number);
        if (state == HFD_KEY_ACTIVE && have_active)
            return hfd_fail(err, HFD_INVALID, "key ring, line %d: a second active key", number);
        if (state == HFD_KEY_ACTIVE)
            out->active = out->count;
        have_active = have_active || state == HFD_KEY_ACTIVE;
        out->states[out->count] = state;
        memcpy(out->ids[out->count++], id, HFD_KEY_ID_BYTES);
    }
    if (!have_active)
        return hfd_fail(err, HFD_INVALID, "key ring: no active key");
    return HFD_OK;
}

hfd_rc hfd_key_list_parse(hfd_slice text, struct hfd_key_list *out, struct hfd_err *err)
{
    hfd_rc rc;

    memset(out, 0, sizeof(*out));
    if (text.len > HFD_KEY_FILE_MAX_BYTES)
        return hfd_fail(err, HFD_INVALID, "key ring: larger than %d bytes", HFD_KEY_FILE_MAX_BYTES);
    rc = hfd_secret_init(&out->masters, HFD_KEYS_MAX * HFD_KEY_BYTES, err);
    if (rc != HFD_OK)
        return rc;
    rc = parse_keys(text, out, err);
    if (rc != HFD_OK)
        hfd_secret_fini(&out->masters);
    return rc;
}

/* ---- writing ---- */

hfd_rc hfd_key_text_init(struct hfd_key_text *t, struct hfd_err *err)
{
    memset(t, 0, sizeof(*t));
    return hfd_secret_init(&t->mem, HFD_KEY_FILE_MAX_BYTES + 1, err);
}

void hfd_key_text_fini(struct hfd_key_text *t)
{
    hfd_secret_fini(&t->mem);
}

hfd_slice hfd_key_text_slice(const struct hfd_key_text *t)
{
    return (hfd_slice){(const char *)t->mem.p, t->len};
}

static void add(struct hfd_key_text *t, hfd_slice s)
{
    if (t->full || s.len > HFD_KEY_FILE_MAX_BYTES - t->len) {
        t->full = true;
        return;
    }
    memcpy(t->mem.p + t->len, s.p, s.len);
    t->len += s.len;
}

/* Picks an id that no other key has. */
static hfd_rc pick_id(const struct hfd_rng *rng, const struct hfd_key_list *others,
                      char out[ID_CHARS + 1], struct hfd_err *err)
{
    unsigned char id[HFD_KEY_ID_BYTES];

    for (int tries = 0; tries < 8; tries++) {
        hfd_rng_bytes(rng, id, sizeof(id));
        if (has_id(others, id))
            continue;
        (void)sodium_bin2hex(out, ID_CHARS + 1, id, sizeof(id));
        return HFD_OK;
    }
    return hfd_fail(err, HFD_IO, "new key: the random source repeats itself");
}

/* Adds the line of a new key with an id. */
static hfd_rc add_key(struct hfd_key_text *t, const struct hfd_rng *rng, const char *id,
                      enum hfd_key_state state, struct hfd_err *err)
{
    struct hfd_secret key, chars;
    hfd_rc rc;

    memset(&chars, 0, sizeof(chars));
    rc = hfd_secret_init(&key, HFD_KEY_BYTES, err);
    if (rc != HFD_OK)
        return rc;
    rc = hfd_secret_init(&chars, KEY_CHARS + 1, err);
    if (rc != HFD_OK)
        goto out;
    hfd_rng_bytes(rng, key.p, key.len);
    sodium_bin2base64((char *)chars.p, chars.len, key.p, key.len, BASE64);
    add(t, (hfd_slice){id, ID_CHARS});
    add(t, HFD_SLICE(":"));
    add(t, (hfd_slice){(const char *)chars.p, KEY_CHARS});
    add(t, HFD_SLICE(":"));
    add(t, hfd_slice_of(state_names[state]));
    add(t, HFD_SLICE("\n"));
out:
    hfd_secret_fini(&chars);
    hfd_secret_fini(&key);
    return rc;
}

hfd_rc hfd_key_text_first(struct hfd_key_text *t, const struct hfd_rng *rng, char id[ID_CHARS + 1],
                          struct hfd_err *err)
{
    const struct hfd_key_list none = {.count = 0};
    hfd_rc rc = pick_id(rng, &none, id, err);

    add(t, HFD_SLICE(file_head));
    return rc == HFD_OK ? add_key(t, rng, id, HFD_KEY_ACTIVE, err) : rc;
}

/* Copies the text. Each key is retired, but that of edit->id is active, if it is not new. */
static void copy_keys(struct hfd_key_text *t, const struct hfd_key_edit *edit)
{
    hfd_slice old = edit->old;

    while (old.len > 0) {
        const hfd_slice line = next_line(&old);

        if (is_key_line(line) && edit->change != HFD_KEY_PREPARE) {
            const bool active = memcmp(line.p, edit->id, ID_CHARS) == 0;

            add(t, (hfd_slice){line.p, PREFIX_CHARS});
            add(t, hfd_slice_of(state_names[active ? HFD_KEY_ACTIVE : HFD_KEY_RETIRED]));
        } else {
            add(t, line);
        }
        add(t, HFD_SLICE("\n"));
    }
}

/* Finds the newest prepared key. */
static hfd_rc find_prepared(const struct hfd_key_list *keys, struct hfd_key_edit *edit,
                            struct hfd_err *err)
{
    char id[ID_CHARS + 1];
    size_t i = keys->count;

    while (i > 0 && keys->states[i - 1] != HFD_KEY_PREPARED)
        i--;
    if (i == 0)
        return hfd_fail(err, HFD_CONFLICT, "key ring: no key is prepared");
    (void)sodium_bin2hex(id, sizeof(id), keys->ids[i - 1], HFD_KEY_ID_BYTES);
    if (edit->id[0] != '\0' && strcmp(edit->id, id) != 0)
        return hfd_fail(err, HFD_CONFLICT, "key ring: key %s was prepared meanwhile", id);
    memcpy(edit->id, id, sizeof(id));
    return HFD_OK;
}

hfd_rc hfd_key_text_change(struct hfd_key_text *t, struct hfd_key_edit *edit, struct hfd_err *err)
{
    const bool is_new = edit->change != HFD_KEY_ACTIVATE;
    struct hfd_key_list keys;
    hfd_rc rc = hfd_key_list_parse(edit->old, &keys, err);

    if (rc != HFD_OK)
        return rc;
    rc = is_new ? pick_id(edit->rng, &keys, edit->id, err) : find_prepared(&keys, edit, err);
    if (rc == HFD_OK)
        copy_keys(t, edit);
    if (rc == HFD_OK && is_new)
        rc = add_key(t, edit->rng, edit->id,
                     edit->change == HFD_KEY_ROTATE ? HFD_KEY_ACTIVE : HFD_KEY_PREPARED, err);
    if (rc == HFD_OK && ((is_new && keys.count == HFD_KEYS_MAX) || t->full))
        rc = hfd_fail(err, HFD_LIMIT,
                      "key ring: full (%d keys, %d bytes); remove retired keys that nothing uses "
                      "any more",
                      HFD_KEYS_MAX, HFD_KEY_FILE_MAX_BYTES);
    hfd_secret_fini(&keys.masters);
    return rc;
}
