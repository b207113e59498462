#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "driver/base/jsonx.h"
#include "driver/core/input.h"
#include "driver/fleet/fleet.h"
#include "schemas/documents.h"
#include "tests/lib/faultmem.h"
#include "tests/lib/seams.h"

#define S(lit) HFD_SLICE(lit)
#define GURESID S("3c0a194814284345e330544f88798e83992468e2")
#define LABEL "\"humanitec_guresid\":\"3c0a194814284345e330544f88798e83992468e2\""
#define CLUSTER "\"type\":\"k8s-cluster\""
#define NODEPOOL "\"type\":\"hyperfleet-nodepool\""

static const hfd_slice cluster_types[] = {HFD_SLICE("hyperfleet-cluster"),
                                          HFD_SLICE("k8s-cluster")};
static const hfd_slice nodepool_types[] = {HFD_SLICE("hyperfleet-nodepool")};
static const struct hfd_input_rules rules = {
    .cluster_types = cluster_types,
    .cluster_type_count = 2,
    .nodepool_types = nodepool_types,
    .nodepool_type_count = 1,
};

struct fixture {
    struct hfd_arena mem;
    struct hfd_input in;
    struct hfd_err err;
};

static int setup(void **state)
{
    static struct fixture fx;

    hfd_arena_init(&fx.mem, 4u << 20);
    *state = &fx;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fx = *state;

    hfd_arena_fini(&fx->mem);
    return 0;
}

static hfd_rc parse_by(struct fixture *fx, const struct hfd_input_rules *by, int only,
                       const char *body)
{
    fx->err = (struct hfd_err){.msg = ""};
    return hfd_input_parse(&(struct hfd_input_source){by, GURESID, only, hfd_slice_of(body)},
                           &fx->mem, &fx->in, &fx->err);
}

static void accept(struct fixture *fx, const char *body)
{
    if (parse_by(fx, &rules, 0, body) != HFD_OK)
        fail_msg("%s: %s", body, fx->err.msg);
}

static void assert_slice(hfd_slice got, const char *want)
{
    if (!hfd_slice_is(got, want))
        fail_msg("got %.*s, wanted %s", HFD_SLICE_FMT(got), want);
}

/* The least that is a cluster: a type alone. Names, spec and labels are made up. */
static void input_minimal_cluster(void **state)
{
    struct fixture *fx = *state;

    accept(fx, "{" CLUSTER "}");
    assert_int_equal(fx->in.kind, HFD_KIND_CLUSTER);
    assert_slice(fx->in.type, "k8s-cluster");
    assert_slice(fx->in.cluster.name, "hf-3c0a194814284345e330544f88798e83992468e2");
    assert_false(fx->in.cluster.name_given);
    assert_slice(fx->in.cluster.spec, "{}");
    assert_slice(fx->in.cluster.labels, "{" LABEL "}");
    assert_int_equal(fx->in.nodepool_count, 0);
    assert_slice(fx->in.credentials, "");
    assert_slice(
        fx->in.canonical,
        "{\"driver\":{\"secrets\":{},\"values\":{}},\"resource\":{},\"type\":\"k8s-cluster\"}");
}

/* A full cluster: everything arrives where it belongs, documents in canonical form. */
static void input_full_cluster(void **state)
{
    struct fixture *fx = *state;

    accept(fx,
           "{\"type\":\"my-org/hyperfleet-cluster\",\"resource\":{\"z\":1,\"a\":2},"
           "\"driver\":{\"values\":{\"cluster\":{\"name\":\"payments\","
           "\"spec\":{\"region\":\"eu\",\"nodes\":[1,{\"b\":0.1,\"a\":null}]},\"labels\":{\"team\":"
           "\"x\"}},\"nodepools\":["
           "{\"name\":\"workers\",\"spec\":{\"size\":3}},{\"labels\":{\"a\":\"b\"}}]},"
           "\"secrets\":{\"token\":\"t\",\"account\":{\"key\":\"k\"}}}}");
    assert_int_equal(fx->in.kind, HFD_KIND_CLUSTER);
    assert_slice(fx->in.type, "my-org/hyperfleet-cluster");
    assert_slice(fx->in.cluster.name, "payments");
    assert_true(fx->in.cluster.name_given);
    assert_slice(fx->in.cluster.spec, "{\"nodes\":[1,{\"a\":null,\"b\":0.1}],\"region\":\"eu\"}");
    assert_slice(fx->in.cluster.labels, "{" LABEL ",\"team\":\"x\"}");
    assert_int_equal(fx->in.nodepool_count, 2);
    assert_slice(fx->in.nodepools[0].name, "workers");
    assert_true(fx->in.nodepools[0].name_given);
    assert_slice(fx->in.nodepools[0].spec, "{\"size\":3}");
    assert_slice(fx->in.nodepools[0].labels, "{" LABEL "}");
    assert_slice(fx->in.nodepools[1].name, "pool-2");
    assert_false(fx->in.nodepools[1].name_given);
    assert_slice(fx->in.nodepools[1].labels, "{\"a\":\"b\"," LABEL "}");
    assert_slice(fx->in.credentials, "{\"token\":\"t\",\"account\":{\"key\":\"k\"}}");
    assert_slice(fx->in.canonical,
                 "{\"driver\":{\"secrets\":{\"token\":\"t\"},\"values\":{\"cluster\":{\"labels\":{"
                 "\"team\":\"x\"},\"name\":\"payments\","
                 "\"spec\":{\"nodes\":[1,{\"a\":null,\"b\":0.1}],\"region\":\"eu\"}},"
                 "\"nodepools\":[{\"name\":\"workers\","
                 "\"spec\":{\"size\":3}},{\"labels\":{\"a\":\"b\"}}]}}"
                 ",\"resource\":{\"a\":2,\"z\":1},\"type\":\"my-org/hyperfleet-cluster\"}");
}

