/*
 * The file of a backup, as `backup` and `restore` read it. Also a folder for a database that is
 * being made: it is removed with what a store leaves in it. Thread: main.
 */
#ifndef HFD_CLI_BACKUP_FILE_H
#define HFD_CLI_BACKUP_FILE_H

#include "driver/base/err.h"
#include "driver/base/meter.h"
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
 * @param note   of this file
 * @param to     gets the database; -1 = nothing is written
 * @param meter  learns how far it is
 * @return HFD_OK, HFD_CORRUPT (the checksum does not match), HFD_IO
 */
HFD_MUST_CHECK hfd_rc hfd_backup_file_copy(int fd, const struct hfd_backup_note *note, int to,
                                           struct hfd_meter *meter, struct hfd_err *err);

/**
 * Writes the note behind the database in a file.
 * @param note  its facts; bytes is set
 * @return HFD_OK, HFD_LIMIT, HFD_IO, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_backup_file_seal(int fd, struct hfd_backup_note *note,
                                           struct hfd_err *err);

/**
 * Makes the folder, mode 0700. A draft of the same name that a kill left behind is removed.
 * @return HFD_OK, HFD_IO
 */
HFD_MUST_CHECK hfd_rc hfd_draft_make(const char *path, struct hfd_err *err);
/**
 * Makes it, and holds it as long as *hold is open: hfd_draft_sweep of another process leaves it.
 * @param hold  gives a file descriptor
 * @return HFD_OK, HFD_IO
 */
HFD_MUST_CHECK hfd_rc hfd_draft_make_held(const char *path, int *hold, struct hfd_err *err);
/** Called for each draft that is gone. */
typedef void hfd_draft_swept_fn(const char *path);
/**
 * Removes drafts of this user that no process holds: those that a kill left behind.
 * @param path    a draft, PREFIXnumber: the others beside it have another number
 * @param prefix  of its name
 */
void hfd_draft_sweep(const char *path, const char *prefix, hfd_draft_swept_fn *swept);
/** Removes the database in it, and the folder. An absent one is no error. */
void hfd_draft_remove(const char *path);

#endif
