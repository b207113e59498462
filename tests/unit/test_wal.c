/*
 * The look through the write-ahead log (store/sqlite/folder.h). A log of several commits is
 * flipped, cut and torn at every frame. No commit that was on disk is dropped without a word, and
 * no cut or torn end is called damage.
 */
#include "store/sqlite/folder.h"

#include "driver/base/log.h"
#include "store/db.h"
#include "tests/lib/tmpdir.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define COMMITS 6
#define PAGE 4096u
#define FRAME (HFD_WAL_FRAME_HEADER_BYTES + PAGE)
#define LOG_MAX (1u << 20)

struct fixture {
    char base[TMPDIR_MAX];
    char log[TMPDIR_MAX + 32];
    unsigned char bytes[LOG_MAX];
    size_t len, frames;
};

static bool is_commit(const struct fixture *fx, size_t frame)
{
    const unsigned char *size = fx->bytes + HFD_WAL_HEADER_BYTES + frame * FRAME + 4;

    return (size[0] | size[1] | size[2] | size[3]) != 0;
}

static void write_log(const struct fixture *fx, size_t len)
{
    const int fd = open(fx->log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, fx->bytes, len), (ssize_t)len);
    (void)close(fd);
}

/* Commits several times in a process that ends without closing anything. */
static void commit_and_die(const char *base)
{
    struct hfd_db *db;

    if (hfd_db_open(&(struct hfd_store_place){.dir = base}, HFD_DB_WRITER, &db, NULL) != HFD_OK ||
        hfd_db_set_schema_version(db, 1, NULL) != HFD_OK ||
        hfd_db_exec(db, "CREATE TABLE t (x TEXT)", NULL) != HFD_OK)
        _exit(1);
    for (int i = 0; i < COMMITS; i++)
        if (hfd_db_begin(db, NULL) != HFD_OK ||
            hfd_db_exec(db, "INSERT INTO t VALUES (hex(randomblob(6000)))", NULL) != HFD_OK ||
            hfd_db_commit(db, NULL) != HFD_OK)
            _exit(1);
    _exit(0);
}

static int setup(void **state)
{
    struct fixture *fx = calloc(1, sizeof(*fx));
    pid_t pid;
    FILE *f;
    int status;

    assert_non_null(fx);
    tmpdir_make(fx->base);
    pid = fork();
    if (pid == 0)
        commit_and_die(fx->base);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    (void)snprintf(fx->log, sizeof(fx->log), "%s/" HFD_FOLDER_DB_NAME "-wal", fx->base);
    f = fopen(fx->log, "rb");
    assert_non_null(f);
    fx->len = fread(fx->bytes, 1, LOG_MAX, f);
    (void)fclose(f);
    fx->frames = (fx->len - HFD_WAL_HEADER_BYTES) / FRAME;
    assert_true(fx->frames > 3 * COMMITS && is_commit(fx, fx->frames - 1));
    *state = fx;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fx = *state;

    tmpdir_remove(fx->base);
    free(fx);
    return 0;
}

static enum hfd_wal_verdict scan(const struct fixture *fx, size_t len)
{
    struct hfd_wal_scan s;

    hfd_wal_scan_begin(&s, fx->bytes, PAGE);
    for (size_t at = HFD_WAL_HEADER_BYTES; at + FRAME <= len; at += FRAME)
        hfd_wal_scan_frame(&s, fx->bytes + at);
    return hfd_wal_scan_verdict(&s);
}

/* Commit frames from one frame on. */
static size_t commits_from(const struct fixture *fx, size_t frame)
{
    size_t n = 0;

    for (; frame < fx->frames; frame++)
        n += is_commit(fx, frame);
    return n;
}

static enum hfd_wal_verdict expected_of(size_t commits)
{
    return commits == 0 ? HFD_WAL_WHOLE : commits == 1 ? HFD_WAL_TORN : HFD_WAL_DAMAGED;
}

/* A log is whole, wherever it is cut off. */
static void a_cut_log_is_whole(void **state)
{
    struct fixture *fx = *state;

    for (size_t len = HFD_WAL_HEADER_BYTES; len <= fx->len; len += 97)
        assert_int_equal(scan(fx, len), HFD_WAL_WHOLE);
    assert_int_equal(scan(fx, fx->len), HFD_WAL_WHOLE);
}

/* A bit of a page, of a page number, or of a checksum, in every frame. */
static void a_flipped_frame_is_seen(void **state)
{
    static const size_t places[] = {1, 17, 23, HFD_WAL_FRAME_HEADER_BYTES + 5,
                                    HFD_WAL_FRAME_HEADER_BYTES + PAGE - 1};
    struct fixture *fx = *state;

    for (size_t i = 0; i < fx->frames; i++)
        for (size_t p = 0; p < sizeof(places) / sizeof(places[0]); p++)
            for (int bit = 0; bit < 8; bit++) {
                unsigned char *at = fx->bytes + HFD_WAL_HEADER_BYTES + i * FRAME + places[p];

                *at ^= (unsigned char)(1 << bit);
                assert_int_equal(scan(fx, fx->len), expected_of(commits_from(fx, i)));
                *at ^= (unsigned char)(1 << bit);
            }
}

