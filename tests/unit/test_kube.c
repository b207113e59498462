/* The Kubernetes client without a server: kubeconfigs, paths, answers, events, pauses. */
#include <stdio.h>
#include <stdlib.h>

#include "driver/kube/client.h"
#include "driver/kube/refusal.h"
#include "tests/lib/contains.h"
#include "tests/lib/tmpdir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define HEAD "apiVersion: v1\nkind: Config\ncurrent-context: x\n"
#define CONTEXT "contexts: [{name: x, context: {cluster: c, user: u, namespace: n}}]\n"
#define CLUSTER "clusters: [{name: c, cluster: {server: 'https://h:6443/'}}]\n"
#define USER "users: [{name: u, user: {token: t}}]\n"

static hfd_rc parse(const char *text, struct hfd_arena *mem, struct hfd_kube_access *out,
                    struct hfd_err *err)
{
    hfd_arena_init(mem, 1 << 20);
    return hfd_kubeconfig_parse(&(struct hfd_kubeconfig){hfd_slice_of(text), "/etc/k/config"}, mem,
                                out, err);
}

/* A token, and a server whose last slash goes. */
static void test_kubeconfig_token(void **state)
{
    struct hfd_kube_access access;
    struct hfd_arena mem;
    struct hfd_err err;

    (void)state;
    assert_int_equal(parse(HEAD CONTEXT CLUSTER USER, &mem, &access, &err), HFD_OK);
    assert_string_equal(access.server.p, "https://h:6443");
    assert_string_equal(access.token.text.p, "t");
    assert_string_equal(access.namespace.p, "n");
    hfd_arena_fini(&mem);
}

/* Data in base64, and files relative to the kubeconfig. */
static void test_kubeconfig_certificates(void **state)
{
    struct hfd_kube_access access;
    struct hfd_arena mem;
    struct hfd_err err;

    (void)state;
    assert_int_equal(parse(HEAD CONTEXT "clusters: [{name: c, cluster: {server: 'https://h', "
                                        "certificate-authority-data: 'LS0t'}}]\n"
                                        "users: [{name: u, user: {client-certificate: tls/a.pem, "
                                        "client-key: /b.pem}}]\n",
                           &mem, &access, &err),
                     HFD_OK);
    assert_string_equal(access.ca.text.p, "---");
    assert_string_equal(access.cert.file, "/etc/k/tls/a.pem");
    assert_string_equal(access.key.file, "/b.pem");
    hfd_arena_fini(&mem);
}

