/* See search.h. */
#include "driver/fleet/search.h"

#include "driver/base/clock.h"
#include "driver/fleet/condition.h"
#include "driver/fleet/search_lex.h"

#include <errno.h>
#include <math.h>

/* ---- search check ---- */

/*
 * Checks a comparison of a search: whether its field has the operator and accepts the values.
 * Thread: any.
 */

/* The checks of comparisons. Most texts of errors here are HyperFleet's. */

#define INT32_MAX_VALUE INT64_C(2147483647)
#define ONLY_EQUALITY "only equality operator (=) is supported for condition status queries"

/* The form that the values of a field must have. */
enum form {
    FORM_TEXT,
    FORM_TIME,
    FORM_GENERATION,
    FORM_STATUS,
    FORM_ANY
};

static const struct {
    enum form form;
    const char *name; /* in errors */
} forms[HFD_FIELD_COUNT] = {
    [HFD_FIELD_CREATED_TIME] = {FORM_TIME, "field 'created_time'"},
    [HFD_FIELD_UPDATED_TIME] = {FORM_TIME, "field 'updated_time'"},
    [HFD_FIELD_DELETED_TIME] = {FORM_TIME, "field 'deleted_time'"},
    [HFD_FIELD_GENERATION] = {FORM_GENERATION, "field 'generation'"},
    [HFD_FIELD_CONDITION] = {FORM_STATUS, NULL},
    [HFD_FIELD_CONDITION_READ] = {FORM_STATUS, NULL},
    [HFD_FIELD_CONDITION_PENDING] = {FORM_STATUS, NULL},
    [HFD_FIELD_CONDITION_UPDATED] = {FORM_TIME, "condition subfield 'last_updated_time'"},
    [HFD_FIELD_CONDITION_TRANSITION] = {FORM_TIME, "condition subfield 'last_transition_time'"},
    [HFD_FIELD_CONDITION_GENERATION] = {FORM_GENERATION,
                                        "condition subfield 'observed_generation'"},
    [HFD_FIELD_SPEC] = {FORM_ANY, NULL},
    [HFD_FIELD_REPORT_GENERATION] = {FORM_GENERATION, "field 'observed_generation'"},
    [HFD_FIELD_REPORT_TIME] = {FORM_TIME, "field 'last_report_time'"},
};

/* Parses a time; a date alone is its first instant, in UTC. */
static hfd_rc parse_time(hfd_slice text, int64_t *out)
{
    char whole[] = "2026-01-31T00:00:00Z";

    if (text.len != sizeof("2026-01-31") - 1)
        return hfd_time_parse_any(text, out, NULL);
    memcpy(whole, text.p, text.len);
    return hfd_time_parse_any(hfd_slice_of(whole), out, NULL);
}

static hfd_rc check_time(struct hfd_search *s, const char *name, struct hfd_filter_value *v)
{
    if (v->kind != HFD_VALUE_TEXT)
        return hfd_fail_field(s->err, HFD_BAD_REQUEST, "search",
                              "expected string timestamp value for %s", name);
    if (parse_time(v->text, &v->num) != HFD_OK)
        return hfd_fail_field(
            s->err, HFD_BAD_REQUEST, "search",
            "invalid timestamp for %s: expected RFC3339 format (e.g., 2026-01-01T00:00:00Z)", name);
    v->kind = HFD_VALUE_INT;
    return HFD_OK;
}

static hfd_rc check_generation(struct hfd_search *s, const char *name, struct hfd_filter_value *v)
{
    if (v->kind == HFD_VALUE_TEXT || v->kind == HFD_VALUE_BOOL)
        return hfd_fail_field(s->err, HFD_BAD_REQUEST, "search", "expected numeric value for %s",
                              name);
    if (v->kind == HFD_VALUE_REAL && v->real != trunc(v->real))
        return hfd_fail_field(s->err, HFD_BAD_REQUEST, "search", "expected integer value for %s",
                              name);
    if (v->kind == HFD_VALUE_REAL && fabs(v->real) > (double)INT32_MAX_VALUE + 1)
        return hfd_fail_field(s->err, HFD_BAD_REQUEST, "search",
                              "value %.17g is out of 32-bit integer range for %s", v->real, name);
    if (v->kind == HFD_VALUE_REAL) {
        v->num = (int64_t)v->real;
        v->kind = HFD_VALUE_INT;
    }
    if (v->num > INT32_MAX_VALUE || v->num < -INT32_MAX_VALUE - 1)
        return hfd_fail_field(s->err, HFD_BAD_REQUEST, "search",
                              "value %lld is out of 32-bit integer range for %s", (long long)v->num,
                              name);
    return HFD_OK;
}