/* A nodepool names its cluster in one of two ways. */
static void input_nodepool(void **state)
{
    struct fixture *fx = *state;

    accept(fx, "{" NODEPOOL ",\"driver\":{\"values\":{\"cluster_id\":\"2abcDEF-9\",\"nodepool\":{"
               "\"name\":\"gpu\",\"spec\":{\"n\":1},"
               "\"labels\":{\"a\":\"b\"}}}}}");
    assert_int_equal(fx->in.kind, HFD_KIND_NODEPOOL);
    assert_slice(fx->in.cluster_id, "2abcDEF-9");
    assert_int_equal(fx->in.cluster_guresid.len, 0);
    assert_int_equal(fx->in.nodepool_count, 1);
    assert_slice(fx->in.nodepools[0].name, "gpu");
    assert_slice(fx->in.nodepools[0].spec, "{\"n\":1}");
    assert_slice(fx->in.nodepools[0].labels, "{\"a\":\"b\"," LABEL "}");

    accept(fx, "{" NODEPOOL
               ",\"driver\":{\"values\":{\"cluster_guresid\":\"other.1\",\"cluster_id\":null}}}");
    assert_slice(fx->in.cluster_guresid, "other.1");
    assert_int_equal(fx->in.cluster_id.len, 0);
    assert_int_equal(fx->in.nodepools[0].name.len, 15);
    assert_true(hfd_slice_starts(fx->in.nodepools[0].name, S("np-")));
    assert_slice(fx->in.nodepools[0].spec, "{}");
}

