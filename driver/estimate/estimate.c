/*
 * Turns past operations into guesses about this one. See README.md. The constants below were fitted
 * with tests/bench/polls.c.
 */
#include "driver/estimate/estimate_int.h"

#include <math.h>
#include <stdlib.h>

#include "driver/base/clock.h"

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

double hfd_log_s(double s)
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
    return hfd_log_s(seconds(ours->at_us)) - hfd_log_s(seconds(theirs->at_us));
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
            v[n++] = hfd_log_s(s);
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
        add_guess(g, (struct hfd_guess){
                         .log_s = hfd_log_s(s),
                         .weight = weight,
                         .lead = news_s > 0 && news_s < s ? hfd_log_s(s) - hfd_log_s(news_s) : 0,
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

void hfd_guesses_make(const struct hfd_estimate_input *in, struct hfd_guesses *out)
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
                           .log_s = hfd_log_s(seconds(in->prior_us) * prior_parts[i].factor),
                           .width = prior_parts[i].width,
                           .weight = PRIOR_WEIGHT * prior_parts[i].share});
    out->total += PRIOR_WEIGHT * PRIOR_STUCK;
}
