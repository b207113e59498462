/*
 * The validation rules of PacemakerCluster: every accepted and every refused document, by the row
 * numbers of the researched list (rows 1 to 74). Rows 12 to 15 and 22 to 25 need the stored
 * document and are in test_health_verdict.c.
 */
#include "driver/base/arena.h"
#include "driver/base/jsonx.h"
#include "driver/health/document.h"

#include "tests/lib/health_doc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define MEM_MAX ((size_t)8 << 20)

/* A check, with the memory of its violations. */
struct checked {
    struct hfd_arena mem;
    struct hfd_health_violations found;
    struct hfd_err err;
    hfd_rc rc;
};

static void check_open(struct checked *c, json_t *doc)
{
    struct hfd_health_reading reading;

    hfd_arena_init(&c->mem, MEM_MAX);
    c->err = (struct hfd_err){.rc = HFD_OK};
    c->rc = hfd_health_read(doc, "", &c->mem, &reading, &c->err);
    c->found = reading.violations;
}

static void check_close(struct checked *c)
{
    hfd_arena_fini(&c->mem);
}

static bool contains(hfd_slice text, const char *part)
{
    return memmem(text.p, text.len, part, strlen(part)) != NULL;
}

/* One change of D, and what is said of it. rule NULL: the document is accepted. */
struct row {
    const char *name;
    const char *path; /* health_doc_set; NULL = no edit */
    const char *json; /* NULL removes */
    const char *fill; /* health_doc_fill before the edit; NULL = none */
    size_t count;
    const char *key;
    const char *rule;
    const char *field; /* NULL = not looked at */
    const char *says;  /* part of the message; NULL = not looked at */
};

static void run(const struct row *row)
{
    json_t *doc = health_doc(2);
    struct checked c;

    print_message("row %s\n", row->name);
    if (row->fill != NULL)
        health_doc_fill(doc, row->fill, row->count, row->key);
    if (row->path != NULL)
        health_doc_set(doc, row->path, row->json);
    check_open(&c, doc);
    if (row->rule == NULL) {
        if (c.rc != HFD_OK)
            fail_msg("row %s: %s", row->name, c.err.msg);
    } else {
        assert_int_equal(c.rc, HFD_INVALID);
        assert_int_equal(c.found.count, 1);
        assert_string_equal(c.found.items[0].rule, row->rule);
        if (row->field != NULL && !hfd_slice_eq(c.found.items[0].field, hfd_slice_of(row->field)))
            fail_msg("row %s: field %.*s", row->name, HFD_SLICE_FMT(c.found.items[0].field));
        if (row->says != NULL && !contains(c.found.items[0].message, row->says))
            fail_msg("row %s: %.*s", row->name, HFD_SLICE_FMT(c.found.items[0].message));
    }
    check_close(&c);
    json_decref(doc);
}

#define ADDRESS "status/nodes/0/addresses/0/address"
#define NODE_NAME "status/nodes/0/nodeName"
#define AGENT "status/nodes/0/fencingAgents/0"
#define CONDITION "status/nodes/0/conditions/0"
#define TEXT253                                                                                    \
    "a1234567890123456789012345678901234567890123456789012345678901234567890123456789"             \
    "12345678901234567890123456789012345678901234567890123456789012345678901234567890"             \
    "12345678901234567890123456789012345678901234567890123456789012345678901234567890"             \
    "1234567890123"
#define TEXT300 TEXT253 "12345678901234567890123456789012345678901234567"