/* Inputs that ask for the same have one canonical text; inputs that do not, do not. */
static void input_canonical(void **state)
{
    static const struct {
        const char *a, *b;
        bool same;
    } rows[] = {
        {"{" CLUSTER "}", "{" CLUSTER ",\"resource\":null,\"driver\":null}", true},
        {"{" CLUSTER "}", "{" CLUSTER ",\"driver\":{\"values\":null,\"secrets\":null}}", true},
        {"{" CLUSTER "}",
         "{" CLUSTER
         ",\"driver\":{\"values\":{\"cluster\":null,\"nodepools\":null,\"cluster_id\":null}}}",
         true},
        {"{" CLUSTER "}", "{" CLUSTER ",\"id\":\"unknown\",\"driver\":{\"more\":1}}", true},
        {"{" CLUSTER "}", "{ \"driver\" : {} ,\n" CLUSTER " }", true},
        {"{" CLUSTER ",\"driver\":{\"values\":{\"cluster\":{}}}}",
         "{" CLUSTER
         ",\"driver\":{\"values\":{\"cluster\":{\"name\":null,\"spec\":null,\"labels\":null}}}}",
         true},
        {"{" CLUSTER ",\"driver\":{\"values\":{\"cluster\":{}}}}",
         "{" CLUSTER ",\"driver\":{\"values\":{\"cluster\":{\"name\":\"\"},\"cluster_id\":\"\"}}}",
         true},
        {"{" CLUSTER ",\"driver\":{\"values\":{\"nodepools\":[{}]}}}",
         "{" CLUSTER ",\"driver\":{\"values\":{\"nodepools\":[{\"name\":null}]}}}", true},
        {"{" CLUSTER ",\"driver\":{\"secrets\":{\"account\":1}}}",
         "{" CLUSTER ",\"driver\":{\"secrets\":{\"account\":2}}}", true},
        {"{" CLUSTER ",\"driver\":{\"secrets\":{\"account\":{\"a\":1}}}}", "{" CLUSTER "}", true},
        {"{" CLUSTER ",\"driver\":{\"secrets\":{\"token\":1}}}",
         "{" CLUSTER ",\"driver\":{\"secrets\":{\"token\":2}}}", false},
        {"{" CLUSTER "}", "{\"type\":\"my-org/k8s-cluster\"}", false},
        {"{" CLUSTER "}", "{\"type\":\"o/k8s-cluster\"}", false},
        {"{" CLUSTER "}", "{" CLUSTER ",\"resource\":{\"a\":null}}", false},
        {"{" CLUSTER ",\"resource\":{\"a\":1}}", "{" CLUSTER ",\"resource\":{\"a\":\"1\"}}", false},
        {"{" CLUSTER ",\"driver\":{\"values\":{\"cluster\":{\"spec\":{\"a\":[1,2]}}}}}",
         "{" CLUSTER ",\"driver\":{\"values\":{\"cluster\":{\"spec\":{\"a\":[2,1]}}}}}", false},
        {"{" CLUSTER ",\"driver\":{\"values\":{\"cluster\":{\"spec\":{\"a\":[1,0,-5]}}}}}",
         "{" CLUSTER ",\"driver\":{\"values\":{\"cluster\":{\"spec\":{\"a\":[10e-1,-0.0,-5.0]}}}}}",
         true},
        {"{" CLUSTER ",\"resource\":{\"a\":3},\"driver\":{\"secrets\":{\"b\":4}}}",
         "{" CLUSTER ",\"resource\":{\"a\":3.0},\"driver\":{\"secrets\":{\"b\":4.0}}}", true},
        {"{" CLUSTER ",\"resource\":{\"a\":1}}", "{" CLUSTER ",\"resource\":{\"a\":1.5}}", false},
        {"{" CLUSTER ",\"resource\":{\"a\":9223372036854775807}}",
         "{" CLUSTER ",\"resource\":{\"a\":9223372036854775807.0}}", false},
        {"{" CLUSTER ",\"driver\":{\"values\":{\"cluster\":{\"spec\":{\"a\":null}}}}}",
         "{" CLUSTER ",\"driver\":{\"values\":{\"cluster\":{\"spec\":{}}}}}", false},
    };
    struct fixture *fx = *state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        hfd_slice first;

        accept(fx, rows[i].a);
        first = fx->in.canonical;
        accept(fx, rows[i].b);
        if (hfd_slice_eq(first, fx->in.canonical) != rows[i].same)
            fail_msg("%s and %s: %.*s and %.*s", rows[i].a, rows[i].b, HFD_SLICE_FMT(first),
                     HFD_SLICE_FMT(fx->in.canonical));
        hfd_arena_fini(&fx->mem);
    }
}

#define IN_VALUES(x) "{" CLUSTER ",\"driver\":{\"values\":{" x "}}}"
#define IN_POOL(x) "{" NODEPOOL ",\"driver\":{\"values\":{" x "}}}"

