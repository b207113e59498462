/*
 * The decision about a request: allow, 401, or 403 with a sentence. Pure. Thread: any.
 */
#ifndef HFD_AUTH_DECIDE_H
#define HFD_AUTH_DECIDE_H

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
    X(MALFORMED,    "malformed",    "the token is not a well-formed JWT") \
    X(ALGORITHM,    "algorithm",    "the token is signed by another algorithm than that of its key") \
    X(KEY,          "key",          "the key that signed the token is not trusted here") \
    X(SIGNATURE,    "signature",    "the signature of the token is not valid") \
    X(ISSUER,       "issuer",       "the issuer of the token is not that of its key") \
    X(AUDIENCE,     "audience",     "the token is for another audience") \
    X(IDENTITY,     "identity",     "the token does not name its caller")
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
    hfd_scopes scopes;
    hfd_slice name; /* e-mail shaped: ci@hyperfleet.local */
};

enum hfd_access {
    HFD_ACCESS_ALLOWED,
    HFD_ACCESS_UNKNOWN,   /* 401 */
    HFD_ACCESS_FORBIDDEN, /* 403 */
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

#endif
