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
 */
#ifndef HFD_SCHEMAS_COMPILE_H
#define HFD_SCHEMAS_COMPILE_H

#include <jansson.h>

#include "driver/base/slice.h"

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

#endif
