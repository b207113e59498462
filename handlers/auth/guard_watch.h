/* The thread of the guard. hfd_guard_start, hfd_guard_stop and hfd_guard_look are in guard.h. */
#ifndef HFD_AUTH_GUARD_WATCH_H
#define HFD_AUTH_GUARD_WATCH_H

#include "handlers/auth/guard_int.h"

/** Returns true if the tokens file is another one than at the last call. */
bool hfd_guard_file_changed(struct hfd_guard *guard);

#endif
