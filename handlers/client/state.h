/*
 * The file in which the client keeps the cookies of its resources, as the orchestrator does. It has
 * mode 0600, is replaced as a whole, and is locked while it is changed. Thread: main.
 */
#ifndef HFD_CLIENT_STATE_H
#define HFD_CLIENT_STATE_H

#include "driver/base/buf.h"

#define HFD_CLIENT_PATH_MAX 4096

/** The place of the file: that of --state, or below the user's state folder. */
struct hfd_client_state {
    char path[HFD_CLIENT_PATH_MAX];
};

/**
 * Finds the place of the file.
 * @param path  NULL = $XDG_STATE_HOME, or ~/.local/state
 * @return HFD_OK, HFD_INVALID (there is no home folder, or the path is too long)
 */
HFD_MUST_CHECK hfd_rc hfd_client_state_find(const char *path, struct hfd_client_state *out,
                                            struct hfd_err *err);

/** The resource of a driver. */
struct hfd_client_resource {
    const char *url, *id;
};

/**
 * Adds the cookie of a resource to out; nothing without one.
 * @return HFD_OK, HFD_IO, HFD_INVALID (the file is damaged), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_client_state_read(const struct hfd_client_state *state,
                                            const struct hfd_client_resource *resource,
                                            struct hfd_buf *out, struct hfd_err *err);
/**
 * Stores a cookie; an empty one forgets the resource. It is on disk when this returns.
 * @return as hfd_client_state_read
 */
HFD_MUST_CHECK hfd_rc hfd_client_state_write(const struct hfd_client_state *state,
                                             const struct hfd_client_resource *resource,
                                             hfd_slice cookie, struct hfd_err *err);

#endif
