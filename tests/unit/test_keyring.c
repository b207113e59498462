/* The key ring: its file, and what is sealed with it. */
#include "driver/core/keyring.h"

#include "driver/base/base.h"
#include "tests/lib/seams.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define K1 "00000001:AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE"
#define K2 "0000000a:AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI"

static void same_bytes(void *ctx, void *out, size_t len)
{
    (void)ctx;
    memset(out, 7, len);
}

struct fixture {
    char dir[64];
    char path[96];
    struct test_rng rng;
    struct hfd_arena mem;
};

static int setup(void **state)
{
    static struct fixture fx;

    memset(&fx, 0, sizeof(fx));
    (void)snprintf(fx.dir, sizeof(fx.dir), "/tmp/hfd-keyring-XXXXXX");
    assert_non_null(mkdtemp(fx.dir));
    (void)snprintf(fx.path, sizeof(fx.path), "%s/keys", fx.dir);
    test_rng_init(&fx.rng, 1);
    hfd_arena_init(&fx.mem, 1u << 20);
    *state = &fx;
    return 0;
}

/*
 * The folder goes only when nothing but the key file was left in it: no half-written file stays
 * behind.
 */
static int teardown(void **state)
{
    struct fixture *fx = *state;

    hfd_arena_fini(&fx->mem);
    (void)unlink(fx->path);
    assert_int_equal(rmdir(fx->dir), 0);
    return 0;
}

static void write_text(const char *path, hfd_slice text, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text.p, text.len), text.len);
    assert_int_equal(fchmod(fd, mode), 0);
    assert_int_equal(close(fd), 0);
}

static size_t read_text(const char *path, char *out, size_t cap)
{
    int fd = open(path, O_RDONLY);
    ssize_t n;

    assert_true(fd >= 0);
    n = read(fd, out, cap - 1);
    assert_true(n >= 0);
    assert_int_equal(close(fd), 0);
    out[n] = '\0';
    return (size_t)n;
}

static struct hfd_keyring *load(const char *path)
{
    struct hfd_keyring *ring;
    struct hfd_err err;

    if (hfd_keyring_load(path, &ring, &err) != HFD_OK)
        fail_msg("%s", err.msg);
    return ring;
}

/* A new file is private, has one key, explains itself, and loads. */
static void keyring_create_makes_a_private_file(void **state)
{
    struct fixture *fx = *state;
    struct hfd_keyring *ring;
    char text[1024];
    struct stat st;

    umask(0277);
    assert_int_equal(hfd_keyring_create(fx->path, &fx->rng.rng, NULL), HFD_OK);
    umask(022);
    assert_int_equal(stat(fx->path, &st), 0);
    assert_int_equal(st.st_mode, S_IFREG | 0600);
    assert_int_equal(st.st_nlink, 1);
    (void)read_text(fx->path, text, sizeof(text));
    assert_int_equal(text[0], '#');
    assert_non_null(strstr(text, "cannot be read"));
    assert_non_null(strstr(text, ":active\n"));
    ring = load(fx->path);
    hfd_keyring_free(ring);
}

/* A file that is there is never replaced, whatever it holds. */
static void keyring_create_never_replaces(void **state)
{
    struct fixture *fx = *state;
    struct hfd_err err;
    char text[16];

    write_text(fx->path, HFD_SLICE("mine"), 0644);
    assert_int_equal(hfd_keyring_create(fx->path, &fx->rng.rng, &err), HFD_CONFLICT);
    assert_non_null(strstr(err.msg, fx->path));
    (void)read_text(fx->path, text, sizeof(text));
    assert_string_equal(text, "mine");
}

