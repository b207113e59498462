/*
 * TSL. See search.h. A tokenizer, a recursive descent over tokens with a depth limit, and the
 * checks of each field.
 */
#include "driver/fleet/search.h"

#include <errno.h>
#include <math.h>

#include "driver/base/clock.h"
#include "driver/fleet/condition.h"
#include "driver/fleet/keys.h"
#include "driver/fleet/names.h"

#define VALUES_MAX 1000
#define SEGMENTS_MAX 12
#define ORDER_MAX 8
#define INT32_MAX_VALUE INT64_C(2147483647)

enum token {
    TOK_END,
    TOK_NAME,
    TOK_STRING,
    TOK_NUMBER,
    TOK_OP, /* op tells which */
    TOK_LPAREN,
    TOK_RPAREN,
    TOK_LBRACKET,
    TOK_RBRACKET,
    TOK_COMMA,
    TOK_DOT,
    TOK_SIGN,
};

struct parser {
    hfd_slice text;
    size_t at;    /* behind the current token */
    size_t start; /* of the current token */
    char *room;   /* for text taken out of its quotes; never more than the whole query */
    enum token tok;
    enum hfd_filter_op op;
    hfd_slice word; /* NAME: the name; STRING: the text; NUMBER and SIGN: as written */
    bool quoted;    /* a NAME in quotes is never a keyword */
    int depth;
    enum hfd_kind kind;
    struct hfd_arena *mem;
    struct hfd_err *err;
};

/* ---- errors ---- */

static hfd_rc no_memory(struct parser *p)
{
    return hfd_fail(p->err, HFD_NOMEM, "out of memory while parsing a search");
}

/* HyperFleet's words first, then where and why; positions count characters, from 1. */
static hfd_rc bad_query(struct parser *p, const char *expected)
{
    size_t at = 1;

    for (size_t i = 0; i < p->start; i++)
        at += ((unsigned char)p->text.p[i] & 0xc0u) != 0x80u;
    return hfd_fail_field(p->err, HFD_BAD_REQUEST, "search",
                          "Failed to parse search query: %.*s%s: at position %zu: %s",
                          (int)(p->text.len < 100 ? p->text.len : 100), p->text.p,
                          p->text.len > 100 ? "..." : "", at, expected);
}

/* ---- tokens ---- */

static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static char look(const struct parser *p, size_t ahead)
{
    return p->at + ahead < p->text.len ? p->text.p[p->at + ahead] : '\0';
}

/*
 * Text between quotes: a doubled quote is one; in strings a backslash takes a quote or a backslash
 * with it.
 */
static hfd_rc quoted(struct parser *p, char quote, enum token tok)
{
    char *out = p->room;
    size_t n = 0;

    p->at++;
    while (p->at < p->text.len) {
        char c = p->text.p[p->at];

        if (quote == '\'' && c == '\\' && (look(p, 1) == '\'' || look(p, 1) == '\\')) {
            p->at++;
            c = p->text.p[p->at];
        } else if (c == quote) {
            if (look(p, 1) != quote) {
                p->at++;
                p->tok = tok;
                p->word = (hfd_slice){out, n};
                p->room += n;
                p->quoted = true;
                return HFD_OK;
            }
            p->at++;
        }
        out[n++] = c;
        p->at++;
    }
    return bad_query(p, "the quote is not closed");
}

static void name(struct parser *p)
{
    while (is_name_start(look(p, 0)) || is_digit(look(p, 0)))
        p->at++;
    p->tok = TOK_NAME;
    p->word = (hfd_slice){p->text.p + p->start, p->at - p->start};
    p->quoted = false;
}

static void number(struct parser *p)
{
    while (is_digit(look(p, 0)))
        p->at++;
    if (look(p, 0) == '.' && is_digit(look(p, 1)))
        for (p->at++; is_digit(look(p, 0));)
            p->at++;
    if ((look(p, 0) == 'e' || look(p, 0) == 'E') &&
        (is_digit(look(p, 1)) ||
         ((look(p, 1) == '+' || look(p, 1) == '-') && is_digit(look(p, 2)))))
        for (p->at += 2; is_digit(look(p, 0));)
            p->at++;
    p->tok = TOK_NUMBER;
    p->word = (hfd_slice){p->text.p + p->start, p->at - p->start};
}

