/*
 * The folder of a SQLite store: made if absent, refused on network file systems, held by one
 * process at a time through a lock file. The lock is flock(2)'s: it goes away with the process,
 * however that ends, and the file stays. Thread: start-up and shut-down.
 *
 * Looks through SQLite's write-ahead log before SQLite does. SQLite ends silently at the first
 * frame that is not whole, as after a power cut. Commits that stand behind it were answered, so
 * they are damage. Pure but for hfd_wal_check. Source: "Database File Format", section 4 (the
 * Write-Ahead Log).
 * Thread: start-up.
 */
#ifndef HFD_STORE_SQLITE_FOLDER_H
#define HFD_STORE_SQLITE_FOLDER_H

#include "driver/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/** Returns the process that holds the folder of a path, or held it last; 0 if it cannot be read. */
int64_t hfd_folder_holder(const char *dir);

/** Puts the folder's entries on disk: files that were made or removed stay so after a power cut. */
HFD_MUST_CHECK hfd_rc hfd_folder_sync(struct hfd_folder *f, struct hfd_err *err);

/** Releases the lock. Accepts a closed folder. */
void hfd_folder_close(struct hfd_folder *f);

#define HFD_WAL_HEADER_BYTES 32u
#define HFD_WAL_FRAME_HEADER_BYTES 24u

/** A walk through a log. */
struct hfd_wal_scan {
    size_t page_bytes; /* of a frame, without its header */
    bool header_whole; /* or mended: it is that of the frames but for its damage */
    bool big_endian;   /* how words are read for checksums */
    unsigned char header[HFD_WAL_HEADER_BYTES];
    bool broken; /* a frame was not whole */
    uint32_t salts[2], sums[2];
    int64_t frames; /* so far */
    int64_t broken_at;
    int64_t commits_behind; /* commit frames of this log, from the broken frame on */
};

enum hfd_wal_verdict {
    HFD_WAL_WHOLE, /* what SQLite will read is all that there is */
    HFD_WAL_VOID,  /* the header is of no log that is needed: SQLite reads nothing */
    HFD_WAL_TORN,  /* one commit stands behind a broken frame: a power cut may do that */
    HFD_WAL_DAMAGED
};

/**
 * Begins with the header.
 * @param page_bytes  of the database: for a header that is damaged
 */
void hfd_wal_scan_begin(struct hfd_wal_scan *s, const unsigned char header[HFD_WAL_HEADER_BYTES],
                        size_t page_bytes);
/** Takes the next frame: its header, and s->page_bytes behind it. */
void hfd_wal_scan_frame(struct hfd_wal_scan *s, const unsigned char *frame);
enum hfd_wal_verdict hfd_wal_scan_verdict(const struct hfd_wal_scan *s);

/**
 * Scans the log in a folder. A log that is absent or empty is whole.
 * @param dir_fd  borrowed
 * @return HFD_OK, HFD_IO, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_wal_check(int dir_fd, struct hfd_wal_scan *out,
                                    enum hfd_wal_verdict *verdict, struct hfd_err *err);

#endif
