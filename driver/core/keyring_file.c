/*
 * See keyring_file.h. Bytes of the file pass through guarded memory only, and are wiped. Refuses
 * links, all but regular files, files that other users may read, and files of other users.
 */
#include "driver/core/keyring_file.h"

#include "driver/base/file.h"
#include "driver/core/keyring_int.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sodium.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define ID_CHARS (2 * HFD_KEY_ID_BYTES)
#define KEY_CHARS 43 /* base64url of HFD_KEY_BYTES without padding */
#define PREFIX_CHARS (ID_CHARS + 1 + KEY_CHARS + 1)
#define BASE64 sodium_base64_VARIANT_URLSAFE_NO_PADDING

_Static_assert(sodium_base64_ENCODED_LEN(HFD_KEY_BYTES, sodium_base64_VARIANT_URLSAFE_NO_PADDING) ==
                   KEY_CHARS + 1,
               "text of a key");

static const char file_head[] = "# The key ring of hyperfleet-driver. It seals driver cookies and "
                                "the secrets kept in the database.\n"
                                "# Keep it private and back it up: if it is lost, cookies and "
                                "stored secrets cannot be read any more.\n"
                                "# One key a line: 8 hex digits, the key, and active (seals and "
                                "opens; exactly one) or retired (opens only).\n";

/* ---- text ---- */

static bool parse_id(const char *p, unsigned char id[HFD_KEY_ID_BYTES])
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < ID_CHARS; i++) {
        const char *d = p[i] != '\0' ? strchr(digits, p[i]) : NULL;

        if (d == NULL)
            return false;
        id[i / 2] = (unsigned char)(id[i / 2] << 4 | (d - digits));
    }
    return true;
}

static bool parse_line(hfd_slice line, unsigned char id[HFD_KEY_ID_BYTES],
                       unsigned char key[HFD_KEY_BYTES], bool *active)
{
    const char *text = line.p + ID_CHARS + 1;
    hfd_slice state;
    size_t len = 0;

    if (line.len < PREFIX_CHARS || line.p[ID_CHARS] != ':' || line.p[PREFIX_CHARS - 1] != ':' ||
        !parse_id(line.p, id))
        return false;
    if (sodium_base642bin(key, HFD_KEY_BYTES, text, KEY_CHARS, NULL, &len, NULL, BASE64) != 0 ||
        len != HFD_KEY_BYTES)
        return false;
    state = (hfd_slice){line.p + PREFIX_CHARS, line.len - PREFIX_CHARS};
    *active = hfd_slice_is(state, "active");
    return *active || hfd_slice_is(state, "retired");
}

/* Cuts the next line off *rest. */
static hfd_slice next_line(hfd_slice *rest)
{
    const char *end = memchr(rest->p, '\n', rest->len);
    hfd_slice line = {rest->p, end != NULL ? (size_t)(end - rest->p) : rest->len};
    size_t used = line.len + (end != NULL ? 1 : 0);

    rest->p += used;
    rest->len -= used;
    return line;
}

static bool is_key_line(hfd_slice line)
{
    return line.len > 0 && line.p[0] != '#';
}

static bool has_id(const struct hfd_key_list *keys, const unsigned char id[HFD_KEY_ID_BYTES])
{
    for (size_t i = 0; i < keys->count; i++)
        if (memcmp(keys->ids[i], id, HFD_KEY_ID_BYTES) == 0)
            return true;
    return false;
}

static hfd_rc parse_keys(hfd_slice text, struct hfd_key_list *out, struct hfd_err *err)
{
    bool have_active = false;

    for (int number = 1; text.len > 0; number++) {
        hfd_slice line = next_line(&text);
        unsigned char id[HFD_KEY_ID_BYTES] = {0};
        bool active;

        if (!is_key_line(line))
            continue;
        if (out->count == HFD_KEYS_MAX)
            return hfd_fail(err, HFD_INVALID, "key ring, line %d: more than %d keys", number,
                            HFD_KEYS_MAX);
        if (!parse_line(line, id, out->masters.p + out->count * HFD_KEY_BYTES, &active))
            return hfd_fail(
                err, HFD_INVALID,
                "key ring, line %d: expected id:key:active or id:key:retired with 8 lower-case hex "
                "digits and a key of 32 bytes in base64url",
                number);
        if (has_id(out, id))
            return hfd_fail(err, HFD_INVALID, "key ring, line %d: the id is given twice", number);
        if (active && have_active)
            return hfd_fail(err, HFD_INVALID, "key ring, line %d: a second active key", number);
        if (active)
            out->active = out->count;
        have_active = have_active || active;
        memcpy(out->ids[out->count++], id, HFD_KEY_ID_BYTES);
    }
    if (!have_active)
        return hfd_fail(err, HFD_INVALID, "key ring: no active key");
    return HFD_OK;
}