static hfd_rc check_status(struct hfd_search *s, const struct hfd_filter *f,
                           const struct hfd_filter_value *v)
{
    enum hfd_status status;

    if (v->kind != HFD_VALUE_TEXT)
        return hfd_fail_field(s->err, HFD_BAD_REQUEST, "search",
                              "expected string for right side of condition");
    if (!hfd_status_parse(v->text, &status))
        return hfd_fail_field(s->err, HFD_BAD_REQUEST, "search",
                              "condition status '%.*s' is invalid: must be True, False, or Unknown",
                              (int)(v->text.len < 60 ? v->text.len : 60), v->text.p);
    if (f->op != HFD_FILTER_EQ)
        return hfd_fail_field(s->err, HFD_BAD_REQUEST, "search", ONLY_EQUALITY);
    return HFD_OK;
}

static hfd_rc check_value(struct hfd_search *s, const struct hfd_filter *f,
                          struct hfd_filter_value *v)
{
    switch (forms[f->field].form) {
    case FORM_TIME:
        return check_time(s, forms[f->field].name, v);
    case FORM_GENERATION:
        return check_generation(s, forms[f->field].name, v);
    case FORM_STATUS:
        return check_status(s, f, v);
    case FORM_ANY:
        v->kind = v->kind == HFD_VALUE_BOOL ? HFD_VALUE_TEXT : v->kind;
        return HFD_OK;
    case FORM_TEXT:
        break;
    }
    return v->kind == HFD_VALUE_TEXT
               ? HFD_OK
               : hfd_lex_fail(s, "expected text in single quotes for this field");
}

static hfd_rc check_operator(struct hfd_search *s, const struct hfd_filter *f)
{
    static const char *const names[HFD_FILTER_OP_COUNT] = {
        [HFD_FILTER_LIKE] = "$like",       [HFD_FILTER_ILIKE] = "$ilike",
        [HFD_FILTER_BETWEEN] = "$between", [HFD_FILTER_IN] = "$in",
        [HFD_FILTER_IS_NULL] = "$is",
    };
    const bool is_pattern = f->op == HFD_FILTER_LIKE || f->op == HFD_FILTER_ILIKE;
    const enum form form = forms[f->field].form;

    if (hfd_field_is_condition_sub(f->field) && names[f->op] != NULL)
        return hfd_fail_field(s->err, HFD_BAD_REQUEST, "search",
                              "operator '%s' is not supported for condition subfield queries; use "
                              "=, !=, <, <=, >, or >=",
                              names[f->op]);
    if (form == FORM_STATUS && names[f->op] != NULL && !is_pattern)
        return hfd_fail_field(s->err, HFD_BAD_REQUEST, "search", ONLY_EQUALITY);
    if (is_pattern && f->values[0].kind != HFD_VALUE_TEXT)
        return hfd_lex_fail(s, "expected text in single quotes behind like");
    if (is_pattern && (form == FORM_TIME || form == FORM_GENERATION))
        return hfd_lex_fail(s, "like needs a text field");
    return HFD_OK;
}

/* Sentinels poll for it. */
static bool asks_for_pending(const struct hfd_search *s, const struct hfd_filter *f)
{
    return !s->of_reports && f->field == HFD_FIELD_CONDITION_READ &&
           hfd_slice_is(f->name, "Reconciled") && f->op == HFD_FILTER_EQ &&
           hfd_slice_is(f->values[0].text, "False");
}

/*
 * Checks a comparison whose field is resolved, and turns the texts of times into microseconds.
 * @param f  its values are replaced by checked copies
 * @return HFD_OK, HFD_BAD_REQUEST, HFD_NOMEM
 */
