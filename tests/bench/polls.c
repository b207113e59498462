/*
 * Measures the cost of waiting for operations: polls, and the time for which their end goes
 * unnoticed. Time is simulated, so nothing here depends on the machine; the same seed gives the
 * same table.
 *
 * Operations are drawn from distributions and learned from by the real estimator. A client that
 * follows the hint asks next at current_time + Retry-After. An operation costs 1 for each poll. It
 * also costs 1 for each per cent of its duration by which its end is noticed late.
 *
 * Other clients are the yardsticks: some poll at fixed intervals, and one doubles its interval. The
 * oracle knows the distribution but not the draw. It uses dynamic programming on a grid of times,
 * and sees milestones at polls, as any client would. First operations are compared with the best
 * that any policy can do: least.h.
 *
 * usage: polls [--quick | --check] [--json FILE]
 *
 * --quick simulates fewer operations, --check somewhat fewer, and fails when a bound is missed.
 */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "driver/core/hint.h"
#include "tests/bench/least.h"
#include "tests/lib/seams.h"

#define DEADLINE_S 3600.0
#define LEARNED 20         /* operations before the one that is measured */
#define ORACLE_BUDGET 1.25 /* of the oracle's cost */
#define WORST_BUDGET 1.04  /* of the least cost in the worst cell of first operations */
#define FIRSTS 100000      /* first operations: they need one plan for all */
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
    struct hfd_past p = {.took_us = us(o->took_s),
                         .ending = o->took_s < DEADLINE_S ? HFD_ENDING_DONE : HFD_ENDING_LATE};

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

/* The server's knowledge of an operation that goes on. */
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

    while (s->milestones.count < all.milestones.count &&
           all.milestones.items[s->milestones.count].at_us <= us(now_s)) {
        s->in.milestones = &s->milestones;
        s->in.elapsed_us = all.milestones.items[s->milestones.count].at_us;
        s->milestones.items[s->milestones.count] = all.milestones.items[s->milestones.count];
        s->milestones.count++;
        if (hfd_estimate_is_news(&s->in, s->milestones.count - 1))
            plan(s);
    }
}

/* by_estimate: the client does not know Retry-After, and asks at estimated_completion_time. */
static double wait_s(const struct server *s, double now_s, bool by_estimate)
{
    const struct hfd_hint h =
        hfd_hint_make(&(struct hfd_hint_input){.status = "creating",
                                               .started_us = TEST_TIME_US,
                                               .estimate_us = TEST_TIME_US + s->in.prior_us,
                                               .deadline_us = TEST_TIME_US + s->in.deadline_us,
                                               .now_us = TEST_TIME_US + us(now_s),
                                               .plan = hfd_buf_slice(&s->plan)});

    return by_estimate ? fmax(1, (double)(h.estimated_us - h.now_us) / (double)HFD_US_PER_S)
                       : h.retry_after_s;
}

static double cost_hinted(const struct hfd_estimate_input *in, const struct operation *o,
                          bool milestones, bool by_estimate)
{
    struct server s = {.in = *in, .o = o, .tells = milestones};
    double now_s = 0;
    int polls = 0;

    hfd_buf_init(&s.plan, 4096);
    plan(&s);
    for (; now_s < o->took_s; polls++) {
        hear(&s, now_s);
        now_s += wait_s(&s, now_s, by_estimate);
    }
    hfd_buf_fini(&s.plan);
    return cost(o, polls, now_s);
}

/* ---- the oracle ---- */

#define TIMES 400
#define ORACLE_DRAWS 300000
#define ORACLE_FROM_S 20.0

/* The oracle's knowledge. Cell i of the durations and milestones lies between times i and i + 1. */
struct oracle {
    double at_s[TIMES + 1];
    double share[TIMES][TIMES]; /* of the operations, by cell of the milestone and cell of the end;
                                   without milestones all in row 0 */
    double per_s[TIMES];        /* mean of 1 / duration in a cell */
    double after[TIMES][TIMES + 1];
    double before[TIMES + 1];
};

static size_t cell(double s)
{
    const double i = ceil(log(s / ORACLE_FROM_S) / log(DEADLINE_S / ORACLE_FROM_S) * TIMES) - 1;

    return i < 0 ? 0 : i >= TIMES ? TIMES - 1 : (size_t)i;
}

static void look(const struct distribution *d, bool milestones, struct test_rng *r,
                 struct oracle *k)
{
    double count[TIMES] = {0};