/* Bodies, and the error of each. */
static const struct {
    const char *body;
    hfd_rc rc;
    const char *field, *message;
} refusals[] = {
    {"", HFD_MALFORMED, "", "the body is not a JSON document: it is empty"},
    {"{\"type\":\"k8s-cluster\"", HFD_MALFORMED, "",
     "the body is not a JSON document: line 1, column 21: '}' expected near end of file"},
    {"[]", HFD_INVALID, "", "the body: expected an object, got an array"},
    {"\"k8s-cluster\"", HFD_INVALID, "", "the body: expected an object, got a string"},
    {"null", HFD_INVALID, "", "the body: expected an object, got null"},
    {"{}", HFD_INVALID, "type",
     "type: expected one of hyperfleet-cluster, k8s-cluster, hyperfleet-nodepool, got nothing"},
    {"{\"type\":null}", HFD_INVALID, "type",
     "type: expected one of hyperfleet-cluster, k8s-cluster, hyperfleet-nodepool, got null"},
    {"{\"type\":7}", HFD_INVALID, "type",
     "type: expected one of hyperfleet-cluster, k8s-cluster, hyperfleet-nodepool, got an "
     "integer"},
    {"{\"type\":\"postgres\"}", HFD_INVALID, "type",
     "type: expected one of hyperfleet-cluster, k8s-cluster, hyperfleet-nodepool, got "
     "\"postgres\""},
    {"{\"type\":\"\"}", HFD_INVALID, "type",
     "type: expected one of hyperfleet-cluster, k8s-cluster, hyperfleet-nodepool, got \"\""},
    {"{\"type\":\"k8s-cluster/x\"}", HFD_INVALID, "type",
     "type: expected one of hyperfleet-cluster, k8s-cluster, hyperfleet-nodepool, got "
     "\"k8s-cluster/x\""},
    {"{\"type\":\"a/b/k8s-cluster\"}", HFD_INVALID, "type",
     "type: expected one of hyperfleet-cluster, k8s-cluster, hyperfleet-nodepool, got "
     "\"a/b/k8s-cluster\""},
    {"{\"type\":\"My_Org/k8s-cluster\"}", HFD_INVALID, "type",
     "type: must match the pattern "
     "^([a-z0-9]([a-z0-9-]*[a-z0-9])?/)?[a-z0-9][a-z0-9-]+[a-z0-9]$"},
    {"{\"type\":\"/k8s-cluster\"}", HFD_INVALID, "type",
     "type: must match the pattern "
     "^([a-z0-9]([a-z0-9-]*[a-z0-9])?/)?[a-z0-9][a-z0-9-]+[a-z0-9]$"},
    {"{" CLUSTER ",\"resource\":[]}", HFD_INVALID, "resource",
     "resource: expected an object, got an array"},
    {"{" CLUSTER ",\"driver\":\"x\"}", HFD_INVALID, "driver",
     "driver: expected an object, got a string"},
    {"{" CLUSTER ",\"driver\":{\"values\":3}}", HFD_INVALID, "driver.values",
     "driver.values: expected an object, got an integer"},
    {"{" CLUSTER ",\"driver\":{\"secrets\":\"hunter2\"}}", HFD_INVALID, "driver.secrets",
     "driver.secrets: expected an object, got a string"},
    {IN_VALUES("\"cluster\":true"), HFD_INVALID, "driver.values.cluster",
     "driver.values.cluster: expected an object, got a boolean"},
    {IN_VALUES("\"cluster\":{\"name\":3}"), HFD_INVALID, "driver.values.cluster.name",
     "driver.values.cluster.name: expected a string, got an integer"},
    {IN_VALUES("\"cluster\":{\"name\":\"ab\"}"), HFD_INVALID, "driver.values.cluster.name",
     "driver.values.cluster.name: name must be at least 3 characters, got \"ab\""},
    {IN_VALUES("\"cluster\":{\"name\":\"Payments\"}"), HFD_INVALID, "driver.values.cluster.name",
     NULL},
    {IN_VALUES("\"cluster\":{\"spec\":[]}"), HFD_INVALID, "driver.values.cluster.spec",
     "driver.values.cluster.spec: expected an object, got an array"},
    {IN_VALUES("\"cluster\":{\"labels\":{\"a\":1}}"), HFD_INVALID, "driver.values.cluster.labels.a",
     "driver.values.cluster.labels.a: expected a string, got an integer"},
    {IN_VALUES("\"cluster\":{\"labels\":{\"a\":null}}"), HFD_INVALID,
     "driver.values.cluster.labels.a",
     "driver.values.cluster.labels.a: expected a string, got null"},
    {IN_VALUES("\"cluster\":{\"labels\":{\"humanitec_guresid\":\"x\"}}"), HFD_INVALID,
     "driver.values.cluster.labels.humanitec_guresid",
     "driver.values.cluster.labels.humanitec_guresid: is not allowed"},
    {IN_VALUES("\"nodepools\":{}"), HFD_INVALID, "driver.values.nodepools",
     "driver.values.nodepools: expected an array, got an object"},
    {IN_VALUES("\"nodepools\":[{},null]"), HFD_INVALID, "driver.values.nodepools[1]",
     "driver.values.nodepools[1]: expected an object, got null"},
    {IN_VALUES("\"nodepools\":[{\"name\":\"abcdefghijklmnop\"}]"), HFD_INVALID,
     "driver.values.nodepools[0].name",
     "driver.values.nodepools[0].name: name must be at most 15 characters, got "
     "\"abcdefghijklmnop\""},
    {IN_VALUES("\"nodepools\":[{},{\"labels\":{\"humanitec_guresid\":\"x\"}}]"), HFD_INVALID,
     "driver.values.nodepools[1].labels.humanitec_guresid", NULL},
    {IN_VALUES("\"cluster\":{\"labels\":{\"humanitec_owner\":\"x\"}}"), HFD_INVALID,
     "driver.values.cluster.labels.humanitec_owner", NULL},
    {IN_VALUES("\"nodepools\":[{\"name\":\"abc\"},{},{\"name\":\"abc\"}]"), HFD_INVALID,
     "driver.values.nodepools[2].name",
     "driver.values.nodepools[2].name: expected distinct names, but nodepool 0 is called "
     "\"abc\" too"},
    {IN_VALUES("\"nodepools\":[{\"name\":\"pool-2\"},{}]"), HFD_INVALID,
     "driver.values.nodepools[1].name", NULL},
    {IN_VALUES("\"cluster_id\":3"), HFD_INVALID, "driver.values.cluster_id", NULL},
    {"{" NODEPOOL "}", HFD_INVALID, "driver.values",
     "driver.values: expected either cluster_id or cluster_guresid, got neither"},
    {IN_POOL("\"cluster_id\":\"a\",\"cluster_guresid\":\"b\""), HFD_INVALID, "driver.values",
     "driver.values: expected either cluster_id or cluster_guresid, got both"},
    {IN_POOL("\"cluster_id\":\"a b\""), HFD_INVALID, "driver.values.cluster_id", NULL},
    {IN_POOL("\"cluster_guresid\":\"-\""), HFD_INVALID, "driver.values.cluster_guresid", NULL},
    {IN_POOL("\"cluster_id\":\"a\",\"nodepool\":{\"name\":\"-ab\"}"), HFD_INVALID,
     "driver.values.nodepool.name", NULL},
    {IN_POOL("\"cluster_id\":\"a\",\"nodepool\":{\"spec\":1}"), HFD_INVALID,
     "driver.values.nodepool.spec", NULL},
};

