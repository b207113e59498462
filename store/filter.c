/* Filters to SQL. See search.h and filter.h. */
#include "store/search.h"

#include "driver/base/check.h"

#define PARAMS_FIRST 16

static const char sql_href[] =
    "CASE f.kind WHEN 1 THEN '/api/hyperfleet/v1/clusters/' || f.id"
    " ELSE '/api/hyperfleet/v1/clusters/' || f.owner_id || '/nodepools/' || f.id END";

void hfd_sql_init(struct hfd_sql *q, const struct hfd_db *db, struct hfd_arena *mem)
{
    *q = (struct hfd_sql){.db = db, .mem = mem, .seq = "f.seq", .at = "f.created_us"};
    hfd_buf_init(&q->text, HFD_SQL_MAX_BYTES);
}

void hfd_sql_fini(struct hfd_sql *q)
{
    hfd_buf_fini(&q->text);
}

/* Binds a value. @return its number, for "?%d" */
static int sql_param(struct hfd_sql *q, const struct hfd_filter_value *v)
{
    if (q->count == q->cap) {
        const int cap = q->cap == 0 ? PARAMS_FIRST : q->cap * 2;
        struct hfd_filter_value *wider = hfd_arena_array(q->mem, (size_t)cap, sizeof(*wider));

        if (wider == NULL) {
            q->text.rc = HFD_NOMEM;
            return 1;
        }
        if (q->count > 0)
            memcpy(wider, q->params, (size_t)q->count * sizeof(*wider));
        q->params = wider;
        q->cap = cap;
    }
    q->params[q->count++] = *v;
    return q->count;
}

void hfd_sql_value(struct hfd_sql *q, const struct hfd_filter_value *v)
{
    hfd_buf_addf(&q->text, "?%d", sql_param(q, v));
}

void hfd_sql_text(struct hfd_sql *q, hfd_slice v)
{
    hfd_sql_value(q, &(struct hfd_filter_value){.kind = HFD_VALUE_TEXT,
                                                .text = v.p != NULL ? v : HFD_SLICE("")});
}

void hfd_sql_i64(struct hfd_sql *q, int64_t v)
{
    hfd_sql_value(q, &(struct hfd_filter_value){.kind = HFD_VALUE_INT, .num = v});
}

hfd_rc hfd_sql_prepare(struct hfd_sql *q, struct hfd_db *db, struct hfd_stmt **out,
                       struct hfd_err *err)
{
    hfd_slice text;
    hfd_rc rc;

    *out = NULL;
    rc = hfd_buf_finish(&q->text, &text, err);
    if (rc == HFD_OK)
        rc = hfd_db_prepare_once(db, text, out, err);
    for (int i = 0; rc == HFD_OK && i < q->count; i++) {
        const struct hfd_filter_value *v = &q->params[i];

        if (v->kind == HFD_VALUE_TEXT)
            hfd_stmt_text(*out, i + 1, v->text);
        else if (v->kind == HFD_VALUE_INT)
            hfd_stmt_i64(*out, i + 1, v->num);
        else
            hfd_stmt_f64(*out, i + 1, v->real);
    }
    return rc;
}

/* ---- fields ---- */

static int bind_path(struct hfd_sql *q, hfd_slice path)
{
    if (path.p == NULL)
        q->text.rc = HFD_NOMEM;
    return sql_param(q, &(struct hfd_filter_value){.kind = HFD_VALUE_TEXT, .text = path});
}

static int json_path(struct hfd_sql *q, hfd_slice name)
{
    return bind_path(q, hfd_db_json_path(q->db, name, q->mem));
}

void hfd_sql_field(struct hfd_sql *q, enum hfd_field field, hfd_slice name)
{
    static const char *const columns[HFD_FIELD_COUNT] = {
        [HFD_FIELD_ID] = "f.id",
        [HFD_FIELD_KIND] = "CASE f.kind WHEN 1 THEN 'Cluster' ELSE 'NodePool' END",
        [HFD_FIELD_NAME] = "f.name",
        [HFD_FIELD_HREF] = sql_href,
        [HFD_FIELD_OWNER_ID] = "f.owner_id",
        [HFD_FIELD_GENERATION] = "f.generation",
        [HFD_FIELD_UPDATED_TIME] = "f.updated_us",
        [HFD_FIELD_DELETED_TIME] = "NULLIF(f.deleted_us, 0)",
        [HFD_FIELD_CREATED_BY] = "f.created_by",
        [HFD_FIELD_UPDATED_BY] = "f.updated_by",
        [HFD_FIELD_ADAPTER] = "f.adapter",
        [HFD_FIELD_REPORT_GENERATION] = "f.observed_generation",
        [HFD_FIELD_REPORT_TIME] = "f.observed_us",
    };

    if (field == HFD_FIELD_LABEL) {
        hfd_db_sql_json_text(q->db, &q->text, "f.labels",
                             bind_path(q, hfd_db_json_key(q->db, name, q->mem)));
        return;
    }
    if (field == HFD_FIELD_CREATED_TIME) {
        hfd_buf_add(&q->text, hfd_slice_of(q->at));
        return;
    }
    HFD_ASSERT(columns[field] != NULL);
    hfd_buf_add(&q->text, hfd_slice_of(columns[field]));
}

