/* See table.h. */
#include "store/table.h"

#include "driver/base/check.h"

#include <stdlib.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#define SQL_MAX ((size_t)16384)
#define PLACES_MAX 16                     /* of texts or numbers in a checksum */
#define STEP UINT64_C(0x9E3779B97F4A7C15) /* odd: multiplying by it loses nothing */

/* ---- SQL ---- */

bool hfd_table_primary(const struct hfd_table *table, size_t nth, size_t *at)
{
    size_t seen = 0;

    for (*at = 0; *at < table->count; ++*at)
        if ((table->cols[*at].marks & HFD_COL_PRIMARY) != 0 && seen++ == nth)
            return true;
    *at = table->key + nth;
    return seen == 0 && nth < table->keys;
}

static bool is_key(const struct hfd_table *t, size_t at)
{
    return at >= t->key && at < t->key + t->keys;
}

static bool is_set(const struct hfd_query *q, size_t at)
{
    return (q->table->cols[at].marks & q->marks) != 0;
}

enum of {
    OF_ALL,
    OF_KEY,
    OF_PRIMARY,
    OF_SET,
    OF_NO_KEY
};

/*
 * A word of a query: which columns it lists, and how: %n a name, %h a head, %p a place. In the text
 * of a set, ?%p is a column of the arrays.
 */
static const struct word {
    const char *name;
    enum of of;
    const char *form, *between;
    size_t places; /* before the first one, beside the key for OF_SET */
} words[] = {
    {"cols", OF_ALL, "%n", ", ", 0},         {"heads", OF_ALL, "%h", ", ", 0},
    {"places", OF_ALL, "?%p", ", ", 0},      {"keys", OF_KEY, "%n", ", ", 0},
    {"key", OF_KEY, "%n = ?%p", " AND ", 0}, {"primary", OF_PRIMARY, "%n", ", ", 0},
    {"behind", OF_PRIMARY, "?%p", ", ", 1},  {"last", OF_PRIMARY, "%n DESC", ", ", 0},
    {"sets", OF_SET, "%n = ?%p", ", ", 0},   {"excluded", OF_NO_KEY, "%n = excluded.%n", ", ", 0},
};
/* Words with two forms: of one write, and of a set. */
static const struct {
    const char *name, *one, *set;
} forms[] = {
    {"values", "VALUES (@places)", "SELECT * FROM @arrays"},
    {"from", "", " FROM @arrays"},
    {"using", "", " USING @arrays"},
    {"skips", " ON CONFLICT DO NOTHING", ""},
};

/* Gives the index of a column of a word. @return false: it has not so many */
static bool find_col(const struct hfd_query *q, enum of of, size_t nth, size_t *at)
{
    const struct hfd_table *t = q->table;

    if (of == OF_PRIMARY)
        return hfd_table_primary(t, nth, at);
    for (*at = 0; *at < t->count; ++*at)
        if ((of == OF_ALL || (of == OF_KEY && is_key(t, *at)) || (of == OF_SET && is_set(q, *at)) ||
             (of == OF_NO_KEY && !is_key(t, *at) && (t->cols[*at].marks & HFD_COL_STAYS) == 0)) &&
            nth-- == 0)
            return true;
    return false;
}

static void add_col(const struct word *word, const struct hfd_col *col, size_t place, bool set,
                    struct hfd_buf *b)
{
    for (const char *f = word->form; *f != '\0'; f++) {
        if (*f == '?' && set)
            hfd_buf_lit(b, "x.p");
        else if (*f != '%')
            hfd_buf_add(b, (hfd_slice){f, 1});
        else if (*++f == 'p')
            hfd_buf_addf(b, "%zu", place);
        else
            hfd_buf_add(b, hfd_slice_of(*f == 'h' && col->head != NULL ? col->head : col->name));
    }
}

static const struct word *find_word(hfd_slice name)
{
    for (size_t i = 0; i < HFD_COUNT_OF(words); i++)
        if (hfd_slice_is(name, words[i].name))
            return &words[i];
    return NULL;
}

/* Returns true if the text of a query has a word. */
static bool has_word(const struct hfd_query *q, const char *word)
{
    const char *at = strstr(q->text, word);

    while (at != NULL && at[strlen(word)] >= 'a' && at[strlen(word)] <= 'z')
        at = strstr(at + 1, word);
    return at != NULL;
}