/* A folder that is missing, or a path too long, is an error and makes nothing. */
static void keyring_create_tells_of_bad_paths(void **state)
{
    struct fixture *fx = *state;
    char path[5000];
    struct hfd_err err;

    (void)snprintf(path, sizeof(path), "%s/no/keys", fx->dir);
    assert_int_equal(hfd_keyring_create(path, &fx->rng.rng, &err), HFD_NOT_FOUND);
    memset(path, 'x', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    assert_int_equal(hfd_keyring_create(path, &fx->rng.rng, &err), HFD_INVALID);
}

static const struct {
    const char *text;
    const char *message; /* NULL: it parses */
} texts[] = {
    {K1 ":active\n", NULL},
    {K1 ":active", NULL},
    {"# a comment\n\n" K1 ":retired\n#\n" K2 ":active\n", NULL},
    {K1 ":prepared\n" K2 ":active\n", NULL},
    {"", "no active key"},
    {K1 ":prepared\n", "no active key"},
    {"# " K1 ":active\n", "no active key"},
    {K1 ":retired\n", "no active key"},
    {K1 ":active\n" K2 ":active\n", "line 2: a second active key"},
    {K1 ":active\n" K1 ":retired\n", "line 2: the id is given twice"},
    {"\n" K1 ":Active\n", "line 2: expected"},
    {K1 ":active \n", "line 1: expected"},
    {K1 ":active\r\n", "line 1: expected"},
    {K1 ":\n", "line 1: expected"},
    {K1 "\n", "line 1: expected"},
    {" " K1 ":active\n", "line 1: expected"},
    {"0000000A:AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI:active\n", "line 1: expected"},
    {"000000a:AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI::active\n", "line 1: expected"},
    {"00000001:AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQ=:active\n", "line 1: expected"},
    {"00000001:AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQF:active\n",
     "line 1: expected"}, /* bits beyond the key */
    {"00000001:AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBA+E:active\n", "line 1: expected"},
    {"garbage\n", "line 1: expected"},
};

/* Each line is checked, the message names it, and never shows what stands there. */
static void key_list_parse_checks_each_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct hfd_key_list keys;
        struct hfd_err err = {.rc = HFD_OK};
        hfd_rc rc = hfd_key_list_parse(hfd_slice_of(texts[i].text), &keys, &err);

        if (texts[i].message == NULL) {
            assert_int_equal(rc, HFD_OK);
            assert_int_equal(keys.ids[keys.active][3], keys.count == 1 ? 1 : 10);
            assert_int_equal(keys.masters.p[keys.active * HFD_KEY_BYTES + 31],
                             keys.count == 1 ? 1 : 2);
            hfd_secret_fini(&keys.masters);
            continue;
        }
        assert_int_equal(rc, HFD_INVALID);
        if (strstr(err.msg, texts[i].message) == NULL)
            fail_msg("text %zu: \"%s\" does not say \"%s\"", i, err.msg, texts[i].message);
        assert_null(strstr(err.msg, "AQEBAQ"));
        assert_null(strstr(err.msg, "garbage"));
    }
}

/* A NUL byte in an id is no digit. */
static void key_list_parse_refuses_nul(void **state)
{
    char text[] = K1 ":active\n";
    struct hfd_key_list keys;

    (void)state;
    text[0] = '\0';
    assert_int_equal(hfd_key_list_parse((hfd_slice){text, sizeof(text) - 1}, &keys, NULL),
                     HFD_INVALID);
}

/* Writes n keys, the last one active, and returns the length. */
static size_t many_keys(char *out, size_t cap, int n)
{
    size_t len = 0;

    for (int i = 0; i < n; i++)
        len += (size_t)snprintf(out + len, cap - len, "%08x:%.43s:%s\n", (unsigned)i + 1, &K1[9],
                                i == n - 1 ? "active" : "retired");
    return len;
}

/* 64 keys are read, 65 are not; 16 KiB are read, one byte more is not. */
static void key_list_parse_has_limits(void **state)
{
    static char text[HFD_KEY_FILE_MAX_BYTES + 1];
    struct hfd_key_list keys;
    size_t len;

    (void)state;
    len = many_keys(text, sizeof(text), HFD_KEYS_MAX);
    memset(text + len, '\n', sizeof(text) - len);
    assert_int_equal(hfd_key_list_parse((hfd_slice){text, sizeof(text) - 1}, &keys, NULL), HFD_OK);
    assert_int_equal(keys.count, HFD_KEYS_MAX);
    hfd_secret_fini(&keys.masters);
    assert_int_equal(hfd_key_list_parse((hfd_slice){text, sizeof(text)}, &keys, NULL), HFD_INVALID);
    len = many_keys(text, sizeof(text), HFD_KEYS_MAX + 1);
    assert_int_equal(hfd_key_list_parse((hfd_slice){text, len}, &keys, NULL), HFD_INVALID);
}

