/*
 * From guesses to polls. A poll costs 1, and so does each per cent of its duration for which the
 * end of an operation goes unnoticed. The polls that cost least on average are found backwards from
 * the deadline, on a grid of times that is even in the logarithm.
 */
#include "driver/estimate/estimate_int.h"

#include <math.h>
#include <string.h>

#include "driver/base/clock.h"

#define COST_OF_ALL 100.0 /* of noticing an operation as late again as it took */
#define EVEN_TIMES 200
#define TIMES_MAX (EVEN_TIMES + 2)
#define BELOW                                                                                      \
    7.0 /* widths below the middle of a guess at which the grid begins: a thousandth of it lies    \
           there */
#define ABOVE 8.0

/*
 * What is expected by each time. Shares are weights; the first time is now, the last the deadline.
 */
struct grid {
    size_t count;
    double at_s[TIMES_MAX];
    double ended[TIMES_MAX];
    double failed[TIMES_MAX]; /* ended by failing */
    double told[TIMES_MAX];   /* ended or gave news */
    double per_s[TIMES_MAX];  /* ended, each divided by its duration */
    size_t silent[TIMES_MAX]; /* what has not told by then ends behind this time */
    double cost[TIMES_MAX];   /* of all that has not told by then, from then on */
    size_t next[TIMES_MAX];   /* the best next poll */
};

/*
 * Adds a guess's share at log_s, and at `count - 1` times behind it that are `step` apart, to as
 * many sums.
 */
static void add_shares(const struct hfd_guess *q, double log_s, double step, size_t count,
                       double *sums)
{
    const double shrink = exp(-step / q->width);
    double odds = exp(fmin((q->log_s - log_s) / q->width, 700)); /* against its having ended */

    for (size_t j = 0; j < count; j++) {
        sums[j] += q->weight / (1 + odds);
        odds *= shrink;
    }
}

/* Fills in `count` times from g->at_s[at] on. */
static void add_guesses(const struct hfd_guesses *m, double log_s, double step, size_t at,
                        size_t count, struct grid *g)
{
    memset(g->ended + at, 0, count * sizeof(g->ended[0]));
    memset(g->failed + at, 0, count * sizeof(g->failed[0]));
    memset(g->told + at, 0, count * sizeof(g->told[0]));
    for (size_t i = 0; i < m->count; i++) {
        struct hfd_guess q = m->items[i];

        add_shares(&q, log_s, step, count, g->ended + at);
        if (q.fails)
            add_shares(&q, log_s, step, count, g->failed + at);
        q.log_s -= q.lead;
        if (m->news)
            add_shares(&q, log_s, step, count, g->told + at);
    }
    if (!m->news)
        memcpy(g->told + at, g->ended + at, count * sizeof(g->told[0]));
}

/* Polls are at whole seconds: of times within the same one the last stays. */
static void drop_twins(struct grid *g)
{
    size_t n = 1;

    for (size_t j = 1; j < g->count; j++) {
        if (j + 1 < g->count && g->at_s[j + 1] <= g->at_s[j])
            continue;
        g->at_s[n] = g->at_s[j];
        g->ended[n] = g->ended[j];
        g->failed[n] = g->failed[j];
        g->told[n++] = g->told[j];
    }
    g->count = n;
}

static void sum_up(struct grid *g)
{
    size_t k = 0;

    g->per_s[0] = 0;
    for (size_t j = 1; j < g->count; j++) {
        const double middle_s = j == g->count - 1 ? g->at_s[j] : (g->at_s[j] + g->at_s[j - 1]) / 2;

        g->per_s[j] = g->per_s[j - 1] + (g->ended[j] - g->ended[j - 1]) / middle_s;
    }
    for (size_t j = 0; j < g->count; j++) {
        while (k < g->count - 1 && (k < j || g->ended[k + 1] <= g->told[j]))
            k++;
        g->silent[j] = k;
    }
}

static void make_grid(const struct hfd_guesses *m, double now_s, double deadline_s, struct grid *g)
{
    const double deadline = hfd_log_s(deadline_s);
    double lo = INFINITY, hi = -INFINITY, step;

    for (size_t i = 0; i < m->count; i++) {
        lo = fmin(lo, m->items[i].log_s - BELOW * m->items[i].width);
        hi = fmax(hi, m->items[i].log_s + ABOVE * m->items[i].width);
    }
    lo = fmin(fmax(lo, hfd_log_s(now_s + 1)), deadline);
    hi = fmax(fmin(hi, deadline), lo);
    step = (hi - lo) / EVEN_TIMES;
    g->at_s[0] = now_s;
    for (size_t k = 0; k < EVEN_TIMES; k++)
        g->at_s[k + 1] = fmin(ceil(exp(lo + step * (double)k)), deadline_s);
    g->at_s[EVEN_TIMES + 1] = deadline_s;
    add_guesses(m, hfd_log_s(now_s), 0, 0, 1, g);
    add_guesses(m, lo, step, 1, EVEN_TIMES, g);
    add_guesses(m, deadline, 0, EVEN_TIMES + 1, 1, g);
    /* What has not ended by the deadline ends there. */
    g->told[EVEN_TIMES + 1] = g->ended[EVEN_TIMES + 1] = m->total;
    g->count = TIMES_MAX;
    drop_twins(g);
    sum_up(g);
}

