/* See backup.h. */
#include "store/backup.h"

#include "driver/base/check.h"
#include "driver/base/container.h"
#include "driver/base/file.h"
#include "driver/base/log.h"
#include "store/sqlite/folder.h"
#include "store/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

struct hfd_backup {
    unsigned magic;
#define BACKUP_MAGIC 0xbacc0001u
    struct hfd_store *store;
    char *path;
    bool made; /* the file is there, with its name */
    struct hfd_db *db;
    bool reading; /* db is in its transaction */
    struct hfd_db_copy *copy;
    int fd; /* of the whole copy; -1 before */
    int64_t bytes, read;
    bool ended; /* nothing is open, and the place is free */
    struct hfd_job closing;
    struct hfd_sink closed;
};

hfd_rc hfd_backup_open(struct hfd_store *store, struct hfd_backup **out, struct hfd_err *err)
{
    struct hfd_backup *b;
    size_t cap;

    HFD_CHECK_OBJ(store, STORE_MAGIC);
    *out = NULL;
    if (store->place.url != NULL)
        return hfd_fail(err, HFD_CONFLICT,
                        "a server on PostgreSQL makes no backup: run `hyperfleet-driver backup "
                        "FILE` with its settings, which reads the database itself");
    cap = strlen(store->place.dir) + sizeof("/" HFD_FOLDER_BACKUP_NAME);
    if (atomic_exchange(&store->backing_up, true))
        return hfd_fail(err, HFD_CONFLICT,
                        "another backup is being made: wait for its end, and try again");
    b = calloc(1, sizeof(*b));
    if (b != NULL)
        b->path = malloc(cap);
    if (b == NULL || b->path == NULL) {
        free(b);
        atomic_store(&store->backing_up, false);
        return hfd_fail_nomem(err, "begin a backup");
    }
    (void)snprintf(b->path, cap, "%s/" HFD_FOLDER_BACKUP_NAME, store->place.dir);
    b->magic = BACKUP_MAGIC;
    b->store = store;
    b->fd = -1;
    *out = b;
    return HFD_OK;
}

/* A full disk would break the store, so the backup ends before that. */
static hfd_rc check_room(const struct hfd_backup *b, int64_t more_bytes, struct hfd_err *err)
{
    const int64_t needed = more_bytes + HFD_BACKUP_RESERVE_BYTES, mib = INT64_C(1024) * 1024;
    struct statvfs fs;
    int64_t room;

    if (statvfs(b->store->place.dir, &fs) != 0)
        return hfd_fail(err, HFD_IO, "backup: look at the disk of the data folder: %s",
                        strerror(errno));
    if (__builtin_mul_overflow((int64_t)fs.f_bavail, (int64_t)fs.f_frsize, &room) || room >= needed)
        return HFD_OK;
    return hfd_fail(err, HFD_LIMIT,
                    "the disk of the data folder has %lld MiB free, and a backup needs %lld MiB "
                    "there for a while",
                    (long long)(room / mib), (long long)((needed + mib - 1) / mib));
}

static hfd_rc make_file(struct hfd_backup *b, struct hfd_err *err)
{
    const int fd = hfd_file_make(b->path);

    if (fd < 0)
        return errno == ENOSPC || errno == EDQUOT
                   ? hfd_fail(err, HFD_LIMIT, "the disk of the data folder is full")
                   : hfd_fail(err, HFD_IO, "backup: make %.100s: %s", b->path, strerror(errno));
    (void)close(fd);
    b->made = true;
    return HFD_OK;
}

static void give_up_snapshot(struct hfd_backup *b)
{
    if (b->db != NULL)
        hfd_db_adopt(b->db);
    hfd_db_copy_close(&b->copy);
    if (b->reading)
        hfd_db_rollback(b->db);
    b->reading = false;
    hfd_db_close(&b->db);
}

/*
 * Ends the work. A reader thread does it before the caller has the last answer, so that the next
 * backup can begin at once.
 */
static void end_work(struct hfd_backup *b)
{
    if (b->ended)
        return;
    b->ended = true;
    give_up_snapshot(b);
    if (b->fd >= 0)
        (void)close(b->fd);
    if (b->made)
        (void)unlink(b->path);
    atomic_store(&b->store->backing_up, false);
}