/* Only a private regular file of ours is read. */
static void keyring_load_checks_the_file(void **state)
{
    static const struct {
        mode_t mode;
        hfd_rc rc;
    } modes[] = {{0600, HFD_OK},      {0400, HFD_OK},      {0640, HFD_INVALID},
                 {0604, HFD_INVALID}, {0620, HFD_INVALID}, {0666, HFD_INVALID}};
    struct fixture *fx = *state;
    struct hfd_keyring *ring = (struct hfd_keyring *)fx;
    struct hfd_err err;
    struct stat st;
    char link_path[128];

    assert_int_equal(hfd_keyring_load(fx->path, &ring, &err), HFD_NOT_FOUND);
    assert_null(ring);
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        write_text(fx->path, HFD_SLICE(K1 ":active\n"), modes[i].mode);
        assert_int_equal(hfd_keyring_load(fx->path, &ring, &err), modes[i].rc);
        if (modes[i].rc != HFD_OK)
            assert_non_null(strstr(err.msg, "expected 0600 or 0400"));
        hfd_keyring_free(ring);
    }
    assert_int_equal(chmod(fx->path, 0600), 0);
    (void)snprintf(link_path, sizeof(link_path), "%s/link", fx->dir);
    assert_int_equal(symlink(fx->path, link_path), 0);
    assert_int_equal(hfd_keyring_load(link_path, &ring, &err), HFD_INVALID);
    assert_non_null(strstr(err.msg, "symbolic link"));
    assert_int_equal(unlink(link_path), 0);
    if (geteuid() == 0) {
        assert_int_equal(chown(fx->path, 1, 1), 0);
        assert_int_equal(hfd_keyring_load(fx->path, &ring, &err), HFD_INVALID);
        assert_non_null(strstr(err.msg, "owned by user 1"));
        /* The folder is that user's, too: root's commands work for its server. */
        assert_int_equal(chown(fx->dir, 1, 1), 0);
        assert_int_equal(hfd_keyring_load(fx->path, &ring, &err), HFD_OK);
        hfd_keyring_free(ring);
        assert_int_equal(chown(fx->path, 2, 2), 0);
        assert_int_equal(hfd_keyring_load(fx->path, &ring, &err), HFD_INVALID);
        assert_int_equal(unlink(fx->path), 0);
        assert_int_equal(hfd_keyring_create(fx->path, &fx->rng.rng, &err), HFD_OK);
        assert_int_equal(stat(fx->path, &st), 0);
        assert_int_equal(st.st_uid, 1);
        assert_int_equal(st.st_gid, 1);
        assert_int_equal(chown(fx->dir, 0, 0), 0);
    }
    assert_int_equal(unlink(fx->path), 0);
    assert_int_equal(mkfifo(fx->path, 0600), 0);
    assert_int_equal(hfd_keyring_load(fx->path, &ring, &err), HFD_INVALID);
    assert_int_equal(unlink(fx->path), 0);
    assert_int_equal(mkdir(fx->path, 0700), 0);
    assert_int_equal(hfd_keyring_load(fx->path, &ring, &err), HFD_INVALID);
    assert_int_equal(rmdir(fx->path), 0);
}

static hfd_slice seal(const struct hfd_keyring *ring, struct fixture *fx, const char *plain)
{
    return hfd_keyring_seal(&(struct hfd_seal){ring, HFD_KEY_AT_REST, HFD_SLICE("aad")},
                            &fx->rng.rng, hfd_slice_of(plain), &fx->mem);
}

static hfd_rc open_with(const struct hfd_keyring *ring, struct fixture *fx, hfd_slice sealed,
                        hfd_slice *plain)
{
    return hfd_keyring_open(&(struct hfd_seal){ring, HFD_KEY_AT_REST, HFD_SLICE("aad")}, sealed,
                            &fx->mem, plain, NULL);
}

/*
 * After a rotation the new key seals, the old one opens, comments and the mode stay, and the id is
 * told.
 */
