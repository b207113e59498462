/*
 * A PacemakerCluster document as plain structs: what an observer of a two-node cluster says of its
 * nodes, their resources and their fencing agents. Pure. Thread: any. Source: PacemakerCluster,
 * "Status Structure".
 */
#ifndef HFD_HEALTH_DOCUMENT_H
#define HFD_HEALTH_DOCUMENT_H

#include "driver/base/jsonx.h"
#include "driver/fleet/condition.h"

#define HFD_HEALTH_NODES_MAX 5
#define HFD_HEALTH_UNITS_MAX 8

/** A resource of a node (Kubelet, Etcd), or a fencing agent that can fence the node. */
struct hfd_health_unit {
    hfd_slice name;
    hfd_slice method; /* of an agent: Redfish or IPMI; none for a resource */
    struct hfd_conditions conditions;
};

struct hfd_health_units {
    struct hfd_health_unit *items;
    size_t count; /* at most HFD_HEALTH_UNITS_MAX */
};

struct hfd_health_node {
    hfd_slice name;
    hfd_slice address; /* the first one: etcd uses it for its peer URLs */
    struct hfd_conditions conditions;
    struct hfd_health_units resources;
    struct hfd_health_units agents;
};

/**
 * The status of a document. Its conditions have the members of a report only: type, status, reason,
 * message, and last_transition_us.
 */
struct hfd_health_document {
    bool has_status; /* false: created, and the collector has not written a status yet */
    int64_t updated_us;
    struct hfd_conditions conditions;
    struct hfd_health_node *nodes;
    size_t node_count; /* at most HFD_HEALTH_NODES_MAX */
};

/**
 * Reads a document that hfd_health_check has accepted.
 * @param doc  borrows; out copies what it keeps into mem
 * @return HFD_OK, HFD_NOMEM, HFD_CORRUPT (the rules do not hold: a stored document is damaged)
 */
HFD_MUST_CHECK hfd_rc hfd_health_parse(const json_t *doc, struct hfd_arena *mem,
                                       struct hfd_health_document *out, struct hfd_err *err);

/** Tells if the condition of that type is True. Unknown and absent are not. */
bool hfd_health_is_true(const struct hfd_conditions *cs, const char *type);

#endif
