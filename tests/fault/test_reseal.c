/*
 * After a rotation of keys a process seals all stored secrets again. It is killed by SIGKILL at
 * each write, sync and other change of its files in turn. On what is left, every cookie and every
 * secret opens with the two keys, and a second process seals the rest. After the next PUTs the old
 * key is not needed.
 *
 *   test_reseal                  each moment
 *   test_reseal --stride N       every N-th moment
 */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "driver/base/base.h"
#include "driver/base/log.h"
#include "driver/core/keyring.h"
#include "driver/core/output.h"
#include "driver/core/ring_check.h"
#include "store/rows_replica.h"
#include "store/sqlite/db_sqlite_int.h"
#include "tests/lib/crashdisk.h"
#include "tests/lib/world.h"

#define RESOURCES 55     /* more than one page of each table */
#define FEWEST_POINTS 60 /* else it is not the sealing that is stopped */
#define DONE_STATUS 42   /* of a process that was not killed */
#define WHOLE_EVERY 8    /* so many moments are followed until the old key is gone */

static struct {
    char base[TMPDIR_MAX];
    char keys[TMPDIR_MAX + 16], data[TMPDIR_MAX + 16];
    char ids[RESOURCES][16], clusters[RESOURCES][40], bodies[RESOURCES][320];
    char *cookies[RESOURCES];
    unsigned stride;
} made;

/* ---- a world with this ring ---- */

static hfd_rc admit_all(void *ctx, const struct hfd_ctx *c, const struct hfd_call *call,
                        const struct hfd_resource_row *was)
{
    (void)ctx;
    (void)c;
    (void)call;
    (void)was;
    return HFD_OK;
}

static const struct hfd_adapter_hooks hooks = {.judge = HFD_SLICE("validation"),
                                               .admit = admit_all};
static const struct hfd_output_rule secrets[] = {
    {HFD_SLICE("kubeconfig"), HFD_SLICE("dns"), HFD_SLICE("/secrets/kubeconfig")}};

static void copy_file(const char *from, const char *to)
{
    static char bytes[1 << 16];
    const int in = open(from, O_RDONLY | O_CLOEXEC);
    const int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ssize_t n;

    assert_true(in >= 0 && out >= 0);
    while ((n = read(in, bytes, sizeof(bytes))) > 0)
        assert_int_equal(write(out, bytes, (size_t)n), n);
    assert_int_equal(n, 0);
    (void)close(in);
    (void)close(out);
}

static void copy_folder(const char *from, const char *to)
{
    DIR *d = opendir(from);
    const struct dirent *e;

    assert_non_null(d);
    assert_int_equal(mkdir(to, 0700), 0);
    while ((e = readdir(d)) != NULL) {
        char a[2 * TMPDIR_MAX + 256], b[2 * TMPDIR_MAX + 256];

        (void)snprintf(a, sizeof(a), "%s/%s", from, e->d_name);
        (void)snprintf(b, sizeof(b), "%s/%s", to, e->d_name);
        if (e->d_name[0] != '.')
            copy_file(a, b);
    }
    (void)closedir(d);
}

/* A world without a store. Its ring is in the file `keys`. */
static struct world *new_world(const char *keys)
{
    struct world *w = calloc(1, sizeof(*w));

    assert_non_null(w);
    world_init(w);
    hfd_keyring_free(w->ring);
    assert_int_equal(hfd_keyring_load(keys, &w->ring, &w->err), HFD_OK);
    w->driver.ring = w->ring;
    w->driver.hooks = &hooks;
    w->driver.output_secrets = secrets;
    w->driver.output_secret_count = 1;
    return w;
}

static void end_world(struct world *w)
{
    world_close(w);
    free(w);
}

static void reseal(struct world *w)
{
    atomic_bool stop = false;
    struct hfd_reseal all = {
        .driver = &w->driver, .store = w->store, .reader = w->reader, .stop = &stop};

    assert_int_equal(hfd_reseal_all(&all, &w->err), HFD_OK);
}

