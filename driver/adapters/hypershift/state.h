/*
 * Reads a HostedCluster or a NodePool, and judges it: the gate that it waits for, whether it
 * serves, whether the order has to be mended. Pure. README.md has the tables. Sources:
 * HyperShift API, conditions of HostedCluster and NodePool. Thread: any.
 */
#ifndef HFD_HYPERSHIFT_STATE_H
#define HFD_HYPERSHIFT_STATE_H

#include "driver/base/jsonx.h"

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
static inline hfd_slice hfd_hs_metadata(const json_t *object, const char *key)
{
    return hfd_json_text(json_object_get(object, "metadata"), key);
}
/** A label, or empty. */
static inline hfd_slice hfd_hs_label(const json_t *object, const char *key)
{
    return hfd_json_text(json_object_get(json_object_get(object, "metadata"), "labels"), key);
}
/** The generation of the HyperFleet resource that was applied, 0 if it cannot be read. */
int64_t hfd_hs_applied_generation(const json_t *object);
/** True if its deletion was requested. */
static inline bool hfd_hs_is_deleting(const json_t *object)
{
    return hfd_hs_metadata(object, "deletionTimestamp").len > 0;
}
/** The generation of the object itself: it grows with each change of its spec. */
static inline int64_t hfd_hs_object_generation(const json_t *object)
{
    return json_integer_value(json_object_get(json_object_get(object, "metadata"), "generation"));
}
/**
 * Writes what holds up a deletion, cut if there is no room: " since TIME: finalizers a, b;
 * HostedClusterDestroyed: words". Empty before the deletion was requested.
 */
void hfd_hs_held_text(const json_t *object, char *out, size_t size);

/** The facts that a judgement depends on. */
struct hfd_hs_facts {
    const json_t *object;  /* as read; NULL = it is not there */
    int64_t generation;    /* of the HyperFleet resource */
    bool serves;           /* an earlier or this generation was reached before */
    bool wants_nodes;      /* of a cluster: a nodepool of it wants nodes */
    int64_t now_us;        /* wall */
    int64_t grace_us;      /* the time that a condition which refuses is given */
    const json_t *refused; /* as hfd_hs_refusals_json wrote it at the last look; NULL = nothing */
};

/** A condition that is False, and refuses the order if it stays so. */
struct hfd_hs_refusal {
    const char *type;
    int64_t since_us; /* wall: when it was first seen so at this generation */
};
#define HFD_HS_REFUSALS_MAX 6

enum hfd_hs_stage {
    HFD_HS_WAITS,   /* a gate is closed */
    HFD_HS_REACHED, /* all gates are open at this generation */
    HFD_HS_PAUSED,  /* reached as well: HyperShift has paused, as the order says */
    HFD_HS_REFUSED, /* the order has to be mended */
};

struct hfd_hs_judgement {
    enum hfd_hs_stage stage;
    const char *gate; /* the first closed one, or the condition that refuses; NULL = none */
    int64_t until_us; /* wall: the gate refuses if it is False until then; 0 = it does not */
    int progress;     /* 0 to 100: the weight of the last open gate */
    bool up;          /* what it serves is available now */
    char reason[64];
    char message[400]; /* HyperShift's words about the gate, may be empty */
    char down_reason[64];
    char down_message[400];                              /* why it is not up */
    struct hfd_hs_refusal refusals[HFD_HS_REFUSALS_MAX]; /* also in their grace */
    size_t refusal_count;
};

/** Judge an object by its kind. A text that does not fit is cut. */
void hfd_hs_judge_cluster(const struct hfd_hs_facts *facts, struct hfd_hs_judgement *out);
void hfd_hs_judge_pool(const struct hfd_hs_facts *facts, struct hfd_hs_judgement *out);

/**
 * Writes the refusals of a judgement, for facts.refused of the next one:
 * {"generation": 7, "since": {"ValidReleaseImage": "2026-01-01T00:00:00Z"}}.
 * @return gives; NULL = out of memory
 */
json_t *hfd_hs_refusals_json(const struct hfd_hs_judgement *judgement, int64_t generation);

/** True unless the spec of a nodepool, with its `raw`, asks for no nodes. */
bool hfd_hs_pool_wants_nodes(const json_t *spec);

#endif
