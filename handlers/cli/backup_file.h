/* The file of a backup, as `backup` and `restore` read it. Thread: main. */
#ifndef HFD_CLI_BACKUP_FILE_H
#define HFD_CLI_BACKUP_FILE_H

#include "driver/core/backup_note.h"

/**
 * Reads the note of a backup.
 * @param mem  keeps its texts
 * @return HFD_OK, HFD_INVALID (it is no backup, or not whole), HFD_IO, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_backup_file_note(int fd, struct hfd_arena *mem,
                                           struct hfd_backup_note *out, struct hfd_err *err);
/**
 * Reads the whole file and compares its checksum.
 * @param note  of this file
 * @param to    gets the database; -1 = nothing is written
 * @return HFD_OK, HFD_CORRUPT (the checksum does not match), HFD_IO
 */
HFD_MUST_CHECK hfd_rc hfd_backup_file_copy(int fd, const struct hfd_backup_note *note, int to,
                                           struct hfd_err *err);

/**
 * Writes the note behind the database in a file.
 * @param note  its facts; bytes is set
 * @return HFD_OK, HFD_LIMIT, HFD_IO, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_backup_file_seal(int fd, struct hfd_backup_note *note,
                                           struct hfd_err *err);

#endif
