/* handlers/http/reply.c: each result code in the three dialects. */
#include "handlers/http/reply.h"

#include "driver/base/jsonx.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define ID "2AbCdEfGhIjKlMnOpQrStUvWxYz"
#define NOW_US INT64_C(1735689600000000)

struct formatted {
    struct hfd_reply reply;
    json_t *doc;
};

static struct formatted format(struct hfd_problem p)
{
    struct formatted f;
    struct hfd_buf b;
    struct hfd_err err;
    hfd_slice text;

    p.request_id = HFD_SLICE(ID);
    p.now_us = NOW_US;
    hfd_buf_init(&b, 1 << 16);
    hfd_problem_format(&p, &b, &f.reply);
    assert_int_equal(hfd_buf_finish(&b, &text, NULL), HFD_OK);
    if (hfd_json_parse(text, &f.doc, &err) != HFD_OK)
        fail_msg("%s: %.*s", err.msg, HFD_SLICE_FMT(text));
    hfd_buf_fini(&b);
    return f;
}

static const char *text_of(const json_t *doc, const char *key)
{
    const char *v = json_string_value(json_object_get(doc, key));

    return v != NULL ? v : "(none)";
}

/*
 * Every code has its status and its code of the dialect; 503 says when to come again, and nothing
 * of what is inside.
 */
