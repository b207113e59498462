#include "tests/lib/passvfs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static sqlite3_file *real_of(sqlite3_file *f)
{
    return ((struct passvfs_file *)f)->real;
}

static int io_close(sqlite3_file *f)
{
    return real_of(f)->pMethods->xClose(real_of(f));
}

static int io_read(sqlite3_file *f, void *out, int len, sqlite3_int64 at)
{
    return real_of(f)->pMethods->xRead(real_of(f), out, len, at);
}

static int io_write(sqlite3_file *f, const void *bytes, int len, sqlite3_int64 at)
{
    return real_of(f)->pMethods->xWrite(real_of(f), bytes, len, at);
}

static int io_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    return real_of(f)->pMethods->xTruncate(real_of(f), size);
}

static int io_sync(sqlite3_file *f, int flags)
{
    return real_of(f)->pMethods->xSync(real_of(f), flags);
}

static int io_size(sqlite3_file *f, sqlite3_int64 *size)
{
    return real_of(f)->pMethods->xFileSize(real_of(f), size);
}

static int io_lock(sqlite3_file *f, int level)
{
    return real_of(f)->pMethods->xLock(real_of(f), level);
}

static int io_unlock(sqlite3_file *f, int level)
{
    return real_of(f)->pMethods->xUnlock(real_of(f), level);
}

static int io_check_lock(sqlite3_file *f, int *held)
{
    return real_of(f)->pMethods->xCheckReservedLock(real_of(f), held);
}

static int io_control(sqlite3_file *f, int op, void *arg)
{
    return real_of(f)->pMethods->xFileControl(real_of(f), op, arg);
}

static int io_sector_size(sqlite3_file *f)
{
    return real_of(f)->pMethods->xSectorSize(real_of(f));
}

static int io_device(sqlite3_file *f)
{
    return real_of(f)->pMethods->xDeviceCharacteristics(real_of(f));
}

static int io_shm_map(sqlite3_file *f, int page, int size, int extend, void volatile **out)
{
    return real_of(f)->pMethods->xShmMap(real_of(f), page, size, extend, out);
}

static int io_shm_lock(sqlite3_file *f, int at, int n, int flags)
{
    return real_of(f)->pMethods->xShmLock(real_of(f), at, n, flags);
}

static void io_shm_barrier(sqlite3_file *f)
{
    real_of(f)->pMethods->xShmBarrier(real_of(f));
}

static int io_shm_unmap(sqlite3_file *f, int delete_it)
{
    return real_of(f)->pMethods->xShmUnmap(real_of(f), delete_it);
}

const sqlite3_io_methods passvfs_methods = {
    .iVersion = 2,
    .xClose = io_close,
    .xRead = io_read,
    .xWrite = io_write,
    .xTruncate = io_truncate,
    .xSync = io_sync,
    .xFileSize = io_size,
    .xLock = io_lock,
    .xUnlock = io_unlock,
    .xCheckReservedLock = io_check_lock,
    .xFileControl = io_control,
    .xSectorSize = io_sector_size,
    .xDeviceCharacteristics = io_device,
    .xShmMap = io_shm_map,
    .xShmLock = io_shm_lock,
    .xShmBarrier = io_shm_barrier,
    .xShmUnmap = io_shm_unmap,
};

sqlite3_vfs *passvfs_init(sqlite3_vfs *vfs, const char *name, int file_bytes)
{
    sqlite3_vfs *real = sqlite3_vfs_find("unix-excl"); /* the one that the program uses */

    assert_non_null(real);
    *vfs = *real; /* what is not replaced works without the struct of its own */
    vfs->pNext = NULL;
    vfs->zName = name;
    vfs->szOsFile = file_bytes + real->szOsFile;
    return real;
}