static void keyring_rotate_keeps_old_keys_opening(void **state)
{
    struct fixture *fx = *state;
    struct hfd_keyring *before, *after;
    hfd_slice sealed, plain;
    unsigned char digest[HFD_DIGEST_BYTES];
    char id[9], text[1024], wanted[64];
    struct stat st;

    write_text(fx->path, HFD_SLICE("# note\n" K1 ":active\n# last"), 0400);
    before = load(fx->path);
    sealed = seal(before, fx, "hello");
    hfd_keyring_digest(before, HFD_SLICE("data"), digest);
    assert_int_equal(hfd_keyring_change(fx->path, HFD_KEY_ROTATE, &fx->rng.rng, id, NULL), HFD_OK);
    (void)read_text(fx->path, text, sizeof(text));
    assert_non_null(strstr(text, "# note\n" K1 ":retired\n# last\n"));
    (void)snprintf(wanted, sizeof(wanted), "\n%s:", id);
    assert_int_equal(strlen(id), 8);
    assert_non_null(strstr(text, wanted));
    assert_int_equal(stat(fx->path, &st), 0);
    assert_int_equal(st.st_mode, S_IFREG | 0400);

    after = load(fx->path);
    assert_int_equal(open_with(after, fx, sealed, &plain), HFD_OK);
    assert_true(hfd_slice_is(plain, "hello"));
    assert_true(hfd_keyring_digest_is(after, (hfd_slice){(char *)digest, sizeof(digest)},
                                      HFD_SLICE("data")));
    sealed = seal(after, fx, "hello");
    assert_int_equal(open_with(before, fx, sealed, &plain), HFD_COOKIE);
    assert_null(plain.p);
    hfd_keyring_free(before);
    hfd_keyring_free(after);
}

static void expect_file(struct fixture *fx, const char *wanted)
{
    char text[2048];

    (void)read_text(fx->path, text, sizeof(text));
    if (strstr(text, wanted) == NULL)
        fail_msg("no \"%s\" in \"%s\"", wanted, text);
}

/* Two steps: a prepared key opens alone, and seals when it is activated. Other keys open on. */
static void keyring_prepare_and_activate(void **state)
{
    struct fixture *fx = *state;
    struct hfd_keyring *before, *prepared, *after;
    struct hfd_key_view key;
    struct hfd_err err = {0};
    hfd_slice sealed, plain;
    char any[9] = "", first[9], second[9];

    write_text(fx->path, HFD_SLICE("# note\n" K1 ":active\n"), 0600);
    assert_int_equal(hfd_keyring_change(fx->path, HFD_KEY_ACTIVATE, NULL, any, &err), HFD_CONFLICT);
    assert_non_null(strstr(err.msg, "no key is prepared"));
    before = load(fx->path);
    assert_int_equal(hfd_keyring_change(fx->path, HFD_KEY_PREPARE, &fx->rng.rng, first, NULL),
                     HFD_OK);
    expect_file(fx, "# note\n" K1 ":active\n");
    assert_int_equal(hfd_keyring_change(fx->path, HFD_KEY_PREPARE, &fx->rng.rng, second, NULL),
                     HFD_OK);
    prepared = load(fx->path);
    assert_int_equal(hfd_keyring_count(prepared), 3);
    hfd_keyring_view(prepared, 2, &key);
    assert_int_equal(key.state, HFD_KEY_PREPARED);
    assert_false(key.active);
    assert_string_equal(hfd_key_state_name(key.state), "prepared");
    sealed = seal(prepared, fx, "hello");
    assert_int_equal(open_with(before, fx, sealed, &plain), HFD_OK);

    assert_int_equal(hfd_keyring_change(fx->path, HFD_KEY_ACTIVATE, NULL, first, &err),
                     HFD_CONFLICT);
    assert_non_null(strstr(err.msg, "was prepared meanwhile"));
    assert_int_equal(hfd_keyring_change(fx->path, HFD_KEY_ACTIVATE, NULL, second, NULL), HFD_OK);
    expect_file(fx, "# note\n" K1 ":retired\n");
    after = load(fx->path);
    hfd_keyring_view(after, 1, &key);
    assert_int_equal(key.state, HFD_KEY_RETIRED); /* an older one is not activated later */
    sealed = seal(after, fx, "hello");
    hfd_keyring_view(after, 2, &key);
    assert_true(key.active);
    assert_memory_equal(sealed.p, key.id, HFD_KEY_ID_BYTES);
    assert_int_equal(open_with(before, fx, sealed, &plain), HFD_COOKIE);
    assert_int_equal(open_with(prepared, fx, sealed, &plain), HFD_OK);
    assert_int_equal(hfd_keyring_change(fx->path, HFD_KEY_ACTIVATE, NULL, any, &err), HFD_CONFLICT);
    hfd_keyring_free(before);
    hfd_keyring_free(prepared);
    hfd_keyring_free(after);
}