/* ---- what is stored ---- */

/* Resources that are ready. Each has a cookie, an output secret, a report's and an order's. */
static void make_data(void)
{
    struct world *w = new_world(made.keys);

    assert_int_equal(world_start(w), HFD_OK);
    for (int i = 0; i < RESOURCES; i++) {
        struct hfd_answer_doc doc;
        char report[96], name[16];

        (void)snprintf(name, sizeof(name), "c-%02d", i);
        (void)snprintf(made.ids[i], sizeof(made.ids[i]), "reseal-%02d", i);
        (void)snprintf(made.bodies[i], sizeof(made.bodies[i]),
                       "{\"type\":\"hyperfleet-cluster\",\"driver\":{\"values\":{\"cluster\":"
                       "{\"name\":\"%s\",\"spec\":{}},\"nodepools\":[]},\"secrets\":"
                       "{\"pull_secret\":\"order-%02d\"}}}",
                       name, i);
        (void)world_put_ok(w, made.ids[i], made.bodies[i], NULL);
        (void)snprintf(report, sizeof(report), "{\"kubeconfig\":\"canary-%02d\"}", i);
        (void)world_report(
            w, world_find(w, HFD_KIND_CLUSTER, name)->id,
            &(struct world_report){.adapter = "dns",
                                   .available = HFD_STATUS_TRUE,
                                   .data = "{\"secrets\":{\"kubeconfig\":\"[redacted]\"}}",
                                   .secrets = report});
        (void)world_report(
            w, world_find(w, HFD_KIND_CLUSTER, name)->id,
            &(struct world_report){.adapter = "validation", .available = HFD_STATUS_TRUE});
        (void)snprintf(made.clusters[i], sizeof(made.clusters[i]), "%.*s",
                       HFD_SLICE_FMT(world_find(w, HFD_KIND_CLUSTER, name)->id));
        doc = world_put_ok(w, made.ids[i], made.bodies[i], NULL);
        assert_int_equal(doc.answer, HFD_ANSWER_OUTPUT);
        made.cookies[i] = strndup(doc.cookie.p, doc.cookie.len);
        assert_non_null(made.cookies[i]);
    }
    world_stop(w);
    copy_folder(w->dir, made.data);
    end_world(w);
}

struct found {
    struct world *w;
    int64_t not_sealed; /* rows whose secrets the active key has not sealed */
    int64_t needs_old;  /* rows that need a key other than the active one */
};

static hfd_rc expect_text(hfd_slice plain, const char *form, int i, struct hfd_err *err)
{
    char want[48];

    (void)snprintf(want, sizeof(want), "{\"%s-%02d\"}", form, i);
    return hfd_slice_is(plain, want)
               ? HFD_OK
               : hfd_fail(err, HFD_CORRUPT, "expected %s, found %.*s", want, HFD_SLICE_FMT(plain));
}

/* The secrets of an order and of its cluster's report. */
static hfd_rc read_secrets(const struct hfd_ctx *c, int i)
{
    const struct hfd_report_key key = {hfd_slice_of(made.clusters[i]), HFD_SLICE("dns")};
    struct hfd_report_row row;
    hfd_slice plain;
    hfd_rc rc = hfd_order_secrets_open(c, hfd_slice_of(made.ids[i]), &plain);

    if (rc == HFD_OK)
        rc = expect_text(plain, "pull_secret\":\"order", i, c->err);
    if (rc == HFD_OK)
        rc = hfd_report_row_get(c->tx, &key, c->mem, &row, c->err);
    if (rc == HFD_OK)
        rc = hfd_report_secrets_open(c->driver, &row, c->mem, &plain);
    return rc == HFD_OK ? expect_text(plain, "kubeconfig\":\"canary", i, c->err) : rc;
}