/* clang-format off */
#define SET(n, p, j, r, f, s) {.name = n, .path = p, .json = j, .rule = r, .field = f, .says = s}
#define FILL(n, l, c, k, r, f, s) {.name = n, .fill = l, .count = c, .key = k, .rule = r, .field = f, .says = s}
static const struct row rows[] = {
    SET("0 the base document", NULL, NULL, NULL, NULL, NULL),
    SET("1 no status", "status", NULL, NULL, NULL, NULL),
    SET("1 status null", "status", "null", NULL, NULL, NULL),
    SET("1 status a string", "status", "\"x\"", "R2", "status", "expected an object, got a string"),
    SET("2", "metadata/name", "\"wrong-name\"", "R1", "metadata.name", "PacemakerCluster must be named 'cluster'"),
    SET("2 no name", "metadata/name", NULL, "R1", "metadata.name", "is required"),
    SET("2 no metadata", "metadata", NULL, "R22", "metadata", "is required"),
    SET("2 labels", "metadata/labels", "{\"a\":\"b\"}", NULL, NULL, NULL),
    SET("2 labels not strings", "metadata/labels", "{\"a\":1}", "R22", "metadata.labels", "strings"),
    SET("2 labels a list", "metadata/labels", "[]", "R22", "metadata.labels", "expected an object"),
    SET("2 annotations not strings", "metadata/annotations", "{\"a\":[]}", "R22", "metadata.annotations", "strings"),
    SET("16 absent", "status/conditions", NULL, "R5", "status.conditions", "is required"),
    SET("51 absent", "status/nodes/0/conditions", NULL, "R13", "status.nodes[0].conditions", "is required"),
    SET("54 absent", "status/nodes/0/resources/0/conditions", NULL, "R16", "status.nodes[0].resources[0].conditions", "is required"),
    SET("62 absent", AGENT "/name", NULL, "R18", "status.nodes[0].fencingAgents[0].name", "is required"),
    FILL("3", "status/nodes", 1, NULL, NULL, NULL, NULL),
    SET("4", "status/conditions/Healthy/type", "\"Extra\"", "R6", "status.conditions", "must contain a condition of type Healthy"),
    SET("5", "status/nodes/0/conditions/FencingAvailable/type", "\"Extra\"", "R13", "status.nodes[0].conditions",
        "must contain a condition of type FencingAvailable"),
    SET("6", ADDRESS, "\"127.0.0.1\"", "R12", "status.nodes[0].addresses[0].address",
        "must be a valid global unicast IPv4 or IPv6 address in canonical form"),
    SET("7", ADDRESS, "\"not-an-ip\"", "R12", NULL, NULL),
    SET("7 a number", ADDRESS, "7", "R12", NULL, "expected a string, got a"),
    SET("7 empty", ADDRESS, "\"\"", "R12", NULL, "must not be empty"),
    SET("7 absent", ADDRESS, NULL, "R12", NULL, "is required"),
    SET("8", ADDRESS, "\"2001:db8::1\"", NULL, NULL, NULL),
    SET("9", ADDRESS, "\"::1\"", "R12", NULL, NULL),
    SET("10", ADDRESS, "\"fe80::1\"", "R12", NULL, NULL),
    SET("11 Clean=False, Healthy=True", "status/nodes/0/conditions/Clean/status", "\"False\"", NULL, NULL, NULL),
    FILL("11 a 4th condition", "status/conditions", 4, "type", NULL, NULL, NULL),
    FILL("17 8", "status/conditions", 8, "type", NULL, NULL, NULL),
    FILL("17 9", "status/conditions", 9, "type", "R5", "status.conditions", "at most 8 items, has 9"),
    SET("18 InService", "status/conditions/InService/type", "\"Extra\"", "R6", NULL, "of type InService"),
    SET("18 NodeCountAsExpected", "status/conditions/NodeCountAsExpected/type", "\"Extra\"", "R6", NULL, "of type NodeCountAsExpected"),
    FILL("19", "status/conditions", 4, NULL, "R5", "status.conditions[3]", "item 2 has the same type"),
    SET("20", "status/lastUpdated", NULL, "R7", "status.lastUpdated", "is required"),
    SET("20 null", "status/lastUpdated", "null", "R7", "status.lastUpdated", "is required"),
    SET("21 yesterday", "status/lastUpdated", "\"yesterday\"", "R7", "status.lastUpdated", "RFC 3339"),
    SET("21 month 13", "status/lastUpdated", "\"2024-13-01T00:00:00Z\"", "R7", NULL, "RFC 3339"),
    SET("21 number", "status/lastUpdated", "1735689600", "R7", NULL, "expected a string"),
    SET("24 offset", "status/lastUpdated", "\"2025-01-01T02:00:00+02:00\"", NULL, NULL, NULL),
    SET("26", "status/nodes", "[]", NULL, NULL, NULL),
    SET("27 absent", "status/nodes", NULL, "R8", "status.nodes", "is required"),
    SET("27 null", "status/nodes", "null", "R8", "status.nodes", "is required"),
    SET("27 an object", "status/nodes", "{}", "R8", "status.nodes", "expected an array"),
    SET("27 an item that is no object", "status/nodes/1", "3", "R8", "status.nodes[1]", "expected an object"),
    FILL("28 5", "status/nodes", 5, "nodeName", NULL, NULL, NULL),
    FILL("28 6", "status/nodes", 6, "nodeName", "R8", "status.nodes", "at most 5 items, has 6"),
    SET("29", "status/nodes/1/nodeName", "\"master-0\"", "R8", "status.nodes[1]", "item 0 has the same nodeName"),
    SET("30 Master-0", NODE_NAME, "\"Master-0\"", "R9", "status.nodes[0].nodeName", "lowercase RFC 1123 subdomain"),
    SET("30 master_0", NODE_NAME, "\"master_0\"", "R9", NULL, "RFC 1123"),
    SET("30 -a", NODE_NAME, "\"-a\"", "R9", NULL, "RFC 1123"),
    SET("30 a-", NODE_NAME, "\"a-\"", "R9", NULL, "RFC 1123"),
    SET("30 a..b", NODE_NAME, "\"a..b\"", "R9", NULL, "RFC 1123"),
    SET("30 .a", NODE_NAME, "\".a\"", "R9", NULL, "RFC 1123"),
    SET("30 a.", NODE_NAME, "\"a.\"", "R9", NULL, "RFC 1123"),
    SET("30 empty", NODE_NAME, "\"\"", "R9", NULL, "must not be empty"),
    SET("30 absent", NODE_NAME, NULL, "R9", NULL, "is required"),
    SET("31 253", NODE_NAME, "\"" TEXT253 "\"", NULL, NULL, NULL),
    SET("31 254", NODE_NAME, "\"" TEXT253 "1\"", "R9", NULL, "at most 253 characters, has 254"),
    SET("31 ends of the alphabet", NODE_NAME, "\"z-9.0-a\"", NULL, NULL, NULL),
    SET("32", NODE_NAME, "\"a123456789012345678901234567890123456789012345678901234567890123\"", NULL, NULL, NULL),
    SET("33", NODE_NAME, "\"10.0.0.1\"", NULL, NULL, NULL),
    SET("34 empty", "status/nodes/0/addresses", "[]", "R10", "status.nodes[0].addresses", "at least 1 items, has 0"),
    SET("34 absent", "status/nodes/0/addresses", NULL, "R10", "status.nodes[0].addresses", "is required"),
    FILL("35 8", "status/nodes/0/addresses", 8, NULL, NULL, NULL, NULL),
    FILL("35 9", "status/nodes/0/addresses", 9, NULL, "R10", "status.nodes[0].addresses", "at most 8 items, has 9"),
    FILL("36", "status/nodes/0/addresses", 2, NULL, NULL, NULL, NULL),
    SET("37 ExternalIP", "status/nodes/0/addresses/0/type", "\"ExternalIP\"", "R11", "status.nodes[0].addresses[0].type", "InternalIP"),
    SET("37 absent", "status/nodes/0/addresses/0/type", NULL, "R11", NULL, "is required"),
    SET("37 internalip", "status/nodes/0/addresses/0/type", "\"internalip\"", "R11", NULL, "InternalIP"),
    SET("50 40 characters", ADDRESS, "\"2001:0db8:1111:2222:3333:4444:5555:66660\"", "R12", NULL, "at most 39 characters, has 40"),
    FILL("51 16", "status/nodes/0/conditions", 16, "type", NULL, NULL, NULL),
    FILL("51 17", "status/nodes/0/conditions", 17, "type", "R13", "status.nodes[0].conditions", "at most 16 items, has 17"),
    SET("53 absent", "status/nodes/0/resources", NULL, "R14", "status.nodes[0].resources", "is required"),
    FILL("57 16", "status/nodes/0/resources/0/conditions", 16, "type", NULL, NULL, NULL),
    FILL("57 17", "status/nodes/0/resources/0/conditions", 17, "type", "R16", "status.nodes[0].resources[0].conditions", "has 17"),
    SET("58 empty", "status/nodes/0/fencingAgents", "[]", "R17", "status.nodes[0].fencingAgents", "at least 1 items, has 0"),
    SET("58 absent", "status/nodes/0/fencingAgents", NULL, "R17", "status.nodes[0].fencingAgents", "is required"),
    FILL("59 8", "status/nodes/0/fencingAgents", 8, "name", NULL, NULL, NULL),
    FILL("59 9", "status/nodes/0/fencingAgents", 9, "name", "R17", "status.nodes[0].fencingAgents", "at most 8 items, has 9"),
    FILL("60", "status/nodes/0/fencingAgents", 2, NULL, "R17", "status.nodes[0].fencingAgents[1]", "fencing agent names must be unique"),
    SET("61", "status/nodes/1/fencingAgents/0/name", "\"master-0_redfish\"", NULL, NULL, NULL),
    SET("62 a b", AGENT "/name", "\"a b\"", "R18", "status.nodes[0].fencingAgents[0].name",
        "name must contain only alphanumeric characters, dots, hyphens, and underscores"),
    SET("62 a/b", AGENT "/name", "\"a/b\"", "R18", NULL, "alphanumeric"),
    SET("62 e acute", AGENT "/name", "\"\\u00e9\"", "R18", NULL, "alphanumeric"),
    SET("62 empty", AGENT "/name", "\"\"", "R18", NULL, "must not be empty"),
    SET("62 a backslash", AGENT "/name", "\"a\\\\u0000\"", "R18", NULL, NULL),
    SET("63 300", AGENT "/name", "\"" TEXT300 "\"", NULL, NULL, NULL),
    SET("63 301", AGENT "/name", "\"" TEXT300 "1\"", "R18", NULL, "at most 300 characters, has 301"),
    SET("64 redfish", AGENT "/method", "\"redfish\"", "R19", "status.nodes[0].fencingAgents[0].method", "Redfish or IPMI"),
    SET("64 SBD", AGENT "/method", "\"SBD\"", "R19", NULL, "Redfish or IPMI"),
    SET("64 absent", AGENT "/method", NULL, "R19", NULL, "is required"),
    SET("65", AGENT "/method", "\"IPMI\"", NULL, NULL, NULL),
    SET("66 no conditions", AGENT "/conditions", NULL, "R20", "status.nodes[0].fencingAgents[0].conditions", "is required"),
    FILL("66 17", AGENT "/conditions", 17, "type", "R20", NULL, "at most 16 items, has 17"),
    SET("67 true", CONDITION "/status", "\"true\"", "R21", "status.nodes[0].conditions[0].status", "True, False or Unknown"),
    SET("67 a boolean", CONDITION "/status", "true", "R21", NULL, "expected a string"),
    SET("67 Maybe", CONDITION "/status", "\"Maybe\"", "R21", NULL, "True, False or Unknown"),
    SET("67 absent", CONDITION "/status", NULL, "R21", NULL, "is required"),
    SET("68", CONDITION "/status", "\"Unknown\"", NULL, NULL, NULL),
    SET("69 empty", CONDITION "/reason", "\"\"", "R21", "status.nodes[0].conditions[0].reason", "must not be empty"),
    SET("69 9x", CONDITION "/reason", "\"9x\"", "R21", NULL, "begin with a letter"),
    SET("69 has space", CONDITION "/reason", "\"has space\"", "R21", NULL, "begin with a letter"),
    SET("69 ends in a colon", CONDITION "/reason", "\"A:\"", "R21", NULL, "end in a letter"),
    SET("69 absent", CONDITION "/reason", NULL, "R21", NULL, "is required"),
    SET("70", CONDITION "/reason", "\"SomethingNew\"", NULL, NULL, NULL),
    SET("70 one letter", CONDITION "/reason", "\"a\"", NULL, NULL, NULL),
    SET("70 inside", CONDITION "/reason", "\"A:b,c_\"", NULL, NULL, NULL),
    SET("71 absent", CONDITION "/message", NULL, "R21", "status.nodes[0].conditions[0].message", "is required"),
    SET("71 empty", CONDITION "/message", "\"\"", NULL, NULL, NULL),
    SET("72 absent", CONDITION "/lastTransitionTime", NULL, "R21", "status.nodes[0].conditions[0].lastTransitionTime", "is required"),
    SET("72 bad", CONDITION "/lastTransitionTime", "\"soon\"", "R21", NULL, "RFC 3339"),
    SET("72 of Go's zero time", CONDITION "/lastTransitionTime", "\"0001-01-01T00:00:00Z\"", NULL, NULL, NULL),
    SET("72 generation -1", CONDITION "/observedGeneration", "-1", "R21", "status.nodes[0].conditions[0].observedGeneration", "at least 0"),
    SET("72 generation text", CONDITION "/observedGeneration", "\"1\"", "R21", NULL, "expected an integer"),
    SET("72 generation 0", CONDITION "/observedGeneration", "0", NULL, NULL, NULL),
    SET("73 alertAgents", "status/alertAgents", "[{\"name\":7}]", NULL, NULL, NULL),
    SET("73 failCount", "status/nodes/0/resources/0/failCount", "3", NULL, NULL, NULL),
    SET("73 lastFenceEvent", "status/nodes/0/lastFenceEvent", "{\"at\":\"x\"}", NULL, NULL, NULL),
    SET("R21 qualified type", "status/nodes/0/conditions/-", "{\"type\":\"example.com/Extra\",\"status\":\"True\",\"reason\":\"A\","
        "\"message\":\"\",\"lastTransitionTime\":\"2024-01-01T00:00:00Z\"}", NULL, NULL, NULL),
    SET("R21 type with a space", "status/nodes/0/conditions/-", "{\"type\":\"a b\",\"status\":\"True\",\"reason\":\"A\","
        "\"message\":\"\",\"lastTransitionTime\":\"2024-01-01T00:00:00Z\"}", "R21", "status.nodes[0].conditions[9].type", "qualified name"),
    SET("R21 type with a capital prefix", "status/nodes/0/conditions/-", "{\"type\":\"Example/x\",\"status\":\"True\",\"reason\":\"A\","
        "\"message\":\"\",\"lastTransitionTime\":\"2024-01-01T00:00:00Z\"}", "R21", NULL, "qualified name"),
    SET("R21 type without a name", "status/nodes/0/conditions/-", "{\"type\":\"example.com/\",\"status\":\"True\",\"reason\":\"A\","
        "\"message\":\"\",\"lastTransitionTime\":\"2024-01-01T00:00:00Z\"}", "R21", NULL, "qualified name"),
    SET("R22 v1", "apiVersion", "\"etcd.openshift.io/v1\"", NULL, NULL, NULL),
    SET("R22 other version", "apiVersion", "\"etcd.openshift.io/v2\"", "R22", "apiVersion", "etcd.openshift.io/v1alpha1"),
    SET("R22 no version", "apiVersion", NULL, "R22", "apiVersion", "is required"),
    SET("R22 other kind", "kind", "\"Pacemaker\"", "R22", "kind", "must be PacemakerCluster"),
};
/* clang-format on */

