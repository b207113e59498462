/*
 * See keyring_file.h. Bytes of the file pass through guarded memory only, and are wiped. Refuses
 * links, all but regular files, files that other users may read, and files of other users.
 */
#include "driver/core/keyring_file.h"

#include "driver/base/file.h"
#include "driver/core/keyring.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Puts the name of the file behind the words "key ring". */
static hfd_rc fail_named(struct hfd_err *err, const char *path, const struct hfd_err *why)
{
    return hfd_fail(err, why->rc, "key ring %.100s%s", path, why->msg + strcspn(why->msg, ",:"));
}

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

/* Opens and checks the file: kind, owner, mode. */
static hfd_rc open_file(struct file *f, struct hfd_err *err)
{
    const char *path = f->path;
    hfd_rc rc;

    memset(&f->st, 0, sizeof(f->st));
    rc = hfd_file_open_own(path, "key ring", O_RDONLY, &f->fd, err);
    if (rc != HFD_OK)
        return rc;
    if (fstat(f->fd, &f->st) != 0)
        rc = fail_errno(err, "stat", path);
    else if ((f->st.st_mode & (S_IRWXG | S_IRWXO)) != 0)
        rc = hfd_fail(err, HFD_INVALID,
                      "key ring %s: mode %04o lets others in, expected 0600 or 0400", path,
                      (unsigned)(f->st.st_mode & 07777));
    if (rc != HFD_OK)
        close_fd(&f->fd);
    return rc;
}

static hfd_rc read_file(const struct file *f, struct hfd_key_text *t, struct hfd_err *err)
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

/* A name is on disk when its folder is. */
static hfd_rc sync_folder(const char *path, struct hfd_err *err)
{
    return hfd_file_sync_parent(path) == 0 ? HFD_OK : fail_errno(err, "fsync of its folder", path);
}

/* Gives a new file the mode of `like`, its owner, and the text. Synced. */
static hfd_rc fill_file(const struct file *like, int fd, hfd_slice text, struct hfd_err *err)
{
    if (fchmod(fd, like->st.st_mode & S_IRWXU) != 0)
        return fail_errno(err, "set its mode", like->path);
    if (!hfd_file_keep_owner(fd, like->path))
        return fail_errno(err, "keep its owner", like->path);
    return hfd_file_write(fd, text) == 0 ? HFD_OK : fail_errno(err, "write", like->path);
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
    fd = hfd_file_make(temp);
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
    struct hfd_err why = {0};
    struct hfd_key_list keys;
    struct hfd_key_text text;
    hfd_rc rc;

    *out = NULL;
    rc = hfd_key_text_init(&text, err);
    if (rc != HFD_OK)
        return rc;
    rc = open_file(&f, err);
    if (rc == HFD_OK)
        rc = read_file(&f, &text, err);
    if (rc == HFD_OK)
        sweep(&f);
    close_fd(&f.fd);
    if (rc == HFD_OK && hfd_key_list_parse(hfd_key_text_slice(&text), &keys, &why) != HFD_OK)
        rc = fail_named(err, path, &why);
    hfd_key_text_fini(&text);
    if (rc != HFD_OK)
        return rc;
    rc = hfd_keyring_new(&keys, out, err);
    hfd_secret_fini(&keys.masters);
    return rc;
}

hfd_rc hfd_keyring_create(const char *path, const struct hfd_rng *rng, struct hfd_err *err)
{
    struct file like = {.path = path, .fd = -1, .st = {.st_mode = S_IRUSR | S_IWUSR}};
    char id[HFD_KEY_ID_CHARS + 1];
    struct hfd_key_text text;
    hfd_rc rc;

    rc = hfd_key_text_init(&text, err);
    if (rc != HFD_OK)
        return rc;
    rc = hfd_key_text_first(&text, rng, id, err);
    if (rc == HFD_OK)
        rc = write_new(&like, hfd_key_text_slice(&text), err);
    hfd_key_text_fini(&text);
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

/* Builds the changed text of the file. */
static hfd_rc changed_text(const struct file *f, struct hfd_key_edit *edit, struct hfd_key_text *t,
                           struct hfd_err *err)
{
    struct hfd_err why = {0};
    struct hfd_key_text old;
    hfd_rc rc = hfd_key_text_init(&old, err);

    if (rc != HFD_OK)
        return rc;
    rc = read_file(f, &old, err);
    if (rc == HFD_OK) {
        edit->old = hfd_key_text_slice(&old);
        rc = hfd_key_text_change(t, edit, &why);
        if (rc != HFD_OK)
            rc = fail_named(err, f->path, &why);
    }
    hfd_key_text_fini(&old);
    return rc;
}

hfd_rc hfd_keyring_change(const char *path, enum hfd_key_change change, const struct hfd_rng *rng,
                          char id[HFD_KEY_ID_CHARS + 1], struct hfd_err *err)
{
    struct hfd_key_edit edit = {.change = change, .rng = rng};
    struct file f = {.path = path, .fd = -1};
    char temp[PATH_MAX] = "";
    struct hfd_key_text text;
    hfd_rc rc = hfd_key_text_init(&text, err);

    if (rc != HFD_OK)
        return rc;
    if (change == HFD_KEY_ACTIVATE)
        (void)snprintf(edit.id, sizeof(edit.id), "%s", id);
    else
        id[0] = '\0';
    rc = open_locked(&f, err);
    if (rc == HFD_OK)
        rc = changed_text(&f, &edit, &text, err);
    if (rc == HFD_OK)
        rc = write_temp(&f, hfd_key_text_slice(&text), temp, err);
    if (rc != HFD_OK)
        goto out;
    if (rename(temp, path) != 0) {
        rc = fail_errno(err, "replace", path);
        (void)unlink(temp);
        goto out;
    }
    rc = sync_folder(path, err);
    if (rc == HFD_OK)
        memcpy(id, edit.id, sizeof(edit.id));
out:
    close_fd(&f.fd); /* gives the lock back */
    hfd_key_text_fini(&text);
    return rc;
}