/* An error names the field, what was expected and what came. */
static void input_refuses(void **state)
{
    struct fixture *fx = *state;

    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        hfd_rc rc = parse_by(fx, &rules, 0, refusals[i].body);

        if (rc != refusals[i].rc || strcmp(fx->err.field, refusals[i].field) != 0)
            fail_msg("%s: %s, field %s: %s", refusals[i].body, hfd_rc_name(rc), fx->err.field,
                     fx->err.msg);
        if (refusals[i].message != NULL)
            assert_string_equal(fx->err.msg, refusals[i].message);
        else
            assert_true(strncmp(fx->err.msg, refusals[i].field, strlen(refusals[i].field)) == 0);
        assert_null(fx->in.type.p);
    }
}

/* A path that fixes the kind takes only types of that kind, and says which. */
static void input_kind_fixed_by_path(void **state)
{
    struct fixture *fx = *state;

    assert_int_equal(parse_by(fx, &rules, HFD_KIND_CLUSTER, "{" CLUSTER "}"), HFD_OK);
    assert_int_equal(parse_by(fx, &rules, HFD_KIND_NODEPOOL, IN_POOL("\"cluster_id\":\"a\"")),
                     HFD_OK);
    assert_int_equal(parse_by(fx, &rules, HFD_KIND_NODEPOOL, "{" CLUSTER "}"), HFD_INVALID);
    assert_string_equal(fx->err.msg,
                        "type: expected one of hyperfleet-nodepool, got \"k8s-cluster\"");
    assert_int_equal(parse_by(fx, &rules, HFD_KIND_CLUSTER, IN_POOL("\"cluster_id\":\"a\"")),
                     HFD_INVALID);
    assert_string_equal(
        fx->err.msg,
        "type: expected one of hyperfleet-cluster, k8s-cluster, got \"hyperfleet-nodepool\"");
}

static void assert_mistakes(struct fixture *fx, const char *body, const char *const *fields)
{
    size_t n = 0;

    assert_int_equal(parse_by(fx, &rules, 0, body), HFD_INVALID);
    for (; fields[n] != NULL; n++) {
        assert_true(n < fx->in.errors.count);
        assert_slice(fx->in.errors.items[n].field, fields[n]);
    }
    assert_int_equal(fx->in.errors.count, n);
    assert_string_equal(fx->err.field, fields[0]);
}

/* Outside driver.values unknown members are left alone; in it none is, nor one of the other kind.
 */
static void input_refuses_the_unknown(void **state)
{
    struct fixture *fx = *state;

    accept(fx,
           "{" CLUSTER ",\"id\":3,\"driver\":{\"x\":[],\"values\":{\"cluster_id\":\"\","
           "\"nodepool\":null,\"cluster\":{\"spec\":{\"any\":1},\"labels\":{\"any\":\"x\"}}}}}");
    assert_int_equal(fx->in.errors.count, 0);
    assert_mistakes(fx,
                    "{" CLUSTER ",\"driver\":{\"values\":{\"y\":null,\"cluster_id\":\"a\","
                    "\"nodepool\":{},\"cluster\":{\"href\":1},\"nodepools\":[{\"kind\":1}]}}}",
                    (const char *const[]){"driver.values.cluster.href",
                                          "driver.values.nodepools[0].kind", "driver.values.y",
                                          "driver.values.nodepool", "driver.values.cluster_id",
                                          NULL});
    assert_mistakes(
        fx, IN_POOL("\"cluster_id\":\"a\",\"cluster\":{},\"nodepools\":[]"),
        (const char *const[]){"driver.values.cluster", "driver.values.nodepools", NULL});
}

