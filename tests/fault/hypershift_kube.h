/*
 * A Kubernetes API server in memory, for the simulation of the HyperShift adapter. It stands in for
 * driver/kube/client.c: it defines its functions. It checks the rules K1 to K4 of
 * hypershift_sim.c at each request. Thread: one.
 */
#ifndef HFD_TESTS_FAULT_HYPERSHIFT_KUBE_H
#define HFD_TESTS_FAULT_HYPERSHIFT_KUBE_H

#include "driver/kube/client.h"
#include "tests/lib/seams.h"

#define KUBE_STAGES 5 /* of a HostedCluster; 0 = no status */

/** Ends the run. */
typedef void kube_fail_fn(void *ctx, const char *rule, const char *what, const char *name);
/**
 * True if HyperFleet wants the object to be as in the document, whose labels name the resource.
 * doc: NULL = to be there no more
 */
typedef bool kube_wants_fn(void *ctx, const json_t *labels, const json_t *doc);

struct kube_sim {
    struct test_rng *plan;
    kube_fail_fn *fail;
    kube_wants_fn *wants;
    void (*beside)(void *ctx); /* called after a request: callers go on beside the adapter */
    void *ctx;
    json_t *objects; /* array of {plural, doc, stage} */
    json_t *events;  /* array of {plural, doc, gone} */
    int64_t version, uids;
    unsigned faults; /* share of 256 */
    int die_in;      /* the program dies in that request; 0 = never */
    bool dead;
    uint64_t trace; /* hash of the requests */
    unsigned requests, lost, refused, deaths;
};

/** The one that the functions of client.h speak to. */
extern struct kube_sim kube_sim;

/** An object's entry, or NULL. Borrowed. */
json_t *kube_sim_find(const char *plural, const char *name);
/** How many objects of ours there are. guresid: NULL = of all resources */
size_t kube_sim_ours(const char *plural, const char *guresid);
/** A stranger makes a HostedCluster. */
void kube_sim_stranger(const char *name);
/** A person deletes an object; finalizers keep it. */
void kube_sim_delete(json_t *entry);
/**
 * HyperShift goes on with one object by one step.
 * @param back  a cluster falls back by a stage
 */
void kube_sim_operate(json_t *entry, bool back);
/** A new program connects: watches are gone. */
void kube_sim_reconnect(void);
/** Frees all. */
void kube_sim_clear(void);

#endif
