#include "tests/lib/crashdisk.h"

#include "tests/lib/passvfs.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define SECTOR 512u
#define DISKS_MAX 2
#define INODES_MAX 32
#define HISTORY_MAX 16
#define NOWHERE (-1)

/* A change to a file that is not synced: a write, or a truncation (bytes == NULL) to `at`. */
struct change {
    uint64_t moment; /* among all changes of the disk */
    size_t at, len;
    unsigned char *bytes;
};

struct inode {
    unsigned char *synced;
    size_t synced_len;
    struct change *changes;
    size_t count, room;
};

/* A name in the folder: what it stood for when the folder was synced, and everything since. */
struct name {
    char text[32];
    int history[HISTORY_MAX];
    size_t count;
};

struct crashdisk {
    char path[200];
    char parent[200];
    crashdisk_hook *hook;
    void *ctx;
    unsigned points;
    uint64_t moment;
    bool folder_synced; /* its name in its parent */
    struct inode inodes[INODES_MAX];
    int inode_count;
    struct name names[CRASHDISK_NAMES_MAX];
    size_t name_count;
};

static struct {
    pthread_mutex_t lock;
    sqlite3_vfs *real;
    struct crashdisk *disks[DISKS_MAX];
    bool lie;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

static sqlite3_io_methods methods;

struct file {
    struct passvfs_file pass;
    struct crashdisk *disk; /* NULL: not remembered */
    int inode;
    bool syncs_folder; /* SQLite's VFS syncs the folder with the first sync of a log or journal that
                          it made */
};

/* ---- what is kept ---- */

static void *grown(void *old, size_t size)
{
    void *p = realloc(old, size);

    assert_non_null(p);
    return p;
}

static int inode_new(struct crashdisk *d)
{
    assert_true(d->inode_count < INODES_MAX);
    d->inodes[d->inode_count] = (struct inode){.synced = NULL};
    return d->inode_count++;
}

static struct name *name_of(struct crashdisk *d, const char *text)
{
    struct name *n;