/* All mistakes are told, each field once, whatever they are of; but no more than fit. */
static void input_tells_all_mistakes(void **state)
{
    struct fixture *fx = *state;
    struct hfd_buf b;

    assert_mistakes(
        fx, "{\"type\":\"postgres\",\"resource\":[],\"driver\":{\"values\":{\"clustr\":{}}}}",
        (const char *const[]){"type", "resource", "driver.values.clustr", NULL});
    assert_mistakes(fx, "{\"driver\":{\"secrets\":1}}",
                    (const char *const[]){"type", "driver.secrets", NULL});
    assert_mistakes(
        fx,
        IN_VALUES("\"cluster\":{\"name\":\"A\",\"spec\":1},\"nodepools\":[{\"name\":\"b\"},"
                  "{\"name\":\"ccc\"},{\"name\":\"ccc\"}]"),
        (const char *const[]){"driver.values.cluster.spec", "driver.values.cluster.name",
                              "driver.values.nodepools[0].name", "driver.values.nodepools[2].name",
                              NULL});
    hfd_buf_init(&b, 10000);
    hfd_buf_lit(&b, "{" CLUSTER ",\"driver\":{\"values\":{\"x\":1");
    for (int i = 0; i < 2 * HFD_VIOLATIONS_MAX; i++)
        hfd_buf_addf(&b, ",\"x%d\":1", i);
    hfd_buf_lit(&b, "}}}");
    hfd_buf_addc(&b, '\0');
    assert_int_equal(parse_by(fx, &rules, 0, hfd_buf_slice(&b).p), HFD_INVALID);
    hfd_buf_fini(&b);
    assert_int_equal(fx->in.errors.count, HFD_VIOLATIONS_MAX);
}

/* A k8s-cluster without the outputs that the orchestrator needs is refused with what to set. */
static void input_needs_outputs(void **state)
{
    struct hfd_input_rules by = rules;
    struct fixture *fx = *state;

    (void)snprintf(by.lacking_outputs, sizeof(by.lacking_outputs), "driver.outputs.values.x");
    assert_int_equal(parse_by(fx, &by, 0, "{" CLUSTER "}"), HFD_INVALID);
    assert_string_equal(fx->err.msg,
                        "type: k8s-cluster needs outputs that this driver does not give: the "
                        "platform engineer has to set driver.outputs.values.x");
    assert_int_equal(parse_by(fx, &by, 0, "{\"type\":\"my-org/k8s-cluster\"}"), HFD_INVALID);
    assert_int_equal(parse_by(fx, &by, 0, "{\"type\":\"hyperfleet-cluster\"}"), HFD_OK);
}

/*
 * Only the paths of the configuration are taken from `resource`, as a whole, and the digest still
 * sees what was sent.
 */