static hfd_rc symbol(struct parser *p)
{
    static const struct {
        const char *text;
        enum token tok;
        enum hfd_filter_op op;
    } symbols[] = {
        {"!=", TOK_OP, HFD_FILTER_NE},
        {"<>", TOK_OP, HFD_FILTER_NE},
        {"<=", TOK_OP, HFD_FILTER_LE},
        {">=", TOK_OP, HFD_FILTER_GE},
        {"=", TOK_OP, HFD_FILTER_EQ},
        {"<", TOK_OP, HFD_FILTER_LT},
        {">", TOK_OP, HFD_FILTER_GT},
        {"(", TOK_LPAREN, 0},
        {")", TOK_RPAREN, 0},
        {"[", TOK_LBRACKET, 0},
        {"]", TOK_RBRACKET, 0},
        {",", TOK_COMMA, 0},
        {".", TOK_DOT, 0},
        {"-", TOK_SIGN, 0},
        {"+", TOK_SIGN, 0},
    };

    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        const hfd_slice s = hfd_slice_of(symbols[i].text);

        if (hfd_slice_starts((hfd_slice){p->text.p + p->at, p->text.len - p->at}, s)) {
            p->at += s.len;
            p->tok = symbols[i].tok;
            p->op = symbols[i].op;
            p->word = s;
            return HFD_OK;
        }
    }
    return bad_query(p, "unexpected character");
}

static hfd_rc next(struct parser *p)
{
    const enum token before = p->tok;
    const size_t behind = p->at;
    char c;

    while (is_space(look(p, 0)))
        p->at++;
    p->start = p->at;
    p->quoted = false;
    if (p->at >= p->text.len) {
        p->tok = TOK_END;
        p->word = HFD_SLICE_NONE;
        return HFD_OK;
    }
    c = look(p, 0);
    if (c == '\'')
        return quoted(p, c, TOK_STRING);
    if (c == '"' || c == '`')
        return quoted(p, c, TOK_NAME);
    if (is_name_start(c) ||
        (before == TOK_DOT && is_digit(c))) { /* keys of labels may begin with a digit */
        name(p);
        return HFD_OK;
    }
    if (c == '.' && before == TOK_NAME && p->at == behind)
        return symbol(p);
    if (is_digit(c) || (c == '.' && is_digit(look(p, 1)))) {
        number(p);
        return HFD_OK;
    }
    return symbol(p);
}

static bool keyword(const struct parser *p, const char *word)
{
    return p->tok == TOK_NAME && !p->quoted && hfd_slice_ieq(p->word, hfd_slice_of(word));
}

/* Takes a keyword if it stands here. */
static hfd_rc take(struct parser *p, const char *word, bool *taken)
{
    *taken = keyword(p, word);
    return *taken ? next(p) : HFD_OK;
}

/* ---- values ---- */

static hfd_rc parse_number(struct parser *p, bool negative, struct hfd_filter_value *out)
{
    char text[48];
    char *end;

    if (p->word.len >= sizeof(text) - 1)
        return bad_query(p, "the number is too long");
    (void)snprintf(text, sizeof(text), "%s%.*s", negative ? "-" : "", HFD_SLICE_FMT(p->word));
    if (strpbrk(text, ".eE") == NULL &&
        hfd_parse_i64(hfd_slice_of(text), INT64_MIN, INT64_MAX, &out->num, NULL) == HFD_OK) {
        out->kind = HFD_VALUE_INT;
        return HFD_OK;
    }
    errno = 0;
    out->kind = HFD_VALUE_REAL;
    out->real = strtod(text, &end);
    return errno == 0 && *end == '\0' ? HFD_OK : bad_query(p, "the number is out of range");
}

static hfd_rc literal(struct parser *p, struct hfd_filter_value *out)
{
    bool negative = false;
    hfd_rc rc;

    if (p->tok == TOK_SIGN) {
        negative = *p->word.p == '-';
        rc = next(p);
        if (rc != HFD_OK)
            return rc;
        if (p->tok != TOK_NUMBER)
            return bad_query(p, "expected a number behind the sign");
    }
    if (p->tok == TOK_NUMBER) {
        rc = parse_number(p, negative, out);
        return rc == HFD_OK ? next(p) : rc;
    }
    if (p->tok != TOK_STRING)
        return bad_query(p, "expected a value: a number, or text in single quotes");
    out->kind = HFD_VALUE_TEXT;
    out->text = p->word;
    return next(p);
}

static hfd_rc list(struct parser *p, struct hfd_filter *f)
{
    const enum token close = p->tok == TOK_LPAREN ? TOK_RPAREN : TOK_RBRACKET;
    struct hfd_filter_value values[VALUES_MAX], *copy;
    size_t n = 0;
    hfd_rc rc;

    if (p->tok != TOK_LPAREN && p->tok != TOK_LBRACKET)
        return bad_query(p, "expected a list: ('a', 'b') or ['a', 'b']");
    rc = next(p);
    while (rc == HFD_OK && p->tok != close) {
        if (n > 0) {
            if (p->tok != TOK_COMMA)
                return bad_query(p, "expected a comma, or the end of the list");
            rc = next(p);
        }
        if (rc == HFD_OK && n == VALUES_MAX)
            return bad_query(p, "the list is too long");
        if (rc == HFD_OK)
            rc = literal(p, &values[n++]);
    }
    if (rc != HFD_OK)
        return rc;
    copy = hfd_arena_array(p->mem, n + 1, sizeof(*copy));
    if (copy == NULL)
        return no_memory(p);
    memcpy(copy, values, n * sizeof(*copy));
    f->values = copy;
    f->value_count = n;
    return next(p);
}

