/* See estimate.h. */
#include "driver/estimate/estimate.h"

#include "driver/base/clock.h"
#include "driver/base/slice.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- estimate ---- */

/*
 * Turns past operations into guesses about this one. See README.md. The constants below were fitted
 * with tests/bench/polls.c.
 */

/* The guesses: estimate.c makes them, estimate.c reads them. */

#define HFD_GUESS_MAX (HFD_PAST_MAX + 2) /* two for the configured guess */

/*
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

/* The weight of an operation relative to the next one: older operations count less. */
#define DECAY 0.87
/* The weight of an operation on a spec of another size. */
#define OTHER_SIZE 0.25
/* The weight of the configured estimate once there is a past. */
#define PRIOR_WEIGHT 0.04
/* The part of the configured estimate's weight that stands for operations that never end. */
#define PRIOR_STUCK 0.05
/* The least width of a guess: not even equal operations take equally long. */
#define WIDTH_MIN 0.03
/* The width of an operation that stands alone, before scaling. */
#define WIDTH_MAX 0.5
/* From the distance between neighbours to the width of a guess. */
#define WIDTH_SCALE 0.38
/* The fewest operations that a reading of a milestone needs. */
#define FEW 6
/* The lag at a milestone at which an operation counts half of one without a lag. */
#define NEAR 0.4
/* A milestone is used if it brings the past to at most this part of its plain spread. */
#define GAIN 0.85
/* The same for a milestone that is still to come. */
#define NEWS_GAIN 0.5
/* The middle three quarters of a normal distribution, in standard deviations. */
#define MIDDLE_WIDTH 2.3

/* The configured estimate, as two guesses: together they cover half of it to twice about evenly. */
static const struct {
    double factor, width, share;
} prior_parts[] = {{0.61, 0.25, 0.345}, {1.42, 0.29, 0.655}};

_Static_assert(HFD_GUESS_MAX == HFD_PAST_MAX + sizeof(prior_parts) / sizeof(prior_parts[0]),
               "room for the prior");

/*
 * How the end of a past operation is read as the end of this one, from a milestone that both have.
 * Without a milestone, this one takes as long.
 */
enum reading {
    READ_REST,  /* the rest takes as long */
    READ_RATIO, /* all is slower or faster by the ratio of the milestones' times */
    READ_HALF,  /* all is slower or faster by the square root of that ratio */
    READ_COUNT
};

static bool corrects_pace(enum reading how)
{
    return how != READ_HALF;
}

static double seconds(int64_t us)
{
    return (double)us / (double)HFD_US_PER_S;
}

/* The natural logarithm of a time in seconds. A time below 0.1 s counts as 0.1 s. */
static double estimate_log_s(double s)
{
    return log(s < 0.1 ? 0.1 : s);
}

const struct hfd_milestone *hfd_milestone_find(const struct hfd_milestones *all, hfd_slice name)
{
    for (size_t i = 0; i < all->count; i++)
        if (hfd_slice_eq(all->items[i].name, name))
            return &all->items[i];
    return NULL;
}

/*
 * How much later this operation came to a milestone than the past one, as a difference of
 * logarithms.
 */
static double lag(const struct hfd_milestone *ours, const struct hfd_milestone *theirs)
{
    return estimate_log_s(seconds(ours->at_us)) - estimate_log_s(seconds(theirs->at_us));
}

/*
 * Reads a time of a past operation as a time of this one.
 * @param ours the milestone to read from; NULL = none
 * @return seconds; negative when the past operation does not have the milestone
 */
static double projected_s(const struct hfd_past *past, int64_t at_us, enum reading how,
                          const struct hfd_milestone *ours)
{
    const struct hfd_milestone *theirs;

    if (ours == NULL)
        return seconds(at_us);
    theirs = hfd_milestone_find(&past->milestones, ours->name);
    if (theirs == NULL)
        return -1;
    switch (how) {
    case READ_REST:
        return seconds(ours->at_us + at_us - theirs->at_us);
    case READ_RATIO:
        return seconds(at_us) * exp(lag(ours, theirs));
    case READ_HALF:
        return seconds(at_us) * exp(lag(ours, theirs) / 2);
    case READ_COUNT:
        break;
    }
    return -1;
}

/*
 * How much a past operation counts, from 0 to 1: one that came to the milestone at about the same
 * time counts more. A reading that corrects the difference depends on this less.
 */
