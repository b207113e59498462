/*
 * Shared by the key ring's two files: keyring.c seals and opens, keyring_file.c reads and writes
 * the file.
 */
#ifndef HFD_CORE_KEYRING_INT_H
#define HFD_CORE_KEYRING_INT_H

#include "driver/base/secret.h"
#include "driver/core/keyring.h"

#define HFD_KEY_BYTES 32
#define HFD_KEYS_MAX 64
#define HFD_KEY_FILE_MAX_BYTES 16384

/** The keys of a file, as parsed. */
struct hfd_key_list {
    size_t count;
    size_t active; /* index of the one that seals */
    enum hfd_key_state states[HFD_KEYS_MAX];
    unsigned char ids[HFD_KEYS_MAX][HFD_KEY_ID_BYTES];
    struct hfd_secret masters; /* HFD_KEYS_MAX x HFD_KEY_BYTES */
};

/**
 * Reads the text of a key file. Messages name the line and never quote it.
 * @param out  on HFD_OK: hfd_secret_fini(&out->masters)
 * @return HFD_OK, HFD_INVALID, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_key_list_parse(hfd_slice text, struct hfd_key_list *out,
                                         struct hfd_err *err);

/** Derives the subkeys. Borrows keys. @return HFD_OK or HFD_NOMEM */
HFD_MUST_CHECK hfd_rc hfd_keyring_new(const struct hfd_key_list *keys, struct hfd_keyring **out,
                                      struct hfd_err *err);

#endif
