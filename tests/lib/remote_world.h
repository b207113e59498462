/*
 * The domain of world.h with a remote HyperFleet that is played in memory. Its resources are JSON
 * documents, and each wire generation has its paths, names and refusals. Passes run as the remote
 * thread runs them, one request at a time. Any one request can have a fault; the test moves time.
 */
#ifndef HFD_TESTS_REMOTE_WORLD_H
#define HFD_TESTS_REMOTE_WORLD_H

#include <jansson.h>

#include "driver/backend/remote/http.h"
#include "driver/backend/remote/work.h"
#include "driver/backend/remote/pass.h"
#include "tests/lib/world.h"

struct hfd_remote_request;

#define REMOTE_OWNER "this-server"

enum remote_generation {
    REMOTE_G2,  /* Ready; no DELETE; PATCH of clusters' specs alone */
    REMOTE_G3,  /* Reconciled; everything */
    REMOTE_G31, /* the same, strict in paging and bodies, lists without a kind */
    REMOTE_GENERATIONS
};

enum remote_fault {
    REMOTE_FAULT_NONE,
    REMOTE_FAULT_LOST,       /* the request does not arrive */
    REMOTE_FAULT_UNANSWERED, /* it is carried out, and its answer lost */
    REMOTE_FAULT_500,
    REMOTE_FAULT_429,
    REMOTE_FAULT_GARBAGE, /* carried out; the answer is no JSON */
    REMOTE_FAULT_CUT,     /* carried out; the answer ends in its middle */
    REMOTE_FAULT_GATEWAY, /* a gateway in front of it has lost its way, and says 404 in JSON of its
                             own */
    REMOTE_FAULT_CRASH,   /* the driver dies before it sends the request */
    REMOTE_FAULT_CRASH_LATE, /* ... when it is carried out, before the answer is taken */
    REMOTE_FAULT_CRASH_SLOW, /* ... and a creation is carried out 20 s later, or before the next one
                                there; anything else never */
    REMOTE_FAULTS
};

struct remote_world {
    struct world w;
    struct hfd_remote_policy policy;
    enum remote_generation generation;
    json_t *resources; /* array of documents; each with a member "reports" that is not shown */
    int made;          /* ids given so far */
    int requests;      /* so far */
    int posts;         /* creations carried out */
    int patches;
    /* The fault, and the request from which on it counts. */
    enum remote_fault fault;
    int fault_in; /* requests until it; 0 = none is armed */
    bool fired;
    int refuse_status; /* every request is answered so, when it is not 0 */
    const char *refuse_body;
    bool (*refuses)(const struct hfd_remote_request *request); /* only these; NULL = all */
    struct hfd_remote_request slow; /* the creation that is still to be carried out */
    int64_t slow_us;                /* wall clock: when; 0 = there is none */
    /* Called when a request is carried out and its answer not taken yet; may be NULL. */
    void (*between)(struct remote_world *rw, const struct hfd_remote_request *request);
    void *between_ctx;
    /*
     * Called around each step of a pass, inside its transaction, may be NULL; then a step may fail,
     * which ends its pass.
     */
    void (*before_step)(struct remote_world *rw);
    void (*after_step)(struct remote_world *rw);
    bool loud; /* prints requests */
};

void remote_world_open(struct remote_world *rw, enum remote_generation generation);
void remote_world_close(struct remote_world *rw);

/** Does all that is due now, and what becomes due by it. @return requests made */
int remote_world_run(struct remote_world *rw);
/**
 * The first request of what is due first, which is not made; its texts last as long as the world.
 * @return whether there is one
 */
bool remote_world_first(struct remote_world *rw, struct hfd_remote_request *out);
/** Moves the clock to when something is due next, at most by max_us. */
void remote_world_wait(struct remote_world *rw, int64_t max_us);
/** Answers one request as the remote would. */
void remote_world_answer(struct remote_world *rw, const struct hfd_remote_request *request,
                         struct hfd_remote_answer *answer);

/** The live one of that name, or NULL. Borrowed. */
json_t *remote_find(struct remote_world *rw, const char *name);
/** How many there are of a kind ("Cluster", "NodePool"); the deleting ones too. */
int remote_count(const struct remote_world *rw, const char *kind);
/**
 * Makes a resource as a stranger would; labels is JSON. owner: the cluster's id, or NULL. @return
 * its document, borrowed
 */
json_t *remote_add(struct remote_world *rw, const char *owner, const char *name,
                   const char *labels);
/** The report of one adapter. */
struct remote_said {
    const char *adapter, *status, *reason;
    const char *data; /* JSON, or NULL */
};
/** An adapter reports now, on the resource's generation. */
void remote_report(struct remote_world *rw, json_t *resource, const struct remote_said *said);
/**
 * All adapters of all resources are done: with making those that live, with removing those that do
 * not.
 */
void remote_succeed_all(struct remote_world *rw);
/**
 * As a backup brings it back: at its first generation, with the spec of that, and nothing is
 * reported.
 */
void remote_restore(struct remote_world *rw, json_t *resource);
/** It is gone, whatever state it is in. */
void remote_remove(struct remote_world *rw, json_t *resource);

#endif
