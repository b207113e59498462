/* The status page: what is read for it. The page itself is tested from outside. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "handlers/web/read.h"

/* Orphans are looked for among few resources, whatever their states, if the caller may see them. */
static void orphans_are_sought_among_few(void **state)
{
    struct hfd_web_page p = {.wants_orphans = true};

    (void)state;
    assert_true(hfd_web_seeks_orphans(&p));
    p.list.counts[HFD_STATE_READY] = HFD_WEB_ORPHANS_AMONG - 1;
    p.list.counts[HFD_STATE_FAILED] = 1;
    assert_true(hfd_web_seeks_orphans(&p));
    p.list.counts[HFD_STATE_DELETING] = 1;
    assert_false(hfd_web_seeks_orphans(&p));
    p = (struct hfd_web_page){.wants_orphans = false};
    assert_false(hfd_web_seeks_orphans(&p));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(orphans_are_sought_among_few)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
