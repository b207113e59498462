/* Notes about parts, made while an answer is taken. Thread: writer. */
#ifndef HFD_REMOTE_TAKE_NOTE_H
#define HFD_REMOTE_TAKE_NOTE_H

#include "driver/backend/remote/take.h"

/** Notes a fact about a part. @return HFD_OK, HFD_NOMEM */
HFD_MUST_CHECK hfd_rc hfd_take_note(struct hfd_take *t, hfd_slice fleet_id, enum hfd_part_fact fact,
                                    struct hfd_err *err);
/** The pass looks at the part again: its document is out of date. @return HFD_OK, HFD_NOMEM */
HFD_MUST_CHECK hfd_rc hfd_take_forget(struct hfd_take *t, hfd_slice fleet_id, struct hfd_err *err);
/**
 * The remote contradicts what was seen of the part: as hfd_take_forget, but fails the pass if that
 * happens too often. @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_take_look_again(struct hfd_take *t, hfd_slice fleet_id,
                                          struct hfd_err *err);

#endif