static void codes_become_answers(void **state)
{
    static const struct {
        hfd_rc rc;
        int driver_status;
        const char *driver_code;
        int fleet_status;
        const char *fleet_code, *type, *title;
    } cases[] = {
        {HFD_INVALID, 400, "RES-101", 400, "HYPERFLEET-VAL-000", "validation-error",
         "Validation Failed"},
        {HFD_BAD_REQUEST, 400, "RES-101", 400, "HYPERFLEET-VAL-005", "bad-request", "Bad Request"},
        {HFD_UNAUTHORIZED, 401, "RES-101", 401, "HYPERFLEET-AUTH-001", "authentication-error",
         "Authentication Required"},
        {HFD_FORBIDDEN, 403, "RES-101", 403, "HYPERFLEET-AUZ-001", "forbidden", "Forbidden"},
        {HFD_UNCHECKED, 503, "RES-199", 503, "HYPERFLEET-SVC-001", "service-unavailable",
         "Service Unavailable"},
        {HFD_MALFORMED, 400, "RES-101", 400, "HYPERFLEET-VAL-006", "malformed-request",
         "Malformed Request"},
        {HFD_TOO_LARGE, 413, "RES-101", 413, "HYPERFLEET-VAL-005", "bad-request", "Bad Request"},
        {HFD_NOT_FOUND, 400, "RES-101", 404, "HYPERFLEET-NTF-001", "not-found",
         "Resource Not Found"},
        {HFD_CONFLICT, 400, "RES-101", 409, "HYPERFLEET-CNF-001", "conflict", "Resource Conflict"},
        {HFD_DELETING, 400, "RES-101", 409, "HYPERFLEET-CNF-003", "conflict", "State Conflict"},
        {HFD_IMMUTABLE, 400, "RES-106", 409, "HYPERFLEET-CNF-001", "conflict", "Resource Conflict"},
        {HFD_PROTECTED, 400, "RES-109", 409, "HYPERFLEET-CNF-003", "conflict", "State Conflict"},
        {HFD_PRECONDITION, 412, "RES-101", 412, "HYPERFLEET-CNF-003", "conflict", "State Conflict"},
        {HFD_COOKIE, 400, "RES-102", 400, "HYPERFLEET-VAL-005", "bad-request", "Bad Request"},
        {HFD_LIMIT, 400, "RES-107", 400, "HYPERFLEET-VAL-000", "validation-error",
         "Validation Failed"},
        {HFD_BUSY, 503, "RES-199", 503, "HYPERFLEET-SVC-001", "service-unavailable",
         "Service Unavailable"},
        {HFD_TIMEOUT, 503, "RES-199", 503, "HYPERFLEET-SVC-001", "service-unavailable",
         "Service Unavailable"},
        {HFD_NOMEM, 503, "RES-199", 503, "HYPERFLEET-SVC-001", "service-unavailable",
         "Service Unavailable"},
        {HFD_IO, 503, "RES-199", 503, "HYPERFLEET-SVC-001", "service-unavailable",
         "Service Unavailable"},
        {HFD_AWAY, 503, "RES-199", 503, "HYPERFLEET-SVC-001", "service-unavailable",
         "Service Unavailable"},
        {HFD_CORRUPT, 500, "RES-199", 500, "HYPERFLEET-INT-001", "internal-error",
         "Internal Server Error"},
        {HFD_DAMAGED, 500, "RES-199", 500, "HYPERFLEET-INT-001", "internal-error",
         "Internal Server Error"},
    };

    (void)state;
    assert_int_equal(sizeof(cases) / sizeof(cases[0]), HFD_RC_COUNT - 1);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct hfd_problem p = {
            .rc = cases[i].rc, .message = "row 7 of secret.db", .path = HFD_SLICE("/x")};
        char type[128];
        struct formatted f;

        p.dialect = HFD_DIALECT_DRIVER;
        f = format(p);
        assert_int_equal(f.reply.status, cases[i].driver_status);
        assert_int_equal(hfd_problem_status(HFD_DIALECT_DRIVER, cases[i].rc),
                         cases[i].driver_status);
        assert_string_equal(f.reply.content_type, "application/json");
        assert_int_equal(f.reply.retry_after_s > 0, f.reply.status == 503);
        assert_int_equal(json_object_size(f.doc), 2);
        assert_string_equal(text_of(f.doc, "error"), cases[i].driver_code);
        assert_int_equal(strstr(text_of(f.doc, "message"), "secret.db") == NULL,
                         f.reply.status >= 500 && cases[i].rc != HFD_DAMAGED &&
                             cases[i].rc != HFD_UNCHECKED);
        assert_int_equal(strstr(text_of(f.doc, "message"), ID) != NULL, f.reply.status >= 500);
        json_decref(f.doc);

        p.dialect = HFD_DIALECT_FLEET;
        f = format(p);
        assert_int_equal(f.reply.status, cases[i].fleet_status);
        assert_string_equal(f.reply.content_type, "application/problem+json");
        assert_int_equal(f.reply.retry_after_s > 0, f.reply.status == 503);
        (void)snprintf(type, sizeof(type), "https://api.hyperfleet.io/errors/%s", cases[i].type);
        assert_string_equal(text_of(f.doc, "type"), type);
        assert_string_equal(text_of(f.doc, "title"), cases[i].title);
        assert_string_equal(text_of(f.doc, "code"), cases[i].fleet_code);
        assert_string_equal(text_of(f.doc, "instance"), "/x");
        assert_string_equal(text_of(f.doc, "timestamp"), "2025-01-01T00:00:00Z");
        assert_string_equal(text_of(f.doc, "trace_id"), ID);
        assert_int_equal(json_integer_value(json_object_get(f.doc, "status")),
                         cases[i].fleet_status);
        assert_int_equal(strstr(text_of(f.doc, "detail"), "secret.db") == NULL,
                         f.reply.status >= 500 && cases[i].rc != HFD_DAMAGED &&
                             cases[i].rc != HFD_UNCHECKED);
        assert_null(json_object_get(f.doc, "errors"));
        json_decref(f.doc);
    }
}

/*
 * A 400 of the driver names the resource at its end, for which a long message makes room, between
 * characters; other errors do not.
 */
static void the_resource_is_named(void **state)
{
    static char text[600];
    struct hfd_problem p = {.rc = HFD_INVALID,
                            .message = "no",
                            .path = HFD_SLICE("/x"),
                            .resource = HFD_SLICE("res-1")};
    struct formatted f;

    (void)state;
    p.dialect = HFD_DIALECT_DRIVER;
    f = format(p);
    assert_string_equal(text_of(f.doc, "message"), "no (resource res-1)");
    json_decref(f.doc);
    for (size_t shift = 0; shift < 3; shift++) {
        const char *message;

        memset(text, 'x', shift);
        for (size_t i = shift; i + 3 < sizeof(text); i += 3)
            memcpy(text + i, "\xe2\x82\xac", 3);
        p.message = text;
        f = format(p);
        message = text_of(f.doc, "message");
        assert_in_range(strlen(message), 497, 500);
        assert_string_equal(message + strlen(message) - 17, " (resource res-1)");
        json_decref(f.doc);
    }
    p.rc = HFD_BUSY;
    f = format(p);
    assert_null(strstr(text_of(f.doc, "message"), "resource"));
    json_decref(f.doc);
    p.rc = HFD_INVALID;
    p.message = "no";
    p.dialect = HFD_DIALECT_FLEET;
    f = format(p);
    assert_string_equal(text_of(f.doc, "detail"), "no");
    json_decref(f.doc);
}

