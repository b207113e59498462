/*
 * Files: reads a whole file with a bound, detects changes, and makes a new entry survive a power
 * cut. Thread: any that may wait for the disk.
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

/** True if the file is unchanged between two calls of stat: neither replaced nor written. */
bool hfd_file_same(const struct stat *a, const struct stat *b);

/**
 * Syncs the folder that holds a path. A new entry survives a power cut only after this.
 * @return 0, or -1 with errno
 */
int hfd_file_sync_parent(const char *path);

#endif