    for (size_t i = 0; i < d->name_count; i++)
        if (strcmp(d->names[i].text, text) == 0)
            return &d->names[i];
    assert_true(d->name_count < CRASHDISK_NAMES_MAX);
    n = &d->names[d->name_count++];
    (void)snprintf(n->text, sizeof(n->text), "%s", text);
    n->history[0] = NOWHERE;
    n->count = 1;
    return n;
}

static int name_now(const struct name *n)
{
    return n->history[n->count - 1];
}

static void name_set(struct name *n, int inode)
{
    assert_true(n->count < HISTORY_MAX);
    n->history[n->count++] = inode;
}

static void names_synced(struct crashdisk *d)
{
    if (all.lie)
        return;
    for (size_t i = 0; i < d->name_count; i++) {
        d->names[i].history[0] = name_now(&d->names[i]);
        d->names[i].count = 1;
    }
}

static void note(struct crashdisk *d, int inode, const void *bytes, size_t at, size_t len)
{
    struct inode *i = &d->inodes[inode];
    struct change c = {.moment = ++d->moment, .at = at, .len = len};

    if (bytes != NULL) {
        c.bytes = grown(NULL, len + 1);
        memcpy(c.bytes, bytes, len);
    }
    if (i->count == i->room) {
        i->room = i->room * 2 + 16;
        i->changes = grown(i->changes, i->room * sizeof(*i->changes));
    }
    i->changes[i->count++] = c;
}

static void forget_changes(struct inode *i)
{
    for (size_t c = 0; c < i->count; c++)
        free(i->changes[c].bytes);
    i->count = 0;
}

/* The length of a file of `len` bytes after a change, if the disk made it at once. */
static size_t length_after(const struct change *c, size_t len)
{
    if (c->bytes == NULL)
        return c->at;
    return c->at + c->len > len ? c->at + c->len : len;
}

static void set_length(struct inode *i, size_t len)
{
    if (len > i->synced_len) {
        i->synced = grown(i->synced, len);
        memset(i->synced + i->synced_len, 0, len - i->synced_len);
    }
    i->synced_len = len;
}

static void inode_synced(struct inode *i)
{
    if (all.lie)
        return;
    for (size_t n = 0; n < i->count; n++) {
        const struct change *c = &i->changes[n];

        set_length(i, length_after(c, i->synced_len));
        if (c->bytes != NULL)
            memcpy(i->synced + c->at, c->bytes, c->len);
    }
    forget_changes(i);
}

static void at_point(struct crashdisk *d)
{
    d->points++;
    if (d->hook != NULL)
        d->hook(d->ctx, d, d->points);
}

/* ---- images ---- */

enum mood {
    NOTHING_SURVIVES,
    ALL_SURVIVES,
    IN_ORDER,
    CHAOS,
    MOODS
};

struct cut {
    enum mood mood;
    uint64_t moment; /* IN_ORDER: the last one that survives */
    struct test_rng *rng;
};

/* How many of a file's changes survive: of one sector, or of its length. */
static size_t survivors(const struct cut *cut, const struct inode *i)
{
    size_t n = 0;

    switch (cut->mood) {
    case NOTHING_SURVIVES:
        return 0;
    case IN_ORDER:
        while (n < i->count && i->changes[n].moment <= cut->moment)
            n++;
        return n;
    case CHAOS:
        return (size_t)test_rng_below(cut->rng, i->count + 1);
    case ALL_SURVIVES:
    case MOODS:
        break;
    }
    return i->count;
}

/* The piece of a change that falls into one sector, done to the image. */
static void redo(const struct change *c, unsigned char *out, size_t from, size_t to)
{
    if (c->bytes == NULL) {
        size_t at = c->at > from ? c->at : from;

        if (at < to)
            memset(out + at, 0, to - at);
        return;
    }
    if (c->at > from)
        from = c->at;
    if (c->at + c->len < to)
        to = c->at + c->len;
    if (from < to)
        memcpy(out + from, c->bytes + (from - c->at), to - from);
}

static void image_of(const struct inode *i, const struct cut *cut, unsigned char **out,
                     size_t *out_len)
{
    size_t longest = i->synced_len;
    size_t len = i->synced_len;
    size_t final_len = len;
    size_t keep = survivors(cut, i);
    bool garbage = cut->mood == CHAOS && test_rng_below(cut->rng, 2) == 0;
    unsigned char *bytes;

    for (size_t n = 0; n < i->count; n++) {
        len = length_after(&i->changes[n], len);
        longest = len > longest ? len : longest;
        final_len = n < keep ? len : final_len;
    }
    bytes = grown(NULL, longest + 1);
    memset(bytes, garbage ? 0xa5 : 0, longest + 1);
    if (i->synced_len > 0)
        memcpy(bytes, i->synced, i->synced_len);
    for (size_t from = 0; i->count > 0 && from < longest; from += SECTOR) {
        size_t to = from + SECTOR < longest ? from + SECTOR : longest;
        size_t here = survivors(cut, i);

        /* A shorter length is one fact of the file; only writes survive sector by sector. */
        for (size_t n = 0; n < i->count; n++)
            if (n < (i->changes[n].bytes == NULL ? keep : here))
                redo(&i->changes[n], bytes, from, to);
    }
    *out = bytes;
    *out_len = final_len;
}

void crashdisk_take(struct crashdisk *d, uint64_t seed, struct crashdisk_image *out)
{
    struct test_rng rng;
    struct cut cut = {.rng = &rng};

    test_rng_init(&rng, seed);
    cut.mood = (enum mood)test_rng_below(&rng, MOODS + 2); /* chaos has three shares */
    if (cut.mood >= MOODS)
        cut.mood = CHAOS;
    cut.moment = test_rng_below(&rng, d->moment + 1);
    *out = (struct crashdisk_image){.folder = d->folder_synced || cut.mood == ALL_SURVIVES ||
                                              test_rng_below(&rng, 2) == 0};
    for (size_t n = 0; out->folder && n < d->name_count; n++) {
        const struct name *name = &d->names[n];
        size_t which = name->count - 1;

        if (cut.mood == NOTHING_SURVIVES)
            which = 0;
        else if (cut.mood != ALL_SURVIVES)
            which = (size_t)test_rng_below(&rng, name->count);
        if (name->history[which] == NOWHERE)
            continue;
        (void)snprintf(out->files[out->count].name, sizeof(out->files[0].name), "%s", name->text);
        image_of(&d->inodes[name->history[which]], &cut, &out->files[out->count].bytes,
                 &out->files[out->count].len);
        out->count++;
    }
}

static void write_file(const char *path, const unsigned char *bytes, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    for (size_t at = 0; at < len;) {
        ssize_t n = write(fd, bytes + at, len - at);

        assert_true(n > 0);
        at += (size_t)n;
    }
    (void)close(fd);
}

void crashdisk_image_put(const struct crashdisk_image *image, const char *dir)
{
    char path[300];

    if (!image->folder)
        return;
    assert_int_equal(mkdir(dir, 0700), 0);
    for (size_t i = 0; i < image->count; i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", dir, image->files[i].name);
        write_file(path, image->files[i].bytes, image->files[i].len);
    }
}

void crashdisk_image_fini(struct crashdisk_image *image)
{
    for (size_t i = 0; i < image->count; i++)
        free(image->files[i].bytes);
    *image = (struct crashdisk_image){.folder = false};
}

/* ---- the files ---- */

/*
 * The change is noted before the point, so that an image may have it or not: the power goes while
 * it is made.
 */
static int io_write(sqlite3_file *f, const void *bytes, int len, sqlite3_int64 at)
{
    struct file *file = (struct file *)f;

    if (file->disk != NULL) {
        pthread_mutex_lock(&all.lock);
        note(file->disk, file->inode, bytes, (size_t)at, (size_t)len);
        at_point(file->disk);
        pthread_mutex_unlock(&all.lock);
    }
    return passvfs_methods.xWrite(f, bytes, len, at);
}

static int io_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    struct file *file = (struct file *)f;

