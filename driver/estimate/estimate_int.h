/* What estimate.c makes of the past, and plan.c of that. */
#ifndef HFD_ESTIMATE_INT_H
#define HFD_ESTIMATE_INT_H

#include "driver/estimate/estimate.h"

#define HFD_GUESS_MAX (HFD_PAST_MAX + 2) /* two for the configured guess */

/**
 * The operation may take about exp(log_s) seconds: logistically distributed logarithm, as wide as
 * `width`.
 */
struct hfd_guess {
    double log_s;
    double width;
    double weight;
    double lead; /* it gives news this much before its end (a difference of logarithms); 0 = none */
    bool fails;
};

struct hfd_guesses {
    struct hfd_guess items[HFD_GUESS_MAX];
    size_t count;
    double total;     /* of all weights, those of operations that never ended included */
    bool news;        /* whether some of them give news before they end */
    double news_cost; /* what is still to be paid once the news are there */
};

/** From the past to what may be. */
void hfd_guesses_make(const struct hfd_estimate_input *in, struct hfd_guesses *out);

/** The natural logarithm of a time in seconds; of 0.1 s for less. */
double hfd_log_s(double s);

#endif
