/* See search_lex.h. */
#include "driver/fleet/search_lex.h"

#include "driver/base/buf.h"
#include "driver/fleet/fleet.h"
#include "driver/fleet/keys.h"
#include "driver/fleet/search.h"

/* ---- search lex ---- */

/* The tokenizer of searches. */

hfd_rc hfd_lex_fail(struct hfd_search *s, const char *expected)
{
    size_t at = 1; /* positions count characters */

    for (size_t i = 0; i < s->start; i++)
        at += ((unsigned char)s->text.p[i] & 0xc0u) != 0x80u;
    return hfd_fail_field(s->err, HFD_BAD_REQUEST, "search",
                          "Failed to parse search query: %.*s%s: at position %zu: %s",
                          (int)(s->text.len < 100 ? s->text.len : 100), s->text.p,
                          s->text.len > 100 ? "..." : "", at, expected);
}

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

/* True if c may stand in a name: an ASCII letter, a digit or an underscore. */
static bool lex_is_name_char(char c)
{
    return is_name_start(c) || is_digit(c);
}

hfd_slice hfd_lex_trim(hfd_slice s)
{
    while (s.len > 0 && is_space(*s.p)) {
        s.p++;
        s.len--;
    }
    while (s.len > 0 && is_space(s.p[s.len - 1]))
        s.len--;
    return s;
}

static char char_at(const struct hfd_search *s, size_t ahead)
{
    return s->at + ahead < s->text.len ? s->text.p[s->at + ahead] : '\0';
}

static void skip_digits(struct hfd_search *s)
{
    while (is_digit(char_at(s, 0)))
        s->at++;
}

/*
 * Reads text between quotes. A doubled quote stands for one. In strings a backslash also takes a
 * quote or a backslash with it.
 */
static hfd_rc read_quoted(struct hfd_search *s, char quote, enum hfd_search_token tok)
{
    char *out = s->room;
    size_t n = 0;

    s->at++;
    while (s->at < s->text.len) {
        char c = s->text.p[s->at];

        if (c == '\0') { /* no engine stores one */
            s->start = s->at;
            return hfd_lex_fail(s, "a NUL character is in no text");
        }
        if (quote == '\'' && c == '\\' && (char_at(s, 1) == '\'' || char_at(s, 1) == '\\')) {
            s->at++;
            c = s->text.p[s->at];
        } else if (c == quote) {
            if (char_at(s, 1) != quote) {
                s->at++;
                s->tok = tok;
                s->word = (hfd_slice){out, n};
                s->room += n;
                s->quoted = true;
                return HFD_OK;
            }
            s->at++;
        }
        out[n++] = c;
        s->at++;
    }
    return hfd_lex_fail(s, "the quote is not closed");
}

static void read_name(struct hfd_search *s)
{
    while (lex_is_name_char(char_at(s, 0)))
        s->at++;
    s->tok = HFD_TOK_NAME;
    s->word = (hfd_slice){s->text.p + s->start, s->at - s->start};
}

static void skip_exponent(struct hfd_search *s)
{
    const bool is_signed = char_at(s, 1) == '+' || char_at(s, 1) == '-';

    if (char_at(s, 0) != 'e' && char_at(s, 0) != 'E')
        return;
    if (!is_digit(char_at(s, is_signed ? 2 : 1)))
        return;
    s->at += 2;
    skip_digits(s);
}

static void read_number(struct hfd_search *s)
{
    skip_digits(s);
    if (char_at(s, 0) == '.' && is_digit(char_at(s, 1))) {
        s->at++;
        skip_digits(s);
    }
    skip_exponent(s);
    s->tok = HFD_TOK_NUMBER;
    s->word = (hfd_slice){s->text.p + s->start, s->at - s->start};
}

/* True if digits and signs stand here as in the pattern, where each 0 is a digit. */
static bool stands_here(const struct hfd_search *s, size_t ahead, const char *pattern)
{
    for (size_t i = 0; pattern[i] != '\0'; i++) {
        const char c = char_at(s, ahead + i);

        if (pattern[i] == '0' ? !is_digit(c) : c != pattern[i])
            return false;
    }
    return true;
}

