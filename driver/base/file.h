/* Whole files into memory, bounded. Thread: start-up. */
#ifndef HFD_BASE_FILE_H
#define HFD_BASE_FILE_H

#include "driver/base/buf.h"

/**
 * Appends a file's bytes to b, whose ceiling bounds them.
 * @param what  for messages: "settings file"
 * @return HFD_OK, HFD_IO, HFD_INVALID (larger than the ceiling), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_file_read(const char *path, const char *what, struct hfd_buf *b, struct hfd_err *err);

#endif
