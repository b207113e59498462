/*
 * The id that the orchestrator gives: ^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$, the syntax
 * of a label value, as it becomes one.
 */
#ifndef HFD_CORE_GURESID_H
#define HFD_CORE_GURESID_H

#include "driver/base/slice.h"

#define HFD_GURESID_MAX 63

/** @return HFD_OK or HFD_INVALID (field "GUResID") */
HFD_MUST_CHECK hfd_rc hfd_guresid_check(hfd_slice text, struct hfd_err *err);

#endif