/* The length of a date, or of a date and time with its zone (RFC 3339); 0 = there is none. */
static size_t time_length(const struct hfd_search *s)
{
    size_t n = sizeof("2026-01-31") - 1;

    if (!stands_here(s, 0, "0000-00-00"))
        return 0;
    if ((char_at(s, n) != 'T' && char_at(s, n) != 't') || !stands_here(s, n + 1, "00:00:00"))
        return n;
    n += sizeof("T00:00:00") - 1;
    if (char_at(s, n) == '.')
        for (n++; is_digit(char_at(s, n));)
            n++;
    if (char_at(s, n) == 'Z' || char_at(s, n) == 'z')
        return n + 1;
    return stands_here(s, n, "+00:00") || stands_here(s, n, "-00:00") ? n + 6 : n;
}

static void read_time(struct hfd_search *s, size_t len)
{
    s->at += len;
    s->tok = HFD_TOK_STRING;
    s->word = (hfd_slice){s->text.p + s->start, len};
}

static hfd_rc read_symbol(struct hfd_search *s)
{
    static const struct {
        const char *text;
        enum hfd_search_token tok;
        enum hfd_filter_op op;
    } symbols[] = {
        {"!=", HFD_TOK_OP, HFD_FILTER_NE},
        {"<>", HFD_TOK_OP, HFD_FILTER_NE},
        {"<=", HFD_TOK_OP, HFD_FILTER_LE},
        {">=", HFD_TOK_OP, HFD_FILTER_GE},
        {"=", HFD_TOK_OP, HFD_FILTER_EQ},
        {"<", HFD_TOK_OP, HFD_FILTER_LT},
        {">", HFD_TOK_OP, HFD_FILTER_GT},
        {"(", HFD_TOK_LPAREN, 0},
        {")", HFD_TOK_RPAREN, 0},
        {"[", HFD_TOK_LBRACKET, 0},
        {"]", HFD_TOK_RBRACKET, 0},
        {",", HFD_TOK_COMMA, 0},
        {".", HFD_TOK_DOT, 0},
        {"-", HFD_TOK_SIGN, 0},
        {"+", HFD_TOK_SIGN, 0},
    };
    const hfd_slice rest = {s->text.p + s->at, s->text.len - s->at};

    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        const hfd_slice symbol = hfd_slice_of(symbols[i].text);

        if (hfd_slice_starts(rest, symbol)) {
            s->at += symbol.len;
            s->tok = symbols[i].tok;
            s->op = symbols[i].op;
            s->word = symbol;
            return HFD_OK;
        }
    }
    return hfd_lex_fail(s, "unexpected character");
}

static hfd_rc read_number_or_symbol(struct hfd_search *s, char c)
{
    const size_t time = time_length(s);

    if (time > 0)
        read_time(s, time);
    else if (is_digit(c) || (c == '.' && is_digit(char_at(s, 1))))
        read_number(s);
    else
        return read_symbol(s);
    return HFD_OK;
}

hfd_rc hfd_lex_next(struct hfd_search *s)
{
    const enum hfd_search_token before = s->tok;
    const size_t behind = s->at;
    char c;

    while (is_space(char_at(s, 0)))
        s->at++;
    s->start = s->at;
    s->quoted = false;
    if (s->at >= s->text.len) {
        s->tok = HFD_TOK_END;
        s->word = HFD_SLICE_NONE;
        return HFD_OK;
    }
    c = char_at(s, 0);
    if (c == '\'')
        return read_quoted(s, c, HFD_TOK_STRING);
    if (c == '"' || c == '`')
        return read_quoted(s, c, HFD_TOK_NAME);
    /* The key of a label may begin with a digit. */
    if (is_name_start(c) || (before == HFD_TOK_DOT && is_digit(c))) {
        read_name(s);
        return HFD_OK;
    }
    if (c == '.' && before == HFD_TOK_NAME && s->at == behind)
        return read_symbol(s);
    return read_number_or_symbol(s, c);
}

