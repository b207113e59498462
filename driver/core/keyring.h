/*
 * The key ring: a file of lines `id:base64url:state` (0600), one of them active. Seals cookies,
 * secrets at rest and keys the digest, each with its own subkey (crypto_kdf contexts).
 * XChaCha20-Poly1305; every sealed text names its key. Its keys do not change after loading;
 * shared. Thread: any.
 */
#ifndef HFD_CORE_KEYRING_H
#define HFD_CORE_KEYRING_H

#include "driver/base/arena.h"
#include "driver/base/rng.h"

struct hfd_keyring;

enum hfd_key_use {
    HFD_KEY_COOKIE = 1,
    HFD_KEY_AT_REST = 2,
    HFD_KEY_DIGEST = 3
};

#define HFD_KEY_ID_BYTES 4
#define HFD_DIGEST_BYTES (HFD_KEY_ID_BYTES + 32)

/** A ring of one key made of zeros and the byte given: tests. */
HFD_MUST_CHECK hfd_rc hfd_keyring_fixed(unsigned char fill, struct hfd_keyring **out,
                                        struct hfd_err *err);
/** Accepts NULL. */
void hfd_keyring_free(struct hfd_keyring *ring);

/** The keys of a sealed text, and the place that it is bound to. */
struct hfd_seal {
    const struct hfd_keyring *ring;
    enum hfd_key_use use;
    hfd_slice aad; /* bound, and not stored */
};

/**
 * Gives key id | nonce | ciphertext and tag. p is NULL when memory is short.
 */
hfd_slice hfd_keyring_seal(const struct hfd_seal *seal, const struct hfd_rng *rng, hfd_slice plain,
                           struct hfd_arena *mem);
/**
 * Opens a sealed text. From then on mem overwrites what it frees.
 * @return HFD_OK, HFD_COOKIE (unknown key, forged, cut short), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_keyring_open(const struct hfd_seal *seal, hfd_slice sealed,
                                       struct hfd_arena *mem, hfd_slice *plain,
                                       struct hfd_err *err);

#define HFD_KEY_MARK_BYTES 16
enum hfd_key_state {
    HFD_KEY_RETIRED, /* opens only */
    HFD_KEY_ACTIVE,  /* seals and opens; exactly one */
    HFD_KEY_PREPARED /* opens only, and is to be the active one */
};

/** A key of the ring, without its secret. */
struct hfd_key_view {
    unsigned char id[HFD_KEY_ID_BYTES];
    char name[2 * HFD_KEY_ID_BYTES + 1]; /* the id in hex */
    enum hfd_key_state state;
    bool active;
    unsigned char mark[HFD_KEY_MARK_BYTES]; /* changes with the key, and says nothing of it */
};
/** "active", "retired" or "prepared", as in the file. */
const char *hfd_key_state_name(enum hfd_key_state state);
size_t hfd_keyring_count(const struct hfd_keyring *ring);
void hfd_keyring_view(const struct hfd_keyring *ring, size_t at, struct hfd_key_view *out);

/** True if a sealed text or a digest is of the active key. */
bool hfd_keyring_is_active(const struct hfd_keyring *ring, hfd_slice sealed);

#define HFD_FINGERPRINT_CHARS 32
/**
 * Lower-case hex that names the ring to others without telling anything of its keys. It comes from
 * the oldest key, which stands first in the file: rotation does not change it, taking that key away
 * does.
 */
void hfd_keyring_fingerprint(const struct hfd_keyring *ring, char out[HFD_FINGERPRINT_CHARS + 1]);

/** Keyed BLAKE2b-256 with the active key, its id in front. */
void hfd_keyring_digest(const struct hfd_keyring *ring, hfd_slice data,
                        unsigned char out[HFD_DIGEST_BYTES]);
/**
 * True if `digest` (of any key in the ring) is that of data. The ring remembers pairs for which it
 * was true, by a keyed tag of 64 bits that is cheaper than the digest.
 */
bool hfd_keyring_digest_is(const struct hfd_keyring *ring, hfd_slice digest, hfd_slice data);

#endif
