#include "tests/lib/contains.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

bool slice_has(hfd_slice text, const char *part)
{
    return text.p != NULL && memmem(text.p, text.len, part, strlen(part)) != NULL;
}

void check_contains(hfd_slice text, const char *part, bool wanted, const char *file, int line)
{
    if (slice_has(text, part) == wanted)
        return;
    print_error("\"%.*s\" %s \"%s\"\n", HFD_SLICE_FMT(text), wanted ? "lacks" : "contains", part);
    _fail(file, line);
}
