/*
 * TSL searches and list orders: text to tree, and every error. Sources: HyperFleet API, "search";
 * driver/README.md, decisions 2 and 6.
 */
#include "driver/fleet/search.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "driver/base/base.h"
#include "driver/base/buf.h"

static int setup(void **state)
{
    (void)state;
    return hfd_base_init(NULL) == HFD_OK ? 0 : -1;
}

/* ---- trees as text: (and (= name 'x') (in labels.a 'b' 'c')) ---- */

static const char *const op_texts[HFD_FILTER_OP_COUNT] = {
    [HFD_FILTER_AND] = "and",   [HFD_FILTER_OR] = "or",        [HFD_FILTER_NOT] = "not",
    [HFD_FILTER_EQ] = "=",      [HFD_FILTER_NE] = "!=",        [HFD_FILTER_LT] = "<",
    [HFD_FILTER_LE] = "<=",     [HFD_FILTER_GT] = ">",         [HFD_FILTER_GE] = ">=",
    [HFD_FILTER_LIKE] = "like", [HFD_FILTER_ILIKE] = "ilike",  [HFD_FILTER_BETWEEN] = "between",
    [HFD_FILTER_IN] = "in",     [HFD_FILTER_IS_NULL] = "null",
};

static const char *const field_texts[HFD_FIELD_COUNT] = {
    [HFD_FIELD_ID] = "id",
    [HFD_FIELD_KIND] = "kind",
    [HFD_FIELD_NAME] = "name",
    [HFD_FIELD_HREF] = "href",
    [HFD_FIELD_OWNER_ID] = "owner_id",
    [HFD_FIELD_GENERATION] = "generation",
    [HFD_FIELD_CREATED_TIME] = "created_time",
    [HFD_FIELD_UPDATED_TIME] = "updated_time",
    [HFD_FIELD_DELETED_TIME] = "deleted_time",
    [HFD_FIELD_CREATED_BY] = "created_by",
    [HFD_FIELD_UPDATED_BY] = "updated_by",
    [HFD_FIELD_ADAPTER] = "adapter",
    [HFD_FIELD_REPORT_GENERATION] = "observed",
    [HFD_FIELD_REPORT_TIME] = "reported",
    [HFD_FIELD_LABEL] = "labels.",
    [HFD_FIELD_SPEC] = "spec.",
    [HFD_FIELD_CONDITION] = "condition.",
    [HFD_FIELD_CONDITION_READ] = "read.",
    [HFD_FIELD_CONDITION_UPDATED] = "updated.",
    [HFD_FIELD_CONDITION_TRANSITION] = "transition.",
    [HFD_FIELD_CONDITION_GENERATION] = "generation.",
};

static void show_value(struct hfd_buf *b, const struct hfd_filter_value *v)
{
    if (v->kind == HFD_VALUE_TEXT)
        hfd_buf_addf(b, " '%.*s'", HFD_SLICE_FMT(v->text));
    else if (v->kind == HFD_VALUE_INT)
        hfd_buf_addf(b, " %lld", (long long)v->num);
    else
        hfd_buf_addf(b, " %g", v->real);
}

static void show(struct hfd_buf *b, const struct hfd_filter *f)
{
    hfd_buf_addf(b, "(%s ", op_texts[f->op]);
    if (f->op == HFD_FILTER_AND || f->op == HFD_FILTER_OR || f->op == HFD_FILTER_NOT) {
        show(b, f->left);
        if (f->op != HFD_FILTER_NOT) {
            hfd_buf_addc(b, ' ');
            show(b, f->right);
        }
    } else {
        hfd_buf_addf(b, "%s%.*s", field_texts[f->field], HFD_SLICE_FMT(f->name));
        for (size_t i = 0; i < f->value_count; i++)
            show_value(b, &f->values[i]);
    }
    hfd_buf_addc(b, ')');
}

struct parsed {
    struct hfd_arena mem;
    struct hfd_buf text; /* of the tree; "" when there is none */
    const struct hfd_filter *filter;
    struct hfd_err err;
    hfd_rc rc;
};

static void parse(struct parsed *p, enum hfd_kind kind, hfd_slice query)
{
    hfd_arena_init(&p->mem, 1 << 20);
    hfd_buf_init(&p->text, 1 << 20);
    p->err = (struct hfd_err){0};
    p->rc = hfd_search_parse(kind, query, &p->mem, &p->filter, &p->err);
    if (p->rc != HFD_OK)
        assert_null(p->filter);
    if (p->filter != NULL)
        show(&p->text, p->filter);
    hfd_buf_addc(&p->text, '\0');
}

static void forget(struct parsed *p)
{
    hfd_buf_fini(&p->text);
    hfd_arena_fini(&p->mem);
}

static void assert_tree(enum hfd_kind kind, hfd_slice query, const char *tree)
{
    struct parsed p;

    parse(&p, kind, query);
    if (p.rc != HFD_OK)
        fail_msg("%.*s: %s", HFD_SLICE_FMT(query), p.err.msg);
    assert_string_equal(p.text.p, tree);
    forget(&p);
}

static void assert_error(enum hfd_kind kind, hfd_slice query, const char *message)
{
    struct parsed p;

    parse(&p, kind, query);
    if (p.rc != HFD_BAD_REQUEST)
        fail_msg("%.*s: %s, %s", HFD_SLICE_FMT(query), hfd_rc_name(p.rc), p.text.p);
    assert_string_equal(p.err.msg, message);
    assert_string_equal(p.err.field, "search");
    forget(&p);
}

