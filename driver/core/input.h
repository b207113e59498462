/*
 * InputData of the Driver API, checked and turned into a plain struct. Source:
 * Humanitec Driver API 0.9.3, InputData; driver/README.md,
 * decision 12.
 *
 * The errors of an input, gathered so that all of them are told at once. Thread: any.
 */
#ifndef HFD_CORE_INPUT_H
#define HFD_CORE_INPUT_H

#include "driver/base/arena.h"
#include "schemas/validate.h"
#include "store/kind.h"

struct hfd_input_errors {
    struct hfd_violations *found; /* at most HFD_VIOLATIONS_MAX; further ones are dropped */
    struct hfd_arena *mem;        /* holds the texts */
    hfd_rc first;                 /* the code of the first one, which is that of the answer */
};

/**
 * Notes a mistake. A field that has one already gets no second one.
 * @return HFD_OK or HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_input_errors_add(struct hfd_input_errors *m, hfd_rc rc, const char *field,
                                           const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/**
 * Notes those that a schema found.
 * @param rc  what hfd_schema_validate returned
 * @return HFD_OK also for HFD_INVALID; else rc, or HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_input_errors_add_all(struct hfd_input_errors *m, hfd_rc rc,
                                               const struct hfd_violations *found);

/** Fails with the first mistake, its field in front of its message. HFD_OK if there is none. */
HFD_MUST_CHECK hfd_rc hfd_input_errors_result(const struct hfd_input_errors *m,
                                              struct hfd_err *err);

#define HFD_INPUT_NODEPOOLS_MAX 100

struct hfd_input_part {
    hfd_slice name; /* given, or derived from the GUResID: satisfies HyperFleet's rules */
    bool name_given;
    hfd_slice spec;   /* JSON object, canonical */
    hfd_slice labels; /* JSON object of strings, canonical, with humanitec_guresid */
};

struct hfd_input {
    hfd_slice type; /* as received */
    enum hfd_kind kind;
    struct hfd_input_part cluster; /* kind cluster */
    hfd_slice cluster_id;          /* kind nodepool: one of these two */
    hfd_slice cluster_guresid;
    struct hfd_input_part
        *nodepools; /* kind cluster: 0..n with distinct names; kind nodepool: exactly one */
    size_t nodepool_count;
    hfd_slice protect;            /* as hfd_resource_row.protect; no part of the digest */
    hfd_slice credentials;        /* driver.secrets as JSON, plain; "" when there are none */
    hfd_slice canonical;          /* what the digest is taken of: type, resource, driver.values,
                                     driver.secrets without account */
    struct hfd_violations errors; /* when it was refused: all that is wrong, the first ones */
};

/** An order of a PUT, as an adapter of this program sees it before it is accepted. */
struct hfd_ordered {
    enum hfd_kind kind;
    hfd_slice cluster_name;     /* given or derived; empty for a nodepool resource */
    const json_t *cluster_spec; /* for a nodepool resource: its cluster's; NULL = not known here */
    json_t *values;        /* driver.values; strings in it that spell numbers may become numbers */
    const json_t *secrets; /* driver.secrets; NULL = none */
};

/**
 * Notes what is wrong with an order.
 * @return HFD_OK also if it has errors; HFD_LIMIT, HFD_NOMEM
 */
typedef hfd_rc hfd_order_check_fn(const void *ctx, const struct hfd_ordered *order,
                                  struct hfd_input_errors *errors, struct hfd_err *err);

struct hfd_input_rules {
    const hfd_slice *cluster_types; /* matched on the part of type behind "org/" */
    size_t cluster_type_count;
    const hfd_slice *nodepool_types;
    size_t nodepool_type_count;
    const struct hfd_schema *spec_schema[3]; /* by enum hfd_kind: what every spec must satisfy; NULL
                                                = any object will do */
    hfd_order_check_fn *check_order;         /* NULL = none */
    const void *check_ctx;
    const hfd_slice *overrides; /* dotted paths under driver.values that `resource` may override;
                                   none by default */
    size_t override_count;
    /*
     * The settings that give a k8s-cluster the outputs that the orchestrator needs, and are not
     * set; "" = none. Filled in by hfd_driver_complete.
     */
    char lacking_outputs[160];
};

/** The kind (enum hfd_kind) that a resource type means, or 0: it is not served. */
int hfd_input_kind_of(const struct hfd_input_rules *rules, hfd_slice type);

/** A PUT body, and what it is read by. */
/**
 * True for k8s-cluster, also with an organization in front, while lacking_outputs has an entry: its
 * orders are refused.
 */
bool hfd_input_lacks_outputs(const struct hfd_input_rules *rules, hfd_slice type);

struct hfd_input_source {
    const struct hfd_input_rules *rules;
    hfd_slice guresid;
    int only; /* the kind that the path fixes, or 0 */
    hfd_slice body;
};

/**
 * Parses and checks a PUT body.
 * @return HFD_OK, HFD_INVALID or HFD_MALFORMED (RES-101: field and what was expected), HFD_LIMIT,
 * HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_input_parse(const struct hfd_input_source *source, struct hfd_arena *mem,
                                      struct hfd_input *out, struct hfd_err *err);

/**
 * The name that a cluster or nodepool gets when none is given.
 * @param index  counts from 1 among a cluster's nodepools; 0 = the resource's own part
 */
hfd_slice hfd_input_default_name(enum hfd_kind kind, hfd_slice guresid, unsigned index,
                                 struct hfd_arena *mem);

#endif
