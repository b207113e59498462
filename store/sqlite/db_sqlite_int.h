/* Seams for tests of crashes and failing disks. The program uses none of them. */
#ifndef HFD_STORE_SQLITE_DB_SQLITE_INT_H
#define HFD_STORE_SQLITE_DB_SQLITE_INT_H

/**
 * Connections opened from now on use this registered VFS; NULL = the program's. Static storage.
 * Thread: test, none open.
 */
void hfd_db_set_vfs(const char *name);

/**
 * PRAGMA synchronous of connections opened from now on: "FULL", or "NORMAL" as the control that
 * must lose data. Static storage.
 */
void hfd_db_set_synchronous(const char *level);

/** From how many pages in the log hfd_db_cleanup works; 1000 in the program. */
void hfd_db_set_checkpoint_frames(int frames);

#endif
