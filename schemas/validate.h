/*
 * JSON Schema over jansson, for the documents that we ourselves describe: a subset of draft 7 and
 * of the schema objects of OpenAPI 3.0.
 *
 * Understood: true, false; $ref within the document ("#", "#/definitions/x",
 * "#/components/schemas/x"; nothing else beside it counts); type (one or a list), nullable (null is
 * then accepted whatever else stands there), enum, const; minLength, maxLength, pattern, format
 * date-time; minimum, maximum, exclusiveMinimum, exclusiveMaximum (numbers as in draft 7, booleans
 * as in OpenAPI), multipleOf; properties, patternProperties, additionalProperties, propertyNames,
 * required, minProperties, maxProperties; items (one or a list), additionalItems, contains,
 * minItems, maxItems, uniqueItems; allOf, anyOf, oneOf, not, if, then, else. Annotations and x-...
 * are skipped. Patterns are Perl's, which agree with ECMA 262's on what schemas use, over code
 * points, with bounded work.
 *
 * Refused when a schema is compiled: every other keyword ("dependencies", a misspelled
 * "minlength"), a $ref to elsewhere, $id below the top.
 */
#ifndef HFD_SCHEMAS_VALIDATE_H
#define HFD_SCHEMAS_VALIDATE_H

#include <jansson.h>

#include "driver/base/arena.h"

/** A compiled schema. Immutable, shared by all threads. */
struct hfd_schema;

#define HFD_VIOLATIONS_MAX 20

struct hfd_violation {
    hfd_slice
        field; /* "spec.nodes[0].name"; a missing member is told of the object that lacks it */
    hfd_slice message;      /* "must be at least 3 characters" */
    const char *constraint; /* required, min, max, min_length, max_length, pattern, enum, format,
                               unique, or "" */
};

struct hfd_violations {
    struct hfd_violation items[HFD_VIOLATIONS_MAX]; /* the first ones, in the order of the schema */
    size_t count;
};

struct hfd_schema_use {
    const char *root;     /* the name of the document in fields: "spec"; "" = none */
    bool lenient_numbers; /* "3" is accepted where a type of integer or number is wanted and a
                             string is not */
};

/**
 * @param doc    the whole document; borrows (it is copied)
 * @param at     JSON pointer to the schema in it; empty = the document itself
 * @param out    gives on HFD_OK, else NULL; free with hfd_schema_free
 * @return HFD_OK, HFD_INVALID (err->msg names keyword and place), HFD_LIMIT (too many schemas),
 * HFD_NOMEM Thread: any
 */
HFD_MUST_CHECK hfd_rc hfd_schema_compile(const json_t *doc, hfd_slice at, struct hfd_schema **out,
                                         struct hfd_err *err);
/** Accepts NULL. */
void hfd_schema_free(struct hfd_schema *schema);

/**
 * Finds what is wrong with a document.
 *
 * @param mem  keeps the texts of the violations
 * @param out  violations; count is 0 unless the answer is HFD_INVALID
 * @return HFD_OK, HFD_INVALID (err is the first violation, its field in front of the message),
 * HFD_LIMIT (takes too much work), HFD_NOMEM Thread: any
 */
HFD_MUST_CHECK hfd_rc hfd_schema_validate(const struct hfd_schema *schema, const json_t *doc,
                                          const struct hfd_schema_use *use, struct hfd_arena *mem,
                                          struct hfd_violations *out, struct hfd_err *err);

/**
 * As hfd_schema_validate with lenient_numbers, and puts the numbers in the places of the strings
 * that spell them; under anyOf and oneOf as the form that fits wants it. What is invalid may have
 * been changed so far.
 */
HFD_MUST_CHECK hfd_rc hfd_schema_validate_numbers(const struct hfd_schema *schema, json_t *doc,
                                                  const struct hfd_schema_use *use,
                                                  struct hfd_arena *mem, struct hfd_violations *out,
                                                  struct hfd_err *err);

#endif
