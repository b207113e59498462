/*
 * The file calls of our own code (the folder of the store, the key ring) failing at a chosen one,
 * once or from then on. SQLite's go through its VFS. Programs that link this give -Wl,--wrap for
 * each name. Thread: any.
 */
#ifndef HFD_TESTS_FAULT_WRAP_FILES_H
#define HFD_TESTS_FAULT_WRAP_FILES_H

#include <stdbool.h>

/** @param nth  1 = the next call; 0 = none @param error  errno */
void wrap_files_arm(unsigned nth, bool for_ever, int error);
/** @return how many calls failed since arming */
unsigned wrap_files_disarm(void);

#endif
