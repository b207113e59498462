/*
 * The names of settings as a file, the environment and flags spell them, and the nearest name for
 * an unknown one. Pure. Thread: start-up.
 */
#ifndef HFD_SETTINGS_NAMES_H
#define HFD_SETTINGS_NAMES_H

#include "handlers/settings/settings_int.h"

#define HFD_SETTING_NAME_MAX 96 /* of one without the name of an entry */

/** How a name is spelled. */
enum hfd_setting_form {
    HFD_FORM_KEY,  /* log.level */
    HFD_FORM_ENV,  /* HFD_LOG_LEVEL */
    HFD_FORM_FLAG, /* --log-level */
};

/** True for the types whose setting is a map of entries. */
static inline bool hfd_setting_is_map(const struct hfd_setting_row *row)
{
    return row->type == HFD_SETTING_TYPE_MAP || row->type == HFD_SETTING_TYPE_FILES;
}
/** The suffix of the name of a map for one of its entries: ".NAME". Empty for other types. */
const char *hfd_setting_suffix(enum hfd_setting_form form, const struct hfd_setting_row *row);
/** The end of that suffix behind the name: ".kubeconfig". Empty if nothing follows. */
const char *hfd_setting_ending(enum hfd_setting_form form, const struct hfd_setting_row *row);

/** Writes the name of a key without the suffix of maps. Returns its length. */
size_t hfd_setting_spell(enum hfd_setting_form form, const char *key,
                         char out[HFD_SETTING_NAME_MAX]);
/** Finds what a name means. The value is not there yet. */
struct hfd_setting_value hfd_setting_find(enum hfd_setting_form form, hfd_slice text);
/** The same for a key of the file, which may also name a section. */
struct hfd_setting_value hfd_setting_find_key(hfd_slice key);

/** Fails for an unknown key at a place of the file; suggests the nearest key. */
HFD_MUST_CHECK hfd_rc hfd_setting_unknown_key(const char *place, hfd_slice key,
                                              struct hfd_err *err);
/** Fails for an unknown variable or flag; suggests the nearest name. */
HFD_MUST_CHECK hfd_rc hfd_setting_unknown_name(enum hfd_setting_form form, const char *what,
                                               hfd_slice name, struct hfd_err *err);

#endif