static hfd_rc comparison_check(struct hfd_search *s, struct hfd_filter *f)
{
    struct hfd_filter_value *values;
    hfd_rc rc = check_operator(s, f);

    if (rc != HFD_OK)
        return rc;
    values = hfd_arena_array(s->mem, f->value_count + 1, sizeof(*values));
    if (values == NULL)
        return hfd_fail_nomem(s->err, "parse a search");
    if (f->value_count > 0)
        memcpy(values, f->values, f->value_count * sizeof(*values));
    for (size_t i = 0; rc == HFD_OK && i < f->value_count; i++)
        rc = check_value(s, f, &values[i]);
    f->values = values;
    if (rc == HFD_OK && asks_for_pending(s, f))
        f->field = HFD_FIELD_CONDITION_PENDING;
    return rc;
}

/* ---- search ---- */

/*
 * The grammar of searches: a recursive descent over tokens with a depth limit.
 */

#define VALUES_MAX 1000
#define EXPECTED_VALUE "expected a value: a number, or text in single quotes"

/* ---- values ---- */

static hfd_rc parse_number(struct hfd_search *s, bool negative, struct hfd_filter_value *out)
{
    char text[48];
    char *end;

    if (s->word.len >= sizeof(text) - 1)
        return hfd_lex_fail(s, "the number is too long");
    (void)snprintf(text, sizeof(text), "%s%.*s", negative ? "-" : "", HFD_SLICE_FMT(s->word));
    if (strpbrk(text, ".eE") == NULL &&
        hfd_parse_i64(hfd_slice_of(text), INT64_MIN, INT64_MAX, &out->num, NULL) == HFD_OK) {
        out->kind = HFD_VALUE_INT;
        return HFD_OK;
    }
    errno = 0;
    out->kind = HFD_VALUE_REAL;
    out->real = strtod(text, &end);
    return errno == 0 && *end == '\0' ? HFD_OK : hfd_lex_fail(s, "the number is out of range");
}

static hfd_rc parse_literal(struct hfd_search *s, struct hfd_filter_value *out)
{
    bool negative = false;
    hfd_rc rc;

    if (s->tok == HFD_TOK_SIGN) {
        negative = *s->word.p == '-';
        rc = hfd_lex_next(s);
        if (rc != HFD_OK)
            return rc;
        if (s->tok != HFD_TOK_NUMBER)
            return hfd_lex_fail(s, "expected a number behind the sign");
    }
    if (s->tok == HFD_TOK_NUMBER) {
        rc = parse_number(s, negative, out);
        return rc == HFD_OK ? hfd_lex_next(s) : rc;
    }
    if (s->tok != HFD_TOK_STRING && s->tok != HFD_TOK_NAME)
        return hfd_lex_fail(s, EXPECTED_VALUE);
    out->kind = HFD_VALUE_TEXT;
    out->text = s->word;
    if (s->tok == HFD_TOK_NAME && !s->quoted) {
        if (!hfd_slice_ieq(s->word, HFD_SLICE("true")) &&
            !hfd_slice_ieq(s->word, HFD_SLICE("false")))
            return hfd_lex_fail(s, EXPECTED_VALUE);
        out->kind = HFD_VALUE_BOOL;
        out->text =
            hfd_slice_ieq(s->word, HFD_SLICE("true")) ? HFD_SLICE("true") : HFD_SLICE("false");
    }
    return hfd_lex_next(s);
}

static hfd_rc parse_list(struct hfd_search *s, struct hfd_filter *f)
{
    const enum hfd_search_token close =
        s->tok == HFD_TOK_LPAREN ? HFD_TOK_RPAREN : HFD_TOK_RBRACKET;
    struct hfd_filter_value values[VALUES_MAX], *copy;
    size_t n = 0;
    hfd_rc rc;

    if (s->tok != HFD_TOK_LPAREN && s->tok != HFD_TOK_LBRACKET)
        return hfd_lex_fail(s, "expected a list: ('a', 'b') or ['a', 'b']");
    rc = hfd_lex_next(s);
    while (rc == HFD_OK && s->tok != close) {
        if (n > 0) {
            if (s->tok != HFD_TOK_COMMA)
                return hfd_lex_fail(s, "expected a comma, or the end of the list");
            rc = hfd_lex_next(s);
        }
        if (rc == HFD_OK && n == VALUES_MAX)
            return hfd_lex_fail(s, "the list is too long");
        if (rc == HFD_OK)
            rc = parse_literal(s, &values[n++]);
    }
    if (rc != HFD_OK)
        return rc;
    copy = hfd_arena_array(s->mem, n + 1, sizeof(*copy));
    if (copy == NULL)
        return hfd_fail_nomem(s->err, "parse a search");
    memcpy(copy, values, n * sizeof(*copy));
    f->values = copy;
    f->value_count = n;
    return hfd_lex_next(s);
}