/* ---- correct searches ---- */

static const struct {
    const char *query, *tree;
} trees[] = {
    {"", ""},
    {" \t\r\n", ""},
    {"name='x'", "(= name 'x')"},
    {"  name  =  'x'  ", "(= name 'x')"},
    {"name\n=\t'x'", "(= name 'x')"},
    {"name != 'x'", "(!= name 'x')"},
    {"name <> 'x'", "(!= name 'x')"},
    {"name<'x'", "(< name 'x')"},
    {"name<='x'", "(<= name 'x')"},
    {"name>'x'", "(> name 'x')"},
    {"name>='x'", "(>= name 'x')"},
    {"name is null", "(null name)"},
    {"name IS NOT NULL", "(not (null name))"},
    {"name is 'x'", "(= name 'x')"},
    {"name is not 'x'", "(not (= name 'x'))"},
    {"name like 'x%'", "(like name 'x%')"},
    {"name NOT LIKE 'x%'", "(not (like name 'x%'))"},
    {"name iLike '_X'", "(ilike name '_X')"},
    {"name not ilike 'x'", "(not (ilike name 'x'))"},
    {"name between 'a' and 'b'", "(between name 'a' 'b')"},
    {"generation not between 1 and 3", "(not (between generation 1 3))"},
    {"name between 'a' and 'b' and id='i'", "(and (between name 'a' 'b') (= id 'i'))"},
    {"name in ('a','b')", "(in name 'a' 'b')"},
    {"name IN [ 'a' , 'b' ]", "(in name 'a' 'b')"},
    {"name in ()", "(in name)"},
    {"name in []", "(in name)"},
    {"generation not in (1, 2)", "(not (in generation 1 2))"},
    /* quotes */
    {"name=''", "(= name '')"},
    {"name='it''s'", "(= name 'it's')"},
    {"name='it\\'s'", "(= name 'it's')"},
    {"name='a\\\\b'", "(= name 'a\\b')"},
    {"name='a\\b'", "(= name 'a\\b')"},
    {"name=''''", "(= name ''')"},
    {"name='\"`[](),='", "(= name '\"`[](),=')"},
    {"name='\xc3\xa9'", "(= name '\xc3\xa9')"},
    {"name=\"it's\" or name=`a\"b`", "(or (= name 'it's') (= name 'a\"b'))"},
    {"name in (\"a\"\"b\", `c`, 'd')", "(in name 'a\"b' 'c' 'd')"},
    {"\"name\"=\"true\"", "(= name 'true')"},
    /* booleans of spec are text to compare with */
    {"spec.t=true", "(= spec.t 'true')"},
    {"spec.t!=FALSE and spec.u in (True, 1)", "(and (!= spec.t 'false') (in spec.u 'true' 1))"},
    /* times without quotes, and dates */
    {"created_time>'1970-01-02'", "(> created_time 86400000000)"},
    {"created_time>1970-01-02", "(> created_time 86400000000)"},
    {"created_time<=1970-01-01T00:00:01.5Z", "(<= created_time 1500000)"},
    {"created_time between 1970-01-01t01:00:00+01:00 and 1970-01-02",
     "(between created_time 0 86400000000)"},
    {"created_time=1970-01-01T00:00:01-00:00and id='i'",
     "(and (= created_time 1000000) (= id 'i'))"},
    {"status.conditions.Ready.last_updated_time<1970-01-01T00:00:02Z", "(< updated.Ready 2000000)"},
    {"spec.day=2026-01-31", "(= spec.day '2026-01-31')"},
    {"spec.n in (2026, -01)", "(in spec.n 2026 -1)"},
    {"\"name\"='x'", "(= name 'x')"},
    {"`name`='x'", "(= name 'x')"},
    {"labels.\"in\"='x'", "(= labels.in 'x')"},
    /* numbers */
    {"generation=0", "(= generation 0)"},
    {"generation=-5", "(= generation -5)"},
    {"generation=+5", "(= generation 5)"},
    {"generation=- 5", "(= generation -5)"},
    {"generation=2e3", "(= generation 2000)"},
    {"generation=3.0", "(= generation 3)"},
    {"generation=2147483647", "(= generation 2147483647)"},
    {"generation=-2147483648", "(= generation -2147483648)"},
    {"spec.a=.5", "(= spec.a 0.5)"},
    {"spec.a=1.5E-1", "(= spec.a 0.15)"},
    {"spec.a=9223372036854775807", "(= spec.a 9223372036854775807)"},
    {"spec.a=9223372036854775808", "(= spec.a 9.22337e+18)"},
    /* fields */
    {"id='2a'", "(= id '2a')"},
    {"kind='Cluster'", "(= kind 'Cluster')"},
    {"href='/x'", "(= href '/x')"},
    {"created_by='a@b'", "(= created_by 'a@b')"},
    {"updated_by='a@b'", "(= updated_by 'a@b')"},
    {"created_time>='1970-01-01T00:00:01Z'", "(>= created_time 1000000)"},
    {"updated_time<'1970-01-01T01:00:00+01:00'", "(< updated_time 0)"},
    {"deleted_time>'1970-01-01T00:00:01Z'", "(> deleted_time 1000000)"},
    {"created_time>'0001-01-01T00:00:00Z'", "(> created_time -62135596800000000)"},
    {"created_time between '1970-01-01T00:00:00Z' and '1970-01-01T00:00:00.5Z'",
     "(between created_time 0 500000)"},
    {"labels.region='us'", "(= labels.region 'us')"},
    {"labels.a_1='x'", "(= labels.a_1 'x')"},
    {"labels.\"1\"='x'", "(= labels.1 'x')"},
    {"labels.9z='x' and labels . 1e5='y'", "(and (= labels.9z 'x') (= labels.1e5 'y'))"},
    {"spec.a.0=.5 and spec.a between .25 and 1", "(and (= spec.a.0 0.5) (between spec.a 0.25 1))"},
    {"labels . region = 'us'", "(= labels.region 'us')"},
    {"labels.not='x'", "(= labels.not 'x')"},
    /* keys of Kubernetes labels, without quotes and with them */
    {"labels.foo-bar='x'", "(= labels.foo-bar 'x')"},
    {"labels.Region!='x'", "(!= labels.Region 'x')"},
    {"labels.a.b='x'", "(= labels.a.b 'x')"},
    {"labels.\"a.b\"='x' and labels.\"a\".\"b\"='y'",
     "(and (= labels.a.b 'x') (= labels.a.b 'y'))"},
    {"labels.hyperfleet.io/shard = '1'", "(= labels.hyperfleet.io/shard '1')"},
    {"labels.app.kubernetes.io/Part_of.x-1 in ('a')",
     "(in labels.app.kubernetes.io/Part_of.x-1 'a')"},
    {"labels.example.org/a like 'x%' or not labels.b-c is null",
     "(or (like labels.example.org/a 'x%') (not (null labels.b-c)))"},
    {"labels.____='x'", "(= labels.____ 'x')"},
    {"labels.region is null", "(null labels.region)"},
    {"spec.region='us'", "(= spec.region 'us')"},
    {"spec.a.b_2.C='us'", "(= spec.a.b_2.C 'us')"},
    {"spec . a . \"b\" = 1", "(= spec.a.b 1)"},
    {"spec.a.b in (1, 'x', 2.5)", "(in spec.a.b 1 'x' 2.5)"},
    {"spec.spec='x'", "(= spec.spec 'x')"},
    {"spec.a like 'x'", "(like spec.a 'x')"},
    /* conditions, in both vocabularies and both ways to write their subfields */
    {"status.conditions.Ready='True'", "(= condition.Ready 'True')"},
    {"status.conditions.Available = 'False'", "(= condition.Available 'False')"},
    {"status.conditions.DnsSuccessful='Unknown'", "(= condition.DnsSuccessful 'Unknown')"},
    {"status.conditions.Ready is 'True'", "(= condition.Ready 'True')"},
    {"status.conditions.Reconciled='True'", "(= read.Reconciled 'True')"},
    {"status.conditions.LastKnownReconciled='True'", "(= read.LastKnownReconciled 'True')"},
    {"status.conditions.Ready.last_updated_time<='1970-01-01T00:00:02Z'",
     "(<= updated.Ready 2000000)"},
    {"status.conditions.Ready__last_updated_time!='1970-01-01T00:00:02Z'",
     "(!= updated.Ready 2000000)"},
    {"status.conditions.Reconciled.last_transition_time > '1970-01-01T00:00:02.25+00:00'",
     "(> transition.Reconciled 2250000)"},
    {"status.conditions.Dns2.observed_generation >= 7", "(>= generation.Dns2 7)"},
    {"status.conditions.Ready.observed_generation = 2.0", "(= generation.Ready 2)"},
    /* precedence: comparison, NOT, AND, OR; chains lean left */
    {"id='1' or id='2' and id='3'", "(or (= id '1') (and (= id '2') (= id '3')))"},
    {"id='1' and id='2' or id='3'", "(or (and (= id '1') (= id '2')) (= id '3'))"},
    {"(id='1' or id='2') and id='3'", "(and (or (= id '1') (= id '2')) (= id '3'))"},
    {"id='1' AND id='2' And id='3'", "(and (and (= id '1') (= id '2')) (= id '3'))"},
    {"id='1' OR id='2' oR id='3'", "(or (or (= id '1') (= id '2')) (= id '3'))"},
    {"not id='1' and id='2'", "(and (not (= id '1')) (= id '2'))"},
    {"not (id='1' and id='2')", "(not (and (= id '1') (= id '2')))"},
    {"NOT Not id='1'", "(not (not (= id '1')))"},
    {"((id='1'))", "(= id '1')"},
    {"id='1'and id='2'", "(and (= id '1') (= id '2'))"},
    {"status.conditions.Ready='True' AND not labels.region='us-west'",
     "(and (= condition.Ready 'True') (not (= labels.region 'us-west')))"},
    {"status.conditions.Ready='True' or name='x'", "(or (= condition.Ready 'True') (= name 'x'))"},
};