static void input_overrides(void **state)
{
    static const hfd_slice paths[] = {
        HFD_SLICE("cluster.spec.region"), HFD_SLICE("cluster.name"),         HFD_SLICE("nodepools"),
        HFD_SLICE("cluster.labels"),      HFD_SLICE("cluster.spec.deep.er"),
    };
    static const char body[] =
        "{" CLUSTER ",\"resource\":{\"cluster\":{\"name\":\"mine\",\"spec\":{\"region\":{\"a\":1},"
        "\"size\":9,\"deep\":{\"er\":[7]}},\"labels\":null},"
        "\"nodepools\":[{\"name\":\"own\"}],\"other\":1},"
        "\"driver\":{\"values\":{\"cluster\":{\"name\":\"theirs\",\"spec\":{\"region\":{\"b\":2},"
        "\"size\":1},\"labels\":{\"a\":\"b\"}},"
        "\"nodepools\":[{},{}]}}}";
    static const char left_open[] =
        "{" CLUSTER ",\"resource\":{\"cluster\":{\"name\":\"\",\"spec\":{\"region\":\"\"}},"
        "\"nodepools\":[{\"name\":\"\"}]},"
        "\"driver\":{\"values\":{\"cluster\":{\"name\":\"base\",\"spec\":{\"region\":\"eu\"}}}}}";
    struct hfd_input_rules by = rules;
    struct fixture *fx = *state;
    hfd_slice without;

    accept(fx, body);
    assert_slice(fx->in.cluster.name, "theirs");
    assert_int_equal(fx->in.nodepool_count, 2);
    without = fx->in.canonical;

    by.overrides = paths;
    by.override_count = sizeof(paths) / sizeof(paths[0]);
    assert_int_equal(parse_by(fx, &by, 0, body), HFD_OK);
    assert_slice(fx->in.cluster.name, "mine");
    assert_true(fx->in.cluster.name_given);
    assert_slice(fx->in.cluster.spec, "{\"deep\":{\"er\":[7]},\"region\":{\"a\":1},\"size\":1}");
    assert_slice(fx->in.cluster.labels, "{\"a\":\"b\"," LABEL "}");
    assert_int_equal(fx->in.nodepool_count, 1);
    assert_slice(fx->in.nodepools[0].name, "own");
    assert_true(hfd_slice_eq(fx->in.canonical, without));

    assert_int_equal(parse_by(fx, &by, 0,
                              "{" CLUSTER
                              ",\"resource\":{\"cluster\":{\"name\":\"mine\"}},\"driver\":null}"),
                     HFD_OK);
    assert_slice(fx->in.cluster.name, "mine");
    assert_int_equal(parse_by(fx, &by, 0, "{" CLUSTER ",\"resource\":{\"cluster\":[]}}"), HFD_OK);
    assert_false(fx->in.cluster.name_given);
    /* A field that was left open overrides nothing. */
    assert_int_equal(parse_by(fx, &by, 0, left_open), HFD_OK);
    assert_slice(fx->in.cluster.name, "base");
    assert_slice(fx->in.cluster.spec, "{\"region\":\"eu\"}");
    assert_slice(fx->in.nodepools[0].name, "pool-1");
    /* Input that comes in this way is checked too, and the error names its place. */
    assert_int_equal(parse_by(fx, &by, 0, "{" CLUSTER ",\"resource\":{\"cluster\":{\"name\":3}}}"),
                     HFD_INVALID);
    assert_string_equal(fx->err.field, "resource.cluster.name");
    assert_string_equal(fx->err.msg, "resource.cluster.name: expected a string, got an integer");
    assert_int_equal(
        parse_by(fx, &by, 0, "{" CLUSTER ",\"resource\":{\"nodepools\":[{},{\"name\":\"A\"}]}}"),
        HFD_INVALID);
    assert_string_equal(fx->err.field, "resource.nodepools[1].name");
    assert_int_equal(parse_by(fx, &by, 0,
                              "{" CLUSTER ",\"resource\":{\"cluster\":{\"name\":\"\"}},"
                              "\"driver\":{\"values\":{\"cluster\":{\"name\":3}}}}"),
                     HFD_INVALID);
    assert_string_equal(fx->err.field, "driver.values.cluster.name");
    assert_int_equal(parse_by(fx, &by, 0,
                              "{" CLUSTER
                              ",\"resource\":{\"cluster\":{\"name\":\"abc\"}},\"driver\":[]}"),
                     HFD_INVALID);
    assert_string_equal(fx->err.field, "driver");
    assert_int_equal(parse_by(fx, &by, 0,
                              "{" CLUSTER ",\"resource\":{\"cluster\":{\"name\":\"abc\"}},"
                              "\"driver\":{\"values\":{\"cluster\":1}}}"),
                     HFD_INVALID);
    assert_string_equal(fx->err.field, "driver.values.cluster");
}

/* A hundred nodepools are taken, one more is over the limit. */
static void input_nodepool_limit(void **state)
{
    struct fixture *fx = *state;

    for (int count = HFD_INPUT_NODEPOOLS_MAX; count <= HFD_INPUT_NODEPOOLS_MAX + 1; count++) {
        struct hfd_buf b;
        hfd_rc rc;

        hfd_buf_init(&b, 10000);
        hfd_buf_lit(&b, "{" CLUSTER ",\"driver\":{\"values\":{\"nodepools\":[{}");
        for (int i = 1; i < count; i++)
            hfd_buf_lit(&b, ",{}");
        hfd_buf_lit(&b, "]}}}");
        rc = hfd_input_parse(&(struct hfd_input_source){&rules, GURESID, 0, hfd_buf_slice(&b)},
                             &fx->mem, &fx->in, &fx->err);
        hfd_buf_fini(&b);
        if (count > HFD_INPUT_NODEPOOLS_MAX) {
            assert_int_equal(rc, HFD_LIMIT);
            assert_string_equal(fx->err.msg,
                                "driver.values.nodepools: expected at most 100 nodepools, got 101");
            continue;
        }
        assert_int_equal(rc, HFD_OK);
        assert_slice(fx->in.nodepools[99].name, "pool-100");
    }
}

/*
 * Default names satisfy HyperFleet's rules whatever the GUResID, stay the same, and differ where
 * GUResIDs do.
 */
