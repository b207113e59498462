/*
 * Takes the inputs of `resource` that the configuration lets replace those of driver.values.
 * Thread: any.
 */
#ifndef HFD_CORE_OVERRIDE_H
#define HFD_CORE_OVERRIDE_H

#include "driver/base/arena.h"
#include "driver/base/jsonx.h"

struct hfd_overrides {
    const hfd_slice *paths; /* dotted, below driver.values and below `resource` alike */
    size_t count;
};

/**
 * Puts what `resource` has in the place of what driver.values has there. Something of a wrong kind
 * in the way stays, for the schema to name.
 * @return HFD_OK or HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_override_apply(const struct hfd_overrides *o, json_t *doc,
                                         struct hfd_err *err);

/**
 * Names `resource` in a field of driver.values that came from there. The author of `resource` may
 * never have seen driver.values.
 * @param mem  holds the new text
 * @return HFD_OK or HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_override_blame(const struct hfd_overrides *o, const json_t *doc,
                                         struct hfd_arena *mem, hfd_slice *field);

#endif
