/* Runs seeds: sim [--first N] [--count N] [--seed N] [--steps N] [--twice N] [--changes]. See
 * sim.h. */
#include "tests/fault/sim.h"

#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "driver/base/base.h"
#include "driver/base/check.h"
#include "driver/base/log.h"
#include "store/sqlite/db_sqlite_int.h"
#include "tests/lib/faultvfs.h"

#define STEPS 120
#define ENOUGH 400 /* runs in which everything happens */

struct sim_tally sim_tally;

static const char *program;
static bool changes;    /* --changes */
static char again[512]; /* how to see this run again */

/* Also from a signal handler. */
static void say_again(void)
{
    if (write(STDERR_FILENO, again, strlen(again)) < 0)
        return;
}

void sim_fail(struct sim *s, const char *rule, const char *fmt, ...)
{
    va_list args;

    (void)fprintf(stderr, "seed %llu, step %u%s: rule %s: ", (unsigned long long)s->seed, s->step,
                  s->calm ? ", calm" : "", rule);
    va_start(args, fmt);
    (void)vfprintf(stderr, fmt, args);
    va_end(args);
    (void)fputc('\n', stderr);
    say_again();
    tmpdir_remove(s->base);
    (void)fflush(stdout);
    _exit(1);
}

void sim_trace(struct sim *s, const char *fmt, ...)
{
    char line[512];
    va_list args;
    int n;

    va_start(args, fmt);
    n = vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    s->trace = sim_hash(s->trace, line, n < (int)sizeof(line) ? (size_t)n : sizeof(line) - 1);
    s->trace = sim_hash(s->trace, &s->clock.wall_us, sizeof(s->clock.wall_us));
    if (s->verbose)
        (void)printf("%4u %10.3f %s\n", s->step,
                     (double)(s->clock.wall_us - TEST_TIME_US) / (double)HFD_US_PER_S, line);
}

static void name_run(uint64_t seed, unsigned steps)
{
    char more[32] = "";

    (void)snprintf(more, sizeof(more), "%s", changes ? " --changes" : "");
    if (steps != STEPS)
        (void)snprintf(more + strlen(more), sizeof(more) - strlen(more), " --steps %u", steps);
    (void)snprintf(again, sizeof(again), "again: %s --seed %llu%s\n", program,
                   (unsigned long long)seed, more);
}

/* One run. @return its trace */
static uint64_t run(uint64_t seed, unsigned steps, bool verbose, unsigned *crashes)
{
    struct sim *s = calloc(1, sizeof(*s));
    uint64_t trace;

    HFD_ASSERT(s != NULL);
    name_run(seed, steps);
    s->seed = seed;
    s->verbose = verbose;
    s->changes = changes;
    sim_begin(s);
    sim_open(s);
    for (unsigned i = 0; i < steps; i++)
        sim_event(s);
    sim_calm(s);
    trace = s->trace;
    *crashes += s->crashes;
    sim_close(s);
    free(s);
    return trace;
}

static bool events_met(const struct sim_tally *t)
{
    return t->reports[HFD_OK] && t->reports[HFD_INVALID] && t->reports[HFD_NOT_FOUND] &&
           t->strangers && t->forged && t->power_cuts && t->broken && t->unknown_kept && t->keys &&
           t->settings && t->timed_out;
}

/* @return whether the runs met all that drift can be */
static bool drift_met(void)
{
    const struct sim_tally *t = &sim_tally;

    (void)printf("changes of specs by strangers %u; seen after a commit: drifted fields %u, "
                 "resources with several %u, nodepools that no order has %u; repairs %u\n",
                 t->patches, t->drifted, t->several, t->aliens, t->repairs);
    (void)printf(
        "orders compared with /validate: %u refused, %u in the way, %u with nothing to do, "
        "%u changes\n",
        t->planned[0], t->planned[1], t->planned[2], t->planned[3]);
    return t->patches && t->drifted && t->several && t->aliens && t->repairs && t->planned[0] &&
           t->planned[1] && t->planned[2] && t->planned[3];
}