static hfd_rc count_left(const struct hfd_ctx *c, struct found *out)
{
    struct hfd_key_view key;
    hfd_rc rc = HFD_OK;

    out->not_sealed = out->needs_old = 0;
    for (size_t i = 0; rc == HFD_OK && i < hfd_keyring_count(out->w->ring); i++) {
        int64_t uses = 0;

        hfd_keyring_view(out->w->ring, i, &key);
        if (!key.active)
            rc = hfd_ring_uses(c->tx, &key, &uses, c->err);
        out->needs_old += uses;
    }
    for (unsigned t = 0; rc == HFD_OK && t < HFD_SEALED_COUNT; t++) {
        struct hfd_sealed_query query = {.table = (enum hfd_sealed_table)t};
        struct hfd_sealed_list list;

        query.active = (hfd_slice){(const char *)key.id, sizeof(key.id)}; /* the last is active */
        rc = hfd_sealed_row_list(c->tx, &query, c->mem, &list, c->err);
        out->not_sealed += (int64_t)list.count;
    }
    return rc;
}

static hfd_rc read_rows(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct found *found = arg;
    const struct hfd_ctx c = {
        .tx = tx, .driver = &found->w->driver, .mem = &found->w->mem, .err = err};
    hfd_rc rc = HFD_OK;

    for (int i = 0; rc == HFD_OK && i < RESOURCES; i++)
        rc = read_secrets(&c, i);
    return rc == HFD_OK ? count_left(&c, found) : rc;
}

/* Opens everything. `cookies` may be NULL: calls without. */
static struct found read_all(struct world *w, char *const *cookies)
{
    struct found found = {.w = w};

    for (int i = 0; i < RESOURCES; i++) {
        const struct hfd_answer_doc doc =
            world_get_ok(w, made.ids[i], cookies != NULL ? cookies[i] : NULL);
        char want[48];

        (void)snprintf(want, sizeof(want), "{\"kubeconfig\":\"canary-%02d\"}", i);
        assert_int_equal(doc.answer, HFD_ANSWER_OUTPUT);
        assert_true(hfd_slice_is(doc.secrets, want));
    }
    if (hfd_store_read(w->reader, read_rows, &found, &w->err) != HFD_OK)
        fail_msg("%s", w->err.msg);
    return found;
}

/* ---- a moment ---- */

static atomic_uint points, deadly; /* so far; the one that kills */

static void on_point(void *ctx, struct crashdisk *disk, unsigned n)
{
    (void)ctx;
    (void)disk;
    atomic_store(&points, n);
    if (n == atomic_load(&deadly))
        (void)kill(getpid(), SIGKILL);
}

/* The process that seals: it starts on the data, and dies at a point of the sealing. */
_Noreturn static void seal_and_die(const char *dir, unsigned at)
{
    struct world *w = new_world(made.keys);

    (void)snprintf(w->dir, sizeof(w->dir), "%s", dir);
    (void)crashdisk_new(w->dir, on_point, NULL);
    hfd_db_set_vfs(CRASHDISK_NAME);
    assert_int_equal(world_start(w), HFD_OK);
    atomic_store(&deadly, atomic_load(&points) + at);
    reseal(w);
    world_stop(w);
    _exit(DONE_STATUS);
}

/* @return false: the process ended before its at-th point */
static bool is_killed(const char *dir, unsigned at)
{
    const pid_t pid = fork();
    int status;

    assert_true(pid >= 0);
    if (pid == 0)
        seal_and_die(dir, at);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return true;
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), DONE_STATUS);
    return false;
}

