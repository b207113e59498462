/*
 * What the client's two files share: client.c speaks HTTP, client_files.c keeps token and
 * certificates.
 */
#ifndef HFD_BACKEND_CLIENT_INT_H
#define HFD_BACKEND_CLIENT_INT_H

#include "driver/backend/client.h"
#include "driver/base/secret.h"

#include <sys/stat.h>

enum hfd_client_file {
    HFD_CLIENT_TOKEN,
    HFD_CLIENT_CA,
    HFD_CLIENT_CERT,
    HFD_CLIENT_KEY,
    HFD_CLIENT_FILE_COUNT
};

/** The files as they were last found good. */
struct hfd_client_files {
    struct {
        const char *path;       /* NULL = none */
        struct stat seen;       /* as it was before the last attempt to read it */
        struct hfd_secret text; /* empty without a path */
        unsigned mode;          /* of the file that `text` was read from */
    } of[HFD_CLIENT_FILE_COUNT];
};

/**
 * Reads all that have a path. @return HFD_OK, HFD_INVALID, HFD_IO (err->field is the setting),
 * HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_client_files_open(struct hfd_client_files *f,
                                            const struct hfd_client_config *config,
                                            struct hfd_err *err);
void hfd_client_files_close(struct hfd_client_files *f);
/**
 * Tells of those with a secret that every user may read or write. @param on_open  NULL = the log
 * is told
 */
void hfd_client_files_tell(const struct hfd_client_files *f, hfd_client_open_fn *on_open,
                           void *ctx);
/**
 * Reads again what changed, or with `all` everything. On failure all is as before, and is tried
 * again when a file changes once more.
 * @param changed  whether anything new is in use
 * @return HFD_OK, HFD_INVALID, HFD_IO, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_client_files_refresh(struct hfd_client_files *f, bool all, bool *changed,
                                               struct hfd_err *err);

/**
 * The value of a Retry-After header, as a span from now_us (wall clock), at most a day. @return
 * HFD_OK, or HFD_INVALID: *out_us is 0
 */
HFD_MUST_CHECK hfd_rc hfd_client_retry_after(hfd_slice value, int64_t now_us, int64_t *out_us);

#endif
