/*
 * When two JSON values are the same value: numbers by what they are worth (1 and 1.0), objects
 * whatever their order.
 */
#ifndef HFD_SCHEMAS_EQUAL_H
#define HFD_SCHEMAS_EQUAL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/** Numbers: -1, 0 or 1, exact over integers and reals. */
int hfd_json_number_cmp(const json_t *a, const json_t *b);

/**
 * @param work  counted down by the values looked at; below 0 the answer is false and means nothing
 */
bool hfd_json_same(const json_t *a, const json_t *b, int64_t *work);

/** Equal for values that are the same. */
uint64_t hfd_json_hash(const json_t *v, int64_t *work);

#endif
