/*
 * The tokens file: names, scopes, times and hashes, one token a line. It has no secret that opens
 * anything. Write access to it is access to everything. Thread: any that may wait for the disk.
 */
#ifndef HFD_AUTH_TOKEN_FILE_H
#define HFD_AUTH_TOKEN_FILE_H

#include "driver/base/arena.h"
#include "handlers/auth/token.h"

#define HFD_TOKENS_MAX 1000
#define HFD_TOKEN_FILE_MAX_BYTES ((size_t)1 << 20)

struct hfd_token_list {
    struct hfd_token *items;
    size_t count;
};

/**
 * Parses the text of a tokens file.
 * @param mem  gets the list and its names
 * @return HFD_OK, HFD_INVALID (the message names the line), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_token_list_parse(hfd_slice text, struct hfd_arena *mem,
                                           struct hfd_token_list *out, struct hfd_err *err);
/** Adds the text of a tokens file. */
void hfd_token_list_format(const struct hfd_token_list *list, struct hfd_buf *b);

/**
 * Reads a tokens file.
 * @return HFD_OK, HFD_NOT_FOUND (no file), HFD_INVALID (its text is wrong, or others can write to
 *         it), HFD_IO, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_token_file_read(const char *path, struct hfd_arena *mem,
                                          struct hfd_token_list *out, struct hfd_err *err);

/** A change of the list, under the lock of the file. It may replace out->items. */
typedef hfd_rc hfd_token_change_fn(struct hfd_token_list *list, struct hfd_arena *mem, void *arg,
                                   struct hfd_err *err);

/** A change of a tokens file. */
struct hfd_token_edit {
    const char *path;
    hfd_token_change_fn *change;
    void *arg;
    bool create; /* a missing file is an empty one */
};

/**
 * Changes a tokens file: replaced as a whole (mode 0600) and synced, under the lock of its folder.
 * @return as hfd_token_file_read and edit->change; HFD_NOT_FOUND unless edit->create
 */
HFD_MUST_CHECK hfd_rc hfd_token_file_edit(const struct hfd_token_edit *edit, struct hfd_err *err);

#endif
