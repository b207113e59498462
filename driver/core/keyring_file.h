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
 * Changes the keys: replaces the file atomically, under its lock. Mode, owner and comments stay.
 * Retired keys still open.
 * @param rng  not needed to activate
 * @param id   gets 8 hex digits and NUL: of the key that is new or activated. To activate, the key
 *             that is expected stands there; empty = any
 * @return HFD_OK, as load, HFD_LIMIT (64 keys or 16 KiB: remove retired ones), HFD_CONFLICT (no key
 * is prepared, or another one)
 */
HFD_MUST_CHECK hfd_rc hfd_keyring_change(const char *path, enum hfd_key_change change,
                                         const struct hfd_rng *rng, char id[HFD_KEY_ID_CHARS + 1],
                                         struct hfd_err *err);

#endif
