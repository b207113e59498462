/*
 * The mistakes of an input, gathered so that all of them are told at once. Thread: any.
 */
#ifndef HFD_CORE_MISTAKES_H
#define HFD_CORE_MISTAKES_H

#include "schemas/validate.h"

struct hfd_mistakes {
    struct hfd_violations *found; /* at most HFD_VIOLATIONS_MAX; further ones are dropped */
    struct hfd_arena *mem;        /* holds the texts */
    hfd_rc first;                 /* the code of the first one, which is that of the answer */
};

/**
 * Notes a mistake. A field that has one already gets no second one.
 * @return HFD_OK or HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_mistakes_add(struct hfd_mistakes *m, hfd_rc rc, const char *field,
                                       const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/**
 * Notes those that a schema found.
 * @param rc  what hfd_schema_validate returned
 * @return HFD_OK also for HFD_INVALID; else rc, or HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_mistakes_add_all(struct hfd_mistakes *m, hfd_rc rc,
                                           const struct hfd_violations *found);

/** Fails with the first mistake, its field in front of its message. HFD_OK if there is none. */
HFD_MUST_CHECK hfd_rc hfd_mistakes_result(const struct hfd_mistakes *m, struct hfd_err *err);

#endif
