/*
 * What it costs to wait for operations: polls, and the time for which their end goes unnoticed. Time is simulated, so nothing here depends
 * on the machine; the same seed gives the same table.
 *
 * Operations are drawn from distributions and learned from by the real estimator. A client that follows the hint asks next at
 * current_time + Retry-After. An operation costs 1 for each poll, and 1 for each per cent of its duration by which its end is noticed
 * late. Beside that: clients that poll at fixed intervals, one that doubles its interval, and the oracle, which knows the distribution but
 * not the draw (dynamic programming on a grid of times; of milestones it hears at polls, as any client would).
 *
 * usage: polls [--quick | --check] [--json FILE]
 * --quick simulates fewer operations, --check somewhat fewer, and fails when a bound is missed.
 */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "driver/core/hint.h"
#include "tests/lib/seams.h"

#define DEADLINE_S 3600.0
#define LEARNED 20         /* operations before the one that is measured */
#define ORACLE_BUDGET 1.25 /* of the oracle's cost */
#define NEVER_S 1e9
#define TRIALS 3000
#define TRIALS_CHECK 1000
#define TRIALS_QUICK 300

/* ---- chance ---- */

static double uniform(struct test_rng *r)
{
    return ((double)test_rng_below(r, UINT64_C(1) << 53) + 0.5) / (double)(UINT64_C(1) << 53);
}

static double normal(struct test_rng *r)
{
    const double radius = sqrt(-2 * log(uniform(r)));

    return radius * cos(2 * M_PI * uniform(r));
}

/* ---- operations ---- */

static double draw_narrow(struct test_rng *r, int nth)
{
    (void)nth;
    return 600 * exp(0.1 * normal(r));
}

static double draw_wide(struct test_rng *r, int nth)
{
    (void)nth;
    return 600 * exp(0.5 * normal(r));
}

static double draw_two_paths(struct test_rng *r, int nth)
{
    const double middle_s = uniform(r) < 0.5 ? 300 : 900;

    (void)nth;
    return middle_s * exp(0.1 * normal(r));
}

/* Each operation takes 2 % longer than the one before. */
static double draw_drifting(struct test_rng *r, int nth)
{
    return 400 * pow(1.02, nth) * exp(0.15 * normal(r));
}

static double draw_stuck(struct test_rng *r, int nth)
{
    const double s = 600 * exp(0.2 * normal(r));

    (void)nth;
    return uniform(r) < 0.05 ? NEVER_S : s;
}

static const struct distribution {
    const char *name, *what;
    double (*draw_s)(struct test_rng *r, int nth);
    double middle_s; /* of the first operation: what a good configured guess says */
} distributions[] = {
    {"narrow", "log-normal, sigma 0.1", draw_narrow, 600},
    {"wide", "log-normal, sigma 0.5", draw_wide, 600},
    {"two-paths", "half at 300 s, half at 900 s, sigma 0.1", draw_two_paths, 520},
    {"drifting", "2 % longer each time, sigma 0.15", draw_drifting, 400},
    {"stuck", "log-normal, sigma 0.2; 5 % never end", draw_stuck, 600},
};
#define DISTRIBUTIONS (sizeof(distributions) / sizeof(distributions[0]))

/* One operation: `first` tells nothing of the end, `second` comes at about 40 % of it. */
struct operation {
    double took_s, first_s, second_s;
};

static struct operation draw(const struct distribution *d, struct test_rng *r, int nth)
{
    struct operation o = {.took_s = d->draw_s(r, nth)};
    /* One that hangs does so behind its milestones. */
    const double goes_for_s = o.took_s < NEVER_S ? o.took_s : 600 * exp(0.2 * normal(r));

    o.second_s = fmin(0.4 * goes_for_s * exp(0.1 * normal(r)), 0.95 * goes_for_s);
    o.first_s = fmin(10 * exp(0.3 * normal(r)), 0.9 * o.second_s);
    o.took_s = fmin(o.took_s, DEADLINE_S);
    return o;
}

