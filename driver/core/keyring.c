/*
 * Sealing, opening and keyed digests. Master keys are used once, to derive a subkey per use; the
 * ring keeps the subkeys alone. Thread: any; the keys of a ring do not change after it is made.
 * Source: driver/README.md.
 */
#include "driver/core/keyring_int.h"

#include "driver/base/check.h"

#include <sodium.h>
#include <stdatomic.h>

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
 * the tags never leave the memory. So a client that looks for other data with the same tag cannot
 * do better than to guess, with one request a guess.
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