/* ---- expressions ---- */

static hfd_rc parse_expression(struct hfd_search *s, const struct hfd_filter **out);

static hfd_rc new_node(struct hfd_search *s, enum hfd_filter_op op, const struct hfd_filter *left,
                       const struct hfd_filter *right, const struct hfd_filter **out)
{
    struct hfd_filter *f = hfd_arena_alloc(s->mem, sizeof(*f));

    if (f == NULL)
        return hfd_fail_nomem(s->err, "parse a search");
    *f = (struct hfd_filter){.op = op, .left = left, .right = right};
    *out = f;
    return HFD_OK;
}

static hfd_rc parse_values(struct hfd_search *s, struct hfd_filter *f, size_t n)
{
    struct hfd_filter_value *v = hfd_arena_array(s->mem, n, sizeof(*v));
    bool taken;
    hfd_rc rc;

    if (v == NULL)
        return hfd_fail_nomem(s->err, "parse a search");
    rc = parse_literal(s, &v[0]);
    if (rc == HFD_OK && n == 2) {
        rc = hfd_lex_take_keyword(s, "and", &taken);
        if (rc == HFD_OK && !taken)
            return hfd_lex_fail(s, "expected AND and the upper bound");
        if (rc == HFD_OK)
            rc = parse_literal(s, &v[1]);
    }
    f->values = v;
    f->value_count = n;
    return rc;
}

/* Parses null or a value behind "is". @param negate  true for "is not" */
static hfd_rc parse_is(struct hfd_search *s, struct hfd_filter *f, bool *negate)
{
    bool is_null;
    hfd_rc rc = hfd_lex_take_keyword(s, "not", negate);

    if (rc == HFD_OK)
        rc = hfd_lex_take_keyword(s, "null", &is_null);
    if (rc != HFD_OK)
        return rc;
    f->op = is_null ? HFD_FILTER_IS_NULL : HFD_FILTER_EQ;
    return is_null ? HFD_OK : parse_values(s, f, 1);
}

static hfd_rc parse_symbol_operator(struct hfd_search *s, struct hfd_filter *f)
{
    hfd_rc rc;

    f->op = s->op;
    rc = hfd_lex_next(s);
    return rc == HFD_OK ? parse_values(s, f, 1) : rc;
}

/* Parses operator and values behind a field. @param negate  true when the comparison is negated */
static hfd_rc parse_operation(struct hfd_search *s, struct hfd_filter *f, bool *negate)
{
    static const struct {
        const char *word;
        enum hfd_filter_op op;
        size_t values; /* 0: a list */
    } words[] = {
        {"like", HFD_FILTER_LIKE, 1},
        {"ilike", HFD_FILTER_ILIKE, 1},
        {"between", HFD_FILTER_BETWEEN, 2},
        {"in", HFD_FILTER_IN, 0},
    };
    bool taken;
    hfd_rc rc;

    if (s->tok == HFD_TOK_OP)
        return parse_symbol_operator(s, f);
    rc = hfd_lex_take_keyword(s, "is", &taken);
    if (rc != HFD_OK)
        return rc;
    if (taken)
        return parse_is(s, f, negate);
    rc = hfd_lex_take_keyword(s, "not", negate);
    for (size_t i = 0; rc == HFD_OK && i < sizeof(words) / sizeof(words[0]); i++) {
        rc = hfd_lex_take_keyword(s, words[i].word, &taken);
        if (rc == HFD_OK && taken) {
            f->op = words[i].op;
            return words[i].values == 0 ? parse_list(s, f) : parse_values(s, f, words[i].values);
        }
    }
    return rc == HFD_OK
               ? hfd_lex_fail(s, "expected an operator: = != < <= > >= in like ilike between is")
               : rc;
}

static bool mentions_condition(const struct hfd_filter *f)
{
    if (f->op == HFD_FILTER_AND || f->op == HFD_FILTER_OR)
        return mentions_condition(f->left) || mentions_condition(f->right);
    if (f->op == HFD_FILTER_NOT)
        return mentions_condition(f->left);
    return f->field == HFD_FIELD_CONDITION || f->field == HFD_FIELD_CONDITION_READ ||
           f->field == HFD_FIELD_CONDITION_PENDING || hfd_field_is_condition_sub(f->field);
}

