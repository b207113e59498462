/* Checks of single settings beyond their type. Pure. Thread: start-up. */
#ifndef HFD_SETTINGS_CHECK_H
#define HFD_SETTINGS_CHECK_H

#include "handlers/settings/settings_int.h"

#define HFD_SETTING_ITEM_MAX 253 /* bytes of an item of a list */

/** Checks a parsed value. @return HFD_OK, HFD_INVALID */
HFD_MUST_CHECK hfd_rc hfd_setting_check(enum hfd_setting which, const void *member,
                                        struct hfd_err *err);
/** Check the name and the value of an entry of a map. @return HFD_OK, HFD_INVALID */
HFD_MUST_CHECK hfd_rc hfd_setting_name_check(hfd_slice name, struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_setting_entry_check(const struct hfd_setting_row *row, hfd_slice value,
                                              struct hfd_err *err);

#endif
