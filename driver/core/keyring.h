/*
 * The key ring: a file of lines `id:base64url:state` (0600), one of them active. Seals cookies,
 * secrets at rest and keys the digest, each with its own subkey (crypto_kdf contexts).
 * XChaCha20-Poly1305; every sealed text names its key. Its keys do not change after loading;
 * shared. Thread: any.
 *
 * The text of the key ring: reads it, and writes it anew with a changed key. It stays in guarded
 * memory. Thread: any.
 *
 * The file of the key ring: reads, creates and rotates it. Keys stay in locked memory and no
 * message quotes one. Thread: any.
 */
#ifndef HFD_CORE_KEYRING_H
#define HFD_CORE_KEYRING_H

#include "driver/base/arena.h"
#include "driver/base/rng.h"
#include "driver/base/secret.h"

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

#define HFD_KEY_BYTES 32
#define HFD_KEYS_MAX 64
#define HFD_KEY_FILE_MAX_BYTES 16384

/** The keys of a file, as parsed. */
struct hfd_key_list {
    size_t count;
    size_t active; /* index of the one that seals */
    enum hfd_key_state states[HFD_KEYS_MAX];
    unsigned char ids[HFD_KEYS_MAX][HFD_KEY_ID_BYTES];
    struct hfd_secret masters; /* HFD_KEYS_MAX x HFD_KEY_BYTES */
};

/**
 * Reads the text of a key file. Messages name the line and never quote it.
 * @param out  on HFD_OK: hfd_secret_fini(&out->masters)
 * @return HFD_OK, HFD_INVALID, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_key_list_parse(hfd_slice text, struct hfd_key_list *out,
                                         struct hfd_err *err);

/** Derives the subkeys. Borrows keys. @return HFD_OK or HFD_NOMEM */
HFD_MUST_CHECK hfd_rc hfd_keyring_new(const struct hfd_key_list *keys, struct hfd_keyring **out,
                                      struct hfd_err *err);

#define HFD_KEY_ID_CHARS (2 * HFD_KEY_ID_BYTES)

/** Text under way, in guarded memory. Zeroed = none. */
struct hfd_key_text {
    struct hfd_secret mem; /* HFD_KEY_FILE_MAX_BYTES + 1 */
    size_t len;
    bool full; /* more was added than a file may have */
};

/** Makes an empty text. @return HFD_OK, HFD_NOMEM */
HFD_MUST_CHECK hfd_rc hfd_key_text_init(struct hfd_key_text *t, struct hfd_err *err);
/** Wipes and frees it. */
void hfd_key_text_fini(struct hfd_key_text *t);
/** Returns the text so far, borrowed. */
hfd_slice hfd_key_text_slice(const struct hfd_key_text *t);

/** A change of a ring. */
enum hfd_key_change {
    HFD_KEY_ROTATE,  /* a new active key; all others are retired */
    HFD_KEY_PREPARE, /* a new prepared key; all others stay */
    HFD_KEY_ACTIVATE /* the newest prepared key becomes active; all others are retired */
};

/** A change of a text. */
struct hfd_key_edit {
    enum hfd_key_change change;
    const struct hfd_rng *rng;
    hfd_slice old;                 /* the text; comments stay */
    char id[HFD_KEY_ID_CHARS + 1]; /* of the key that is new or activated; ACTIVATE: set, it is the
                                       key that is expected; empty = any */
};
/**
 * Adds the changed text.
 * @return HFD_OK, as hfd_key_list_parse, HFD_LIMIT (64 keys or 16 KiB), HFD_CONFLICT (no key is
 * prepared, or another than the expected one), HFD_IO (the random source)
 */
HFD_MUST_CHECK hfd_rc hfd_key_text_change(struct hfd_key_text *t, struct hfd_key_edit *edit,
                                          struct hfd_err *err);

/**
 * Reads and checks a key file.
 * @param out  gives; free with hfd_keyring_free
 * @return HFD_OK, HFD_NOT_FOUND (no file), HFD_INVALID (which line and why; mode not 0600 or 0400;
 *         owner neither we nor root), HFD_IO
 */
HFD_MUST_CHECK hfd_rc hfd_keyring_load(const char *path, struct hfd_keyring **out,
                                       struct hfd_err *err);

/**
 * Makes a file with one active key, mode 0600, synced, never over an existing one.
 * @return HFD_OK, HFD_CONFLICT (there is a file), HFD_NOT_FOUND (no such folder), HFD_INVALID (path
 * too long), HFD_IO
 */
HFD_MUST_CHECK hfd_rc hfd_keyring_create(const char *path, const struct hfd_rng *rng,
                                         struct hfd_err *err);

/**
 * Changes the keys: replaces the file atomically, under its lock. Mode, owner and comments stay.
 * Retired keys still open.
 * @param rng  not needed to activate
 * @param id   gets 8 hex digits and NUL: of the key that is new or activated. To activate, the key
 *             that is expected stands there; empty = any
 * @return HFD_OK, as load, HFD_LIMIT (64 keys or 16 KiB: remove retired ones), HFD_CONFLICT (no key
 * is prepared, or another one)
 */
HFD_MUST_CHECK hfd_rc hfd_keyring_change(const char *path, enum hfd_key_change change,
                                         const struct hfd_rng *rng, char id[HFD_KEY_ID_CHARS + 1],
                                         struct hfd_err *err);

#endif
