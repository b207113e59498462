/* See keyring.h. */
#include "driver/core/keyring.h"

#include "driver/base/arena.h"
#include "driver/base/check.h"
#include "driver/base/file.h"
#include "driver/base/rng.h"
#include "driver/base/secret.h"

#include <sodium.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- keyring ---- */

/*
 * Sealing, opening and keyed digests. Master keys are used once, to derive a subkey per use; the
 * ring keeps the subkeys alone. Thread: any; the keys of a ring do not change after it is made.
 * Source: driver/README.md.
 */

#define USE_COUNT 4
#define USE_SEEN USE_COUNT /* the subkey of tags in memory; no other file knows it */
#define NONCE_BYTES crypto_aead_xchacha20poly1305_ietf_NPUBBYTES
#define TAG_BYTES crypto_aead_xchacha20poly1305_ietf_ABYTES
#define OVERHEAD_BYTES (HFD_KEY_ID_BYTES + NONCE_BYTES + TAG_BYTES)

_Static_assert(HFD_KEY_BYTES == crypto_kdf_KEYBYTES, "master keys feed crypto_kdf");
_Static_assert(HFD_KEY_BYTES == crypto_aead_xchacha20poly1305_ietf_KEYBYTES, "subkeys seal");
_Static_assert(HFD_DIGEST_BYTES == HFD_KEY_ID_BYTES + crypto_generichash_BYTES, "BLAKE2b-256");

/* One context a use, so that a text sealed for one never opens, nor says anything, in another. */
static const char contexts[USE_COUNT][crypto_kdf_CONTEXTBYTES + 1] = {
    [HFD_KEY_COOKIE - 1] = "hfcookie",
    [HFD_KEY_AT_REST - 1] = "hfatrest",
    [HFD_KEY_DIGEST - 1] = "hfdigest",
    [USE_SEEN - 1] = "hfdgseen",
};

/*
 * The pairs of a digest and its data that were compared lately, as tags of 64 bits. SipHash-2-4 of
 * a PUT body takes a third of the time of BLAKE2b, which is a fifth of a repeated PUT. Its key and
 * the tags never leave the memory. So a client that looks for other data with the same tag can only
 * guess, with one request for each guess.
 */
#define SEEN_COUNT 4096u

struct hfd_keyring {
    unsigned magic;
#define KEYRING_MAGIC 0x6b657972u
    size_t count;
    size_t active;
    enum hfd_key_state states[HFD_KEYS_MAX];
    unsigned char ids[HFD_KEYS_MAX][HFD_KEY_ID_BYTES];
    struct hfd_secret subkeys; /* count x USE_COUNT x HFD_KEY_BYTES */
    _Atomic uint64_t *seen;    /* SEEN_COUNT; 0 = none yet */
};

static unsigned char *subkey(const struct hfd_keyring *ring, size_t at, enum hfd_key_use use)
{
    return ring->subkeys.p + (at * USE_COUNT + (size_t)use - 1) * HFD_KEY_BYTES;
}

hfd_rc hfd_keyring_new(const struct hfd_key_list *keys, struct hfd_keyring **out,
                       struct hfd_err *err)
{
    struct hfd_keyring *ring;
    hfd_rc rc;

    *out = NULL;
    HFD_ASSERT(keys->count > 0 && keys->count <= HFD_KEYS_MAX && keys->active < keys->count);
    ring = calloc(1, sizeof(*ring));
    if (ring == NULL)
        return hfd_fail(err, HFD_NOMEM, "key ring");
    ring->magic = KEYRING_MAGIC;
    ring->seen = calloc(SEEN_COUNT, sizeof(*ring->seen));
    if (ring->seen == NULL) {
        rc = hfd_fail(err, HFD_NOMEM, "key ring");
        goto out;
    }
    ring->count = keys->count;
    ring->active = keys->active;
    memcpy(ring->states, keys->states, sizeof(ring->states));
    memcpy(ring->ids, keys->ids, sizeof(ring->ids));
    rc = hfd_secret_init(&ring->subkeys, keys->count * USE_COUNT * HFD_KEY_BYTES, err);
    if (rc != HFD_OK)
        goto out;
    for (size_t i = 0; i < keys->count; i++)
        for (int use = 1; use <= USE_COUNT; use++)
            /* Fails on lengths alone, which are constants here. */
            (void)crypto_kdf_derive_from_key(subkey(ring, i, (enum hfd_key_use)use), HFD_KEY_BYTES,
                                             1, contexts[use - 1],
                                             keys->masters.p + i * HFD_KEY_BYTES);
    (void)sodium_mprotect_readonly(
        ring->subkeys.p); /* they are never written again; without it they still work */
    *out = ring;
    ring = NULL;
out:
    hfd_keyring_free(ring);
    return rc;
}

