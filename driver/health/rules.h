/*
 * The validation rules R1 to R22 of a PacemakerCluster document, as one table with one row a rule.
 * The table checks a document, drops the fields that it does not know, and prints the page of the
 * manual. Rules that need the stored document are in intake.h. Pure; allocates from the arena
 * given. Thread: any. Source: PacemakerCluster, "Validation Rules", and its CRD.
 *
 * The address rule of PacemakerCluster: an IP address of a node, in its one canonical form. It
 * agrees with Kubernetes' ip.isCanonical() and isGlobalUnicast(), which are Go's net/netip. They
 * print "::102:304" where inet_ntop of glibc prints "::1.2.3.4".
 * Pure. Thread: any.
 */
#ifndef HFD_HEALTH_RULES_H
#define HFD_HEALTH_RULES_H

#include "driver/base/slice.h"

#include <jansson.h>

struct hfd_arena;

/**
 * Tells if the text is a global unicast IPv4 or IPv6 address in canonical form. Private and
 * documentation addresses are; unspecified, loopback, link-local, multicast and broadcast ones are
 * not, and neither are zones, prefixes and IPv4 addresses mapped into IPv6.
 */
bool hfd_health_address_ok(hfd_slice text);

/** The most that are listed of one document; further ones are counted. */
#define HFD_HEALTH_VIOLATIONS_MAX 1000
/** A document's compact JSON, after unknown fields were dropped. */
#define HFD_HEALTH_DOCUMENT_MAX_BYTES ((size_t)512 * 1024)

struct hfd_health_violation {
    hfd_slice field;   /* "data.pacemakerCluster.status.nodes[0].nodeName" */
    const char *rule;  /* "R9" */
    hfd_slice message; /* "must be at most 253 characters, has 254" */
};

struct hfd_health_violations {
    struct hfd_health_violation *items; /* in the order of the document */
    size_t count;
    size_t total; /* with those that are not listed */
};

/**
 * Finds every violation of the rules in one document.
 *
 * @param doc   the PacemakerCluster object; borrows
 * @param root  its path for the fields of violations, "data.pacemakerCluster"; "" = none
 * @param mem   keeps what out points to
 * @param out   the violations; empty unless the answer is HFD_INVALID
 * @return HFD_OK, HFD_INVALID (err names the first violation), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_health_check(const json_t *doc, const char *root, struct hfd_arena *mem,
                                       struct hfd_health_violations *out, struct hfd_err *err);

/**
 * Drops the fields that the rules do not name, as a Kubernetes API server does, and null members.
 * @param doc  one that hfd_health_check accepted; changed in place
 */
void hfd_health_prune(json_t *doc);

/** How many rows the table has, and one of them: for the manual and its test. */
size_t hfd_health_rule_count(void);
struct hfd_health_rule_text {
    const char *number; /* "R12" */
    const char *place;  /* "status.nodes[].addresses[]" */
    const char *field;  /* "address" */
    const char *text;   /* "must be a valid global unicast ..." */
};
struct hfd_health_rule_text hfd_health_rule_at(size_t index);

#endif