hfd_rc hfd_key_list_parse(hfd_slice text, struct hfd_key_list *out, struct hfd_err *err)
{
    hfd_rc rc;

    memset(out, 0, sizeof(*out));
    if (text.len > HFD_KEY_FILE_MAX_BYTES)
        return hfd_fail(err, HFD_INVALID, "key ring: larger than %d bytes", HFD_KEY_FILE_MAX_BYTES);
    rc = hfd_secret_init(&out->masters, HFD_KEYS_MAX * HFD_KEY_BYTES, err);
    if (rc != HFD_OK)
        return rc;
    rc = parse_keys(text, out, err);
    if (rc != HFD_OK)
        hfd_secret_fini(&out->masters);
    return rc;
}

/* The same, of a file: its name goes behind the words "key ring". */
static hfd_rc parse_file(const char *path, hfd_slice text, struct hfd_key_list *out,
                         struct hfd_err *err)
{
    struct hfd_err why = {0};
    hfd_rc rc = hfd_key_list_parse(text, out, &why);

    return rc == HFD_OK
               ? rc
               : hfd_fail(err, rc, "key ring %.100s%s", path, why.msg + strcspn(why.msg, ",:"));
}

/* Text under way, in guarded memory. */
struct text {
    struct hfd_secret mem; /* HFD_KEY_FILE_MAX_BYTES + 1 */
    size_t len;
    bool full;
};

static hfd_rc text_init(struct text *t, struct hfd_err *err)
{
    memset(t, 0, sizeof(*t));
    return hfd_secret_init(&t->mem, HFD_KEY_FILE_MAX_BYTES + 1, err);
}

static hfd_slice text_slice(const struct text *t)
{
    return (hfd_slice){(const char *)t->mem.p, t->len};
}

static void text_add(struct text *t, hfd_slice s)
{
    if (t->full || s.len > HFD_KEY_FILE_MAX_BYTES - t->len) {
        t->full = true;
        return;
    }
    memcpy(t->mem.p + t->len, s.p, s.len);
    t->len += s.len;
}

/* Adds a new active key; id_out gets its id as text. */
static hfd_rc text_add_key(struct text *t, const struct hfd_rng *rng,
                           const struct hfd_key_list *others, char id_out[ID_CHARS + 1],
                           struct hfd_err *err)
{
    unsigned char id[HFD_KEY_ID_BYTES];
    struct hfd_secret key, chars;
    hfd_rc rc;

    for (int tries = 0;; tries++) {
        hfd_rng_bytes(rng, id, sizeof(id));
        if (!has_id(others, id))
            break;
        if (tries == 7)
            return hfd_fail(err, HFD_IO, "new key: the random source repeats itself");
    }
    memset(&chars, 0, sizeof(chars));
    rc = hfd_secret_init(&key, HFD_KEY_BYTES, err);
    if (rc != HFD_OK)
        return rc;
    rc = hfd_secret_init(&chars, KEY_CHARS + 1, err);
    if (rc != HFD_OK)
        goto out;
    hfd_rng_bytes(rng, key.p, key.len);
    sodium_bin2hex(id_out, ID_CHARS + 1, id, sizeof(id));
    sodium_bin2base64((char *)chars.p, chars.len, key.p, key.len, BASE64);
    text_add(t, (hfd_slice){id_out, ID_CHARS});
    text_add(t, HFD_SLICE(":"));
    text_add(t, (hfd_slice){(const char *)chars.p, KEY_CHARS});
    text_add(t, HFD_SLICE(":active\n"));
out:
    hfd_secret_fini(&chars);
    hfd_secret_fini(&key);
    return rc;
}

/* ---- file ---- */

