/* Values of results in PostgreSQL's binary form. Pure. Thread: any. */
#ifndef HFD_STORE_POSTGRES_VALUE_H
#define HFD_STORE_POSTGRES_VALUE_H

#include "driver/base/slice.h"

/* Numbers of types, as the catalog of each PostgreSQL has them. */
#define HFD_PG_BOOL 16u
#define HFD_PG_BYTEA 17u
#define HFD_PG_INT8 20u
#define HFD_PG_TEXT 25u
#define HFD_PG_FLOAT8 701u

/** Reads a whole number: of an integer type, boolean, or numeric. @return false: it is none */
bool hfd_pg_number(unsigned type, hfd_slice bytes, int64_t *out);
/** Returns true for the types that hold text or bytes. */
bool hfd_pg_is_text(unsigned type);

#endif
