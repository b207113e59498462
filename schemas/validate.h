/*
 * Checks documents against compiled schemas, and notes all mistakes. See compile.h.
 *
 * Compares JSON values: numbers by value (1 and 1.0), objects without regard to the order of keys.
 * Thread: any.
 */
#ifndef HFD_SCHEMAS_VALIDATE_H
#define HFD_SCHEMAS_VALIDATE_H

#include "driver/base/arena.h"
#include "schemas/schema_int.h"

#include <jansson.h>

#include <stdbool.h>
#include <stdint.h>

/**
 * True if two values are the same.
 * @param work falls by the number of values compared; below 0 the answer is false and means nothing
 */
bool hfd_json_same(const json_t *a, const json_t *b, int64_t *work);

#define HFD_VIOLATIONS_MAX 20

struct hfd_violation {
    hfd_slice field;   /* "spec.nodes[0].name"; for a missing member, the object that lacks it */
    hfd_slice message; /* "must be at least 3 characters" */
    /* required, min, max, min_length, max_length, pattern, enum, format, unique, or "" */
    const char *constraint;
    hfd_slice value; /* the JSON text of a short value that is no object or array; or none */
};

struct hfd_violations {
    struct hfd_violation items[HFD_VIOLATIONS_MAX]; /* the first ones, in the order of the schema */
    size_t count;
};

struct hfd_schema_use {
    const struct hfd_schema *schema;
    const char *root;     /* the name of the document in fields: "spec"; "" = none */
    bool lenient_numbers; /* accept "3" where the type is integer or number, and not string */
    const char *unknown;  /* what a member that additionalProperties refuses is: "no such input".
                             Its message goes on with the nearest name. NULL = "is not allowed" */
};

/**
 * Checks a document against a schema.
 * @param mem holds the texts of the violations
 * @param out count is 0 unless the result is HFD_INVALID
 * @return HFD_OK, HFD_INVALID (err is the first violation, with its field before the message),
 * HFD_LIMIT (too much work), HFD_NOMEM
 * Thread: any
 */
HFD_MUST_CHECK hfd_rc hfd_schema_validate(const struct hfd_schema_use *use, const json_t *doc,
                                          struct hfd_arena *mem, struct hfd_violations *out,
                                          struct hfd_err *err);

/**
 * Checks a document with lenient_numbers, and replaces the strings that spell numbers by numbers.
 * Under anyOf and oneOf the form that fits decides. A document that is invalid may have been
 * changed in part.
 * @return as hfd_schema_validate
 */
HFD_MUST_CHECK hfd_rc hfd_schema_validate_numbers(const struct hfd_schema_use *use, json_t *doc,
                                                  struct hfd_arena *mem, struct hfd_violations *out,
                                                  struct hfd_err *err);

#endif