/* A member of spec compares as a number with numbers, and as text with text. */
static void operand(struct hfd_sql *q, const struct hfd_filter *f, bool number)
{
    if (f->field != HFD_FIELD_SPEC)
        hfd_sql_field(q, f->field, f->name);
    else if (number)
        hfd_db_sql_json_number(q->db, &q->text, "f.spec", json_path(q, f->name));
    else
        hfd_db_sql_json_text(q->db, &q->text, "f.spec", json_path(q, f->name));
}

/* ---- comparisons ---- */

static const char *const op_texts[HFD_FILTER_OP_COUNT] = {
    [HFD_FILTER_EQ] = " = ",  [HFD_FILTER_NE] = " <> ", [HFD_FILTER_LT] = " < ",
    [HFD_FILTER_LE] = " <= ", [HFD_FILTER_GT] = " > ",  [HFD_FILTER_GE] = " >= ",
};

static void binary(struct hfd_sql *q, const struct hfd_filter *f, enum hfd_filter_op op,
                   const struct hfd_filter_value *v)
{
    hfd_buf_addc(&q->text, '(');
    operand(q, f, v->kind != HFD_VALUE_TEXT);
    hfd_buf_add(&q->text, hfd_slice_of(op_texts[op]));
    hfd_sql_value(q, v);
    hfd_buf_addc(&q->text, ')');
}

/* Returns true when a backslash at the end takes nothing literally. */
static bool ends_open(hfd_slice pattern)
{
    size_t slashes = 0;

    while (slashes < pattern.len && pattern.p[pattern.len - 1 - slashes] == '\\')
        slashes++;
    return slashes % 2 == 1;
}

/* Adds a condition that no value meets. */
static void never(struct hfd_sql *q, const struct hfd_filter *f)
{
    hfd_buf_addc(&q->text, '(');
    operand(q, f, false);
    hfd_buf_lit(&q->text, " < ");
    operand(q, f, false);
    hfd_buf_addc(&q->text, ')');
}

/*
 * A backslash takes a wildcard literally, as HyperFleet's own database has it. A pattern that ends
 * in an open one meets nothing: some engines fail for it.
 */
static void like(struct hfd_sql *q, const struct hfd_filter *f)
{
    /* Only members of spec are long. */
    const struct hfd_db_like words = f->field == HFD_FIELD_SPEC
                                         ? hfd_db_sql_like(q->db)
                                         : (struct hfd_db_like){"(", " LIKE ", " ESCAPE '\\')"};
    const bool fold = f->op == HFD_FILTER_ILIKE;
    const struct hfd_db_like lower = hfd_db_sql_fold(q->db, q->mem);

    if (lower.end == NULL)
        q->text.rc = HFD_NOMEM;
    if (ends_open(f->values[0].text)) {
        never(q, f);
        return;
    }

    hfd_buf_add(&q->text, hfd_slice_of(words.begin));
    hfd_buf_add(&q->text, fold ? hfd_slice_of(lower.begin) : HFD_SLICE(""));
    operand(q, f, false);
    hfd_buf_add(&q->text, fold ? hfd_slice_of(lower.end) : HFD_SLICE(""));
    hfd_buf_add(&q->text, hfd_slice_of(words.between));
    hfd_buf_add(&q->text, fold ? hfd_slice_of(lower.begin) : HFD_SLICE(""));
    hfd_sql_value(q, &f->values[0]);
    hfd_buf_add(&q->text, fold ? hfd_slice_of(lower.end) : HFD_SLICE(""));
    hfd_buf_add(&q->text, hfd_slice_of(words.end));
}

static size_t count_numbers(const struct hfd_filter *f)
{
    size_t n = 0;

    for (size_t i = 0; i < f->value_count; i++)
        n += f->values[i].kind != HFD_VALUE_TEXT;
    return n;
}