static hfd_rc fail_errno(struct hfd_err *err, const char *what, const char *path)
{
    const int e = errno;
    const hfd_rc rc = e == ENOMEM ? HFD_NOMEM : HFD_IO;

    return hfd_fail(err, e == ENOENT ? HFD_NOT_FOUND : rc, "key ring %s: %s: %s", path, what,
                    strerrordesc_np(e) != NULL ? strerrordesc_np(e) : "unknown error");
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

/* A key file. fd is -1 unless it is open. */
struct file {
    const char *path;
    int fd;
    struct stat st;
};

/* Finds the folder that holds a path. */
static bool stat_folder(const char *path, struct stat *out)
{
    const char *slash = strrchr(path, '/');
    char folder[PATH_MAX];

    return snprintf(folder, sizeof(folder), "%.*s", (int)(slash != NULL ? slash - path + 1 : 1),
                    slash != NULL ? path : ".") < (int)sizeof(folder) &&
           stat(folder, out) == 0;
}

/*
 * True if the owner of a ring may give it to this process: this user or root. Commands of root
 * also take the ring of a server that runs as another user, from the folder of that user.
 */
static bool owner_is_trusted(const struct file *f)
{
    struct stat folder;

    if (f->st.st_uid == geteuid() || f->st.st_uid == 0)
        return true;
    return geteuid() == 0 && stat_folder(f->path, &folder) && folder.st_uid == f->st.st_uid;
}

/* Opens and checks the file: kind, owner, mode. */
static hfd_rc open_file(struct file *f, struct hfd_err *err)
{
    const char *path = f->path;
    hfd_rc rc = HFD_OK;

    memset(&f->st, 0, sizeof(f->st));
    /* O_NONBLOCK: opening a pipe must not hang. */
    f->fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (f->fd < 0 && errno == ELOOP)
        return hfd_fail(err, HFD_INVALID,
                        "key ring %s: it is a symbolic link, expected the file itself", path);
    if (f->fd < 0)
        return fail_errno(err, "open", path);
    if (fstat(f->fd, &f->st) != 0)
        rc = fail_errno(err, "stat", path);
    else if (!S_ISREG(f->st.st_mode))
        rc = hfd_fail(err, HFD_INVALID, "key ring %s: not a regular file", path);
    else if (!owner_is_trusted(f))
        rc = hfd_fail(err, HFD_INVALID, "key ring %s: owned by user %u, expected user %u or root",
                      path, (unsigned)f->st.st_uid, (unsigned)geteuid());
    else if ((f->st.st_mode & (S_IRWXG | S_IRWXO)) != 0)
        rc = hfd_fail(err, HFD_INVALID,
                      "key ring %s: mode %04o lets others in, expected 0600 or 0400", path,
                      (unsigned)(f->st.st_mode & 07777));
    if (rc != HFD_OK)
        close_fd(&f->fd);
    return rc;
}

static hfd_rc read_file(const struct file *f, struct text *t, struct hfd_err *err)
{
    while (t->len < t->mem.len) {
        ssize_t n = read(f->fd, t->mem.p + t->len, t->mem.len - t->len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fail_errno(err, "read", f->path);
        if (n == 0)
            break;
        t->len += (size_t)n;
    }
    return HFD_OK;
}

static hfd_rc write_file(const char *path, int fd, hfd_slice s, struct hfd_err *err)
{
    while (s.len > 0) {
        ssize_t n = write(fd, s.p, s.len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fail_errno(err, "write", path);
        s.p += n;
        s.len -= (size_t)n;
    }
    return fsync(fd) == 0 ? HFD_OK : fail_errno(err, "fsync", path);
}

/* A name is on disk when its folder is. */
static hfd_rc sync_folder(const char *path, struct hfd_err *err)
{
    return hfd_file_sync_parent(path) == 0 ? HFD_OK : fail_errno(err, "fsync of its folder", path);
}

/* Gives a new file the mode and the owner of `like`, and the text. Synced. */
static hfd_rc fill_file(const struct file *like, int fd, hfd_slice text, struct hfd_err *err)
{
    if (fchmod(fd, like->st.st_mode & S_IRWXU) != 0)
        return fail_errno(err, "set its mode", like->path);
    if (like->st.st_uid != geteuid() && fchown(fd, like->st.st_uid, like->st.st_gid) != 0)
        return fail_errno(err, "keep its owner", like->path);
    return write_file(like->path, fd, text, err);
}

static hfd_rc fail_link(struct hfd_err *err, const char *path)
{
    return errno == EEXIST
               ? hfd_fail(err, HFD_CONFLICT, "key ring %s: there is a file already", path)
               : fail_errno(err, "make", path);
}

/* The name of a rotation that is under way. One that was killed leaves it: see sweep. */
static bool temp_name(const char *path, char temp[PATH_MAX])
{
    return snprintf(temp, PATH_MAX, "%s.new", path) < PATH_MAX;
}

/*
 * Writes a synced file beside `like`. The caller holds the lock of `like`. So an older file of
 * this name is of a rotation that was killed. temp gets the name, or "" on failure.
 */
static hfd_rc write_temp(const struct file *like, hfd_slice text, char temp[PATH_MAX],
                         struct hfd_err *err)
{
    hfd_rc rc;
    int fd;

    if (!temp_name(like->path, temp)) {
        temp[0] = '\0';
        return hfd_fail(err, HFD_INVALID, "key ring: the path is too long");
    }
    (void)unlink(temp);
    fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        temp[0] = '\0';
        return fail_errno(err, "make a file beside it", like->path);
    }
    rc = fill_file(like, fd, text, err);
    close_fd(&fd);
    if (rc != HFD_OK) {
        (void)unlink(temp);
        temp[0] = '\0';
    }
    return rc;
}

/* The same on a file system that has no files without a name. */
static hfd_rc write_new_named(const struct file *like, hfd_slice text, struct hfd_err *err)
{
    char temp[PATH_MAX];
    hfd_rc rc = write_temp(like, text, temp, err);

    if (rc != HFD_OK)
        return rc;
    /* link, unlike rename, never replaces. */
    if (link(temp, like->path) != 0)
        rc = fail_link(err, like->path);
    (void)unlink(temp);
    return rc == HFD_OK ? sync_folder(like->path, err) : rc;
}

/* Writes a file without a name, and then gives it its name, but never that of another file. */
static hfd_rc write_new(const struct file *like, hfd_slice text, struct hfd_err *err)
{
    const char *path = like->path, *slash = strrchr(path, '/');
    char folder[PATH_MAX], unnamed[64];
    hfd_rc rc;
    int fd;

    if (snprintf(folder, sizeof(folder), "%.*s/", (int)(slash != NULL ? slash - path : 1),
                 slash != NULL ? path : ".") >= (int)sizeof(folder) ||
        strlen(path) >= PATH_MAX)
        return hfd_fail(err, HFD_INVALID, "key ring: the path is too long");
    fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR))
        return write_new_named(like, text, err);
    if (fd < 0)
        return fail_errno(err, "make a file beside it", path);
    rc = fill_file(like, fd, text, err);
    (void)snprintf(unnamed, sizeof(unnamed), "/proc/self/fd/%d", fd);
    if (rc == HFD_OK && linkat(AT_FDCWD, unnamed, AT_FDCWD, path, AT_SYMLINK_FOLLOW) != 0)
        rc = fail_link(err, path);
    close_fd(&fd);
    return rc == HFD_OK ? sync_folder(path, err) : rc;
}

