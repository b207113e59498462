/*
 * Token and certificates of the HTTP client, in guarded memory. They are checked as a whole before
 * they are used: a file that is half written does not replace one that works. Thread: remote.
 */
#ifndef HFD_REMOTE_HTTP_FILES_H
#define HFD_REMOTE_HTTP_FILES_H

#include "driver/backend/remote/http.h"
#include "driver/base/secret.h"

#include <sys/stat.h>

enum hfd_remote_file {
    HFD_REMOTE_FILE_TOKEN,
    HFD_REMOTE_FILE_CA,
    HFD_REMOTE_FILE_CERT,
    HFD_REMOTE_FILE_KEY,
    HFD_REMOTE_FILE_COUNT
};

/** The files as they were when all were good. */
struct hfd_remote_files {
    struct hfd_remote_file_text {
        const char *path;       /* NULL = none */
        struct stat seen;       /* before the last attempt to read it */
        struct hfd_secret text; /* empty without a path */
        unsigned mode;          /* of the file that `text` was read from */
    } of[HFD_REMOTE_FILE_COUNT];
};

/**
 * Reads all that have a path. @return HFD_OK, HFD_INVALID, HFD_IO (err->field is the setting),
 * HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_remote_files_open(struct hfd_remote_files *f,
                                            const struct hfd_remote_http_config *config,
                                            struct hfd_err *err);
void hfd_remote_files_close(struct hfd_remote_files *f);
/**
 * Warns of files with a secret that every user may read or write.
 * @param on_open  called for each; NULL = writes to the log
 */
void hfd_remote_files_warn(const struct hfd_remote_files *f, hfd_remote_open_file_fn *on_open,
                           void *ctx);
/**
 * Reads changed files again. On failure the previous content stays, until a
 * file changes again.
 * @param all      reads all files, changed or not
 * @param changed  whether new content is in use
 * @return HFD_OK, HFD_INVALID, HFD_IO, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_remote_files_refresh(struct hfd_remote_files *f, bool all, bool *changed,
                                               struct hfd_err *err);

#endif
