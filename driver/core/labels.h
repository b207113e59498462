/* The labels of a cluster or nodepool as its owner gave them. Thread: any. */
#ifndef HFD_CORE_LABELS_H
#define HFD_CORE_LABELS_H

#include "driver/base/arena.h"

/**
 * Leaves out the label that the driver itself adds.
 * @param stored  JSON object
 * @param out     JSON object, in mem
 * @return HFD_OK, HFD_MALFORMED, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_labels_given(hfd_slice stored, struct hfd_arena *mem, hfd_slice *out,
                                       struct hfd_err *err);
/** The value of one label; empty without it, in mem. @return as hfd_labels_given */
HFD_MUST_CHECK hfd_rc hfd_label_value(hfd_slice labels, const char *key, struct hfd_arena *mem,
                                      hfd_slice *out, struct hfd_err *err);

#endif
