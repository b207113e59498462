/*
 * A SQLite VFS whose disk fails or loses power at a chosen call. It stands on the program's own
 * VFS, never really syncs, and plays:
 * - faults: the n-th call of the kinds asked for fails, once or from then on. A failing write
 *   leaves its first half behind.
 * - power: at the n-th changing call the disk stops, and all calls fail from then on. Then
 *   faultvfs_power_back leaves of each file what was synced. It also leaves a random choice of
 *   unsynced sectors of 512 bytes, lengths, new files and removed files. In a quarter of the cases
 *   it leaves everything, as when the process was killed and not the machine.
 *
 * Thread: any for the calls of SQLite; the test's own thread for the functions here.
 */
#ifndef HFD_TESTS_FAULTVFS_H
#define HFD_TESTS_FAULTVFS_H

#include <stdbool.h>
#include <stdint.h>

#define FAULTVFS_NAME "hfd-fault"

#define FAULTVFS_CHANGES 1u /* write, truncate, sync, delete */
#define FAULTVFS_READS 2u   /* read */
#define FAULTVFS_OPENS 4u   /* open */
#define FAULTVFS_COPIES 8u  /* write to the database itself: the log being copied into it */
/* CHANGES one by one, and what else a disk is asked */
#define FAULTVFS_WRITES 0x10u
#define FAULTVFS_SYNCS 0x20u
#define FAULTVFS_TRUNCATES 0x40u
#define FAULTVFS_DELETES 0x80u
#define FAULTVFS_SIZES 0x100u    /* size of a file */
#define FAULTVFS_ACCESSES 0x200u /* whether there is a file */
#define FAULTVFS_LOCKS 0x400u    /* taking a lock on the database */
#define FAULTVFS_MAPS 0x800u     /* memory of the log's index */
#define FAULTVFS_SHM_LOCKS 0x1000u

/** Registers the VFS under FAULTVFS_NAME; once a program. */
void faultvfs_register(void);

/**
 * @param nth  1 = the next such call; @param sqlite_code  what it answers, 0 = the I/O error that
 * fits the call
 */
void faultvfs_arm(unsigned kinds, unsigned nth, bool for_ever, int sqlite_code);
/** @return how many calls failed since arming */
unsigned faultvfs_fired(void);
unsigned faultvfs_disarm(void);

/**
 * Starts to keep what is on disk; the disk stops at the nth changing call (0: only when told). No
 * file may be open.
 */
void faultvfs_power_arm(unsigned nth);
/** Stops the disk now, if it has not stopped yet. @return whether it had stopped at its call */
bool faultvfs_power_cut(void);
/**
 * Puts on disk what a power cut would have left, by the seed; the VFS works again. All files must
 * be closed.
 */
void faultvfs_power_back(uint64_t seed);

#endif