void hfd_keyring_free(struct hfd_keyring *ring)
{
    if (ring == NULL)
        return;
    HFD_CHECK_OBJ(ring, KEYRING_MAGIC);
    hfd_secret_fini(&ring->subkeys);
    free(ring->seen);
    ring->magic = 0;
    free(ring);
}

hfd_rc hfd_keyring_fixed(unsigned char fill, struct hfd_keyring **out, struct hfd_err *err)
{
    struct hfd_key_list keys = {.count = 1, .active = 0, .states = {HFD_KEY_ACTIVE}};
    hfd_rc rc;

    *out = NULL;
    rc = hfd_secret_init(&keys.masters, HFD_KEY_BYTES, err);
    if (rc != HFD_OK)
        return rc;
    keys.ids[0][HFD_KEY_ID_BYTES - 1] = fill;
    keys.masters.p[HFD_KEY_BYTES - 1] = fill;
    rc = hfd_keyring_new(&keys, out, err);
    hfd_secret_fini(&keys.masters);
    return rc;
}

/* The index of a key by its id, or count. Ids are public: no constant time needed. */
static size_t find_key(const struct hfd_keyring *ring, const char *id)
{
    size_t i = 0;

    while (i < ring->count && memcmp(ring->ids[i], id, HFD_KEY_ID_BYTES) != 0)
        i++;
    return i;
}

/* use | key id | the caller's. p is NULL when memory is short. */
static hfd_slice bind_aad(struct hfd_arena *mem, enum hfd_key_use use, const void *id,
                          hfd_slice aad)
{
    size_t len;
    char *p;

    if (__builtin_add_overflow(aad.len, 1 + HFD_KEY_ID_BYTES, &len))
        return HFD_SLICE_NONE;
    p = hfd_arena_alloc(mem, len);
    if (p == NULL)
        return HFD_SLICE_NONE;
    p[0] = (char)use;
    memcpy(p + 1, id, HFD_KEY_ID_BYTES);
    if (aad.len > 0)
        memcpy(p + 1 + HFD_KEY_ID_BYTES, aad.p, aad.len);
    return (hfd_slice){p, len};
}

hfd_slice hfd_keyring_seal(const struct hfd_seal *seal, const struct hfd_rng *rng, hfd_slice plain,
                           struct hfd_arena *mem)
{
    const struct hfd_keyring *ring = seal->ring;
    const unsigned char *id;
    unsigned char *p, *nonce;
    hfd_slice bound;
    size_t len;

    HFD_CHECK_OBJ(ring, KEYRING_MAGIC);
    id = ring->ids[ring->active];
    bound = bind_aad(mem, seal->use, id, seal->aad);
    if (bound.p == NULL || __builtin_add_overflow(plain.len, OVERHEAD_BYTES, &len))
        return HFD_SLICE_NONE;
    p = hfd_arena_alloc(mem, len);
    if (p == NULL)
        return HFD_SLICE_NONE;
    nonce = p + HFD_KEY_ID_BYTES;
    memcpy(p, id, HFD_KEY_ID_BYTES);
    hfd_rng_bytes(rng, nonce, NONCE_BYTES);
    (void)crypto_aead_xchacha20poly1305_ietf_encrypt(
        nonce + NONCE_BYTES, NULL, (const unsigned char *)plain.p, plain.len,
        (const unsigned char *)bound.p, bound.len, NULL, nonce,
        subkey(ring, ring->active, seal->use));
    return (hfd_slice){(const char *)p, len};
}