static bool is_label_char(char c)
{
    return lex_is_name_char(c) || c == '-' || c == '.' || c == '/';
}

/*
 * Reads the key of a label behind its dot, where it is not in quotes: letters, digits and -_./ in a
 * row. Else reads the next token.
 */
static hfd_rc lex_next_label(struct hfd_search *s)
{
    if (!lex_is_name_char(char_at(s, 0)))
        return hfd_lex_next(s);
    s->start = s->at;
    while (is_label_char(char_at(s, 0)))
        s->at++;
    s->tok = HFD_TOK_NAME;
    s->quoted = false;
    s->word = (hfd_slice){s->text.p + s->start, s->at - s->start};
    return HFD_OK;
}

hfd_rc hfd_lex_take_keyword(struct hfd_search *s, const char *word, bool *taken)
{
    *taken = s->tok == HFD_TOK_NAME && !s->quoted && hfd_slice_ieq(s->word, hfd_slice_of(word));
    return *taken ? hfd_lex_next(s) : HFD_OK;
}

/* ---- search field ---- */

/* The fields of a search. All texts of errors here are HyperFleet's. */

/* Where a column stands: on clusters and nodepools, on nodepools alone, or on reports. */
enum column_of {
    OF_RESOURCES = 1,
    OF_NODEPOOLS = 2,
    OF_REPORTS = 4
};

static const struct {
    const char *name;
    enum hfd_field field;
    int of;
} columns[] = {
    {"id", HFD_FIELD_ID, OF_RESOURCES},
    {"kind", HFD_FIELD_KIND, OF_RESOURCES},
    {"name", HFD_FIELD_NAME, OF_RESOURCES},
    {"href", HFD_FIELD_HREF, OF_RESOURCES},
    {"owner_id", HFD_FIELD_OWNER_ID, OF_NODEPOOLS},
    {"generation", HFD_FIELD_GENERATION, OF_RESOURCES},
    {"created_time", HFD_FIELD_CREATED_TIME, OF_RESOURCES | OF_REPORTS},
    {"updated_time", HFD_FIELD_UPDATED_TIME, OF_RESOURCES},
    {"deleted_time", HFD_FIELD_DELETED_TIME, OF_RESOURCES},
    {"created_by", HFD_FIELD_CREATED_BY, OF_RESOURCES},
    {"updated_by", HFD_FIELD_UPDATED_BY, OF_RESOURCES},
    {"adapter", HFD_FIELD_ADAPTER, OF_REPORTS},
    {"observed_generation", HFD_FIELD_REPORT_GENERATION, OF_REPORTS},
    {"last_report_time", HFD_FIELD_REPORT_TIME, OF_REPORTS},
};

static bool find_column(int of, hfd_slice name, enum hfd_field *out)
{
    for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
        if (hfd_slice_is(name, columns[i].name) && (columns[i].of & of) != 0) {
            *out = columns[i].field;
            return true;
        }
    }
    return false;
}

bool hfd_field_column(enum hfd_kind kind, hfd_slice name, enum hfd_field *out)
{
    return find_column(kind == HFD_KIND_NODEPOOL ? OF_RESOURCES | OF_NODEPOOLS : OF_RESOURCES, name,
                       out);
}

bool hfd_field_report_column(hfd_slice name, enum hfd_field *out)
{
    return find_column(OF_REPORTS, name, out);
}

static const struct {
    const char *name;
    enum hfd_field field;
} condition_subs[] = {
    {"last_updated_time", HFD_FIELD_CONDITION_UPDATED},
    {"last_transition_time", HFD_FIELD_CONDITION_TRANSITION},
    {"observed_generation", HFD_FIELD_CONDITION_GENERATION},
};
#define CONDITION_SUBS (sizeof(condition_subs) / sizeof(condition_subs[0]))

bool hfd_field_is_condition_sub(enum hfd_field field)
{
    for (size_t i = 0; i < CONDITION_SUBS; i++)
        if (condition_subs[i].field == field)
            return true;
    return false;
}

