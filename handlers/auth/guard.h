/*
 * The guard: knows the credentials that are valid now, and takes up changes of their files by
 * itself. Loops ask it through a view of their own, without a lock. One thread looks at the files
 * four times a second. Another one waits for others: it fetches keys, and writes last uses to the
 * store at most once a minute.
 *
 * Authentication is on if anything is configured at the start. That is a key of the Operator, an
 * issuer, or a tokens file that exists, whatever is in it. While the server runs a tokens file
 * turns it on, and nothing off.
 *
 * Failed logins by address, in a table of fixed size: how long the answer to the next one waits. A
 * flood of addresses displaces those with the fewest failures. Pure but for its lock. Thread: any.
 */
#ifndef HFD_AUTH_GUARD_H
#define HFD_AUTH_GUARD_H

#include "driver/base/clock.h"
#include "driver/base/slice.h"
#include "driver/base/thread.h"
#include "handlers/auth/decide.h"
#include "handlers/auth/token.h"
#include "handlers/auth/trust.h"

#include <pthread.h>
#include <sys/stat.h>

struct hfd_guard;
struct hfd_keyset;
struct hfd_seen_jwt;
struct hfd_store;

#define HFD_FAILURES_MAX 4096
#define HFD_FAILURE_LINES_PER_S 10

struct hfd_failure {
    uint64_t network; /* IPv4 address, or the first half of an IPv6 one; 0 = the place is free */
    unsigned count;
    int64_t at_us; /* mono */
};

struct hfd_failures {
    pthread_mutex_t lock;
    struct hfd_failure items[HFD_FAILURES_MAX];
    int64_t second_us; /* start of the second in which lines are counted */
    int64_t lines;
    int64_t silent; /* lines that were left out since the last one */
};

/** Set up an empty table, and end it. */
void hfd_failures_init(struct hfd_failures *f);
void hfd_failures_fini(struct hfd_failures *f);

/** A failure that was noted. */
struct hfd_failure_note {
    int64_t delay_us; /* to wait before the answer */
    bool log;         /* the log has room for a line about it */
    int64_t silent;   /* failures since the last line that have none */
};

/**
 * Notes a failure, and asks for a line of the log.
 * @param from  the address of the caller, as text; NULL = asks for the line alone
 */
struct hfd_failure_note hfd_failures_note(struct hfd_failures *f, const char *from, int64_t now_us);
struct hfd_guard_config {
    const char *tokens_file; /* empty: there are no tokens */
    struct hfd_signers_config signers;
    const struct hfd_clock *clock;
};

/**
 * Reads what is configured. A tokens file that cannot be used turns authentication on and lets no
 * token in: the log says why, and the guard tries again.
 * @param config  its texts are borrowed for the life of the guard
 * @param out     gives; free with hfd_guard_free
 * @return HFD_OK, HFD_INVALID (err->field is the setting), HFD_NOMEM. Thread: start-up
 */
HFD_MUST_CHECK hfd_rc hfd_guard_open(const struct hfd_guard_config *config, struct hfd_guard **out,
                                     struct hfd_err *err);
/** Accepts NULL. Views must be closed before. */
void hfd_guard_free(struct hfd_guard *guard);

/** Returns true if a credential is configured that is valid now. Thread: any. */
bool hfd_guard_is_usable(struct hfd_guard *guard);

/**
 * Starts the threads. Waits for no network.
 * @param store       for last uses; borrowed until hfd_guard_stop
 * @param local_file  gets a token of this run with the scope admin, for commands on this machine;
 * empty: there is no such token
 */
HFD_MUST_CHECK hfd_rc hfd_guard_start(struct hfd_guard *guard, struct hfd_store *store,
                                      const char *local_file, struct hfd_err *err);
/** Writes the last uses, ends the threads and removes the local file. Accepts one that never
 * started.
 */
void hfd_guard_stop(struct hfd_guard *guard);
/** Makes the thread look at the files now. Thread: any. */
void hfd_guard_look(struct hfd_guard *guard);

/** The guard as a loop sees it. Zeroed = nothing yet. Thread: the loop's. */
struct hfd_guard_view {
    struct hfd_keyset *set;
    struct hfd_trust *trust;
    struct hfd_seen_jwt *seen; /* tokens whose signature was checked; NULL = none yet */
    unsigned version;          /* of set and trust */
};

/** Credentials, checked. */
struct hfd_guard_answer {
    struct hfd_caller caller;    /* its name is valid until the next call on this view */
    struct hfd_keyset_row *used; /* the token, if its use is to be noted; NULL = no */
};

/**
 * Checks a token, or a JWT.
 * @param secret  not empty
 * @param now_us  the wall clock of this machine
 */
void hfd_guard_check(struct hfd_guard *guard, struct hfd_guard_view *view, hfd_slice secret,
                     int64_t now_us, struct hfd_guard_answer *out);
/** Notes the use of answer->used. @param from  the address of the caller */
void hfd_guard_note(struct hfd_guard *guard, struct hfd_keyset_row *used, const char *from,
                    int64_t now_us);
void hfd_guard_view_close(struct hfd_guard_view *view);

/** A token in a list for the operator: no hash. */
struct hfd_guard_token {
    hfd_slice name;
    struct hfd_grant grant;
    int64_t created_us, expires_us, used_us; /* 0 = never */
    hfd_slice from;                          /* of the last use; empty = none */
};

struct hfd_guard_tokens {
    struct hfd_guard_token *items;
    size_t count;
};

/** Lists the tokens with their last uses. Thread: any. @return HFD_OK, HFD_NOMEM */
HFD_MUST_CHECK hfd_rc hfd_guard_list(struct hfd_guard *guard, struct hfd_arena *mem,
                                     struct hfd_guard_tokens *out, struct hfd_err *err);

struct hfd_guard {
    struct hfd_guard_config config;
    atomic_bool on;
    atomic_uint version; /* of set */
    pthread_mutex_t lock;
    struct hfd_keyset *set;  /* under lock, with the last uses of its rows */
    struct hfd_trust *trust; /* under lock */
    atomic_bool stop;        /* asked of the thread that waits */

    struct hfd_failures failures;
    atomic_bool wants_keys; /* a token named a new key of a known issuer */
    atomic_bool wants_uses; /* there may be tokens whose last uses were not read */

    bool has_local; /* const once the loops run */
    unsigned char local_hash[HFD_TOKEN_HASH_BYTES];
    char *local_file;

    struct hfd_store *store;
    struct hfd_signers *signers;
    bool started;                    /* set before the threads begin */
    struct hfd_sleeper looks, waits; /* the threads: one looks, the other one waits for others */

    /* For the thread that looks, and for start-up: */
    struct stat file; /* of the tokens file when it was read; zeroed = there was none */
    bool had_file;    /* there was a tokens file: a missing one is an error */
    bool usable;      /* a credential was valid at the last look */
    char said[sizeof(((struct hfd_err *)0)->msg)]; /* the last error of the tokens file */
};

/** Returns true if authentication is on. Thread: any. */
static inline bool hfd_guard_is_on(const struct hfd_guard *guard)
{
    return atomic_load(&guard->on);
}

#endif
