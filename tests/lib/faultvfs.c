#include "tests/lib/faultvfs.h"

#include "tests/lib/passvfs.h"
#include "tests/lib/seams.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define SECTOR 512u
#define IMAGES_MAX 8
#define IMAGE_BYTES_MAX (4u << 20)

/*
 * One file of the disk. Its present content is in the real file. Here is what a power cut would
 * leave.
 */
struct image {
    char path[256];
    unsigned char *synced;
    size_t synced_len;
    bool dirty[IMAGE_BYTES_MAX / SECTOR];
    bool entry_unsynced; /* made or removed since the folder was synced */
    bool existed;        /* when the folder was synced */
};

static struct {
    pthread_mutex_t lock;
    sqlite3_vfs *real;
    /* faults */
    unsigned kinds, left, fired;
    bool for_ever;
    int code;
    /* power */
    bool tracking, stopped;
    unsigned stop_after; /* 0 = never by itself */
    struct image images[IMAGES_MAX];
    size_t images_count;
} disk = {.lock = PTHREAD_MUTEX_INITIALIZER};

static sqlite3_io_methods methods;

struct file {
    struct passvfs_file pass;
    struct image *image; /* NULL: not tracked */
    unsigned write_kinds;
};

/* ---- the real files ---- */

static size_t read_real(const char *path, unsigned char **out)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    *out = NULL;
    if (fd < 0)
        return 0;
    assert_int_equal(fstat(fd, &st), 0);
    assert_true(st.st_size <= IMAGE_BYTES_MAX);
    *out = calloc(1, (size_t)st.st_size + 1);
    assert_non_null(*out);
    assert_int_equal(pread(fd, *out, (size_t)st.st_size, 0), st.st_size);
    (void)close(fd);
    return (size_t)st.st_size;
}

static void write_real(const char *path, const unsigned char *bytes, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), (ssize_t)len);
    (void)close(fd);
}

static struct image *find_image(const char *path)
{
    for (size_t i = 0; i < disk.images_count; i++)
        if (strcmp(disk.images[i].path, path) == 0)
            return &disk.images[i];
    return NULL;
}

static struct image *add_image(const char *path, bool existed)
{
    struct image *img = &disk.images[disk.images_count++];

    assert_true(disk.images_count <= IMAGES_MAX);
    (void)snprintf(img->path, sizeof(img->path), "%s", path);
    img->existed = existed;
    img->entry_unsynced = !existed;
    if (existed)
        img->synced_len = read_real(path, &img->synced);
    return img;
}

static void mark(struct image *img, sqlite3_int64 at, int len)
{
    size_t first = (size_t)at / SECTOR;
    size_t last = ((size_t)at + (size_t)len - 1) / SECTOR;

    assert_true(last < IMAGE_BYTES_MAX / SECTOR);
    for (size_t s = first; s <= last; s++)
        img->dirty[s] = true;
}

/* The first sync of a new file syncs its folder too, as the system's VFS does. */
static void image_synced(struct image *img)
{
    bool folder = img->entry_unsynced;

    free(img->synced);
    img->synced_len = read_real(img->path, &img->synced);
    memset(img->dirty, 0, sizeof(img->dirty));
    for (size_t i = 0; folder && i < disk.images_count; i++) {
        disk.images[i].entry_unsynced = false;
        disk.images[i].existed = access(disk.images[i].path, F_OK) == 0;
    }
}

/* ---- the decision at each call ---- */

/*
 * @return SQLITE_OK to go on, or the failure; *torn tells a write that its bytes still reach the
 * disk, as far as they may
 */
static int decide(unsigned kind, int usual_code, bool *torn)
{
    *torn = false;
    if (disk.stopped)
        return usual_code;
    if (disk.tracking && (kind & FAULTVFS_CHANGES) != 0 && disk.stop_after != 0 &&
        --disk.stop_after == 0) {
        disk.stopped = true;
        *torn = true;
        return usual_code;
    }
    if ((disk.kinds & kind) == 0)
        return SQLITE_OK;
    if (disk.left > 1) {
        disk.left--;
        return SQLITE_OK;
    }
    if (!disk.for_ever)
        disk.kinds = 0;
    disk.fired++;
    *torn = true;
    return disk.code != 0 ? disk.code : usual_code;
}

/* As decide, for calls that a stopped disk does not hear of. */
static int decide_aside(unsigned kind, int usual_code)
{
    bool torn;
    int rc = SQLITE_OK;

    pthread_mutex_lock(&disk.lock);
    if ((disk.kinds & kind) != 0 && !disk.stopped)
        rc = decide(kind, usual_code, &torn);
    pthread_mutex_unlock(&disk.lock);
    return rc;
}

