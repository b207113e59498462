/*
 * The state of a validation. It walks a document and a schema side by side, and notes what is
 * wrong. validate.c walks; scalar.c and spelled.c check values. Thread: any.
 */
#ifndef HFD_SCHEMAS_WALK_INT_H
#define HFD_SCHEMAS_WALK_INT_H

#include "schemas/schema_int.h"

#define HFD_WALK_DEPTH_MAX 256
#define HFD_WALK_TEXT_MAX 400 /* bytes of a message */

/** A place in the document. Places live on the stack, linked from the inside out. */
struct hfd_place {
    const struct hfd_place *up;
    const json_t *in; /* the object or array that holds the value; NULL at the top */
    const char *key;  /* NULL = an element of an array */
    size_t index;
};

struct hfd_spelled;

/** One validation in progress. */
struct hfd_walk {
    const struct hfd_schema_use *use;
    struct hfd_arena *mem;
    struct hfd_violations *out;  /* NULL while a branch is only tried */
    struct hfd_spelled *spelled; /* the latest; see spelled_int.h */
    int64_t work;                /* what is left; below 0 the walk is given up */
    int depth;
    hfd_rc rc; /* why the walk was given up, or HFD_OK */
};

/** Gives the walk up, since its result would be wrong. @return false always */
bool hfd_walk_give_up(struct hfd_walk *w, hfd_rc rc);

/** Notes a violation, unless a branch is only tried. @return false always */
bool hfd_walk_violated(struct hfd_walk *w, const struct hfd_place *at, const char *constraint,
                       const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/** Matches a pattern. @return whether the text matches; false when the walk is given up */
bool hfd_walk_matches(struct hfd_walk *w, const struct hfd_schema_regex *regex, const char *text,
                      size_t len);

/** "" for 1, else "s". */
const char *hfd_walk_plural(size_t n);

#endif