static void each_row(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        run(&rows[i]);
}

/* A list below its minimum: rows 16, 51, 53 and 57. The missing types are listed as well. */
static void counts_too_small(void **state)
{
    static const struct {
        const char *name, *path, *says, *rule;
        size_t count, violations;
    } cases[] = {
        {"16", "status/conditions", "at least 3 items, has 2", "R5", 2, 2},
        {"51", "status/nodes/0/conditions", "at least 9 items, has 8", "R13", 8, 2},
        {"53 only Kubelet", "status/nodes/0/resources", "at least 2 items, has 1", "R14", 1, 2},
        {"57", "status/nodes/0/resources/0/conditions", "at least 8 items, has 7", "R16", 7, 2},
        {"66", "status/nodes/0/fencingAgents/0/conditions", "at least 8 items, has 7", "R20", 7, 2},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        json_t *doc = health_doc(2);
        struct checked c;

        health_doc_fill(doc, cases[i].path, cases[i].count, NULL);
        check_open(&c, doc);
        assert_int_equal(c.rc, HFD_INVALID);
        assert_int_equal(c.found.count, cases[i].violations);
        assert_string_equal(c.found.items[0].rule, cases[i].rule);
        assert_true(contains(c.found.items[0].message, cases[i].says));
        assert_true(contains(c.found.items[1].message, "must contain a"));
        check_close(&c);
        json_decref(doc);
    }
}