/* The parameters of a write that hfd_query_bind binds: the key and what is set, or all columns. */
static size_t params_of(const struct hfd_query *q)
{
    size_t n = q->marks != 0 ? q->table->keys : q->table->count, at;

    for (size_t i = 0; q->marks != 0 && find_col(q, OF_SET, i, &at); i++)
        n++;
    return has_word(q, "@using") ? q->table->keys : n;
}

static void add_arrays(const struct hfd_query *q, struct hfd_buf *b)
{
    const size_t n = params_of(q);

    hfd_buf_lit(b, "unnest(");
    for (size_t i = 1; i <= n; i++)
        hfd_buf_addf(b, "%s?%zu", i > 1 ? ", " : "", i);
    hfd_buf_lit(b, ") AS x(");
    for (size_t i = 1; i <= n; i++)
        hfd_buf_addf(b, "%sp%zu", i > 1 ? ", " : "", i);
    hfd_buf_lit(b, ")");
}

/* Adds what stands for a word. */
static void add_word(const struct hfd_query *q, hfd_slice name, bool set, struct hfd_buf *b)
{
    const struct word *word = find_word(name);
    size_t at;

    if (hfd_slice_is(name, "table")) {
        hfd_buf_add(b, hfd_slice_of(q->table->name));
        return;
    }
    if (hfd_slice_is(name, "arrays")) {
        add_arrays(q, b);
        return;
    }
    HFD_ASSERT(word != NULL);
    for (size_t i = 0; find_col(q, word->of, i, &at); i++) {
        hfd_buf_add(b, hfd_slice_of(i > 0 ? word->between : ""));
        add_col(word, &q->table->cols[at],
                i + 1 + word->places + (word->of == OF_SET ? q->table->keys : 0), set, b);
    }
}

static const char *find_form(hfd_slice name, bool set)
{
    for (size_t i = 0; i < HFD_COUNT_OF(forms); i++)
        if (hfd_slice_is(name, forms[i].name))
            return set ? forms[i].set : forms[i].one;
    return NULL;
}

static void add_text(const struct hfd_query *q, const char *from, bool set, struct hfd_buf *b)
{
    while (*from != '\0') {
        const size_t len = strcspn(from, "@");
        hfd_slice name = {from + len + 1, 0};
        const char *form;

        hfd_buf_add(b, (hfd_slice){from, len});
        from += len;
        if (*from == '\0')
            break;
        name.len = strspn(name.p, "abcdefghijklmnopqrstuvwxyz");
        form = find_form(name, set);
        if (form != NULL)
            add_text(q, form, set, b);
        else
            add_word(q, name, set, b);
        from = name.p + name.len;
    }
}

static char *make_sql(const struct hfd_query *q, bool set)
{
    struct hfd_buf b;
    char *made = NULL;
    hfd_slice text;

    hfd_buf_init(&b, SQL_MAX);
    add_text(q, q->text, set, &b);
    hfd_buf_addc(&b, '\0');
    if (hfd_buf_finish(&b, &text, NULL) == HFD_OK)
        made = strdup(text.p);
    hfd_buf_fini(&b);
    return made;
}

/* Two threads may make the same text: the first one stays. */
hfd_rc hfd_query_sql(struct hfd_query *query, const char **out, struct hfd_err *err)
{
    char *own;

    *out = atomic_load_explicit(&query->made, memory_order_acquire);
    if (*out != NULL)
        return HFD_OK;
    own = make_sql(query, false);
    if (own == NULL)
        return hfd_fail_nomem(err, "make a statement");
    if (atomic_compare_exchange_strong(&query->made, out, own))
        *out = own;
    else
        free(own);
    return HFD_OK;
}

/* ---- what a query touches ---- */

static void add_equal(struct hfd_db_use *use, const char *column, size_t param)
{
    HFD_ASSERT(use->equal_count < HFD_DB_EQUALS_MAX);
    use->equals[use->equal_count++] = (struct hfd_db_equal){column, (int)param};
}

/* An upsert may change any column beside the key of a row that is there. */
static void add_equals(const struct hfd_query *q, struct hfd_db_use *use)
{
    const struct hfd_table *t = q->table;
    const bool upserts = use->adds && has_word(q, "@keys");
    size_t param = 0;

    for (size_t i = 0; i < HFD_BY_MAX && q->by[i] != NULL; i++)
        add_equal(use, q->by[i], i + 1);
    for (size_t i = 0; i < t->count; i++) {
        if (is_key(t, i) && has_word(q, "@key"))
            add_equal(use, t->cols[i].name, ++param);
        else if (use->adds && (is_key(t, i) || !upserts))
            add_equal(use, t->cols[i].name, i + 1);
    }
}

