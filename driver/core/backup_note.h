/*
 * The note at the end of a backup: HFD_BACKUP_NOTE_BYTES bytes behind the database, a JSON object,
 * spaces and a line end. It says what the backup holds, and has a checksum (BLAKE2b-256) of all
 * that stands before it. SQLite ignores these bytes, so a backup can be opened as a database too.
 * Thread: any.
 */
#ifndef HFD_CORE_BACKUP_NOTE_H
#define HFD_CORE_BACKUP_NOTE_H

#include "driver/base/arena.h"

#include <sodium.h>

#define HFD_BACKUP_NOTE_BYTES ((size_t)4096)

struct hfd_backup_note {
    int64_t taken_us; /* by the clock of the machine: what was answered before is in the backup */
    int64_t clock_us; /* the same by the program's clock (driver/base/steady.h), as in the rows */
    int64_t resources;
    hfd_slice *keys; /* ids of the keys that rows need */
    size_t key_count;
    int64_t bytes; /* of the database */
};

/**
 * The checksum of the bytes before the note, while they pass by. Bytes, as the state itself needs
 * an alignment that an arena does not give.
 */
struct hfd_backup_sum {
    unsigned char state[sizeof(crypto_generichash_state)];
};
void hfd_backup_sum_init(struct hfd_backup_sum *sum);
void hfd_backup_sum_add(struct hfd_backup_sum *sum, const char *bytes, size_t len);

struct hfd_txn;
/**
 * Collects what a note says of the rows: resources, keys. @param mem  keeps the keys
 * Thread: that of the transaction.
 */
HFD_MUST_CHECK hfd_rc hfd_backup_note_collect(struct hfd_txn *tx, struct hfd_arena *mem,
                                              struct hfd_backup_note *out, struct hfd_err *err);

/**
 * Writes a note.
 * @param sum  of all bytes of the database
 * @return HFD_OK, HFD_LIMIT (more keys than a note can name), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_backup_note_format(const struct hfd_backup_note *note,
                                             const struct hfd_backup_sum *sum,
                                             char out[HFD_BACKUP_NOTE_BYTES], struct hfd_err *err);
/**
 * Reads the last HFD_BACKUP_NOTE_BYTES bytes of a file. It does not compare checksums.
 * @return HFD_OK, HFD_INVALID (it is no note), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_backup_note_parse(const char text[HFD_BACKUP_NOTE_BYTES],
                                            struct hfd_arena *mem, struct hfd_backup_note *out,
                                            struct hfd_err *err);
/** Returns true if the checksum in a note is right. @param sum  as above */
bool hfd_backup_note_matches(const char text[HFD_BACKUP_NOTE_BYTES],
                             const struct hfd_backup_sum *sum);

#endif