static int64_t us(double s)
{
    return (int64_t)(s * (double)HFD_US_PER_S);
}

static struct hfd_past past_of(const struct operation *o, bool milestones)
{
    struct hfd_past p = {.took_us = us(o->took_s), .ending = o->took_s < DEADLINE_S ? HFD_ENDING_DONE : HFD_ENDING_LATE};

    if (milestones) {
        p.milestones.items[0] = (struct hfd_milestone){HFD_SLICE("first"), us(o->first_s)};
        p.milestones.items[1] = (struct hfd_milestone){HFD_SLICE("second"), us(o->second_s)};
        p.milestones.count = 2;
    }
    return p;
}

/* ---- clients ---- */

/* `polls` were made, the last at at_s. */
static double cost(const struct operation *o, int polls, double at_s)
{
    return polls + 100 * (at_s - o->took_s) / o->took_s;
}

static double cost_fixed(const struct operation *o, double interval_s)
{
    const double polls = ceil(o->took_s / interval_s);

    return cost(o, (int)polls, polls * interval_s);
}

/* 5, 10, 20, ... s, at most 5 min apart. */
static double cost_doubling(const struct operation *o)
{
    double at_s = 0, wait_s = 5;
    int polls = 0;

    for (; at_s < o->took_s; polls++) {
        at_s += wait_s;
        wait_s = fmin(2 * wait_s, 300);
    }
    return cost(o, polls, at_s);
}

/* What the server knows of an operation that goes on. */
struct server {
    struct hfd_estimate_input in;
    struct hfd_milestones milestones;
    const struct operation *o;
    bool tells; /* adapters report milestones */
    struct hfd_buf plan;
};

static void plan(struct server *s)
{
    struct hfd_plan p;

    s->in.milestones = &s->milestones;
    hfd_estimate_plan(&s->in, &p);
    hfd_buf_reset(&s->plan);
    hfd_plan_format(&s->plan, &p);
}

/* A milestone that came by now is planned from at the time at which it came. */
static void hear(struct server *s, double now_s)
{
    const struct hfd_past all = past_of(s->o, s->tells);

    while (s->milestones.count < all.milestones.count && all.milestones.items[s->milestones.count].at_us <= us(now_s)) {
        s->in.milestones = &s->milestones;
        s->in.elapsed_us = all.milestones.items[s->milestones.count].at_us;
        s->milestones.items[s->milestones.count] = all.milestones.items[s->milestones.count];
        s->milestones.count++;
        if (hfd_estimate_is_news(&s->in, s->milestones.count - 1))
            plan(s);
    }
}

/* by_estimate: the client does not know Retry-After, and asks at estimated_completion_time. */
static double cost_hinted(const struct hfd_estimate_input *in, const struct operation *o, bool milestones, bool by_estimate)
{
    struct server s = {.in = *in, .o = o, .tells = milestones};
    double now_s = 0;
    int polls = 0;

    hfd_buf_init(&s.plan, 4096);
    plan(&s);
    for (; now_s < o->took_s; polls++) {
        struct hfd_hint h;

        hear(&s, now_s);
        h = hfd_hint_make(&(struct hfd_hint_input){.status = "creating",
                                                   .started_us = TEST_TIME_US,
                                                   .estimate_us = TEST_TIME_US + in->prior_us,
                                                   .deadline_us = TEST_TIME_US + in->deadline_us,
                                                   .now_us = TEST_TIME_US + us(now_s),
                                                   .plan = hfd_buf_slice(&s.plan)});
        now_s += by_estimate ? fmax(1, (double)(h.estimated_us - h.now_us) / (double)HFD_US_PER_S) : h.retry_after_s;
    }
    hfd_buf_fini(&s.plan);
    return cost(o, polls, now_s);
}

/* ---- the oracle ---- */

#define TIMES 400
#define ORACLE_DRAWS 300000
#define ORACLE_FROM_S 20.0

/* How wrong the configured guess is: by a factor of 2^u, and u is not known beforehand. */
enum doubt {
    DOUBT_NONE,
    DOUBT_ENDS, /* -1 or 1 */
    DOUBT_EVEN, /* anything in between */
};

