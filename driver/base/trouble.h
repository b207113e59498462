/*
 * The list of what is wrong now, for the whole program. The part that meets a problem notes it, and
 * ends it when it is over. The status page, /healthz, `status`, `doctor` and the metric hfd_problem
 * show the same list. Each replica has its own. Thread: any.
 */
#ifndef HFD_BASE_TROUBLE_H
#define HFD_BASE_TROUBLE_H

#include "driver/base/buf.h"

/* clang-format off */
/*  enum name,    name,                what stands before the words,      section of the runbook */
#define HFD_TROUBLE_LIST(X)                                                                     \
    X(STORE,      "store",              "STORE REFUSES WRITES",            "hyperfleetdriverstoreaway")         \
    X(REMOTE,     "remote",             "REMOTE HYPERFLEET DOWN",          "hyperfleetdriverremotedown")        \
    X(MANAGEMENT, "management_cluster", "MANAGEMENT CLUSTER DOWN",         "hyperfleetdrivermanagementdown")    \
    X(DISK,       "disk",               "DISK NEARLY FULL",                "hyperfleetdriverdiskfull")          \
    X(SILENT,     "adapter_silent",     "ADAPTER SILENT",                  "hyperfleetdriveradaptersilent")     \
    X(STRANGER,   "adapter_not_required", "ADAPTER NOT REQUIRED",          "hyperfleetdriveradapternotrequired") \
    X(REPLICA,    "replica",            "REPLICAS DIFFER",                 "hyperfleetdriverreplicasmissing")   \
    X(CERTIFICATE,"certificate",        "CERTIFICATE EXPIRES",             "hyperfleetdrivercertificateexpiressoon") \
    X(TARGET,     "events_target",      "EVENTS NOT TAKEN",                "hyperfleetdrivereventsunsent")      \
    X(SEALING,    "sealing",            "SECRETS NOT RESEALED",            "hyperfleetdriversealingpending")
/* clang-format on */

#define HFD_TROUBLE_ENUM_(name, text, head, runbook) HFD_TROUBLE_##name,
enum hfd_trouble_kind {
    HFD_TROUBLE_LIST(HFD_TROUBLE_ENUM_) HFD_TROUBLE_KINDS
};
#undef HFD_TROUBLE_ENUM_

#define HFD_TROUBLES_MAX 64 /* further ones are not kept: the first say enough */

struct hfd_trouble {
    enum hfd_trouble_kind kind;
    char name[72];   /* of the adapter, management cluster or replica; empty = there is one only */
    char words[248]; /* its own, one sentence without a full stop */
    int64_t since_us, noted_us; /* wall clock: first and last note */
    int64_t waiting;            /* resources, or clusters and nodepools, that wait for its end */
};

/** "MANAGEMENT CLUSTER DOWN", "hyperfleetdriverremotedown". */
const char *hfd_trouble_head(enum hfd_trouble_kind kind);
const char *hfd_trouble_runbook(enum hfd_trouble_kind kind);

/**
 * Notes that a problem is there. One that is noted already keeps its beginning, and its words
 * follow.
 * @param name   at most 64 bytes count; empty = there is only one of the kind
 * @param words  borrowed; cut where it is too long
 * @return true when it begins; false when it was there, or the list is full
 */
bool hfd_trouble_note(enum hfd_trouble_kind kind, hfd_slice name, int64_t now_us, hfd_slice words);
/**
 * Notes how many orders wait for the end of a problem.
 * @param name  NULL = of all problems of the kind
 */
void hfd_trouble_set_waiting(enum hfd_trouble_kind kind, const hfd_slice *name, int64_t waiting);
/** A problem is over. Without it: no effect. @return true when it was there */
bool hfd_trouble_end(enum hfd_trouble_kind kind, hfd_slice name);
/** Ends those of a kind whose last note is older than a time. */
void hfd_trouble_end_before(enum hfd_trouble_kind kind, int64_t at_us);

/** Copies the list, in the order of the table, the oldest first. @return how many there are */
size_t hfd_troubles_copy(struct hfd_trouble out[HFD_TROUBLES_MAX]);
/**
 * Adds "; NAME WORDS" for each problem of a kind that began before a time: "; dns is required, and
 * has never reported". It takes no lock while there is no problem of this kind.
 */
void hfd_troubles_tell(enum hfd_trouble_kind kind, int64_t before_us, struct hfd_buf *b);
/**
 * Returns true for a list that people should be called for. A silent adapter alone does no harm
 * while nothing waits for it.
 */
bool hfd_troubles_degrade(const struct hfd_trouble *list, size_t count);
/** Adds the list as a JSON array: kind, name, since, message, waiting, runbook. */
void hfd_troubles_json(const struct hfd_trouble *list, size_t count, struct hfd_buf *b);

#endif