typedef hfd_rc change_fn(const char *path);

static hfd_rc create_ring(const char *path)
{
    return hfd_keyring_create(path, &hfd_rng_system, NULL);
}

static hfd_rc rotate_ring(const char *path)
{
    char id[9];

    return hfd_keyring_change(path, HFD_KEY_ROTATE, &hfd_rng_system, id, NULL);
}

/* Runs a change in a child, and kills it at its nth stop. @return false: it ended before */
static bool kill_at(change_fn *change, const char *path, unsigned nth)
{
    const pid_t pid = fork();
    int status;

    if (pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(2);
        (void)raise(SIGSTOP);
        _exit(change(path) == HFD_OK ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
        skip(); /* nothing may be traced here */
    for (unsigned i = 0; i < nth; i++) {
        assert_int_equal(ptrace(PTRACE_SYSCALL, pid, NULL, NULL), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (WIFEXITED(status)) {
            assert_int_equal(WEXITSTATUS(status), 0);
            return false;
        }
    }
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return true;
}

static unsigned files_in(const char *dir)
{
    DIR *d = opendir(dir);
    unsigned n = 0;

    assert_non_null(d);
    while (readdir(d) != NULL)
        n++;
    (void)closedir(d);
    return n - 2;
}

/*
 * kill -9 before and behind every system call of a creation and of a rotation. There is no ring, or
 * a whole one, with all keys that it had. The next attempt works, and leaves no other file.
 */
static void keyring_survives_kills(void **state)
{
    struct fixture *fx = *state;
    char before[4096], after[4096];
    size_t len;
    unsigned kills = 0;

    for (unsigned n = 1; kill_at(create_ring, fx->path, n); n++, kills++) {
        assert_true(files_in(fx->dir) <= 2);
        if (access(fx->path, F_OK) != 0)
            assert_int_equal(create_ring(fx->path), HFD_OK);
        hfd_keyring_free(load(fx->path));
        assert_int_equal(rotate_ring(fx->path), HFD_OK);
        assert_int_equal(files_in(fx->dir), 1);
        assert_int_equal(unlink(fx->path), 0);
    }
    assert_true(kills > 10);
    kills = 0;
    len = read_text(fx->path, before, sizeof(before));
    for (unsigned n = 1; kill_at(rotate_ring, fx->path, n); n++, kills++) {
        const char *key = strrchr(before, ':');
        hfd_slice first = {before, (size_t)(key - before)};

        assert_true(files_in(fx->dir) <= 2);
        hfd_keyring_free(load(fx->path));
        assert_true(read_text(fx->path, after, sizeof(after)) >= len);
        assert_memory_equal(after, first.p, first.len); /* the old key; its state may differ */
        assert_int_equal(rotate_ring(fx->path), HFD_OK);
        assert_int_equal(files_in(fx->dir), 1);
        write_text(fx->path, (hfd_slice){before, len}, 0600);
    }
    assert_true(kills > 10);
}

/* The fingerprint outlives rotation, is another one for another ring, and is fit for a label. */
static void keyring_fingerprint_outlives_rotation(void **state)
{
    struct fixture *fx = *state;
    char before[HFD_FINGERPRINT_CHARS + 1], after[HFD_FINGERPRINT_CHARS + 1],
        other[HFD_FINGERPRINT_CHARS + 1], id[9];
    struct hfd_keyring *ring;

    assert_int_equal(hfd_keyring_create(fx->path, &fx->rng.rng, NULL), HFD_OK);
    assert_int_equal(hfd_keyring_load(fx->path, &ring, NULL), HFD_OK);
    hfd_keyring_fingerprint(ring, before);
    hfd_keyring_free(ring);
    assert_int_equal(hfd_keyring_change(fx->path, HFD_KEY_ROTATE, &fx->rng.rng, id, NULL), HFD_OK);
    assert_int_equal(hfd_keyring_load(fx->path, &ring, NULL), HFD_OK);
    hfd_keyring_fingerprint(ring, after);
    hfd_keyring_free(ring);
    assert_int_equal(hfd_keyring_fixed(7, &ring, NULL), HFD_OK);
    hfd_keyring_fingerprint(ring, other);
    hfd_keyring_free(ring);
    assert_string_equal(before, after);
    assert_string_not_equal(before, other);
    assert_int_equal(strlen(before), HFD_FINGERPRINT_CHARS);
    assert_int_equal(strspn(before, "0123456789abcdef"), HFD_FINGERPRINT_CHARS);
}

/* A failed rotation leaves the file as it was. */
static void keyring_rotate_refuses_and_changes_nothing(void **state)
{
    static char text[HFD_KEY_FILE_MAX_BYTES + 1], now[HFD_KEY_FILE_MAX_BYTES + 2];
    struct fixture *fx = *state;
    const struct hfd_rng stuck = {same_bytes, NULL};
    struct hfd_err err;
    char id[9] = "x";
    size_t len;

    assert_int_equal(hfd_keyring_change(fx->path, HFD_KEY_ROTATE, &fx->rng.rng, id, &err),
                     HFD_NOT_FOUND);
    assert_string_equal(id, "");
    write_text(fx->path, HFD_SLICE("garbage\n"), 0600);
    assert_int_equal(hfd_keyring_change(fx->path, HFD_KEY_ROTATE, &fx->rng.rng, id, &err),
                     HFD_INVALID);

    len = many_keys(text, sizeof(text), HFD_KEYS_MAX);
    write_text(fx->path, (hfd_slice){text, len}, 0600);
    assert_int_equal(hfd_keyring_change(fx->path, HFD_KEY_ROTATE, &fx->rng.rng, id, &err),
                     HFD_LIMIT);
    assert_int_equal(read_text(fx->path, now, sizeof(now)), len);
    assert_memory_equal(text, now, len);

    len = many_keys(text, sizeof(text), 1);
    memset(text + len, '#', HFD_KEY_FILE_MAX_BYTES - len);
    write_text(fx->path, (hfd_slice){text, HFD_KEY_FILE_MAX_BYTES}, 0600);
    assert_int_equal(hfd_keyring_change(fx->path, HFD_KEY_ROTATE, &fx->rng.rng, id, &err),
                     HFD_LIMIT);
    assert_int_equal(read_text(fx->path, now, sizeof(now)), HFD_KEY_FILE_MAX_BYTES);

    write_text(fx->path, HFD_SLICE("07070707:AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE:active\n"),
               0600);
    assert_int_equal(hfd_keyring_change(fx->path, HFD_KEY_ROTATE, &stuck, id, &err), HFD_IO);
    assert_string_equal(id, "");
}

/* Rotations at the same time wait for each other: no key is lost. */
static void keyring_rotate_from_several_processes_loses_none(void **state)
{
    struct fixture *fx = *state;
    struct hfd_key_list keys;
    char text[HFD_KEY_FILE_MAX_BYTES + 1];
    pid_t pids[4];
    size_t len;

    assert_int_equal(hfd_keyring_create(fx->path, &fx->rng.rng, NULL), HFD_OK);
    for (int i = 0; i < 4; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0) {
            char id[9];
            int bad = 0;

            test_rng_init(&fx->rng, (uint64_t)getpid());
            for (int n = 0; n < 5; n++)
                bad +=
                    hfd_keyring_change(fx->path, HFD_KEY_ROTATE, &fx->rng.rng, id, NULL) != HFD_OK;
            _exit(bad);
        }
    }
    for (int i = 0; i < 4; i++) {
        int status;

        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    len = read_text(fx->path, text, sizeof(text));
    assert_int_equal(hfd_key_list_parse((hfd_slice){text, len}, &keys, NULL), HFD_OK);
    assert_int_equal(keys.count, 21);
    hfd_secret_fini(&keys.masters);
}

/* Every byte counts: a text with one bit turned, or cut anywhere, does not open. */
static void keyring_open_refuses_any_change(void **state)
{
    struct fixture *fx = *state;
    struct hfd_keyring *ring;
    hfd_slice sealed, plain;
    char copy[64];

    assert_int_equal(hfd_keyring_fixed(1, &ring, NULL), HFD_OK);
    sealed = seal(ring, fx, "hello");
    assert_int_equal(sealed.len, 4 + 24 + 5 + 16);
    for (size_t i = 0; i < sealed.len * 8; i++) {
        memcpy(copy, sealed.p, sealed.len);
        copy[i / 8] = (char)(copy[i / 8] ^ 1 << i % 8);
        assert_int_equal(open_with(ring, fx, (hfd_slice){copy, sealed.len}, &plain), HFD_COOKIE);
        assert_null(plain.p);
    }
    for (size_t len = 0; len < sealed.len; len++)
        assert_int_equal(open_with(ring, fx, (hfd_slice){sealed.p, len}, &plain), HFD_COOKIE);
    assert_int_equal(open_with(ring, fx, sealed, &plain), HFD_OK);
    assert_true(hfd_slice_is(plain, "hello"));
    hfd_keyring_free(ring);
}

/* A sealed text opens for its own use, associated data and ring alone. */
static void keyring_open_is_bound(void **state)
{
    struct fixture *fx = *state;
    struct hfd_keyring *ring, *other;
    hfd_slice sealed, again, plain;

    assert_int_equal(hfd_keyring_fixed(1, &ring, NULL), HFD_OK);
    assert_int_equal(hfd_keyring_fixed(2, &other, NULL), HFD_OK);
    sealed = seal(ring, fx, "");
    again = seal(ring, fx, "");
    assert_false(hfd_slice_eq(sealed, again));
    assert_int_equal(open_with(ring, fx, sealed, &plain), HFD_OK);
    assert_int_equal(plain.len, 0);
    assert_non_null(plain.p);
    assert_int_equal(hfd_keyring_open(&(struct hfd_seal){ring, HFD_KEY_COOKIE, HFD_SLICE("aad")},
                                      sealed, &fx->mem, &plain, NULL),
                     HFD_COOKIE);
    assert_int_equal(hfd_keyring_open(&(struct hfd_seal){ring, HFD_KEY_AT_REST, HFD_SLICE("aaD")},
                                      sealed, &fx->mem, &plain, NULL),
                     HFD_COOKIE);
    assert_int_equal(hfd_keyring_open(&(struct hfd_seal){ring, HFD_KEY_AT_REST, HFD_SLICE_NONE},
                                      sealed, &fx->mem, &plain, NULL),
                     HFD_COOKIE);
    assert_int_equal(open_with(other, fx, sealed, &plain), HFD_COOKIE);
    hfd_keyring_free(ring);
    hfd_keyring_free(other);
}

/* Short memory has its own error, and is not taken for a forgery. */
static void keyring_tells_of_short_memory(void **state)
{
    struct fixture *fx = *state;
    struct hfd_keyring *ring;
    struct hfd_arena tiny;
    hfd_slice sealed, plain;

    assert_int_equal(hfd_keyring_fixed(1, &ring, NULL), HFD_OK);
    sealed = seal(ring, fx, "hello");
    hfd_arena_init(&tiny, 0);
    assert_null(hfd_keyring_seal(&(struct hfd_seal){ring, HFD_KEY_AT_REST, HFD_SLICE("aad")},
                                 &fx->rng.rng, HFD_SLICE("x"), &tiny)
                    .p);
    assert_int_equal(hfd_keyring_open(&(struct hfd_seal){ring, HFD_KEY_AT_REST, HFD_SLICE("aad")},
                                      sealed, &tiny, &plain, NULL),
                     HFD_NOMEM);
    assert_null(hfd_keyring_seal(&(struct hfd_seal){ring, HFD_KEY_AT_REST, HFD_SLICE("aad")},
                                 &fx->rng.rng, (hfd_slice){"x", SIZE_MAX}, &fx->mem)
                    .p);
    hfd_arena_fini(&tiny);
    hfd_keyring_free(ring);
}

/* A digest tells equal data from other data and names its key; other rings give other digests. */
static void keyring_digest_knows_its_data(void **state)
{
    unsigned char one[HFD_DIGEST_BYTES], two[HFD_DIGEST_BYTES];
    struct hfd_keyring *ring, *other;

    (void)state;
    assert_int_equal(hfd_keyring_fixed(1, &ring, NULL), HFD_OK);
    assert_int_equal(hfd_keyring_fixed(2, &other, NULL), HFD_OK);
    hfd_keyring_digest(ring, HFD_SLICE("data"), one);
    hfd_keyring_digest(ring, HFD_SLICE("data"), two);
    assert_memory_equal(one, two, sizeof(one));
    assert_int_equal(one[3], 1);
    assert_true(
        hfd_keyring_digest_is(ring, (hfd_slice){(char *)one, sizeof(one)}, HFD_SLICE("data")));
    assert_false(
        hfd_keyring_digest_is(ring, (hfd_slice){(char *)one, sizeof(one)}, HFD_SLICE("date")));
    assert_false(
        hfd_keyring_digest_is(ring, (hfd_slice){(char *)one, sizeof(one) - 1}, HFD_SLICE("data")));
    assert_false(hfd_keyring_digest_is(ring, HFD_SLICE_NONE, HFD_SLICE("data")));
    assert_false(
        hfd_keyring_digest_is(other, (hfd_slice){(char *)one, sizeof(one)}, HFD_SLICE("data")));
    hfd_keyring_digest(other, HFD_SLICE("data"), two);
    assert_memory_not_equal(one + 4, two + 4, 32);
    hfd_keyring_digest(ring, HFD_SLICE_NONE, two);
    assert_true(hfd_keyring_digest_is(ring, (hfd_slice){(char *)two, sizeof(two)}, HFD_SLICE("")));
    hfd_keyring_free(ring);
    hfd_keyring_free(other);
    hfd_keyring_free(NULL);
}

/*
 * A digest that was compared before, with its data or with others, is compared no less strictly.
 * There are more of them than the ring remembers.
 */
static void keyring_remembers_digests_of_their_own_data(void **state)
{
    enum {
        COUNT = 10000
    };
    static unsigned char digests[COUNT][HFD_DIGEST_BYTES];
    struct hfd_keyring *ring;

    (void)state;
    assert_int_equal(hfd_keyring_fixed(1, &ring, NULL), HFD_OK);
    for (int i = 0; i < COUNT; i++)
        hfd_keyring_digest(ring, (hfd_slice){(char *)&i, sizeof(i)}, digests[i]);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < COUNT; i++) {
            const hfd_slice digest = {(char *)digests[i], HFD_DIGEST_BYTES};
            int other = i ^ 1;

            for (int twice = 0; twice < 2; twice++) {
                assert_true(
                    hfd_keyring_digest_is(ring, digest, (hfd_slice){(char *)&i, sizeof(i)}));
                assert_false(hfd_keyring_digest_is(ring, digest,
                                                   (hfd_slice){(char *)&other, sizeof(other)}));
            }
            digests[i][HFD_DIGEST_BYTES - 3] ^= 1;
            assert_false(hfd_keyring_digest_is(ring, digest, (hfd_slice){(char *)&i, sizeof(i)}));
            digests[i][HFD_DIGEST_BYTES - 3] ^= 1;
        }
    }
    hfd_keyring_free(ring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(keyring_create_makes_a_private_file, setup, teardown),
        cmocka_unit_test_setup_teardown(keyring_create_never_replaces, setup, teardown),
        cmocka_unit_test_setup_teardown(keyring_create_tells_of_bad_paths, setup, teardown),
        cmocka_unit_test(key_list_parse_checks_each_line),
        cmocka_unit_test(key_list_parse_refuses_nul),
        cmocka_unit_test(key_list_parse_has_limits),
        cmocka_unit_test_setup_teardown(keyring_load_checks_the_file, setup, teardown),
        cmocka_unit_test_setup_teardown(keyring_rotate_keeps_old_keys_opening, setup, teardown),
        cmocka_unit_test_setup_teardown(keyring_prepare_and_activate, setup, teardown),
        cmocka_unit_test_setup_teardown(keyring_fingerprint_outlives_rotation, setup, teardown),
        cmocka_unit_test_setup_teardown(keyring_survives_kills, setup, teardown),
        cmocka_unit_test_setup_teardown(keyring_rotate_refuses_and_changes_nothing, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(keyring_rotate_from_several_processes_loses_none, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(keyring_open_refuses_any_change, setup, teardown),
        cmocka_unit_test_setup_teardown(keyring_open_is_bound, setup, teardown),
        cmocka_unit_test_setup_teardown(keyring_tells_of_short_memory, setup, teardown),
        cmocka_unit_test(keyring_digest_knows_its_data),
        cmocka_unit_test(keyring_remembers_digests_of_their_own_data),
    };

    if (hfd_base_init(NULL) != HFD_OK)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