/* What the oracle knows. Cell i of the durations and milestones lies between times i and i + 1. */
struct oracle {
    double until_s;
    double at_s[TIMES + 1];
    double share[TIMES][TIMES]; /* of the operations, by cell of the milestone and cell of the end; without milestones all in row 0 */
    double per_s[TIMES];        /* mean of 1 / duration in a cell */
    double after[TIMES][TIMES + 1];
    double before[TIMES + 1];
};

static size_t cell(const struct oracle *k, double s)
{
    const double i = ceil(log(s / ORACLE_FROM_S) / log(k->until_s / ORACLE_FROM_S) * TIMES) - 1;

    return i < 0 ? 0 : i >= TIMES ? TIMES - 1
                                  : (size_t)i;
}

static double wrong_by(enum doubt doubt, struct test_rng *r)
{
    if (doubt == DOUBT_NONE)
        return 1;
    return pow(2, doubt == DOUBT_ENDS ? (uniform(r) < 0.5 ? -1 : 1) : 2 * uniform(r) - 1);
}

static void look(const struct distribution *d, bool milestones, enum doubt doubt, struct test_rng *r, struct oracle *k)
{
    double count[TIMES] = {0};

    k->until_s = doubt == DOUBT_NONE ? DEADLINE_S : 2 * DEADLINE_S;
    for (size_t i = 0; i <= TIMES; i++)
        k->at_s[i] = ORACLE_FROM_S * pow(k->until_s / ORACLE_FROM_S, (double)i / TIMES);
    for (int i = 0; i < ORACLE_DRAWS; i++) {
        const struct operation o = draw(d, r, doubt == DOUBT_NONE ? LEARNED : 0);
        const double took_s = o.took_s * wrong_by(doubt, r);
        const size_t end = cell(k, took_s);

        k->share[milestones ? cell(k, o.second_s) : 0][end] += 1.0 / ORACLE_DRAWS;
        k->per_s[end] += 1 / took_s;
        count[end]++;
    }
    for (size_t i = 0; i < TIMES; i++)
        k->per_s[i] = count[i] > 0 ? k->per_s[i] / count[i] : 0;
}

/* The cost of operations that end as `ends` says, from each time on, when nothing more is to be heard than their end. */
static void polls_of(const struct oracle *k, const double *ends, double *out)
{
    double ended[TIMES + 1] = {0}, per_s[TIMES + 1] = {0};

    for (size_t i = 0; i < TIMES; i++) {
        ended[i + 1] = ended[i] + ends[i];
        per_s[i + 1] = per_s[i] + ends[i] * k->per_s[i];
    }
    out[TIMES] = 0;
    for (size_t j = TIMES; j-- > 0;) {
        const double left = ended[TIMES] - ended[j];

        out[j] = left > 0 ? INFINITY : 0;
        for (size_t n = j + 1; n <= TIMES && left > 0; n++) {
            const double late = 100 * (k->at_s[n] * (per_s[n] - per_s[j]) - (ended[n] - ended[j]));

            if (left + late > out[j])
                break;
            out[j] = fmin(out[j], left + late + out[n]);
        }
    }
}

/* The same of operations whose milestone lies behind each time: a poll may find it, and then the end is known better. */
static void polls_before(struct oracle *k)
{
    static double known[TIMES + 1][TIMES + 1]; /* [n][m]: the sum of after[..][n] over the milestones below m */
    double ends[TIMES] = {0}, left = 0;

    for (size_t n = 0; n <= TIMES; n++)
        for (size_t m = 0; m < TIMES; m++)
            known[n][m + 1] = known[n][m] + k->after[m][n];
    k->before[TIMES] = 0;
    for (size_t j = TIMES; j-- > 0;) {
        double ended = 0, per_s = 0;

        for (size_t i = 0; i < TIMES; i++) {
            ends[i] += k->share[j][i];
            left += k->share[j][i];
        }
        k->before[j] = left > 0 ? INFINITY : 0;
        for (size_t n = j + 1; n <= TIMES && left > 0; n++) {
            double late;

            ended += ends[n - 1];
            per_s += ends[n - 1] * k->per_s[n - 1];
            late = 100 * (k->at_s[n] * per_s - ended);
            if (left + late > k->before[j])
                break;
            k->before[j] = fmin(k->before[j], left + late + known[n][n] - known[n][j] + k->before[n]);
        }
    }
}

