/* See wal.h. */
#include "store/sqlite/wal.h"

#include "store/sqlite/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAGIC 0x377f0682u /* the lowest bit: words of checksums are big-endian */
#define VERSION 3007000u
#define SUMMED_BYTES 24u /* of the header */
#define PAGE_MIN 512u
#define PAGE_MAX 65536u
#define DB_PAGE_SIZE_AT 16 /* in the database's header: two bytes, 1 means 65536 */

static uint32_t word_at(const unsigned char *p, bool big_endian)
{
    return big_endian ? (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]
                      : (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

/* Goes on with a checksum. len is a multiple of 8. */
static void add_sums(const struct hfd_wal_scan *s, uint32_t sums[2], const unsigned char *p,
                     size_t len)
{
    for (size_t i = 0; i < len; i += 8) {
        sums[0] += word_at(p + i, s->big_endian) + sums[1];
        sums[1] += word_at(p + i + 4, s->big_endian) + sums[0];
    }
}

static bool are_sums(const uint32_t sums[2], const unsigned char *stored)
{
    return sums[0] == word_at(stored, true) && sums[1] == word_at(stored + 4, true);
}

static bool is_page_size(size_t n)
{
    return n >= PAGE_MIN && n <= PAGE_MAX && (n & (n - 1)) == 0;
}

void hfd_wal_scan_begin(struct hfd_wal_scan *s, const unsigned char header[HFD_WAL_HEADER_BYTES],
                        size_t page_bytes)
{
    const uint32_t magic = word_at(header, true);

    *s = (struct hfd_wal_scan){.page_bytes = page_bytes, .big_endian = (magic & 1) != 0};
    memcpy(s->header, header, HFD_WAL_HEADER_BYTES);
    add_sums(s, s->sums, header, SUMMED_BYTES);
    s->header_whole = (magic & ~1u) == MAGIC && are_sums(s->sums, header + SUMMED_BYTES) &&
                      is_page_size(word_at(header + 8, true));
    s->broken = !s->header_whole;
    if (!s->header_whole)
        return;
    s->page_bytes = word_at(header + 8, true);
    s->salts[0] = word_at(header + 16, true);
    s->salts[1] = word_at(header + 20, true);
}

/* Goes on with the checksums of a frame, and compares. */
static bool is_whole_frame(struct hfd_wal_scan *s, const unsigned char *frame)
{
    add_sums(s, s->sums, frame, 8);
    add_sums(s, s->sums, frame + HFD_WAL_FRAME_HEADER_BYTES, s->page_bytes);
    return word_at(frame, true) != 0 && are_sums(s->sums, frame + 16);
}

static void put_word(unsigned char *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (unsigned char)(v >> (24 - 8 * i));
}

/* Returns true if the first frame follows a header with this number. */
static bool follows(struct hfd_wal_scan *s, const unsigned char *frame, uint32_t number)
{
    unsigned char header[SUMMED_BYTES];

    put_word(header, MAGIC | (s->big_endian ? 1u : 0u));
    put_word(header + 4, VERSION);
    put_word(header + 8, (uint32_t)s->page_bytes);
    put_word(header + 12, number);
    memcpy(header + 16, frame + 8, 8);
    s->sums[0] = s->sums[1] = 0;
    add_sums(s, s->sums, header, sizeof(header));
    return is_whole_frame(s, frame);
}

/*
 * Returns true if the header was that of the frames before it was damaged. All of it is known but
 * the number of the log, of which one bit may be wrong. SQLite begins a log anew by a header with
 * the next number. One that was written in part means that the frames are not needed.
 */
static bool mend_header(struct hfd_wal_scan *s, const unsigned char *frame)
{
    const uint32_t number = word_at(s->header + 12, true);

    for (int order = 0; order < 2; order++) {
        s->big_endian = order == 1;
        if (follows(s, frame, number))
            return true;
        for (int bit = 0; bit < 32; bit++)
            if ((number ^ 1u << bit) + 1 != number && follows(s, frame, number ^ 1u << bit))
                return true;
    }
    return false;
}

void hfd_wal_scan_frame(struct hfd_wal_scan *s, const unsigned char *frame)
{
    const uint32_t salts[2] = {word_at(frame + 8, true), word_at(frame + 12, true)};
    const bool commits = word_at(frame + 4, true) != 0;

    if (!s->header_whole && s->frames == 0 && mend_header(s, frame)) {
        memcpy(s->salts, salts, sizeof(salts));
        s->header_whole = true;
    } else if (!s->broken) {
        s->broken = memcmp(salts, s->salts, sizeof(salts)) != 0 || !is_whole_frame(s, frame);
        s->broken_at = s->frames;
    }
    s->frames++;
    /* Salts change when SQLite begins the log anew: older frames behind the end have others. */
    if (s->broken && s->header_whole && commits && memcmp(salts, s->salts, sizeof(salts)) == 0)
        s->commits_behind++;
}

/*
 * Each commit is synced before the next one is written. So a power cut can tear only the last one,
 * and may leave its commit frame behind a frame that is lost.
 */
enum hfd_wal_verdict hfd_wal_scan_verdict(const struct hfd_wal_scan *s)
{
    if (!s->header_whole)
        return HFD_WAL_VOID;
    if (s->commits_behind == 0)
        return HFD_WAL_WHOLE;
    return s->commits_behind == 1 ? HFD_WAL_TORN : HFD_WAL_DAMAGED;
}

/* ---- the file ---- */

static hfd_rc fail_read(struct hfd_err *err)
{
    return hfd_fail(err, HFD_IO, "store: cannot read the write-ahead log (errno %d)", errno);
}

/* Reads `len` bytes, or fewer at the end of the file. @return bytes, -1 = failed */
static ssize_t read_at(int fd, unsigned char *to, size_t len, off_t at)
{
    size_t have = 0;

    while (have < len) {
        const ssize_t n = pread(fd, to + have, len - have, at + (off_t)have);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        have += (size_t)n;
    }
    return (ssize_t)have;
}

/* The page size of the database; 4096 when it cannot be read. */
static size_t db_page_bytes(int dir_fd)
{
    const int fd = openat(dir_fd, HFD_FOLDER_DB_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    unsigned char size[2] = {0, 0};
    size_t n = 0;

    if (fd >= 0) {
        if (read_at(fd, size, sizeof(size), DB_PAGE_SIZE_AT) == (ssize_t)sizeof(size))
            n = (size_t)size[0] << 8 | size[1];
        (void)close(fd);
    }
    if (n == 1)
        n = PAGE_MAX;
    return is_page_size(n) ? n : 4096;
}

static hfd_rc scan_frames(int fd, struct hfd_wal_scan *s, struct hfd_err *err)
{
    const size_t frame_bytes = HFD_WAL_FRAME_HEADER_BYTES + s->page_bytes;
    unsigned char *frame = malloc(frame_bytes);
    off_t at = HFD_WAL_HEADER_BYTES;
    ssize_t n = -1;

    if (frame == NULL)
        return hfd_fail_nomem(err, "look through the write-ahead log");
    while ((n = read_at(fd, frame, frame_bytes, at)) == (ssize_t)frame_bytes) {
        hfd_wal_scan_frame(s, frame);
        at += (off_t)frame_bytes;
    }
    free(frame);
    return n < 0 ? fail_read(err) : HFD_OK;
}

hfd_rc hfd_wal_check(int dir_fd, struct hfd_wal_scan *out, enum hfd_wal_verdict *verdict,
                     struct hfd_err *err)
{
    const int fd = openat(dir_fd, HFD_FOLDER_DB_NAME "-wal", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    unsigned char header[HFD_WAL_HEADER_BYTES];
    ssize_t n;
    hfd_rc rc = HFD_OK;

    *out = (struct hfd_wal_scan){.header_whole = true};
    *verdict = HFD_WAL_WHOLE;
    if (fd < 0)
        return errno == ENOENT ? HFD_OK : fail_read(err);
    n = read_at(fd, header, sizeof(header), 0);
    if (n < 0)
        rc = fail_read(err);
    if (n == (ssize_t)sizeof(header)) {
        hfd_wal_scan_begin(out, header, db_page_bytes(dir_fd));
        rc = scan_frames(fd, out, err);
    }
    if (rc == HFD_OK)
        *verdict = hfd_wal_scan_verdict(out);
    (void)close(fd);
    return rc;
}