/* @return whether enough runs met all that can happen */
static bool all_met(void)
{
    static const struct {
        enum hfd_state from, to;
    } arrows[] = {
        {HFD_STATE_ABSENT, HFD_STATE_CREATING},   {HFD_STATE_CREATING, HFD_STATE_READY},
        {HFD_STATE_CREATING, HFD_STATE_FAILED},   {HFD_STATE_READY, HFD_STATE_UPDATING},
        {HFD_STATE_UPDATING, HFD_STATE_READY},    {HFD_STATE_UPDATING, HFD_STATE_FAILED},
        {HFD_STATE_UPDATING, HFD_STATE_UPDATING}, {HFD_STATE_READY, HFD_STATE_FAILED},
        {HFD_STATE_FAILED, HFD_STATE_CREATING},   {HFD_STATE_FAILED, HFD_STATE_UPDATING},
        {HFD_STATE_FAILED, HFD_STATE_READY},      {HFD_STATE_CREATING, HFD_STATE_DELETING},
        {HFD_STATE_UPDATING, HFD_STATE_DELETING}, {HFD_STATE_READY, HFD_STATE_DELETING},
        {HFD_STATE_FAILED, HFD_STATE_DELETING},   {HFD_STATE_FAILED, HFD_STATE_ABSENT},
        {HFD_STATE_DELETING, HFD_STATE_ABSENT},
    };
    static const struct {
        enum sim_what what;
        enum hfd_answer answer;
    } answers[] = {
        {SIM_GET, HFD_ANSWER_OUTPUT},    {SIM_GET, HFD_ANSWER_HINT},
        {SIM_GET, HFD_ANSWER_FAILED},    {SIM_GET, HFD_ANSWER_ABSENT},
        {SIM_PUT, HFD_ANSWER_OUTPUT},    {SIM_PUT, HFD_ANSWER_HINT},
        {SIM_PUT, HFD_ANSWER_BUSY},      {SIM_DELETE, HFD_ANSWER_HINT},
        {SIM_DELETE, HFD_ANSWER_ABSENT},
    };
    const struct sim_tally *t = &sim_tally;
    bool all = events_met(t), drift;

    for (size_t i = 0; i < sizeof(arrows) / sizeof(arrows[0]); i++) {
        if (t->arrows[arrows[i].from][arrows[i].to] == 0) {
            (void)fprintf(stderr, "never: %s -> %s\n", hfd_state_name(arrows[i].from),
                          hfd_state_name(arrows[i].to));
            all = false;
        }
    }
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        if (t->answers[answers[i].what][answers[i].answer] == 0) {
            (void)fprintf(stderr, "never: call %d answered %d\n", answers[i].what,
                          answers[i].answer);
            all = false;
        }
    }
    (void)printf("power cuts %u, broken stores %u, batches of unknown fate that were kept %u, "
                 "forged cookies %u, strangers' deeds %u, "
                 "new keys %u, new settings %u, deadlines seen by the timer %u\n",
                 t->power_cuts, t->broken, t->unknown_kept, t->forged, t->strangers, t->keys,
                 t->settings, t->timed_out);
    drift = drift_met();
    return changes ? drift : all; /* drift is rare among all events */
}

static void on_abort(int number)
{
    (void)number;
    say_again();
}

static unsigned long long number(const char *text)
{
    struct hfd_err err;
    int64_t v;

    if (hfd_parse_i64(hfd_slice_of(text), 0, INT64_MAX / 2, &v, &err) != HFD_OK) {
        (void)fprintf(stderr, "sim: %s\n", err.msg);
        exit(2);
    }
    return (unsigned long long)v;
}

int main(int argc, char **argv)
{
    static const struct option names[] = {
        {"first", required_argument, NULL, 'f'},
        {"count", required_argument, NULL, 'n'},
        {"seed", required_argument, NULL, 's'},
        {"steps", required_argument, NULL, 't'},
        {"twice", required_argument, NULL, 'w'},
        {"changes", no_argument, NULL, 'c'},
        {NULL, 0, NULL, 0},
    };
    unsigned long long first = 1, count = 2000, steps = STEPS, twice = 5;
    bool verbose = false;
    unsigned crashes = 0;
    struct hfd_err err;
    int c;

    program = argv[0];
    while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (c == 'f')
            first = number(optarg);
        else if (c == 'n')
            count = number(optarg);
        else if (c == 't')
            steps = number(optarg);
        else if (c == 'c')
            changes = true;
        else if (c == 'w')
            twice = number(optarg);
        else if (c == 's') {
            first = number(optarg);
            count = 1;
            verbose = true;
        } else
            return 2;
    }
    HFD_ASSERT(hfd_base_init(&err) == HFD_OK);
    (void)signal(SIGABRT, on_abort);
    hfd_log_set_level((enum hfd_log_level)(HFD_LOG_ERROR + 1)); /* failures are meant here */
    faultvfs_register();
    hfd_db_set_vfs(FAULTVFS_NAME);
    hfd_db_set_checkpoint_frames(40);
    for (unsigned long long seed = first; seed < first + count; seed++) {
        const uint64_t trace = run(seed, (unsigned)steps, verbose, &crashes);

        if (seed < first + twice && run(seed, (unsigned)steps, false, &crashes) != trace) {
            (void)fprintf(stderr, "seed %llu: the second run is another one\n", seed);
            say_again();
            return 1;
        }
        if (verbose)
            (void)printf("trace %016llx\n", (unsigned long long)trace);
    }
    (void)printf("%llu seeds, %u crashes and restarts\n", count, crashes);
    if (count >= ENOUGH && !all_met()) {
        (void)fprintf(stderr, "sim: so many runs, and something never happened\n");
        return 1;
    }
    return 0;
}
