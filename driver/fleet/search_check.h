/*
 * Checks a comparison of a search: whether its field has the operator and accepts the values.
 * Thread: any.
 */
#ifndef HFD_FLEET_SEARCH_CHECK_H
#define HFD_FLEET_SEARCH_CHECK_H

#include "driver/fleet/search_lex.h"

/**
 * Checks a comparison whose field is resolved, and turns the texts of times into microseconds.
 * @param f  its values are replaced by checked copies
 * @return HFD_OK, HFD_BAD_REQUEST, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_comparison_check(struct hfd_search *s, struct hfd_filter *f);

#endif