static hfd_rc make_not(struct hfd_search *s, const struct hfd_filter *f,
                       const struct hfd_filter **out)
{
    if (mentions_condition(f))
        return hfd_fail_field(s->err, HFD_BAD_REQUEST, "search",
                              "NOT operator is not supported with condition queries; use the "
                              "inverse condition instead (e.g., Ready='False')");
    return new_node(s, HFD_FILTER_NOT, f, NULL, out);
}

static hfd_rc parse_comparison(struct hfd_search *s, const struct hfd_filter **out)
{
    struct hfd_filter *f = hfd_arena_alloc(s->mem, sizeof(*f));
    const size_t first = s->start;
    struct hfd_field_path path = {.count = 0};
    bool negate = false;
    hfd_rc rc;

    if (f == NULL)
        return hfd_fail_nomem(s->err, "parse a search");
    rc = hfd_field_read(s, &path);
    if (rc == HFD_OK)
        rc = parse_operation(s, f, &negate);
    if (rc == HFD_OK)
        rc = hfd_field_resolve(s, &path, f);
    if (rc == HFD_OK) {
        const size_t behind = s->start;

        s->start = first; /* the error gives the position of the field */
        rc = comparison_check(s, f);
        s->start = behind;
    }
    *out = f;
    return rc == HFD_OK && negate ? make_not(s, f, out) : rc;
}

static hfd_rc parse_factor(struct hfd_search *s, const struct hfd_filter **out)
{
    bool taken;
    hfd_rc rc;

    if (++s->depth > HFD_SEARCH_DEPTH_MAX)
        return hfd_lex_fail(s, "nested too deeply");
    rc = hfd_lex_take_keyword(s, "not", &taken);
    if (rc != HFD_OK)
        return rc;
    if (taken) {
        rc = parse_factor(s, out);
        if (rc == HFD_OK)
            rc = make_not(s, *out, out);
    } else if (s->tok == HFD_TOK_LPAREN) {
        rc = hfd_lex_next(s);
        if (rc == HFD_OK)
            rc = parse_expression(s, out);
        if (rc == HFD_OK && s->tok != HFD_TOK_RPAREN)
            return hfd_lex_fail(s, "expected AND, OR or a closing parenthesis");
        if (rc == HFD_OK)
            rc = hfd_lex_next(s);
    } else {
        rc = parse_comparison(s, out);
    }
    s->depth--;
    return rc;
}

/* Parses a chain of parts with one operator between them, left-associative. */
static hfd_rc parse_chain(struct hfd_search *s, const char *word, enum hfd_filter_op op,
                          hfd_rc (*part)(struct hfd_search *, const struct hfd_filter **),
                          const struct hfd_filter **out)
{
    const struct hfd_filter *right = NULL;
    bool taken;
    hfd_rc rc;

    rc = part(s, out);
    for (;;) {
        if (rc == HFD_OK)
            rc = hfd_lex_take_keyword(s, word, &taken);
        if (rc != HFD_OK || !taken)
            return rc;
        rc = part(s, &right);
        if (rc == HFD_OK)
            rc = new_node(s, op, *out, right, out);
    }
}

static hfd_rc parse_term(struct hfd_search *s, const struct hfd_filter **out)
{
    return parse_chain(s, "and", HFD_FILTER_AND, parse_factor, out);
}

static hfd_rc parse_expression(struct hfd_search *s, const struct hfd_filter **out)
{
    return parse_chain(s, "or", HFD_FILTER_OR, parse_term, out);
}

static hfd_rc parse_search(struct hfd_search *s, const struct hfd_filter **out)
{
    hfd_rc rc;

    *out = NULL;
    if (s->text.len == 0)
        return HFD_OK;
    if (s->text.len > HFD_SEARCH_MAX)
        return hfd_fail_field(s->err, HFD_BAD_REQUEST, "search",
                              "search query exceeds maximum length of %d characters",
                              HFD_SEARCH_MAX);
    s->room = hfd_arena_alloc(s->mem, s->text.len);
    if (s->room == NULL)
        return hfd_fail_nomem(s->err, "parse a search");
    rc = hfd_lex_next(s);
    if (rc == HFD_OK)
        rc = parse_expression(s, out);
    if (rc == HFD_OK && s->tok != HFD_TOK_END)
        rc = hfd_lex_fail(s, "expected AND, OR or the end of the query");
    if (rc != HFD_OK)
        *out = NULL;
    return rc;
}

