#include "tests/lib/faultmem.h"

#include <pthread.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static struct {
    pthread_mutex_t lock;
    sqlite3_mem_methods real;
    unsigned left; /* 0 = not armed */
    unsigned fired;
    bool for_ever;
} mem = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool fails(void)
{
    bool now = false;

    pthread_mutex_lock(&mem.lock);
    if (mem.left == 1) {
        now = true;
        mem.fired++;
        if (!mem.for_ever)
            mem.left = 0;
    } else if (mem.left > 1) {
        mem.left--;
    }
    pthread_mutex_unlock(&mem.lock);
    return now;
}

static void *mem_malloc(int size)
{
    return fails() ? NULL : mem.real.xMalloc(size);
}

static void *mem_realloc(void *old, int size)
{
    return fails() ? NULL : mem.real.xRealloc(old, size);
}

void faultmem_install(void)
{
    sqlite3_mem_methods methods;

    assert_int_equal(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &mem.real), SQLITE_OK);
    methods = mem.real;
    methods.xMalloc = mem_malloc;
    methods.xRealloc = mem_realloc;
    assert_int_equal(sqlite3_config(SQLITE_CONFIG_MALLOC, &methods), SQLITE_OK);
}

void faultmem_arm(unsigned nth, bool for_ever)
{
    pthread_mutex_lock(&mem.lock);
    mem.left = nth;
    mem.for_ever = for_ever;
    mem.fired = 0;
    pthread_mutex_unlock(&mem.lock);
}

unsigned faultmem_disarm(void)
{
    unsigned fired;

    pthread_mutex_lock(&mem.lock);
    mem.left = 0;
    fired = mem.fired;
    pthread_mutex_unlock(&mem.lock);
    return fired;
}
