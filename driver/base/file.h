/*
 * Files: whole ones into memory, bounded; whether one has changed; what a power cut may not take.
 * Thread: any; they wait for the disk.
 */
#ifndef HFD_BASE_FILE_H
#define HFD_BASE_FILE_H

#include "driver/base/buf.h"

#include <sys/stat.h>

/**
 * Appends a file's bytes to b, whose ceiling bounds them.
 * @param what  for messages: "settings file"
 * @return HFD_OK, HFD_IO, HFD_INVALID (larger than the ceiling), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_file_read(const char *path, const char *what, struct hfd_buf *b,
                                    struct hfd_err *err);

/** Whether nobody has changed or replaced a file between two looks. */
bool hfd_file_same(const struct stat *a, const struct stat *b);

/**
 * Syncs the folder of a path: a new entry is only there after a power cut if its folder was
 * synced. @return 0, or -1 with errno
 */
int hfd_file_sync_parent(const char *path);

#endif
