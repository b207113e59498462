/*
 * Rules over what statements touch: which writes may change which results. They only ever err on
 * the safe side. Pure. Thread: any.
 */
#ifndef HFD_STORE_POSTGRES_TOUCH_H
#define HFD_STORE_POSTGRES_TOUCH_H

#include "store/postgres/shape.h"

/** Returns true when both are known to be the same. */
bool hfd_value_is_same(const struct hfd_value *a, const struct hfd_value *b);

/**
 * Parameters of a write and of a read whose values differed, so that the write did not touch the
 * read. The next write with the same text is likely to differ there, too.
 */
struct hfd_apart {
    const struct hfd_shape *write; /* its statement; NULL = none yet */
    int of_write, of_read;
};

/**
 * Returns false when the write can change no row that the read reads.
 * @param apart  kept for this read, and used for this function alone; may be NULL
 */
bool hfd_shape_touches(const struct hfd_shape_use *write, const struct hfd_shape_use *read,
                       struct hfd_apart *apart);

/** Returns false when the write cannot add the first row to an empty result. @param apart  as above
 */
bool hfd_shape_fills(const struct hfd_shape_use *write, const struct hfd_shape_use *read,
                     struct hfd_apart *apart);

#endif
