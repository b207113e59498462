/*
 * The decision about a request: allow, or 401, 403 or 503 with a sentence. Pure. Thread: any.
 *
 * Finds credentials in a request: the Authorization header, or the secret prefix of the path. Pure.
 * Thread: any.
 */
#ifndef HFD_AUTH_DECIDE_H
#define HFD_AUTH_DECIDE_H

#include "driver/base/slice.h"
#include "handlers/auth/scope.h"

/* clang-format off */
/* name, label of the log and the metric, what the caller reads */
#define HFD_AUTH_FAULT_LIST(X) \
    X(NONE,         "none",         "") \
    X(ABSENT,       "absent",       "credentials are needed: send a token as \"Authorization: Bearer TOKEN\"") \
    X(UNREADABLE,   "unreadable",   "the Authorization header cannot be read: expected \"Bearer TOKEN\"") \
    X(UNKNOWN,      "unknown",      "the token is not valid") \
    X(EXPIRED,      "expired",      "the token has expired") \
    X(EARLY,        "early",        "the token is not valid yet") \
    X(TOO_LONG,     "too_long",     "the token is larger than 16384 bytes") \
    X(MALFORMED,    "malformed",    "the token is not a well-formed JWT") \
    X(ALGORITHM,    "algorithm",    "the token is signed by another algorithm than that of its key") \
    X(KEY,          "key",          "the key that signed the token is not trusted here") \
    X(SIGNATURE,    "signature",    "the signature of the token is not valid") \
    X(ISSUER,       "issuer",       "the issuer of the token is not that of its key") \
    X(AUDIENCE,     "audience",     "the token is for another audience") \
    X(IDENTITY,     "identity",     "the token does not name its caller") \
    X(RESERVED,     "reserved",     "the token names its caller as one of this server's own: a token, or another name of hyperfleet.local") \
    X(NO_KEYS,      "no_keys",      "the keys of the token's issuer were not fetched yet: try again later")
/* clang-format on */
/** Why credentials do not name a caller. */
#define HFD_AUTH_FAULT_ENUM_(name, label, text) HFD_AUTH_##name,
enum hfd_auth_fault {
    HFD_AUTH_FAULT_LIST(HFD_AUTH_FAULT_ENUM_) HFD_AUTH_FAULT_COUNT
};
#undef HFD_AUTH_FAULT_ENUM_

/** Returns the label of a fault: "unknown". */
const char *hfd_auth_fault_label(enum hfd_auth_fault fault);

/** The meaning of credentials. */
struct hfd_caller {
    enum hfd_auth_fault fault; /* NONE = the caller is known */
    struct hfd_grant grant;
    hfd_slice name; /* e-mail shaped: ci@hyperfleet.local */
};

enum hfd_access {
    HFD_ACCESS_ALLOWED,
    HFD_ACCESS_UNKNOWN,   /* 401 */
    HFD_ACCESS_FORBIDDEN, /* 403 */
    HFD_ACCESS_LATER,     /* 503 */
};

#define HFD_AUTH_TEXT_MAX 160

/**
 * Decides about a request.
 * @param on      authentication is on
 * @param caller  read only if `on` is true and the need is not OPEN
 * @param text    the sentence for a refused caller; empty for ALLOW
 */
enum hfd_access hfd_auth_decide(bool on, enum hfd_need need, const struct hfd_caller *caller,
                                char text[HFD_AUTH_TEXT_MAX]);

/* User name and password: what a whole head can hold. */
#define HFD_BASIC_MAX_BYTES 24576
/* Memory for them; the build would clear it for every request. */
#define HFD_BASIC_TEXT(name) char name[HFD_BASIC_MAX_BYTES] __attribute__((uninitialized))

/**
 * Reads an Authorization header: "Bearer TOKEN", or "Basic BASE64" with the token as the password.
 * @param value     trimmed; empty = there is no header
 * @param basic     memory for the decoded text; hfd_credential_wipe after use. NULL = Basic is not
 * accepted
 * @param out       the token, in value or in basic; empty unless NONE
 * @return HFD_AUTH_NONE, HFD_AUTH_ABSENT, HFD_AUTH_UNREADABLE
 */
enum hfd_auth_fault hfd_credential_read(hfd_slice value, char basic[HFD_BASIC_MAX_BYTES],
                                        hfd_slice *out);

/** Wipes the text of a Basic header. @param secret  what hfd_credential_read gave */
void hfd_credential_wipe(char basic[HFD_BASIC_MAX_BYTES], hfd_slice secret);

/**
 * Cuts "/t/TOKEN" off a path, in any spelling that the router takes for it: a doubled slash in
 * front, or an escaped "t".
 * @param path   the path of the request; what follows the prefix, or "/", if there is one
 * @param token  as it stands in the path; p is NULL if there is none
 */
void hfd_credential_cut(hfd_slice *path, hfd_slice *token);

#endif