/* PUTs with the old cookies hand new ones out. Then the active key alone opens all. */
static void follow_to_the_end(struct world *w)
{
    char *fresh[RESOURCES], alone[2 * TMPDIR_MAX];
    const char *active = NULL;
    char lines[4096];
    FILE *f = fopen(made.keys, "re"), *to;

    for (int i = 0; i < RESOURCES; i++) {
        const struct hfd_answer_doc doc =
            world_put_ok(w, made.ids[i], made.bodies[i], made.cookies[i]);

        assert_int_equal(doc.answer, HFD_ANSWER_OUTPUT);
        fresh[i] = strndup(doc.cookie.p, doc.cookie.len);
        assert_non_null(fresh[i]);
        assert_string_not_equal(fresh[i], made.cookies[i]);
    }
    assert_int_equal(read_all(w, fresh).needs_old, 0);
    assert_non_null(f);
    (void)snprintf(alone, sizeof(alone), "%s/alone", w->base);
    while (fgets(lines, sizeof(lines), f) != NULL)
        if (strstr(lines, ":active") != NULL)
            active = lines;
    (void)fclose(f);
    assert_non_null(active);
    to = fopen(alone, "we");
    assert_non_null(to);
    assert_true(fputs(active, to) >= 0);
    assert_int_equal(fclose(to), 0);
    assert_int_equal(chmod(alone, 0600), 0);
    hfd_keyring_free(w->ring);
    assert_int_equal(hfd_keyring_load(alone, &w->ring, &w->err), HFD_OK);
    w->driver.ring = w->ring;
    (void)read_all(w, fresh);
    for (int i = 0; i < RESOURCES; i++)
        free(fresh[i]);
}

/* @return false: there is no such moment */
static bool try_moment(unsigned at)
{
    struct world *w = new_world(made.keys);
    bool killed;

    copy_folder(made.data, w->dir);
    killed = is_killed(w->dir, at);
    if (world_start(w) != HFD_OK)
        fail_msg("killed at point %u: %s", at, w->err.msg);
    (void)read_all(w, made.cookies);
    (void)read_all(w, NULL);
    reseal(w);
    assert_int_equal(read_all(w, made.cookies).not_sealed, 0);
    if (at % WHOLE_EVERY == 0 || !killed)
        follow_to_the_end(w);
    end_world(w);
    return killed;
}

/* ---- tests ---- */

/* Before anything is sealed again, all rows need the old key. */
static void old_key_is_counted(void **state)
{
    struct world *w = new_world(made.keys);
    struct found found;

    (void)state;
    copy_folder(made.data, w->dir);
    assert_int_equal(world_start(w), HFD_OK);
    found = read_all(w, made.cookies);
    assert_int_equal(found.needs_old, 3 * RESOURCES); /* resources, reports, orders */
    end_world(w);
}

static void killed_at_every_write(void **state)
{
    unsigned at = 1, count = 0;

    (void)state;
    while (try_moment(at)) {
        count++;
        at += made.stride;
    }
    print_message("             killed at %u of %u points\n", count, at - 1);
    assert_true(at > FEWEST_POINTS);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(old_key_is_counted),
                                       cmocka_unit_test(killed_at_every_write)};
    int64_t stride = 1;
    struct hfd_err err;
    char id[9];
    int failed;

    if (argc == 3 && strcmp(argv[1], "--stride") == 0)
        if (hfd_parse_i64(hfd_slice_of(argv[2]), 1, 1000, &stride, NULL) != HFD_OK)
            return 2;
    made.stride = (unsigned)stride;
    hfd_log_set_fd(open("/dev/null", O_WRONLY | O_CLOEXEC));
    if (access("/dev/shm", W_OK) == 0) /* a kill leaves what the kernel has */
        (void)setenv("TMPDIR", "/dev/shm", 0);
    crashdisk_register();
    if (hfd_base_init(&err) != HFD_OK)
        return 1;
    tmpdir_make(made.base);
    (void)snprintf(made.keys, sizeof(made.keys), "%s/keys", made.base);
    (void)snprintf(made.data, sizeof(made.data), "%s/data", made.base);
    if (hfd_keyring_create(made.keys, &hfd_rng_system, &err) != HFD_OK)
        return 1;
    make_data();
    if (hfd_keyring_change(made.keys, HFD_KEY_ROTATE, &hfd_rng_system, id, &err) != HFD_OK)
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    for (int i = 0; i < RESOURCES; i++)
        free(made.cookies[i]);
    tmpdir_remove(made.base);
    return failed;
}