static double cost_oracle(const struct distribution *d, bool milestones, enum doubt doubt, struct test_rng *r)
{
    struct oracle *k = calloc(1, sizeof(*k));
    double out;

    if (k == NULL)
        abort();
    look(d, milestones, doubt, r, k);
    for (size_t m = 0; m < (milestones ? TIMES : 1); m++)
        polls_of(k, k->share[m], k->after[m]);
    if (milestones)
        polls_before(k);
    out = milestones ? k->before[0] : k->after[0][0];
    free(k);
    return out;
}

/* ---- the table ---- */

static const double intervals_s[] = {5, 15, 30, 60, 120};
#define INTERVALS (sizeof(intervals_s) / sizeof(intervals_s[0]))
/* The configured guess, as a part of the truth: half of it to twice. */
static const double priors[] = {0.5, 0.595, 0.707, 0.841, 1, 1.189, 1.414, 1.682, 2};
#define PRIORS (sizeof(priors) / sizeof(priors[0]))
static const double prior_shares[PRIORS] = {0.0625, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.0625}; /* even between the ends */

/* Mean costs of operations of one distribution. */
struct result {
    const char *name;
    bool milestones;
    double oracle, ours, by_estimate, doubling;
    double fixed[INTERVALS], best_fixed;
    /* Of first operations; the fixed intervals on the very same ones, the best of them. */
    double first[PRIORS], first_mean, first_fixed;
    double first_oracle, ends_oracle; /* no policy has a lower mean over the guesses, or over the two ends */
};

static double least(const double *v, size_t n)
{
    double best = v[0];

    for (size_t i = 1; i < n; i++)
        best = fmin(best, v[i]);
    return best;
}

static void run_learned(const struct distribution *d, int trials, struct test_rng *r, struct result *out)
{
    static const struct hfd_milestones none;

    for (int t = 0; t < trials; t++) {
        struct hfd_past past[LEARNED];
        struct hfd_estimate_input in = {.past = past,
                                        .past_count = LEARNED,
                                        .prior_us = us(d->middle_s),
                                        .deadline_us = us(DEADLINE_S),
                                        .milestones = &none};
        struct operation o;

        for (int i = 0; i < LEARNED; i++) {
            o = draw(d, r, i);
            past[LEARNED - 1 - i] = past_of(&o, out->milestones);
        }
        o = draw(d, r, LEARNED);
        out->ours += cost_hinted(&in, &o, out->milestones, false) / trials;
        out->by_estimate += cost_hinted(&in, &o, out->milestones, true) / trials;
        out->doubling += cost_doubling(&o) / trials;
        for (size_t i = 0; i < INTERVALS; i++)
            out->fixed[i] += cost_fixed(&o, intervals_s[i]) / trials;
    }
    out->best_fixed = least(out->fixed, INTERVALS);
}

static void run_first(const struct distribution *d, int trials, struct test_rng *r, struct result *out)
{
    static const struct hfd_milestones none;
    double fixed[INTERVALS] = {0};

    for (int t = 0; t < trials; t++) {
        const struct operation o = draw(d, r, 0);

        for (size_t i = 0; i < PRIORS; i++) {
            const struct hfd_estimate_input in = {
                .prior_us = us(d->middle_s * priors[i]), .deadline_us = us(DEADLINE_S), .milestones = &none};

            out->first[i] += cost_hinted(&in, &o, out->milestones, false) / trials;
        }
        for (size_t i = 0; i < INTERVALS; i++)
            fixed[i] += cost_fixed(&o, intervals_s[i]) / trials;
    }
    for (size_t i = 0; i < PRIORS; i++)
        out->first_mean += out->first[i] * prior_shares[i];
    out->first_fixed = least(fixed, INTERVALS);
    out->first_oracle = cost_oracle(d, false, DOUBT_EVEN, r);
    out->ends_oracle = cost_oracle(d, false, DOUBT_ENDS, r);
}

