#include "store/postgres/shape.h"

#include "driver/base/check.h"

/* ---- words ---- */

enum token_kind {
    END,
    WORD, /* also with dots: f.id */
    PARAM,
    NUMBER,
    TEXT,
    SIGN
};

struct token {
    enum token_kind kind;
    hfd_slice text;
    int param;
};

struct reader {
    const char *at;
    struct token now;
};

static bool is_word(char c)
{
    return hfd_is_alnum(c) || c == '_' || c == '.';
}

static size_t quoted(const char *p)
{
    size_t n = 1;

    while (p[n] != '\0' && (p[n] != '\'' || p[n + 1] == '\''))
        n += p[n] == '\'' ? 2 : 1;
    return p[n] == '\0' ? n : n + 1;
}

static int number_of(const char *p)
{
    int n = 0;

    for (; *p >= '0' && *p <= '9' && n < 1000; p++)
        n = n * 10 + *p - '0';
    return n;
}

static const char *skip_blank(const char *p)
{
    p += strspn(p, " \n\t");
    while (p[0] == '/' && p[1] == '*') {
        const char *end = strstr(p, "*/");

        p = end != NULL ? end + 2 : p + strlen(p);
        p += strspn(p, " \n\t");
    }
    return p;
}

static void next(struct reader *r)
{
    const char *p = skip_blank(r->at);
    size_t n = 1;

    r->now = (struct token){.kind = SIGN};
    if (*p == '\0') {
        r->now.kind = END;
        n = 0;
    } else if (*p == '?') {
        r->now.kind = PARAM;
        r->now.param = number_of(p + 1);
        n += strspn(p + 1, "0123456789");
    } else if (*p == '\'') {
        r->now.kind = TEXT;
        n = quoted(p);
    } else if (is_word(*p)) {
        r->now.kind = *p >= '0' && *p <= '9' ? NUMBER : WORD;
        while (is_word(p[n]))
            n++;
    }
    r->now.text = (hfd_slice){p, n};
    r->at = p + n;
}

static bool is(const struct reader *r, const char *word)
{
    return r->now.kind == WORD && hfd_slice_is(r->now.text, word);
}

static bool is_sign(const struct reader *r, char c)
{
    return r->now.kind == SIGN && r->now.text.p[0] == c;
}

static bool take(struct reader *r, const char *word)
{
    if (!is(r, word))
        return false;
    next(r);
    return true;
}

static struct reader reader_of(const char *sql)
{
    struct reader r = {.at = sql};

    next(&r);
    return r;
}

/* Skips to the bracket that closes the one just read. */
static void skip_brackets(struct reader *r)
{
    for (int depth = 1; depth > 0 && r->now.kind != END; next(r))
        depth += is_sign(r, '(') ? 1 : is_sign(r, ')') ? -1 : 0;
}

/* Skips to the END that closes the CASE just read. */
static void skip_case(struct reader *r)
{
    for (int depth = 1; depth > 0 && r->now.kind != END; next(r))
        depth += is(r, "CASE") ? 1 : is(r, "END") ? -1 : 0;
}

/* ---- tables and parameters, anywhere in the text ---- */

static void add_table(struct hfd_shape *s, hfd_slice name)
{
    for (size_t i = 0; i < s->table_count; i++)
        if (hfd_slice_eq(s->tables[i], name))
            return;
    if (s->table_count == HFD_SHAPE_TABLES_MAX) {
        s->kind = HFD_SHAPE_OTHER;
        s->table_count = 0;
        return;
    }
    s->tables[s->table_count++] = name;
}

static bool is_before_table(const struct reader *r)
{
    return is(r, "FROM") || is(r, "JOIN") || is(r, "INTO") || is(r, "UPDATE");
}

static bool is_compound(const struct reader *r)
{
    return is(r, "UNION") || is(r, "WITH") || is(r, "EXCEPT");
}

/* Takes a table, and another name for it. @return false when it is none, or a list begins */
static bool take_table(struct reader *r, struct hfd_shape *s)
{
    const bool named = r->now.kind == WORD;

    if (named)
        add_table(s, r->now.text);
    next(r);
    if (r->now.kind == WORD && !is(r, "WHERE") && !is(r, "SET"))
        next(r);
    return named && !is_sign(r, ',');
}

