/*
 * The options that choose the calls to fail.
 * - `--stride N` tries one call in N on average, beginning anywhere.
 * - `--seed S` chooses the beginning. It is the time by default, so that many short runs see all
 *   calls in the end.
 * - `--again NAME:once|ever:N` tries one alone.
 */
#ifndef HFD_TESTS_FAULT_OPTIONS_H
#define HFD_TESTS_FAULT_OPTIONS_H

#include "tests/lib/seams.h"

#include <stdbool.h>

struct fault_options {
    const char *program;
    uint64_t seed;
    unsigned stride;
    char *again; /* the name; NULL = all */
    bool again_ever;
    unsigned again_nth;
};

/** Ends the program at an argument that is none. */
void fault_options_parse(struct fault_options *o, int argc, char **argv, unsigned stride);
bool fault_wanted(const struct fault_options *o, const char *name, bool ever);

struct fault_walk {
    const struct fault_options *options;
    struct test_rng rng;
    unsigned nth; /* 1 = the first call */
};

/** Each name walks in steps of its own. */
void fault_walk_init(struct fault_walk *w, const struct fault_options *o, const char *name,
                     bool ever);
/** @return false when there is no further one to try */
bool fault_walk_next(struct fault_walk *w);

#endif
