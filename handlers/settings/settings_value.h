/* One value of the settings: text in, checked value out, and back. Pure. Thread: start-up. */
#ifndef HFD_SETTINGS_VALUE_H
#define HFD_SETTINGS_VALUE_H

#include "handlers/settings/settings_int.h"

/**
 * Parses and checks a value of any type but MAP.
 * @param member  the row's member of struct hfd_settings
 * @return HFD_OK, HFD_INVALID ("expected ..., got ...", without key and place), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_setting_parse(const struct hfd_setting_value *v, struct hfd_arena *mem,
                                        void *member, struct hfd_err *err);

/** Writes a member of any type but MAP as a YAML value, with *** for a password of a URL. */
void hfd_setting_format(struct hfd_buf *b, const struct hfd_setting_row *row, const void *member);
/** Returns true if the flag of a setting may come without a value, which then is "on". */
static inline bool hfd_setting_needs_no_value(const struct hfd_setting_row *row)
{
    return row->type == HFD_SETTING_TYPE_DEMO || row->type == HFD_SETTING_TYPE_BOOL;
}
/** Returns the form of a value: "TEXT", "DURATION". */
const char *hfd_setting_form_text(const struct hfd_setting_row *row);
/** Writes the range: "1s to 1h"; nothing for types without one. */
void hfd_setting_range(struct hfd_buf *b, const struct hfd_setting_row *row);

#define HFD_QUOTE_MAX 68
/**
 * Quotes input for a message: at most 60 bytes, with '?' for anything but printable ASCII. Leaves
 * out what may be a password.
 * @return out
 */
const char *hfd_setting_quote(hfd_slice s, char out[HFD_QUOTE_MAX]);

/** Check the name and the value of an entry of a map. @return HFD_OK, HFD_INVALID */
HFD_MUST_CHECK hfd_rc hfd_setting_name_check(hfd_slice name, struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_setting_entry_check(const struct hfd_setting_row *row, hfd_slice value,
                                              struct hfd_err *err);

#endif
