/* The table and the effective settings as text. Thread: start-up. */
#ifndef HFD_SETTINGS_SHOW_H
#define HFD_SETTINGS_SHOW_H

#include "handlers/settings/settings.h"

/** Writes all rows of the table: as plain text for --help, or as a Markdown table. */
void hfd_settings_help(struct hfd_buf *b, bool markdown);
/**
 * Writes the effective values as a YAML file with dotted keys. Reading it gives the same settings,
 * except that *** stands for a password in `store`, which is refused.
 * @param origins  adds the place of each value as a comment
 */
void hfd_settings_show(const struct hfd_settings *s, bool origins, struct hfd_buf *b);

#endif
