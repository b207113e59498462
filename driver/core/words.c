/* See words.h. */
#include "driver/core/words.h"

hfd_slice hfd_words_output_too_large(hfd_slice guresid, const char *why, struct hfd_arena *mem)
{
    return hfd_arena_printf(mem,
                            "Resource %.*s is ready, but %s: let driver.outputs take less, or the "
                            "adapters report less. Then deploy again, or delete the resource.",
                            HFD_SLICE_FMT(guresid), why);
}
