/* The tokenizer of searches. See search_lex.h. */
#include "driver/fleet/search_lex.h"

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

bool hfd_lex_is_name_char(char c)
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
static hfd_rc read_quoted(struct hfd_search *s, char quote, enum hfd_token tok)
{
    char *out = s->room;
    size_t n = 0;

    s->at++;
    while (s->at < s->text.len) {
        char c = s->text.p[s->at];

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
    while (hfd_lex_is_name_char(char_at(s, 0)))
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
        enum hfd_token tok;
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
    const enum hfd_token before = s->tok;
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
    return hfd_lex_is_name_char(c) || c == '-' || c == '.' || c == '/';
}

hfd_rc hfd_lex_next_label(struct hfd_search *s)
{
    if (!hfd_lex_is_name_char(char_at(s, 0)))
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
