/*
 * Turns guesses into polls. See README.md. A poll costs 1, and so does each per cent of the
 * duration for which the end goes unnoticed. The polls that cost least on average are found
 * backwards from the deadline, on a grid of times that is even in the logarithm.
 */
#include "driver/estimate/plan.h"

#include <math.h>
#include <string.h>

#include "driver/base/clock.h"
#include "driver/estimate/estimate_int.h"

/* The cost of noticing an end so late that the operation seems to take twice as long. */
#define COST_OF_ALL 100.0
/* The times of the grid between the first guess and the last, and with now and the deadline. */
#define EVEN_TIMES 200
#define TIMES_MAX (EVEN_TIMES + 2)
/* The grid begins this many widths below the middle of a guess: a thousandth lies below that. */
#define BELOW 7.0
/* The grid ends this many widths above the middle of a guess. */
#define ABOVE 8.0

/*
 * The state expected at each time. Shares are weights. The first time is now, the last the
 * deadline.
 */
struct grid {
    size_t count;
    double at_s[TIMES_MAX];
    double ended[TIMES_MAX];
    double failed[TIMES_MAX]; /* ended by failing */
    double heard[TIMES_MAX];  /* ended or gave news */
    double per_s[TIMES_MAX];  /* ended, each share divided by its duration */
    size_t silent[TIMES_MAX]; /* an operation that is silent until then ends after this time */
    double cost[TIMES_MAX];   /* cost, from then on, of all that is silent until then */
    size_t next[TIMES_MAX];   /* the best next poll */
};

/* Times that are even in the logarithm. */
struct span {
    double log_s; /* the first time */
    double step;  /* from one time to the next */
    size_t first; /* its index in the grid */
    size_t count;
};

/* Adds the share of a guess that has ended by each time of the span, to as many sums. */
static void add_shares(const struct hfd_guess *q, const struct span *span, double *sums)
{
    const double shrink = exp(-span->step / q->width);
    /* the odds against its end */
    double odds = exp(fmin((q->log_s - span->log_s) / q->width, 700));

    for (size_t j = 0; j < span->count; j++) {
        sums[span->first + j] += q->weight / (1 + odds);
        odds *= shrink;
    }
}

/* Fills in the grid at the times of the span. */
static void add_guesses(const struct hfd_guesses *m, const struct span *span, struct grid *g)
{
    const size_t at = span->first, size = span->count * sizeof(g->ended[0]);

    memset(g->ended + at, 0, size);
    memset(g->failed + at, 0, size);
    memset(g->heard + at, 0, size);
    for (size_t i = 0; i < m->count; i++) {
        struct hfd_guess q = m->items[i];

        add_shares(&q, span, g->ended);
        if (q.fails)
            add_shares(&q, span, g->failed);
        q.log_s -= q.lead;
        if (m->news)
            add_shares(&q, span, g->heard);
    }
    if (!m->news)
        memcpy(g->heard + at, g->ended + at, size);
}

/* Polls are at whole seconds: keeps the last of the times within one second. */
static void drop_twins(struct grid *g)
{
    size_t n = 1;

    for (size_t j = 1; j < g->count; j++) {
        if (j + 1 < g->count && g->at_s[j + 1] <= g->at_s[j])
            continue;
        g->at_s[n] = g->at_s[j];
        g->ended[n] = g->ended[j];
        g->failed[n] = g->failed[j];
        g->heard[n++] = g->heard[j];
    }
    g->count = n;
}

static void sum_shares(struct grid *g)
{
    size_t k = 0;

    g->per_s[0] = 0;
    for (size_t j = 1; j < g->count; j++) {
        const double middle_s = j == g->count - 1 ? g->at_s[j] : (g->at_s[j] + g->at_s[j - 1]) / 2;

        g->per_s[j] = g->per_s[j - 1] + (g->ended[j] - g->ended[j - 1]) / middle_s;
    }
    for (size_t j = 0; j < g->count; j++) {
        while (k < g->count - 1 && (k < j || g->ended[k + 1] <= g->heard[j]))
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
    add_guesses(m, &(struct span){hfd_log_s(now_s), 0, 0, 1}, g);
    add_guesses(m, &(struct span){lo, step, 1, EVEN_TIMES}, g);
    add_guesses(m, &(struct span){deadline, 0, EVEN_TIMES + 1, 1}, g);
    /* An operation that has not ended by the deadline ends there. */
    g->heard[EVEN_TIMES + 1] = g->ended[EVEN_TIMES + 1] = m->total;
    g->count = TIMES_MAX;
    drop_twins(g);
    sum_shares(g);
}

/*
 * Finds the best next poll after each time. An operation that gave news by a poll, but has not
 * ended, costs news_cost from there on. Without news to come, the best next poll never moves back
 * as time goes on; this bounds the search.
 */
static void choose_polls(const struct hfd_guesses *m, struct grid *g)
{
    const size_t last = g->count - 1;
    size_t limit = last;

    g->cost[last] = 0;
    for (size_t j = last; j-- > 0;) {
        const size_t s = g->silent[j];
        const double left = g->ended[last] - g->heard[j];

        g->cost[j] = INFINITY;
        for (size_t k = j + 1; k <= limit; k++) {
            const double late = k <= s ? 0
                                       : COST_OF_ALL * (g->at_s[k] * (g->per_s[k] - g->per_s[s]) -
                                                        (g->ended[k] - g->ended[s]));
            const double news = g->heard[k] - fmax(g->ended[k], g->heard[j]);
            const double cost = left + late + fmax(news, 0) * m->news_cost + g->cost[k];

            if (left + late > g->cost[j])
                break; /* the cost grows from here on */
            if (cost < g->cost[j]) {
                g->cost[j] = cost;
                g->next[j] = k;
            }
        }
        if (!m->news)
            limit = g->next[j];
    }
}

/*
 * The time by which half of the operations that are silent until time j will have ended. Failed
 * operations are not counted.
 */
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
 * Polls without a past, as parts of the configured estimate. After them each wait is LONGER times
 * the one before. They were chosen for estimates that are wrong by up to a factor of two:
 * README.md, "How good it is".
 */
static const double first_polls[] = {0.33, 0.46, 0.58, 0.69, 0.82, 0.95, 1.09, 1.22,
                                     1.37, 1.55, 1.73, 1.89, 2.03, 2.16, 2.29, 2.43};
#define FIRST_POLLS (sizeof(first_polls) / sizeof(first_polls[0]))
#define LONGER 1.2

/*
 * Plans the first operation. The end is expected at the configured estimate; after that, at 1.5
 * times the expected time, and so on.
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
