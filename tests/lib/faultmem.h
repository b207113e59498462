/*
 * Memory that runs out at a chosen allocation, once or from then on: that of SQLite, of jansson,
 * and of other code that asks. Test code that runs meanwhile must not allocate. Thread: any.
 */
#ifndef HFD_TESTS_FAULTMEM_H
#define HFD_TESTS_FAULTMEM_H

#include <stdbool.h>

/** Puts itself under SQLite; before anything else uses it. */
void faultmem_install(void);

/**
 * A group's setup: puts itself under jansson and begins as the program does. Then parsing without
 * memory is an error.
 */
int faultmem_setup_json(void **state);

/** @param nth  1 = the next allocation fails */
void faultmem_arm(unsigned nth, bool for_ever);
/** @return how many allocations failed since arming */
unsigned faultmem_disarm(void);
/** An allocation that is not SQLite's. @return whether it is to fail; errno says so then */
bool faultmem_fails(void);

#endif