/* A bit of a commit mark or of the salts: the frame itself is then no sign of a commit. */
static void a_flipped_mark_is_seen(void **state)
{
    static const size_t places[] = {7, 9, 14};
    struct fixture *fx = *state;

    for (size_t i = 0; i + 1 < fx->frames; i++)
        for (size_t p = 0; p < sizeof(places) / sizeof(places[0]); p++) {
            unsigned char *at = fx->bytes + HFD_WAL_HEADER_BYTES + i * FRAME + places[p];

            if (commits_from(fx, i + 1) < 2)
                continue;
            *at ^= 0x10;
            assert_int_equal(scan(fx, fx->len), HFD_WAL_DAMAGED);
            *at ^= 0x10;
        }
}

/*
 * SQLite takes a log for empty when any bit of its header is wrong. A number that is one higher
 * looks like a log that was being begun anew.
 */
static void a_flipped_header_is_seen(void **state)
{
    struct fixture *fx = *state;

    for (size_t i = 0; i < 8 * HFD_WAL_HEADER_BYTES; i++) {
        const bool next = i == 8 * 15 && (fx->bytes[15] & 1) == 0;

        fx->bytes[i / 8] ^= (unsigned char)(1 << i % 8);
        assert_int_equal(scan(fx, fx->len), next ? HFD_WAL_VOID : HFD_WAL_DAMAGED);
        fx->bytes[i / 8] ^= (unsigned char)(1 << i % 8);
    }
}

/* A log is begun anew by a header with the next number and salts, which may be written in part. */
static void a_torn_header_is_no_damage(void **state)
{
    struct fixture *fx = *state;
    unsigned char old[HFD_WAL_HEADER_BYTES], new[HFD_WAL_HEADER_BYTES];

    memcpy(old, fx->bytes, sizeof(old));
    memcpy(new, old, sizeof(new));
    new[15]++;
    new[19]++;
    for (size_t i = 20; i < sizeof(new); i++)
        new[i] = (unsigned char)~new[i];
    for (size_t cut = 0; cut <= sizeof(new); cut++) {
        memcpy(fx->bytes, old, sizeof(old));
        memcpy(fx->bytes, new, cut);
        assert_int_equal(scan(fx, fx->len), cut < 16 ? HFD_WAL_WHOLE : HFD_WAL_VOID);
    }
}

/* Frames of an earlier round of the log, behind its end, mean nothing. */
static void older_frames_mean_nothing(void **state)
{
    struct fixture *fx = *state;

    for (size_t i = 1; i < fx->frames; i++) {
        if (!is_commit(fx, i - 1))
            continue;
        for (size_t k = i; k < fx->frames; k++)
            fx->bytes[HFD_WAL_HEADER_BYTES + k * FRAME + 8] ^= 0xff;
        assert_int_equal(scan(fx, fx->len), HFD_WAL_WHOLE);
        for (size_t k = i; k < fx->frames; k++)
            fx->bytes[HFD_WAL_HEADER_BYTES + k * FRAME + 8] ^= 0xff;
    }
}

static int64_t rows_of(struct hfd_db *db)
{
    static const char sql[] = "SELECT count(*) FROM t";
    struct hfd_stmt *st;
    int64_t n;
    bool row;

    assert_int_equal(hfd_db_prepare(db, sql, &st, NULL), HFD_OK);
    assert_int_equal(hfd_stmt_step(st, &row, NULL), HFD_OK);
    n = hfd_stmt_col_i64(st, 0);
    hfd_stmt_done(st);
    return n;
}

/*
 * Opening refuses a damaged log, and again. A torn last commit is dropped, and the log begins anew.
 */
static void opening_refuses_damage(void **state)
{
    struct fixture *fx = *state;
    unsigned char *last = fx->bytes + HFD_WAL_HEADER_BYTES + (fx->frames - 2) * FRAME + 100;
    unsigned char *early = fx->bytes + HFD_WAL_HEADER_BYTES + 2 * FRAME + 100;
    struct hfd_db *db = NULL;
    struct hfd_err err;

    assert_false(is_commit(fx, fx->frames - 2));
    *early ^= 1;
    write_log(fx, fx->len);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(
            hfd_db_open(&(struct hfd_store_place){.dir = fx->base}, HFD_DB_WRITER, &db, &err),
            HFD_CORRUPT);
        assert_non_null(strstr(err.msg, "store.db-wal: damaged at frame 3 of "));
    }
    *early ^= 1;
    *last ^= 1;
    write_log(fx, fx->len);
    assert_int_equal(
        hfd_db_open(&(struct hfd_store_place){.dir = fx->base}, HFD_DB_WRITER, &db, &err), HFD_OK);
    assert_int_equal(rows_of(db), COMMITS - 1);
    assert_int_equal(hfd_db_exec(db, "INSERT INTO t VALUES ('x')", NULL), HFD_OK);
    hfd_db_close(&db);
    assert_int_equal(
        hfd_db_open(&(struct hfd_store_place){.dir = fx->base}, HFD_DB_WRITER, &db, &err), HFD_OK);
    assert_int_equal(rows_of(db), COMMITS);
    hfd_db_close(&db);
}

int main(void)
{
#define RULE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        RULE(a_cut_log_is_whole),         RULE(a_flipped_frame_is_seen),
        RULE(a_flipped_mark_is_seen),     RULE(a_flipped_header_is_seen),
        RULE(a_torn_header_is_no_damage), RULE(older_frames_mean_nothing),
        RULE(opening_refuses_damage),
    };

    hfd_log_set_fd(open("/dev/null", O_WRONLY | O_CLOEXEC));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
