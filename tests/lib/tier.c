#include "tests/lib/tier.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

bool tier_is_quick(void)
{
    return getenv("HFD_TEST_QUICK") != NULL;
}

unsigned tier_stride(unsigned n)
{
    return tier_is_quick() ? n : 1;
}

void tier_init(void)
{
    if (tier_is_quick())
        cmocka_set_skip_filter("every_*");
}
