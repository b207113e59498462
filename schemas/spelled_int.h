/*
 * Numbers that a document spells as strings ("3"). With lenient_numbers they count as numbers where
 * the schema wants a number, and hfd_schema_validate_numbers puts numbers in their places.
 */
#ifndef HFD_SCHEMAS_SPELLED_INT_H
#define HFD_SCHEMAS_SPELLED_INT_H

#include "schemas/walk_int.h"

/** A string that was taken for a number. Those of a branch that does not hold are taken back. */
struct hfd_spelled {
    struct hfd_spelled *earlier;
    const json_t *in;
    const char *key;
    size_t index;
};

/** The number that a string stands for where a number is wanted. @return gives; NULL for others */
json_t *hfd_spelled_number(struct hfd_walk *w, const struct hfd_schema_node *n, const json_t *v);

/** Remembers that the value here becomes a number. A whole document cannot become one. */
void hfd_spelled_note(struct hfd_walk *w, const struct hfd_place *at);

/**
 * Puts the number in the place of the string. It may be there already: two parts of a schema can
 * want the same.
 * @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_spelled_store(const struct hfd_spelled *s);

#endif
