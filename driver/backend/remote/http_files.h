/*
 * What the client's two files share: http.c speaks HTTP, http_files.c keeps token and
 * certificates.
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

/** The files as they were last found good. */
struct hfd_remote_files {
    struct {
        const char *path;       /* NULL = none */
        struct stat seen;       /* as it was before the last attempt to read it */
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
 * Tells of those with a secret that every user may read or write. @param on_open  NULL = the log
 * is told
 */
void hfd_remote_files_tell(const struct hfd_remote_files *f, hfd_remote_open_file_fn *on_open,
                           void *ctx);
/**
 * Reads again what changed, or with `all` everything. On failure all is as before, and is tried
 * again when a file changes once more.
 * @param changed  whether anything new is in use
 * @return HFD_OK, HFD_INVALID, HFD_IO, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_remote_files_refresh(struct hfd_remote_files *f, bool all, bool *changed,
                                               struct hfd_err *err);

/**
 * The value of a Retry-After header, as a span from now_us (wall clock), at most a day. @return
 * HFD_OK, or HFD_INVALID: *out_us is 0
 */
HFD_MUST_CHECK hfd_rc hfd_remote_retry_after(hfd_slice value, int64_t now_us, int64_t *out_us);

#endif
