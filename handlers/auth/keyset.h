/*
 * The tokens that are valid now, as a table by hash. A keyset never changes but for the last uses
 * of its tokens; a change of the tokens file makes a new one. Thread: any.
 */
#ifndef HFD_AUTH_KEYSET_H
#define HFD_AUTH_KEYSET_H

#include <netinet/in.h>
#include <stdatomic.h>

#include "handlers/auth/token_file.h"

#define HFD_FROM_MAX INET6_ADDRSTRLEN

struct hfd_keyset_row {
    struct hfd_token token;
    hfd_slice identity; /* of created_by */
    atomic_llong used_us;
    /* Under the lock of the guard: */
    char from[HFD_FROM_MAX];
    bool dirty; /* this use is not in the store */
};

struct hfd_keyset;

/**
 * Makes a keyset of a list.
 * @param list  copied
 * @param out   gives one reference
 * @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_keyset_new(const struct hfd_token_list *list, struct hfd_keyset **out,
                                     struct hfd_err *err);
void hfd_keyset_ref(struct hfd_keyset *set);
/** Gives a reference back; accepts NULL. */
void hfd_keyset_unref(struct hfd_keyset *set);

/**
 * Finds a token by its hash. The time does not depend on how much of a hash is right.
 * @return borrowed; NULL if there is none
 */
struct hfd_keyset_row *hfd_keyset_find(const struct hfd_keyset *set,
                                       const unsigned char hash[HFD_TOKEN_HASH_BYTES]);
/** Returns the rows, in the order of the file. */
struct hfd_keyset_row *hfd_keyset_rows(const struct hfd_keyset *set, size_t *count);
/** Returns how many tokens have not expired. */
size_t hfd_keyset_usable(const struct hfd_keyset *set, int64_t now_us);

#endif