static hfd_rc begin(struct hfd_backup *b, hfd_txn_fn *fn, void *arg, struct hfd_err *err)
{
    struct hfd_txn tx = {.db = NULL};
    hfd_rc rc = hfd_db_open(&b->store->place, HFD_DB_READER, &b->db, err);

    if (rc == HFD_OK)
        rc = hfd_db_begin(b->db, err);
    b->reading = rc == HFD_OK;
    tx.db = b->db;
    if (rc == HFD_OK)
        rc = fn(&tx, arg, err);
    if (rc == HFD_OK)
        rc = hfd_db_bytes(b->db, &b->bytes, err);
    if (rc == HFD_OK)
        rc = check_room(b, b->bytes, err);
    if (rc == HFD_OK)
        rc = make_file(b, err);
    return rc == HFD_OK ? hfd_db_copy_open(b->db, b->path, &b->copy, err) : rc;
}

hfd_rc hfd_backup_begin(struct hfd_backup *b, hfd_txn_fn *fn, void *arg, struct hfd_err *err)
{
    hfd_rc rc;

    HFD_CHECK_OBJ(b, BACKUP_MAGIC);
    HFD_ASSERT(b->db == NULL);
    rc = begin(b, fn, arg, err);
    if (rc != HFD_OK)
        end_work(b);
    return rc;
}

/* The name goes at once: what a kill leaves behind is gone then. */
static hfd_rc open_whole(struct hfd_backup *b, struct hfd_err *err)
{
    struct stat st;

    b->fd = open(b->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (b->fd < 0 || fstat(b->fd, &st) != 0)
        return hfd_fail(err, HFD_IO, "backup: open %.100s: %s", b->path, strerror(errno));
    (void)unlink(b->path);
    b->made = false;
    if (st.st_size != b->bytes)
        return hfd_fail(err, HFD_IO, "backup: the copy has not the size of the database");
    return HFD_OK;
}

static hfd_rc step(struct hfd_backup *b, bool *done, struct hfd_err *err)
{
    hfd_rc rc = check_room(b, 0, err);

    if (rc != HFD_OK)
        return rc;
    hfd_db_adopt(b->db);
    rc = hfd_db_copy_step(b->copy, done, err);
    if (rc != HFD_OK || !*done)
        return rc;
    give_up_snapshot(b);
    return open_whole(b, err);
}

hfd_rc hfd_backup_step(struct hfd_backup *b, bool *done, struct hfd_err *err)
{
    hfd_rc rc;

    HFD_CHECK_OBJ(b, BACKUP_MAGIC);
    *done = false;
    rc = step(b, done, err);
    if (rc != HFD_OK)
        end_work(b);
    return rc;
}

int64_t hfd_backup_bytes(const struct hfd_backup *b)
{
    return b->bytes;
}

hfd_rc hfd_backup_read(struct hfd_backup *b, char *out, size_t cap, size_t *len,
                       struct hfd_err *err)
{
    const int64_t left = b->bytes - b->read;
    const size_t wanted = left < (int64_t)cap ? (size_t)left : cap;
    ssize_t n;

    HFD_CHECK_OBJ(b, BACKUP_MAGIC);
    *len = 0;
    while (*len < wanted) {
        n = pread(b->fd, out + *len, wanted - *len, b->read);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return hfd_fail(err, HFD_IO, "backup: read the copy: %s",
                            n < 0 ? strerror(errno) : "it is cut short");
        *len += (size_t)n;
        b->read += n;
    }
    if (wanted == 0)
        end_work(b);
    return HFD_OK;
}

/* ---- the end ---- */

static void free_backup(struct hfd_backup *b)
{
    end_work(b);
    free(b->path);
    b->magic = 0;
    free(b);
}

static hfd_rc close_job(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    (void)tx;
    (void)arg;
    (void)err;
    return HFD_OK;
}

/* On the reader thread, whether the job ran or not. Nothing waits for it. */
static void on_closed(struct hfd_sink *sink, struct hfd_job *list)
{
    (void)list;
    free_backup(HFD_CONTAINER_OF(sink, struct hfd_backup, closed));
}

void hfd_backup_close(struct hfd_backup **backup)
{
    struct hfd_backup *b = *backup;
    struct hfd_err err;

    *backup = NULL;
    if (b == NULL)
        return;
    HFD_CHECK_OBJ(b, BACKUP_MAGIC);
    b->closed = (struct hfd_sink){on_closed};
    b->closing = (struct hfd_job){.fn = close_job, .sink = &b->closed};
    if (b->ended || hfd_store_view(b->store, &b->closing, &err) != HFD_OK)
        free_backup(b);
}