static int io_read(sqlite3_file *f, void *out, int len, sqlite3_int64 at)
{
    bool torn;
    int rc;

    pthread_mutex_lock(&disk.lock);
    rc = decide(FAULTVFS_READS, SQLITE_IOERR_READ, &torn);
    pthread_mutex_unlock(&disk.lock);
    return rc != SQLITE_OK ? rc : passvfs_methods.xRead(f, out, len, at);
}

static int io_write(sqlite3_file *f, const void *bytes, int len, sqlite3_int64 at)
{
    struct file *file = (struct file *)f;
    bool torn;
    int rc;
    int done;

    pthread_mutex_lock(&disk.lock);
    rc = decide(file->write_kinds, SQLITE_IOERR_WRITE, &torn);
    if (rc == SQLITE_OK || torn) {
        done = passvfs_methods.xWrite(f, bytes, torn && !disk.stopped ? len / 2 : len, at);
        if (rc == SQLITE_OK)
            rc = done;
        if (file->image != NULL)
            mark(file->image, at, len);
    }
    pthread_mutex_unlock(&disk.lock);
    return rc;
}

static int io_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    bool torn;
    int rc;

    pthread_mutex_lock(&disk.lock);
    rc = decide(FAULTVFS_CHANGES | FAULTVFS_TRUNCATES, SQLITE_IOERR_TRUNCATE, &torn);
    if (rc == SQLITE_OK)
        rc = passvfs_methods.xTruncate(f, size);
    pthread_mutex_unlock(&disk.lock);
    return rc;
}

static int io_sync(sqlite3_file *f, int flags)
{
    struct file *file = (struct file *)f;
    bool torn;
    int rc;

    (void)flags;
    pthread_mutex_lock(&disk.lock);
    rc = decide(FAULTVFS_CHANGES | FAULTVFS_SYNCS, SQLITE_IOERR_FSYNC, &torn);
    if (rc == SQLITE_OK && file->image != NULL)
        image_synced(file->image);
    pthread_mutex_unlock(&disk.lock);
    return rc;
}

static int io_size(sqlite3_file *f, sqlite3_int64 *size)
{
    int rc = decide_aside(FAULTVFS_SIZES, SQLITE_IOERR_FSTAT);

    return rc != SQLITE_OK ? rc : passvfs_methods.xFileSize(f, size);
}

static int io_lock(sqlite3_file *f, int level)
{
    int rc = decide_aside(FAULTVFS_LOCKS, SQLITE_IOERR_LOCK);

    return rc != SQLITE_OK ? rc : passvfs_methods.xLock(f, level);
}

static int io_shm_map(sqlite3_file *f, int page, int size, int extend, void volatile **out)
{
    int rc = decide_aside(FAULTVFS_MAPS, SQLITE_IOERR_SHMMAP);

    return rc != SQLITE_OK ? rc : passvfs_methods.xShmMap(f, page, size, extend, out);
}

static int io_shm_lock(sqlite3_file *f, int at, int n, int flags)
{
    int rc = (flags & SQLITE_SHM_LOCK) != 0 ? decide_aside(FAULTVFS_SHM_LOCKS, SQLITE_IOERR_SHMLOCK)
                                            : SQLITE_OK;

    return rc != SQLITE_OK ? rc : passvfs_methods.xShmLock(f, at, n, flags);
}

/* ---- the VFS ---- */

static int vfs_open(sqlite3_vfs *vfs, sqlite3_filename path, sqlite3_file *f, int flags,
                    int *out_flags)
{
    struct file *file = (struct file *)f;
    bool existed = path != NULL && access(path, F_OK) == 0;
    bool torn;
    int rc;

    (void)vfs;
    *file = (struct file){.pass.real = (sqlite3_file *)(file + 1),
                          .write_kinds = FAULTVFS_CHANGES | FAULTVFS_WRITES};
    if ((flags & SQLITE_OPEN_MAIN_DB) != 0)
        file->write_kinds |= FAULTVFS_COPIES;
    pthread_mutex_lock(&disk.lock);
    rc = decide(FAULTVFS_OPENS, SQLITE_CANTOPEN, &torn);
    if (rc == SQLITE_OK)
        rc = disk.real->xOpen(disk.real, path, file->pass.real, flags, out_flags);
    if (rc == SQLITE_OK) {
        file->pass.base.pMethods = &methods;
        if (disk.tracking && path != NULL &&
            (flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL)) != 0) {
            file->image = find_image(path);
            if (file->image == NULL)
                file->image = add_image(path, existed);
        }
    }
    pthread_mutex_unlock(&disk.lock);
    return rc;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *path, int sync_folder)
{
    struct image *img;
    bool torn;
    int rc;

    (void)vfs;
    pthread_mutex_lock(&disk.lock);
    rc = decide(FAULTVFS_CHANGES | FAULTVFS_DELETES, SQLITE_IOERR_DELETE, &torn);
    if (rc == SQLITE_OK)
        rc = disk.real->xDelete(disk.real, path, 0);
    img = rc == SQLITE_OK ? find_image(path) : NULL;
    if (img != NULL) {
        img->entry_unsynced = sync_folder == 0;
        if (sync_folder != 0)
            img->existed = false;
    }
    pthread_mutex_unlock(&disk.lock);
    return rc;
}

