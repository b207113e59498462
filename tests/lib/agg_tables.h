/*
 * The aggregation of 000_b453de1dc0312d98.txt a second time: its tables copied as data, and a small
 * reader that takes the first row that fits. It shares no rule with the code under test.
 */
#ifndef HFD_TESTS_AGG_TABLES_H
#define HFD_TESTS_AGG_TABLES_H

#include "tests/lib/agg_world.h"

/** What the tables make of the event. @return as agg_world_step */
enum hfd_verdict agg_tables_step(const struct agg_world *w, const struct agg_event *e,
                                 struct agg_world *next);

#endif