static void input_default_names(void **state)
{
    static const char *const ids[] = {
        "a",
        "A",
        "a.b",
        "a_b",
        "0",
        "x-",
        "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijk",
        "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwx",
        "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxy"};
    hfd_slice cluster[9];
    hfd_slice pool[9];
    struct fixture *fx = *state;

    for (size_t i = 0; i < 9; i++) {
        cluster[i] = hfd_input_default_name(HFD_KIND_CLUSTER, hfd_slice_of(ids[i]), 0, &fx->mem);
        pool[i] = hfd_input_default_name(HFD_KIND_NODEPOOL, hfd_slice_of(ids[i]), 0, &fx->mem);
        assert_int_equal(hfd_name_check(HFD_KIND_CLUSTER, cluster[i], NULL), HFD_OK);
        assert_int_equal(hfd_name_check(HFD_KIND_NODEPOOL, pool[i], NULL), HFD_OK);
        for (size_t k = 0; k < i; k++) {
            assert_false(hfd_slice_eq(cluster[i], cluster[k]));
            assert_false(hfd_slice_eq(pool[i], pool[k]));
        }
    }
    assert_slice(cluster[0], "hf-a");
    assert_slice(cluster[7], "hf-abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwx");
    /* Fixed for good: other values would rename resources. BLAKE2b-256 of "A" and of "a". */
    assert_slice(cluster[1], "hf-a3a0081351bb785d0758ddf68076a95f");
    assert_slice(pool[0], "np-8928aae63c84");
    assert_slice(hfd_input_default_name(HFD_KIND_NODEPOOL, S("A"), 7, &fx->mem), "pool-7");
}

/*
 * Whichever piece of the arena is missing, the answer is that memory is short, and nothing
 * half-made comes out.
 */
static void input_out_of_arena(void **state)
{
    static const char body[] = IN_VALUES("\"cluster\":{\"name\":\"payments\",\"spec\":{\"a\":1},"
                                         "\"labels\":{\"b\":\"c\"}},\"nodepools\":[{},{}]");
    struct fixture *fx = *state;
    hfd_rc rc = HFD_NOMEM;

    for (size_t max = 0; rc != HFD_OK; max += 16) {
        hfd_arena_fini(&fx->mem);
        hfd_arena_init(&fx->mem, max);
        rc = parse_by(fx, &rules, 0, body);
        assert_true(rc == HFD_OK || rc == HFD_NOMEM);
        assert_true(rc == HFD_OK || fx->in.type.p == NULL);
        assert_true(max < 10000);
    }
}

/*
 * Each allocation of the JSON library fails in turn: memory is short, and never is a good input
 * called a bad one.
 */
static void input_out_of_memory(void **state)
{
    static const hfd_slice paths[] = {HFD_SLICE("cluster.spec.region"), HFD_SLICE("nodepools")};
    static const char body[] =
        "{" CLUSTER ",\"resource\":{\"cluster\":{\"spec\":{\"region\":\"eu\"}}},\"driver\":{"
        "\"values\":{\"cluster\":"
        "{\"labels\":{\"b\":\"c\"}},\"nodepools\":[{}]},\"secrets\":{\"a\":\"b\",\"account\":{}}}}";
    struct hfd_input_rules by = rules;
    struct fixture *fx = *state;
    struct hfd_err err;
    const struct hfd_schema *schema;

    by.overrides = paths;
    by.override_count = 2;
    assert_int_equal(hfd_schema_input(&schema, &err), HFD_OK);
    for (int nth = 1;; nth++) {
        hfd_rc rc;

        faultmem_arm((unsigned)nth, false);
        rc = parse_by(fx, &by, 0, body);
        if (faultmem_disarm() == 0) {
            assert_int_equal(rc, HFD_OK);
            break;
        }
        assert_int_equal(rc, HFD_NOMEM);
        assert_true(nth < 2000);
    }
    assert_slice(fx->in.cluster.spec, "{\"region\":\"eu\"}");
}

/*
 * The schema that is served is the one that validates: draft 7, with a description of every member.
 */
static void assert_described(const json_t *schema)
{
    const char *key;
    json_t *sub;

    json_object_foreach (json_object_get(schema, "properties"), key, sub) {
        if (!json_is_object(sub))
            continue;
        if (json_object_get(sub, "title") == NULL)
            fail_msg("%s has no title", key);
        assert_described(sub);
    }
}

static void input_schema_text(void **state)
{
    const struct hfd_schema *schema;
    json_t *doc;

    (void)state;
    assert_int_equal(hfd_json_parse(hfd_schema_input_text(), &doc, NULL), HFD_OK);
    assert_string_equal(json_string_value(json_object_get(doc, "$schema")),
                        "http://json-schema.org/draft-07/schema#");
    assert_described(doc);
    assert_int_equal(hfd_schema_input(&schema, NULL), HFD_OK);
    assert_non_null(schema);
    json_decref(doc);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(input_minimal_cluster),
        TEST(input_full_cluster),
        TEST(input_nodepool),
        TEST(input_canonical),
        TEST(input_refuses),
        TEST(input_kind_fixed_by_path),
        TEST(input_refuses_the_unknown),
        TEST(input_tells_all_mistakes),
        TEST(input_needs_outputs),
        TEST(input_overrides),
        TEST(input_nodepool_limit),
        TEST(input_default_names),
        TEST(input_out_of_arena),
        TEST(input_out_of_memory),
        TEST(input_schema_text),
    };

    return cmocka_run_group_tests(tests, faultmem_setup_json, NULL);
}