/* ---- fields ---- */

static const struct column {
    const char *name;
    enum hfd_field field;
    bool nodepool_only;
} columns[] = {
    {"id", HFD_FIELD_ID, false},
    {"kind", HFD_FIELD_KIND, false},
    {"name", HFD_FIELD_NAME, false},
    {"href", HFD_FIELD_HREF, false},
    {"owner_id", HFD_FIELD_OWNER_ID, true},
    {"generation", HFD_FIELD_GENERATION, false},
    {"created_time", HFD_FIELD_CREATED_TIME, false},
    {"updated_time", HFD_FIELD_UPDATED_TIME, false},
    {"deleted_time", HFD_FIELD_DELETED_TIME, false},
    {"created_by", HFD_FIELD_CREATED_BY, false},
    {"updated_by", HFD_FIELD_UPDATED_BY, false},
};

struct path {
    hfd_slice seg[SEGMENTS_MAX];
    size_t count;
    hfd_slice whole; /* as written */
};

static hfd_rc no_such_field(struct parser *p, const struct path *path)
{
    return hfd_fail_field(p->err, HFD_BAD_REQUEST, "search", "%.*s is not a valid field name",
                          (int)(path->whole.len < 100 ? path->whole.len : 100), path->whole.p);
}

/*
 * The parts from `first` on, with dots between them, whatever quotes and blanks they were written
 * with.
 */
static hfd_rc join(struct parser *p, const struct path *path, size_t first, hfd_slice *out)
{
    struct hfd_buf b;
    hfd_rc rc;

    hfd_buf_init(&b, HFD_SEARCH_MAX + SEGMENTS_MAX);
    for (size_t i = first; i < path->count; i++) {
        if (i > first)
            hfd_buf_addc(&b, '.');
        hfd_buf_add(&b, path->seg[i]);
    }
    rc = b.rc;
    if (rc == HFD_OK)
        *out = hfd_arena_dup(p->mem, hfd_buf_slice(&b));
    hfd_buf_fini(&b);
    return rc == HFD_OK && out->p != NULL ? HFD_OK : no_memory(p);
}

static hfd_rc label_key(struct parser *p, const char *parameter, hfd_slice key)
{
    if (key.len == 0)
        return hfd_fail_field(p->err, HFD_BAD_REQUEST, parameter, "label key cannot be empty");
    if (!hfd_label_searchable(key))
        return hfd_fail_field(p->err, HFD_BAD_REQUEST, parameter,
                              "label key '%.*s' is invalid: must contain only lowercase letters, "
                              "digits, and underscores",
                              (int)(key.len < 80 ? key.len : 80), key.p);
    return HFD_OK;
}

static hfd_rc label_field(struct parser *p, const struct path *path, hfd_slice *key)
{
    hfd_rc rc;

    if (path->count == 1)
        return no_such_field(p, path);
    rc = join(p, path, 1, key);
    return rc == HFD_OK ? label_key(p, "search", *key) : rc;
}

/* HyperFleet takes what stands before a dot for a table. */
static hfd_rc not_related(struct parser *p, const struct path *path)
{
    return hfd_fail_field(p->err, HFD_BAD_REQUEST, "search", "%.*s is not a related resource of %s",
                          (int)(path->seg[0].len < 60 ? path->seg[0].len : 60), path->seg[0].p,
                          hfd_kind_name(p->kind));
}

/* The two vocabularies of conditions name the same things; stored are those of the first. */
static hfd_slice stored_type(hfd_slice type)
{
    if (hfd_slice_is(type, "Reconciled"))
        return HFD_SLICE("Ready");
    return hfd_slice_is(type, "LastKnownReconciled") ? HFD_SLICE("Available") : type;
}

static bool is_pascal_case(hfd_slice type)
{
    if (type.len == 0 || *type.p < 'A' || *type.p > 'Z')
        return false;
    for (size_t i = 1; i < type.len; i++)
        if (!is_name_start(type.p[i]) && !is_digit(type.p[i]))
            return false;
    return memchr(type.p, '_', type.len) == NULL;
}