/* Removes what a rotation that was killed left, unless one is under way now. */
static void sweep(const struct file *f)
{
    char temp[PATH_MAX];

    if (temp_name(f->path, temp) && access(temp, F_OK) == 0 && flock(f->fd, LOCK_EX | LOCK_NB) == 0)
        (void)unlink(temp);
}

/* ---- the three commands ---- */

hfd_rc hfd_keyring_load(const char *path, struct hfd_keyring **out, struct hfd_err *err)
{
    struct file f = {.path = path, .fd = -1};
    struct hfd_key_list keys;
    struct text text;
    hfd_rc rc;

    *out = NULL;
    rc = text_init(&text, err);
    if (rc != HFD_OK)
        return rc;
    rc = open_file(&f, err);
    if (rc == HFD_OK)
        rc = read_file(&f, &text, err);
    if (rc == HFD_OK)
        sweep(&f);
    close_fd(&f.fd);
    if (rc == HFD_OK)
        rc = parse_file(path, text_slice(&text), &keys, err);
    hfd_secret_fini(&text.mem);
    if (rc != HFD_OK)
        return rc;
    rc = hfd_keyring_new(&keys, out, err);
    hfd_secret_fini(&keys.masters);
    return rc;
}

hfd_rc hfd_keyring_create(const char *path, const struct hfd_rng *rng, struct hfd_err *err)
{
    struct file like = {
        .path = path, .fd = -1, .st = {.st_mode = S_IRUSR | S_IWUSR, .st_uid = geteuid()}};
    struct stat folder;
    const struct hfd_key_list none = {.count = 0};
    char id[ID_CHARS + 1];
    struct text text;
    hfd_rc rc;

    if (geteuid() == 0 && stat_folder(path, &folder)) {
        like.st.st_uid = folder.st_uid; /* the server that will use it runs as this user */
        like.st.st_gid = folder.st_gid;
    }
    rc = text_init(&text, err);
    if (rc != HFD_OK)
        return rc;
    text_add(&text, HFD_SLICE(file_head));
    rc = text_add_key(&text, rng, &none, id, err);
    if (rc == HFD_OK)
        rc = write_new(&like, text_slice(&text), err);
    hfd_secret_fini(&text.mem);
    return rc;
}

