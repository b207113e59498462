/* See move_place.h. */
#include "handlers/cli/move_place.h"

#include "driver/base/pgurl.h"
#include "store/sqlite/folder.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCHEME "sqlite:"
#define TEXT_MAX ((size_t)8192)
/* Rows come in bulk: an answer may take long. */
#define CONNECT_US INT64_C(10000000)
#define ANSWER_US INT64_C(120000000)

static hfd_rc read_folder(const char *dir, struct hfd_arena *mem, struct hfd_move_place *out,
                          struct hfd_err *err)
{
    char path[PATH_MAX];
    const char *real = realpath(dir, path);

    if (dir[0] == '\0')
        return hfd_fail(err, HFD_INVALID, "expected a folder behind \"" SCHEME "\"");
    out->place.dir = dir;
    out->text = hfd_arena_printf(mem, SCHEME "%s", real != NULL ? real : dir).p;
    return out->text != NULL ? HFD_OK : hfd_fail_nomem(err, "read the name of a folder");
}

static hfd_rc read_url(const char *url, struct hfd_arena *mem, struct hfd_move_place *out,
                       struct hfd_err *err)
{
    struct hfd_buf b;
    hfd_slice text;
    hfd_rc rc = hfd_pgurl_check(hfd_slice_of(url), err);

    if (rc != HFD_OK)
        return rc;
    out->place.url = url;
    out->place.connect_timeout_us = CONNECT_US;
    out->place.answer_timeout_us = ANSWER_US;
    hfd_buf_init(&b, TEXT_MAX);
    hfd_pgurl_mask(&b, hfd_slice_of(url));
    rc = hfd_buf_to_arena(&b, mem, &text, err);
    out->text = text.p;
    return rc;
}

hfd_rc hfd_move_place_read(const char *arg, struct hfd_arena *mem, struct hfd_move_place *out,
                           struct hfd_err *err)
{
    *out = (struct hfd_move_place){0};
    if (strncmp(arg, SCHEME, sizeof(SCHEME) - 1) == 0)
        return read_folder(arg + sizeof(SCHEME) - 1, mem, out, err);
    if (hfd_pgurl_is(hfd_slice_of(arg)))
        return read_url(arg, mem, out, err);
    return hfd_fail(err, HFD_INVALID,
                    "expected " SCHEME "FOLDER, or postgres://USER@HOST:PORT/DATABASE");
}

hfd_rc hfd_move_place_exists(const struct hfd_move_place *place, struct hfd_err *err)
{
    char path[PATH_MAX];
    struct stat st;

    if (place->place.dir == NULL)
        return HFD_OK;
    if (snprintf(path, sizeof(path), "%s/" HFD_FOLDER_DB_NAME, place->place.dir) <
            (int)sizeof(path) &&
        stat(path, &st) == 0)
        return HFD_OK;
    return hfd_fail(err, HFD_NOT_FOUND, "%s has no database (" HFD_FOLDER_DB_NAME ")", place->text);
}

hfd_rc hfd_move_place_give(const struct hfd_move_place *place, struct hfd_err *err)
{
    static const char *const names[] = {HFD_FOLDER_DB_NAME, HFD_FOLDER_DB_NAME "-wal",
                                        HFD_FOLDER_LOCK_NAME};
    char path[PATH_MAX];
    struct stat folder;

    if (place->place.dir == NULL || geteuid() != 0)
        return HFD_OK;
    if (stat(place->place.dir, &folder) != 0)
        return hfd_fail(err, HFD_IO, "%s: %s", place->text, strerror(errno));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", place->place.dir, names[i]);
        if (lchown(path, folder.st_uid, folder.st_gid) != 0 && errno != ENOENT)
            return hfd_fail(err, HFD_IO, "give %.100s to the owner of its folder: %s", path,
                            strerror(errno));
    }
    return HFD_OK;
}