    for (size_t i = 0; i <= TIMES; i++)
        k->at_s[i] = ORACLE_FROM_S * pow(DEADLINE_S / ORACLE_FROM_S, (double)i / TIMES);
    for (int i = 0; i < ORACLE_DRAWS; i++) {
        const struct operation o = draw(d, r, LEARNED);
        const size_t end = cell(o.took_s);

        k->share[milestones ? cell(o.second_s) : 0][end] += 1.0 / ORACLE_DRAWS;
        k->per_s[end] += 1 / o.took_s;
        count[end]++;
    }
    for (size_t i = 0; i < TIMES; i++)
        k->per_s[i] = count[i] > 0 ? k->per_s[i] / count[i] : 0;
}

/*
 * The cost of operations that end as `ends` says, from each time on, when nothing more is to be
 * heard than their end.
 */
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

/*
 * The same of operations whose milestone lies behind each time: a poll may find it, and then the
 * end is known better.
 */
static void polls_before(struct oracle *k)
{
    static double known[TIMES + 1][TIMES + 1]; /* [n][m]: the sum of after[..][n] over the
                                                  milestones below m */
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
            k->before[j] =
                fmin(k->before[j], left + late + known[n][n] - known[n][j] + k->before[n]);
        }
    }
}

static double cost_oracle(const struct distribution *d, bool milestones, struct test_rng *r)
{
    struct oracle *k = calloc(1, sizeof(*k));
    double out;

    if (k == NULL)
        abort();
    look(d, milestones, r, k);
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
/*
 * First operations of one distribution: mean costs by how wrong the guess is, and the fixed
 * intervals on the very same ones.
 */
struct first {
    double *took; /* in parts of a right guess; owned */
    double ours[LEAST_FACTORS], mean, worst, fixed;
    double least_mean,
        least_worst; /* no policy is below, not even one that knows the distribution */
};

/* Mean costs of operations of one distribution. */
struct result {
    const char *name;
    bool milestones;
    double oracle, ours, by_estimate, doubling;
    double fixed[INTERVALS], best_fixed;
    struct first first;
};

/*
 * All of them, and the worst cell of first operations: costs as parts of the best fixed interval.
 */
struct summary {
    struct result results[DISTRIBUTIONS * 2]; /* with milestones every second */
    double worst;
    double least_worst, least_worst_on_average; /* of one policy for all distributions */
};

static double least(const double *v, size_t n)
{
    double best = v[0];

    for (size_t i = 1; i < n; i++)
        best = fmin(best, v[i]);
    return best;
}

static void run_learned(const struct distribution *d, int trials, struct test_rng *r,
                        struct result *out)
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

/*
 * When a client asks that follows the hint, up to the deadline; nothing but that it goes on is to
 * be heard.
 */
static void ask_first(double guess_s, double *at_s, size_t max)
{
    struct server s = {.in = {.prior_us = us(guess_s), .deadline_us = us(DEADLINE_S)}};
    double now_s = 0;

    hfd_buf_init(&s.plan, 4096);
    plan(&s);
    for (size_t n = 0; n < max && now_s < DEADLINE_S; n++)
        at_s[n] = now_s += wait_s(&s, now_s, false);
    hfd_buf_fini(&s.plan);
}

static double cost_first(double guess_s, const struct operation *firsts)
{
    double at_s[(size_t)DEADLINE_S], sum = 0;

    ask_first(guess_s, at_s, sizeof(at_s) / sizeof(at_s[0]));
    for (size_t i = 0; i < FIRSTS; i++) {
        int n = 0;

        while (at_s[n] < firsts[i].took_s)
            n++;
        sum += cost(&firsts[i], n + 1, at_s[n]);
    }
    return sum / FIRSTS;
}

static struct least_case case_of(const struct distribution *d, const struct first *f)
{
    return (struct least_case){.took = f->took,
                               .count = FIRSTS,
                               .deadline = DEADLINE_S / d->middle_s,
                               .yardstick = f->fixed};
}

static void run_first(const struct distribution *d, struct test_rng *r, struct first *out)
{
    struct operation *firsts = calloc(FIRSTS, sizeof(*firsts));
    double fixed[INTERVALS] = {0};
    struct least_case c;

    out->took = calloc(FIRSTS, sizeof(*out->took));
    if (firsts == NULL || out->took == NULL)
        abort();
    for (size_t n = 0; n < FIRSTS; n++) {
        firsts[n] = draw(d, r, 0);
        out->took[n] = firsts[n].took_s / d->middle_s;
        for (size_t i = 0; i < INTERVALS; i++)
            fixed[i] += cost_fixed(&firsts[n], intervals_s[i]) / FIRSTS;
    }
    out->fixed = least(fixed, INTERVALS);
    for (size_t i = 0; i < LEAST_FACTORS; i++) {
        out->ours[i] = cost_first(d->middle_s * least_factor(i), firsts);
        out->mean += out->ours[i] * least_shares[i];
        out->worst = fmax(out->worst, out->ours[i]);
    }
    free(firsts);
    c = case_of(d, out);
    out->least_mean = least_mean(&c) * out->fixed;
    out->least_worst = least_worst(&c, 1, false) * out->fixed;
}

static void show_head(void)
{
    printf("Cost of an operation: polls + per cent of its duration by which its end is noticed "
           "late. Deadline %.0f s.\n\n"
           "                     after %d operations                        fixed interval, "
           "seconds             doubling\n"
           "                 oracle   ours  ratio  by estimate        5     15     30     60    "
           "120     from 5 s\n",
           DEADLINE_S, LEARNED);
}

static void show(const struct result *v)
{
    printf("%-10s %s  %6.2f %6.2f %6.2f %12.2f  ", v->name, v->milestones ? "+ m" : "   ",
           v->oracle, v->ours, v->ours / v->oracle, v->by_estimate);
    for (size_t i = 0; i < INTERVALS; i++)
        printf(" %6.1f", v->fixed[i]);
    printf(" %12.1f\n", v->doubling);
}

static void show_first(const struct result *v)
{
    const struct first *f = &v->first;

    printf("%-10s      ", v->name);
    for (size_t i = 0; i < LEAST_FACTORS; i++)
        printf(" %6.1f", f->ours[i]);
    printf(" %8.2f %11.2f %11.2f %6.1f %11.1f\n", f->mean, f->fixed, f->least_mean, f->worst,
           f->least_worst);
}

/* One table for all distributions, with what one policy for all of them can do. */
static void show_firsts(const struct summary *all)
{
    printf(
        "\nThe first operation, by the configured guess as a part of the truth\n                ");
    for (size_t i = 0; i < LEAST_FACTORS; i++)
        printf(" %6.2f", least_factor(i));
    printf("     mean  best fixed  least mean  worst  least worst\n");
    for (size_t i = 0; i < DISTRIBUTIONS; i++)
        show_first(&all->results[2 * i]);
    printf("\nLeast: no policy is below, not even one that knows the distribution (but not by how "
           "much the guess is wrong).\n"
           "One policy for all five, in its worst cell, as a part of the best fixed interval: no "
           "policy is below %.3f, none\n"
           "that is below the interval on average of each is below %.3f; ours is %.3f.\n\n",
           all->least_worst, all->least_worst_on_average, all->worst);
}

/* ---- rows for other programs ---- */

struct row {
    char name[48];
    const char *what, *yardstick_what;
    double value, yardstick, budget;
    bool below;       /* the ratio must be below the budget, not only at most it */
    const char *unit; /* NULL: of costs */
};

static bool met(const struct row *r)
{
    const double ratio = r->value / r->yardstick;

    return r->below ? ratio < r->budget : ratio <= r->budget;
}

static void write_row(FILE *f, const struct row *r, bool first)
{
    fprintf(f,
            "%s{\"name\":\"%s\",\"value\":%.4f,\"yardstick\":%.4f,\"ratio\":%.4f,\"budget\":%.2f,"
            "\"ok\":%s,"
            "\"command\":\"./dev bench "
            "polls\",\"unit\":\"%s\",\"what\":\"%s\",\"yardstick_what\":\"%s\",\"bound\":\"%s\","
            "\"of\":\"ratio\",\"noise\":null,\"note\":null}",
            first ? "[" : ",\n", r->name, r->value, r->yardstick, r->value / r->yardstick,
            r->budget, met(r) ? "true" : "false", r->unit != NULL ? r->unit : "polls + %", r->what,
            r->yardstick_what, r->below ? "<" : "<=");
}

#define ROWS_MAX (DISTRIBUTIONS * 6 + 2)

/* The results at the first operation: on average over the guesses, and with a right one. */
static size_t make_first_rows(const struct result *v, struct row *rows)
{
    const struct row row = {.yardstick_what = "best fixed interval",
                            .yardstick = v->first.fixed,
                            .budget = 1,
                            .below = true};

    rows[0] = rows[1] = row;
    rows[0].what = "cost of the first operation, mean over the guesses";
    rows[0].value = v->first.mean;
    (void)snprintf(rows[0].name, sizeof(rows[0].name), "polls/%s/first", v->name);
    rows[1].what = "cost of the first operation, guess right";
    rows[1].value = v->first.ours[LEAST_FACTORS / 2];
    (void)snprintf(rows[1].name, sizeof(rows[1].name), "polls/%s/first-right", v->name);
    return 2;
}

static size_t make_rows(const struct summary *all, struct row *rows)
{
    size_t n = 1, worst = 1;

    for (size_t i = 0; i < DISTRIBUTIONS * 2; i++) {
        const struct result *v = &all->results[i];
        const struct row row = {.what = "cost after 20 operations", .value = v->ours};
        const char *with = v->milestones ? "-milestones" : "";

        rows[n] = rows[n + 1] = row;
        rows[n].yardstick_what = "oracle";
        rows[n].yardstick = v->oracle;
        rows[n].budget = ORACLE_BUDGET;
        (void)snprintf(rows[n].name, sizeof(rows[n].name), "polls/%s%s", v->name, with);
        if (rows[n].value / rows[n].yardstick > rows[worst].value / rows[worst].yardstick)
            worst = n;
        n++;
        rows[n].yardstick_what = "best fixed interval";
        rows[n].yardstick = v->best_fixed;
        rows[n].budget = 1;
        rows[n].below = true;
        (void)snprintf(rows[n].name, sizeof(rows[n].name), "polls/%s%s/fixed", v->name, with);
        n++;
        if (!v->milestones) /* without a past they tell nothing */
            n += make_first_rows(v, rows + n);
    }
    rows[n++] = (struct row){
        .name = "polls/first-worst",
        .what = "cost of the first operation in the worst case, guess wrong by up to 2",
        .yardstick_what = "least of any policy that is below the best fixed interval on average",
        .value = all->worst,
        .yardstick = all->least_worst_on_average,
        .budget = WORST_BUDGET,
        .unit = "best fixed interval"};
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

static void run(int trials, struct summary *all)
{
    struct least_case cases[DISTRIBUTIONS];

    show_head();
    for (size_t i = 0; i < DISTRIBUTIONS * 2; i++) {
        const struct distribution *d = &distributions[i / 2];
        struct result *v = &all->results[i];
        struct test_rng r;

        *v = (struct result){.name = d->name, .milestones = i % 2 != 0};
        test_rng_init(&r, i + 1);
        v->oracle = cost_oracle(d, v->milestones, &r);
        run_learned(d, trials, &r, v);
        show(v);
        if (v->milestones)
            continue;
        test_rng_init(&r, 100 + i); /* the same operations, however many were learned from */
        run_first(d, &r, &v->first);
        cases[i / 2] = case_of(d, &v->first);
        all->worst = fmax(all->worst, v->first.worst / v->first.fixed);
    }
    all->least_worst = least_worst(cases, DISTRIBUTIONS, false);
    all->least_worst_on_average = least_worst(cases, DISTRIBUTIONS, true);
    printf("\n\"+ m\": adapters report milestones. \"by estimate\": a client that asks at "
           "estimated_completion_time instead.\n");
    show_firsts(all);
    for (size_t i = 0; i < DISTRIBUTIONS; i++)
        printf("%-10s %s\n", distributions[i].name, distributions[i].what);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"quick", no_argument, NULL, 'q'},
                                            {"check", no_argument, NULL, 'c'},
                                            {"json", required_argument, NULL, 'j'},
                                            {NULL, 0, NULL, 0}};
    struct summary all = {0};
    struct row rows[ROWS_MAX];
    const char *json = NULL;
    int c, trials = TRIALS;
    bool check = false, ok = true;
    size_t count;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c == '?')
            return 2;
        trials = c == 'q' ? TRIALS_QUICK : c == 'c' ? TRIALS_CHECK : trials;
        check = check || c == 'c';
        json = c == 'j' ? optarg : json;
    }
    run(trials, &all);
    count = make_rows(&all, rows);
    for (size_t i = 0; i < count; i++)
        if (check && !met(&rows[i])) {
            printf("MISSED: %s: %.3f of the %s\n", rows[i].name, rows[i].value / rows[i].yardstick,
                   rows[i].yardstick_what);
            ok = false;
        }
    for (size_t i = 0; i < DISTRIBUTIONS * 2; i++)
        free(all.results[i].first.took);
    return (json == NULL || write_json(json, rows, count)) && ok ? 0 : 1;
}
