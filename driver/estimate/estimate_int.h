/* The guesses: estimate.c makes them, plan.c reads them. */
#ifndef HFD_ESTIMATE_INT_H
#define HFD_ESTIMATE_INT_H

#include "driver/estimate/estimate.h"

#define HFD_GUESS_MAX (HFD_PAST_MAX + 2) /* two for the configured guess */

/**
 * One guess: the operation takes about exp(log_s) seconds. The logarithm has a logistic
 * distribution of scale `width`.
 */
struct hfd_guess {
    double log_s;
    double width;
    double weight;
    /* it gives news this much before its end, as a difference of logarithms; 0 = no news */
    double lead;
    bool fails;
};

struct hfd_guesses {
    struct hfd_guess items[HFD_GUESS_MAX];
    size_t count;
    double total;     /* the sum of all weights, with those of operations that never ended */
    bool news;        /* whether some guesses give news before they end */
    double news_cost; /* the cost that remains after the news */
};

/** Makes the guesses from the past operations and the configured estimate. */
void hfd_guesses_make(const struct hfd_estimate_input *in, struct hfd_guesses *out);

/** The natural logarithm of a time in seconds. A time below 0.1 s counts as 0.1 s. */
double hfd_log_s(double s);

#endif
