/*
 * Times are on a grid that is even in the logarithm. The proof is kept apart from the search. The
 * search for weights uses a coarse grid. It is multiplicative: a cell that the best answer leaves
 * dear becomes heavier.
 *
 * The bound is then taken on a fine grid. A poll between two of its times costs at least what these
 * two give. An operation that goes on pays for the later time, and the delay is that of the earlier
 * one. So the grid makes bounds too low, by a third of a per cent, and never too high.
 */
#include "tests/bench/least.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CASES_MAX 8
#define CELLS_MAX (CASES_MAX * LEAST_FACTORS)
#define ROWS_MAX (CELLS_MAX + CASES_MAX)
#define FROM 0.05 /* parts of the guess between which the grid lies; nothing ends before it */
#define TO 25.0
#define COARSE 600
#define FINE 24000
#define ROUNDS 1000
#define FASTEST 3.0 /* how fast weights change, in the first rounds */
#define NEAR_END                                                                                   \
    0.8 /* of the deadline: delay behind that is not counted, as a policy knows the deadline and   \
           may ask just then */

const double least_shares[LEAST_FACTORS] = {0.0625, 0.125, 0.125, 0.125, 0.125,
                                            0.125,  0.125, 0.125, 0.0625};

double least_factor(size_t k)
{
    return pow(2, (double)k / 4 - 1);
}

/* Of operations, by each time, in parts of the yardstick. */
struct sums {
    double *left;  /* go on */
    double *ended; /* ended, if their delay counts */
    double *per;   /* the same, each divided by its duration in parts of the guess */
};

struct grid {
    size_t count;
    bool strict; /* polls cost what they cost at least between their time and the one before */
    double *at;  /* the first is the start of the operation */
    size_t cells;
    struct sums cell[CELLS_MAX];
    struct sums all; /* weighted */
    double *cost;    /* from each time on, with the best polls */
    size_t *next;    /* the first of them */
};

static void *zeroed(size_t count, size_t size)
{
    void *p = calloc(count, size);

    if (p == NULL)
        abort();
    return p;
}

static struct sums sums_new(size_t count)
{
    return (struct sums){zeroed(count, sizeof(double)), zeroed(count, sizeof(double)),
                         zeroed(count, sizeof(double))};
}

static void sums_free(struct sums *s)
{
    free(s->left);
    free(s->ended);
    free(s->per);
}

static void sum_up(const struct grid *g, const struct least_case *c, double factor,
                   struct sums *out)
{
    const double per_step = (double)(g->count - 2) / log(TO / FROM),
                 share = 1 / ((double)c->count * c->yardstick);

    for (size_t i = 0; i < c->count; i++) {
        const double took = c->took[i] / factor;
        const size_t k =
            (size_t)fmin(1 + fmax(0, ceil(log(took / FROM) * per_step)), (double)(g->count - 1));

        out->left[k] += share;
        if (c->took[i] < NEAR_END * c->deadline) {
            out->ended[k] += share;
            out->per[k] += share / took;
        }
    }
    for (size_t k = 1; k < g->count; k++) {
        out->left[k] += out->left[k - 1];
        out->ended[k] += out->ended[k - 1];
        out->per[k] += out->per[k - 1];
    }
    for (size_t k = 0; k < g->count; k++)
        out->left[k] = out->left[g->count - 1] - out->left[k];
}

static struct grid *grid_new(const struct least_case *cases, size_t count, size_t times,
                             bool strict)
{
    struct grid *g = zeroed(1, sizeof(*g));

    *g = (struct grid){.count = times, .strict = strict, .cells = count * LEAST_FACTORS};
    g->at = zeroed(times, sizeof(*g->at));
    g->cost = zeroed(times, sizeof(*g->cost));
    g->next = zeroed(times, sizeof(*g->next));
    g->all = sums_new(times);
    for (size_t i = 1; i < times; i++)
        g->at[i] = FROM * pow(TO / FROM, (double)(i - 1) / (double)(times - 2));
    for (size_t c = 0; c < g->cells; c++) {
        g->cell[c] = sums_new(times);
        sum_up(g, &cases[c / LEAST_FACTORS], least_factor(c % LEAST_FACTORS), &g->cell[c]);
    }
    return g;
}

static void grid_free(struct grid *g)
{
    for (size_t c = 0; c < g->cells; c++)
        sums_free(&g->cell[c]);
    sums_free(&g->all);
    free(g->at);
    free(g->cost);
    free(g->next);
    free(g);
}

