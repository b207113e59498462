/*
 * The settings file: a small part of YAML, read event by event. Refuses anchors, aliases, tags,
 * several documents, keys given twice, and files over 1 MiB. The table bounds the depth: a map is
 * read only below a known key. Thread: start-up.
 */
#ifndef HFD_SETTINGS_YAML_H
#define HFD_SETTINGS_YAML_H

#include "handlers/settings/settings_int.h"

/** Reads a file into the settings. @return HFD_OK, HFD_INVALID, HFD_IO, HFD_NOMEM */
HFD_MUST_CHECK hfd_rc hfd_settings_read_file(struct hfd_settings_loader *ld, const char *path,
                                             struct hfd_err *err);

#endif
