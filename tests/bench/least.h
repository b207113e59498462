/*
 * A lower bound for the cost of every policy at the first operation.
 *
 * With nothing learned, a policy is a rising sequence of polls in parts of the configured guess,
 * with one more at the deadline. It may also choose such sequences by lot. It does not know how
 * wrong the guess is. Its cost is a sum over its polls.
 *
 * A cell is an operation and a guess that is wrong by a factor. For any weights of cells, dynamic
 * programming finds the least weighted cost. No policy has a worst cell below that. Weights that
 * give a high bound are searched for, but the bound holds for any weights.
 */
#ifndef HFD_TESTS_BENCH_LEAST_H
#define HFD_TESTS_BENCH_LEAST_H

#include <stdbool.h>
#include <stddef.h>

/**
 * The factors by which a guess is wrong: from half the truth to twice, each 2^(1/4) of the one
 * before.
 */
#define LEAST_FACTORS 9

/** Their shares in a mean that is even from end to end. */
extern const double least_shares[LEAST_FACTORS];

double least_factor(size_t k);

/** Operations of one distribution. */
struct least_case {
    const double *took; /* durations as parts of what a right guess says; the deadline for those
                           that never end */
    size_t count;
    double deadline;  /* likewise */
    double yardstick; /* costs are told in parts of it */
};

/**
 * The least mean cost over the factors, for one case: no policy that knows the distribution is
 * below.
 */
double least_mean(const struct least_case *c);

/**
 * The least cost in the worst cell of all cases and factors. With on_average of those policies only
 * whose mean over the factors is at most the yardstick in each case.
 */
double least_worst(const struct least_case *cases, size_t count, bool on_average);

#endif