/* Entries that would be ignored or are unsafe are refused, and named. */
static void test_kubeconfig_refused(void **state)
{
    static const struct {
        const char *text, *words;
    } rows[] = {
        {HEAD CONTEXT CLUSTER "users: [{name: u, user: {exec: {command: aws}}}]\n",
         "exec: this driver runs no credential plugins"},
        {HEAD CONTEXT CLUSTER "users: [{name: u, user: {auth-provider: {name: gcp}}}]\n",
         "auth-provider"},
        {HEAD CONTEXT CLUSTER "users: [{name: u, user: {username: a, password: b}}]\n",
         "API servers take no passwords"},
        {HEAD CONTEXT CLUSTER "users: [{name: u, user: {token: t, as: root}}]\n",
         "does not impersonate"},
        {HEAD CONTEXT CLUSTER "users: [{name: u, user: {client-certificate-data: LS0t}}]\n",
         "client-certificate and client-key together"},
        {HEAD CONTEXT "clusters: [{name: c, cluster: {server: 'https://h', "
                      "insecure-skip-tls-verify: true}}]\n" USER,
         "insecure-skip-tls-verify: this driver verifies certificates"},
        {HEAD CONTEXT "clusters: [{name: c, cluster: {server: 'http://h'}}]\n" USER,
         "expected https://"},
        {HEAD CONTEXT "clusters: [{name: c, cluster: {server: 'http://127.0.0.1.evil:80'}}]\n" USER,
         "expected https://"},
        {HEAD CONTEXT "clusters: [{name: c, cluster: {server: 'http://localhost:1@evil'}}]\n" USER,
         "without user and password"},
        {HEAD CONTEXT "clusters: [{name: c, cluster: {server: 'https://h', "
                      "certificate-authority-data: '?'}}]\n" USER,
         "expected base64"},
        {HEAD CONTEXT CLUSTER "users: []\n", "users: expected an entry"},
        {HEAD CLUSTER USER, "contexts: expected an entry"},
        {"kind: Config\n", "current-context: expected the name"},
        {"[]", "expected a kubeconfig"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct hfd_kube_access access;
        struct hfd_arena mem;
        struct hfd_err err;

        assert_int_equal(parse(rows[i].text, &mem, &access, &err), HFD_INVALID);
        assert_contains(hfd_slice_of(err.msg), rows[i].words);
        assert_contains(hfd_slice_of(err.msg), "/etc/k/config");
        hfd_arena_fini(&mem);
    }
}

/* Outside a pod `in-cluster` says so. */
static void test_not_in_a_pod(void **state)
{
    const struct hfd_kube_pod pod = {NULL, NULL, HFD_KUBE_POD_FOLDER};
    struct hfd_kube_access access;
    struct hfd_arena mem;
    struct hfd_err err;

    (void)state;
    hfd_arena_init(&mem, 1 << 20);
    assert_int_equal(hfd_kube_in_cluster(&pod, &mem, &access, &err), HFD_INVALID);
    assert_contains(hfd_slice_of(err.msg), "KUBERNETES_SERVICE_HOST");
    hfd_arena_fini(&mem);
}

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[256];
    FILE *f;

    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

/* In a pod: the address of the environment, IPv6 too, and the files of the service account. */
static void test_in_a_pod(void **state)
{
    char folder[TMPDIR_MAX];
    const struct hfd_kube_pod pod = {"fd00::1", "443", folder};
    struct hfd_kube_access access;
    struct hfd_arena mem;
    struct hfd_err err;

    (void)state;
    tmpdir_make(folder);
    write_file(folder, "namespace", "driver\n");
    hfd_arena_init(&mem, 1 << 20);
    assert_int_equal(hfd_kube_in_cluster(&pod, &mem, &access, &err), HFD_OK);
    assert_string_equal(access.server.p, "https://[fd00::1]:443");
    assert_string_equal(access.namespace.p, "driver");
    assert_contains(hfd_slice_of(access.token.file), "/token");
    assert_contains(hfd_slice_of(access.ca.file), "/ca.crt");
    hfd_arena_fini(&mem);
    tmpdir_remove(folder);
}

/* Core and named groups, lists, cluster scope, and names that need escaping. */
static void test_paths(void **state)
{
    static const struct hfd_kube_type core = {"v1", "Secret", "secrets", false},
                                      named = {"a.b/v1", "Thing", "things", false},
                                      wide = {"v1", "Namespace", "namespaces", true};
    const struct {
        struct hfd_kube_object object;
        const char *path;
    } rows[] = {
        {{&core, HFD_SLICE("n"), HFD_SLICE("s")}, "/api/v1/namespaces/n/secrets/s"},
        {{&named, HFD_SLICE("n"), HFD_SLICE("")}, "/apis/a.b/v1/namespaces/n/things"},
        {{&named, HFD_SLICE(""), HFD_SLICE("")}, "/apis/a.b/v1/things"},
        {{&wide, HFD_SLICE(""), HFD_SLICE("n")}, "/api/v1/namespaces/n"},
        {{&core, HFD_SLICE("n"), HFD_SLICE("a/../b?c")},
         "/api/v1/namespaces/n/secrets/a%2F..%2Fb%3Fc"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct hfd_buf b;

        hfd_buf_init(&b, 1024);
        hfd_kube_path(&b, &rows[i].object);
        assert_true(hfd_slice_is(hfd_buf_slice(&b), rows[i].path));
        hfd_buf_fini(&b);
    }
}

#define STATUS(rest) "{\"kind\":\"Status\",\"apiVersion\":\"v1\"," rest "}"

static const struct {
    int status;
    const char *body; /* NULL = no JSON */
    enum hfd_kube_class class;
    const char *field, *words;
} answers[] = {
    {200, "{\"metadata\":{\"name\":\"x\"}}", HFD_KUBE_DONE, "", ""},
    {201, "{\"metadata\":{\"name\":\"x\"}}", HFD_KUBE_DONE, "", ""},
    {404, "404 page not found\n", HFD_KUBE_NO_TYPE, "", "404"},
    {404, STATUS("\"message\":\"m\",\"details\":{\"kind\":\"secrets\"}"), HFD_KUBE_ABSENT, "", "m"},
    {404, STATUS("\"message\":\"m\",\"details\":{\"kind\":\"namespaces\"}"), HFD_KUBE_NO_PLACE, "",
     "m"},
    {403, STATUS("\"message\":\"no\",\"reason\":\"Forbidden\""), HFD_KUBE_FORBIDDEN, "", "no"},
    {403,
     STATUS("\"message\":\"no\",\"details\":{\"causes\":[{\"reason\":\"NamespaceTerminating\","
            "\"field\":\"metadata.namespace\"}]}"),
     HFD_KUBE_NO_PLACE, "", "no"},
    {401, STATUS("\"message\":\"Unauthorized\""), HFD_KUBE_FORBIDDEN, "", "Unauthorized"},
    {409,
     STATUS("\"message\":\"m\",\"details\":{\"causes\":[{\"reason\":\"FieldManagerConflict\","
            "\"message\":\"conflict with \\\"x\\\"\",\"field\":\".spec.a\"}]}"),
     HFD_KUBE_CONFLICT, "spec.a", "spec.a: conflict with \"x\""},
    {409, STATUS("\"message\":\"the object has been modified\""), HFD_KUBE_AGAIN, "", "modified"},
    {422,
     STATUS("\"message\":\"m\",\"details\":{\"causes\":[{\"reason\":\"FieldValueInvalid\","
            "\"message\":\"left out\",\"field\":\"<nil>\"},{\"message\":\"bad\",\"field\":"
            "\".spec.replicas\"}]}"),
     HFD_KUBE_INVALID, "spec.replicas", "spec.replicas: bad"},
    {500,
     STATUS("\"message\":\"failed to create typed patch object (n/x; g/v, Kind=K): .spec.fips: "
            "expected boolean, got &{yes}\""),
     HFD_KUBE_INVALID, "spec.fips", ".spec.fips: expected boolean"},
    {500, STATUS("\"message\":\"etcd\""), HFD_KUBE_UNREACHABLE, "", "etcd"},
    {429, STATUS("\"message\":\"slow\""), HFD_KUBE_UNREACHABLE, "", "slow"},
    {408, STATUS("\"message\":\"late\""), HFD_KUBE_UNREACHABLE, "", "late"},
    {425, STATUS("\"message\":\"early\""), HFD_KUBE_UNREACHABLE, "", "early"},
    {503, NULL, HFD_KUBE_UNREACHABLE, "", "an answer that is not Kubernetes': 503, text/html"},
    {410, STATUS("\"message\":\"old\""), HFD_KUBE_EXPIRED, "", "old"},
    {413, STATUS("\"message\":\"large\""), HFD_KUBE_INVALID, "", "large"},
    {415, STATUS("\"message\":\"type\""), HFD_KUBE_INVALID, "", "type"},
    {400, STATUS("\"message\":\"name\""), HFD_KUBE_INVALID, "", "name"},
    {413, NULL, HFD_KUBE_FOREIGN, "", "an answer that is not Kubernetes': 413, text/html"},
    {200, NULL, HFD_KUBE_UNREACHABLE, "", "an answer that is not Kubernetes': 200, text/html"},
    {302, NULL, HFD_KUBE_UNREACHABLE, "", "an answer that is not Kubernetes': 302, text/html"},
};

/* An answer as the client makes it. @param body  NULL = a page */
static struct hfd_kube_answer answer_of(int status, const char *body, enum hfd_kube_asked asked)
{
    struct hfd_kube_answer a = {.status = status, .asked = asked};
    const hfd_slice text = hfd_slice_of(body != NULL ? body : "<html><h1>no</h1>");

    a.empty = text.len == 0;
    a.no_route = hfd_slice_starts(text, HFD_SLICE("404 page not found"));
    (void)snprintf(a.type, sizeof(a.type), body == NULL ? "text/html" : "application/json");
    if (hfd_json_parse(text, &a.doc, NULL) != HFD_OK)
        a.doc = NULL;
    return a;
}

/* Every row of the table in driver/kube/README.md. */
static void test_answers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        struct hfd_kube_answer answer =
            answer_of(answers[i].status, answers[i].body, HFD_KUBE_OBJECT);
        struct hfd_kube_refusal why;

        hfd_kube_judge(&answer, &why);
        if (why.class != answers[i].class)
            fail_msg("row %zu: class %d", i, (int)why.class);
        assert_true(hfd_slice_is(why.field, answers[i].field));
        assert_contains(hfd_slice_of(why.message), answers[i].words);
        assert_null(strstr(why.message, "<nil>"));
        hfd_kube_answer_fini(&answer);
    }
}