/* status.conditions.Type, .Type.subfield, or upstream's rewritten form Type__subfield. */
static hfd_rc condition_field(struct parser *p, const struct path *path, struct hfd_filter *f)
{
    static const struct {
        const char *name;
        enum hfd_field field;
    } subs[] = {{"last_updated_time", HFD_FIELD_CONDITION_UPDATED},
                {"last_transition_time", HFD_FIELD_CONDITION_TRANSITION},
                {"observed_generation", HFD_FIELD_CONDITION_GENERATION}};
    hfd_slice type, sub = HFD_SLICE_NONE;
    const char *cut;

    if (path->count == 2)
        return not_related(p, path);
    if ((path->count != 3 && path->count != 4) || !hfd_slice_is(path->seg[1], "conditions"))
        return no_such_field(p, path);
    type = path->seg[2];
    if (path->count == 4) {
        sub = path->seg[3];
    } else if ((cut = memmem(type.p, type.len, "__", 2)) != NULL) {
        sub = (hfd_slice){cut + 2, type.len - (size_t)(cut + 2 - type.p)};
        type.len = (size_t)(cut - type.p);
    }
    if (!is_pascal_case(type))
        return hfd_fail_field(
            p->err, HFD_BAD_REQUEST, "search",
            "condition type '%.*s' is invalid: must be PascalCase (e.g., Ready, Available)",
            (int)(type.len < 80 ? type.len : 80), type.p);
    f->name = stored_type(type);
    f->field = HFD_FIELD_CONDITION;
    if (sub.p == NULL)
        return HFD_OK;
    for (size_t i = 0; i < sizeof(subs) / sizeof(subs[0]); i++) {
        if (hfd_slice_is(sub, subs[i].name)) {
            f->field = subs[i].field;
            return HFD_OK;
        }
    }
    return hfd_fail_field(p->err, HFD_BAD_REQUEST, "search",
                          "condition subfield '%.*s' is not supported; use last_updated_time, "
                          "last_transition_time, or observed_generation",
                          (int)(sub.len < 40 ? sub.len : 40), sub.p);
}

static hfd_rc spec_field(struct parser *p, const struct path *path, struct hfd_filter *f)
{
    if (path->count < 2)
        return no_such_field(p, path);
    for (size_t i = 1; i < path->count; i++) {
        if (path->seg[i].len == 0)
            return no_such_field(p, path);
        for (size_t k = 0; k < path->seg[i].len; k++)
            if (!is_name_start(path->seg[i].p[k]) && !is_digit(path->seg[i].p[k]))
                return no_such_field(p, path);
    }
    f->field = HFD_FIELD_SPEC;
    return join(p, path, 1, &f->name);
}

static const struct column *column_of(enum hfd_kind kind, hfd_slice text)
{
    for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
        if (hfd_slice_is(text, columns[i].name) &&
            (kind == HFD_KIND_NODEPOOL || !columns[i].nodepool_only))
            return &columns[i];
    return NULL;
}

static hfd_rc resolve(struct parser *p, const struct path *path, struct hfd_filter *f)
{
    const struct column *c;

    if (hfd_slice_is(path->seg[0], "labels")) {
        f->field = HFD_FIELD_LABEL;
        return label_field(p, path, &f->name);
    }
    if (hfd_slice_is(path->seg[0], "status"))
        return condition_field(p, path, f);
    if (hfd_slice_is(path->seg[0], "spec"))
        return spec_field(p, path, f);
    if (path->count == 2 && hfd_slice_is(path->seg[1], "spec"))
        return hfd_fail_field(p->err, HFD_BAD_REQUEST, "search", "spec is not a valid field name");
    if (path->count == 2)
        return not_related(p, path);
    c = path->count == 1 ? column_of(p->kind, path->seg[0]) : NULL;
    if (c == NULL)
        return no_such_field(p, path);
    f->field = c->field;
    return HFD_OK;
}

static hfd_rc field(struct parser *p, struct path *path)
{
    size_t first = p->start, last;
    hfd_rc rc = HFD_OK;

    if (p->tok != TOK_NAME)
        return bad_query(p, "expected a field name");
    for (;;) {
        if (path->count == SEGMENTS_MAX)
            return bad_query(p, "the field name has too many parts");
        path->seg[path->count++] = p->word;
        last = p->at;
        rc = next(p);
        if (rc != HFD_OK || p->tok != TOK_DOT)
            break;
        rc = next(p);
        if (rc != HFD_OK)
            break;
        if (p->tok != TOK_NAME)
            return bad_query(p, "expected a name behind the dot");
    }
    if (rc != HFD_OK)
        return rc;
    path->whole = (hfd_slice){p->text.p + first, last - first};
    return HFD_OK;
}