/* Rows 53 to 55: what resources there must be, and what else there may be. */
static void resources_are_kubelet_and_etcd(void **state)
{
    static const struct {
        const char *name; /* of the second resource, or of a third */
        size_t at;
        const char *rule, *says;
    } cases[] = {
        {"Kubelet", 2, "R14", "item 0 has the same name"},
        {"FencingAgent", 2, "R15", "must be Kubelet or Etcd"},
        {"Pacemaker", 2, "R15", "must be Kubelet or Etcd"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        json_t *doc = health_doc(2);
        char name[32];
        struct checked c;

        health_doc_fill(doc, "status/nodes/0/resources", 3, "name");
        (void)snprintf(name, sizeof(name), "\"%s\"", cases[i].name);
        health_doc_set(doc, "status/nodes/0/resources/2/name", name);
        check_open(&c, doc);
        assert_int_equal(c.found.count, 1);
        assert_string_equal(c.found.items[0].rule, cases[i].rule);
        assert_true(contains(c.found.items[0].message, cases[i].says));
        check_close(&c);
        json_decref(doc);
    }
}

/* The types that a list must contain, each left out in turn: rows 18, 52, 56 and 66. */
static void every_type_is_needed(void **state)
{
    static const struct {
        const char *list, *rule;
        size_t count;
    } lists[] = {
        {"status/conditions", "R6", 3},
        {"status/nodes/0/conditions", "R13", 9},
        {"status/nodes/1/resources/0/conditions", "R16", 8},
        {"status/nodes/0/resources/1/conditions", "R16", 8},
        {"status/nodes/1/fencingAgents/0/conditions", "R20", 8},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        for (size_t k = 0; k < lists[i].count; k++) {
            json_t *doc = health_doc(2), *was = health_doc(2);
            char path[96], says[96];
            const char *type;
            struct checked c;

            (void)snprintf(path, sizeof(path), "/%s/%zu/type", lists[i].list, k);
            type = json_string_value(hfd_json_pointer(was, hfd_slice_of(path)));
            assert_non_null(type);
            (void)snprintf(says, sizeof(says), "conditions must contain a condition of type %s",
                           type);
            health_doc_set(doc, path + 1, "\"Extra\"");
            check_open(&c, doc);
            assert_int_equal(c.found.count, 1);
            assert_string_equal(c.found.items[0].rule, lists[i].rule);
            assert_true(hfd_slice_is(c.found.items[0].message, says));
            check_close(&c);
            json_decref(doc);
            json_decref(was);
        }
    }
}

/* Rows 71, and the two other long texts: the limit, and one more character, which is no byte. */
static void long_texts(void **state)
{
    static const struct {
        const char *field;
        size_t max;
        const char *unit; /* one character of two bytes where the field may have it */
    } cases[] = {{"message", 32768, "\xc3\xa9"}, {"reason", 1024, "a"}, {"type", 316, "a"}};
    static char text[2 * 32769 + 1];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (size_t more = 0; more < 2; more++) {
            json_t *doc = health_doc(2), *list;
            const size_t unit_len = strlen(cases[i].unit), count = cases[i].max + more;
            struct checked c;

            for (size_t k = 0; k < count; k++)
                memcpy(text + k * unit_len, cases[i].unit, unit_len);
            text[count * unit_len] = '\0';
            health_doc_fill(doc, "status/conditions", 4, "type");
            list = hfd_json_pointer(doc, HFD_SLICE("/status/conditions/3"));
            assert_int_equal(json_object_set_new(list, cases[i].field, json_string(text)), 0);
            check_open(&c, doc);
            assert_int_equal(c.rc, more == 0 ? HFD_OK : HFD_INVALID);
            if (more == 1)
                assert_string_equal(c.found.items[0].rule, "R21");
            check_close(&c);
            json_decref(doc);
        }
    }
}

