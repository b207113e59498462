/*
 * The power goes at thousands of moments. The disk keeps none, all, or some
 * of the unsynced bytes. Every answered call is there whole, none is there by half, nothing is
 * damaged, and the program starts on what is left. Two controls must fail, else this test proves
 * nothing. With synchronous=NORMAL answered calls must be lost. A disk that syncs nothing must lose
 * or damage rows.
 *
 *   test_power                   2,000 moments
 *   test_power --points N        N moments
 *   test_power --stride N        one moment in N of a run, on average (5): shorter runs
 *   test_power --again SEED:N    moment N of the run with that seed, alone: what a failure prints
 */
#include "tests/fault/load.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "driver/base/base.h"
#include "driver/core/keyring.h"
#include "driver/base/log.h"
#include "store/sqlite/db_sqlite_int.h"
#include "tests/lib/crashdisk.h"

#define POINTS 2000
#define CONTROL_POINTS 300 /* at most; half of the others, else */
#define BATCHES 30
#define TOGETHER LOAD_CALLS_MAX
#define CHECKPOINT_FRAMES 60 /* so that a run copies its log into the database many times */
#define STRIDE 5             /* one moment in so many, on average */
#define AGAIN_IN                                                                                   \
    8 /* every so many-th time the power goes a second time, while the program starts */
#define START_POINTS 40 /* changes of the disk in a start and a stop, about */

static struct options {
    const char *program;
    int64_t points, stride;
    uint64_t again_seed;
    unsigned again_point; /* 0 = all */
} options = {.points = POINTS, .stride = STRIDE};

/* One moment: what the disk held, and how many batches had been answered. */
struct moment {
    unsigned point;
    size_t answered;
    struct crashdisk_image image;
    struct moment *next;
};

struct totals {
    unsigned points, lost, damaged, twice;
};

struct run {
    struct load load;
    struct load_plan plan;
    uint64_t seed;
    bool control;
    struct moment *moments; /* of the batch under way */
    unsigned next;          /* the next point to look at */
    struct test_rng stride;
    struct totals *totals;
};

static uint64_t seed_of(const struct run *r, unsigned point)
{
    return r->seed * 1000003u + point;
}

static bool wanted(struct run *r, unsigned point)
{
    if (options.again_point != 0)
        return point == options.again_point;
    if (point < r->next)
        return false;
    r->next = point + 1 + (unsigned)test_rng_below(&r->stride, 2 * (uint64_t)options.stride - 1);
    return true;
}

/* At a change of the disk, mostly on the writer thread. */
static void on_point(void *ctx, struct crashdisk *disk, unsigned n)
{
    struct run *r = ctx;
    struct moment *m;

    if (!wanted(r, n))
        return;
    m = calloc(1, sizeof(*m));
    assert_non_null(m);
    m->point = n;
    m->answered = atomic_load(&r->load.answered);
    crashdisk_take(disk, seed_of(r, n), &m->image);
    m->next = r->moments;
    r->moments = m;
}

/* ---- after the cut ---- */

struct second {
    unsigned at;
    uint64_t seed;
    bool taken;
    struct crashdisk_image image;
};

static void on_second_point(void *ctx, struct crashdisk *disk, unsigned n)
{
    struct second *s = ctx;

    if (n != s->at)
        return;
    crashdisk_take(disk, s->seed, &s->image);
    s->taken = true;
}

/*
 * Puts an image down, starts and stops the program on it, and lets the power go once more
 * meanwhile.
 */
static void cut_again(struct world *w, struct crashdisk_image *image, uint64_t seed,
                      struct totals *t)
{
    struct test_rng rng;
    struct second second = {.seed = seed};
    struct crashdisk *disk;
    hfd_rc rc;

    test_rng_init(&rng, seed);
    second.at = 1 + (unsigned)test_rng_below(&rng, START_POINTS);
    crashdisk_image_put(image, w->dir);
    disk = crashdisk_new(w->dir, on_second_point, &second);
    hfd_db_set_vfs(CRASHDISK_NAME);
    rc = world_start(w);
    if (rc == HFD_OK)
        world_stop(w);
    hfd_db_set_vfs(NULL);
    crashdisk_free(disk);
    if (rc == HFD_OK && second.taken) {
        crashdisk_image_fini(image);
        *image = second.image;
        t->twice++;
    } else {
        crashdisk_image_fini(&second.image);
    }
    tmpdir_remove(w->base);
    assert_int_equal(mkdir(w->base, 0700), 0);
}

