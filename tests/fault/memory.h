/*
 * The calls that run while each allocation in them fails in turn. test_memory.c has the loop over
 * them, memory_more.c has more of them.
 */
#ifndef HFD_TESTS_FAULT_MEMORY_H
#define HFD_TESTS_FAULT_MEMORY_H

#include "tests/lib/world.h"

struct memory_scenario {
    const char *name;
    void (*prepare)(struct world *w);
    hfd_rc (*run)(struct world *w); /* the same again is right, too */
    bool store;
    bool strange;    /* an unordered resource is there, and stays */
    unsigned fewest; /* allocations */
    unsigned wider;  /* so many times the stride: there are more than elsewhere */
};

extern const struct memory_scenario memory_more[];
extern const size_t memory_more_count;

#endif
