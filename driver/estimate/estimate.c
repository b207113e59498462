/*
 * From past operations to guesses at this one. The numbers below were chosen with
 * tests/bench/polls.c.
 */
#include "driver/estimate/estimate_int.h"

#include <math.h>
#include <stdlib.h>

#include "driver/base/clock.h"

#define DECAY 0.87        /* weight of an operation relative to the next one */
#define OTHER_SIZE 0.25   /* weight of an operation on another kind of spec */
#define PRIOR_WEIGHT 0.04 /* of the configured guess, once there is a past */
#define PRIOR_STUCK 0.05  /* of what the configured guess stands for never ends */
#define WIDTH_MIN 0.03    /* not even the same operation takes equally long twice */
#define WIDTH_MAX 0.5     /* of an operation that stands alone */
#define WIDTH_SCALE 0.38  /* from a distance between neighbours to a width */
#define FEW 6             /* operations that a reading needs */
#define NEAR                                                                                       \
    0.4 /* distance at which an operation is half as like ours as one that went the same way */
#define GAIN                                                                                       \
    0.85 /* how much closer together than the plain one a reading must bring the past to be        \
            believed */
#define NEWS_GAIN 0.5 /* the same of a milestone that is still to come */
#define MIDDLE_WIDTH                                                                               \
    2.3 /* of the middle three quarters of a normal distribution, in standard deviations */

/* The configured guess among what was learned: half of it to twice is covered about evenly. */
static const struct {
    double factor, width, share;
} prior_parts[] = {{0.61, 0.25, 0.345}, {1.42, 0.29, 0.655}};

_Static_assert(HFD_GUESS_MAX == HFD_PAST_MAX + sizeof(prior_parts) / sizeof(prior_parts[0]),
               "room for the prior");

/*
 * How a past operation is read as ours, from a milestone that both have; without one, ours will
 * take as long.
 */
enum reading {
    READ_REST,  /* the rest will take as long */
    READ_RATIO, /* all will be slower or faster by the ratio in which the milestone was */
    READ_HALF,  /* by the square root of it: half of that is chance */
    READ_COUNT
};

static bool makes_up(enum reading how)
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
 * By how much later than the past operation ours came to a milestone, as a difference of
 * logarithms.
 */
static double lag(const struct hfd_milestone *ours, const struct hfd_milestone *theirs)
{
    return hfd_log_s(seconds(ours->at_us)) - hfd_log_s(seconds(theirs->at_us));
}

/*
 * A time of a past operation as one of ours, in seconds; negative when it does not have our
 * milestone (NULL = none is needed).
 */
static double project(const struct hfd_past *past, int64_t at_us, enum reading how,
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
 * How much a past operation counts for ours: those that came to the milestone at about the same
 * time went the same way. Readings that make up for the difference need that less.
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
    if (makes_up(how))
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
 * How far apart the middle three quarters of the past lie when read so; INFINITY when there is too
 * little of it.
 */
static double spread(const struct hfd_estimate_input *in, enum reading how,
                     const struct hfd_milestone *ours)
{
    double v[HFD_PAST_MAX];
    size_t n = 0;

    for (size_t i = 0; i < in->past_count; i++) {
        const double s = in->past[i].ending == HFD_ENDING_DONE
                             ? project(&in->past[i], in->past[i].took_us, how, ours)
                             : -1;

        if (s >= 0 && (makes_up(how) || likeness(&in->past[i], how, ours) > 0.5))
            v[n++] = hfd_log_s(s);
    }
    if (n < FEW)
        return INFINITY;
    qsort(v, n, sizeof(v[0]), by_value);
    return v[n - 1 - n / 8] - v[n / 8];
}

/* A milestone, and the reading by which it tells most of the end. */
struct view {
    const struct hfd_milestone *milestone; /* NULL = none */
    enum reading how;
    double spread;
};

/* Takes the milestone into the view if it tells more. */
static void look(const struct hfd_estimate_input *in, const struct hfd_milestone *milestone,
                 struct view *v)
{
    if (milestone->at_us == 0)
        return; /* it was done before the operation began */
    for (int how = 0; how < READ_COUNT; how++) {
        const double s = spread(in, (enum reading)how, milestone);

        if (s < v->spread)
            *v = (struct view){milestone, (enum reading)how, s};
    }
}

/* What is known: the milestone that is done and tells most. */
static struct view known(const struct hfd_estimate_input *in)
{
    const double plain = spread(in, READ_REST, NULL);
    struct view v = {.spread = plain * GAIN};

    for (size_t i = 0; i < in->milestones->count && isfinite(plain); i++)
        look(in, &in->milestones->items[i], &v);
    if (v.milestone == NULL)
        v.spread = plain;
    return v;
}

bool hfd_estimate_is_news(const struct hfd_estimate_input *in, size_t from)
{
    const struct view v = known(in);

    return v.milestone != NULL && v.milestone >= in->milestones->items + from;
}

/* What will be news: the milestone that is still to come and tells most. */
static struct view expected(const struct hfd_estimate_input *in, double spread_now)
{
    struct view v = {.spread = spread_now * NEWS_GAIN};

    for (size_t i = 0;
         in->past_count > 0 && i < in->past[0].milestones.count && isfinite(spread_now); i++)
        if (hfd_milestone_find(in->milestones, in->past[0].milestones.items[i].name) == NULL)
            look(in, &in->past[0].milestones.items[i], &v);
    return v;
}

static void add(struct hfd_guesses *g, struct hfd_guess guess)
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
    const double s = project(past, past->took_us, now->how, now->milestone);
    const double news_s =
        theirs != NULL ? project(past, theirs->at_us, now->how, now->milestone) : -1;

    weight *= likeness(past, now->how, now->milestone);
    if (past->ending == HFD_ENDING_LATE)
        g->total += weight;
    else if (s >= 0)
        add(g, (struct hfd_guess){
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
 * The distance to the n-th nearest neighbour of the i-th of sorted guesses; INFINITY when there are
 * not as many.
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
 * Each guess is as wide as it is far from its neighbours: narrow where many operations took about
 * as long, wide where one stands alone.
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
    const struct view now = known(in), news = expected(in, now.spread);
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
        add(out,
            (struct hfd_guess){.log_s = hfd_log_s(seconds(in->prior_us) * prior_parts[i].factor),
                               .width = prior_parts[i].width,
                               .weight = PRIOR_WEIGHT * prior_parts[i].share});
    out->total += PRIOR_WEIGHT * PRIOR_STUCK;
}
