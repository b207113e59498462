/*
 * The aggregation of HyperFleet's later versions a second time: Reconciled and LastKnownReconciled
 * as pkg/services/aggregation.go of hyperfleet-api 541f6b4 computes them, function by function. It
 * shares no rule with the code under test.
 */
#ifndef HFD_TESTS_AGG_UPSTREAM_H
#define HFD_TESTS_AGG_UPSTREAM_H

#include "tests/lib/agg_world.h"

/** Computes both conditions again from the reports and the conditions before, as w has them. */
void agg_upstream_compute(struct agg_world *w);

#endif
