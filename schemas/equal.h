/*
 * Compares JSON values: numbers by value (1 and 1.0), objects without regard to the order of keys.
 * Thread: any.
 */
#ifndef HFD_SCHEMAS_EQUAL_H
#define HFD_SCHEMAS_EQUAL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/**
 * Compares two numbers exactly, integers and reals.
 * @return -1, 0 or 1
 */
int hfd_json_number_cmp(const json_t *a, const json_t *b);

/**
 * True if two values are the same.
 * @param work falls by the number of values compared; below 0 the answer is false and means nothing
 */
bool hfd_json_same(const json_t *a, const json_t *b, int64_t *work);

/**
 * A hash that is equal for values that are the same.
 * @param work as above
 */
uint64_t hfd_json_hash(const json_t *v, int64_t *work);

#endif
