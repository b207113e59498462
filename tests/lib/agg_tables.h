/*
 * The aggregation of the HyperFleet API a second time: its tables copied as data, and a small
 * reader that takes the first row that fits. It shares no rule with the code under test.
 */
#ifndef HFD_TESTS_AGG_TABLES_H
#define HFD_TESTS_AGG_TABLES_H

#include "tests/lib/agg_world.h"

/** Looks the event up in the tables. @return as agg_world_step */
enum hfd_verdict agg_tables_step(const struct agg_world *w, const struct agg_event *e,
                                 struct agg_world *next);

#endif
