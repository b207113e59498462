/* The guard, for guard.c and guard_watch.c. */
#ifndef HFD_AUTH_GUARD_INT_H
#define HFD_AUTH_GUARD_INT_H

#include <pthread.h>
#include <sys/stat.h>

#include "handlers/auth/failures.h"
#include "handlers/auth/guard.h"

struct hfd_guard {
    struct hfd_guard_config config;
    atomic_bool on;
    atomic_uint version; /* of set */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct hfd_keyset *set;  /* under lock, with the last uses of its rows */
    struct hfd_trust *trust; /* under lock */
    bool look, stop;         /* under lock: asked of the thread */

    struct hfd_failures failures;
    atomic_bool wants_keys; /* a token named a new key of a known issuer */

    bool has_local; /* const once the loops run */
    unsigned char local_hash[HFD_TOKEN_HASH_BYTES];
    char *local_file;

    /* The thread's, and start-up's: */
    bool started;
    pthread_t thread;
    struct hfd_store *store;
    struct hfd_signers *signers;
    struct stat file;   /* of the tokens file when it was read; zeroed = there was none */
    int64_t written_us; /* mono: last write of uses; 0 = never */
    bool had_file;      /* there was a tokens file: a missing one is an error */
    bool usable;        /* a credential was valid at the last look */
    char said[sizeof(((struct hfd_err *)0)->msg)]; /* the last error of the tokens file */
};

/** Returns the wall clock of this machine. */
static inline int64_t hfd_guard_now_us(const struct hfd_guard *guard)
{
    return hfd_clock_wall_us(guard->config.clock) + hfd_clock_skew_us(guard->config.clock);
}

/** Returns a reference to the present keyset. */
struct hfd_keyset *hfd_guard_set(struct hfd_guard *guard);
/** Replaces the trust. Takes it; NULL = it stays. */
void hfd_guard_install_trust(struct hfd_guard *guard, struct hfd_trust *trust);
/** Reads the tokens file and takes it up. @return HFD_OK, HFD_NOMEM (nothing changes) */
HFD_MUST_CHECK hfd_rc hfd_guard_read_tokens(struct hfd_guard *guard, struct hfd_err *err);

#endif
