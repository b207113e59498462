/* Memory of SQLite that runs out at a chosen allocation, once or from then on. Thread: any for SQLite; the test's own for the rest. */
#ifndef HFD_TESTS_FAULTMEM_H
#define HFD_TESTS_FAULTMEM_H

#include <stdbool.h>

/** Puts itself under SQLite; before anything else uses it. */
void faultmem_install(void);

/** @param nth  1 = the next allocation fails */
void faultmem_arm(unsigned nth, bool for_ever);
/** @return how many allocations failed since arming */
unsigned faultmem_disarm(void);

#endif