/*
 * The best next poll after each time. What gave news by a poll without having ended costs news_cost
 * from there on. Without news to come the best next poll never moves back as time goes on, which
 * bounds the search.
 */
static void choose_polls(const struct hfd_guesses *m, struct grid *g)
{
    const size_t last = g->count - 1;
    size_t limit = last;

    g->cost[last] = 0;
    for (size_t j = last; j-- > 0;) {
        const size_t s = g->silent[j];
        const double left = g->ended[last] - g->told[j];

        g->cost[j] = INFINITY;
        for (size_t k = j + 1; k <= limit; k++) {
            const double late = k <= s ? 0
                                       : COST_OF_ALL * (g->at_s[k] * (g->per_s[k] - g->per_s[s]) -
                                                        (g->ended[k] - g->ended[s]));
            const double news = g->told[k] - fmax(g->ended[k], g->told[j]);
            const double cost = left + late + fmax(news, 0) * m->news_cost + g->cost[k];

            if (left + late > g->cost[j])
                break; /* it grows from here on */
            if (cost < g->cost[j]) {
                g->cost[j] = cost;
                g->next[j] = k;
            }
        }
        if (!m->news)
            limit = g->next[j];
    }
}

/* The time by which half of what has not told by j will have ended; failures are not waited for. */
static double middle_s(const struct grid *g, size_t j)
{
    const size_t last = g->count - 1;
    const size_t s = g->silent[j];
    const double half = (g->ended[s] - g->failed[s] + g->ended[last] - g->failed[last]) / 2;
    size_t k = j + 1;

    while (k < last && g->ended[k] - g->failed[k] < half)
        k++;
    return g->at_s[k];
}

/*
 * Without a past: parts of the guess, and behind them each wait LONGER times the one before. They
 * were chosen by what a guess costs that is wrong by up to a factor of two: README.md, "What it
 * costs to wait".
 */
static const double first_polls[] = {0.33, 0.46, 0.58, 0.69, 0.82, 0.95, 1.09, 1.22,
                                     1.37, 1.55, 1.73, 1.89, 2.03, 2.16, 2.29, 2.43};
#define FIRST_POLLS (sizeof(first_polls) / sizeof(first_polls[0]))
#define LONGER 1.2

/*
 * The end is expected when the settings say; once that has passed, half as late again, and so on.
 */
static void plan_first(double guess_s, double now_s, double deadline_s, struct hfd_plan *out)
{
    double part = 0, wait = 0, last_s = now_s, done_s = fmax(1, floor(guess_s));

    for (size_t i = 0; last_s < deadline_s && out->count < HFD_PLAN_MAX; i++) {
        const double before = part;
        double poll_s;

        part = i < FIRST_POLLS ? first_polls[i] : part + LONGER * wait;
        wait = part - before;
        poll_s = fmin(ceil(part * fmax(1, guess_s)), deadline_s);
        if (poll_s <= last_s)
            continue;
        while (done_s < poll_s)
            done_s *= 1.5;
        out->steps[out->count++] = (struct hfd_plan_step){
            .poll_s = (int64_t)poll_s, .done_s = (int64_t)ceil(fmin(done_s, deadline_s))};
        last_s = poll_s;
    }
}

void hfd_estimate_plan(const struct hfd_estimate_input *in, struct hfd_plan *out)
{
    const double now_s = fmax(0, (double)in->elapsed_us / (double)HFD_US_PER_S);
    const double deadline_s = ceil((double)in->deadline_us / (double)HFD_US_PER_S);
    struct hfd_guesses m;
    struct grid g;
    double done_s = 0;

    out->count = 0;
    if (now_s >= deadline_s)
        return;
    if (in->past_count == 0) {
        plan_first((double)in->prior_us / (double)HFD_US_PER_S, now_s, deadline_s, out);
        return;
    }
    hfd_guesses_make(in, &m);
    make_grid(&m, now_s, deadline_s, &g);
    choose_polls(&m, &g);
    for (size_t j = 0; j < g.count - 1 && out->count < HFD_PLAN_MAX; j = g.next[j]) {
        const double poll_s = g.at_s[g.next[j]];

        done_s = fmax(fmax(done_s, poll_s), middle_s(&g, j));
        out->steps[out->count++] =
            (struct hfd_plan_step){.poll_s = (int64_t)poll_s, .done_s = (int64_t)done_s};
    }
}
