/*
 * The validation rules R1 to R22 of a PacemakerCluster document, as one table with one row a rule.
 * The table checks a document, drops the fields that it does not know, and prints the page of the
 * manual. Rules that need the stored document are in hfd_health_follows. Pure; allocates from the
 * arena given. Thread: any. Source: PacemakerCluster, "Validation Rules", and its CRD.
 *
 * A PacemakerCluster document as plain structs: what an observer of a two-node cluster says of its
 * nodes, their resources and their fencing agents. Pure. Thread: any. Source: PacemakerCluster,
 * "Status Structure".
 *
 * PacemakerCluster documents as they come in: checked, pruned and parsed. Pure. Thread: any.
 *
 * The objects of EMCO's status query that a PacemakerCluster document stands for: its nodes, their
 * resources and their fencing agents. Pure. Thread: any.
 *
 * How a PacemakerCluster document may follow the stored one (rules R2 to R4 and R7), and how the
 * Kubernetes-shaped sub-resource puts two documents together. Pure. Thread: any. Source:
 * PacemakerCluster, "Status Subresource Design" and "Timestamp validation".
 */
#ifndef HFD_HEALTH_DOCUMENT_H
#define HFD_HEALTH_DOCUMENT_H

#include "driver/fleet/condition.h"
#include "driver/fleet/report.h"

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

struct hfd_health_rule_text {
    const char *number; /* "R12" */
    const char *place;  /* "status.nodes[].addresses[]" */
    const char *field;  /* "address" */
    const char *text;   /* "must be a valid global unicast ..." */
};
/** Gives a row of the table, for the manual and its test. @return false: it has no such row */
bool hfd_health_rule_at(size_t index, struct hfd_health_rule_text *out);

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
 * Reads a document that the rules accept.
 * @param doc  borrows; out copies what it keeps into mem
 * @return HFD_OK, HFD_NOMEM, HFD_CORRUPT (the rules do not hold: a stored document is damaged)
 */
HFD_MUST_CHECK hfd_rc hfd_health_parse(const json_t *doc, struct hfd_arena *mem,
                                       struct hfd_health_document *out, struct hfd_err *err);

/** Tells if the condition of that type is True. Unknown and absent are not. */
static inline bool hfd_health_is_true(const struct hfd_conditions *cs, const char *type)
{
    const struct hfd_condition *c = hfd_condition_find(cs, hfd_slice_of(type));

    return c != NULL && c->status == HFD_STATUS_TRUE;
}

/** The member of a report's data that has the document. */
#define HFD_HEALTH_MEMBER "pacemakerCluster"

/** A document as it came in, checked and pruned. */
struct hfd_health_reading {
    bool present;   /* false: the report has no document */
    hfd_slice text; /* canonical JSON */
    struct hfd_health_document document;
    struct hfd_health_violations violations; /* when it was refused */
};

/**
 * Checks a document. Drops its unknown fields.
 * @param doc   changed in place
 * @param root  its path for the fields of violations
 * @param mem   keeps what out points to
 * @return HFD_OK, HFD_INVALID (out->violations), HFD_TOO_LARGE, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_health_read(json_t *doc, const char *root, struct hfd_arena *mem,
                                      struct hfd_health_reading *out, struct hfd_err *err);

/** The same with the document in the data of a report, if it has one. */
HFD_MUST_CHECK hfd_rc hfd_health_read_report(hfd_slice data, struct hfd_arena *mem,
                                             struct hfd_health_reading *out, struct hfd_err *err);

#define HFD_HEALTH_OBJECTS_MAX (HFD_HEALTH_NODES_MAX * (1 + 2 * HFD_HEALTH_UNITS_MAX))

struct hfd_health_object {
    struct hfd_object object;
    const json_t *entry; /* of the node, resource or agent in the document */
};

struct hfd_health_objects {
    struct hfd_health_object items[HFD_HEALTH_OBJECTS_MAX];
    size_t count;
};

/**
 * Finds the objects of a document that the rules accept. An offline node is not present, and
 * neither is what runs on it.
 * @param doc  borrowed by out; NULL has no objects
 */
void hfd_health_objects(const json_t *doc, struct hfd_health_objects *out);

/** Adds data.objects and the objects of the document in the data of an observer's report. */
void hfd_health_count_objects(const json_t *data, struct hfd_object_counts *counts);

enum hfd_health_follows {
    HFD_HEALTH_NEWER,   /* it takes the place of the stored one */
    HFD_HEALTH_SAME,    /* lastUpdated is equal: it takes the place if it differs */
    HFD_HEALTH_EARLIER, /* refused, R7 */
    HFD_HEALTH_REMOVED, /* refused, R2: it has no status, and the stored one has */
};

/** @param stored  NULL = there is none */
enum hfd_health_follows hfd_health_follows(const struct hfd_health_document *stored,
                                           const struct hfd_health_document *next);

/**
 * Makes a document with the status of one and everything else of another. A create takes the status
 * of none. PUT of the main resource takes that of the stored document. PUT of the status puts its
 * own into the stored document.
 * @param main    borrows
 * @param status  borrows; NULL = no status
 * @param out     gives; shares members with the two
 * @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_health_join(const json_t *main, const json_t *status, json_t **out,
                                      struct hfd_err *err);

#endif
