/*
 * Compiles JSON Schema: a subset of draft 7 and of the schema objects of OpenAPI 3.0, for the
 * documents that this project describes. Sources: JSON Schema draft 7; OpenAPI 3.0.3, "Schema
 * Object".
 *
 * These keywords are supported:
 *
 *   any value   true, false, $ref, type (one or a list), nullable, enum, const
 *   strings     minLength, maxLength, pattern, format date-time
 *   numbers     minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf
 *   objects     properties, patternProperties, additionalProperties, propertyNames, required,
 *               minProperties, maxProperties
 *   arrays      items (one or a list), additionalItems, contains, minItems, maxItems, uniqueItems
 *   branches    allOf, anyOf, oneOf, not, if, then, else
 *
 * A $ref points into the same document; other keywords beside it are ignored. With nullable, null
 * is accepted whatever the other keywords are. The exclusive bounds are numbers as in draft 7, or
 * booleans as in OpenAPI. Patterns are Perl's, over code points and with bounded work; on what
 * schemas use they agree with ECMA 262. Annotations and x-... are skipped.
 *
 * Every other keyword is refused: "dependencies", a misspelled "minlength", a $ref to another
 * document, $id below the top. So no rule is ignored.
 *
 * Checks documents against compiled schemas, and notes all mistakes. Compares JSON values: numbers
 * by value (1 and 1.0), objects without regard to the order of keys. Thread: any.
 */
#ifndef HFD_SCHEMAS_VALIDATE_H
#define HFD_SCHEMAS_VALIDATE_H

#include "driver/base/arena.h"

#include <jansson.h>

#include <stdbool.h>
#include <stdint.h>

/** A compiled schema. Immutable, shared by all threads. */
struct hfd_schema;

/**
 * Compiles a schema.
 * @param doc  the whole document; borrows, and copies it
 * @param at   JSON pointer to the schema in it; empty = the document itself
 * @param out  gives on HFD_OK, else NULL; free with hfd_schema_free
 * @return HFD_OK, HFD_INVALID (err->msg names keyword and place), HFD_LIMIT (too many schemas),
 * HFD_NOMEM
 * Thread: any
 */
HFD_MUST_CHECK hfd_rc hfd_schema_compile(const json_t *doc, hfd_slice at, struct hfd_schema **out,
                                         struct hfd_err *err);
/** Frees a schema. Accepts NULL. */
void hfd_schema_free(struct hfd_schema *schema);

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