/* ---- checks of a comparison against its field ---- */

static hfd_rc check_time(struct parser *p, const struct hfd_filter *f, struct hfd_filter_value *v)
{
    const bool cond =
        f->field == HFD_FIELD_CONDITION_UPDATED || f->field == HFD_FIELD_CONDITION_TRANSITION;
    const char *sub = f->field == HFD_FIELD_CONDITION_UPDATED      ? "last_updated_time"
                      : f->field == HFD_FIELD_CONDITION_TRANSITION ? "last_transition_time"
                      : f->field == HFD_FIELD_CREATED_TIME         ? "created_time"
                      : f->field == HFD_FIELD_DELETED_TIME         ? "deleted_time"
                                                                   : "updated_time";

    if (v->kind != HFD_VALUE_TEXT)
        return hfd_fail_field(p->err, HFD_BAD_REQUEST, "search",
                              "expected string timestamp value for %s'%s'",
                              cond ? "condition subfield " : "field ", sub);
    if (hfd_time_parse_any(v->text, &v->num, NULL) != HFD_OK)
        return hfd_fail_field(
            p->err, HFD_BAD_REQUEST, "search",
            "invalid timestamp for %s'%s': expected RFC3339 format (e.g., 2026-01-01T00:00:00Z)",
            cond ? "condition subfield " : "field ", sub);
    v->kind = HFD_VALUE_INT;
    return HFD_OK;
}

static hfd_rc check_generation(struct parser *p, const struct hfd_filter *f,
                               struct hfd_filter_value *v)
{
    const char *what = f->field == HFD_FIELD_GENERATION
                           ? "field 'generation'"
                           : "condition subfield 'observed_generation'";

    if (v->kind == HFD_VALUE_TEXT)
        return hfd_fail_field(p->err, HFD_BAD_REQUEST, "search", "expected numeric value for %s",
                              what);
    if (v->kind == HFD_VALUE_REAL && v->real != trunc(v->real))
        return hfd_fail_field(p->err, HFD_BAD_REQUEST, "search", "expected integer value for %s",
                              what);
    if (v->kind == HFD_VALUE_REAL && fabs(v->real) > (double)INT32_MAX_VALUE + 1)
        return hfd_fail_field(p->err, HFD_BAD_REQUEST, "search",
                              "value %.17g is out of 32-bit integer range for %s", v->real, what);
    if (v->kind == HFD_VALUE_REAL) {
        v->num = (int64_t)v->real;
        v->kind = HFD_VALUE_INT;
    }
    if (v->num > INT32_MAX_VALUE || v->num < -INT32_MAX_VALUE - 1)
        return hfd_fail_field(p->err, HFD_BAD_REQUEST, "search",
                              "value %lld is out of 32-bit integer range for %s", (long long)v->num,
                              what);
    return HFD_OK;
}

static hfd_rc check_status(struct parser *p, const struct hfd_filter *f,
                           const struct hfd_filter_value *v)
{
    enum hfd_status s;

    if (v->kind != HFD_VALUE_TEXT)
        return hfd_fail_field(p->err, HFD_BAD_REQUEST, "search",
                              "expected string for right side of condition");
    if (!hfd_status_parse(v->text, &s))
        return hfd_fail_field(p->err, HFD_BAD_REQUEST, "search",
                              "condition status '%.*s' is invalid: must be True, False, or Unknown",
                              (int)(v->text.len < 60 ? v->text.len : 60), v->text.p);
    if (f->op != HFD_FILTER_EQ)
        return hfd_fail_field(
            p->err, HFD_BAD_REQUEST, "search",
            "only equality operator (=) is supported for condition status queries");
    return HFD_OK;
}

static bool is_condition_sub(enum hfd_field f)
{
    return f == HFD_FIELD_CONDITION_UPDATED || f == HFD_FIELD_CONDITION_TRANSITION ||
           f == HFD_FIELD_CONDITION_GENERATION;
}

static hfd_rc check_value(struct parser *p, const struct hfd_filter *f, struct hfd_filter_value *v)
{
    switch (f->field) {
    case HFD_FIELD_CREATED_TIME:
    case HFD_FIELD_UPDATED_TIME:
    case HFD_FIELD_DELETED_TIME:
    case HFD_FIELD_CONDITION_UPDATED:
    case HFD_FIELD_CONDITION_TRANSITION:
        return check_time(p, f, v);
    case HFD_FIELD_GENERATION:
    case HFD_FIELD_CONDITION_GENERATION:
        return check_generation(p, f, v);
    case HFD_FIELD_CONDITION:
        return check_status(p, f, v);
    case HFD_FIELD_SPEC:
        return HFD_OK;
    case HFD_FIELD_ID:
    case HFD_FIELD_KIND:
    case HFD_FIELD_NAME:
    case HFD_FIELD_HREF:
    case HFD_FIELD_OWNER_ID:
    case HFD_FIELD_CREATED_BY:
    case HFD_FIELD_UPDATED_BY:
    case HFD_FIELD_LABEL:
        break;
    case HFD_FIELD_COUNT:
        return no_memory(p);
    }
    return v->kind == HFD_VALUE_TEXT
               ? HFD_OK
               : bad_query(p, "expected text in single quotes for this field");
}