    if (file->disk != NULL) {
        pthread_mutex_lock(&all.lock);
        note(file->disk, file->inode, NULL, (size_t)size, 0);
        at_point(file->disk);
        pthread_mutex_unlock(&all.lock);
    }
    return passvfs_methods.xTruncate(f, size);
}

static int io_sync(sqlite3_file *f, int flags)
{
    struct file *file = (struct file *)f;

    (void)flags;
    if (file->disk == NULL)
        return SQLITE_OK;
    pthread_mutex_lock(&all.lock);
    at_point(file->disk);
    inode_synced(&file->disk->inodes[file->inode]);
    if (file->syncs_folder) {
        names_synced(file->disk);
        file->syncs_folder = false;
    }
    pthread_mutex_unlock(&all.lock);
    return SQLITE_OK;
}

/* ---- the VFS ---- */

/* The disk that remembers a file, and its name there. */
static struct crashdisk *disk_of(const char *path, const char **name)
{
    const char *slash = path != NULL ? strrchr(path, '/') : NULL;

    for (size_t i = 0; slash != NULL && i < DISKS_MAX; i++) {
        struct crashdisk *d = all.disks[i];

        if (d != NULL && strlen(d->path) == (size_t)(slash - path) &&
            memcmp(d->path, path, (size_t)(slash - path)) == 0) {
            *name = slash + 1;
            return d;
        }
    }
    return NULL;
}

static int vfs_open(sqlite3_vfs *vfs, sqlite3_filename path, sqlite3_file *f, int flags,
                    int *out_flags)
{
    struct file *file = (struct file *)f;
    bool existed = path != NULL && access(path, F_OK) == 0;
    const char *text;
    int rc;

    (void)vfs;
    *file = (struct file){.pass.real = (sqlite3_file *)(file + 1), .inode = NOWHERE};
    rc = all.real->xOpen(all.real, path, file->pass.real, flags, out_flags);
    if (rc != SQLITE_OK)
        return rc;
    file->pass.base.pMethods = &methods;
    pthread_mutex_lock(&all.lock);
    file->disk = disk_of(path, &text);
    if (file->disk != NULL) {
        struct name *n = name_of(file->disk, text);

        if (name_now(n) == NOWHERE) {
            name_set(n, inode_new(file->disk)); /* made just now, or empty by our own code */
            file->syncs_folder =
                !existed && (flags & (SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL)) != 0;
        }
        file->inode = name_now(n);
    }
    pthread_mutex_unlock(&all.lock);
    return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *path, int sync_folder)
{
    struct crashdisk *d;
    const char *text;

    (void)vfs;
    pthread_mutex_lock(&all.lock);
    d = disk_of(path, &text);
    if (d != NULL && name_now(name_of(d, text)) != NOWHERE) {
        name_set(name_of(d, text), NOWHERE);
        at_point(d);
        if (sync_folder != 0)
            names_synced(d);
    }
    pthread_mutex_unlock(&all.lock);
    return all.real->xDelete(all.real, path, 0);
}

void crashdisk_register(void)
{
    static sqlite3_vfs vfs;

    all.real = passvfs_init(&vfs, CRASHDISK_NAME, (int)sizeof(struct file));
    vfs.xOpen = vfs_open;
    vfs.xDelete = vfs_delete;
    methods = passvfs_methods;
    methods.xWrite = io_write;
    methods.xTruncate = io_truncate;
    methods.xSync = io_sync;
    assert_int_equal(sqlite3_vfs_register(&vfs, 0), SQLITE_OK);
}

void crashdisk_lie(bool lie)
{
    pthread_mutex_lock(&all.lock);
    all.lie = lie;
    pthread_mutex_unlock(&all.lock);
}

static void load_file(struct crashdisk *d, const char *text)
{
    char path[300];
    struct stat st;
    struct inode *i;
    int inode = inode_new(d);
    int fd;

    i = &d->inodes[inode];
    (void)snprintf(path, sizeof(path), "%s/%s", d->path, text);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &st), 0);
    set_length(i, (size_t)st.st_size);
    if (st.st_size > 0)
        assert_int_equal(read(fd, i->synced, (size_t)st.st_size), st.st_size);
    (void)close(fd);
    name_of(d, text)->history[0] = inode;
}

