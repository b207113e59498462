/*
 * Judges an answer of a Kubernetes API server: what happened, whose fault it is, and which field.
 * Pure. README.md has the table. Thread: any.
 */
#ifndef HFD_KUBE_REFUSAL_H
#define HFD_KUBE_REFUSAL_H

#include "driver/kube/client.h"

enum hfd_kube_class {
    HFD_KUBE_DONE,        /* 2xx */
    HFD_KUBE_ABSENT,      /* 404: the object is not there */
    HFD_KUBE_CONFLICT,    /* another manager owns a field: ApplyConflict */
    HFD_KUBE_INVALID,     /* the object can never be accepted as it is */
    HFD_KUBE_AGAIN,       /* it may be accepted at once, or soon */
    HFD_KUBE_NO_PLACE,    /* the namespace is missing, or is being deleted */
    HFD_KUBE_FORBIDDEN,   /* 401, 403: our credentials */
    HFD_KUBE_NO_TYPE,     /* the server does not know this kind of object */
    HFD_KUBE_EXPIRED,     /* 410: a list or watch has to begin anew */
    HFD_KUBE_FOREIGN,     /* not a word of the API server, about this call: tried again */
    HFD_KUBE_UNREACHABLE, /* 408, 425, 429, 5xx of anyone; a 2xx that is no result */
};

struct hfd_kube_refusal {
    enum hfd_kube_class class;
    hfd_slice reason;  /* of the Status, or empty; borrows from the answer */
    hfd_slice field;   /* the first cause's, without a leading dot, or empty; borrows */
    char message[512]; /* in words; empty for DONE */
};

/** Judges an answer. */
void hfd_kube_judge(const struct hfd_kube_answer *answer, struct hfd_kube_refusal *out);

/** The name of a class as a condition's reason: "ApplyConflict", "InvalidManifest", "Forbidden". */
const char *hfd_kube_class_reason(enum hfd_kube_class class);

/** The shortest and the longest pause after failed attempts. */
struct hfd_kube_pauses {
    int64_t min_us, max_us;
};

/**
 * The pause after failed attempts: the shortest, doubled by each, at most the longest, and up to a
 * quarter less.
 * @param attempts  failures in a row, from 1
 * @param random    any bits
 */
int64_t hfd_kube_backoff_us(const struct hfd_kube_pauses *pauses, int attempts, uint32_t random);

#endif
