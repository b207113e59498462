/*
 * The text of the key ring: reads it, and writes it anew with a changed key. It stays in guarded
 * memory. For keyring_file.c and tests. Thread: any.
 */
#ifndef HFD_CORE_KEYRING_TEXT_H
#define HFD_CORE_KEYRING_TEXT_H

#include "driver/core/keyring_int.h"

#define HFD_KEY_ID_CHARS (2 * HFD_KEY_ID_BYTES)

/** Text under way, in guarded memory. Zeroed = none. */
struct hfd_key_text {
    struct hfd_secret mem; /* HFD_KEY_FILE_MAX_BYTES + 1 */
    size_t len;
    bool full; /* more was added than a file may have */
};

/** Makes an empty text. @return HFD_OK, HFD_NOMEM */
HFD_MUST_CHECK hfd_rc hfd_key_text_init(struct hfd_key_text *t, struct hfd_err *err);
/** Wipes and frees it. */
void hfd_key_text_fini(struct hfd_key_text *t);
/** Returns the text so far, borrowed. */
hfd_slice hfd_key_text_slice(const struct hfd_key_text *t);

/** A change of a ring. */
enum hfd_key_change {
    HFD_KEY_ROTATE,  /* a new active key; all others are retired */
    HFD_KEY_PREPARE, /* a new prepared key; all others stay */
    HFD_KEY_ACTIVATE /* the newest prepared key becomes active; all others are retired */
};

/** Adds the text of a new ring of one active key. @param id  gets the key's id */
HFD_MUST_CHECK hfd_rc hfd_key_text_first(struct hfd_key_text *t, const struct hfd_rng *rng,
                                         char id[HFD_KEY_ID_CHARS + 1], struct hfd_err *err);

/** A change of a text. */
struct hfd_key_edit {
    enum hfd_key_change change;
    const struct hfd_rng *rng;
    hfd_slice old;                 /* the text; comments stay */
    char id[HFD_KEY_ID_CHARS + 1]; /* of the key that is new or activated; ACTIVATE: set, it is the
                                       key that is expected; empty = any */
};
/**
 * Adds the changed text.
 * @return HFD_OK, as hfd_key_list_parse, HFD_LIMIT (64 keys or 16 KiB), HFD_CONFLICT (no key is
 * prepared, or another than the expected one), HFD_IO (the random source)
 */
HFD_MUST_CHECK hfd_rc hfd_key_text_change(struct hfd_key_text *t, struct hfd_key_edit *edit,
                                          struct hfd_err *err);

#endif