hfd_rc hfd_keyring_open(const struct hfd_seal *seal, hfd_slice sealed, struct hfd_arena *mem,
                        hfd_slice *plain, struct hfd_err *err)
{
    const struct hfd_keyring *ring = seal->ring;
    const unsigned char *nonce;
    hfd_slice bound;
    unsigned char *p;
    size_t at, len;

    HFD_CHECK_OBJ(ring, KEYRING_MAGIC);
    *plain = HFD_SLICE_NONE;
    if (sealed.len < OVERHEAD_BYTES)
        return hfd_fail(err, HFD_COOKIE, "a sealed text is cut short");
    at = find_key(ring, sealed.p);
    if (at == ring->count)
        return hfd_fail(err, HFD_COOKIE, "a sealed text names a key that is not in the key ring");
    len = sealed.len - OVERHEAD_BYTES;
    nonce = (const unsigned char *)sealed.p + HFD_KEY_ID_BYTES;
    bound = bind_aad(mem, seal->use, ring->ids[at], seal->aad);
    p = hfd_arena_alloc(mem, len + 1); /* one more: an empty text is a text */
    mem->wipe = true;
    if (bound.p == NULL || p == NULL)
        return hfd_fail(err, HFD_NOMEM, "open a sealed text");
    if (crypto_aead_xchacha20poly1305_ietf_decrypt(
            p, NULL, NULL, nonce + NONCE_BYTES, len + TAG_BYTES, (const unsigned char *)bound.p,
            bound.len, nonce, subkey(ring, at, seal->use)) != 0)
        return hfd_fail(err, HFD_COOKIE, "a sealed text is forged or belongs elsewhere");
    *plain = (hfd_slice){(const char *)p, len};
    return HFD_OK;
}

static void digest_with(const struct hfd_keyring *ring, size_t at, hfd_slice data,
                        unsigned char *out)
{
    memcpy(out, ring->ids[at], HFD_KEY_ID_BYTES);
    /* Fails on lengths alone, which are constants here. */
    (void)crypto_generichash(out + HFD_KEY_ID_BYTES, crypto_generichash_BYTES,
                             (const unsigned char *)data.p, data.len,
                             subkey(ring, at, HFD_KEY_DIGEST), HFD_KEY_BYTES);
}

void hfd_keyring_digest(const struct hfd_keyring *ring, hfd_slice data,
                        unsigned char out[HFD_DIGEST_BYTES])
{
    HFD_CHECK_OBJ(ring, KEYRING_MAGIC);
    digest_with(ring, ring->active, data, out);
}

void hfd_keyring_fingerprint(const struct hfd_keyring *ring, char out[HFD_FINGERPRINT_CHARS + 1])
{
    unsigned char digest[HFD_DIGEST_BYTES];

    HFD_CHECK_OBJ(ring, KEYRING_MAGIC);
    digest_with(ring, 0, HFD_SLICE("fingerprint of a key ring"), digest);
    (void)sodium_bin2hex(out, HFD_FINGERPRINT_CHARS + 1, digest + HFD_KEY_ID_BYTES,
                         HFD_FINGERPRINT_CHARS / 2);
}

size_t hfd_keyring_count(const struct hfd_keyring *ring)
{
    HFD_CHECK_OBJ(ring, KEYRING_MAGIC);
    return ring->count;
}

void hfd_keyring_view(const struct hfd_keyring *ring, size_t at, struct hfd_key_view *out)
{
    unsigned char digest[HFD_DIGEST_BYTES];

    HFD_CHECK_OBJ(ring, KEYRING_MAGIC);
    HFD_ASSERT(at < ring->count);
    digest_with(ring, at, HFD_SLICE("mark of a key"), digest);
    *out = (struct hfd_key_view){.state = ring->states[at], .active = at == ring->active};
    memcpy(out->id, ring->ids[at], HFD_KEY_ID_BYTES);
    memcpy(out->mark, digest + HFD_KEY_ID_BYTES, HFD_KEY_MARK_BYTES);
    (void)sodium_bin2hex(out->name, sizeof(out->name), out->id, sizeof(out->id));
}

bool hfd_keyring_is_active(const struct hfd_keyring *ring, hfd_slice sealed)
{
    return sealed.len >= HFD_KEY_ID_BYTES &&
           memcmp(sealed.p, ring->ids[ring->active], HFD_KEY_ID_BYTES) == 0;
}