/* @return NULL, or what is wrong; *missing is how many answered batches are not there */
static const char *check_content(struct world *w, const struct run *r, const struct moment *m,
                                 int *missing)
{
    unsigned char digest[LOAD_DIGEST_BYTES];
    const char *wrong = load_unsound(w);

    if (wrong == NULL && load_digest(w, digest) != HFD_OK)
        wrong = w->err.msg;
    if (wrong != NULL)
        return wrong;
    *missing = load_missing(&r->plan, m->answered, digest);
    if (*missing == LOAD_UNKNOWN)
        return "what is there is no state that was committed";
    if (*missing > 0)
        return "answered calls are lost";
    test_rng_init(&w->rng, 2); /* not the ids of the plan once more */
    return load_works(w);
}

/*
 * The first failure ends the program: the run that it broke off has the disk and the store in its
 * hands.
 */
_Noreturn static void report(const struct run *r, const struct moment *m, const char *wrong)
{
    print_error("%s (%zu of %zu batches were answered)\nagain: %s --again %llu:%u\n", wrong,
                m->answered, r->plan.count, options.program, (unsigned long long)r->seed, m->point);
    tmpdir_remove(r->load.world.base);
    exit(1);
}

static void check_moment(struct run *r, struct moment *m)
{
    struct world *w = calloc(1, sizeof(*w));
    const char *wrong = NULL;
    int missing = 0;

    assert_non_null(w);
    world_init(w);
    if (m->point % AGAIN_IN == 0)
        cut_again(w, &m->image, seed_of(r, m->point), r->totals);
    crashdisk_image_put(&m->image, w->dir);
    if (world_start(w) != HFD_OK) {
        wrong = w->err.msg;
        /* The start sees that commits would be lost, and refuses. */
        missing = strstr(wrong, "commits behind it that would be lost") != NULL;
    } else {
        wrong = check_content(w, r, m, &missing);
    }
    r->totals->points++;
    if (missing > 0 && missing != LOAD_UNKNOWN)
        r->totals->lost++;
    else if (wrong != NULL)
        r->totals->damaged++;
    if (wrong == NULL || r->control) {
        world_close(w);
        free(w);
        return;
    }
    tmpdir_remove(w->base);
    report(r, m, wrong);
}

static void check_moments(struct run *r)
{
    hfd_db_set_synchronous("FULL"); /* what the control is, is decided before the cut */
    hfd_db_set_vfs(NULL);
    while (r->moments != NULL) {
        struct moment *m = r->moments;

        r->moments = m->next;
        check_moment(r, m);
        crashdisk_image_fini(&m->image);
        free(m);
    }
    hfd_db_set_vfs(CRASHDISK_NAME);
}

/* ---- before the cut ---- */

static void run_plan(uint64_t seed, const char *synchronous, bool control, struct totals *t)
{
    struct run *r = calloc(1, sizeof(*r));
    struct crashdisk *disk;

    assert_non_null(r);
    r->seed = seed;
    r->control = control;
    r->totals = t;
    test_rng_init(&r->stride, seed);
    r->next = 1 + (unsigned)test_rng_below(&r->stride, (uint64_t)options.stride);
    hfd_db_set_vfs(NULL);
    load_plan_make(&r->plan, seed, BATCHES, TOGETHER);
    load_init(&r->load, &r->plan);
    disk = crashdisk_new(r->load.world.dir, on_point, r);
    hfd_db_set_vfs(CRASHDISK_NAME);
    hfd_db_set_synchronous(synchronous);
    assert_int_equal(world_start(&r->load.world), HFD_OK);
    check_moments(r);
    for (size_t i = 0; i < r->plan.count; i++) {
        if (load_run(&r->load, i) != HFD_OK)
            fail_msg("seed %llu, batch %zu, without any fault: %s", (unsigned long long)seed, i,
                     r->load.world.err.msg);
        crashdisk_point(disk); /* between an answer and the next request */
        check_moments(r);
    }
    world_stop(&r->load.world); /* the end of a clean stop changes the disk as well */
    check_moments(r);
    load_fini(&r->load);
    crashdisk_free(disk);
    load_plan_free(&r->plan);
    free(r);
}

