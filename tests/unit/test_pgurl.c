/* driver/base/pgurl.c: URLs of PostgreSQL by form, and their spelling without passwords. */
#include "driver/base/pgurl.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* URLs of libpq are taken, unless it would read them otherwise than meant. */
static void urls_are_checked_by_form(void **state)
{
    static const struct {
        const char *text;
        const char *says; /* NULL = fine */
    } cases[] = {
        {"postgres://h/db", NULL},
        {"postgresql://h/db", NULL},
        {"postgres://u@h:5432/db", NULL},
        {"postgres://u:p@h1:5432,h2:5433,h3/db?sslmode=verify-full&sslrootcert=/etc/ca.pem", NULL},
        {"postgres://u:a%2Fb%40@[::1]:5432,[fe80::1]/db", NULL},
        {"postgres://u:a:b@h/db", NULL},
        {"postgres://@h/db", NULL},
        {"postgres:///db?host=/run/postgresql", NULL},
        {"postgres://%2Frun%2Fpostgresql/db", NULL},
        {"postgres://h", NULL},
        {"postgres://my_host-1.example/d%C3%A4", NULL},
        {"", "expected a PostgreSQL URL"},
        {"postgres:/h/db", "expected a PostgreSQL URL"},
        {"POSTGRES://h/db", "expected a PostgreSQL URL"},
        {"mysql://h/db", "expected a PostgreSQL URL"},
        {"postgres://h,/db", "behind each comma"},
        {"postgres://,h/db", "host names"},
        {"postgres://h h/db", "host names"},
        {"postgres://[::1/db", "host names"},
        {"postgres://[]/db", "host names"},
        {"postgres://[::1]x/db", "host names"},
        {"postgres://h:0/db", "a port"},
        {"postgres://h:/db", "a port"},
        {"postgres://h:65536/db", "a port"},
        {"postgres://h1:1,h2:x/db", "a port"},
        {"postgres://u:geheim/x@h/db", "%2F"},
        {"postgres://u:123/x@h/db", "name of a database"},
        {"postgres://u:geheim@x@h/db", "host names"},
        {"postgres://u:geheim%zz@h/db", "as %XX"},
        {"postgres://u:geheim #@h/db", "as %XX"},
        {"postgres://u:***@h/db", "in place of ***"},
        {"postgres://h/a/b", "name of a database"},
        {"postgres://h/db?sslmode", "name=value"},
        {"postgres://h/db?=x", "name=value"},
        {"postgres://h/db?p%61ssword=geheim", "name=value"},
        {"postgres://h/db?a=%2", "name=value"},
        {"postgres://h/db?a=b#c", "name=value"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct hfd_err err = {0};
        const hfd_rc rc = hfd_pgurl_check(hfd_slice_of(cases[i].text), &err);

        if ((rc == HFD_OK) != (cases[i].says == NULL))
            fail_msg("\"%s\": %s", cases[i].text, rc == HFD_OK ? "accepted" : err.msg);
        if (cases[i].says == NULL)
            continue;
        assert_int_equal(rc, HFD_INVALID);
        if (strstr(err.msg, cases[i].says) == NULL || strstr(err.msg, "geheim") != NULL)
            fail_msg("\"%s\": \"%s\" does not say \"%s\", or tells the password", cases[i].text,
                     err.msg, cases[i].says);
    }
}

static void no_spelling_has_a_password(void **state)
{
    static const struct {
        const char *url, *masked;
        bool secret;
    } cases[] = {
        {"postgres://h/db", "postgres://h/db", false},
        {"postgres://u@h:1/db", "postgres://u@h:1/db", false},
        {"postgresql://u:geheim@h1,h2/db?a=b", "postgresql://u:***@h1,h2/db?a=b", true},
        {"postgres://u:@h/db", "postgres://u:***@h/db", true},
        {"postgres://:geheim@h", "postgres://:***@h", true},
        {"postgres://u:ge:heim@h/", "postgres://u:***@h/", true},
        {"postgres://password=d@h/db?a=b", "postgres://password=d@h/db?a=b", false},
        {"postgres:///db?host=/run", "postgres:///db?host=/run", false},
        {"postgres://h/db?user=u&password=geheim&sslmode=require",
         "postgres://h/db?user=u&password=***&sslmode=require", true},
        {"postgres://h/db?sslpassword=geheim", "postgres://h/db?sslpassword=***", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const hfd_slice url = hfd_slice_of(cases[i].url);
        struct hfd_buf b;

        hfd_buf_init(&b, 4096);
        assert_int_equal(hfd_pgurl_check(url, NULL), HFD_OK);
        hfd_pgurl_mask(&b, url);
        if (!hfd_slice_is(hfd_buf_slice(&b), cases[i].masked))
            fail_msg("%s became %.*s", cases[i].url, HFD_SLICE_FMT(hfd_buf_slice(&b)));
        assert_int_equal(hfd_pgurl_has_password(url), cases[i].secret);
        hfd_buf_fini(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(urls_are_checked_by_form),
        cmocka_unit_test(no_spelling_has_a_password),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
