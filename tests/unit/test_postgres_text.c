/* Texts, values and failures of store/postgres. No server is needed. */
#include "store/postgres/connect.h"
#include "store/postgres/text.h"
#include "store/postgres/value.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void placeholders_become_dollars(void **state)
{
    static const struct {
        const char *sql, *expected;
        int params;
    } cases[] = {
        {"SELECT 1", "SELECT 1", 0},
        {"SELECT a FROM t WHERE b = ?1 AND c > ?2", "SELECT a FROM t WHERE b = $1 AND c > $2", 2},
        {"?12, ?3, ?12", "$12, $3, $12", 12},
        {"'?1' || ?1 || \"?2\" -- ?7\n || ?2", "'?1' || $1 || \"?2\" -- ?7\n || $2", 2},
        {"'it''s ?4' = ?1", "'it''s ?4' = $1", 1},
        {"'open ?1", "'open ?1", 0},
        {"", "", 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int params = -1;
        char *text = hfd_pg_placeholders(hfd_slice_of(cases[i].sql), "$", &params);

        assert_string_equal(text, cases[i].expected);
        assert_int_equal(params, cases[i].params);
        free(text);
    }
}

static void comments_are_sql_for_one_engine(void **state)
{
    static const struct {
        const char *sql, *expected;
    } cases[] = {
        {"a /*sqlite: X*/ b", "a               b"},
        {"a /*postgres: X*/ b", "a             X   b"},
        {"a /*sqlite: X '/*' */ /*postgres: Y*/", "a                                 Y  "},
        {"a /* plain */", "a /* plain */"},
        {"a /*postgres: X", "a /*postgres: X"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *text = hfd_pg_comments(cases[i].sql);

        assert_string_equal(text, cases[i].expected);
        free(text);
    }
}

#define BYTES(...) ((const char[]){__VA_ARGS__})
#define VALUE(...)                                                                                 \
    {                                                                                              \
        BYTES(__VA_ARGS__), sizeof(BYTES(__VA_ARGS__))                                             \
    }

static void numbers_are_read(void **state)
{
    static const char lowest[] = {0, 5, 0, 4, 0x40, 0, 0, 0, 0, '\x03' + 0, 0, 0, 0, 0, 0, 0, 0, 0};
    const struct {
        unsigned type;
        hfd_slice bytes;
        int64_t value;
        bool ok;
    } cases[] = {
        {20, VALUE(0, 0, 0, 0, 0, 0, 1, 2), 258, true},
        {20, VALUE('\xff', '\xff', '\xff', '\xff', '\xff', '\xff', '\xff', '\xfe'), -2, true},
        {20, VALUE('\x80', 0, 0, 0, 0, 0, 0, 0), INT64_MIN, true},
        {23, VALUE('\xff', '\xff', '\xff', '\xff'), -1, true},
        {21, VALUE(1, 0), 256, true},
        {16, VALUE(1), 1, true},
        {16, VALUE(0), 0, true},
        /* numeric: digits, weight, sign, scale, digits to the base of 10,000 */
        {1700, VALUE(0, 0, 0, 0, 0, 0, 0, 0), 0, true},
        {1700, VALUE(0, 1, 0, 0, 0, 0, 0, 0, 0, 7), 7, true},
        {1700, VALUE(0, 1, 0, 1, 0, 0, 0, 0, 0, 7), 70000, true},
        {1700, VALUE(0, 2, 0, 1, 0x40, 0, 0, 0, 0, 1, 0, 2), -10002, true},
        {1700, VALUE(0, 2, 0, 0, 0, 0, 0, 1, 0, 1, 0x03, '\xe8'), 0, false}, /* 1.1 */
        {1700, VALUE(0, 1, 0, 9, 0, 0, 0, 0, 0, 7), 0, false},               /* 7 * 10^36 */
        {1700, VALUE(0, 0, 0, 0, '\xc0', 0, 0, 0), 0, false},                /* NaN */
        {1700, {lowest, sizeof(lowest)}, -3 * INT64_C(10000) * 10000 * 10000 * 10000, true},
        {25, VALUE('1'), 0, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t v = -9;

        assert_int_equal(hfd_pg_number(cases[i].type, cases[i].bytes, &v), cases[i].ok);
        if (cases[i].ok)
            assert_true(v == cases[i].value);
    }
}

static void lists_of_hosts_are_split(void **state)
{
    static const struct {
        const char *list, *items[3];
    } cases[] = {
        {"a", {"a", "a", "a"}},
        {"a,b", {"a", "b", NULL}},
        {"5432,,7", {"5432", "", "7"}},
        {"", {"", "", ""}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (unsigned n = 0; n < 3; n++) {
            hfd_slice item;
            const bool there = hfd_pg_list_item(hfd_slice_of(cases[i].list), n, &item);

            assert_int_equal(there, cases[i].items[n] != NULL);
            if (there)
                assert_true(hfd_slice_is(item, cases[i].items[n]));
        }
}

static void failures_have_their_codes(void **state)
{
    static const struct {
        const char *sqlstate;
        hfd_rc rc;
        enum hfd_db_fate fate;
        const char *word;
    } cases[] = {
        {NULL, HFD_AWAY, HFD_DB_LOST, NULL},
        {"", HFD_AWAY, HFD_DB_LOST, NULL},
        {"08006", HFD_AWAY, HFD_DB_LOST, NULL},
        {"57P01", HFD_AWAY, HFD_DB_LOST, NULL},
        {"57014", HFD_TIMEOUT, HFD_DB_UNDONE, NULL},
        {"25P03", HFD_AWAY, HFD_DB_LOST, NULL},
        {"25006", HFD_AWAY, HFD_DB_LOST, NULL},
        {"40001", HFD_BUSY, HFD_DB_AGAIN, "serialization"},
        {"40P01", HFD_BUSY, HFD_DB_AGAIN, "deadlock"},
        {"55P03", HFD_BUSY, HFD_DB_AGAIN, "lock"},
        {"23505", HFD_CONFLICT, HFD_DB_UNDONE, "conflict"},
        {"23514", HFD_CONFLICT, HFD_DB_UNDONE, "conflict"},
        {"22012", HFD_CONFLICT, HFD_DB_UNDONE, "conflict"},
        {"23502", HFD_CORRUPT, HFD_DB_UNDONE, NULL},
        {"53300", HFD_AWAY, HFD_DB_LOST, NULL},
        {"53200", HFD_NOMEM, HFD_DB_UNDONE, NULL},
        {"53100", HFD_IO, HFD_DB_UNDONE, NULL},
        {"53400", HFD_IO, HFD_DB_UNDONE, NULL},
        {"22021", HFD_INVALID, HFD_DB_UNDONE, NULL},
        {"XX001", HFD_CORRUPT, HFD_DB_UNDONE, NULL},
        {"42703", HFD_CORRUPT, HFD_DB_UNDONE, NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(hfd_pg_code(cases[i].sqlstate)->rc, cases[i].rc);
        assert_int_equal(hfd_pg_code(cases[i].sqlstate)->fate, cases[i].fate);
        if (cases[i].word != NULL)
            assert_string_equal(hfd_pg_code(cases[i].sqlstate)->word, cases[i].word);
        else
            assert_null(hfd_pg_code(cases[i].sqlstate)->word);
    }
}

/* A reader whose libpq has no memory says nothing about the server. A writer connects anew. */
static void memory_of_libpq_is_its_own(void **state)
{
    static const struct {
        const char *said;
        enum hfd_db_mode mode;
        hfd_rc rc;
    } cases[] = {
        {"out of memory\n", HFD_DB_READER, HFD_NOMEM},
        {"cannot allocate memory for input buffer\n", HFD_DB_POINTS, HFD_NOMEM},
        {"out of memory for query result\n", HFD_DB_READER, HFD_NOMEM},
        {"could not receive data from server: Cannot allocate memory\n", HFD_DB_READER, HFD_NOMEM},
        {"out of memory\n", HFD_DB_WRITER, HFD_AWAY},
        {"invalid connection state, probably indicative of memory corruption\n", HFD_DB_READER,
         HFD_AWAY},
        {"server closed the connection unexpectedly\n", HFD_DB_READER, HFD_AWAY},
        {"no answer within store.answer_timeout", HFD_DB_READER, HFD_AWAY},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct hfd_db db = {.mode = cases[i].mode};
        struct hfd_err err;

        assert_int_equal(hfd_pg_lost(&db, cases[i].said, &err), cases[i].rc);
        assert_true(db.broken);
        assert_int_equal(db.cause.rc, cases[i].rc);
        assert_int_equal(err.rc, cases[i].rc);
    }
}

static void messages_become_lines(void **state)
{
    char out[8];

    (void)state;
    hfd_pg_line("ab\ncd\n", out, sizeof(out));
    assert_string_equal(out, "ab cd");
    hfd_pg_line("abcdefghij", out, sizeof(out));
    assert_string_equal(out, "abcdefg");
    hfd_pg_line(NULL, out, sizeof(out));
    assert_string_equal(out, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(placeholders_become_dollars),
        cmocka_unit_test(comments_are_sql_for_one_engine),
        cmocka_unit_test(numbers_are_read),
        cmocka_unit_test(lists_of_hosts_are_split),
        cmocka_unit_test(failures_have_their_codes),
        cmocka_unit_test(memory_of_libpq_is_its_own),
        cmocka_unit_test(messages_become_lines),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
