/*
 * A folder for a database that is being made, removed with what a store leaves in it. Thread: main.
 */
#ifndef HFD_CLI_DRAFT_H
#define HFD_CLI_DRAFT_H

#include "driver/base/err.h"

/**
 * Makes the folder, mode 0700. A draft of the same name that a kill left behind is removed.
 * @return HFD_OK, HFD_IO
 */
HFD_MUST_CHECK hfd_rc hfd_draft_make(const char *path, struct hfd_err *err);
/** Removes the database in it, and the folder. An absent one is no error. */
void hfd_draft_remove(const char *path);

#endif