/*
 * Adds each word behind FROM, JOIN, INTO and UPDATE.
 * @return whether it is one table that is named once, with no other query inside
 */
static bool find_tables(const char *sql, struct hfd_shape *s)
{
    struct reader r = reader_of(sql);
    int named = 0;
    bool plain = true;

    while (r.now.kind != END) {
        const bool from = is_before_table(&r), do_update = is(&r, "DO");

        plain = plain && !is_compound(&r);
        if (r.now.kind == PARAM && r.now.param > s->params)
            s->params = r.now.param;
        next(&r);
        if (do_update && is(&r, "UPDATE"))
            next(&r);
        if (!from)
            continue;
        named++;
        plain = take_table(&r, s) && plain;
    }
    return plain && named == 1;
}

/* ---- conditions ---- */

static void add_equal(struct hfd_shape *s, hfd_slice column, int param)
{
    if (s->equal_count < HFD_SHAPE_EQUALS_MAX && param >= 1 && param <= HFD_SHAPE_PARAMS_MAX)
        s->equals[s->equal_count++] = (struct hfd_shape_equal){column, param};
}

static bool ends_condition(const struct reader *r)
{
    return r->now.kind == END || is(r, "ORDER") || is(r, "GROUP") || is(r, "LIMIT") ||
           is(r, "HAVING") || is(r, "RETURNING") || is(r, "FOR");
}

/* Reads one of the conditions that AND joins. @return false when an OR stands beside it */
static bool read_condition(struct reader *r, struct hfd_shape *s)
{
    struct token first = {.kind = END}, second = {.kind = END}, third = {.kind = END};
    int count = 0;

    while (!ends_condition(r) && !is(r, "AND") && !is(r, "OR")) {
        const struct token now = r->now;

        next(r);
        if (now.kind == SIGN && now.text.p[0] == '(')
            skip_brackets(r);
        else if (now.kind == WORD && hfd_slice_is(now.text, "CASE"))
            skip_case(r);
        count++;
        if (count == 1)
            first = now;
        else if (count == 2)
            second = now;
        else
            third = now;
    }
    if (count == 3 && first.kind == WORD && second.kind == SIGN && second.text.p[0] == '=' &&
        third.kind == PARAM)
        add_equal(s, first.text, third.param);
    return !is(r, "OR");
}

/* Reads what stands behind WHERE. */
static void read_conditions(struct reader *r, struct hfd_shape *s)
{
    const size_t before = s->equal_count;
    bool all = true;

    while (all && !ends_condition(r)) {
        all = read_condition(r, s);
        if (all)
            (void)take(r, "AND");
    }
    if (!all)
        s->equal_count = before;
}

/* ---- kinds of statements ---- */

/* The parts of a text from a word on. */
static void read_select(const char *sql, struct hfd_shape *s)
{
    struct reader r = reader_of(sql);

    s->kind = HFD_SHAPE_SELECT;
    while (r.now.kind != END && !is(&r, "WHERE"))
        next(&r);
    if (take(&r, "WHERE"))
        read_conditions(&r, s);
}

/* Reads the columns that ON CONFLICT names, each with its parameter. */
static void read_conflict(struct reader *r, struct hfd_shape *s)
{
    struct hfd_shape_equal known[HFD_SHAPE_EQUALS_MAX];
    const size_t count = s->equal_count;

    memcpy(known, s->equals, sizeof(known));
    s->equal_count = 0;
    for (next(r); r->now.kind != END && !is_sign(r, ')'); next(r))
        for (size_t i = 0; i < count; i++)
            if (r->now.kind == WORD && hfd_slice_eq(known[i].column, r->now.text))
                add_equal(s, known[i].column, known[i].param);
    next(r);
}

/*
 * Reads "ON CONFLICT ... DO ...". An upsert may change any column but those that it names: its rows
 * are known by them alone.
 */