struct crashdisk *crashdisk_new(const char *path, crashdisk_hook *hook, void *ctx)
{
    struct crashdisk *d = calloc(1, sizeof(*d));
    DIR *dir = opendir(path);
    size_t slot = 0;

    assert_non_null(d);
    d->hook = hook;
    d->ctx = ctx;
    d->folder_synced = dir != NULL;
    (void)snprintf(d->path, sizeof(d->path), "%s", path);
    (void)snprintf(d->parent, sizeof(d->parent), "%.*s", (int)(strrchr(path, '/') - path), path);
    if (dir != NULL) {
        for (struct dirent *e = readdir(dir); e != NULL; e = readdir(dir))
            if (strncmp(e->d_name, "store.db", 8) == 0)
                load_file(d, e->d_name);
        (void)closedir(dir);
    }
    pthread_mutex_lock(&all.lock);
    while (slot < DISKS_MAX && all.disks[slot] != NULL)
        slot++;
    if (slot >= DISKS_MAX)
        fail_msg("more than %d disks at the same time", DISKS_MAX);
    else
        all.disks[slot] = d;
    pthread_mutex_unlock(&all.lock);
    return d;
}

void crashdisk_free(struct crashdisk *d)
{
    pthread_mutex_lock(&all.lock);
    for (size_t i = 0; i < DISKS_MAX; i++)
        if (all.disks[i] == d)
            all.disks[i] = NULL;
    pthread_mutex_unlock(&all.lock);
    for (int i = 0; i < d->inode_count; i++) {
        forget_changes(&d->inodes[i]);
        free(d->inodes[i].changes);
        free(d->inodes[i].synced);
    }
    free(d);
}

void crashdisk_point(struct crashdisk *d)
{
    pthread_mutex_lock(&all.lock);
    at_point(d);
    pthread_mutex_unlock(&all.lock);
}

void crashdisk_file_made(const char *path)
{
    struct crashdisk *d;
    const char *text;

    pthread_mutex_lock(&all.lock);
    d = disk_of(path, &text);
    if (d != NULL && name_now(name_of(d, text)) == NOWHERE) {
        name_set(name_of(d, text), inode_new(d));
        at_point(d);
    }
    pthread_mutex_unlock(&all.lock);
}

void crashdisk_file_written(const char *path, const void *bytes, size_t at, size_t len)
{
    struct crashdisk *d;
    const char *text;

    pthread_mutex_lock(&all.lock);
    d = disk_of(path, &text);
    if (d != NULL && name_now(name_of(d, text)) != NOWHERE) {
        note(d, name_now(name_of(d, text)), bytes, at, len);
        at_point(d);
    }
    pthread_mutex_unlock(&all.lock);
}

void crashdisk_file_synced(const char *path)
{
    struct crashdisk *d;
    const char *text;

    pthread_mutex_lock(&all.lock);
    d = disk_of(path, &text);
    if (d != NULL && name_now(name_of(d, text)) != NOWHERE) {
        at_point(d);
        inode_synced(&d->inodes[name_now(name_of(d, text))]);
    }
    pthread_mutex_unlock(&all.lock);
}

void crashdisk_file_linked(const char *from, const char *to, bool moved)
{
    struct crashdisk *d;
    const char *text, *to_text;

    pthread_mutex_lock(&all.lock);
    d = disk_of(from, &text);
    if (d != NULL && disk_of(to, &to_text) == d) {
        name_set(name_of(d, to_text), name_now(name_of(d, text)));
        if (moved)
            name_set(name_of(d, text), NOWHERE);
        at_point(d);
    }
    pthread_mutex_unlock(&all.lock);
}

void crashdisk_file_removed(const char *path)
{
    struct crashdisk *d;
    const char *text;

    pthread_mutex_lock(&all.lock);
    d = disk_of(path, &text);
    if (d != NULL && name_now(name_of(d, text)) != NOWHERE) {
        name_set(name_of(d, text), NOWHERE);
        at_point(d);
    }
    pthread_mutex_unlock(&all.lock);
}

void crashdisk_folder_synced(const char *path)
{
    pthread_mutex_lock(&all.lock);
    for (size_t i = 0; i < DISKS_MAX; i++) {
        struct crashdisk *d = all.disks[i];

        if (d != NULL && strcmp(d->path, path) == 0) {
            at_point(d);
            names_synced(d);
        } else if (d != NULL && strcmp(d->parent, path) == 0) {
            d->folder_synced = d->folder_synced || !all.lie;
        }
    }
    pthread_mutex_unlock(&all.lock);
}
