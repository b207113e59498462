/*
 * The file of the key ring: reads, creates and rotates it. Keys stay in locked memory and no
 * message quotes one. Thread: any.
 */
#ifndef HFD_CORE_KEYRING_FILE_H
#define HFD_CORE_KEYRING_FILE_H

#include "driver/core/keyring.h"

/**
 * Reads and checks a key file.
 * @param out  gives; free with hfd_keyring_free
 * @return HFD_OK, HFD_NOT_FOUND (no file), HFD_INVALID (which line and why; mode not 0600 or 0400;
 *         owner neither we nor root), HFD_IO
 */
HFD_MUST_CHECK hfd_rc hfd_keyring_load(const char *path, struct hfd_keyring **out,
                                       struct hfd_err *err);

/**
 * Makes a file with one active key, mode 0600, synced, never over an existing one.
 * @return HFD_OK, HFD_CONFLICT (there is a file), HFD_NOT_FOUND (no such folder), HFD_INVALID (path
 * too long), HFD_IO
 */
HFD_MUST_CHECK hfd_rc hfd_keyring_create(const char *path, const struct hfd_rng *rng,
                                         struct hfd_err *err);

/**
 * Adds a new active key and retires the others (they still open); replaces the file atomically,
 * under its lock. Mode, owner and comments stay.
 * @param id_out  8 hex digits and NUL
 * @return HFD_OK, as load, HFD_LIMIT (64 keys or 16 KiB: remove retired ones)
 */
HFD_MUST_CHECK hfd_rc hfd_keyring_rotate(const char *path, const struct hfd_rng *rng,
                                         char id_out[9], struct hfd_err *err);

/** Adds a key that only opens, to be activated later. Otherwise as hfd_keyring_rotate. */
HFD_MUST_CHECK hfd_rc hfd_keyring_prepare(const char *path, const struct hfd_rng *rng,
                                          char id_out[9], struct hfd_err *err);
/**
 * Makes the newest prepared key the active one, and retires the others.
 * @param id  of that key, in hex
 * @return HFD_OK, as hfd_keyring_rotate, HFD_CONFLICT (no key is prepared, or another one)
 */
HFD_MUST_CHECK hfd_rc hfd_keyring_activate(const char *path, const char *id, struct hfd_err *err);

#endif
