/*
 * Entity tags and the preconditions that name them. Source: RFC 9110, 8.8.3 and 13.1. Pure. Thread:
 * any.
 */
#ifndef HFD_BASE_ETAG_H
#define HFD_BASE_ETAG_H

#include "driver/base/arena.h"
#include "driver/base/err.h"

/**
 * Makes a strong tag, with its quotes: equal texts have equal tags.
 * @param out  in mem
 * @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_etag_make(const hfd_slice *texts, size_t count, struct hfd_arena *mem,
                                    hfd_slice *out, struct hfd_err *err);

/** Tells if a value of If-None-Match has the tag: the answer of a GET is 304. */
bool hfd_etag_matches(hfd_slice if_none_match, hfd_slice etag);

/** The preconditions of a request, as received. Empty = none. */
struct hfd_precondition {
    hfd_slice if_match, if_none_match;
};

/** @return HFD_OK, HFD_BAD_REQUEST: a value is neither "*" nor a list of tags */
HFD_MUST_CHECK hfd_rc hfd_precondition_parse(const struct hfd_precondition *m, struct hfd_err *err);

/** The resource that preconditions are compared with. */
struct hfd_precondition_on {
    bool exists;
    hfd_slice etag;  /* empty = it has none */
    hfd_slice alias; /* another strong tag of the same, for If-Match alone; empty = none */
};

/** @return HFD_OK: go on; HFD_PRECONDITION */
HFD_MUST_CHECK hfd_rc hfd_precondition_check(const struct hfd_precondition *m,
                                             const struct hfd_precondition_on *is,
                                             struct hfd_err *err);

/** Gives one short text for preconditions; empty for none. @param out  in mem, or static */
HFD_MUST_CHECK hfd_rc hfd_precondition_digest(const struct hfd_precondition *m,
                                              struct hfd_arena *mem, hfd_slice *out,
                                              struct hfd_err *err);

#endif