/* A tag of both. The words of a digest are as good as random, and need no hash. */
static uint64_t tag_of(const struct hfd_keyring *ring, size_t at, hfd_slice digest, hfd_slice data)
{
    uint64_t tag, words[crypto_generichash_BYTES / sizeof(tag)];

    _Static_assert(sizeof(tag) == crypto_shorthash_BYTES, "a tag is one word");
    (void)crypto_shorthash((unsigned char *)&tag, (const unsigned char *)data.p, data.len,
                           subkey(ring, at, USE_SEEN));
    memcpy(words, digest.p + HFD_KEY_ID_BYTES, sizeof(words));
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        tag ^= words[i];
    return tag;
}

bool hfd_keyring_digest_is(const struct hfd_keyring *ring, hfd_slice digest, hfd_slice data)
{
    unsigned char own[HFD_DIGEST_BYTES];
    _Atomic uint64_t *seen;
    uint64_t tag;
    uint16_t place;
    size_t at;

    HFD_CHECK_OBJ(ring, KEYRING_MAGIC);
    if (digest.len != HFD_DIGEST_BYTES)
        return false;
    at = find_key(ring, digest.p);
    if (at == ring->count)
        return false;
    memcpy(&place, digest.p + digest.len - sizeof(place), sizeof(place));
    seen = &ring->seen[place % SEEN_COUNT];
    tag = tag_of(ring, at, digest, data);
    if (tag != 0 && atomic_load_explicit(seen, memory_order_relaxed) == tag)
        return true;
    digest_with(ring, at, data, own);
    if (sodium_memcmp(own, digest.p, HFD_DIGEST_BYTES) != 0)
        return false;
    atomic_store_explicit(seen, tag, memory_order_relaxed);
    return true;
}

/* ---- keyring text ---- */

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

static hfd_rc key_text_first(struct hfd_key_text *t, const struct hfd_rng *rng,
                             char id[ID_CHARS + 1], struct hfd_err *err)
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

/* ---- the file ---- */

/*
 * Bytes of the file pass through guarded memory only, and are wiped. Refuses links, all but regular
 * files, files that other users may read, and files of other users.
 */

/* Puts the name of the file behind the words "key ring". */
static hfd_rc fail_named(struct hfd_err *err, const char *path, const struct hfd_err *why)
{
    return hfd_fail(err, why->rc, "key ring %.100s%s", path, why->msg + strcspn(why->msg, ",:"));
}