static struct hfd_db_use *make_use(const struct hfd_query *q)
{
    struct hfd_db_use *use = calloc(1, sizeof(*use));

    if (use == NULL)
        return NULL;
    use->table = q->mixed ? NULL : q->table->name;
    use->adds = has_word(q, "@values");
    use->differs = has_word(q, "@from") || (use->adds && has_word(q, "@keys"));
    if (q->empty != NULL) {
        use->empty.table = q->empty->table;
        use->empty.equal = (struct hfd_db_equal){q->empty->column, q->empty->param};
        use->empty.other = q->empty->other;
    }
    add_equals(q, use);
    return use;
}

hfd_rc hfd_query_use(struct hfd_query *query, const struct hfd_db_use **out, struct hfd_err *err)
{
    struct hfd_db_use *own;
    hfd_rc rc;

    *out = atomic_load_explicit(&query->use, memory_order_acquire);
    if (*out != NULL)
        return HFD_OK;
    own = make_use(query);
    rc = own != NULL ? hfd_query_sql(query, &own->sql, err)
                     : hfd_fail_nomem(err, "make a statement");
    if (rc != HFD_OK) {
        free(own);
        return rc;
    }
    if (has_word(query, "@values") || has_word(query, "@from") || has_word(query, "@using")) {
        own->set = make_sql(query, true);
        if (own->set == NULL) {
            free(own);
            return hfd_fail_nomem(err, "make a statement");
        }
    }
    if (atomic_compare_exchange_strong(&query->use, out, own)) {
        *out = own;
    } else {
        free((char *)(uintptr_t)own->set);
        free(own);
    }
    return HFD_OK;
}

/* ---- members ---- */

static hfd_slice *text_at(const struct hfd_col *c, const void *row)
{
    return (hfd_slice *)(void *)((char *)(uintptr_t)row + c->at);
}

static int64_t number_at(const struct hfd_col *c, const void *row)
{
    const void *member = (const char *)row + c->at;

    if (c->type == HFD_COL_I64)
        return *(const int64_t *)member;
    return c->type == HFD_COL_BOOL ? *(const bool *)member : *(const int *)member;
}

static int64_t sum_of(const struct hfd_table *t, const void *row, bool doc)
{
    return t->sum != NULL ? t->sum(row, doc) : hfd_table_sum(t, row, doc);
}

static void bind_col(const struct hfd_table *t, const struct hfd_col *c, struct hfd_stmt *st,
                     int at, const void *row)
{
    const hfd_slice text = hfd_col_is_text(c) ? *text_at(c, row) : HFD_SLICE_NONE;

    if (c->type == HFD_COL_TEXT)
        hfd_stmt_text(st, at, text.p != NULL ? text : HFD_SLICE(""));
    else if (c->type == HFD_COL_BLOB)
        hfd_stmt_blob(st, at, text.p != NULL ? text : HFD_SLICE(""));
    else if (c->type == HFD_COL_NONE)
        hfd_stmt_blob(st, at, text);
    else if (c->type == HFD_COL_SUM || c->type == HFD_COL_DOC_SUM)
        hfd_stmt_i64(st, at, sum_of(t, row, c->type == HFD_COL_DOC_SUM));
    else
        hfd_stmt_i64(st, at, number_at(c, row));
}

void hfd_query_bind(const struct hfd_query *query, struct hfd_stmt *st, const void *row)
{
    const struct hfd_table *t = query->table;
    int at = 1;

    for (size_t i = 0; query->marks != 0 && i < t->keys; i++)
        bind_col(t, &t->cols[t->key + i], st, at++, row);
    for (size_t i = 0; i < t->count; i++)
        if (query->marks == 0 || is_set(query, i))
            bind_col(t, &t->cols[i], st, at++, row);
}

struct hfd_unit_key hfd_table_key(const struct hfd_table *table, const void *row)
{
    const struct hfd_col *c = &table->cols[table->key];

    return (struct hfd_unit_key){*text_at(c, row),
                                 table->keys > 1 ? *text_at(c + 1, row) : HFD_SLICE_NONE};
}

size_t hfd_table_bytes(const struct hfd_table *table, const void *row)
{
    size_t n = 0;

    for (const struct hfd_col *c = table->cols; c < table->cols + table->count; c++)
        if (hfd_col_is_text(c))
            n += text_at(c, row)->len;
    return n;
}