static void in_list(struct hfd_sql *q, const struct hfd_filter *f, bool numbers)
{
    const char *sep = "";

    operand(q, f, numbers);
    hfd_buf_lit(&q->text, " IN (");
    for (size_t i = 0; i < f->value_count; i++) {
        if ((f->values[i].kind != HFD_VALUE_TEXT) != numbers)
            continue;
        hfd_buf_add(&q->text, hfd_slice_of(sep));
        hfd_sql_value(q, &f->values[i]);
        sep = ", ";
    }
    hfd_buf_addc(&q->text, ')');
}

static void in(struct hfd_sql *q, const struct hfd_filter *f)
{
    const size_t numbers = count_numbers(f);

    if (f->value_count == 0) {
        hfd_buf_lit(&q->text, "(1 = 0)");
        return;
    }
    hfd_buf_addc(&q->text, '(');
    if (numbers > 0)
        in_list(q, f, true);
    if (numbers > 0 && numbers < f->value_count)
        hfd_buf_lit(&q->text, " OR ");
    if (numbers < f->value_count)
        in_list(q, f, false);
    hfd_buf_addc(&q->text, ')');
}

static void between(struct hfd_sql *q, const struct hfd_filter *f)
{
    hfd_buf_addc(&q->text, '(');
    binary(q, f, HFD_FILTER_GE, &f->values[0]);
    hfd_buf_lit(&q->text, " AND ");
    binary(q, f, HFD_FILTER_LE, &f->values[1]);
    hfd_buf_addc(&q->text, ')');
}

bool hfd_sql_is_age(const struct hfd_filter *f)
{
    return f->field == HFD_FIELD_CONDITION_UPDATED && hfd_slice_is(f->name, "Ready") &&
           (f->op == HFD_FILTER_LT || f->op == HFD_FILTER_LE);
}

/*
 * Adds a comparison with a member of a condition that has no search key, so that the document is
 * read. A missing condition meets no comparison.
 */
static void condition(struct hfd_sql *q, const struct hfd_filter *f)
{
    if (f->field == HFD_FIELD_CONDITION_PENDING) {
        hfd_buf_lit(&q->text, "f.pending_us > 0");
        return;
    }
    if (hfd_sql_is_age(f)) {
        hfd_buf_lit(&q->text, "(f.ready_seen_us");
    } else {
        hfd_buf_lit(&q->text, "COALESCE(");
        hfd_db_sql_condition(
            q->db, &q->text, "f.conditions",
            sql_param(q, &(struct hfd_filter_value){.kind = HFD_VALUE_TEXT, .text = f->name}),
            f->field == HFD_FIELD_CONDITION_READ         ? HFD_DB_STATUS
            : f->field == HFD_FIELD_CONDITION_UPDATED    ? HFD_DB_LAST_UPDATED_TIME
            : f->field == HFD_FIELD_CONDITION_TRANSITION ? HFD_DB_LAST_TRANSITION_TIME
                                                         : HFD_DB_OBSERVED_GENERATION);
    }
    hfd_buf_add(&q->text, hfd_slice_of(op_texts[f->op]));
    hfd_sql_value(q, &f->values[0]);
    hfd_buf_add(&q->text, hfd_sql_is_age(f) ? HFD_SLICE(")") : HFD_SLICE(", FALSE)"));
}

/*
 * A label that has a value, or a condition that has a status, is looked up by the table's own key,
 * without the resource's row. An absent one makes this false where NULL is meant, which is the same
 * as long as nothing negates it.
 */
static void lookup(struct hfd_sql *q, enum hfd_kind kind, const struct hfd_filter *f)
{
    const bool label = f->field == HFD_FIELD_LABEL;

    hfd_buf_addf(&q->text, "EXISTS (SELECT 1 FROM %s c WHERE c.kind = ",
                 label ? "fleet_label" : "fleet_condition");
    hfd_sql_i64(q, kind);
    hfd_buf_addf(&q->text, " AND c.%s = ", label ? "key" : "type");
    hfd_sql_text(q, f->name);
    hfd_buf_addf(&q->text, " AND c.%s = ", label ? "value" : "status");
    hfd_sql_value(q, &f->values[0]);
    hfd_buf_addf(&q->text, " AND c.created_us = %s AND c.fleet_seq = %s)", q->at, q->seq);
}

static bool is_lookup(const struct hfd_filter *f, bool negate)
{
    HFD_ASSERT(f->field != HFD_FIELD_CONDITION || f->op == HFD_FILTER_EQ);
    return f->field == HFD_FIELD_CONDITION ||
           (f->field == HFD_FIELD_LABEL && f->op == HFD_FILTER_EQ && !negate);
}