static hfd_rc fail_errno(struct hfd_err *err, const char *what, const char *path)
{
    const int e = errno;
    const hfd_rc rc = e == ENOMEM ? HFD_NOMEM : HFD_IO;

    return hfd_fail(err, e == ENOENT ? HFD_NOT_FOUND : rc, "key ring %s: %s: %s", path, what,
                    strerrordesc_np(e) != NULL ? strerrordesc_np(e) : "unknown error");
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

/* A key file. fd is -1 unless it is open. */
struct file {
    const char *path;
    int fd;
    struct stat st;
};

/* Opens and checks the file: kind, owner, mode. */
static hfd_rc open_file(struct file *f, struct hfd_err *err)
{
    const char *path = f->path;
    hfd_rc rc;

    memset(&f->st, 0, sizeof(f->st));
    rc = hfd_file_open_own(path, "key ring", O_RDONLY, &f->fd, err);
    if (rc != HFD_OK)
        return rc;
    if (fstat(f->fd, &f->st) != 0)
        rc = fail_errno(err, "stat", path);
    else if ((f->st.st_mode & (S_IRWXG | S_IRWXO)) != 0)
        rc = hfd_fail(err, HFD_INVALID,
                      "key ring %s: mode %04o lets others in, expected 0600 or 0400", path,
                      (unsigned)(f->st.st_mode & 07777));
    if (rc != HFD_OK)
        close_fd(&f->fd);
    return rc;
}

static hfd_rc read_file(const struct file *f, struct hfd_key_text *t, struct hfd_err *err)
{
    while (t->len < t->mem.len) {
        ssize_t n = read(f->fd, t->mem.p + t->len, t->mem.len - t->len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fail_errno(err, "read", f->path);
        if (n == 0)
            break;
        t->len += (size_t)n;
    }
    return HFD_OK;
}

/* A name is on disk when its folder is. */
static hfd_rc sync_folder(const char *path, struct hfd_err *err)
{
    return hfd_file_sync_parent(path) == 0 ? HFD_OK : fail_errno(err, "fsync of its folder", path);
}

/* Gives a new file the mode of `like`, its owner, and the text. Synced. */
static hfd_rc fill_file(const struct file *like, int fd, hfd_slice text, struct hfd_err *err)
{
    if (fchmod(fd, like->st.st_mode & S_IRWXU) != 0)
        return fail_errno(err, "set its mode", like->path);
    if (!hfd_file_keep_owner(fd, like->path))
        return fail_errno(err, "keep its owner", like->path);
    return hfd_file_write(fd, text) == 0 ? HFD_OK : fail_errno(err, "write", like->path);
}

static hfd_rc fail_link(struct hfd_err *err, const char *path)
{
    return errno == EEXIST
               ? hfd_fail(err, HFD_CONFLICT, "key ring %s: there is a file already", path)
               : fail_errno(err, "make", path);
}

/* The name of a rotation that is under way. One that was killed leaves it: see sweep. */
static bool temp_name(const char *path, char temp[PATH_MAX])
{
    return snprintf(temp, PATH_MAX, "%s.new", path) < PATH_MAX;
}

/*
 * Writes a synced file beside `like`. The caller holds the lock of `like`. So an older file of
 * this name is of a rotation that was killed. temp gets the name, or "" on failure.
 */
static hfd_rc write_temp(const struct file *like, hfd_slice text, char temp[PATH_MAX],
                         struct hfd_err *err)
{
    hfd_rc rc;
    int fd;

    if (!temp_name(like->path, temp)) {
        temp[0] = '\0';
        return hfd_fail(err, HFD_INVALID, "key ring: the path is too long");
    }
    fd = hfd_file_make(temp);
    if (fd < 0) {
        temp[0] = '\0';
        return fail_errno(err, "make a file beside it", like->path);
    }
    rc = fill_file(like, fd, text, err);
    close_fd(&fd);
    if (rc != HFD_OK) {
        (void)unlink(temp);
        temp[0] = '\0';
    }
    return rc;
}

/* The same on a file system that has no files without a name. */
static hfd_rc write_new_named(const struct file *like, hfd_slice text, struct hfd_err *err)
{
    char temp[PATH_MAX];
    hfd_rc rc = write_temp(like, text, temp, err);

    if (rc != HFD_OK)
        return rc;
    /* link, unlike rename, never replaces. */
    if (link(temp, like->path) != 0)
        rc = fail_link(err, like->path);
    (void)unlink(temp);
    return rc == HFD_OK ? sync_folder(like->path, err) : rc;
}

/* Writes a file without a name, and then gives it its name, but never that of another file. */
static hfd_rc write_new(const struct file *like, hfd_slice text, struct hfd_err *err)
{
    const char *path = like->path, *slash = strrchr(path, '/');
    char folder[PATH_MAX], unnamed[64];
    hfd_rc rc;
    int fd;

    if (snprintf(folder, sizeof(folder), "%.*s/", (int)(slash != NULL ? slash - path : 1),
                 slash != NULL ? path : ".") >= (int)sizeof(folder) ||
        strlen(path) >= PATH_MAX)
        return hfd_fail(err, HFD_INVALID, "key ring: the path is too long");
    fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR))
        return write_new_named(like, text, err);
    if (fd < 0)
        return fail_errno(err, "make a file beside it", path);
    rc = fill_file(like, fd, text, err);
    (void)snprintf(unnamed, sizeof(unnamed), "/proc/self/fd/%d", fd);
    if (rc == HFD_OK && linkat(AT_FDCWD, unnamed, AT_FDCWD, path, AT_SYMLINK_FOLLOW) != 0)
        rc = fail_link(err, path);
    close_fd(&fd);
    return rc == HFD_OK ? sync_folder(path, err) : rc;
}

/* Removes what a rotation that was killed left, unless one is under way now. */
static void sweep(const struct file *f)
{
    char temp[PATH_MAX];

    if (temp_name(f->path, temp) && access(temp, F_OK) == 0 && flock(f->fd, LOCK_EX | LOCK_NB) == 0)
        (void)unlink(temp);
}

/* ---- the three commands ---- */