static bool is_text_field(enum hfd_field f)
{
    return f != HFD_FIELD_CREATED_TIME && f != HFD_FIELD_UPDATED_TIME &&
           f != HFD_FIELD_DELETED_TIME && f != HFD_FIELD_GENERATION;
}

static const char *const op_names[HFD_FILTER_OP_COUNT] = {
    [HFD_FILTER_LIKE] = "$like", [HFD_FILTER_ILIKE] = "$ilike", [HFD_FILTER_BETWEEN] = "$between",
    [HFD_FILTER_IN] = "$in",     [HFD_FILTER_IS_NULL] = "$is",
};

/* Whether the field bears the operator. */
static hfd_rc check_operator(struct parser *p, const struct hfd_filter *f)
{
    const bool is_pattern = f->op == HFD_FILTER_LIKE || f->op == HFD_FILTER_ILIKE;

    if (is_condition_sub(f->field) && op_names[f->op] != NULL)
        return hfd_fail_field(p->err, HFD_BAD_REQUEST, "search",
                              "operator '%s' is not supported for condition subfield queries; use "
                              "=, !=, <, <=, >, or >=",
                              op_names[f->op]);
    if (f->field == HFD_FIELD_CONDITION &&
        (f->op == HFD_FILTER_IN || f->op == HFD_FILTER_IS_NULL || f->op == HFD_FILTER_BETWEEN))
        return hfd_fail_field(
            p->err, HFD_BAD_REQUEST, "search",
            "only equality operator (=) is supported for condition status queries");
    if (is_pattern && f->values[0].kind != HFD_VALUE_TEXT)
        return bad_query(p, "expected text in single quotes behind like");
    if (is_pattern && !is_text_field(f->field))
        return bad_query(p, "like needs a text field");
    return HFD_OK;
}

static hfd_rc check(struct parser *p, struct hfd_filter *f)
{
    struct hfd_filter_value *values;
    hfd_rc rc = check_operator(p, f);

    if (rc != HFD_OK)
        return rc;
    values = hfd_arena_array(p->mem, f->value_count + 1, sizeof(*values));
    if (values == NULL)
        return no_memory(p);
    if (f->value_count > 0)
        memcpy(values, f->values, f->value_count * sizeof(*values));
    for (size_t i = 0; rc == HFD_OK && i < f->value_count; i++)
        rc = check_value(p, f, &values[i]);
    f->values = values;
    return rc;
}

/* ---- expressions ---- */

static hfd_rc expr(struct parser *p, const struct hfd_filter **out);

static hfd_rc node(struct parser *p, enum hfd_filter_op op, const struct hfd_filter *left,
                   const struct hfd_filter *right, const struct hfd_filter **out)
{
    struct hfd_filter *f = hfd_arena_alloc(p->mem, sizeof(*f));

    if (f == NULL)
        return no_memory(p);
    *f = (struct hfd_filter){.op = op, .left = left, .right = right};
    *out = f;
    return HFD_OK;
}

static hfd_rc values(struct parser *p, struct hfd_filter *f, size_t n)
{
    struct hfd_filter_value *v = hfd_arena_array(p->mem, n, sizeof(*v));
    bool taken;
    hfd_rc rc;

    if (v == NULL)
        return no_memory(p);
    rc = literal(p, &v[0]);
    if (rc == HFD_OK && n == 2) {
        rc = take(p, "and", &taken);
        if (rc == HFD_OK && !taken)
            return bad_query(p, "expected AND and the upper bound");
        if (rc == HFD_OK)
            rc = literal(p, &v[1]);
    }
    f->values = v;
    f->value_count = n;
    return rc;
}

/* Behind "is": null, or a value. *negate: "is not". */
static hfd_rc is_operation(struct parser *p, struct hfd_filter *f, bool *negate)
{
    bool is_null;
    hfd_rc rc = take(p, "not", negate);

    if (rc == HFD_OK)
        rc = take(p, "null", &is_null);
    if (rc != HFD_OK)
        return rc;
    f->op = is_null ? HFD_FILTER_IS_NULL : HFD_FILTER_EQ;
    return is_null ? HFD_OK : values(p, f, 1);
}

