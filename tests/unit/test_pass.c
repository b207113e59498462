/*
 * driver/backend/remote/pass.c, the machine of a pass: the arrows of the diagram in pass.h, written
 * down a second time, and what always holds.
 */
#include "driver/backend/remote/work.h"
#include "driver/backend/remote/pass.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "driver/base/log.h"

/* Each phase with all that it may move to, by name. */
static const struct {
    const char *from, *to;
} arrows[] = {
    [HFD_PASS_START] = {"START", "FIND LOOK MANY_CLUSTERS SEARCH_CLUSTERS ORPHAN_LOOK DONE"},
    [HFD_PASS_FIND] = {"FIND", "ASK_OWNER CREATE LOOK DONE"},
    [HFD_PASS_FIND_NAME] = {"FIND_NAME", "ASK_OWNER LOOK DONE"},
    [HFD_PASS_ASK_OWNER] = {"ASK_OWNER", "DONE"},
    [HFD_PASS_CREATE] = {"CREATE", "FIND FIND_NAME ASK_OWNER LOOK DONE"},
    [HFD_PASS_LOOK] = {"LOOK",
                       "START DELETE LIST_POOLS REPORTS_FIRST LOOK_REST WRITE REPORTS DONE"},
    [HFD_PASS_DELETE] = {"DELETE",
                         "START LOOK LIST_POOLS REPORTS_FIRST LOOK_REST WRITE REPORTS DONE"},
    [HFD_PASS_LIST_POOLS] = {"LIST_POOLS",
                             "START LOOK DELETE REPORTS_FIRST LOOK_REST WRITE REPORTS DONE"},
    [HFD_PASS_REPORTS_FIRST] = {"REPORTS_FIRST",
                                "START DELETE LIST_POOLS LOOK_REST WRITE REPORTS DONE"},
    [HFD_PASS_LOOK_REST] = {"LOOK_REST",
                            "START DELETE LIST_POOLS REPORTS_FIRST WRITE REPORTS DONE"},
    [HFD_PASS_WRITE] = {"WRITE",
                        "START LOOK DELETE LIST_POOLS REPORTS_FIRST LOOK_REST REPORTS DONE"},
    [HFD_PASS_REPORTS] = {"REPORTS", "START DELETE LIST_POOLS WRITE DONE"},
    [HFD_PASS_MANY_CLUSTERS] = {"MANY_CLUSTERS", "MANY_POOLS DONE"},
    [HFD_PASS_MANY_POOLS] = {"MANY_POOLS", "DONE"},
    [HFD_PASS_SEARCH_CLUSTERS] = {"SEARCH_CLUSTERS", "SEARCH_POOLS DONE"},
    [HFD_PASS_SEARCH_POOLS] = {"SEARCH_POOLS", "DONE"},
    [HFD_PASS_ORPHAN_LOOK] = {"ORPHAN_LOOK", "ORPHAN_DELETE DONE"},
    [HFD_PASS_ORPHAN_DELETE] = {"ORPHAN_DELETE", "ORPHAN_VERIFY DONE"},
    [HFD_PASS_ORPHAN_VERIFY] = {"ORPHAN_VERIFY", "DONE"},
    [HFD_PASS_DONE] = {"DONE", ""},
};

static bool has_word(const char *words, const char *word)
{
    const size_t len = strlen(word);

    for (const char *p = words; (p = strstr(p, word)) != NULL; p += len)
        if ((p == words || p[-1] == ' ') && (p[len] == ' ' || p[len] == '\0'))
            return true;
    return false;
}

/* Every pair of phases: an arrow is there, or it is not, as the diagram says. */
static void arrows_are_those_of_the_diagram(void **state)
{
    int count = 0;

    (void)state;
    assert_int_equal(sizeof(arrows) / sizeof(arrows[0]), HFD_PASS_PHASE_COUNT);
    for (int from = 0; from < HFD_PASS_PHASE_COUNT; from++) {
        for (int to = 0; to < HFD_PASS_PHASE_COUNT; to++) {
            const char *name = arrows[to].from;
            const bool may = hfd_pass_may_move((enum hfd_pass_phase)from, (enum hfd_pass_phase)to);

            if (may != has_word(arrows[from].to, name))
                fail_msg("%s -> %s: %s", arrows[from].from, name, may ? "it may" : "it may not");
            count += may;
        }
    }
    assert_in_range(count, 80, 130);
}

/* From DONE there is no way out, and from everywhere there is a way to it. */
static void every_phase_can_end(void **state)
{
    (void)state;
    for (int p = 0; p < HFD_PASS_PHASE_COUNT; p++) {
        struct hfd_pass_memory m = {.phase = (enum hfd_pass_phase)p};

        assert_false(hfd_pass_may_move(HFD_PASS_DONE, (enum hfd_pass_phase)p));
        hfd_pass_end(&m);
        assert_int_equal(m.phase, HFD_PASS_DONE);
    }
}

