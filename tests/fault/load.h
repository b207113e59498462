/*
 * Work for the programs of this folder. Orchestrator and adapters order, repeat, change, refuse,
 * report and delete to the end, on a handful of resources, with several calls to one commit.
 *
 * It is planned once, from a seed, on a store without faults. The plan keeps the content of the
 * database after each commit. The same plan on another store gives the same bytes. So the store
 * after a fault is compared with the whole expected content, table by table.
 *
 * Thread: the test's own. Source: driver/core/README.md; driver/README.md.
 */
#ifndef HFD_TESTS_FAULT_LOAD_H
#define HFD_TESTS_FAULT_LOAD_H

#include <stdatomic.h>

#include "tests/lib/world.h"

#define LOAD_CALLS_MAX 5
#define LOAD_DIGEST_BYTES 16

enum load_what {
    LOAD_PUT,
    LOAD_DELETE,
    LOAD_REPORT
};

struct load_call {
    enum load_what what;
    char guresid[16];
    char *body; /* PUT; owned by the plan */
    char fleet_id[40];
    enum hfd_kind kind;
    const char *adapter;
    int64_t generation;
    bool terminal, finalized;
    hfd_rc rc; /* what it answers */
};

struct load_batch {
    int64_t now_us;
    struct load_call calls[LOAD_CALLS_MAX];
    size_t count;
    unsigned char after[LOAD_DIGEST_BYTES]; /* of the database behind it */
};

struct load_plan {
    uint64_t seed;
    struct load_batch *batches;
    size_t count;
    unsigned char before[LOAD_DIGEST_BYTES]; /* of the new database */
};

/** @param together  most calls to one commit; 1 = each has its own */
void load_plan_make(struct load_plan *plan, uint64_t seed, size_t batches, size_t together);
void load_plan_free(struct load_plan *plan);

/** A plan under way on a world of its own, whose store the caller starts and stops. */
struct load {
    struct world world;
    const struct load_plan *plan;
    struct batch *batch;
    atomic_size_t
        answered; /* batches that were answered as planned: nothing of these may be lost */
};

void load_init(struct load *l, const struct load_plan *plan);
void load_fini(struct load *l);

/**
 * Submits a batch, so that it becomes one commit, and waits for its answers and the writer's
 * housekeeping. The answers are counted in l->answered before any caller can see them. @return
 * HFD_OK when every call answered what was planned; else the first other answer, or why the store
 * takes no more work
 */
hfd_rc load_run(struct load *l, size_t batch);

/** A digest of all rows of all tables. @return as hfd_store_read */
hfd_rc load_digest(struct world *w, unsigned char out[LOAD_DIGEST_BYTES]);
/**
 * How many answered batches are missing, by the digest; -1 when the next one is there as well;
 * LOAD_UNKNOWN when it is no such state.
 */
#define LOAD_UNKNOWN 100000
int load_missing(const struct load_plan *plan, size_t answered,
                 const unsigned char digest[LOAD_DIGEST_BYTES]);

/**
 * Checks the rules of every committed state: the engine's own check of the file, the owner of every
 * row, and all totals. @return NULL, or what is wrong
 */
const char *load_unsound(struct world *w);

/** Orders something new. @return NULL, or what is wrong */
const char *load_works(struct world *w);

#endif