static bool read_tail(struct reader *r, struct hfd_shape *s)
{
    const struct hfd_shape before = *s;

    if (r->now.kind == END)
        return true;
    if (!take(r, "ON") || !take(r, "CONFLICT"))
        return false;
    if (is_sign(r, '('))
        read_conflict(r, s);
    else
        s->equal_count = 0;
    if (!take(r, "DO"))
        return false;
    if (is(r, "NOTHING")) {
        memcpy(s->equals, before.equals, sizeof(s->equals));
        s->equal_count = before.equal_count;
        next(r);
        return r->now.kind == END;
    }
    s->kind = HFD_SHAPE_UPSERT;
    return s->equal_count > 0;
}

/* Reads "(a, b". @return false for any other form */
static bool read_columns(struct reader *r, hfd_slice columns[HFD_SHAPE_EQUALS_MAX], size_t *count)
{
    if (!is_sign(r, '('))
        return false;
    for (next(r); !is_sign(r, ')'); next(r)) {
        if (r->now.kind == END || *count == HFD_SHAPE_EQUALS_MAX)
            return false;
        if (r->now.kind == WORD)
            columns[(*count)++] = r->now.text;
    }
    return true;
}

/* Reads "(a, b) VALUES (?1, ?2)". @return false for any other form */
static bool read_values(struct reader *r, struct hfd_shape *s)
{
    hfd_slice columns[HFD_SHAPE_EQUALS_MAX];
    size_t count = 0, at = 0;

    if (!read_columns(r, columns, &count))
        return false;
    next(r);
    if (!take(r, "VALUES") || !is_sign(r, '('))
        return false;
    next(r);
    for (; r->now.kind == PARAM || r->now.kind == NUMBER || r->now.kind == TEXT; at++) {
        if (at < count && r->now.kind == PARAM)
            add_equal(s, columns[at], r->now.param);
        next(r);
        if (is_sign(r, ','))
            next(r);
    }
    if (!is_sign(r, ')') || at != count)
        return false;
    next(r);
    return true;
}

static void read_insert(const char *sql, struct hfd_shape *s)
{
    struct reader r = reader_of(sql);

    s->kind = HFD_SHAPE_INSERT;
    next(&r); /* INSERT */
    next(&r); /* INTO */
    next(&r); /* the table */
    if (!read_values(&r, s) || !read_tail(&r, s))
        s->equal_count = 0;
}

static void drop_equal(struct hfd_shape *s, hfd_slice column)
{
    size_t kept = 0;

    for (size_t i = 0; i < s->equal_count; i++)
        if (!hfd_slice_eq(s->equals[i].column, column))
            s->equals[kept++] = s->equals[i];
    s->equal_count = kept;
}

static void read_update(const char *sql, struct hfd_shape *s)
{
    hfd_slice set[HFD_SHAPE_EQUALS_MAX];
    size_t count = 0;
    struct reader r = reader_of(sql);
    bool column = true;

    s->kind = HFD_SHAPE_UPDATE;
    next(&r); /* UPDATE */
    next(&r); /* the table */
    if (!take(&r, "SET"))
        return;
    while (r.now.kind != END && !is(&r, "WHERE")) {
        const struct token now = r.now;

        if (column && count == HFD_SHAPE_EQUALS_MAX)
            return;
        if (column)
            set[count++] = now.text;
        next(&r);
        column = now.kind == SIGN && now.text.p[0] == ',';
        if (now.kind == SIGN && now.text.p[0] == '(')
            skip_brackets(&r);
    }
    if (take(&r, "WHERE"))
        read_conditions(&r, s);
    for (size_t i = 0; i < count; i++)
        drop_equal(s, set[i]);
}

static void read_delete(const char *sql, struct hfd_shape *s)
{
    struct reader r = reader_of(sql);

    s->kind = HFD_SHAPE_DELETE;
    next(&r); /* DELETE */
    next(&r); /* FROM */
    next(&r); /* the table */
    if (take(&r, "WHERE"))
        read_conditions(&r, s);
}

/* Reads the comment that says when an empty result stays empty. */
static void read_empty(const char *sql, struct hfd_shape_empty *out)
{
    static const char begin[] = "/*empty: ";
    const char *at = strstr(sql, begin);
    struct reader r;
    const char *dot;

    if (at == NULL)
        return;
    r = reader_of(at + sizeof(begin) - 1);
    dot = memchr(r.now.text.p, '.', r.now.text.len);
    HFD_ASSERT(r.now.kind == WORD && dot != NULL);
    out->table = (hfd_slice){r.now.text.p, (size_t)(dot - r.now.text.p)};
    out->equal.column = (hfd_slice){dot + 1, r.now.text.len - out->table.len - 1};
    next(&r); /* = */
    next(&r);
    out->equal.param = r.now.param;
    next(&r); /* , */
    next(&r);
    out->other = r.now.text;
    HFD_ASSERT(out->equal.param >= 1 && r.now.kind == WORD);
}