/*
 * Without a Status of the same number an answer is no word of Kubernetes. It ends no order, takes
 * no object for gone, and tells nothing of credentials.
 */
static void test_foreign_answers(void **state)
{
    static const char *const bodies[] = {
        "",
        NULL,
        "404 page is missing",
        "{}",
        "[]",
        "\"Status\"",
        "{\"message\":\"no Route matched\"}",
        "{\"kind\":\"Status\",\"apiVersion\":\"v2\",\"message\":\"m\"}",
        "{\"kind\":\"Error\",\"apiVersion\":\"v1\",\"message\":\"m\"}",
        STATUS("\"message\":\"m\",\"code\":299"),
        STATUS("\"message\":\"m\",\"code\":\"413\""),
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"mess",
        "{\"type\":\"about:blank\",\"title\":\"t\",\"code\":\"HYPERFLEET-VAL-000\"}",
    };
    static const enum hfd_kube_asked asked[] = {HFD_KUBE_OBJECT, HFD_KUBE_OBJECTS,
                                                HFD_KUBE_REMOVAL};

    (void)state;
    for (int status = 200; status <= 599; status++)
        for (size_t b = 0; b < sizeof(bodies) / sizeof(bodies[0]); b++)
            for (size_t k = 0; k < sizeof(asked) / sizeof(asked[0]); k++) {
                struct hfd_kube_answer a = answer_of(status, bodies[b], asked[k]);
                const bool busy = status < 400 || hfd_peer_is_busy(status);
                struct hfd_kube_refusal why;
                char words[64];

                /* A deletion is noted by any Status that is no failure. */
                if (status < 300 && asked[k] == HFD_KUBE_REMOVAL && bodies[b] != NULL &&
                    strncmp(bodies[b], STATUS(""), 33) == 0) {
                    hfd_kube_answer_fini(&a);
                    continue;
                }
                hfd_kube_judge(&a, &why);
                (void)snprintf(words, sizeof(words), "an answer that is not Kubernetes': %d, ",
                               status);
                if (why.class != (busy ? HFD_KUBE_UNREACHABLE : HFD_KUBE_FOREIGN) ||
                    strncmp(why.message, words, strlen(words)) != 0)
                    fail_msg("%d, %s, call %zu: class %d, %s", status,
                             bodies[b] != NULL ? bodies[b] : "html", k, (int)why.class,
                             why.message);
                hfd_kube_answer_fini(&a);
            }
}