static void comparison(struct hfd_sql *q, enum hfd_kind kind, const struct hfd_filter *f,
                       bool negate)
{
    if (negate)
        hfd_buf_lit(&q->text, "NOT ");
    if (is_lookup(f, negate)) {
        lookup(q, kind, f);
    } else if (f->field > HFD_FIELD_CONDITION && f->field < HFD_FIELD_ADAPTER) {
        condition(q, f);
    } else if (f->op == HFD_FILTER_LIKE || f->op == HFD_FILTER_ILIKE) {
        like(q, f);
    } else if (f->op == HFD_FILTER_IN) {
        in(q, f);
    } else if (f->op == HFD_FILTER_BETWEEN) {
        between(q, f);
    } else if (f->op == HFD_FILTER_IS_NULL) {
        hfd_buf_addc(&q->text, '(');
        operand(q, f, false);
        hfd_buf_lit(&q->text, " IS NULL)");
    } else {
        binary(q, f, f->op, &f->values[0]);
    }
}

/* ---- expressions ---- */

static enum hfd_filter_op turned(enum hfd_filter_op op, bool negate)
{
    return (op == HFD_FILTER_AND) != negate ? HFD_FILTER_AND : HFD_FILTER_OR;
}

static bool parenthesised(enum hfd_filter_op op, enum hfd_filter_op within)
{
    return op == HFD_FILTER_OR && within == HFD_FILTER_AND;
}

/* How many parentheses stand open at the innermost place. */
static int nesting(const struct hfd_filter *f, enum hfd_filter_op within, bool negate)
{
    enum hfd_filter_op op;
    int left, right;

    if (f->op == HFD_FILTER_NOT)
        return nesting(f->left, within, !negate);
    if (f->op != HFD_FILTER_AND && f->op != HFD_FILTER_OR)
        return 0;
    op = turned(f->op, negate);
    left = nesting(f->left, op, negate);
    right = nesting(f->right, op, negate);
    return parenthesised(op, within) + (left > right ? left : right);
}

static void junction(struct hfd_sql *q, enum hfd_kind kind, const struct hfd_filter *f,
                     enum hfd_filter_op within, bool negate);

/*
 * Adds an expression. Negation moves down to the comparisons: De Morgan holds in three-valued
 * logic too. Parentheses stand only where precedence needs them, and the deeper side comes first.
 * An engine's parser has a stack of 100 open terms, so a query of the greatest depth fits.
 */
static void expression(struct hfd_sql *q, enum hfd_kind kind, const struct hfd_filter *f,
                       enum hfd_filter_op within, bool negate)
{
    if (f->op == HFD_FILTER_NOT) {
        expression(q, kind, f->left, within, !negate);
    } else if (f->op == HFD_FILTER_AND || f->op == HFD_FILTER_OR) {
        junction(q, kind, f, within, negate);
    } else {
        comparison(q, kind, f, negate);
    }
}

static void junction(struct hfd_sql *q, enum hfd_kind kind, const struct hfd_filter *f,
                     enum hfd_filter_op within, bool negate)
{
    const enum hfd_filter_op op = turned(f->op, negate);
    const bool left_first = nesting(f->left, op, negate) >= nesting(f->right, op, negate);

    if (parenthesised(op, within))
        hfd_buf_addc(&q->text, '(');
    expression(q, kind, left_first ? f->left : f->right, op, negate);
    hfd_buf_add(&q->text, op == HFD_FILTER_AND ? HFD_SLICE(" AND ") : HFD_SLICE(" OR "));
    expression(q, kind, left_first ? f->right : f->left, op, negate);
    if (parenthesised(op, within))
        hfd_buf_addc(&q->text, ')');
}

void hfd_sql_filter(struct hfd_sql *q, enum hfd_kind kind, const struct hfd_filter *f)
{
    expression(q, kind, f, HFD_FILTER_AND, false);
}

bool hfd_sql_needs_row(const struct hfd_filter *f, bool negate)
{
    if (f->op == HFD_FILTER_NOT)
        return hfd_sql_needs_row(f->left, !negate);
    if (f->op == HFD_FILTER_AND || f->op == HFD_FILTER_OR)
        return hfd_sql_needs_row(f->left, negate) || hfd_sql_needs_row(f->right, negate);
    return f->field != HFD_FIELD_CREATED_TIME && !is_lookup(f, negate);
}
