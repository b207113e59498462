#include "tests/lib/vectors.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static int is_json(const struct dirent *e)
{
    size_t n = strlen(e->d_name);

    return n > 5 && strcmp(e->d_name + n - 5, ".json") == 0;
}

static void one_file(const char *path, const char *name,
                     void (*fn)(const char *, hfd_slice, void *), void *arg)
{
    FILE *f = fopen(path, "rb");
    char *text;
    size_t len;
    long size;

    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    size = ftell(f);
    assert_true(size >= 0);
    rewind(f);
    /* Exactly as large as the file, so that a read beyond it is seen by the sanitizer. */
    text = malloc(size > 0 ? (size_t)size : 1);
    assert_non_null(text);
    len = fread(text, 1, (size_t)size, f);
    assert_int_equal(len, size);
    fclose(f);
    fn(name, (hfd_slice){text, len}, arg);
    free(text);
}

bool test_vectors_each(const char *folder, void (*fn)(const char *name, hfd_slice text, void *arg),
                       void *arg)
{
    struct dirent **entries;
    char dir[1024];
    int n;

    snprintf(dir, sizeof(dir), "%s/%s", HFD_VECTORS_DIR, folder);
    n = scandir(dir, &entries, is_json, alphasort);
    if (n < 0)
        return false;
    for (int i = 0; i < n; i++) {
        char path[2048];

        snprintf(path, sizeof(path), "%s/%s", dir, entries[i]->d_name);
        one_file(path, entries[i]->d_name, fn, arg);
        free(entries[i]);
    }
    free(entries);
    return true;
}
