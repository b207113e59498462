/*
 * A resource with its reports and conditions in plain numbers. A test can write it down, copy it
 * and compare it.
 *
 * agg_world_step asks the code under test. agg_tables_step (agg_tables.h) asks the tables of the
 * document instead.
 */
#ifndef HFD_TESTS_AGG_WORLD_H
#define HFD_TESTS_AGG_WORLD_H

#include "driver/fleet/aggregate.h"

#define AGG_ADAPTERS_MAX 4

struct agg_condition {
    bool present;
    enum hfd_status status;
    int64_t generation;
    int64_t created, updated, transition;
};

struct agg_stored {
    bool present;
    int64_t generation;
    int64_t at; /* observed_time */
    enum hfd_status available, finalized;
};

struct agg_world {
    size_t adapters; /* all required: "a", "b", ... */
    int64_t generation;
    bool deleting;
    bool children;
    struct agg_stored stored[AGG_ADAPTERS_MAX];
    struct agg_condition ready, available;
    struct agg_condition adapter[AGG_ADAPTERS_MAX];
    struct agg_condition reconciled, last_known;
    int64_t updated; /* updated_time of the resource */
};

enum agg_event_kind {
    AGG_REPORT,
    AGG_CHANGE,
    AGG_DELETE,
};

struct agg_event {
    enum agg_event_kind kind;
    int64_t now;
    /* AGG_REPORT */
    size_t adapter;
    int64_t generation;
    int64_t at;
    enum hfd_status available, finalized;
};

/** Adapter i is called "a", "b", ... */
hfd_slice agg_adapter_name(size_t i);

/** A new resource, as the code under test makes it. */
void agg_world_new(struct agg_world *w, size_t adapters, int64_t now);

/**
 * Gives the event to the code under test. next is w where nothing was stored. @return the verdict;
 * STORE for an event that is no report
 */
enum hfd_verdict agg_world_step(const struct agg_world *w, const struct agg_event *e,
                                struct agg_world *next);

/** Field by field. */
bool agg_condition_eq(const struct agg_condition *a, const struct agg_condition *b);
bool agg_world_eq(const struct agg_world *a, const struct agg_world *b);

/** On stderr, for a test that has failed. */
void agg_world_print(const char *title, const struct agg_world *w);
void agg_event_print(const struct agg_event *e);

#endif