static void run_points(int64_t points, const char *synchronous, bool control, struct totals *t)
{
    for (uint64_t seed = 1; t->points < points; seed++)
        run_plan(seed, synchronous, control, t);
    hfd_db_set_synchronous("FULL");
    print_message("             %u cuts: %u lost answered calls, %u damaged; %u with a second cut "
                  "in the start behind it\n",
                  t->points, t->lost, t->damaged, t->twice);
}

/* ---- tests ---- */

/*
 * Every answered change survives a power cut at any moment, and one more while the program starts
 * again.
 */
static void power_cut_loses_nothing(void **state)
{
    struct totals t = {0};

    (void)state;
    if (options.again_point != 0) {
        run_plan(options.again_seed, "FULL", false, &t);
        assert_int_equal(t.points, 1);
        return;
    }
    run_points(options.points, "FULL", false, &t);
    assert_int_equal(t.lost + t.damaged, 0);
    assert_true(t.twice > options.points / 20);
}

static int64_t control_points(void)
{
    return options.points / 2 < CONTROL_POINTS ? options.points / 2 : CONTROL_POINTS;
}

/*
 * The control: synchronous=NORMAL loses answered calls, but damages nothing. The start sees some of
 * that, and refuses.
 */
static void control_normal_loses(void **state)
{
    struct totals t = {0};

    (void)state;
    run_points(control_points(), "NORMAL", true, &t);
    assert_true(t.lost > t.points / 10);
    assert_int_equal(t.damaged, 0);
}

/* The control: a disk that syncs nothing loses, and damages. */
static void control_lying_disk_damages(void **state)
{
    struct totals t = {0};

    (void)state;
    crashdisk_lie(true);
    run_points(control_points(), "FULL", true, &t);
    crashdisk_lie(false);
    assert_true(t.lost > t.points / 10);
    assert_true(t.damaged > t.points / 30);
}

/* ---- the key ring ---- */

#define RING_SEEDS 40 /* cuts at each moment */
#define ROTATIONS 3

struct ring_run {
    char path[TMPDIR_MAX + 16];
    size_t answered; /* calls: one that makes the ring, then rotations */
    struct hfd_arena mem;
    hfd_slice sealed[1 + ROTATIONS]; /* by the ring after each */
    unsigned cuts;
};

static void check_ring(struct ring_run *r, const struct crashdisk_image *image)
{
    char base[TMPDIR_MAX];
    char path[TMPDIR_MAX + 16];
    struct hfd_keyring *ring = NULL;
    struct hfd_err err;
    hfd_rc rc;

    tmpdir_make(base);
    (void)snprintf(path, sizeof(path), "%s/d", base);
    crashdisk_image_put(image, path);
    (void)snprintf(path, sizeof(path), "%s/d/keys", base);
    rc = hfd_keyring_load(path, &ring, &err);
    if (r->answered == 0 && rc == HFD_NOT_FOUND && image->folder)
        rc = hfd_keyring_create(path, &hfd_rng_system, &err);
    if (rc != HFD_OK && (r->answered > 0 || image->folder))
        fail_msg("after %zu answers: %s", r->answered, err.msg);
    for (size_t i = 0; i < r->answered; i++) {
        hfd_slice plain;

        assert_int_equal(hfd_keyring_open(&(struct hfd_seal){ring, HFD_KEY_COOKIE, HFD_SLICE("x")},
                                          r->sealed[i], &r->mem, &plain, &err),
                         HFD_OK);
    }
    hfd_keyring_free(ring);
    tmpdir_remove(base);
    r->cuts++;
}

struct ring_image {
    size_t answered;
    struct crashdisk_image image;
};

static struct ring_image ring_images[4000];
static size_t ring_image_count;

static void on_ring_point(void *ctx, struct crashdisk *disk, unsigned n)
{
    const struct ring_run *r = ctx;

    for (uint64_t seed = 0; seed < RING_SEEDS; seed++) {
        struct ring_image *image = &ring_images[ring_image_count++];

        assert_true(ring_image_count < sizeof(ring_images) / sizeof(ring_images[0]));
        image->answered = r->answered;
        crashdisk_take(disk, n * 1000 + seed, &image->image);
    }
}