/* A poll at k for an operation that went on at j, and the delay of those that ended in between. */
static double cost_between(const struct grid *g, const struct sums *s, size_t j, size_t k)
{
    const size_t to = g->strict ? k - 1 : k;

    return s->left[j] + 100 * (g->at[to] * (s->per[to] - s->per[j]) - (s->ended[to] - s->ended[j]));
}

/* The least cost of the cells, weighted; g->next is the sequence that has it. */
static double cheapest(struct grid *g, const double *weights)
{
    const size_t last = g->count - 1;

    for (size_t i = 0; i <= last; i++)
        g->all.left[i] = g->all.ended[i] = g->all.per[i] = 0;
    for (size_t c = 0; c < g->cells; c++)
        for (size_t i = 0; i <= last; i++) {
            g->all.left[i] += weights[c] * g->cell[c].left[i];
            g->all.ended[i] += weights[c] * g->cell[c].ended[i];
            g->all.per[i] += weights[c] * g->cell[c].per[i];
        }
    g->cost[last] = 0;
    for (size_t j = last; j-- > 0;) {
        g->cost[j] = INFINITY;
        for (size_t k = j + 1; k <= last; k++) {
            const double cost = cost_between(g, &g->all, j, k);

            if (cost > g->cost[j])
                break; /* it grows from here on */
            if (cost + g->cost[k] < g->cost[j]) {
                g->cost[j] = cost + g->cost[k];
                g->next[j] = k;
            }
        }
    }
    return g->cost[0];
}

/* The cost of that sequence in one cell. */
static double cost_in(const struct grid *g, size_t cell)
{
    double cost = 0;

    for (size_t j = 0; j < g->count - 1; j = g->next[j])
        cost += cost_between(g, &g->cell[cell], j, g->next[j]);
    return cost;
}

double least_mean(const struct least_case *c)
{
    struct grid *g = grid_new(c, 1, FINE, true);
    const double out = cheapest(g, least_shares);

    grid_free(g);
    return out;
}

/*
 * Weights of rows: each cell is one, and so is the mean of each case if there is something to hold
 * against it. A cell counts in parts of `target`, a mean in parts of 1.
 */
struct weights {
    double cells[CELLS_MAX]; /* what the rows make of the cells */
    double means;            /* of all rows that are means, of a total of 1 */
    double target;
};

static void weigh(const double *logs, size_t cells, size_t rows, double target, struct weights *out)
{
    double share[ROWS_MAX] = {0}, top = -INFINITY, total = 0;

    for (size_t i = 0; i < rows; i++)
        top = fmax(top, logs[i]);
    for (size_t i = 0; i < rows; i++)
        total += share[i] = exp(logs[i] - top);
    out->means = 0;
    out->target = target;
    for (size_t i = 0; i < rows; i++)
        share[i] /= total;
    for (size_t i = 0; i < cells; i++)
        out->cells[i] = share[i] / target;
    for (size_t i = cells; i < rows; i++) {
        out->means += share[i];
        for (size_t k = 0; k < LEAST_FACTORS; k++)
            out->cells[(i - cells) * LEAST_FACTORS + k] += share[i] * least_shares[k];
    }
}

/*
 * Where no mean is above 1, the worst cell is not below this: the weighted cost is at most (1 -
 * means) * worst / target + means.
 */
static double bound(struct grid *g, const struct weights *w)
{
    return w->target * (cheapest(g, w->cells) - w->means) / (1 - w->means);
}

double least_worst(const struct least_case *cases, size_t count, bool on_average)
{
    struct grid *g = grid_new(cases, count, COARSE, false);
    const size_t rows = g->cells + (on_average ? count : 0);
    double logs[ROWS_MAX] = {0}, found = 0, out;
    struct weights w, best = {0};

    for (int round = 0; round < ROUNDS; round++) {
        const double speed = FASTEST / sqrt(1 + round / 20.0);
        double b;

        weigh(logs, g->cells, rows, fmax(1, found), &w);
        b = bound(g, &w);
        if (b > found) {
            found = b;
            best = w;
        }
        for (size_t c = 0; c < g->cells; c++) {
            const double cost = cost_in(g, c);

            logs[c] += speed * cost / w.target;
            if (on_average)
                logs[g->cells + c / LEAST_FACTORS] +=
                    speed * cost * least_shares[c % LEAST_FACTORS];
        }
    }
    grid_free(g);
    g = grid_new(cases, count, FINE, true);
    out = bound(g, &best);
    grid_free(g);
    return out;
}
