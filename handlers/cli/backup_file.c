/* See backup_file.h. */
#include "handlers/cli/backup_file.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE_BYTES ((size_t)65536)

/* Reads exactly len bytes. */
static hfd_rc read_at(int fd, char *out, size_t len, int64_t at, struct hfd_err *err)
{
    size_t done = 0;

    while (done < len) {
        const ssize_t n = pread(fd, out + done, len - done, at + (int64_t)done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return hfd_fail(err, HFD_IO, "it cannot be read: %s",
                            n < 0 ? strerror(errno) : "it became shorter");
        done += (size_t)n;
    }
    return HFD_OK;
}

static hfd_rc write_all(int fd, const char *bytes, size_t len, struct hfd_err *err)
{
    size_t done = 0;

    while (done < len) {
        const ssize_t n = write(fd, bytes + done, len - done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return hfd_fail(err, HFD_IO, "its copy cannot be written: %s", strerror(errno));
        done += (size_t)n;
    }
    return HFD_OK;
}

hfd_rc hfd_backup_file_note(int fd, struct hfd_arena *mem, struct hfd_backup_note *out,
                            struct hfd_err *err)
{
    char text[HFD_BACKUP_NOTE_BYTES];
    struct stat st;
    hfd_rc rc;

    if (fstat(fd, &st) != 0)
        return hfd_fail(err, HFD_IO, "it cannot be read: %s", strerror(errno));
    if (!S_ISREG(st.st_mode) || st.st_size <= (int64_t)sizeof(text))
        return hfd_fail(err, HFD_INVALID, "it is no backup of hyperfleet-driver");
    rc = read_at(fd, text, sizeof(text), st.st_size - (int64_t)sizeof(text), err);
    if (rc == HFD_OK)
        rc = hfd_backup_note_parse(text, mem, out, err);
    if (rc == HFD_OK && out->bytes != st.st_size - (int64_t)sizeof(text))
        rc = hfd_fail(err, HFD_INVALID, "it is not whole: %lld bytes instead of %lld",
                      (long long)st.st_size, (long long)out->bytes + (long long)sizeof(text));
    return rc;
}

hfd_rc hfd_backup_file_copy(int fd, const struct hfd_backup_note *note, int to, struct hfd_err *err)
{
    char piece[PIECE_BYTES], text[HFD_BACKUP_NOTE_BYTES];
    struct hfd_backup_sum sum;
    hfd_rc rc = HFD_OK;
    int64_t at = 0;

    hfd_backup_sum_init(&sum);
    while (rc == HFD_OK && at < note->bytes) {
        const int64_t left = note->bytes - at;
        const size_t len = left < (int64_t)sizeof(piece) ? (size_t)left : sizeof(piece);

        rc = read_at(fd, piece, len, at, err);
        if (rc == HFD_OK && to >= 0)
            rc = write_all(to, piece, len, err);
        hfd_backup_sum_add(&sum, piece, len);
        at += (int64_t)len;
    }
    if (rc == HFD_OK)
        rc = read_at(fd, text, sizeof(text), note->bytes, err);
    if (rc == HFD_OK && !hfd_backup_note_matches(text, &sum))
        rc = hfd_fail(err, HFD_CORRUPT,
                      "it is damaged: its checksum does not match. Use another backup");
    return rc;
}

hfd_rc hfd_backup_file_seal(int fd, struct hfd_backup_note *note, struct hfd_err *err)
{
    char piece[PIECE_BYTES], text[HFD_BACKUP_NOTE_BYTES];
    struct hfd_backup_sum sum;
    struct stat st;
    hfd_rc rc = HFD_OK;
    int64_t at = 0;

    if (fstat(fd, &st) != 0)
        return hfd_fail(err, HFD_IO, "it cannot be read: %s", strerror(errno));
    note->bytes = st.st_size;
    hfd_backup_sum_init(&sum);
    while (rc == HFD_OK && at < note->bytes) {
        const int64_t left = note->bytes - at;
        const size_t len = left < (int64_t)sizeof(piece) ? (size_t)left : sizeof(piece);

        rc = read_at(fd, piece, len, at, err);
        hfd_backup_sum_add(&sum, piece, len);
        at += (int64_t)len;
    }
    if (rc == HFD_OK)
        rc = hfd_backup_note_format(note, &sum, text, err);
    if (rc == HFD_OK && lseek(fd, 0, SEEK_END) < 0)
        rc = hfd_fail(err, HFD_IO, "it cannot be written: %s", strerror(errno));
    return rc == HFD_OK ? write_all(fd, text, sizeof(text), err) : rc;
}