/* A field leads the driver's message, once, and stands in errors[] of HyperFleet's. */
static void fields_are_named(void **state)
{
    struct hfd_problem p = {.rc = HFD_INVALID,
                            .field = "driver.values.name",
                            .message = "expected a string",
                            .path = HFD_SLICE("/x")};
    struct formatted f;
    json_t *entry;

    (void)state;
    p.dialect = HFD_DIALECT_DRIVER;
    f = format(p);
    assert_string_equal(text_of(f.doc, "message"), "driver.values.name: expected a string");
    json_decref(f.doc);
    p.message = "driver.values.name: expected a string";
    f = format(p);
    assert_string_equal(text_of(f.doc, "message"), "driver.values.name: expected a string");
    json_decref(f.doc);

    p = (struct hfd_problem){.dialect = HFD_DIALECT_FLEET,
                             .rc = HFD_INVALID,
                             .field = "spec.region",
                             .message = "is wrong"};
    f = format(p);
    assert_string_equal(text_of(f.doc, "detail"), "is wrong");
    assert_null(json_object_get(f.doc, "instance"));
    assert_int_equal(json_array_size(json_object_get(f.doc, "errors")), 1);
    entry = json_array_get(json_object_get(f.doc, "errors"), 0);
    assert_string_equal(text_of(entry, "field"), "spec.region");
    assert_string_equal(text_of(entry, "message"), "is wrong");
    json_decref(f.doc);
}

/*
 * The driver's 400 has its mistakes in the details, without the field in front of the message. The
 * message says how many more there are, also when it is cut for that.
 */
static void mistakes_are_in_the_details(void **state)
{
    static char text[600];
    struct hfd_violations two = {
        .items = {{.field = HFD_SLICE("a.b"), .message = HFD_SLICE("no"), .constraint = ""},
                  {.field = HFD_SLICE("c"), .message = HFD_SLICE("nor this"), .constraint = ""}},
        .count = 2};
    struct hfd_problem p = {.dialect = HFD_DIALECT_DRIVER,
                            .rc = HFD_INVALID,
                            .field = "a.b",
                            .message = "a.b: no",
                            .resource = HFD_SLICE("res-1")};
    struct formatted f = format(p);
    const json_t *errors;
    size_t len;

    (void)state;
    errors = json_object_get(json_object_get(f.doc, "details"), "errors");
    assert_int_equal(json_array_size(errors), 1);
    assert_string_equal(text_of(json_array_get(errors, 0), "field"), "a.b");
    assert_string_equal(text_of(json_array_get(errors, 0), "message"), "no");
    json_decref(f.doc);
    p.fields = &two;
    f = format(p);
    assert_string_equal(text_of(f.doc, "message"), "a.b: no; and 1 more (resource res-1)");
    errors = json_object_get(json_object_get(f.doc, "details"), "errors");
    assert_int_equal(json_array_size(errors), 2);
    assert_string_equal(text_of(json_array_get(errors, 1), "message"), "nor this");
    json_decref(f.doc);
    memset(text, 'x', sizeof(text) - 1);
    p.message = text;
    two.count = HFD_VIOLATIONS_MAX;
    for (size_t i = 2; i < HFD_VIOLATIONS_MAX; i++)
        two.items[i] = two.items[0];
    f = format(p);
    len = strlen(text_of(f.doc, "message"));
    assert_int_equal(len, 500);
    assert_non_null(strstr(text_of(f.doc, "message"), "xx; and at least 19 more (resource res-1)"));
    json_decref(f.doc);
    p.rc = HFD_BUSY;
    f = format(p);
    assert_null(json_object_get(f.doc, "details"));
    json_decref(f.doc);
}