static void show_head(void)
{
    printf("Cost of an operation: polls + per cent of its duration by which its end is noticed late. Deadline %.0f s.\n\n"
           "                     after %d operations                        fixed interval, seconds             doubling\n"
           "                 oracle   ours  ratio  by estimate        5     15     30     60    120     from 5 s\n",
           DEADLINE_S, LEARNED);
}

static void show(const struct result *v)
{
    printf("%-10s %s  %6.2f %6.2f %6.2f %12.2f  ", v->name, v->milestones ? "+ m" : "   ", v->oracle, v->ours, v->ours / v->oracle,
           v->by_estimate);
    for (size_t i = 0; i < INTERVALS; i++)
        printf(" %6.1f", v->fixed[i]);
    printf(" %12.1f\n", v->doubling);
}

static void show_first(const struct result *v)
{
    printf("%-10s      ", v->name);
    for (size_t i = 0; i < PRIORS; i++)
        printf(" %6.1f", v->first[i]);
    printf(" %8.2f %11.2f %11.2f %11.2f\n", v->first_mean, v->first_fixed, v->first_oracle, v->ends_oracle);
}

/* ---- rows for other programs ---- */

struct row {
    char name[48];
    const char *what, *yardstick_what;
    double value, yardstick, budget;
    bool below;    /* the ratio must be below the budget, not only at most it */
    bool reported; /* known to be missed: --check does not look at it */
};

static bool met(const struct row *r)
{
    const double ratio = r->value / r->yardstick;

    return r->below ? ratio < r->budget : ratio <= r->budget;
}

static void write_row(FILE *f, const struct row *r, bool first)
{
    fprintf(f,
            "%s{\"name\":\"%s\",\"value\":%.4f,\"yardstick\":%.4f,\"ratio\":%.4f,\"budget\":%.2f,\"ok\":%s,"
            "\"command\":\"./dev bench polls\",\"unit\":\"polls + %%\",\"what\":\"%s\",\"yardstick_what\":\"%s\",\"bound\":\"%s\","
            "\"of\":\"ratio\",\"noise\":null,\"note\":null}",
            first ? "[" : ",\n", r->name, r->value, r->yardstick, r->value / r->yardstick, r->budget, met(r) ? "true" : "false", r->what,
            r->yardstick_what, r->below ? "<" : "<=");
}

#define ROWS_MAX (DISTRIBUTIONS * 8 + 1)

/* What is done at the first operation: on average over the guesses, and with one that is half the truth, right, or twice the truth. */
static size_t make_first_rows(const struct result *v, struct row *rows)
{
    static const struct {
        const char *name, *what;
        size_t prior;
    } single[] = {
        {"half", "cost of the first operation, guess half the truth", 0},
        {"right", "cost of the first operation, guess right", PRIORS / 2},
        {"double", "cost of the first operation, guess twice the truth", PRIORS - 1},
    };
    size_t n = 0;

    rows[n] = (struct row){.what = "cost of the first operation, mean over the guesses",
                           .yardstick_what = "best fixed interval",
                           .value = v->first_mean,
                           .yardstick = v->first_fixed,
                           .budget = 1,
                           .below = true};
    (void)snprintf(rows[n].name, sizeof(rows[n].name), "polls/%s/first", v->name);
    n++;
    for (size_t i = 0; i < sizeof(single) / sizeof(single[0]); i++, n++) {
        rows[n] = (struct row){{0}, single[i].what, "best fixed interval", v->first[single[i].prior], v->first_fixed, 1, true, i != 1};
        (void)snprintf(rows[n].name, sizeof(rows[n].name), "polls/%s/first-%s", v->name, single[i].name);
    }
    return n;
}

