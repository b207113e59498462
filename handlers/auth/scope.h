/*
 * Scopes: what a caller may do, and what a route needs. A row of the table of routes names its need
 * (handlers/http/routes.c); this file says which scopes satisfy a need. Pure. Thread: any.
 */
#ifndef HFD_AUTH_SCOPE_H
#define HFD_AUTH_SCOPE_H

#include "driver/base/buf.h"

/* clang-format off */
/* name, text, what it may */
#define HFD_SCOPE_LIST(X) \
    X(DRIVER,      "driver",      "PUT, GET and DELETE of a GUResID, its `/status`, and `/validate`") \
    X(FLEET_READ,  "fleet-read",  "GET below `/api/hyperfleet`") \
    X(ADAPTER,     "adapter",     "fleet-read, and reports: POST and PUT of `statuses`, POST and DELETE of `pacemaker`, PUT of `pacemaker/status`") \
    X(FLEET_WRITE, "fleet-write", "fleet-read, and POST, PATCH and DELETE of clusters and nodepools; not force-delete") \
    X(VIEW,        "view",        "GET below `/api/driver/v1`, `/{GUResID}/status`, and the status page") \
    X(ADMIN,       "admin",       "all, PUT of `pacemaker`, force-delete and `/admin` included")
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
/** Returns the scope that a refused caller lacks: "fleet-read". */
const char *hfd_need_text(enum hfd_need need);

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

#endif