/* Without a message the code's own text is said. */
static void a_message_is_never_empty(void **state)
{
    struct formatted f =
        format((struct hfd_problem){.dialect = HFD_DIALECT_DRIVER, .rc = HFD_COOKIE});

    (void)state;
    assert_string_equal(text_of(f.doc, "message"), hfd_rc_text(HFD_COOKIE));
    json_decref(f.doc);
    f = format(
        (struct hfd_problem){.dialect = HFD_DIALECT_FLEET, .rc = HFD_MALFORMED, .message = ""});
    assert_string_equal(text_of(f.doc, "detail"), hfd_rc_text(HFD_MALFORMED));
    json_decref(f.doc);
}

/* The router's 404 and the statuses of the door keep the form of the dialect. */
static void the_door_speaks_the_dialect(void **state)
{
    struct hfd_problem p = {.dialect = HFD_DIALECT_FLEET,
                            .rc = HFD_NOT_FOUND,
                            .status = 404,
                            .unknown_route = true,
                            .message = "m"};
    struct formatted f = format(p);

    (void)state;
    assert_int_equal(f.reply.status, 404);
    assert_string_equal(text_of(f.doc, "code"), "HYPERFLEET-NTF-000");
    assert_string_equal(text_of(f.doc, "title"), "Endpoint Not Found");
    json_decref(f.doc);
    p.dialect = HFD_DIALECT_DRIVER;
    f = format(p);
    assert_int_equal(f.reply.status, 404);
    assert_string_equal(text_of(f.doc, "error"), "RES-101");
    json_decref(f.doc);
    p = (struct hfd_problem){
        .dialect = HFD_DIALECT_FLEET, .rc = HFD_BAD_REQUEST, .status = 405, .message = "not that"};
    f = format(p);
    assert_int_equal(f.reply.status, 405);
    assert_string_equal(text_of(f.doc, "code"), "HYPERFLEET-VAL-005");
    assert_string_equal(text_of(f.doc, "type"), "https://api.hyperfleet.io/errors/bad-request");
    assert_string_equal(text_of(f.doc, "title"), "Bad Request");
    json_decref(f.doc);
    p = (struct hfd_problem){.dialect = HFD_DIALECT_OPS,
                             .rc = HFD_BAD_REQUEST,
                             .status = 405,
                             .message = "not \"that\""};
    f = format(p);
    assert_int_equal(f.reply.status, 405);
    assert_string_equal(text_of(f.doc, "error"), "BAD_REQUEST");
    assert_string_equal(text_of(f.doc, "message"), "not \"that\"");
    json_decref(f.doc);
}

/* A message ends at 500 bytes, between two characters. */
static void long_messages_are_cut(void **state)
{
    char message[800];
    struct formatted f;

    (void)state;
    message[0] = 'x';
    for (size_t i = 1; i + 1 < sizeof(message); i += 2)
        memcpy(message + i, "\xc3\xa4", 2);
    message[sizeof(message) - 1] = '\0';
    f = format(
        (struct hfd_problem){.dialect = HFD_DIALECT_DRIVER, .rc = HFD_INVALID, .message = message});
    assert_int_equal(strlen(text_of(f.doc, "message")), 499);
    assert_memory_equal(text_of(f.doc, "message"), message, 499);
    json_decref(f.doc);
}

/* The call that finishes a reply notices a buffer that is too small. */
static void a_small_buffer_is_noticed(void **state)
{
    struct hfd_reply reply;
    struct hfd_buf b;

    (void)state;
    hfd_buf_init(&b, 40);
    hfd_problem_format(&(struct hfd_problem){.dialect = HFD_DIALECT_FLEET, .rc = HFD_INVALID}, &b,
                       &reply);
    assert_int_equal(b.rc, HFD_LIMIT);
    assert_int_equal(reply.status, 400);
    hfd_buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_become_answers),
        cmocka_unit_test(fields_are_named),
        cmocka_unit_test(the_resource_is_named),
        cmocka_unit_test(a_message_is_never_empty),
        cmocka_unit_test(mistakes_are_in_the_details),
        cmocka_unit_test(the_door_speaks_the_dialect),
        cmocka_unit_test(long_messages_are_cut),
        cmocka_unit_test(a_small_buffer_is_noticed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
