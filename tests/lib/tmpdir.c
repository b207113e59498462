#include "tests/lib/tmpdir.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

void tmpdir_make(char path[TMPDIR_MAX])
{
    const char *base = getenv("TMPDIR");
    int n = snprintf(path, TMPDIR_MAX, "%s/hfd-test-XXXXXX", base != NULL ? base : "/tmp");

    assert_true(n > 0 && n < TMPDIR_MAX);
    assert_non_null(mkdtemp(path));
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

void tmpdir_remove(const char *path)
{
    assert_int_equal(nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
}