/*
 * Opens the file and holds its lock. Starts again if the file was replaced while it waited for the
 * lock.
 */
static hfd_rc open_locked(struct file *f, struct hfd_err *err)
{
    struct stat now;
    hfd_rc rc;

    for (;;) {
        rc = open_file(f, err);
        if (rc != HFD_OK)
            return rc;
        while (rc == HFD_OK && flock(f->fd, LOCK_EX) != 0)
            if (errno != EINTR)
                rc = fail_errno(err, "lock", f->path);
        if (rc == HFD_OK && lstat(f->path, &now) != 0)
            rc = fail_errno(err, "stat", f->path);
        if (rc == HFD_OK && now.st_ino == f->st.st_ino && now.st_dev == f->st.st_dev)
            return HFD_OK;
        close_fd(&f->fd);
        if (rc != HFD_OK)
            return rc;
    }
}

/* The old text with every key retired, comments kept. */
static void retire_all(hfd_slice old, struct text *t)
{
    while (old.len > 0) {
        hfd_slice line = next_line(&old);

        if (is_key_line(line)) {
            text_add(t, (hfd_slice){line.p, PREFIX_CHARS});
            text_add(t, HFD_SLICE("retired"));
        } else {
            text_add(t, line);
        }
        text_add(t, HFD_SLICE("\n"));
    }
}

/* Builds the text of the file with a new active key. */
static hfd_rc rotated_text(const struct file *f, const struct hfd_rng *rng, struct text *t,
                           char id_out[9], struct hfd_err *err)
{
    struct hfd_key_list keys = {.count = 0};
    struct text old;
    hfd_rc rc;

    rc = text_init(&old, err);
    if (rc != HFD_OK)
        return rc;
    rc = read_file(f, &old, err);
    if (rc == HFD_OK)
        rc = parse_file(f->path, text_slice(&old), &keys, err);
    if (rc != HFD_OK)
        goto out;
    retire_all(text_slice(&old), t);
    rc = text_add_key(t, rng, &keys, id_out, err);
    if (rc == HFD_OK && (keys.count == HFD_KEYS_MAX || t->full))
        rc = hfd_fail(
            err, HFD_LIMIT,
            "key ring %s: full (%d keys, %d bytes); remove retired keys that nothing uses any more",
            f->path, HFD_KEYS_MAX, HFD_KEY_FILE_MAX_BYTES);
out:
    hfd_secret_fini(&keys.masters);
    hfd_secret_fini(&old.mem);
    return rc;
}

hfd_rc hfd_keyring_rotate(const char *path, const struct hfd_rng *rng, char id_out[9],
                          struct hfd_err *err)
{
    struct file f = {.path = path, .fd = -1};
    char temp[PATH_MAX] = "";
    char id[ID_CHARS + 1];
    struct text text;
    hfd_rc rc;

    id_out[0] = '\0';
    rc = text_init(&text, err);
    if (rc != HFD_OK)
        return rc;
    rc = open_locked(&f, err);
    if (rc == HFD_OK)
        rc = rotated_text(&f, rng, &text, id, err);
    if (rc == HFD_OK)
        rc = write_temp(&f, text_slice(&text), temp, err);
    if (rc != HFD_OK)
        goto out;
    if (rename(temp, path) != 0) {
        rc = fail_errno(err, "replace", path);
        (void)unlink(temp);
        goto out;
    }
    memcpy(id_out, id, sizeof(id));
    rc = sync_folder(path, err);
out:
    close_fd(&f.fd); /* gives the lock back */
    hfd_secret_fini(&text.mem);
    return rc;
}
