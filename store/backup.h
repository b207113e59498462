/*
 * A backup: an online copy of the database, made in small steps by reader threads and then read in
 * pieces. It shows one snapshot: all that was answered before it began. The writer goes on
 * meanwhile. The copy is a file in the data folder, so a slow receiver holds no snapshot. There is
 * one backup at a time.
 *
 * The functions with work are called inside a view, in the order begin, step, read. No two run at
 * once. After a failure, and after the end of the copy was read, another backup may begin.
 */
#ifndef HFD_STORE_BACKUP_H
#define HFD_STORE_BACKUP_H

#include "store/store.h"

/** Room on the disk that a backup leaves to the store. */
#define HFD_BACKUP_RESERVE_BYTES (INT64_C(64) * 1024 * 1024)

struct hfd_backup;

/**
 * Takes the place of the one backup.
 * @param out  gives
 * @return HFD_OK, HFD_CONFLICT (there is another one; the store is PostgreSQL), HFD_NOMEM
 * Thread: any.
 */
HFD_MUST_CHECK hfd_rc hfd_backup_open(struct hfd_store *store, struct hfd_backup **out,
                                      struct hfd_err *err);
/**
 * Fixes the snapshot, and runs fn(arg) in it.
 * @return HFD_OK, HFD_LIMIT (there is no room on the disk for a copy), HFD_IO, HFD_NOMEM, as fn
 * Thread: reader.
 */
HFD_MUST_CHECK hfd_rc hfd_backup_begin(struct hfd_backup *b, hfd_txn_fn *fn, void *arg,
                                       struct hfd_err *err);
/**
 * Copies some pages.
 * @param done  the copy is whole, and the snapshot is given up
 * @return HFD_OK, HFD_LIMIT (the disk is full, or nearly), HFD_IO, HFD_NOMEM
 * Thread: reader.
 */
HFD_MUST_CHECK hfd_rc hfd_backup_step(struct hfd_backup *b, bool *done, struct hfd_err *err);
/** Returns the size of the copy: after begin, of the snapshot. Thread: any, between the calls. */
int64_t hfd_backup_bytes(const struct hfd_backup *b);
/**
 * Reads the next bytes of the whole copy.
 * @param len  0 at the end
 * Thread: reader.
 */
HFD_MUST_CHECK hfd_rc hfd_backup_read(struct hfd_backup *b, char *out, size_t cap, size_t *len,
                                      struct hfd_err *err);
/**
 * Closes and removes the copy. A reader thread does that where it can, as it may wait for the disk.
 * Takes; accepts a pointer to NULL. Thread: any, while no other call runs.
 */
void hfd_backup_close(struct hfd_backup **backup);

#endif
