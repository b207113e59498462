/* See wrap_memory.h. */
#include "tests/fault/wrap_memory.h"

#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <setjmp.h>
#include <sodium.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static struct {
    pthread_mutex_t lock;
    sqlite3_mem_methods sqlite;
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
    if (now)
        errno = ENOMEM;
    return now;
}

void wrap_memory_arm(unsigned nth, bool for_ever)
{
    pthread_mutex_lock(&mem.lock);
    mem.left = nth;
    mem.for_ever = for_ever;
    mem.fired = 0;
    pthread_mutex_unlock(&mem.lock);
}

unsigned wrap_memory_disarm(void)
{
    unsigned fired;

    pthread_mutex_lock(&mem.lock);
    mem.left = 0;
    fired = mem.fired;
    pthread_mutex_unlock(&mem.lock);
    return fired;
}

/* ---- ours ---- */

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size)
{
    return fails() ? NULL : __real_realloc(old, size);
}

char *__real_strdup(const char *s);
char *__wrap_strdup(const char *s);
char *__wrap_strdup(const char *s)
{
    return fails() ? NULL : __real_strdup(s);
}

char *__real_strndup(const char *s, size_t len);
char *__wrap_strndup(const char *s, size_t len);
char *__wrap_strndup(const char *s, size_t len)
{
    return fails() ? NULL : __real_strndup(s, len);
}

void *__real_sodium_malloc(size_t size);
void *__wrap_sodium_malloc(size_t size);
void *__wrap_sodium_malloc(size_t size)
{
    return fails() ? NULL : __real_sodium_malloc(size);
}

/* ---- the libraries' ---- */

static void *jansson_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

static void *sqlite_malloc(int size)
{
    return fails() ? NULL : mem.sqlite.xMalloc(size);
}

static void *sqlite_realloc(void *old, int size)
{
    return fails() ? NULL : mem.sqlite.xRealloc(old, size);
}

void wrap_memory_install(void)
{
    sqlite3_mem_methods methods;

    json_set_alloc_funcs(jansson_malloc, free);
    assert_int_equal(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &mem.sqlite), SQLITE_OK);
    methods = mem.sqlite;
    methods.xMalloc = sqlite_malloc;
    methods.xRealloc = sqlite_realloc;
    assert_int_equal(sqlite3_config(SQLITE_CONFIG_MALLOC, &methods), SQLITE_OK);
}