hfd_rc hfd_keyring_load(const char *path, struct hfd_keyring **out, struct hfd_err *err)
{
    struct file f = {.path = path, .fd = -1};
    struct hfd_err why = {0};
    struct hfd_key_list keys;
    struct hfd_key_text text;
    hfd_rc rc;

    *out = NULL;
    rc = hfd_key_text_init(&text, err);
    if (rc != HFD_OK)
        return rc;
    rc = open_file(&f, err);
    if (rc == HFD_OK)
        rc = read_file(&f, &text, err);
    if (rc == HFD_OK)
        sweep(&f);
    close_fd(&f.fd);
    if (rc == HFD_OK && hfd_key_list_parse(hfd_key_text_slice(&text), &keys, &why) != HFD_OK)
        rc = fail_named(err, path, &why);
    hfd_key_text_fini(&text);
    if (rc != HFD_OK)
        return rc;
    rc = hfd_keyring_new(&keys, out, err);
    hfd_secret_fini(&keys.masters);
    return rc;
}

hfd_rc hfd_keyring_create(const char *path, const struct hfd_rng *rng, struct hfd_err *err)
{
    struct file like = {.path = path, .fd = -1, .st = {.st_mode = S_IRUSR | S_IWUSR}};
    char id[HFD_KEY_ID_CHARS + 1];
    struct hfd_key_text text;
    hfd_rc rc;

    rc = hfd_key_text_init(&text, err);
    if (rc != HFD_OK)
        return rc;
    rc = key_text_first(&text, rng, id, err);
    if (rc == HFD_OK)
        rc = write_new(&like, hfd_key_text_slice(&text), err);
    hfd_key_text_fini(&text);
    return rc;
}

/*
 * Opens the file and holds its lock. Starts again if the file was replaced while it waited for the
 * lock.
 */
static hfd_rc open_locked(struct file *f, struct hfd_err *err)
{
    struct stat now;
    hfd_rc rc;

    for (;;) {
        rc = open_file(f, err);
        if (rc != HFD_OK)
            return rc;
        while (rc == HFD_OK && flock(f->fd, LOCK_EX) != 0)
            if (errno != EINTR)
                rc = fail_errno(err, "lock", f->path);
        if (rc == HFD_OK && lstat(f->path, &now) != 0)
            rc = fail_errno(err, "stat", f->path);
        if (rc == HFD_OK && now.st_ino == f->st.st_ino && now.st_dev == f->st.st_dev)
            return HFD_OK;
        close_fd(&f->fd);
        if (rc != HFD_OK)
            return rc;
    }
}

/* Builds the changed text of the file. */
static hfd_rc changed_text(const struct file *f, struct hfd_key_edit *edit, struct hfd_key_text *t,
                           struct hfd_err *err)
{
    struct hfd_err why = {0};
    struct hfd_key_text old;
    hfd_rc rc = hfd_key_text_init(&old, err);

    if (rc != HFD_OK)
        return rc;
    rc = read_file(f, &old, err);
    if (rc == HFD_OK) {
        edit->old = hfd_key_text_slice(&old);
        rc = hfd_key_text_change(t, edit, &why);
        if (rc != HFD_OK)
            rc = fail_named(err, f->path, &why);
    }
    hfd_key_text_fini(&old);
    return rc;
}

hfd_rc hfd_keyring_change(const char *path, enum hfd_key_change change, const struct hfd_rng *rng,
                          char id[HFD_KEY_ID_CHARS + 1], struct hfd_err *err)
{
    struct hfd_key_edit edit = {.change = change, .rng = rng};
    struct file f = {.path = path, .fd = -1};
    char temp[PATH_MAX] = "";
    struct hfd_key_text text;
    hfd_rc rc = hfd_key_text_init(&text, err);

    if (rc != HFD_OK)
        return rc;
    if (change == HFD_KEY_ACTIVATE)
        (void)snprintf(edit.id, sizeof(edit.id), "%s", id);
    else
        id[0] = '\0';
    rc = open_locked(&f, err);
    if (rc == HFD_OK)
        rc = changed_text(&f, &edit, &text, err);
    if (rc == HFD_OK)
        rc = write_temp(&f, hfd_key_text_slice(&text), temp, err);
    if (rc != HFD_OK)
        goto out;
    if (rename(temp, path) != 0) {
        rc = fail_errno(err, "replace", path);
        (void)unlink(temp);
        goto out;
    }
    rc = sync_folder(path, err);
    if (rc == HFD_OK)
        memcpy(id, edit.id, sizeof(edit.id));
out:
    close_fd(&f.fd); /* gives the lock back */
    hfd_key_text_fini(&text);
    return rc;
}