/* A Status decides by the answer's number, for every call; what is busy is tried again. */
static void test_words_of_the_api_server(void **state)
{
    (void)state;
    for (int status = 400; status <= 599; status++)
        for (int asked = HFD_KUBE_OBJECT; asked <= HFD_KUBE_REMOVAL; asked++) {
            char body[160];
            struct hfd_kube_answer a;
            struct hfd_kube_refusal why;
            enum hfd_kube_class want = HFD_KUBE_INVALID;

            (void)snprintf(body, sizeof(body), STATUS("\"message\":\"words\",\"code\":%d"), status);
            a = answer_of(status, body, (enum hfd_kube_asked)asked);
            if (status >= 500 || status == 408 || status == 425 || status == 429)
                want = HFD_KUBE_UNREACHABLE;
            else if (status == 401 || status == 403)
                want = HFD_KUBE_FORBIDDEN;
            else if (status == 404)
                want = HFD_KUBE_ABSENT;
            else if (status == 409)
                want = HFD_KUBE_AGAIN;
            else if (status == 410)
                want = HFD_KUBE_EXPIRED;
            hfd_kube_judge(&a, &why);
            if (why.class != want || strcmp(why.message, "words") != 0)
                fail_msg("%d, call %d: class %d, %s", status, asked, (int)why.class, why.message);
            hfd_kube_answer_fini(&a);
        }
}