static void seal(struct ring_run *r)
{
    struct hfd_keyring *ring;

    assert_int_equal(hfd_keyring_load(r->path, &ring, NULL), HFD_OK);
    r->sealed[r->answered] =
        hfd_keyring_seal(&(struct hfd_seal){ring, HFD_KEY_COOKIE, HFD_SLICE("x")}, &hfd_rng_system,
                         HFD_SLICE("kept"), &r->mem);
    assert_non_null(r->sealed[r->answered].p);
    hfd_keyring_free(ring);
    r->answered++;
}

/*
 * A ring is answered for once it is written. Its cookies open after a power cut at any moment of
 * making and rotating it.
 */
static void power_cut_loses_no_key(void **state)
{
    struct ring_run r = {.answered = 0};
    struct crashdisk *disk;
    char base[TMPDIR_MAX];
    char id[9];

    (void)state;
    assert_int_equal(hfd_base_init(NULL), HFD_OK);
    hfd_arena_init(&r.mem, (size_t)1 << 20);
    tmpdir_make(base);
    (void)snprintf(r.path, sizeof(r.path), "%s/keys", base);
    disk = crashdisk_new(base, on_ring_point, &r);
    assert_int_equal(hfd_keyring_create(r.path, &hfd_rng_system, NULL), HFD_OK);
    seal(&r);
    crashdisk_point(disk);
    for (int i = 0; i < ROTATIONS; i++) {
        assert_int_equal(hfd_keyring_change(r.path, HFD_KEY_ROTATE, &hfd_rng_system, id, NULL),
                         HFD_OK);
        seal(&r);
        crashdisk_point(disk);
    }
    crashdisk_free(disk);
    for (size_t i = 0, all = r.answered; i < ring_image_count; i++, r.answered = all) {
        r.answered = ring_images[i].answered;
        check_ring(&r, &ring_images[i].image);
        crashdisk_image_fini(&ring_images[i].image);
    }
    print_message("             %u cuts\n", r.cuts);
    assert_true(r.cuts > 15 * RING_SEEDS);
    hfd_arena_fini(&r.mem);
    tmpdir_remove(base);
}

static void parse_options(int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        hfd_slice value = hfd_slice_of(argv[i + 1]);
        const char *colon = strchr(argv[i + 1], ':');
        int64_t number = 0;

        if (strcmp(argv[i], "--points") == 0) {
            assert_int_equal(hfd_parse_i64(value, 1, 10000000, &options.points, NULL), HFD_OK);
        } else if (strcmp(argv[i], "--stride") == 0) {
            assert_int_equal(hfd_parse_i64(value, 1, 1000, &options.stride, NULL), HFD_OK);
        } else {
            assert_string_equal(argv[i], "--again");
            assert_non_null(colon);
            assert_int_equal(hfd_parse_i64((hfd_slice){value.p, (size_t)(colon - value.p)}, 0,
                                           INT64_MAX, &number, NULL),
                             HFD_OK);
            options.again_seed = (uint64_t)number;
            assert_int_equal(hfd_parse_i64(hfd_slice_of(colon + 1), 1, INT32_MAX, &number, NULL),
                             HFD_OK);
            options.again_point = (unsigned)number;
        }
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(power_cut_loses_no_key),
        cmocka_unit_test(power_cut_loses_nothing),
        cmocka_unit_test(control_normal_loses),
        cmocka_unit_test(control_lying_disk_damages),
    };

    options.program = argv[0];
    parse_options(argc, argv);
    hfd_log_set_fd(
        open("/dev/null", O_WRONLY | O_CLOEXEC)); /* the controls damage databases by the hundred */
    hfd_db_set_checkpoint_frames(CHECKPOINT_FRAMES);
    crashdisk_register();
    if (access("/dev/shm", W_OK) == 0) /* the disk that is tested is another one */
        (void)setenv("TMPDIR", "/dev/shm", 0);
    if (options.again_point != 0)
        return cmocka_run_group_tests_name(
            "again", ((const struct CMUnitTest[]){cmocka_unit_test(power_cut_loses_nothing)}), NULL,
            NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