/* Each operator, literal, field, list and quote becomes the node that it stands for. */
static void queries_become_trees(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(trees) / sizeof(trees[0]); i++)
        assert_tree(HFD_KIND_CLUSTER, hfd_slice_of(trees[i].query), trees[i].tree);
    assert_tree(HFD_KIND_NODEPOOL, HFD_SLICE("owner_id='2a'"), "(= owner_id '2a')");
}

/* Reports have fields of their own: those of their documents, and the status of their conditions.
 */
static void reports_have_their_own_fields(void **state)
{
    static const struct {
        const char *query, *expected;
    } cases[] = {
        {"adapter='dns'", "(= adapter 'dns')"},
        {"adapter in ('a', 'b') and observed_generation >= 2",
         "(and (in adapter 'a' 'b') (>= observed 2))"},
        {"last_report_time > '1970-01-02' or created_time < 1970-01-01T00:00:01Z",
         "(or (> reported 86400000000) (< created_time 1000000))"},
        {"conditions.Available='False'", "(= read.Available 'False')"},
        {"name='x'", "name is not a valid field name"},
        {"labels.a='x'", "labels.a is not a valid field name"},
        {"status.conditions.Ready='True'", "status.conditions.Ready is not a valid field name"},
        {"conditions='x'", "conditions is not a valid field name"},
        {"conditions.available='True'", "condition type 'available' is invalid: must be PascalCase "
                                        "(e.g., Ready, Available)"},
        {"conditions.Available='yes'",
         "condition status 'yes' is invalid: must be True, False, or Unknown"},
        {"observed_generation='1'", "expected numeric value for field 'observed_generation'"},
        {"last_report_time='x'", "invalid timestamp for field 'last_report_time': expected RFC3339 "
                                 "format (e.g., 2026-01-01T00:00:00Z)"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct parsed p = {.rc = HFD_OK};

        hfd_arena_init(&p.mem, 1 << 20);
        hfd_buf_init(&p.text, 1 << 20);
        p.rc = hfd_search_parse_reports(hfd_slice_of(cases[i].query), &p.mem, &p.filter, &p.err);
        if (p.filter != NULL)
            show(&p.text, p.filter);
        hfd_buf_addc(&p.text, '\0');
        assert_string_equal(p.rc == HFD_OK ? p.text.p : p.err.msg, cases[i].expected);
        forget(&p);
    }
}

/* Lists of reports are ordered by the fields of reports. */
static void reports_are_ordered_by_their_fields(void **state)
{
    const struct hfd_order_text good = {.by = HFD_SLICE("adapter desc, last_report_time"),
                                        .of_reports = true},
                                bad = {.by = HFD_SLICE("labels.a"), .of_reports = true};
    struct hfd_orders found;
    struct hfd_arena mem;
    struct hfd_err err;

    (void)state;
    hfd_arena_init(&mem, 1 << 16);
    assert_int_equal(hfd_search_order(&good, &mem, &found, &err), HFD_OK);
    assert_int_equal(found.count, 2);
    assert_int_equal(found.items[0].field, HFD_FIELD_ADAPTER);
    assert_true(found.items[0].descending);
    assert_int_equal(found.items[1].field, HFD_FIELD_REPORT_TIME);
    assert_int_equal(hfd_search_order(&bad, &mem, &found, &err), HFD_BAD_REQUEST);
    assert_string_equal(err.msg, "labels.a is not a valid field name");
    hfd_arena_fini(&mem);
}

/* ---- wrong searches ---- */

#define PARSE "Failed to parse search query: "

/*
 * Each parse error repeats the query, and gives the position and what was expected. Positions count
 * from 1.
 */
static void parse_errors_point_at_the_place(void **state)
{
    static const struct {
        const char *query, *message;
    } cases[] = {
        {"garbage", PARSE
         "garbage: at position 8: expected an operator: = != < <= > >= in like ilike between is"},
        {"name", NULL},
        {"name=",
         PARSE "name=: at position 6: expected a value: a number, or text in single quotes"},
        {"name=\"x", PARSE "name=\"x: at position 6: the quote is not closed"},
        {"name=true",
         PARSE "name=true: at position 1: expected text in single quotes for this field"},
        {"name=x",
         PARSE "name=x: at position 6: expected a value: a number, or text in single quotes"},
        {"'x'=name", PARSE "'x'=name: at position 1: expected a field name"},
        {"name='x", PARSE "name='x: at position 6: the quote is not closed"},
        {"name='\xc3\xa9' and", PARSE "name='\xc3\xa9' and: at position 13: expected a field name"},
        {"name='x\\'", PARSE "name='x\\': at position 6: the quote is not closed"},
        {"name='x' name='y'",
         PARSE "name='x' name='y': at position 10: expected AND, OR or the end of the query"},
        {"name='x')", PARSE "name='x'): at position 9: expected AND, OR or the end of the query"},
        {"(name='x'", PARSE "(name='x': at position 10: expected AND, OR or a closing parenthesis"},
        {"()", PARSE "(): at position 2: expected a field name"},
        {"name='x' and", PARSE "name='x' and: at position 13: expected a field name"},
        {"and name='x'", NULL},
        {"not", PARSE "not: at position 4: expected a field name"},
        {"name not 'x'", NULL},
        {"name ! 'x'", PARSE "name ! 'x': at position 6: unexpected character"},
        {"name='x';", PARSE "name='x';: at position 9: unexpected character"},
        {"name=='x'",
         PARSE "name=='x': at position 6: expected a value: a number, or text in single quotes"},
        {"name~='x'", NULL},
        {"name='x'--", PARSE "name='x'--: at position 9: expected AND, OR or the end of the query"},
        {"labels.foo bar='x'", PARSE "labels.foo bar='x': at position 12: expected an operator: = "
                                     "!= < <= > >= in like ilike between is"},
        {"spec.foo-bar='x'", PARSE "spec.foo-bar='x': at position 9: expected an operator: = "
                                   "!= < <= > >= in like ilike between is"},
        {"labels.='x'", PARSE "labels.='x': at position 8: expected a name behind the dot"},
        {".name='x'", PARSE ".name='x': at position 1: expected a field name"},
        {"name in 'x'",
         PARSE "name in 'x': at position 9: expected a list: ('a', 'b') or ['a', 'b']"},
        {"name in ('x'",
         PARSE "name in ('x': at position 13: expected a comma, or the end of the list"},
        {"name in ('x']",
         PARSE "name in ('x']: at position 13: expected a comma, or the end of the list"},
        {"name in ('x',)", PARSE
         "name in ('x',): at position 14: expected a value: a number, or text in single quotes"},
        {"name in ('x' 'y')",
         PARSE "name in ('x' 'y'): at position 14: expected a comma, or the end of the list"},
        {"name between 'a'",
         PARSE "name between 'a': at position 17: expected AND and the upper bound"},
        {"name between 'a' or 'b'",
         PARSE "name between 'a' or 'b': at position 18: expected AND and the upper bound"},
        {"name is not",
         PARSE "name is not: at position 12: expected a value: a number, or text in single quotes"},
        {"name like 5",
         PARSE "name like 5: at position 1: expected text in single quotes behind like"},
        {"generation like '5'",
         PARSE "generation like '5': at position 1: like needs a text field"},
        {"created_time like '1970-01-01T00:00:00Z'",
         PARSE "created_time like '1970-01-01T00:00:00Z': at position 1: like needs a text field"},
        {"id='1' and name=5",
         PARSE "id='1' and name=5: at position 12: expected text in single quotes for this field"},
        {"labels.a=1",
         PARSE "labels.a=1: at position 1: expected text in single quotes for this field"},
        {"generation=-", PARSE "generation=-: at position 13: expected a number behind the sign"},
        {"generation=-'1'",
         PARSE "generation=-'1': at position 13: expected a number behind the sign"},
        {"spec.a=1e999", PARSE "spec.a=1e999: at position 8: the number is out of range"},
        {"spec.a=11111111111111111111111111111111111111111111111111", NULL},
        {"name = 'a' is null", NULL},
        {"generation + 1 = 2", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct parsed p;

        if (cases[i].message != NULL) {
            assert_error(HFD_KIND_CLUSTER, hfd_slice_of(cases[i].query), cases[i].message);
            continue;
        }
        parse(&p, HFD_KIND_CLUSTER, hfd_slice_of(cases[i].query));
        if (p.rc != HFD_BAD_REQUEST)
            fail_msg("%s is taken: %s", cases[i].query, p.text.p);
        forget(&p);
    }
}

#define NOT_CONDITION                                                                              \
    "NOT operator is not supported with condition queries; use the inverse condition instead "     \
    "(e.g., Ready='False')"
#define SUBFIELD_OP(op)                                                                            \
    "operator '" op "' is not supported for condition subfield queries; use =, !=, <, <=, >, or "  \
    ">="
#define STATUS_OP "only equality operator (=) is supported for condition status queries"
#define LABEL_KEY "must be the key of a Kubernetes label"
#define RFC3339 "expected RFC3339 format (e.g., 2026-01-01T00:00:00Z)"

/* Queries, and the error of each. */
static const struct {
    const char *query, *message;
} field_errors[] = {
    {"spec='x'", "spec is not a valid field name"},
    {"x.spec='x'", "spec is not a valid field name"},
    {"foo='x'", "foo is not a valid field name"},
    {"Name='x'", "Name is not a valid field name"},
    {"labels='x'", "labels is not a valid field name"},
    {"status='x'", "status is not a valid field name"},
    {"owner_id='x'", "owner_id is not a valid field name"},
    {"foo.bar='x'", "foo is not a related resource of Cluster"},
    {"status.phase='x'", "status is not a related resource of Cluster"},
    {"status.conditions='x'", "status is not a related resource of Cluster"},
    {"a.b.c='x'", "a.b.c is not a valid field name"},
    {"a.b.c.d.e='x'", "a.b.c.d.e is not a valid field name"},
    {"status.other.Ready='True'", "status.other.Ready is not a valid field name"},
    {"status.conditions.Ready.last_updated_time.x='True'",
     "status.conditions.Ready.last_updated_time.x is not a valid field name"},
    {"spec.\"a-b\"='x'", "spec.\"a-b\" is not a valid field name"},
    {"spec.\"\"='x'", "spec.\"\" is not a valid field name"},
    {"labels.\"a b\"='x'", "label key 'a b' is invalid: " LABEL_KEY},
    {"labels.foo-='x'", "label key 'foo-' is invalid: " LABEL_KEY},
    {"labels.a.b.='x'", "label key 'a.b.' is invalid: " LABEL_KEY},
    {"labels.a/='x'", "label key 'a/' is invalid: " LABEL_KEY},
    {"labels.A/b='x'", "label key 'A/b' is invalid: " LABEL_KEY},
    {"labels.a/b/c='x'", "label key 'a/b/c' is invalid: " LABEL_KEY},
    {"labels.a..b/c='x'", "label key 'a..b/c' is invalid: " LABEL_KEY},
    {"labels.a-.b/c='x'", "label key 'a-.b/c' is invalid: " LABEL_KEY},
    {"labels.a.-b/c='x'", "label key 'a.-b/c' is invalid: " LABEL_KEY},
    {"labels._A='x'", "label key '_A' is invalid: " LABEL_KEY},
    {"created_time>'2026-13-01'", "invalid timestamp for field 'created_time': " RFC3339},
    {"created_time>true", "expected string timestamp value for field 'created_time'"},
    {"generation=true", "expected numeric value for field 'generation'"},
    {"generation=2026-01-01", "expected numeric value for field 'generation'"},
    {"status.conditions.Ready=true", "expected string for right side of condition"},
    {"adapter='dns'", "adapter is not a valid field name"},
    {"labels.\"\"='x'", "label key cannot be empty"},
    {"status.conditions.ready='True'",
     "condition type 'ready' is invalid: must be PascalCase (e.g., Ready, Available)"},
    {"status.conditions.Rea_dy='True'",
     "condition type 'Rea_dy' is invalid: must be PascalCase (e.g., Ready, Available)"},
    {"status.conditions.\"\"='True'",
     "condition type '' is invalid: must be PascalCase (e.g., Ready, Available)"},
    {"status.conditions.__last_updated_time='True'",
     "condition type '' is invalid: must be PascalCase (e.g., Ready, Available)"},
    {"status.conditions.Ready='true'",
     "condition status 'true' is invalid: must be True, False, or Unknown"},
    {"status.conditions.Ready!='maybe'",
     "condition status 'maybe' is invalid: must be True, False, or Unknown"},
    {"status.conditions.Ready!='True'", STATUS_OP},
    {"status.conditions.Ready<'True'", STATUS_OP},
    {"status.conditions.Ready like 'True'", STATUS_OP},
    {"status.conditions.Ready in ('True')", STATUS_OP},
    {"status.conditions.Ready is null", STATUS_OP},
    {"status.conditions.Ready between 'True' and 'True'", STATUS_OP},
    {"status.conditions.Ready=1", "expected string for right side of condition"},
    {"status.conditions.Ready!=1", "expected string for right side of condition"},
    {"status.conditions.Ready.reason='x'",
     "condition subfield 'reason' is not supported; use last_updated_time, "
     "last_transition_time, or observed_generation"},
    {"status.conditions.Ready.created_time='x'",
     "condition subfield 'created_time' is not supported; use last_updated_time, "
     "last_transition_time, or observed_generation"},
    {"status.conditions.Ready__status='x'",
     "condition subfield 'status' is not supported; use last_updated_time, "
     "last_transition_time, or observed_generation"},
    {"status.conditions.Ready.last_updated_time=5",
     "expected string timestamp value for condition subfield 'last_updated_time'"},
    {"status.conditions.Ready.last_transition_time=5",
     "expected string timestamp value for condition subfield 'last_transition_time'"},
    {"status.conditions.Ready.last_updated_time='yesterday'",
     "invalid timestamp for condition subfield 'last_updated_time': " RFC3339},
    {"status.conditions.Ready.last_transition_time<'2026-01'",
     "invalid timestamp for condition subfield 'last_transition_time': " RFC3339},
    {"status.conditions.Ready.observed_generation='5'",
     "expected numeric value for condition subfield 'observed_generation'"},
    {"status.conditions.Ready.observed_generation=1.5",
     "expected integer value for condition subfield 'observed_generation'"},
    {"status.conditions.Ready.observed_generation=2147483648",
     "value 2147483648 is out of 32-bit integer range for condition subfield "
     "'observed_generation'"},
    {"status.conditions.Ready.observed_generation=-2147483649",
     "value -2147483649 is out of 32-bit integer range for condition subfield "
     "'observed_generation'"},
    {"status.conditions.Ready.observed_generation=3e9",
     "value 3000000000 is out of 32-bit integer range for condition subfield "
     "'observed_generation'"},
    {"status.conditions.Ready.observed_generation=1e300",
     "value 1.0000000000000001e+300 is out of 32-bit integer range for condition subfield "
     "'observed_generation'"},
    {"status.conditions.Ready.observed_generation like 'x'", SUBFIELD_OP("$like")},
    {"status.conditions.Ready.last_updated_time ilike 'x'", SUBFIELD_OP("$ilike")},
    {"status.conditions.Ready.observed_generation in (1)", SUBFIELD_OP("$in")},
    {"status.conditions.Ready.observed_generation between 1 and 2", SUBFIELD_OP("$between")},
    {"status.conditions.Ready.last_updated_time is null", SUBFIELD_OP("$is")},
    {"not status.conditions.Ready='True'", NOT_CONDITION},
    {"not (name='x' or (id='y' and status.conditions.Ready='True'))", NOT_CONDITION},
    {"not not status.conditions.Ready='True'", NOT_CONDITION},
    {"not status.conditions.Ready.observed_generation=1", NOT_CONDITION},
    {"status.conditions.Ready is not 'True'", NOT_CONDITION},
    {"generation='1'", "expected numeric value for field 'generation'"},
    {"generation in (1, 1.5)", "expected integer value for field 'generation'"},
    {"created_time=5", "expected string timestamp value for field 'created_time'"},
    {"updated_time='today'", "invalid timestamp for field 'updated_time': " RFC3339},
    {"deleted_time='today'", "invalid timestamp for field 'deleted_time': " RFC3339},
    {"deleted_time=5", "expected string timestamp value for field 'deleted_time'"},
};

/* Each wrong field and value gives HyperFleet's text. */
static void field_errors_use_hyperfleets_words(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(field_errors) / sizeof(field_errors[0]); i++)
        assert_error(HFD_KIND_CLUSTER, hfd_slice_of(field_errors[i].query),
                     field_errors[i].message);
    assert_error(HFD_KIND_NODEPOOL, HFD_SLICE("foo.bar='x'"),
                 "foo is not a related resource of NodePool");
}

/* A NUL is refused in a quoted text and outside: it is no end, and no white space. */
static void nul_bytes_are_no_end(void **state)
{
    struct parsed p;

    (void)state;
    parse(&p, HFD_KIND_CLUSTER, HFD_SLICE("name='a\0b'"));
    assert_int_equal(p.rc, HFD_BAD_REQUEST);
    forget(&p);
    parse(&p, HFD_KIND_CLUSTER, HFD_SLICE("name='a'\0"));
    assert_int_equal(p.rc, HFD_BAD_REQUEST);
    forget(&p);
}

/* 4096 bytes without the white space around them are parsed, 4097 are not. */
static void length_is_bounded(void **state)
{
    char text[HFD_SEARCH_MAX + 3];
    struct parsed p;

    (void)state;
    memset(text, 'x', sizeof(text));
    memcpy(text, " name='", 7);
    text[HFD_SEARCH_MAX] = '\'';
    text[HFD_SEARCH_MAX + 1] = ' ';
    parse(&p, HFD_KIND_CLUSTER, (hfd_slice){text, HFD_SEARCH_MAX + 2});
    assert_int_equal(p.rc, HFD_OK);
    forget(&p);
    text[HFD_SEARCH_MAX] = 'x';
    text[HFD_SEARCH_MAX + 1] = '\'';
    assert_error(HFD_KIND_CLUSTER, (hfd_slice){text, HFD_SEARCH_MAX + 2},
                 "search query exceeds maximum length of 4096 characters");
}

/*
 * Parentheses and NOTs nest to the limit and not beyond. A chain as long as the text allows is not
 * nested.
 */
static void depth_is_bounded(void **state)
{
    struct parsed p;
    struct hfd_buf b;

    (void)state;
    hfd_buf_init(&b, HFD_SEARCH_MAX);
    for (int depth = HFD_SEARCH_DEPTH_MAX - 1; depth <= HFD_SEARCH_DEPTH_MAX; depth++) {
        for (int with_not = 0; with_not < 2; with_not++) {
            hfd_buf_reset(&b);
            for (int i = 0; i < depth; i++)
                hfd_buf_add(&b, with_not ? HFD_SLICE("not ") : HFD_SLICE("("));
            hfd_buf_lit(&b, "id='1'");
            for (int i = 0; i < depth && !with_not; i++)
                hfd_buf_addc(&b, ')');
            parse(&p, HFD_KIND_CLUSTER, hfd_buf_slice(&b));
            assert_int_equal(p.rc, depth < HFD_SEARCH_DEPTH_MAX ? HFD_OK : HFD_BAD_REQUEST);
            if (p.rc != HFD_OK)
                assert_non_null(strstr(p.err.msg, "nested too deeply"));
            forget(&p);
        }
    }
    hfd_buf_reset(&b);
    hfd_buf_lit(&b, "id=''");
    while (b.len + 9 <= HFD_SEARCH_MAX)
        hfd_buf_lit(&b, "or(id='')");
    parse(&p, HFD_KIND_CLUSTER, hfd_buf_slice(&b));
    assert_int_equal(p.rc, HFD_OK);
    forget(&p);
    hfd_buf_fini(&b);
}

/* Lists hold a thousand values. */
static void list_length_is_bounded(void **state)
{
    struct parsed p;
    struct hfd_buf b;

    (void)state;
    hfd_buf_init(&b, HFD_SEARCH_MAX);
    hfd_buf_lit(&b, "generation in (0");
    for (int i = 1; i < 1000; i++)
        hfd_buf_addf(&b, ",%d", i % 10);
    hfd_buf_addc(&b, ')');
    parse(&p, HFD_KIND_CLUSTER, hfd_buf_slice(&b));
    assert_int_equal(p.rc, HFD_OK);
    assert_int_equal(p.filter->value_count, 1000);
    assert_int_equal(p.filter->values[999].num, 9);
    forget(&p);
    b.len--;
    hfd_buf_lit(&b, ",1)");
    parse(&p, HFD_KIND_CLUSTER, hfd_buf_slice(&b));
    assert_int_equal(p.rc, HFD_BAD_REQUEST);
    assert_non_null(strstr(p.err.msg, "the list is too long"));
    forget(&p);
    hfd_buf_fini(&b);
}

/* A long query is repeated in part, so that the place still fits into the message. */
static void long_query_is_cut_in_the_message(void **state)
{
    char text[300], expected[248];

    (void)state;
    memset(text, 'x', sizeof(text));
    (void)snprintf(
        expected, sizeof(expected),
        PARSE
        "%.100s...: at position 301: expected an operator: = != < <= > >= in like ilike between is",
        text);
    assert_error(HFD_KIND_CLUSTER, (hfd_slice){text, sizeof(text)}, expected);
}

/* With any amount of memory the result is a tree or HFD_NOMEM. */
static void out_of_memory_is_told(void **state)
{
    static const char query[] =
        "name in ('a','b') and not (labels.x = 'y' or spec . a . b between 1 and 2)";
    struct hfd_err err;
    hfd_rc rc = HFD_NOMEM;

    (void)state;
    for (size_t max = 0; rc != HFD_OK; max += 64) {
        const struct hfd_filter *filter;
        struct hfd_arena mem;

        assert_true(max < 100000);
        hfd_arena_init(&mem, max);
        rc = hfd_search_parse(HFD_KIND_CLUSTER, HFD_SLICE(query), &mem, &filter, &err);
        assert_true(rc == HFD_OK || (rc == HFD_NOMEM && filter == NULL));
        hfd_arena_fini(&mem);
    }
}

/* ---- order ---- */

/* Items, directions and defaults; an error names the item. */
static void orders(void **state)
{
    static const struct {
        const char *text, *direction,
            *expected; /* "field desc|asc ..."; or the error, then `bad` names the parameter */
        const char *bad;
    } cases[] = {
        {"", "", "created_time desc", NULL},
        {"  ", "", "created_time desc", NULL},
        {"", "asc", "created_time asc", NULL},
        {"", "desc", "created_time desc", NULL},
        {"name", "", "name asc", NULL},
        {"name", "desc", "name desc", NULL},
        {"name asc", "desc", "name asc", NULL},
        {"name  desc", "", "name desc", NULL},
        {" name desc , generation ,id", "", "name desc,generation asc,id asc", NULL},
        {"name, id asc", "desc", "name desc,id asc", NULL},
        {"labels.region desc", "", "labels.region desc", NULL},
        {"updated_time,created_by,updated_by,kind,href,created_time", "",
         "updated_time asc,created_by asc,updated_by asc,kind asc,href asc,created_time asc", NULL},
        {"name DESC", "", "bad order value 'name DESC'", "orderBy"},
        {"name up", "", "bad order value 'name up'", "orderBy"},
        {"name asc desc", "", "bad order value 'name asc desc'", "orderBy"},
        {"spec", "", "spec is not a valid field name", "orderBy"},
        {"spec.a", "", "spec.a is not a valid field name", "orderBy"},
        {"owner_id", "", "owner_id is not a valid field name", "orderBy"},
        {"status.conditions.Ready", "", "status.conditions.Ready is not a valid field name",
         "orderBy"},
        {"name;drop", "", "name;drop is not a valid field name", "orderBy"},
        {"labels.example.org/A-b desc", "", "labels.example.org/A-b desc", NULL},
        {"labels.-a", "", "label key '-a' is invalid: " LABEL_KEY, "orderBy"},
        {"adapter", "", "adapter is not a valid field name", "orderBy"},
        {"labels.", "", "label key cannot be empty", "orderBy"},
        {"name,,id", "", "bad order value ',id': expected 1 to 8 fields", "orderBy"},
        {"name,", "", "bad order value '': expected 1 to 8 fields", "orderBy"},
        {"id,id,id,id,id,id,id,id,id", "", "bad order value 'id': expected 1 to 8 fields",
         "orderBy"},
        {"name", "up", "order must be 'asc' or 'desc'", "order"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct hfd_orders found;
        struct hfd_arena mem;
        struct hfd_err err;
        struct hfd_buf b;
        hfd_rc rc;

        hfd_arena_init(&mem, 1 << 16);
        hfd_buf_init(&b, 1 << 16);
        rc =
            hfd_search_order(&(struct hfd_order_text){HFD_KIND_CLUSTER, hfd_slice_of(cases[i].text),
                                                      hfd_slice_of(cases[i].direction), false},
                             &mem, &found, &err);
        if (cases[i].bad != NULL) {
            assert_int_equal(rc, HFD_BAD_REQUEST);
            assert_string_equal(err.msg, cases[i].expected);
            assert_string_equal(err.field, cases[i].bad);
        } else {
            assert_int_equal(rc, HFD_OK);
            for (size_t k = 0; k < found.count; k++)
                hfd_buf_addf(&b, "%s%s%.*s %s", k > 0 ? "," : "", field_texts[found.items[k].field],
                             HFD_SLICE_FMT(found.items[k].name),
                             found.items[k].descending ? "desc" : "asc");
            hfd_buf_addc(&b, '\0');
            assert_string_equal(b.p, cases[i].expected);
        }
        hfd_buf_fini(&b);
        hfd_arena_fini(&mem);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(queries_become_trees),
        cmocka_unit_test(reports_have_their_own_fields),
        cmocka_unit_test(reports_are_ordered_by_their_fields),
        cmocka_unit_test(parse_errors_point_at_the_place),
        cmocka_unit_test(field_errors_use_hyperfleets_words),
        cmocka_unit_test(nul_bytes_are_no_end),
        cmocka_unit_test(length_is_bounded),
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(list_length_is_bounded),
        cmocka_unit_test(long_query_is_cut_in_the_message),
        cmocka_unit_test(out_of_memory_is_told),
        cmocka_unit_test(orders),
    };

    return cmocka_run_group_tests_name("search", tests, setup, NULL);
}
