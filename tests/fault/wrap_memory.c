/* See wrap_memory.h. */
#include "tests/fault/wrap_memory.h"

#include "tests/lib/faultmem.h"

#include <jansson.h>
#include <sodium.h>
#include <stdlib.h>

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
    return faultmem_fails() ? NULL : __real_malloc(size);
}

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size)
{
    return faultmem_fails() ? NULL : __real_calloc(count, size);
}

void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size)
{
    return faultmem_fails() ? NULL : __real_realloc(old, size);
}

char *__real_strdup(const char *s);
char *__wrap_strdup(const char *s);
char *__wrap_strdup(const char *s)
{
    return faultmem_fails() ? NULL : __real_strdup(s);
}

char *__real_strndup(const char *s, size_t len);
char *__wrap_strndup(const char *s, size_t len);
char *__wrap_strndup(const char *s, size_t len)
{
    return faultmem_fails() ? NULL : __real_strndup(s, len);
}

void *__real_sodium_malloc(size_t size);
void *__wrap_sodium_malloc(size_t size);
void *__wrap_sodium_malloc(size_t size)
{
    return faultmem_fails() ? NULL : __real_sodium_malloc(size);
}

static void *jansson_malloc(size_t size)
{
    return faultmem_fails() ? NULL : __real_malloc(size);
}

void wrap_memory_install(void)
{
    json_set_alloc_funcs(jansson_malloc, free);
    faultmem_install();
}
