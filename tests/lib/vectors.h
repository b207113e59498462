/*
 * Public test vectors, which are not part of the repository: the folder `vectors` in the folder
 * that the CMake variable HFD_SHARED names.
 */
#ifndef HFD_TESTS_VECTORS_H
#define HFD_TESTS_VECTORS_H

#include "driver/base/slice.h"

/**
 * Calls fn with name and content of each .json file of that folder, in the order of their names.
 * @return false: there is no such folder
 */
bool test_vectors_each(const char *folder, void (*fn)(const char *name, hfd_slice text, void *arg),
                       void *arg);

#endif
