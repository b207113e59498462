/*
 * The whole domain without a socket: a driver on an embedded HyperFleet, with a real store in a
 * temporary folder. The test moves the time by hand and plays the adapters. Every call is one
 * transaction, as in the program.
 */
#ifndef HFD_TESTS_WORLD_H
#define HFD_TESTS_WORLD_H

#include "driver/core/resource.h"
#include "driver/fleet/report.h"
#include "tests/lib/seams.h"
#include "tests/lib/tmpdir.h"
#include "store/rows_resource.h"

struct world {
    char base[TMPDIR_MAX];
    char dir[TMPDIR_MAX + 8];
    struct hfd_store *store;
    struct hfd_store_reader *reader;
    struct hfd_keyring *ring;
    struct hfd_driver driver;
    struct test_clock clock;
    const struct hfd_clock *now; /* what calls take for the time; NULL = clock itself */
    struct test_rng rng;
    int only;             /* the kind that the path fixes, or 0 */
    struct hfd_arena mem; /* of the last calls; freed by world_close */
    struct hfd_err err;   /* of the last call */
};

/**
 * Required adapters: validation, dns for clusters; validation for nodepools. Deadlines 1 h,
 * estimates 10 min. Terminal: InvalidConfiguration.
 */
void world_open(struct world *w);
void world_close(struct world *w);
/** Fixtures of cmocka: *state is a world that is open. */
int world_setup(void **state);
int world_teardown(void **state);
/**
 * The two halves of world_open, for starts that may fail: all but the store; then the store.
 * @return as hfd_store_open, err in w->err
 */
void world_init(struct world *w);
hfd_rc world_start(struct world *w);
/** Closes the store alone; accepts one that is not open. */
void world_stop(struct world *w);
/** As a kill and a start: the store is closed and opened again. */
void world_restart(struct world *w);
/** As a start on an empty disk: all that was stored is lost. */
void world_lose(struct world *w);

/** The time that the next call sees. */
int64_t world_now(const struct world *w);

/**
 * The path's tables: peek first, then the writer, as the handlers do. cookie may be NULL. err is
 * in w->err.
 */
hfd_rc world_put(struct world *w, const char *guresid, const char *body, const char *cookie,
                 struct hfd_answer_doc *out);
hfd_rc world_get(struct world *w, const char *guresid, const char *cookie,
                 struct hfd_answer_doc *out);
hfd_rc world_delete(struct world *w, const char *guresid, const char *cookie,
                    struct hfd_answer_doc *out);
/** The same for calls that are answered: anything but HFD_OK fails the test. */
struct hfd_answer_doc world_put_ok(struct world *w, const char *guresid, const char *body,
                                   const char *cookie);
struct hfd_answer_doc world_get_ok(struct world *w, const char *guresid, const char *cookie);
struct hfd_answer_doc world_delete_ok(struct world *w, const char *guresid, const char *cookie);

/** A report by an adapter at the resource's current generation, observed now. */
struct world_report {
    const char *adapter;
    enum hfd_status available;
    const char *reason; /* of Available; NULL = "Test" */
    bool health_false;
    bool finalized;
    const char *data;    /* JSON; NULL = {} */
    const char *secrets; /* JSON; NULL = none */
    int64_t generation;  /* 0 = the resource's own */
};
/** How many changes were given to the observer by world_report so far. */
extern size_t world_observed;
enum hfd_verdict world_report(struct world *w, hfd_slice fleet_id, const struct world_report *r);

/**
 * All required adapters report success (or, while it is being deleted, Finalized) on a resource.
 */
void world_succeed(struct world *w, hfd_slice fleet_id);
/** The same on the cluster of a driver resource and then on all its nodepools. */
void world_succeed_all(struct world *w, const char *guresid);

/** The HyperFleet cluster or nodepool of that name; NULL when there is none that lives. */
const struct hfd_fleet_row *world_find(struct world *w, enum hfd_kind kind, const char *name);
/** How many HyperFleet resources of a kind there are, the deleting ones too. */
int64_t world_count(struct world *w, enum hfd_kind kind);
/** The driver resource's row; state HFD_STATE_ABSENT when there is none. */
struct hfd_resource_row world_row(struct world *w, const char *guresid);

#endif