/* A 2xx counts with what the call asks for only. */
static void test_results(void **state)
{
    static const struct {
        enum hfd_kube_asked asked;
        const char *body;
        bool good;
    } rows[] = {
        {HFD_KUBE_OBJECT, "{\"metadata\":{\"name\":\"x\"}}", true},
        {HFD_KUBE_OBJECT, "{\"metadata\":{}}", false},
        {HFD_KUBE_OBJECT, "{\"ok\":true}", false},
        {HFD_KUBE_OBJECT, STATUS("\"metadata\":{},\"status\":\"Success\""), false},
        {HFD_KUBE_OBJECTS, "{\"items\":[]}", true},
        {HFD_KUBE_OBJECTS, "{\"items\":null}", true},
        {HFD_KUBE_OBJECTS, "{\"metadata\":{\"name\":\"x\"}}", false},
        {HFD_KUBE_OBJECTS, "{}", false},
        {HFD_KUBE_REMOVAL, STATUS("\"metadata\":{},\"status\":\"Success\""), true},
        {HFD_KUBE_REMOVAL, "{\"metadata\":{\"name\":\"x\"}}", true},
        {HFD_KUBE_REMOVAL, STATUS("\"status\":\"Failure\",\"code\":404"), false},
        {HFD_KUBE_REMOVAL, "{}", false},
        {HFD_KUBE_REMOVAL, "", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct hfd_kube_answer a = answer_of(200, rows[i].body, rows[i].asked);
        struct hfd_kube_refusal why;

        hfd_kube_judge(&a, &why);
        if ((why.class == HFD_KUBE_DONE) != rows[i].good ||
            (!rows[i].good && why.class != HFD_KUBE_UNREACHABLE))
            fail_msg("row %zu: class %d", i, (int)why.class);
        hfd_kube_answer_fini(&a);
    }
}

/* Lines of a watch. */
static void test_events(void **state)
{
    static const struct {
        const char *line;
        enum hfd_kube_event event;
    } rows[] = {
        {"{\"type\":\"ADDED\",\"object\":{}}", HFD_KUBE_EVENT_CHANGED},
        {"{\"type\":\"MODIFIED\",\"object\":{}}", HFD_KUBE_EVENT_CHANGED},
        {"{\"type\":\"DELETED\",\"object\":{}}", HFD_KUBE_EVENT_GONE},
        {"{\"type\":\"BOOKMARK\",\"object\":{}}", HFD_KUBE_EVENT_BOOKMARK},
        {"{\"type\":\"ERROR\",\"object\":{\"code\":410}}", HFD_KUBE_EVENT_EXPIRED},
        {"{\"type\":\"ERROR\",\"object\":{\"code\":500}}", HFD_KUBE_EVENT_ERROR},
        {"{\"type\":\"OTHER\",\"object\":{}}", HFD_KUBE_EVENT_BAD},
        {"{\"type\":\"ADDED\"}", HFD_KUBE_EVENT_BAD},
        {"[]", HFD_KUBE_EVENT_BAD},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const json_t *object;
        json_t *doc;

        assert_int_equal(hfd_json_parse(hfd_slice_of(rows[i].line), &doc, NULL), HFD_OK);
        assert_int_equal(hfd_kube_event_of(doc, &object), rows[i].event);
        json_decref(doc);
    }
}

/* 5 s, doubled up to 60 s, less up to a quarter. */
static void test_backoff(void **state)
{
    const struct hfd_kube_pauses pauses = {5 * HFD_US_PER_S, 60 * HFD_US_PER_S};

    (void)state;
    assert_int_equal(hfd_kube_backoff_us(&pauses, 1, 0), 5 * HFD_US_PER_S);
    assert_int_equal(hfd_kube_backoff_us(&pauses, 2, 0), 10 * HFD_US_PER_S);
    assert_int_equal(hfd_kube_backoff_us(&pauses, 4, 0), 40 * HFD_US_PER_S);
    assert_int_equal(hfd_kube_backoff_us(&pauses, 5, 0), 60 * HFD_US_PER_S);
    assert_int_equal(hfd_kube_backoff_us(&pauses, 1000, 0), 60 * HFD_US_PER_S);
    assert_in_range(hfd_kube_backoff_us(&pauses, 1, 1023), 3750000, 4999999);
    assert_in_range(hfd_kube_backoff_us(&pauses, 99, UINT32_MAX), 45000000, 59999999);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kubeconfig_token),
        cmocka_unit_test(test_kubeconfig_certificates),
        cmocka_unit_test(test_kubeconfig_refused),
        cmocka_unit_test(test_not_in_a_pod),
        cmocka_unit_test(test_in_a_pod),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_foreign_answers),
        cmocka_unit_test(test_words_of_the_api_server),
        cmocka_unit_test(test_results),
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_backoff),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