static double likeness(const struct hfd_past *past, enum reading how,
                       const struct hfd_milestone *ours)
{
    const struct hfd_milestone *theirs =
        ours != NULL ? hfd_milestone_find(&past->milestones, ours->name) : NULL;
    double far;

    if (theirs == NULL)
        return 1;
    far = lag(ours, theirs);
    if (corrects_pace(how))
        return 1 / ((1 + far * far) * (1 + far * far));
    far /= NEAR;
    return 1 / (1 + far * far * far * far);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/*
 * The distance between the ends of the middle three quarters of the past, as one reading gives
 * them; INFINITY when there are fewer than FEW.
 */
static double spread(const struct hfd_estimate_input *in, enum reading how,
                     const struct hfd_milestone *ours)
{
    double v[HFD_PAST_MAX];
    size_t n = 0;

    for (size_t i = 0; i < in->past_count; i++) {
        const double s = in->past[i].ending == HFD_ENDING_DONE
                             ? projected_s(&in->past[i], in->past[i].took_us, how, ours)
                             : -1;

        if (s >= 0 && (corrects_pace(how) || likeness(&in->past[i], how, ours) > 0.5))
            v[n++] = estimate_log_s(s);
    }
    if (n < FEW)
        return INFINITY;
    qsort(v, n, sizeof(v[0]), by_value);
    return v[n - 1 - n / 8] - v[n / 8];
}

/* The milestone and reading that bring the past durations closest together. */
struct view {
    const struct hfd_milestone *milestone; /* NULL = none */
    enum reading how;
    double spread;
};

/* Replaces the view by this milestone if it brings the past closer together. */
static void consider_milestone(const struct hfd_estimate_input *in,
                               const struct hfd_milestone *milestone, struct view *v)
{
    if (milestone->at_us == 0)
        return; /* it was done before the operation began */
    for (int how = 0; how < READ_COUNT; how++) {
        const double s = spread(in, (enum reading)how, milestone);

        if (s < v->spread)
            *v = (struct view){milestone, (enum reading)how, s};
    }
}

/* The milestone that is done and says most about the end. */
static struct view best_known(const struct hfd_estimate_input *in)
{
    const double plain = spread(in, READ_REST, NULL);
    struct view v = {.spread = plain * GAIN};

    for (size_t i = 0; i < in->milestones->count && isfinite(plain); i++)
        consider_milestone(in, &in->milestones->items[i], &v);
    if (v.milestone == NULL)
        v.spread = plain;
    return v;
}

bool hfd_estimate_is_news(const struct hfd_estimate_input *in, size_t from)
{
    const struct view v = best_known(in);

    return v.milestone != NULL && v.milestone >= in->milestones->items + from;
}

/* The milestone that is still to come and will say most about the end. */
static struct view best_to_come(const struct hfd_estimate_input *in, double spread_now)
{
    struct view v = {.spread = spread_now * NEWS_GAIN};

    for (size_t i = 0;
         in->past_count > 0 && i < in->past[0].milestones.count && isfinite(spread_now); i++)
        if (hfd_milestone_find(in->milestones, in->past[0].milestones.items[i].name) == NULL)
            consider_milestone(in, &in->past[0].milestones.items[i], &v);
    return v;
}

static void add_guess(struct hfd_guesses *g, struct hfd_guess guess)
{
    g->items[g->count++] = guess;
    g->total += guess.weight;
}

static void add_past(const struct hfd_past *past, const struct view *now, const struct view *news,
                     double weight, struct hfd_guesses *g)
{
    const struct hfd_milestone *theirs =
        news->milestone != NULL ? hfd_milestone_find(&past->milestones, news->milestone->name)
                                : NULL;
    const double s = projected_s(past, past->took_us, now->how, now->milestone);
    const double news_s =
        theirs != NULL ? projected_s(past, theirs->at_us, now->how, now->milestone) : -1;

    weight *= likeness(past, now->how, now->milestone);
    if (past->ending == HFD_ENDING_LATE)
        g->total += weight;
    else if (s >= 0)
        add_guess(g, (struct hfd_guess){.log_s = estimate_log_s(s),
                                        .weight = weight,
                                        .lead = news_s > 0 && news_s < s
                                                    ? estimate_log_s(s) - estimate_log_s(news_s)
                                                    : 0,
                                        .fails = past->ending == HFD_ENDING_FAILED});
}

static int by_time(const void *a, const void *b)
{
    const struct hfd_guess *x = a, *y = b;

    return (x->log_s > y->log_s) - (x->log_s < y->log_s);
}

/*
 * The distance from the i-th of sorted guesses to its n-th nearest neighbour; INFINITY when there
 * are fewer guesses.
 */
static double distance(const struct hfd_guesses *g, size_t i, size_t n)
{
    size_t below = i, above = i;
    double far = INFINITY;

    if (n >= g->count)
        return INFINITY;
    while (n-- > 0) {
        const double down = below > 0 ? g->items[i].log_s - g->items[below - 1].log_s : INFINITY;
        const double up =
            above + 1 < g->count ? g->items[above + 1].log_s - g->items[i].log_s : INFINITY;

        far = fmin(down, up);
        if (down <= up)
            below--;
        else
            above++;
    }
    return far;
}

/*
 * Sets the widths. A guess is as wide as its distance to its neighbours: narrow where many
 * operations took about as long, wide where one stands alone.
 */
static void set_widths(struct hfd_guesses *g)
{
    const size_t n = (size_t)ceil(sqrt((double)g->count));

    qsort(g->items, g->count, sizeof(g->items[0]), by_time);
    for (size_t i = 0; i < g->count; i++)
        g->items[i].width = fmax(WIDTH_MIN, WIDTH_SCALE * fmin(WIDTH_MAX, distance(g, i, n)));
}

/* Makes the guesses from the past operations and the configured estimate. */
static void guesses_make(const struct hfd_estimate_input *in, struct hfd_guesses *out)
{
    const struct view now = best_known(in), news = best_to_come(in, now.spread);
    double weight = 1;

    *out = (struct hfd_guesses){.news = news.milestone != NULL,
                                .news_cost = 1 + 12 * sqrt(fmin(news.spread, 1) / MIDDLE_WIDTH)};
    for (size_t i = 0; i < in->past_count; i++) {
        add_past(&in->past[i], &now, &news,
                 in->past[i].size == in->size ? weight : weight * OTHER_SIZE, out);
        weight *= DECAY;
    }
    set_widths(out);
    for (size_t i = 0; i < sizeof(prior_parts) / sizeof(prior_parts[0]); i++)
        add_guess(out, (struct hfd_guess){
                           .log_s = estimate_log_s(seconds(in->prior_us) * prior_parts[i].factor),
                           .width = prior_parts[i].width,
                           .weight = PRIOR_WEIGHT * prior_parts[i].share});
    out->total += PRIOR_WEIGHT * PRIOR_STUCK;
}

/* ---- plan ---- */

/*
 * Turns guesses into polls. See README.md. A poll costs 1, and so does each per cent of the
 * duration for which the end goes unnoticed. The polls that cost least on average are found
 * backwards from the deadline, on a grid of times that is even in the logarithm.
 */

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

static double middle_s(const struct grid *g, size_t j);

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
    const double deadline = estimate_log_s(deadline_s);
    double lo = INFINITY, hi = -INFINITY, step;

    for (size_t i = 0; i < m->count; i++) {
        lo = fmin(lo, m->items[i].log_s - BELOW * m->items[i].width);
        hi = fmax(hi, m->items[i].log_s + ABOVE * m->items[i].width);
    }
    lo = fmin(fmax(lo, estimate_log_s(now_s + 1)), deadline);
    hi = fmax(fmin(hi, deadline), lo);
    step = (hi - lo) / EVEN_TIMES;
    g->at_s[0] = now_s;
    for (size_t k = 0; k < EVEN_TIMES; k++)
        g->at_s[k + 1] = fmin(ceil(exp(lo + step * (double)k)), deadline_s);
    g->at_s[EVEN_TIMES + 1] = deadline_s;
    add_guesses(m, &(struct span){estimate_log_s(now_s), 0, 0, 1}, g);
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
    guesses_make(in, &m);
    make_grid(&m, now_s, deadline_s, &g);
    choose_polls(&m, &g);
    for (size_t j = 0; j < g.count - 1 && out->count < HFD_PLAN_MAX; j = g.next[j]) {
        const double poll_s = g.at_s[g.next[j]];

        done_s = fmax(fmax(done_s, poll_s), middle_s(&g, j));
        out->steps[out->count++] =
            (struct hfd_plan_step){.poll_s = (int64_t)poll_s, .done_s = (int64_t)done_s};
    }
}
