/*
 * A SQLite VFS on the program's own that passes every call on, for VFSs of tests to replace those
 * calls that they are about.
 */
#ifndef HFD_TESTS_PASSVFS_H
#define HFD_TESTS_PASSVFS_H

#include <sqlite3.h>

/** Begins the struct of an open file; the real one stands behind that struct. */
struct passvfs_file {
    sqlite3_file base;
    sqlite3_file *real;
};

/** To copy, and to replace in the copy what is to be otherwise. */
extern const sqlite3_io_methods passvfs_methods;

/**
 * Fills in what is then to be given an xOpen, and to be registered.
 * @param file_bytes  size of the struct of an open file
 * @return the real VFS
 */
sqlite3_vfs *passvfs_init(sqlite3_vfs *vfs, const char *name, int file_bytes);

#endif
