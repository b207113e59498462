/* See shard.h. */
#include "store/shard.h"

int hfd_shard_of(hfd_slice guresid)
{
    const uint64_t hash = hfd_slice_hash(HFD_HASH_START, guresid);

    /* "*" stands for the search for orphans. */
    return hfd_slice_is(guresid, "*") ? HFD_SHARD_COMMON : (int)((hash ^ hash >> 32) % HFD_SHARDS);
}

int64_t hfd_shard_bit(hfd_slice guresid)
{
    return INT64_C(1) << hfd_shard_of(guresid);
}

int hfd_shard_count(int64_t shards)
{
    return __builtin_popcountll((unsigned long long)shards);
}