static hfd_rc operator_operation(struct parser *p, struct hfd_filter *f)
{
    hfd_rc rc;

    f->op = p->op;
    rc = next(p);
    return rc == HFD_OK ? values(p, f, 1) : rc;
}

/* What stands behind a field. *negate: the whole comparison is to be negated. */
static hfd_rc operation(struct parser *p, struct hfd_filter *f, bool *negate)
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

    if (p->tok == TOK_OP)
        return operator_operation(p, f);
    rc = take(p, "is", &taken);
    if (rc != HFD_OK)
        return rc;
    if (taken)
        return is_operation(p, f, negate);
    rc = take(p, "not", negate);
    for (size_t i = 0; rc == HFD_OK && i < sizeof(words) / sizeof(words[0]); i++) {
        rc = take(p, words[i].word, &taken);
        if (rc == HFD_OK && taken) {
            f->op = words[i].op;
            return words[i].values == 0 ? list(p, f) : values(p, f, words[i].values);
        }
    }
    return rc == HFD_OK
               ? bad_query(p, "expected an operator: = != < <= > >= in like ilike between is")
               : rc;
}

static bool mentions_condition(const struct hfd_filter *f)
{
    if (f->op == HFD_FILTER_AND || f->op == HFD_FILTER_OR)
        return mentions_condition(f->left) || mentions_condition(f->right);
    if (f->op == HFD_FILTER_NOT)
        return mentions_condition(f->left);
    return f->field == HFD_FIELD_CONDITION || is_condition_sub(f->field);
}

static hfd_rc negated(struct parser *p, const struct hfd_filter *f, const struct hfd_filter **out)
{
    if (mentions_condition(f))
        return hfd_fail_field(p->err, HFD_BAD_REQUEST, "search",
                              "NOT operator is not supported with condition queries; use the "
                              "inverse condition instead (e.g., Ready='False')");
    return node(p, HFD_FILTER_NOT, f, NULL, out);
}

static hfd_rc comparison(struct parser *p, const struct hfd_filter **out)
{
    struct hfd_filter *f = hfd_arena_alloc(p->mem, sizeof(*f));
    const size_t first = p->start;
    struct path path = {.count = 0};
    bool negate = false;
    hfd_rc rc;

    if (f == NULL)
        return no_memory(p);
    rc = field(p, &path);
    if (rc == HFD_OK)
        rc = operation(p, f, &negate);
    if (rc == HFD_OK)
        rc = resolve(p, &path, f);
    if (rc == HFD_OK) {
        const size_t behind = p->start;

        p->start = first; /* a wrong comparison is shown from its field on */
        rc = check(p, f);
        p->start = behind;
    }
    *out = f;
    return rc == HFD_OK && negate ? negated(p, f, out) : rc;
}

static hfd_rc factor(struct parser *p, const struct hfd_filter **out)
{
    bool taken;
    hfd_rc rc;

    if (++p->depth > HFD_SEARCH_DEPTH_MAX)
        return bad_query(p, "nested too deeply");
    rc = take(p, "not", &taken);
    if (rc != HFD_OK)
        return rc;
    if (taken) {
        rc = factor(p, out);
        if (rc == HFD_OK)
            rc = negated(p, *out, out);
    } else if (p->tok == TOK_LPAREN) {
        rc = next(p);
        if (rc == HFD_OK)
            rc = expr(p, out);
        if (rc == HFD_OK && p->tok != TOK_RPAREN)
            return bad_query(p, "expected AND, OR or a closing parenthesis");
        if (rc == HFD_OK)
            rc = next(p);
    } else {
        rc = comparison(p, out);
    }
    p->depth--;
    return rc;
}

/* A chain of one operator, left-associative. */
static hfd_rc chain(struct parser *p, const char *word, enum hfd_filter_op op,
                    hfd_rc (*part)(struct parser *, const struct hfd_filter **),
                    const struct hfd_filter **out)
{
    const struct hfd_filter *right = NULL;
    bool taken;
    hfd_rc rc;

    rc = part(p, out);
    for (;;) {
        if (rc == HFD_OK)
            rc = take(p, word, &taken);
        if (rc != HFD_OK || !taken)
            return rc;
        rc = part(p, &right);
        if (rc == HFD_OK)
            rc = node(p, op, *out, right, out);
    }
}

static hfd_rc term(struct parser *p, const struct hfd_filter **out)
{
    return chain(p, "and", HFD_FILTER_AND, factor, out);
}

static hfd_rc expr(struct parser *p, const struct hfd_filter **out)
{
    return chain(p, "or", HFD_FILTER_OR, term, out);
}

