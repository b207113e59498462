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
