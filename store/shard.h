/*
 * Shards: sixteen parts of all GUResIDs. Each has one holder among the replicas on a database, and
 * the holder alone works for its GUResIDs. Rows store the bit of a shard. Thread: any.
 */
#ifndef HFD_STORE_SHARD_H
#define HFD_STORE_SHARD_H

#include "driver/base/slice.h"

#define HFD_SHARDS 16
/** A set of shards is a mask of bits: 1 << number. */
#define HFD_SHARDS_ALL INT64_C(0xffff)
/** The shard of work that is about no single GUResID. */
#define HFD_SHARD_COMMON 0

/** Returns the shard of a GUResID. The number is stored: the function never changes. */
int hfd_shard_of(hfd_slice guresid);
/** Returns the bit of that shard. */
int64_t hfd_shard_bit(hfd_slice guresid);
/** Returns how many shards a set has. */
int hfd_shard_count(int64_t shards);

#endif
