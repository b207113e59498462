/* The table and the effective settings as text. Thread: start-up. */
#ifndef HFD_SETTINGS_SHOW_H
#define HFD_SETTINGS_SHOW_H

#include "handlers/settings/settings.h"

/** Writes all rows, the usual ones first: as plain text for `help`, or as two Markdown tables. */
void hfd_settings_help(struct hfd_buf *b, bool markdown);
/** Writes a short line for each of some settings. @param keys  separated by spaces; each exists */
void hfd_settings_help_some(struct hfd_buf *b, const char *keys);

/** The form of hfd_settings_show. */
struct hfd_settings_form {
    bool origins; /* with the file that was read and the place of each value, as comments */
    bool changed; /* without those that have their default */
};
/**
 * Writes the effective values as a YAML file with dotted keys. Reading it gives the same settings,
 * except that *** stands for a password in `store`, which is refused.
 */
void hfd_settings_show(const struct hfd_settings *s, const struct hfd_settings_form *form,
                       struct hfd_buf *b);

/** Writes the table of the files that settings name, and when they are read again, for the manual.
 */
void hfd_settings_files(struct hfd_buf *b);

#endif