static int vfs_access(sqlite3_vfs *vfs, const char *path, int flags, int *out)
{
    int rc = decide_aside(FAULTVFS_ACCESSES, SQLITE_IOERR_ACCESS);

    (void)vfs;
    return rc != SQLITE_OK ? rc : disk.real->xAccess(disk.real, path, flags, out);
}

void faultvfs_register(void)
{
    static sqlite3_vfs vfs;

    disk.real = passvfs_init(&vfs, FAULTVFS_NAME, (int)sizeof(struct file));
    vfs.xOpen = vfs_open;
    vfs.xDelete = vfs_delete;
    vfs.xAccess = vfs_access;
    methods = passvfs_methods;
    methods.xRead = io_read;
    methods.xWrite = io_write;
    methods.xTruncate = io_truncate;
    methods.xSync = io_sync;
    methods.xFileSize = io_size;
    methods.xLock = io_lock;
    methods.xShmMap = io_shm_map;
    methods.xShmLock = io_shm_lock;
    assert_int_equal(sqlite3_vfs_register(&vfs, 0), SQLITE_OK);
}

void faultvfs_arm(unsigned kinds, unsigned nth, bool for_ever, int sqlite_code)
{
    pthread_mutex_lock(&disk.lock);
    disk.kinds = kinds;
    disk.left = nth;
    disk.for_ever = for_ever;
    disk.code = sqlite_code;
    disk.fired = 0;
    pthread_mutex_unlock(&disk.lock);
}

unsigned faultvfs_fired(void)
{
    unsigned fired;

    pthread_mutex_lock(&disk.lock);
    fired = disk.fired;
    pthread_mutex_unlock(&disk.lock);
    return fired;
}

unsigned faultvfs_disarm(void)
{
    pthread_mutex_lock(&disk.lock);
    disk.kinds = 0;
    pthread_mutex_unlock(&disk.lock);
    return faultvfs_fired();
}

void faultvfs_power_arm(unsigned nth)
{
    pthread_mutex_lock(&disk.lock);
    disk.tracking = true;
    disk.stopped = false;
    disk.stop_after = nth;
    disk.images_count = 0;
    memset(disk.images, 0, sizeof(disk.images));
    pthread_mutex_unlock(&disk.lock);
}

bool faultvfs_power_cut(void)
{
    bool by_itself;

    pthread_mutex_lock(&disk.lock);
    by_itself = disk.stopped;
    disk.stopped = true;
    pthread_mutex_unlock(&disk.lock);
    return by_itself;
}

/* all: as a killed process leaves it, whose system goes on */
static void leave_file(struct image *img, bool all, struct test_rng *rng)
{
    unsigned char *now;
    size_t now_len = read_real(img->path, &now);
    bool there = access(img->path, F_OK) == 0;
    size_t len = test_rng_below(rng, 2) == 0 || all ? now_len : img->synced_len;
    unsigned char *left = calloc(1, len + 1);

    assert_non_null(left);
    if (img->entry_unsynced && test_rng_below(rng, 2) == 0 && !all)
        there = img->existed;
    for (size_t at = 0; at < len; at += SECTOR) {
        bool newer = img->dirty[at / SECTOR] && (test_rng_below(rng, 2) == 0 || all);
        const unsigned char *from = newer ? now : img->synced;
        size_t from_len = newer ? now_len : img->synced_len;
        size_t n = len - at < SECTOR ? len - at : SECTOR;

        if (at < from_len)
            memcpy(left + at, from + at, from_len - at < n ? from_len - at : n);
    }
    (void)unlink(img->path);
    if (there)
        write_real(img->path, left, len);
    free(left);
    free(now);
    free(img->synced);
    img->synced = NULL;
}

void faultvfs_power_back(uint64_t seed)
{
    struct test_rng rng;
    bool all;

    test_rng_init(&rng, seed);
    all = test_rng_below(&rng, 4) == 0;
    pthread_mutex_lock(&disk.lock);
    for (size_t i = 0; i < disk.images_count; i++)
        leave_file(&disk.images[i], all, &rng);
    disk.images_count = 0;
    disk.tracking = false;
    disk.stopped = false;
    disk.stop_after = 0;
    pthread_mutex_unlock(&disk.lock);
}
