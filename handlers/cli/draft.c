/* See draft.h. */
#include "handlers/cli/draft.h"

#include "store/sqlite/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
