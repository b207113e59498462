/* See draft.h. */
#include "handlers/cli/draft.h"

#include "store/sqlite/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAKE_TRIES 10

void hfd_draft_remove(const char *path)
{
    static const char *const names[] = {HFD_FOLDER_DB_NAME, HFD_FOLDER_DB_NAME "-wal",
                                        HFD_FOLDER_DB_NAME "-shm", HFD_FOLDER_LOCK_NAME};
    const int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

    for (size_t i = 0; dir >= 0 && i < sizeof(names) / sizeof(names[0]); i++)
        (void)unlinkat(dir, names[i], 0);
    if (dir >= 0)
        (void)close(dir);
    (void)rmdir(path);
}

hfd_rc hfd_draft_make(const char *path, struct hfd_err *err)
{
    hfd_draft_remove(path);
    return mkdir(path, 0700) == 0 ? HFD_OK
                                  : hfd_fail(err, HFD_IO, "make %.120s: %s", path, strerror(errno));
}

/* Returns whether the path still names the open folder. */
static bool is_at(int dir, const char *path)
{
    struct stat open_one, named;

    return fstat(dir, &open_one) == 0 && lstat(path, &named) == 0 &&
           open_one.st_dev == named.st_dev && open_one.st_ino == named.st_ino;
}

hfd_rc hfd_draft_make_held(const char *path, int *hold, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    /* A sweep may take the folder before it is held. */
    for (int i = 0; rc == HFD_OK && i < MAKE_TRIES; i++) {
        rc = hfd_draft_make(path, err);
        *hold = rc == HFD_OK ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW) : -1;
        if (*hold >= 0 && flock(*hold, LOCK_EX) == 0 && is_at(*hold, path))
            return HFD_OK;
        if (*hold >= 0)
            (void)close(*hold);
        *hold = -1;
    }
    return rc != HFD_OK ? rc : hfd_fail(err, HFD_IO, "make %.120s: it goes away again", path);
}

/* Removes a draft that no process holds. */
static void sweep_one(const char *path, hfd_draft_swept_fn *swept)
{
    const int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    struct stat st;

    if (dir < 0)
        return;
    if (fstat(dir, &st) == 0 && st.st_uid == geteuid() && flock(dir, LOCK_EX | LOCK_NB) == 0) {
        hfd_draft_remove(path);
        if (!is_at(dir, path))
            swept(path);
    }
    (void)close(dir);
}

void hfd_draft_sweep(const char *path, const char *prefix, hfd_draft_swept_fn *swept)
{
    const size_t head = (size_t)(strrchr(path, '/') - path), len = strlen(prefix);
    char other[PATH_MAX];
    struct dirent *entry;
    DIR *dir;

    (void)snprintf(other, sizeof(other), "%.*s", (int)head, path);
    dir = opendir(other);
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        const char *number = entry->d_name + len;

        if (strncmp(entry->d_name, prefix, len) != 0 || number[0] == '\0' ||
            number[strspn(number, "0123456789")] != '\0')
            continue;
        if (snprintf(other, sizeof(other), "%.*s/%s", (int)head, path, entry->d_name) <
            (int)sizeof(other))
            sweep_one(other, swept);
    }
    if (dir != NULL)
        (void)closedir(dir);
}
