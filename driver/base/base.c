/* Process-wide start-up of driver/base. See base.h. */
#include "driver/base/base.h"

#include <malloc.h>
#include <pthread.h>

#include <jansson.h>
#include <sodium.h>

#include <stdint.h>

#include "driver/base/jsonx.h"
#include "driver/base/metrics.h"
#include "driver/base/rng.h"

#define MIB(n) ((n) << 20)

static pthread_once_t once = PTHREAD_ONCE_INIT;
static hfd_rc once_rc = HFD_IO;

/*
 * Each group of jobs takes some memory and gives it back. Without these limits glibc returns it to
 * the system after each group, and the next group has it cleared page by page again.
 */
static void keep_freed_memory(void)
{
#ifdef __GLIBC__
    (void)mallopt(M_TRIM_THRESHOLD, MIB(4)); /* of each arena */
    (void)mallopt(M_TOP_PAD, MIB(1));
    (void)mallopt(M_MMAP_THRESHOLD, MIB(1)); /* a fixed one; else glibc raises it up to 32 MiB */
#endif
}

static void init_once(void)
{
    uint64_t seed;

    keep_freed_memory();
    if (sodium_init() < 0)
        return;
    hfd_rng_bytes(&hfd_rng_system, &seed, sizeof(seed));
    /*
     * The hash seed is set before the first object is made. Hostile keys must not find a
     * predictable hash. jansson takes a seed of 0 as "choose one", so one bit is always set.
     */
    json_object_seed((size_t)seed | ((size_t)1 << 31));
    hfd_json_watch_memory();
    hfd_metric_set(HFD_METRIC_BUILD_INFO, HFD_LABELS(HFD_VERSION), 1);
    hfd_metric_set(HFD_METRIC_API_BUILD_INFO, NULL, 1);
    once_rc = HFD_OK;
}

hfd_rc hfd_base_init(struct hfd_err *err)
{
    pthread_once(&once, init_once);
    return once_rc == HFD_OK
               ? HFD_OK
               : hfd_fail(err, once_rc,
                          "start libsodium: the system has no source of random bytes");
}