hfd_rc hfd_search_parse(enum hfd_kind kind, hfd_slice query, struct hfd_arena *mem,
                        const struct hfd_filter **out, struct hfd_err *err)
{
    return parse_search(
        &(struct hfd_search){.text = hfd_lex_trim(query), .kind = kind, .mem = mem, .err = err},
        out);
}

hfd_rc hfd_search_parse_reports(hfd_slice query, struct hfd_arena *mem,
                                const struct hfd_filter **out, struct hfd_err *err)
{
    return parse_search(&(struct hfd_search){.text = hfd_lex_trim(query),
                                             .kind = HFD_KIND_CLUSTER,
                                             .of_reports = true,
                                             .mem = mem,
                                             .err = err},
                        out);
}

/* ---- search order ---- */

/* The order of lists. */

#define ORDER_MAX 8
#define LABELS HFD_SLICE("labels.")

static hfd_rc parse_item(const struct hfd_order_text *in, hfd_slice item, struct hfd_order *out,
                         struct hfd_err *err)
{
    const char *space = memchr(item.p, ' ', item.len);
    hfd_slice direction = in->direction, what = item;

    if (space != NULL) {
        what.len = (size_t)(space - item.p);
        direction = hfd_lex_trim((hfd_slice){space, item.len - what.len});
        if (!hfd_slice_is(direction, "asc") && !hfd_slice_is(direction, "desc"))
            return hfd_fail_field(err, HFD_BAD_REQUEST, "orderBy", "bad order value '%.*s'",
                                  (int)(item.len < 100 ? item.len : 100), item.p);
    }
    *out = (struct hfd_order){.descending = hfd_slice_is(direction, "desc")};
    if (in->of_reports && hfd_field_report_column(what, &out->field))
        return HFD_OK;
    if (hfd_slice_starts(what, LABELS) && !in->of_reports) {
        out->field = HFD_FIELD_LABEL;
        out->name = (hfd_slice){what.p + LABELS.len, what.len - LABELS.len};
        return hfd_field_check_label("orderBy", out->name, err);
    }
    if (in->of_reports || !hfd_field_column(in->kind, what, &out->field))
        return hfd_fail_field(err, HFD_BAD_REQUEST, "orderBy", "%.*s is not a valid field name",
                              (int)(what.len < 100 ? what.len : 100), what.p);
    return HFD_OK;
}

hfd_rc hfd_search_order(const struct hfd_order_text *in, struct hfd_arena *mem,
                        struct hfd_orders *out, struct hfd_err *err)
{
    struct hfd_order *items = hfd_arena_array(mem, ORDER_MAX, sizeof(*items));
    hfd_slice text = hfd_lex_trim(in->by);
    size_t n = 0;

    *out = (struct hfd_orders){items, 0};
    if (items == NULL)
        return hfd_fail_nomem(err, "parse an order");
    if (in->direction.len > 0 && !hfd_slice_is(in->direction, "asc") &&
        !hfd_slice_is(in->direction, "desc"))
        return hfd_fail_field(err, HFD_BAD_REQUEST, "order", "order must be 'asc' or 'desc'");
    if (text.len == 0) {
        items[0] = (struct hfd_order){.field = HFD_FIELD_CREATED_TIME,
                                      .descending = !hfd_slice_is(in->direction, "asc")};
        out->count = 1;
        return HFD_OK;
    }
    while (text.p != NULL) {
        const char *comma = memchr(text.p, ',', text.len);
        const hfd_slice item =
            hfd_lex_trim((hfd_slice){text.p, comma != NULL ? (size_t)(comma - text.p) : text.len});
        hfd_rc rc;

        if (item.len == 0 || n == ORDER_MAX)
            return hfd_fail_field(err, HFD_BAD_REQUEST, "orderBy",
                                  "bad order value '%.*s': expected 1 to %d fields",
                                  (int)(text.len < 100 ? text.len : 100), text.p, ORDER_MAX);
        rc = parse_item(in, item, &items[n++], err);
        if (rc != HFD_OK)
            return rc;
        text = comma != NULL ? (hfd_slice){comma + 1, text.len - (size_t)(comma + 1 - text.p)}
                             : HFD_SLICE_NONE;
    }
    out->count = n;
    return HFD_OK;
}
