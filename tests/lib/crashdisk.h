/*
 * A disk that remembers what a power cut would leave. It is a SQLite VFS on the program's own. The
 * files are real ones. Beside each, the disk keeps what was synced and, in order, what was not. It
 * calls the test at every point: before each change takes effect, and before each sync. The test
 * may then take an image of what the disk could hold if the power went now. The run goes on, so
 * that one run gives thousands of images.
 *
 * The seed of an image chooses what it shows:
 * - data: the changes since a file's last sync: none, all, or those up to a moment. Each 512-byte
 *   sector may also have a moment of its own, so that writes are torn and reordered. Lengths
 *   likewise. Bytes that were never written are zeros or garbage.
 * - names: a file made or removed since its folder was synced may be absent, or there with its old
 *   content.
 * - folder: a folder whose parent was not synced since it was made may be gone altogether.
 *
 * Thread: any for the calls of SQLite; the test's own for the functions here. One lock; the hook
 * runs under it.
 */
#ifndef HFD_TESTS_CRASHDISK_H
#define HFD_TESTS_CRASHDISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/lib/seams.h"

#define CRASHDISK_NAME "hfd-crash"
#define CRASHDISK_NAMES_MAX 6

struct crashdisk;

/** The files of one folder after a power cut. */
struct crashdisk_image {
    bool folder; /* whether there is one */
    size_t count;
    struct {
        char name[32];
        unsigned char *bytes;
        size_t len;
    } files[CRASHDISK_NAMES_MAX];
};

/** @param n  counts the points of this folder from 1 */
typedef void crashdisk_hook(void *ctx, struct crashdisk *disk, unsigned n);

/** Registers the VFS; once a program. */
void crashdisk_register(void);
/** All disks sync nothing from now on: the control that must lose and damage data. */
void crashdisk_lie(bool lie);

/**
 * Remembers a folder; what is in it is on disk. @param path  the folder, which may be absent yet
 */
struct crashdisk *crashdisk_new(const char *path, crashdisk_hook *hook, void *ctx);
/** No file of it may be open any more. */
void crashdisk_free(struct crashdisk *disk);
/** A point by hand, between requests. Outside the hook. */
void crashdisk_point(struct crashdisk *disk);
/** Gives an image. In the hook. */
void crashdisk_take(struct crashdisk *disk, uint64_t seed, struct crashdisk_image *out);
/*
 * Record a change that other code than SQLite's makes in a remembered folder. The caller calls it
 * before the change. Other folders are ignored. Each call is a point.
 */
void crashdisk_folder_synced(const char *path);
void crashdisk_file_made(const char *path);
void crashdisk_file_written(const char *path, const void *bytes, size_t at, size_t len);
void crashdisk_file_synced(const char *path);
/** `to` stands for the same file from now on. @param moved  and `from` no longer does */
void crashdisk_file_linked(const char *from, const char *to, bool moved);
void crashdisk_file_removed(const char *path);

/** Writes the files into a new folder. */
void crashdisk_image_put(const struct crashdisk_image *image, const char *dir);
void crashdisk_image_fini(struct crashdisk_image *image);

#endif
