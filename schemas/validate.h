/*
 * JSON Schema over jansson, for the documents that this project describes: a subset of draft 7 and
 * of the schema objects of OpenAPI 3.0.
 *
 * Supported: true, false; $ref within the document ("#", "#/definitions/x",
 * "#/components/schemas/x"; other keywords beside it are ignored); type (one or a list), nullable
 * (accepts null whatever the other keywords are), enum, const; minLength, maxLength, pattern,
 * format date-time; minimum, maximum, exclusiveMinimum, exclusiveMaximum (numbers as in draft 7,
 * booleans as in OpenAPI), multipleOf; properties, patternProperties, additionalProperties,
 * propertyNames, required, minProperties, maxProperties; items (one or a list), additionalItems,
 * contains, minItems, maxItems, uniqueItems; allOf, anyOf, oneOf, not, if, then, else. Annotations
 * and x-... are skipped. Patterns are Perl's with bounded work, over code points; on what schemas
 * use they agree with ECMA 262.
 *
 * Refused when a schema is compiled: every other keyword ("dependencies", a misspelled
 * "minlength"), a $ref to another document, $id below the top.
 */
#ifndef HFD_SCHEMAS_VALIDATE_H
#define HFD_SCHEMAS_VALIDATE_H

#include <jansson.h>

#include "driver/base/arena.h"

/** A compiled schema. Immutable, shared by all threads. */
struct hfd_schema;

#define HFD_VIOLATIONS_MAX 20

struct hfd_violation {
    hfd_slice field;   /* "spec.nodes[0].name"; for a missing member, the object that lacks it */
    hfd_slice message; /* "must be at least 3 characters" */
    /* required, min, max, min_length, max_length, pattern, enum, format, unique, or "" */
    const char *constraint;
};

struct hfd_violations {
    struct hfd_violation items[HFD_VIOLATIONS_MAX]; /* the first ones, in the order of the schema */
    size_t count;
};

struct hfd_schema_use {
    const struct hfd_schema *schema;
    const char *root;     /* the name of the document in fields: "spec"; "" = none */
    bool lenient_numbers; /* accept "3" where the type is integer or number, and not string */
};

/**
 * Compiles a schema.
 * @param doc the whole document; borrows, and copies it
 * @param at JSON pointer to the schema in it; empty = the document itself
 * @param out gives on HFD_OK, else NULL; free with hfd_schema_free
 * @return HFD_OK, HFD_INVALID (err->msg names keyword and place), HFD_LIMIT (too many schemas),
 * HFD_NOMEM
 * Thread: any
 */
HFD_MUST_CHECK hfd_rc hfd_schema_compile(const json_t *doc, hfd_slice at, struct hfd_schema **out,
                                         struct hfd_err *err);
/** Accepts NULL. */
void hfd_schema_free(struct hfd_schema *schema);

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
