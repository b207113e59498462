/*
 * The guard: knows the credentials that are valid now, and takes up changes of their files by
 * itself. Loops ask it through a view of their own, without a lock. A thread looks at the files
 * once a second, and writes last uses to the store at most once a minute.
 *
 * Authentication is on if anything is configured at the start: a token in the tokens file, a key of
 * the Operator, or an issuer. While the server runs the first token turns it on, and nothing off.
 */
#ifndef HFD_AUTH_GUARD_H
#define HFD_AUTH_GUARD_H

#include "driver/base/clock.h"
#include "handlers/auth/decide.h"
#include "handlers/auth/failures.h"
#include "handlers/auth/keyset.h"
#include "handlers/auth/signers.h"
#include "store/store.h"

struct hfd_guard;

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

/** Returns true if authentication is on. Thread: any. */
bool hfd_guard_is_on(const struct hfd_guard *guard);
/** Returns true if a credential is configured that is valid now. Thread: any. */
bool hfd_guard_is_usable(struct hfd_guard *guard);

/**
 * Starts the thread that watches the files.
 * @param store       for last uses; borrowed until hfd_guard_stop
 * @param local_file  gets a token of this run with the scope admin, for commands on this machine;
 * empty: there is no such token
 */
HFD_MUST_CHECK hfd_rc hfd_guard_start(struct hfd_guard *guard, struct hfd_store *store,
                                      const char *local_file, struct hfd_err *err);
/** Writes the last uses, ends the thread and removes the local file. Accepts one that never
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
/** Returns the failed logins. */
struct hfd_failures *hfd_guard_failures(struct hfd_guard *guard);
void hfd_guard_view_close(struct hfd_guard_view *view);

/** A token in a list for the operator: no hash. */
struct hfd_guard_token {
    hfd_slice name;
    hfd_scopes scopes;
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

#endif