/* Runs fn in a process of its own. @return whether an assertion ended it */
static bool is_refused(void (*fn)(void *arg), void *arg)
{
    const struct rlimit no_core = {0, 0};
    const pid_t child = fork();
    int status;

    assert_true(child >= 0);
    if (child == 0) {
        hfd_log_set_level((enum hfd_log_level)(HFD_LOG_ERROR + 1));
        (void)setrlimit(RLIMIT_CORE, &no_core);
        (void)signal(SIGABRT, SIG_DFL);
        (void)close(STDERR_FILENO);
        fn(arg);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void move(void *arg)
{
    struct hfd_pass_memory m = {.phase = HFD_PASS_FIND};

    hfd_pass_move(&m, *(enum hfd_pass_phase *)arg);
}

/* A move along a missing arrow is an assertion that fails, in every build. */
static void missing_arrows_are_refused(void **state)
{
    enum hfd_pass_phase good = HFD_PASS_CREATE, bad = HFD_PASS_WRITE, again = HFD_PASS_FIND;

    (void)state;
    assert_false(is_refused(move, &good));
    assert_true(is_refused(move, &bad));
    assert_true(is_refused(move, &again));
}

/* ---- what always holds ---- */

static struct hfd_pass *new_pass(const char *guresid, const char *orphan)
{
    static const struct hfd_remote_policy policy = {.watch_us = 1};
    const struct hfd_remote_work work = {.guresid = hfd_slice_of(guresid),
                                         .orphan = hfd_slice_of(orphan)};
    struct hfd_pass *pass;
    struct hfd_err err;

    assert_int_equal(hfd_pass_new(&policy, &work, &pass, &err), HFD_OK);
    return pass;
}

static void check(void *pass)
{
    hfd_pass_invariant(pass);
}

/* Each kind of work has phases of its own. */
static void phases_belong_to_their_work(void **state)
{
    static const struct {
        const char *guresid, *orphan;
        enum hfd_pass_phase good, bad;
    } cases[] = {
        {"res-1", "", HFD_PASS_FIND, HFD_PASS_MANY_CLUSTERS},
        {"", "", HFD_PASS_MANY_POOLS, HFD_PASS_FIND},
        {"*", "", HFD_PASS_SEARCH_POOLS, HFD_PASS_LOOK},
        {"res-1", "2abc", HFD_PASS_ORPHAN_VERIFY, HFD_PASS_LOOK},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct hfd_pass *pass = new_pass(cases[i].guresid, cases[i].orphan);

        assert_false(is_refused(check, pass));
        pass->then.phase = cases[i].good;
        assert_false(is_refused(check, pass));
        pass->then.phase = cases[i].bad;
        assert_true(is_refused(check, pass));
        hfd_pass_free(pass);
    }
}

/* Each memory that no pass can have is refused by itself. */
static void impossible_memories_are_refused(void **state)
{
    static const struct hfd_seen_part seen = {.fleet_id = HFD_SLICE("2abc")};
    static const struct hfd_held_part held = {.fleet_id = HFD_SLICE("2xyz")};
    static const struct hfd_part_note note = {.fleet_id = HFD_SLICE("2abc")};
    const struct hfd_pass_memory bad[] = {
        {.phase = HFD_PASS_PHASE_COUNT},
        {.find = {.foreign_owner = HFD_SLICE("another")}},
        {.looks_again = HFD_PASS_LOOKS_AGAIN_MAX + 2},
        {.seen = &seen},
        {.notes = &note},
        {.creation = {.announced = true}},
        {.pools = {.complete = true}},
        {.pools = {.count = 3}},
        {.reports = {.list = {.page = -1}}},
        {.before = {.answers = 1}, .seen = &seen, .held = &held},
    };
    const struct hfd_pass_memory good = {
        .phase = HFD_PASS_LOOK_REST, .before = {.answers = 1}, .seen = &seen, .notes = &note};
    struct hfd_pass *pass = new_pass("res-1", "");

    (void)state;
    pass->then = good;
    assert_false(is_refused(check, pass));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        pass->then = bad[i];
        if (!is_refused(check, pass))
            fail_msg("memory %zu is not refused", i);
    }
    pass->then = (struct hfd_pass_memory){.before = {.answers = 1}};
    pass->now = (struct hfd_pass_memory){.before = {.answers = 2}};
    assert_true(is_refused(check, pass));
    hfd_pass_free(pass);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrows_are_those_of_the_diagram),
        cmocka_unit_test(every_phase_can_end),
        cmocka_unit_test(missing_arrows_are_refused),
        cmocka_unit_test(phases_belong_to_their_work),
        cmocka_unit_test(impossible_memories_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
