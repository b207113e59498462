/*
 * Memory that runs out at a chosen allocation, once or from then on, counted over all of them: ours (-Wl,--wrap of malloc and its kin),
 * jansson's and SQLite's. Test code that runs meanwhile must not allocate. Thread: any.
 */
#ifndef HFD_TESTS_FAULT_WRAP_MEMORY_H
#define HFD_TESTS_FAULT_WRAP_MEMORY_H

#include <stdbool.h>

/** Puts itself under jansson and SQLite. Before anything uses them, hfd_base_init too. */
void wrap_memory_install(void);
/** @param nth  1 = the next allocation */
void wrap_memory_arm(unsigned nth, bool for_ever);
/** @return how many allocations failed since arming */
unsigned wrap_memory_disarm(void);

#endif