static size_t make_rows(const struct result *results, size_t count, struct row *rows)
{
    size_t n = 1, worst = 1;

    for (size_t i = 0; i < count; i++) {
        const struct result *v = &results[i];
        const char *with = v->milestones ? "-milestones" : "";

        rows[n] = (struct row){{0}, "cost after 20 operations", "oracle", v->ours, v->oracle, ORACLE_BUDGET, false, false};
        (void)snprintf(rows[n].name, sizeof(rows[n].name), "polls/%s%s", v->name, with);
        if (rows[n].value / rows[n].yardstick > rows[worst].value / rows[worst].yardstick)
            worst = n;
        n++;
        rows[n] = (struct row){{0}, "cost after 20 operations", "best fixed interval", v->ours, v->best_fixed, 1, true, false};
        (void)snprintf(rows[n].name, sizeof(rows[n].name), "polls/%s%s/fixed", v->name, with);
        n++;
        if (!v->milestones) /* without a past they tell nothing */
            n += make_first_rows(v, rows + n);
    }
    rows[0] = rows[worst];
    (void)snprintf(rows[0].name, sizeof(rows[0].name), "polls");
    rows[0].what = "cost after 20 operations, of the worst distribution";
    return n;
}

static bool write_json(const char *path, const struct row *rows, size_t count)
{
    FILE *f = fopen(path, "w");

    if (f == NULL) {
        perror(path);
        return false;
    }
    for (size_t i = 0; i < count; i++)
        write_row(f, &rows[i], i == 0);
    fputs("]\n", f);
    return fclose(f) == 0;
}

static size_t run(int trials, struct result *results)
{
    size_t n = 0;

    show_head();
    for (size_t i = 0; i < DISTRIBUTIONS; i++)
        for (int milestones = 0; milestones < 2; milestones++) {
            struct result *v = &results[n++];
            struct test_rng r;

            *v = (struct result){.name = distributions[i].name, .milestones = milestones != 0};
            test_rng_init(&r, 2 * i + (unsigned)milestones + 1);
            v->oracle = cost_oracle(&distributions[i], v->milestones, DOUBT_NONE, &r);
            run_learned(&distributions[i], trials, &r, v);
            if (!v->milestones)
                run_first(&distributions[i], trials, &r, v);
            show(v);
        }
    printf("\n\"+ m\": adapters report milestones. \"by estimate\": a client that asks at estimated_completion_time instead.\n\n"
           "The first operation, by the configured guess as a part of the truth\n                ");
    for (size_t i = 0; i < PRIORS; i++)
        printf(" %6.2f", priors[i]);
    printf("     mean  best fixed  least mean  least ends\n");
    for (size_t i = 0; i < n; i += 2)
        show_first(&results[i]);
    printf("\nLeast: of any policy that knows the distribution, but not by how much the guess is wrong; the ends are 0.50 and 2.00.\n\n");
    for (size_t i = 0; i < DISTRIBUTIONS; i++)
        printf("%-10s %s\n", distributions[i].name, distributions[i].what);
    return n;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"quick", no_argument, NULL, 'q'}, {"check", no_argument, NULL, 'c'}, {"json", required_argument, NULL, 'j'}, {NULL, 0, NULL, 0}};
    struct result results[DISTRIBUTIONS * 2];
    struct row rows[ROWS_MAX];
    const char *json = NULL;
    int c, trials = TRIALS;
    bool check = false, ok = true;
    size_t count;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c == '?')
            return 2;
        trials = c == 'q' ? TRIALS_QUICK : c == 'c' ? TRIALS_CHECK
                                                    : trials;
        check = check || c == 'c';
        json = c == 'j' ? optarg : json;
    }
    count = make_rows(results, run(trials, results), rows);
    for (size_t i = 0; i < count; i++)
        if (check && !rows[i].reported && !met(&rows[i])) {
            printf("MISSED: %s: %.3f of the %s\n", rows[i].name, rows[i].value / rows[i].yardstick, rows[i].yardstick_what);
            ok = false;
        }
    return (json == NULL || write_json(json, rows, count)) && ok ? 0 : 1;
}
