/*
 * Compares what an organisation has with what this version would register. Pure. Thread: any.
 */
#ifndef HFD_REGISTER_COMPARE_H
#define HFD_REGISTER_COMPARE_H

#include <jansson.h>

#include "driver/base/buf.h"

enum hfd_register_thing {
    HFD_REGISTER_TYPE,
    HFD_REGISTER_DRIVER,
    HFD_REGISTER_DEFINITION
};

/**
 * Adds the paths in which a thing differs, as ": target, inputs_schema.properties.values". A
 * definition may have more than what is registered, as organisations fill in its spec.
 * @param have  the organisation's; @param want  that of the plan
 * @return how many differences there are
 */
size_t hfd_register_compare(enum hfd_register_thing thing, const json_t *have, const json_t *want,
                            struct hfd_buf *b);

#endif