/* Labels have a ceiling, as everything else. */
static void labels_are_few(void **state)
{
    static const char *const fields[] = {"labels", "annotations"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        json_t *doc = health_doc(2), *strings = json_object();
        struct checked c;
        char key[16];

        assert_int_equal(json_object_set_new(json_object_get(doc, "metadata"), fields[i], strings),
                         0);
        for (size_t n = 1; n <= 65; n++) {
            (void)snprintf(key, sizeof(key), "k%zu", n);
            assert_int_equal(json_object_set_new(strings, key, json_string("v")), 0);
            check_open(&c, doc);
            assert_int_equal(c.rc, n <= 64 ? HFD_OK : HFD_INVALID);
            check_close(&c);
        }
        json_decref(doc);
    }
}

/* The last item that is allowed is looked at, and the first that is too many is counted. */
static void the_last_item_is_looked_at(void **state)
{
    json_t *doc = health_doc(2);
    struct checked c;

    (void)state;
    health_doc_fill(doc, "status/conditions", 8, "type");
    health_doc_set(doc, "status/conditions/7/type", "\"\"");
    check_open(&c, doc);
    assert_int_equal(c.found.count, 1);
    assert_true(hfd_slice_is(c.found.items[0].field, "status.conditions[7].type"));
    assert_true(contains(c.found.items[0].message, "must not be empty"));
    check_close(&c);
    json_decref(doc);
    doc = health_doc(2);
    for (size_t count = 8; count <= 9; count++) {
        health_doc_fill(doc, "status/nodes/0/resources", count, "name");
        check_open(&c, doc);
        assert_int_equal(contains(c.found.items[0].message, "at most 8 items"), count == 9);
        assert_int_equal(c.found.count, count == 8 ? 6 : 7); /* six names that are none */
        check_close(&c);
    }
    health_doc_set(doc, "status/nodes/0/resources/7/name", NULL);
    check_open(&c, doc);
    assert_true(contains(c.found.items[c.found.count - 1].message, "is required"));
    check_close(&c);
    json_decref(doc);
}

