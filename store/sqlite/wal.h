/*
 * Looks through SQLite's write-ahead log before SQLite does. SQLite ends silently at the first
 * frame that is not whole, as after a power cut. Commits that stand behind it were answered, so
 * they are damage. Pure but for hfd_wal_check. Source: "Database File Format", section 4 (the
 * Write-Ahead Log).
 * Thread: start-up.
 */
#ifndef HFD_STORE_SQLITE_WAL_H
#define HFD_STORE_SQLITE_WAL_H

#include "driver/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