void hfd_table_take(const struct hfd_table *table, void *row, char *to)
{
    for (const struct hfd_col *c = table->cols; c < table->cols + table->count; c++) {
        hfd_slice *s = hfd_col_is_text(c) ? text_at(c, row) : NULL;

        if (s == NULL || (s->p == NULL && c->type == HFD_COL_NONE))
            continue;
        if (s->p != NULL && s->len > 0)
            memcpy(to, s->p, s->len);
        s->p = to;
        to += s->len;
    }
}

/* ---- checksums ---- */

static uint64_t mix(uint64_t h, uint64_t at, uint64_t v)
{
    h = (h ^ (v + at * STEP)) * STEP;
    return h ^ h >> 32;
}

int64_t hfd_table_sum(const struct hfd_table *table, const void *row, bool doc)
{
    const hfd_slice *texts[PLACES_MAX] = {NULL};
    int64_t numbers[PLACES_MAX] = {0};
    uint64_t h = STEP;
    size_t places = 0;

    for (const struct hfd_col *c = table->cols; c < table->cols + table->count; c++) {
        const unsigned place = doc ? c->doc : c->sum;

        if (place == 0)
            continue;
        HFD_ASSERT(place <= PLACES_MAX);
        places = place > places ? place : places;
        if (hfd_col_is_text(c))
            texts[place - 1] = text_at(c, row);
        else
            numbers[place - 1] = number_at(c, row);
    }
    for (size_t i = 0; i < places; i++)
        if (texts[i] != NULL && texts[i]->len > 0)
            h = mix(h, 2 * i, XXH3_64bits(texts[i]->p, texts[i]->len));
    for (size_t i = 0; i < places; i++)
        if (numbers[i] != 0)
            h = mix(h, 2 * i + 1, (uint64_t)numbers[i]);
    return (int64_t)(h >> 2);
}

/* ---- reading ---- */

hfd_slice hfd_row_text(struct hfd_row_in *in)
{
    const hfd_slice text = hfd_stmt_col_text(in->st, in->at++, in->mem);

    in->bad = in->bad || (text.p == NULL && !hfd_stmt_is_stuck(in->st));
    return text;
}

int64_t hfd_row_i64(struct hfd_row_in *in)
{
    return hfd_stmt_col_i64(in->st, in->at++);
}

/* Reads a checksum, and compares. A row with another one, or none, is damaged. */
static void check_sum(struct hfd_row_in *in, const struct hfd_table *t, const void *row, bool doc)
{
    const int64_t sum = sum_of(t, row, doc);
    const int at = in->at++;

    if (in->sums != NULL) {
        *in->sums++ = sum;
        return;
    }
    if (hfd_stmt_col_i64(in->st, at) == sum && !in->bad && !hfd_stmt_is_stuck(in->st))
        return;
    in->bad = true;
    in->name = (struct hfd_row_name){t->name, hfd_table_key(t, row)};
}

static void read_int(struct hfd_row_in *in, const struct hfd_col *c, int *out)
{
    const int64_t min = c->type == HFD_COL_KIND ? HFD_KIND_CLUSTER : 0;
    const int64_t max = c->type == HFD_COL_KIND ? HFD_KIND_NODEPOOL
                        : c->max > 0            ? c->max
                                                : INT32_MAX;
    const int64_t v = hfd_row_i64(in);
    const bool good = v >= min && v <= max;

    in->bad = in->bad || !good;
    *out = (int)(good ? v : min);
}

void hfd_table_read(struct hfd_row_in *in, void *row)
{
    const struct hfd_table *t = (const struct hfd_table *)(const void *)in->form;

    memset(row, 0, in->form->size); /* members of no column, too */
    for (const struct hfd_col *c = t->cols; c < t->cols + t->count; c++) {
        void *member = (char *)row + c->at;

        switch (c->type) {
        case HFD_COL_I64:
            *(int64_t *)member = hfd_row_i64(in);
            break;
        case HFD_COL_BOOL:
            *(bool *)member = hfd_row_i64(in) != 0;
            break;
        case HFD_COL_INT:
        case HFD_COL_KIND:
            read_int(in, c, member);
            break;
        case HFD_COL_TEXT:
        case HFD_COL_BLOB:
            *(hfd_slice *)member = hfd_row_text(in);
            break;
        case HFD_COL_NONE:
            *(hfd_slice *)member = hfd_stmt_col_text(in->st, in->at++, in->mem);
            break;
        case HFD_COL_SUM:
        case HFD_COL_DOC_SUM:
            check_sum(in, t, row, c->type == HFD_COL_DOC_SUM);
            break;
        }
    }
}
