/* The checks of comparisons. See search_check.h. Most texts of errors here are HyperFleet's. */
#include "driver/fleet/search_check.h"

#include <math.h>

#include "driver/base/clock.h"
#include "driver/fleet/condition.h"
#include "driver/fleet/search_field.h"

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

hfd_rc hfd_comparison_check(struct hfd_search *s, struct hfd_filter *f)
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