static hfd_slice trim(hfd_slice s)
{
    while (s.len > 0 && is_space(*s.p)) {
        s.p++;
        s.len--;
    }
    while (s.len > 0 && is_space(s.p[s.len - 1]))
        s.len--;
    return s;
}

hfd_rc hfd_search_parse(enum hfd_kind kind, hfd_slice query, struct hfd_arena *mem,
                        const struct hfd_filter **out, struct hfd_err *err)
{
    struct parser p = {.text = trim(query), .kind = kind, .mem = mem, .err = err};
    hfd_rc rc;

    *out = NULL;
    if (p.text.len == 0)
        return HFD_OK;
    if (p.text.len > HFD_SEARCH_MAX)
        return hfd_fail_field(err, HFD_BAD_REQUEST, "search",
                              "search query exceeds maximum length of %d characters",
                              HFD_SEARCH_MAX);
    p.room = hfd_arena_alloc(mem, p.text.len);
    if (p.room == NULL)
        return no_memory(&p);
    rc = next(&p);
    if (rc == HFD_OK)
        rc = expr(&p, out);
    if (rc == HFD_OK && p.tok != TOK_END)
        rc = bad_query(&p, "expected AND, OR or the end of the query");
    if (rc != HFD_OK)
        *out = NULL;
    return rc;
}

/* ---- order ---- */

static hfd_rc order_item(struct parser *p, hfd_slice item, bool descending, struct hfd_order *out)
{
    const char *space = memchr(item.p, ' ', item.len);
    hfd_slice dir = HFD_SLICE_NONE, what = item;
    const struct column *c;

    if (space != NULL) {
        what.len = (size_t)(space - item.p);
        dir = trim((hfd_slice){space, item.len - what.len});
    }
    if (dir.len > 0 && !hfd_slice_is(dir, "asc") && !hfd_slice_is(dir, "desc"))
        return hfd_fail_field(p->err, HFD_BAD_REQUEST, "orderBy", "bad order value '%.*s'",
                              (int)(item.len < 100 ? item.len : 100), item.p);
    *out = (struct hfd_order){.descending = dir.len > 0 ? hfd_slice_is(dir, "desc") : descending};
    if (hfd_slice_starts(what, HFD_SLICE("labels."))) {
        out->field = HFD_FIELD_LABEL;
        out->name = (hfd_slice){what.p + strlen("labels."), what.len - strlen("labels.")};
        return label_key(p, "orderBy", out->name);
    }
    c = column_of(p->kind, what);
    if (c == NULL)
        return hfd_fail_field(p->err, HFD_BAD_REQUEST, "orderBy", "%.*s is not a valid field name",
                              (int)(what.len < 100 ? what.len : 100), what.p);
    out->field = c->field;
    return HFD_OK;
}

hfd_rc hfd_search_order(enum hfd_kind kind, hfd_slice text, hfd_slice direction,
                        struct hfd_arena *mem, const struct hfd_order **out, size_t *count,
                        struct hfd_err *err)
{
    struct parser p = {.text = text, .kind = kind, .mem = mem, .err = err};
    struct hfd_order *items = hfd_arena_array(mem, ORDER_MAX, sizeof(*items));
    size_t n = 0;

    *out = items;
    *count = 0;
    if (items == NULL)
        return no_memory(&p);
    if (direction.len > 0 && !hfd_slice_is(direction, "asc") && !hfd_slice_is(direction, "desc"))
        return hfd_fail_field(err, HFD_BAD_REQUEST, "order", "order must be 'asc' or 'desc'");
    text = trim(text);
    if (text.len == 0) {
        items[0] = (struct hfd_order){.field = HFD_FIELD_CREATED_TIME,
                                      .descending = !hfd_slice_is(direction, "asc")};
        *count = 1;
        return HFD_OK;
    }
    while (text.p != NULL) {
        const char *comma = memchr(text.p, ',', text.len);
        const hfd_slice item =
            trim((hfd_slice){text.p, comma != NULL ? (size_t)(comma - text.p) : text.len});
        hfd_rc rc;

        if (item.len == 0 || n == ORDER_MAX)
            return hfd_fail_field(err, HFD_BAD_REQUEST, "orderBy",
                                  "bad order value '%.*s': expected 1 to %d fields",
                                  (int)(text.len < 100 ? text.len : 100), text.p, ORDER_MAX);
        rc = order_item(&p, item, hfd_slice_is(direction, "desc"), &items[n++]);
        if (rc != HFD_OK)
            return rc;
        text = comma != NULL ? (hfd_slice){comma + 1, text.len - (size_t)(comma + 1 - text.p)}
                             : HFD_SLICE_NONE;
    }
    *count = n;
    return HFD_OK;
}