/* Returns whether a node may have this address. */
static bool is_address(const char *text, size_t len)
{
    json_t *doc = health_doc(1),
           *address = hfd_json_pointer(doc, HFD_SLICE("/status/nodes/0/addresses/0"));
    struct checked c;
    bool ok;

    assert_int_equal(json_object_set_new(address, "address", json_stringn(text, len)), 0);
    check_open(&c, doc);
    ok = c.rc == HFD_OK;
    if (!ok) {
        assert_int_equal(c.found.count, 1);
        assert_string_equal(c.found.items[0].rule, "R12");
    }
    check_close(&c);
    json_decref(doc);
    return ok;
}

/* Rows 6 to 10 and 38 to 50: the addresses of nodes. */
static void addresses(void **state)
{
    static const char *const good[] = {
        "192.168.1.1",
        "2001:db8::1",
        "2001:db8::1:0:0:1",
        "2001:db8:0:1:1:1:1:1",
        "10.0.0.1",
        "172.16.0.1",
        "fd00::1",
        "192.0.2.1",
        "240.0.0.1",
        "::102:304",
        "0.0.0.1",
        "1::",
        "1::8",
        "2001:db8:1111:2222:3333:4444:5555:6666",
        "2001:db8:0:1::1",
        "::2",
        "1:0:3:4:5:6:7:8",
        "::2:3:4:5:6:7",
        "0:2:3:4:5:6:7:8",
        "1:2:3:4:5:6:7:0",
        "64:ff9b::1",
        "255.255.255.254",
        "169.1.1.1",
        "1.254.0.1",
        "::fffe:0:1",
        "2001:db8:0:0:1::",
        "::ffff",
    };
    static const char *const bad[] = {
        "",
        "127.0.0.1",
        "127.255.0.1",
        "not-an-ip",
        "::1",
        "fe80::1",
        "febf::1",
        "192.168.001.001",
        "2001:0db8::1",
        "2001:DB8::1",
        "2001:db8:0:0:0:0:0:1",
        "2001:db8:0:1:0:0:0:1",
        "2001:db8:0:0:1::1",
        "2001:db8::1:1:1:1:1",
        "::ffff:10.0.0.1",
        "::ffff:a00:1",
        "fe80::1%eth0",
        "10.0.0.1/24",
        " 10.0.0.1",
        "10.0.0.1 ",
        "10.0.0",
        "1.2.3.256",
        "1.2.3.4.5",
        "1.2.3.",
        ".1.2.3",
        "1..2.3",
        "0.0.0.0",
        "::",
        "255.255.255.255",
        "169.254.1.1",
        "224.0.0.1",
        "239.1.1.1",
        "ff02::1",
        "::1.2.3.4",
        ":1",
        "1:",
        ":::",
        "1:::2",
        "1::2::3",
        "1:2:3:4:5:6:7",
        "1:2:3:4:5:6:7:8:9",
        "::1:2:3:4:5:6:7:8",
        "1:2:3:4:5:6:7:8::",
        "12345::",
        "g::1",
        "0x7f.1.1.1",
        "1:2:3:4:5:6:1.2.3.4",
        "[::2]",
        "2001:db8::1%1",
        "+1.2.3.4",
        "1.2.3.+4",
        "1.2.3.0004",
        "0::1:2",
        "::0:1:2",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        if (!is_address(good[i], strlen(good[i])))
            fail_msg("%s is refused", good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (is_address(bad[i], strlen(bad[i])))
            fail_msg("%s is accepted", bad[i]);
    assert_false(is_address("10.0.0.1\0", 9));
}

/* Row 74: all faults, in the order of the document. */
static void every_fault_is_listed(void **state)
{
    static const struct {
        const char *path, *json, *rule, *field;
    } faults[] = {
        {"kind", "\"x\"", "R22", "kind"},
        {"metadata/name", "\"x\"", "R1", "metadata.name"},
        {"status/conditions/1/reason", "\"\"", "R21", "status.conditions[1].reason"},
        {"status/lastUpdated", NULL, "R7", "status.lastUpdated"},
        {"status/nodes/0/nodeName", "\"A\"", "R9", "status.nodes[0].nodeName"},
        {"status/nodes/0/addresses/0/address", "\"::1\"", "R12",
         "status.nodes[0].addresses[0].address"},
        {"status/nodes/0/conditions/0/status", "\"?\"", "R21",
         "status.nodes[0].conditions[0].status"},
        {"status/nodes/0/resources/1/conditions/7/message", NULL, "R21",
         "status.nodes[0].resources[1].conditions[7].message"},
        {"status/nodes/0/fencingAgents", "[]", "R17", "status.nodes[0].fencingAgents"},
        {"status/nodes/1/fencingAgents/0/method", "\"x\"", "R19",
         "status.nodes[1].fencingAgents[0].method"},
    };
    const size_t count = sizeof(faults) / sizeof(faults[0]);
    json_t *doc = health_doc(2);
    struct checked c;

    (void)state;
    for (size_t i = count; i-- > 0;)
        health_doc_set(doc, faults[i].path, faults[i].json);
    check_open(&c, doc);
    assert_int_equal(c.rc, HFD_INVALID);
    assert_int_equal(c.found.count, count);
    assert_int_equal(c.found.total, count);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(c.found.items[i].rule, faults[i].rule);
        assert_true(hfd_slice_is(c.found.items[i].field, faults[i].field));
    }
    assert_string_equal(c.err.msg, "kind: must be PacemakerCluster (and 9 more)");
    check_close(&c);
    json_decref(doc);
}

/* The root stands in front of every field, and what is no object is an error at the root. */
static void the_root_is_named(void **state)
{
    json_t *doc = json_pack("{}"), *text = json_string("x");
    struct hfd_health_reading reading;
    struct hfd_arena mem;

    (void)state;
    hfd_arena_init(&mem, MEM_MAX);
    assert_int_equal(hfd_health_read(doc, "data.pacemakerCluster", &mem, &reading, NULL),
                     HFD_INVALID);
    assert_int_equal(reading.violations.count, 3);
    assert_true(
        hfd_slice_is(reading.violations.items[0].field, "data.pacemakerCluster.apiVersion"));
    assert_int_equal(hfd_health_read(text, "data.pacemakerCluster", &mem, &reading, NULL),
                     HFD_INVALID);
    assert_true(hfd_slice_is(reading.violations.items[0].field, "data.pacemakerCluster"));
    assert_true(contains(reading.violations.items[0].message, "expected an object, got a string"));
    hfd_arena_fini(&mem);
    json_decref(doc);
    json_decref(text);
}

/* More items than are allowed are not looked at; violations beyond the list are counted. */
static void work_is_bounded(void **state)
{
    json_t *doc = health_doc(1), *nodes = hfd_json_pointer(doc, HFD_SLICE("/status/nodes")), *node;
    struct checked c;

    (void)state;
    health_doc_fill(doc, "status/conditions", 5000, NULL);
    check_open(&c, doc);
    assert_int_equal(c.found.count, 1 + 5); /* too many, and the equal ones among the first 8 */
    check_close(&c);
    health_doc_fill(doc, "status/conditions", 3, NULL);
    node = json_array_get(nodes, 0);
    health_doc_set(doc, "status/nodes/0/nodeName", "1");
    for (size_t k = 0; k < 2; k++) {
        json_t *units = json_object_get(node, k == 0 ? "resources" : "fencingAgents");

        health_doc_fill(doc, k == 0 ? "status/nodes/0/resources" : "status/nodes/0/fencingAgents",
                        8, "name");
        for (size_t i = 0; i < 8; i++) {
            json_t *list = json_object_get(json_array_get(units, i), "conditions");

            assert_int_equal(json_array_clear(list), 0);
            for (size_t n = 0; n < 16; n++)
                assert_int_equal(json_array_append_new(list, json_object()), 0);
        }
    }
    health_doc_fill(doc, "status/nodes", 5, NULL);
    check_open(&c, doc);
    assert_int_equal(c.rc, HFD_INVALID);
    assert_int_equal(c.found.count, HFD_HEALTH_VIOLATIONS_MAX);
    assert_true(c.found.total > 5 * 2 * 8 * 16 * 5);
    check_close(&c);
    json_decref(doc);
}

/* Row 73: what the rules do not name is dropped, at every level, and null with it. */
static void unknown_fields_are_dropped(void **state)
{
    json_t *doc = health_doc(2), *plain = health_doc(2);
    struct checked c;
    static const char *const places[] = {
        "extra",
        "metadata/resourceVersion",
        "status/alertAgents",
        "status/nodes/1/failCount",
        "status/nodes/0/addresses/0/x",
        "status/nodes/0/resources/1/lastStopTime",
        "status/nodes/1/fencingAgents/0/lastFenceEvent",
        "status/conditions/2/x",
        "status/nodes/0/fencingAgents/0/conditions/7/severity",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        health_doc_set(doc, places[i], "{\"nodes\":[1]}");
    health_doc_set(doc, "metadata/labels", "null");
    health_doc_set(doc, "metadata/annotations", "{\"a\":\"b\"}");
    health_doc_set(plain, "metadata/annotations", "{\"a\":\"b\"}");
    assert_false(json_equal(doc, plain));
    check_open(&c, doc);
    assert_int_equal(c.rc, HFD_OK);
    assert_true(json_equal(doc, plain));
    check_close(&c);
    json_decref(doc);
    json_decref(plain);
}

/* Each of R1 to R22 has a row with a text. */
static void the_table_is_whole(void **state)
{
    (void)state;
    for (int number = 1; number <= 22; number++) {
        struct hfd_health_rule_text rule;
        char want[8];
        bool found = false;

        (void)snprintf(want, sizeof(want), "R%d", number);
        for (size_t i = 0; hfd_health_rule_at(i, &rule); i++) {
            assert_true(strlen(rule.text) > 5 && strlen(rule.field) > 0);
            found = found || strcmp(rule.number, want) == 0;
        }
        if (!found)
            fail_msg("%s has no row", want);
    }
}

/* Short memory has its own error, wherever it runs out. */
static void memory_may_be_short(void **state)
{
    json_t *doc = health_doc(2);
    hfd_rc rc = HFD_NOMEM;
    size_t failed = 0;

    (void)state;
    health_doc_set(doc, "kind", NULL);
    health_doc_set(doc, "status/nodes/0/nodeName", "\"-\"");
    for (size_t max = 1; rc == HFD_NOMEM && max < MEM_MAX; max += 64) {
        struct hfd_health_reading reading;
        struct hfd_arena mem;

        hfd_arena_init(&mem, max);
        rc = hfd_health_read(doc, "", &mem, &reading, NULL);
        failed += rc == HFD_NOMEM;
        assert_true(rc == HFD_INVALID || reading.violations.count == 0);
        hfd_arena_fini(&mem);
    }
    assert_int_equal(rc, HFD_INVALID);
    assert_true(failed > 2);
    json_decref(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_row),
        cmocka_unit_test(counts_too_small),
        cmocka_unit_test(resources_are_kubelet_and_etcd),
        cmocka_unit_test(every_type_is_needed),
        cmocka_unit_test(long_texts),
        cmocka_unit_test(labels_are_few),
        cmocka_unit_test(the_last_item_is_looked_at),
        cmocka_unit_test(addresses),
        cmocka_unit_test(every_fault_is_listed),
        cmocka_unit_test(the_root_is_named),
        cmocka_unit_test(work_is_bounded),
        cmocka_unit_test(unknown_fields_are_dropped),
        cmocka_unit_test(the_table_is_whole),
        cmocka_unit_test(memory_may_be_short),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