hfd_rc hfd_field_read(struct hfd_search *s, struct hfd_field_path *path)
{
    size_t first = s->start, last;
    hfd_rc rc = HFD_OK;

    if (s->tok != HFD_TOK_NAME)
        return hfd_lex_fail(s, "expected a field name");
    for (;;) {
        if (path->count == HFD_PATH_MAX)
            return hfd_lex_fail(s, "the field name has too many parts");
        path->parts[path->count++] = s->word;
        last = s->at;
        rc = hfd_lex_next(s);
        if (rc != HFD_OK || s->tok != HFD_TOK_DOT)
            break;
        rc = path->count == 1 && hfd_slice_is(path->parts[0], "labels") ? lex_next_label(s)
                                                                        : hfd_lex_next(s);
        if (rc != HFD_OK)
            break;
        if (s->tok != HFD_TOK_NAME)
            return hfd_lex_fail(s, "expected a name behind the dot");
    }
    if (rc != HFD_OK)
        return rc;
    path->whole = (hfd_slice){s->text.p + first, last - first};
    return HFD_OK;
}

static hfd_rc no_such_field(struct hfd_search *s, const struct hfd_field_path *path)
{
    return hfd_fail_field(s->err, HFD_BAD_REQUEST, "search", "%.*s is not a valid field name",
                          (int)(path->whole.len < 100 ? path->whole.len : 100), path->whole.p);
}

/* HyperFleet takes the name before a dot for a table. */
static hfd_rc not_related(struct hfd_search *s, const struct hfd_field_path *path)
{
    return hfd_fail_field(s->err, HFD_BAD_REQUEST, "search", "%.*s is not a related resource of %s",
                          (int)(path->parts[0].len < 60 ? path->parts[0].len : 60),
                          path->parts[0].p, hfd_kind_name(s->kind));
}

/* Joins the parts after the first with dots, without quotes and white space. */
static hfd_rc join_tail(struct hfd_search *s, const struct hfd_field_path *path, hfd_slice *out)
{
    struct hfd_buf b;

    hfd_buf_init(&b, HFD_SEARCH_MAX + HFD_PATH_MAX);
    for (size_t i = 1; i < path->count; i++) {
        if (i > 1)
            hfd_buf_addc(&b, '.');
        hfd_buf_add(&b, path->parts[i]);
    }
    return hfd_buf_to_arena(&b, s->mem, out, s->err);
}

hfd_rc hfd_field_check_label(const char *parameter, hfd_slice key, struct hfd_err *err)
{
    if (key.len == 0)
        return hfd_fail_field(err, HFD_BAD_REQUEST, parameter, "label key cannot be empty");
    if (!hfd_label_searchable(key))
        return hfd_fail_field(err, HFD_BAD_REQUEST, parameter,
                              "label key '%.*s' is invalid: must be the key of a Kubernetes label",
                              (int)(key.len < 80 ? key.len : 80), key.p);
    return HFD_OK;
}

static hfd_rc resolve_label(struct hfd_search *s, const struct hfd_field_path *path,
                            struct hfd_filter *f)
{
    hfd_rc rc;

    f->field = HFD_FIELD_LABEL;
    if (path->count == 1)
        return no_such_field(s, path);
    rc = join_tail(s, path, &f->name);
    return rc == HFD_OK ? hfd_field_check_label("search", f->name, s->err) : rc;
}

static bool is_pascal_case(hfd_slice type)
{
    if (type.len == 0 || *type.p < 'A' || *type.p > 'Z')
        return false;
    for (size_t i = 1; i < type.len; i++)
        if (!lex_is_name_char(type.p[i]))
            return false;
    return memchr(type.p, '_', type.len) == NULL;
}

static hfd_rc resolve_condition_sub(struct hfd_search *s, hfd_slice sub, struct hfd_filter *f)
{
    for (size_t i = 0; i < CONDITION_SUBS; i++) {
        if (hfd_slice_is(sub, condition_subs[i].name)) {
            f->field = condition_subs[i].field;
            return HFD_OK;
        }
    }
    return hfd_fail_field(s->err, HFD_BAD_REQUEST, "search",
                          "condition subfield '%.*s' is not supported; use last_updated_time, "
                          "last_transition_time, or observed_generation",
                          (int)(sub.len < 40 ? sub.len : 40), sub.p);
}

