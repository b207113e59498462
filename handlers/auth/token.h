/*
 * Bearer tokens: "hfd_" and 256 random bits in base64url. Only their BLAKE2b-256 hash is kept: 256
 * random bits need no key. Thread: any.
 *
 * The tokens file: names, scopes, times and hashes, one token a line. It has no secret that opens
 * anything. Write access to it is access to everything. Thread: any that may wait for the disk.
 *
 * The tokens that are valid now, as a table by hash. A keyset never changes but for the last uses
 * of its tokens; a change of the tokens file makes a new one. Thread: any.
 */
#ifndef HFD_AUTH_TOKEN_H
#define HFD_AUTH_TOKEN_H

#include "driver/base/arena.h"
#include "driver/base/rng.h"
#include "handlers/auth/decide.h"

#include <netinet/in.h>
#include <stdatomic.h>

#define HFD_TOKEN_CHARS 47 /* the prefix, and 32 bytes in base64url without padding */
#define HFD_TOKEN_HASH_BYTES 32

/** A token as the tokens file has it. */
struct hfd_token {
    hfd_slice name;
    struct hfd_grant grant;
    int64_t created_us, expires_us; /* expires_us: 0 = never */
    unsigned char hash[HFD_TOKEN_HASH_BYTES];
};

/** Makes a token; wipe `text` after use. */
void hfd_token_make(const struct hfd_rng *rng, char text[HFD_TOKEN_CHARS + 1]);
/** Hashes the text of a token, or any other text. */
void hfd_token_hash(hfd_slice text, unsigned char hash[HFD_TOKEN_HASH_BYTES]);
/** Returns true if a text has the form of a token. */
bool hfd_token_is(hfd_slice text);
/**
 * Checks a name: letters, digits and - _ . behind a letter or digit, at most 63.
 * @return HFD_OK, HFD_INVALID
 */
HFD_MUST_CHECK hfd_rc hfd_token_name_check(hfd_slice name, struct hfd_err *err);

#define HFD_TOKENS_MAX 1000
#define HFD_TOKEN_FILE_MAX_BYTES ((size_t)1 << 20)

struct hfd_token_list {
    struct hfd_token *items;
    size_t count;
};

/**
 * Parses the text of a tokens file.
 * @param mem  gets the list and its names
 * @return HFD_OK, HFD_INVALID (the message names the line), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_token_list_parse(hfd_slice text, struct hfd_arena *mem,
                                           struct hfd_token_list *out, struct hfd_err *err);
/** Adds the text of a tokens file. */
void hfd_token_list_format(const struct hfd_token_list *list, struct hfd_buf *b);

/**
 * Reads a tokens file.
 * @return HFD_OK, HFD_NOT_FOUND (no file), HFD_INVALID (its text is wrong, or others can write to
 *         it), HFD_IO, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_token_file_read(const char *path, struct hfd_arena *mem,
                                          struct hfd_token_list *out, struct hfd_err *err);

/** A change of the list, under the lock of the file. It may replace out->items. */
typedef hfd_rc hfd_token_change_fn(struct hfd_token_list *list, struct hfd_arena *mem, void *arg,
                                   struct hfd_err *err);

/** A change of a tokens file. */
struct hfd_token_edit {
    const char *path;
    hfd_token_change_fn *change;
    void *arg;
    bool create; /* a missing file is an empty one */
};

/**
 * Changes a tokens file: replaced as a whole (mode 0600) and synced, under the lock of its folder.
 * @return as hfd_token_file_read and edit->change; HFD_NOT_FOUND unless edit->create
 */
HFD_MUST_CHECK hfd_rc hfd_token_file_edit(const struct hfd_token_edit *edit, struct hfd_err *err);

#define HFD_FROM_MAX INET6_ADDRSTRLEN

struct hfd_keyset_row {
    struct hfd_token token;
    hfd_slice identity; /* of created_by */
    atomic_llong used_us;
    /* Under the lock of the guard: */
    char from[HFD_FROM_MAX];
    bool dirty; /* this use is not in the store */
};

struct hfd_keyset {
    atomic_uint refs;
    struct hfd_arena mem;
    struct hfd_keyset_row *rows; /* in the order of the file */
    size_t count;
    struct hfd_keyset_row **slots; /* open addressing by the first bytes of the hash */
    size_t mask;
};

/**
 * Makes a keyset of a list.
 * @param list  copied
 * @param out   gives one reference
 * @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_keyset_new(const struct hfd_token_list *list, struct hfd_keyset **out,
                                     struct hfd_err *err);
/** Gives a reference back; accepts NULL. */
void hfd_keyset_unref(struct hfd_keyset *set);

/**
 * Finds a token by its hash. The time does not depend on how much of a hash is right.
 * @return borrowed; NULL if there is none
 */
struct hfd_keyset_row *hfd_keyset_find(const struct hfd_keyset *set,
                                       const unsigned char hash[HFD_TOKEN_HASH_BYTES]);
/** Returns true if a name is a token's; case and spaces around it do not count. */
bool hfd_keyset_has_name(const struct hfd_keyset *set, hfd_slice name);
/** Returns how many tokens have not expired. */
static inline size_t hfd_keyset_usable(const struct hfd_keyset *set, int64_t now_us)
{
    size_t n = 0;

    for (size_t i = 0; i < set->count; i++)
        n += set->rows[i].token.expires_us == 0 || set->rows[i].token.expires_us > now_us;
    return n;
}

#endif
