/*
 * Reads a HostedCluster or a NodePool, and judges it: the gate that it waits for, whether it
 * serves, whether the order has to be mended. Pure. README.md has the tables. Sources:
 * HyperShift API, conditions of HostedCluster and NodePool. Thread: any.
 */
#ifndef HFD_HYPERSHIFT_STATE_H
#define HFD_HYPERSHIFT_STATE_H

#include <jansson.h>

#include "driver/base/slice.h"

/** A condition of an object. */
struct hfd_hs_condition {
    bool found;
    bool current; /* it speaks of the object's present generation */
    bool is_true, is_false;
    hfd_slice reason, message; /* borrow from the object */
};

/** Finds a condition. Text in it that is missing is empty. */
struct hfd_hs_condition hfd_hs_condition_of(const json_t *object, const char *type);

/** A text member below metadata, or empty. "uid", "resourceVersion" */
hfd_slice hfd_hs_metadata(const json_t *object, const char *key);
/** A label, or empty. */
hfd_slice hfd_hs_label(const json_t *object, const char *key);
/** The generation of the HyperFleet resource that was applied, 0 if it cannot be read. */
int64_t hfd_hs_applied_generation(const json_t *object);
/** True if its deletion was requested. */
bool hfd_hs_is_deleting(const json_t *object);

/** The facts that a judgement depends on. */
struct hfd_hs_facts {
    const json_t *object;   /* as read; NULL = it is not there */
    int64_t generation;     /* of the HyperFleet resource */
    bool serves;            /* an earlier or this generation was reached before */
    bool wants_nodes;       /* of a cluster: a nodepool of it wants nodes */
    int64_t invalid_for_us; /* how long ValidConfiguration has been False without a pause */
};

enum hfd_hs_stage {
    HFD_HS_WAITS,   /* a gate is closed */
    HFD_HS_REACHED, /* all gates are open at this generation */
    HFD_HS_PAUSED,  /* reached as well: HyperShift has paused, as the order says */
    HFD_HS_REFUSED, /* the order has to be mended */
};

struct hfd_hs_judgement {
    enum hfd_hs_stage stage;
    const char *gate; /* the first closed one, or the condition that refuses; NULL = none */
    int progress;     /* 0 to 100: the weight of the last open gate */
    bool up;          /* what it serves is available now */
    char reason[64];
    char message[400]; /* HyperShift's words about the gate, may be empty */
    char down_reason[64];
    char down_message[400]; /* why it is not up */
};

/** Judge an object by its kind. A text that does not fit is cut. */
void hfd_hs_judge_cluster(const struct hfd_hs_facts *facts, struct hfd_hs_judgement *out);
void hfd_hs_judge_pool(const struct hfd_hs_facts *facts, struct hfd_hs_judgement *out);

/** True while ValidConfiguration is False at the present generation: facts.invalid_for_us counts.
 */
bool hfd_hs_is_invalid(const json_t *cluster);

#endif
