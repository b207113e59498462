#include "tests/lib/faultmem.h"

#include "driver/base/base.h"
#include "tests/lib/trigger.h"

#include <errno.h>
#include <jansson.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static struct trigger trigger = TRIGGER_INIT;
static sqlite3_mem_methods real;

bool faultmem_fails(void)
{
    if (!trigger_fires(&trigger))
        return false;
    errno = ENOMEM;
    return true;
}

void faultmem_arm(unsigned nth, bool for_ever)
{
    trigger_arm(&trigger, nth, for_ever);
}

unsigned faultmem_disarm(void)
{
    return trigger_disarm(&trigger);
}

static void *mem_malloc(int size)
{
    return faultmem_fails() ? NULL : real.xMalloc(size);
}

static void *mem_realloc(void *old, int size)
{
    return faultmem_fails() ? NULL : real.xRealloc(old, size);
}

void faultmem_install(void)
{
    sqlite3_mem_methods methods;

    assert_int_equal(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real), SQLITE_OK);
    methods = real;
    methods.xMalloc = mem_malloc;
    methods.xRealloc = mem_realloc;
    assert_int_equal(sqlite3_config(SQLITE_CONFIG_MALLOC, &methods), SQLITE_OK);
}

static void *json_malloc(size_t size)
{
    return faultmem_fails() ? NULL : malloc(size);
}

int faultmem_setup_json(void **state)
{
    (void)state;
    json_set_alloc_funcs(json_malloc, free);
    return hfd_base_init(NULL) == HFD_OK ? 0 : -1;
}
