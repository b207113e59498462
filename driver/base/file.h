/*
 * Files: reads a whole file with a bound, replaces one, detects changes, and makes a new entry
 * survive a power cut. In a folder that another user may write, no link is followed. Thread: any
 * that may wait for the disk.
 */
#ifndef HFD_BASE_FILE_H
#define HFD_BASE_FILE_H

#include "driver/base/buf.h"

#include <sys/stat.h>

/**
 * Appends a file's bytes to b; the ceiling of b bounds them.
 * @param what for messages: "settings file"
 * @return HFD_OK, HFD_IO, HFD_INVALID (larger than the ceiling), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_file_read(const char *path, const char *what, struct hfd_buf *b,
                                    struct hfd_err *err);

/**
 * Makes a new file of mode 0600 for reading and writing. It first removes a link or file that has
 * the name, so nothing is written through it.
 * @return a descriptor; -1 with errno
 */
int hfd_file_make(const char *path);

/**
 * As root, gives a new file to the owner of its folder. In a folder of root the owner is that of
 * the file that it replaces. So root edits the files of a server that runs as another user.
 * @return false with errno
 */
bool hfd_file_keep_owner(int fd, const char *path);

/** Writes all of a text, and syncs it. @return 0, or -1 with errno */
int hfd_file_write(int fd, hfd_slice text);

/**
 * Gives a file a new text, which is whole and on disk before it has the name (PATH.new until then).
 * Its owner is that of hfd_file_keep_owner.
 * @param what for messages: "clock file"
 * @return HFD_OK, HFD_IO, HFD_INVALID (the path is too long)
 */
HFD_MUST_CHECK hfd_rc hfd_file_replace(const char *path, const char *what, hfd_slice text,
                                       struct hfd_err *err);

/**
 * True if the owner of a file may give it to this process: this user or root. Commands of root also
 * take a file of the owner of its folder.
 */
bool hfd_file_is_trusted(const char *path, const struct stat *st);

/**
 * Opens a file that this program writes, in a folder that another user may write. Never waits.
 * @param flags of open
 * @param fd    -1 on failure
 * @return HFD_OK, HFD_NOT_FOUND, HFD_IO, HFD_NOMEM, HFD_INVALID (a link, no regular file, or the
 * file of another user)
 */
HFD_MUST_CHECK hfd_rc hfd_file_open_own(const char *path, const char *what, int flags, int *fd,
                                        struct hfd_err *err);

/** As hfd_file_read, of a file that hfd_file_open_own opens. @return also HFD_NOT_FOUND */
HFD_MUST_CHECK hfd_rc hfd_file_read_own(const char *path, const char *what, struct hfd_buf *b,
                                        struct hfd_err *err);

/** True if the file is unchanged between two calls of stat: neither replaced nor written. */
bool hfd_file_same(const struct stat *a, const struct stat *b);

/**
 * Syncs the folder that holds a path. A new entry survives a power cut only after this.
 * @return 0, or -1 with errno
 */
int hfd_file_sync_parent(const char *path);

#endif
