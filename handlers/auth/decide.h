/*
 * Scopes: what a caller may do, and what a route needs. A row of the table of routes names its need
 * (handlers/http/routes.c); this file says which scopes satisfy a need. Pure. Thread: any.
 *
 * The decision about a request: allow, or 401, 403 or 503 with a sentence. Pure. Thread: any.
 *
 * Finds credentials in a request: the Authorization header, or the secret prefix of the path. Pure.
 * Thread: any.
 */
#ifndef HFD_AUTH_DECIDE_H
#define HFD_AUTH_DECIDE_H

#include "driver/base/buf.h"
#include "driver/base/slice.h"

/* clang-format off */
/* name, text, what it may */
#define HFD_SCOPE_LIST(X) \
    X(DRIVER,      "driver",      "PUT, GET and DELETE of a GUResID, its `/status`, and `/validate`") \
    X(FLEET_READ,  "fleet-read",  "GET below `/api/hyperfleet`") \
    X(ADAPTER,     "adapter",     "fleet-read, and reports: POST and PUT of `statuses`, POST and DELETE of `pacemaker`, PUT of `pacemaker/status`") \
    X(FLEET_WRITE, "fleet-write", "fleet-read, and POST, PATCH and DELETE of clusters and nodepools; not force-delete") \
    X(VIEW,        "view",        "GET below `/api/driver/v1`, `/{GUResID}/status`, and the status page") \
    X(ADMIN,       "admin",       "all, PUT of `pacemaker`, force-delete, `?force=true` and `/admin` included")
/* clang-format on */

#define HFD_SCOPE_ENUM_(name, text, may) HFD_SCOPE_##name,
enum hfd_scope {
    HFD_SCOPE_LIST(HFD_SCOPE_ENUM_) HFD_SCOPE_COUNT
};
#undef HFD_SCOPE_ENUM_

/** A set of scopes: one bit each. */
typedef unsigned hfd_scopes;
#define HFD_SCOPE_BIT(name) (1u << HFD_SCOPE_##name)

/** The rights of a caller: scopes, and the adapters that its scope adapter is bound to. */
struct hfd_grant {
    hfd_scopes scopes;
    hfd_slice adapters; /* the list with each "adapter=NAME"; empty = any adapter */
};

/* clang-format off */
/* name, the scope that a refused caller lacks, the scopes that satisfy it; admin always does */
#define HFD_NEED_LIST(X) \
    X(OPEN,        "",               0) \
    X(ANY,         "any",            HFD_SCOPE_BIT(DRIVER) | HFD_SCOPE_BIT(FLEET_READ) | HFD_SCOPE_BIT(ADAPTER) | HFD_SCOPE_BIT(FLEET_WRITE) | HFD_SCOPE_BIT(VIEW)) \
    X(DRIVER,      "driver",         HFD_SCOPE_BIT(DRIVER)) \
    X(STATUS,      "driver or view", HFD_SCOPE_BIT(DRIVER) | HFD_SCOPE_BIT(VIEW)) \
    X(FLEET_READ,  "fleet-read",     HFD_SCOPE_BIT(FLEET_READ) | HFD_SCOPE_BIT(ADAPTER) | HFD_SCOPE_BIT(FLEET_WRITE)) \
    X(REPORT,      "adapter",        HFD_SCOPE_BIT(ADAPTER)) \
    X(FLEET_WRITE, "fleet-write",    HFD_SCOPE_BIT(FLEET_WRITE)) \
    X(VIEW,        "view",           HFD_SCOPE_BIT(VIEW)) \
    X(ADMIN,       "admin",          0)
/* clang-format on */

/*
 * Needs of routes. OPEN: nothing. ANY: a known caller, for paths that are no route. UNSET is no
 * need: the server refuses a table with such a row.
 */
#define HFD_NEED_ENUM_(name, text, scopes) HFD_NEED_##name,
enum hfd_need {
    HFD_NEED_UNSET,
    HFD_NEED_LIST(HFD_NEED_ENUM_) HFD_NEED_COUNT
};
#undef HFD_NEED_ENUM_

/** Returns true if a caller with these scopes satisfies a need other than OPEN. */
bool hfd_need_is_met(enum hfd_need need, hfd_scopes scopes);

/**
 * Parses "driver" or "driver,adapter=dns"; spaces around a name do not count.
 * @param out  borrows the text if it names adapters
 * @return HFD_OK, HFD_INVALID (the message has the list of scopes)
 */
HFD_MUST_CHECK hfd_rc hfd_grant_parse(hfd_slice text, struct hfd_grant *out, struct hfd_err *err);
/** Adds "driver,adapter=dns", or "driver","adapter=dns" as members of a JSON array. */
void hfd_grant_format(struct hfd_buf *b, const struct hfd_grant *grant, bool json);
/** Returns true if a caller that may report may do so as this adapter. */
bool hfd_grant_has_adapter(const struct hfd_grant *grant, hfd_slice adapter);

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
 * @param basic     memory for the decoded text; wiped after use. NULL = Basic is not
 * accepted
 * @param out       the token, in value or in basic; empty unless NONE
 * @return HFD_AUTH_NONE, HFD_AUTH_ABSENT, HFD_AUTH_UNREADABLE
 */
enum hfd_auth_fault hfd_credential_read(hfd_slice value, char basic[HFD_BASIC_MAX_BYTES],
                                        hfd_slice *out);

/**
 * Cuts "/t/TOKEN" off a path, in any spelling that the router takes for it: a doubled slash in
 * front, or an escaped "t".
 * @param path   the path of the request; what follows the prefix, or "/", if there is one
 * @param token  as it stands in the path; p is NULL if there is none
 */
void hfd_credential_cut(hfd_slice *path, hfd_slice *token);

#endif
