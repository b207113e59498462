/* The status page: what is read for it. The page itself is tested from outside. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "driver/base/clock.h"
#include "handlers/web/page.h"
#include "tests/lib/contains.h"

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

/* Large numbers have separators; a bar is amber when what is usual has passed, and stays full. */
static void numbers_and_bars(void **state)
{
    static const struct {
        int64_t n;
        const char *text;
    } rows[] = {{0, "0"}, {999, "999"}, {1000, "1,000"}, {1002003, "1,002,003"}};
    struct hfd_overview_item item = {.guresid = HFD_SLICE("r"), .usual_us = 10 * HFD_US_PER_S};
    struct hfd_html h;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        hfd_html_init(&h, 0);
        hfd_html_add(&h, HFD_COUNT(rows[i].n));
        assert_true(hfd_slice_is(hfd_buf_slice(&h.b), rows[i].text));
        hfd_buf_fini(&h.b);
    }
    for (int late = 0; late < 2; late++) {
        hfd_html_init(&h, (late == 1 ? 20 : 5) * HFD_US_PER_S);
        hfd_web_progress(&h, &item);
        assert_int_equal(slice_has(hfd_buf_slice(&h.b), "class=\"late\""), late == 1);
        assert_contains(hfd_buf_slice(&h.b),
                        late == 1 ? "20 s, usually 10 s" : "5 s of about 10 s");
        hfd_buf_fini(&h.b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(orphans_are_sought_among_few),
                                       cmocka_unit_test(numbers_and_bars)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