static hfd_rc read_type(struct hfd_search *s, hfd_slice type, struct hfd_filter *f)
{
    f->name = type;
    if (is_pascal_case(type))
        return HFD_OK;
    return hfd_fail_field(
        s->err, HFD_BAD_REQUEST, "search",
        "condition type '%.*s' is invalid: must be PascalCase (e.g., Ready, Available)",
        (int)(type.len < 80 ? type.len : 80), type.p);
}

/*
 * Resolves status.conditions.Type and status.conditions.Type.subfield, or Type__subfield: the form
 * into which HyperFleet rewrites it.
 */
static hfd_rc resolve_condition(struct hfd_search *s, const struct hfd_field_path *path,
                                struct hfd_filter *f)
{
    hfd_slice type, sub = HFD_SLICE_NONE;
    const char *cut;
    hfd_rc rc;

    if (path->count == 2)
        return not_related(s, path);
    if ((path->count != 3 && path->count != 4) || !hfd_slice_is(path->parts[1], "conditions"))
        return no_such_field(s, path);
    type = path->parts[2];
    if (path->count == 4) {
        sub = path->parts[3];
    } else if ((cut = memmem(type.p, type.len, "__", 2)) != NULL) {
        sub = (hfd_slice){cut + 2, type.len - (size_t)(cut + 2 - type.p)};
        type.len = (size_t)(cut - type.p);
    }
    f->field = hfd_condition_has_key(type) ? HFD_FIELD_CONDITION : HFD_FIELD_CONDITION_READ;
    rc = read_type(s, type, f);
    return rc != HFD_OK || sub.p == NULL ? rc : resolve_condition_sub(s, sub, f);
}

static hfd_rc resolve_spec(struct hfd_search *s, const struct hfd_field_path *path,
                           struct hfd_filter *f)
{
    if (path->count < 2)
        return no_such_field(s, path);
    for (size_t i = 1; i < path->count; i++) {
        if (path->parts[i].len == 0)
            return no_such_field(s, path);
        for (size_t k = 0; k < path->parts[i].len; k++)
            if (!lex_is_name_char(path->parts[i].p[k]))
                return no_such_field(s, path);
    }
    f->field = HFD_FIELD_SPEC;
    return join_tail(s, path, &f->name);
}

/* Resolves adapter and the like, and conditions.Type: the status of a condition of the report. */
static hfd_rc resolve_report(struct hfd_search *s, const struct hfd_field_path *path,
                             struct hfd_filter *f)
{
    if (path->count == 1 && hfd_field_report_column(path->parts[0], &f->field))
        return HFD_OK;
    if (path->count != 2 || !hfd_slice_is(path->parts[0], "conditions"))
        return no_such_field(s, path);
    f->field = HFD_FIELD_CONDITION_READ;
    return read_type(s, path->parts[1], f);
}

hfd_rc hfd_field_resolve(struct hfd_search *s, const struct hfd_field_path *path,
                         struct hfd_filter *f)
{
    if (s->of_reports)
        return resolve_report(s, path, f);
    if (hfd_slice_is(path->parts[0], "labels"))
        return resolve_label(s, path, f);
    if (hfd_slice_is(path->parts[0], "status"))
        return resolve_condition(s, path, f);
    if (hfd_slice_is(path->parts[0], "spec"))
        return resolve_spec(s, path, f);
    if (path->count == 2 && hfd_slice_is(path->parts[1], "spec"))
        return hfd_fail_field(s->err, HFD_BAD_REQUEST, "search", "spec is not a valid field name");
    if (path->count == 2)
        return not_related(s, path);
    if (path->count != 1 || !hfd_field_column(s->kind, path->parts[0], &f->field))
        return no_such_field(s, path);
    return HFD_OK;
}
