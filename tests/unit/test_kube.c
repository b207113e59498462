/* The Kubernetes client without a server: kubeconfigs, paths, answers, events, pauses. */
#include <stdio.h>
#include <stdlib.h>

#include "driver/kube/refusal.h"
#include "driver/kube/watch.h"
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

static const struct {
    int status;
    const char *body; /* NULL = no JSON */
    enum hfd_kube_class class;
    const char *field, *words;
} answers[] = {
    {200, "{}", HFD_KUBE_DONE, "", ""},
    {201, "{}", HFD_KUBE_DONE, "", ""},
    {404, NULL, HFD_KUBE_NO_TYPE, "", "404"},
    {404, "{\"kind\":\"Status\",\"message\":\"m\",\"details\":{\"kind\":\"secrets\"}}",
     HFD_KUBE_ABSENT, "", "m"},
    {404, "{\"kind\":\"Status\",\"message\":\"m\",\"details\":{\"kind\":\"namespaces\"}}",
     HFD_KUBE_NO_PLACE, "", "m"},
    {403, "{\"message\":\"no\",\"reason\":\"Forbidden\"}", HFD_KUBE_FORBIDDEN, "", "no"},
    {403,
     "{\"message\":\"no\",\"details\":{\"causes\":[{\"reason\":\"NamespaceTerminating\",\"field\":"
     "\"metadata.namespace\"}]}}",
     HFD_KUBE_NO_PLACE, "", "no"},
    {401, "{\"message\":\"Unauthorized\"}", HFD_KUBE_FORBIDDEN, "", "Unauthorized"},
    {409,
     "{\"message\":\"m\",\"details\":{\"causes\":[{\"reason\":\"FieldManagerConflict\",\"message\":"
     "\"conflict with \\\"x\\\"\",\"field\":\".spec.a\"}]}}",
     HFD_KUBE_CONFLICT, "spec.a", "spec.a: conflict with \"x\""},
    {409, "{\"message\":\"the object has been modified\"}", HFD_KUBE_AGAIN, "", "modified"},
    {422,
     "{\"message\":\"m\",\"details\":{\"causes\":[{\"reason\":\"FieldValueInvalid\",\"message\":"
     "\"left out\",\"field\":\"<nil>\"},{\"message\":\"bad\",\"field\":\".spec.replicas\"}]}}",
     HFD_KUBE_INVALID, "spec.replicas", "spec.replicas: bad"},
    {500,
     "{\"message\":\"failed to create typed patch object (n/x; g/v, Kind=K): .spec.fips: expected "
     "boolean, got &{yes}\"}",
     HFD_KUBE_INVALID, "spec.fips", ".spec.fips: expected boolean"},
    {500, "{\"message\":\"etcd\"}", HFD_KUBE_UNREACHABLE, "", "etcd"},
    {429, "{\"message\":\"slow\"}", HFD_KUBE_UNREACHABLE, "", "slow"},
    {503, NULL, HFD_KUBE_UNREACHABLE, "", "503"},
    {410, "{\"message\":\"old\"}", HFD_KUBE_EXPIRED, "", "old"},
    {413, "{\"message\":\"large\"}", HFD_KUBE_INVALID, "", "large"},
    {415, "{\"message\":\"type\"}", HFD_KUBE_INVALID, "", "type"},
    {400, "{\"message\":\"name\"}", HFD_KUBE_INVALID, "", "name"},
};

/* Every row of the table in driver/kube/README.md. */
static void test_answers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        struct hfd_kube_answer answer = {.status = answers[i].status};
        struct hfd_kube_refusal why;

        if (answers[i].body != NULL)
            assert_int_equal(hfd_json_parse(hfd_slice_of(answers[i].body), &answer.doc, NULL),
                             HFD_OK);
        hfd_kube_judge(&answer, &why);
        assert_int_equal(why.class, answers[i].class);
        assert_true(hfd_slice_is(why.field, answers[i].field));
        assert_contains(hfd_slice_of(why.message), answers[i].words);
        assert_null(strstr(why.message, "<nil>"));
        hfd_kube_answer_fini(&answer);
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
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_backoff),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
