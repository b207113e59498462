/*
 * The folder of a SQLite store: made if absent, refused on network file systems, held by one
 * process at a time through a lock file. The lock is flock(2)'s: it goes away with the process,
 * however that ends, and the file stays. Thread: start-up and shut-down.
 */
#ifndef HFD_STORE_SQLITE_FOLDER_H
#define HFD_STORE_SQLITE_FOLDER_H

#include "driver/base/err.h"

#include <stdbool.h>

#define HFD_FOLDER_DB_NAME "store.db"
#define HFD_FOLDER_LOCK_NAME "lock"
#define HFD_FOLDER_BACKUP_NAME "backup.tmp" /* a copy that is being made */

struct hfd_folder {
    int dir_fd;  /* -1 = closed */
    int lock_fd; /* -1 = not held */
};

enum hfd_folder_fs {
    HFD_FOLDER_FS_LOCAL,
    HFD_FOLDER_FS_UNSURE,
    HFD_FOLDER_FS_NETWORK
};

/** Judges locks and shared memory on a file system by its magic number (statfs(2)). */
enum hfd_folder_fs hfd_folder_fs_kind(unsigned long magic);

/**
 * Makes `dir` (mode 0700) if absent, but not its parents, and takes the lock. Makes an empty
 * database file (mode 0600) if absent, so that SQLite's own files inherit the mode. Removes the
 * copy of a backup that a kill cut short.
 * @param f  gives on HFD_OK; close with hfd_folder_close
 * @return HFD_OK, HFD_CONFLICT (another process holds it; the message has its pid), HFD_IO
 */
HFD_MUST_CHECK hfd_rc hfd_folder_open(const char *dir, struct hfd_folder *f, struct hfd_err *err);

/** Puts the folder's entries on disk: files that were made or removed stay so after a power cut. */
HFD_MUST_CHECK hfd_rc hfd_folder_sync(struct hfd_folder *f, struct hfd_err *err);

/** Releases the lock. Accepts a closed folder. */
void hfd_folder_close(struct hfd_folder *f);

#endif
