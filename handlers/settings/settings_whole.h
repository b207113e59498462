/* Checks that need more than one setting. Thread: start-up. */
#ifndef HFD_SETTINGS_WHOLE_H
#define HFD_SETTINGS_WHOLE_H

#include "handlers/settings/settings_int.h"

/** @return HFD_OK, HFD_INVALID, HFD_NOMEM */
HFD_MUST_CHECK hfd_rc hfd_settings_check_whole(const struct hfd_settings *s, struct hfd_err *err);

#endif