void hfd_shape_read(const char *sql, struct hfd_shape *out)
{
    const struct reader r = reader_of(sql);
    bool plain;

    *out = (struct hfd_shape){.kind = HFD_SHAPE_SELECT};
    plain = find_tables(sql, out);
    read_empty(sql, &out->empty);
    if (out->kind == HFD_SHAPE_OTHER || out->params > HFD_SHAPE_PARAMS_MAX)
        out->kind = HFD_SHAPE_OTHER;
    else if (is(&r, "SELECT") && plain)
        read_select(sql, out);
    else if (is(&r, "INSERT") && plain)
        read_insert(sql, out);
    else if (is(&r, "UPDATE") && plain)
        read_update(sql, out);
    else if (is(&r, "DELETE") && plain)
        read_delete(sql, out);
    else if (is(&r, "INSERT"))
        out->kind = HFD_SHAPE_INSERT;
    else if (is(&r, "UPDATE"))
        out->kind = HFD_SHAPE_UPDATE;
    else if (is(&r, "DELETE"))
        out->kind = HFD_SHAPE_DELETE;
    else if (!is(&r, "SELECT"))
        out->kind = HFD_SHAPE_OTHER;
}

/* ---- sets ---- */

/* Adds a piece of the text. ?N becomes `from` with N behind it. */
static void add_piece_from(struct hfd_buf *sql, hfd_slice piece, const char *from)
{
    struct reader r = {.at = piece.p};
    const char *done = piece.p;

    for (next(&r); r.now.kind != END && r.now.text.p < piece.p + piece.len; next(&r)) {
        if (r.now.kind != PARAM)
            continue;
        hfd_buf_add(sql, (hfd_slice){done, (size_t)(r.now.text.p - done)});
        hfd_buf_addf(sql, "%s%d", from, r.now.param);
        done = r.at;
    }
    hfd_buf_add(sql, (hfd_slice){done, (size_t)(piece.p + piece.len - done)});
}

/* Adds "$1, $2", or what else `form` is. */
static void add_list(struct hfd_buf *sql, int params, const char *form)
{
    for (int i = 1; i <= params; i++)
        hfd_buf_addf(sql, "%s%s%d", i > 1 ? ", " : "", form, i);
}

/* Keeps the planner from reading the whole table for a join: each element is looked up alone. */
static void add_fence(struct hfd_buf *sql, const char *text)
{
    if (strstr(text, " OFFSET ") == NULL)
        hfd_buf_lit(sql, " OFFSET 0");
}

void hfd_shape_set_read(const struct hfd_shape *shape, const char *text, struct hfd_buf *sql)
{
    hfd_buf_lit(sql, "SELECT x.n, q.* FROM unnest(");
    add_list(sql, shape->params, "$");
    hfd_buf_lit(sql, ") WITH ORDINALITY AS x(");
    add_list(sql, shape->params, "p");
    hfd_buf_lit(sql, ", n) CROSS JOIN LATERAL (");
    add_piece_from(sql, hfd_slice_of(text), "x.p");
    add_fence(sql, text);
    hfd_buf_lit(sql, ") AS q");
}

void hfd_shape_set_follow(const char *via, const char *text, struct hfd_buf *sql)
{
    hfd_buf_lit(sql, "SELECT x.n, d.k1, q.* FROM unnest($1) WITH ORDINALITY AS x(p1, n)"
                     " CROSS JOIN LATERAL (");
    add_piece_from(sql, hfd_slice_of(via), "x.p");
    add_fence(sql, via);
    hfd_buf_lit(sql, ") AS d(k1) LEFT JOIN LATERAL (");
    add_piece_from(sql, hfd_slice_of(text), "d.k");
    add_fence(sql, text);
    hfd_buf_lit(sql, ") AS q ON TRUE");
}
