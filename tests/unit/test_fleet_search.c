/*
 * Lists on a real store. Random filters, orders and pages are compared with a second evaluation in
 * memory. The query plans of the engine are checked, and the largest queries that the language
 * allows. Sources: HyperFleet API, "search"; driver/README.md, decisions 2 and 6.
 */
#include "store/search.h"

#include "driver/base/base.h"
#include "driver/fleet/condition.h"
#include "driver/fleet/search.h"
#include "store/migrate.h"
#include "store/rows_fleet.h"
#include "store/totals.h"
#include "tests/lib/contains.h"
#include "tests/lib/place.h"
#include "tests/lib/seams.h"
#include "tests/lib/tier.h"
#include "tests/lib/tmpdir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define RESOURCES 300
#define LABELS 4
#define CONDITIONS 4
#define READY 2 /* in condition_types */
#define RECONCILED 3
#define TIMES 40 /* few, so that many are equal */

#define S(text) hfd_slice_of(text)
#define LABELS_MIGRATION 10 /* 0010_labels.sql */

/* ---- a model of what is stored ---- */

static const char *const label_keys[LABELS] = {"env", "humanitec_guresid", "re.gion/a-B", "tier"};
static const char *const label_values[] = {"", "a", "A", "ab", "b%", "b_", "b\\", "it's"};
static const char *const condition_types[CONDITIONS] = {"Available", "DnsSuccessful", "Ready",
                                                        "Reconciled"};
static const char *const statuses[] = {"True", "False"};
static const char *const names[] = {"alpha", "beta", "gamma", "Alpha", "al_ha", "omega"};
static const char *const people[] = {"a@example.com", "b@example.com"};
static const char *const regions[] = {"us", "eu", "US", "3"};

struct condition {
    const char *status; /* NULL = absent */
    int64_t generation, updated_us, transition_us;
};

struct resource {
    int64_t seq;
    char id[8], owner[8], name[16];
    enum hfd_kind kind;
    bool gone;
    int64_t generation, created_us, updated_us, deleted_us; /* 0 = it is not being deleted */
    const char *created_by, *updated_by;
    const char *labels[LABELS]; /* NULL = absent */
    struct condition conditions[CONDITIONS];
    const char *region; /* spec.region; NULL = absent */
    int replicas;       /* spec.replicas; below 0 = null */
    double ratio;       /* spec.net.ratio; below 0 = absent */
    int open;           /* spec.net.open: 0 false, 1 true, 2 absent */
};

struct fixture {
    char base[TMPDIR_MAX];
    struct hfd_db *db;
    struct hfd_txn tx;
    struct hfd_totals totals;
    struct test_rng rng;
    struct hfd_arena mem; /* of one question */
    struct resource all[RESOURCES];
    struct hfd_err err;
};

static size_t below(struct fixture *fx, size_t bound)
{
    return (size_t)test_rng_below(&fx->rng, bound);
}

#define PICK(fx, list) ((list)[below((fx), sizeof(list) / sizeof((list)[0]))])

/* With and without digits behind the second, and whole seconds. */
static int64_t some_time(struct fixture *fx)
{
    static const int64_t units[] = {1, HFD_US_PER_S / 4};

    return (int64_t)below(fx, TIMES) * PICK(fx, units);
}

static void make_documents(struct fixture *fx, struct resource *r)
{
    for (size_t i = 0; i < LABELS; i++)
        r->labels[i] = below(fx, 3) == 0 ? NULL : PICK(fx, label_values);
    for (size_t i = 0; i < CONDITIONS; i++)
        r->conditions[i] = (struct condition){
            .status = below(fx, 4) == 0 ? NULL : PICK(fx, statuses),
            .generation = (int64_t)below(fx, 4),
            .updated_us = some_time(fx),
            .transition_us = some_time(fx),
        };
    r->region = below(fx, 4) == 0 ? NULL : PICK(fx, regions);
    r->replicas = (int)below(fx, 6) - 1;
    r->ratio = (double)below(fx, 4) / 4 - 0.25;
    r->open = (int)below(fx, 3);
}

static void make(struct fixture *fx, size_t i)
{
    struct resource *r = &fx->all[i];
    const bool pool = i % 3 != 0;

    *r = (struct resource){
        .kind = pool ? HFD_KIND_NODEPOOL : HFD_KIND_CLUSTER,
        .generation = (int64_t)below(fx, 4) + 1,
        .created_us = (int64_t)below(fx, TIMES),
        .updated_us = (int64_t)below(fx, TIMES),
        .deleted_us = (int64_t)below(fx, TIMES),
        .created_by = PICK(fx, people),
        .updated_by = PICK(fx, people),
    };
    (void)snprintf(r->id, sizeof(r->id), "r%zu", i);
    if (r->deleted_us == 0) /* names of resources that are not being deleted are unique */
        (void)snprintf(r->name, sizeof(r->name), "alive-%zu", i);
    else
        (void)snprintf(r->name, sizeof(r->name), "%s", PICK(fx, names));
    if (pool)
        (void)snprintf(r->owner, sizeof(r->owner), "r%zu", below(fx, 5) * 3);
    make_documents(fx, r);
}

static hfd_slice labels_of(struct fixture *fx, const struct resource *r)
{
    struct hfd_buf b;
    hfd_slice out;
    bool some = false;

    hfd_buf_init(&b, 4096);
    hfd_buf_addc(&b, '{');
    for (size_t i = 0; i < LABELS; i++) {
        if (r->labels[i] == NULL)
            continue;
        hfd_buf_addf(&b, "%s\"%s\":", some ? "," : "", label_keys[i]);
        hfd_buf_json_str(&b, S(r->labels[i]));
        some = true;
    }
    hfd_buf_addc(&b, '}');
    out = hfd_arena_dup(&fx->mem, hfd_buf_slice(&b));
    hfd_buf_fini(&b);
    return out;
}

static hfd_slice spec_of(struct fixture *fx, const struct resource *r)
{
    struct hfd_buf b;
    hfd_slice out;

    hfd_buf_init(&b, 4096);
    hfd_buf_lit(&b, "{\"list\":[1],");
    if (r->region != NULL)
        hfd_buf_addf(&b, "\"region\":\"%s\",", r->region);
    hfd_buf_lit(&b, "\"net\":{");
    if (r->ratio >= 0)
        hfd_buf_addf(&b, "\"ratio\":%g%s%s", r->ratio, r->ratio == 0 ? ".0" : "",
                     r->open != 2 ? "," : "");
    if (r->open != 2)
        hfd_buf_addf(&b, "\"open\":%s", r->open ? "true" : "false");
    if (r->replicas < 0)
        hfd_buf_lit(&b, "},\"replicas\":null}");
    else
        hfd_buf_addf(&b, "},\"replicas\":%d}", r->replicas);
    out = hfd_arena_dup(&fx->mem, hfd_buf_slice(&b));
    hfd_buf_fini(&b);
    return out;
}

static hfd_slice conditions_of(struct fixture *fx, const struct resource *r)
{
    struct hfd_condition items[CONDITIONS];
    struct hfd_conditions cs = {items, 0};
    struct hfd_buf b;
    hfd_slice out;

    for (size_t i = 0; i < CONDITIONS; i++)
        if (r->conditions[i].status != NULL)
            items[cs.count++] = (struct hfd_condition){
                .type = S(condition_types[i]),
                .status =
                    r->conditions[i].status == statuses[0] ? HFD_STATUS_TRUE : HFD_STATUS_FALSE,
                .observed_generation = r->conditions[i].generation,
                .last_updated_us = r->conditions[i].updated_us,
                .last_transition_us = r->conditions[i].transition_us,
            };
    hfd_buf_init(&b, 4096);
    hfd_conditions_format(&b, &cs, false);
    out = hfd_arena_dup(&fx->mem, hfd_buf_slice(&b));
    hfd_buf_fini(&b);
    return out;
}

static struct hfd_fleet_row row_of(struct fixture *fx, const struct resource *r)
{
    const struct condition *ready = &r->conditions[READY];
    const struct condition *reconciled = &r->conditions[RECONCILED];

    return (struct hfd_fleet_row){
        .seq = r->seq,
        .id = S(r->id),
        .kind = r->kind,
        .owner_id = S(r->owner),
        .name = S(r->name),
        .generation = r->generation,
        .spec = spec_of(fx, r),
        .labels = labels_of(fx, r),
        .conditions = conditions_of(fx, r),
        .ready = ready->status == statuses[0],
        .ready_seen_us = ready->status != NULL ? ready->updated_us : INT64_MAX,
        .pending_us = reconciled->status == statuses[1] ? reconciled->transition_us + 1 : 0,
        .created_us = r->created_us,
        .updated_us = r->updated_us,
        .deleted_us = r->deleted_us,
        .created_by = S(r->created_by),
        .updated_by = S(r->updated_by),
        .deleted_by = S("x"),
    };
}

static struct hfd_fleet_keys keys_of(struct fixture *fx, const struct resource *r)
{
    struct hfd_fleet_label *labels = hfd_arena_array(&fx->mem, LABELS, sizeof(*labels));
    struct hfd_fleet_condition *conditions =
        hfd_arena_array(&fx->mem, CONDITIONS, sizeof(*conditions));
    struct hfd_fleet_keys keys = {.labels = labels, .conditions = conditions};

    for (size_t i = 0; i < LABELS; i++)
        if (r->labels[i] != NULL)
            labels[keys.label_count++] =
                (struct hfd_fleet_label){S(label_keys[i]), S(r->labels[i])};
    for (size_t i = 0; i < CONDITIONS; i++)
        if (r->conditions[i].status != NULL && i != RECONCILED)
            conditions[keys.condition_count++] = (struct hfd_fleet_condition){
                .type = S(condition_types[i]),
                .status = S(r->conditions[i].status),
            };
    return keys;
}

static void ok(struct fixture *fx, hfd_rc rc)
{
    if (rc != HFD_OK)
        fail_msg("%s: %s", hfd_rc_name(rc), fx->err.msg);
}

/*
 * Inserts all, then changes a third and removes a tenth, so that searches also see rows that moved
 * and rows that were removed.
 */
static void fill(struct fixture *fx)
{
    const struct hfd_fleet_keys none = {0};

    for (size_t i = 0; i < RESOURCES; i++) {
        struct resource *r = &fx->all[i];
        struct hfd_fleet_row row;
        struct hfd_fleet_keys was, is;

        make(fx, i);
        row = row_of(fx, r);
        ok(fx, hfd_fleet_row_insert(&fx->tx, &row, &fx->err));
        r->seq = row.seq;
        was = keys_of(fx, r);
        ok(fx, hfd_fleet_keys_put(&fx->tx, &row, &none, &was, &fx->err));
        if (i % 3 == 1) {
            make_documents(fx, r);
            row = row_of(fx, r);
            is = keys_of(fx, r);
            ok(fx, hfd_fleet_row_update(&fx->tx, &row, &fx->err));
            ok(fx, hfd_fleet_keys_put(&fx->tx, &row, &was, &is, &fx->err));
            was = is;
        }
        if (i % 10 == 9) {
            r->gone = true;
            ok(fx, hfd_fleet_keys_put(&fx->tx, &row, &was, &none, &fx->err));
            ok(fx, hfd_fleet_row_delete(&fx->tx, row.id, &fx->err));
        }
        hfd_arena_fini(&fx->mem);
    }
}

static int open_empty(void **state)
{
    struct fixture *fx = calloc(1, sizeof(*fx));

    assert_non_null(fx);
    assert_int_equal(hfd_base_init(NULL), HFD_OK);
    tmpdir_make(fx->base);
    test_rng_init(&fx->rng, 20260101);
    hfd_arena_init(&fx->mem, (size_t)64 << 20);
    ok(fx, test_db_open(fx->base, HFD_DB_WRITER, &fx->db, &fx->err));
    ok(fx, hfd_migrate(fx->db, hfd_migrations, hfd_migrations_count, &fx->err));
    ok(fx, hfd_db_begin(fx->db, &fx->err));
    fx->tx = (struct hfd_txn){.db = fx->db, .writable = true, .totals = &fx->totals};
    *state = fx;
    return 0;
}

/* A store of which no migration was applied. */
static int open_old(void **state)
{
    struct fixture *fx = calloc(1, sizeof(*fx));

    assert_non_null(fx);
    assert_int_equal(hfd_base_init(NULL), HFD_OK);
    tmpdir_make(fx->base);
    hfd_arena_init(&fx->mem, (size_t)64 << 20);
    ok(fx, test_db_open(fx->base, HFD_DB_WRITER, &fx->db, &fx->err));
    fx->tx = (struct hfd_txn){.db = fx->db, .writable = true, .totals = &fx->totals};
    *state = fx;
    return 0;
}

static int open_filled(void **state)
{
    int rc = open_empty(state);

    fill(*state);
    return rc;
}

static int close_store(void **state)
{
    struct fixture *fx = *state;

    hfd_db_rollback(fx->db);
    hfd_db_close(&fx->db);
    hfd_arena_fini(&fx->mem);
    tmpdir_remove(fx->base);
    free(fx);
    return 0;
}

/* ---- the second evaluation: three-valued logic over the model ---- */

enum truth {
    NO,
    YES,
    UNKNOWN
};

struct value {
    enum {
        NOTHING,
        TEXT,
        NUMBER
    } kind;
    char text[64];
    double number;
};

static struct value text_value(const char *text)
{
    struct value v = {.kind = text != NULL ? TEXT : NOTHING};

    if (text != NULL)
        (void)snprintf(v.text, sizeof(v.text), "%s", text);
    return v;
}

static struct value number_value(double number)
{
    return (struct value){.kind = NUMBER, .number = number};
}

/* A member of spec compares as text and as a number. */
static struct value spec_value(const struct resource *r, hfd_slice path, bool as_number)
{
    struct value v = {.kind = NOTHING};

    if (hfd_slice_is(path, "region") && !as_number)
        return text_value(r->region);
    if (hfd_slice_is(path, "net.open") && r->open != 2 && !as_number)
        return text_value(r->open ? "true" : "false");
    if (hfd_slice_is(path, "replicas") && r->replicas >= 0) {
        v = number_value(r->replicas);
        (void)snprintf(v.text, sizeof(v.text), "%d", r->replicas);
    }
    if (hfd_slice_is(path, "net.ratio") && r->ratio >= 0) {
        v = number_value(r->ratio);
        (void)snprintf(v.text, sizeof(v.text), "%g%s", r->ratio, r->ratio == 0 ? ".0" : "");
    }
    if (v.kind == NUMBER && !as_number)
        v.kind = TEXT;
    return v;
}

static struct value label_value(const struct resource *r, hfd_slice key)
{
    for (size_t i = 0; i < LABELS; i++)
        if (hfd_slice_is(key, label_keys[i]))
            return text_value(r->labels[i]);
    return text_value(NULL);
}

static struct value number_or_nothing(int64_t number)
{
    return number == 0 ? text_value(NULL) : number_value((double)number);
}

static struct value href_value(const struct resource *r)
{
    struct value v = text_value("");

    (void)snprintf(v.text, sizeof(v.text), "/api/hyperfleet/v1/clusters/%s%s%s", r->owner,
                   r->owner[0] != '\0' ? "/nodepools/" : "", r->id);
    return v;
}

static struct value field_value(const struct resource *r, const struct hfd_filter *f,
                                bool as_number)
{
    switch ((int)f->field) {
    case HFD_FIELD_ID:
        return text_value(r->id);
    case HFD_FIELD_KIND:
        return text_value(r->kind == HFD_KIND_CLUSTER ? "Cluster" : "NodePool");
    case HFD_FIELD_NAME:
        return text_value(r->name);
    case HFD_FIELD_HREF:
        return href_value(r);
    case HFD_FIELD_OWNER_ID:
        return text_value(r->owner);
    case HFD_FIELD_CREATED_BY:
        return text_value(r->created_by);
    case HFD_FIELD_UPDATED_BY:
        return text_value(r->updated_by);
    case HFD_FIELD_GENERATION:
        return number_value((double)r->generation);
    case HFD_FIELD_CREATED_TIME:
        return number_value((double)r->created_us);
    case HFD_FIELD_UPDATED_TIME:
        return number_value((double)r->updated_us);
    case HFD_FIELD_DELETED_TIME:
        return number_or_nothing(r->deleted_us);
    case HFD_FIELD_LABEL:
        return label_value(r, f->name);
    case HFD_FIELD_SPEC:
        return spec_value(r, f->name, as_number);
    default:
        fail();
        return text_value(NULL);
    }
}

static enum truth truth_of(bool b)
{
    return b ? YES : NO;
}

static bool holds(enum hfd_filter_op op, int order)
{
    switch ((int)op) {
    case HFD_FILTER_EQ:
        return order == 0;
    case HFD_FILTER_NE:
        return order != 0;
    case HFD_FILTER_LT:
        return order < 0;
    case HFD_FILTER_LE:
        return order <= 0;
    case HFD_FILTER_GT:
        return order > 0;
    default:
        return order >= 0;
    }
}

static enum truth compare(const struct resource *r, const struct hfd_filter *f,
                          enum hfd_filter_op op, const struct hfd_filter_value *with)
{
    const struct value v = field_value(r, f, with->kind != HFD_VALUE_TEXT);
    int order;

    if (v.kind == NOTHING)
        return UNKNOWN;
    if (with->kind == HFD_VALUE_TEXT) {
        order = hfd_slice_cmp(S(v.text), with->text);
    } else {
        const double n = with->kind == HFD_VALUE_INT ? (double)with->num : with->real;

        order = v.number < n ? -1 : v.number > n;
    }
    return truth_of(holds(op, order));
}

static char folded(char c, bool fold)
{
    return fold && c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool matches(const char *text, hfd_slice pattern, bool fold)
{
    char c;

    if (pattern.len == 0)
        return *text == '\0';
    c = *pattern.p;
    pattern = (hfd_slice){pattern.p + 1, pattern.len - 1};
    if (c == '%') {
        for (;; text++) {
            if (matches(text, pattern, fold))
                return true;
            if (*text == '\0')
                return false;
        }
    }
    if (*text == '\0')
        return false;
    if (c == '\\') {
        if (pattern.len == 0)
            return false;
        c = *pattern.p;
        pattern = (hfd_slice){pattern.p + 1, pattern.len - 1};
    } else if (c == '_') {
        return matches(text + 1, pattern, fold);
    }
    return folded(c, fold) == folded(*text, fold) && matches(text + 1, pattern, fold);
}

static enum truth either(enum truth a, enum truth b)
{
    return a == YES || b == YES ? YES : a == UNKNOWN || b == UNKNOWN ? UNKNOWN : NO;
}

static enum truth both(enum truth a, enum truth b)
{
    return a == NO || b == NO ? NO : a == UNKNOWN || b == UNKNOWN ? UNKNOWN : YES;
}

static enum truth condition_truth(const struct resource *r, const struct hfd_filter *f)
{
    for (size_t i = 0; i < CONDITIONS; i++) {
        const struct condition *c = &r->conditions[i];
        int64_t v;

        if (!hfd_slice_is(f->name, condition_types[i]) || c->status == NULL)
            continue;
        if (f->field == HFD_FIELD_CONDITION || f->field == HFD_FIELD_CONDITION_READ ||
            f->field == HFD_FIELD_CONDITION_PENDING)
            return truth_of(hfd_slice_is(f->values[0].text, c->status));
        v = f->field == HFD_FIELD_CONDITION_UPDATED      ? c->updated_us
            : f->field == HFD_FIELD_CONDITION_TRANSITION ? c->transition_us
                                                         : c->generation;
        return truth_of(holds(f->op, v < f->values[0].num ? -1 : v > f->values[0].num));
    }
    return NO;
}

static enum truth evaluate(const struct resource *r, const struct hfd_filter *f)
{
    enum truth t;

    switch ((int)f->op) {
    case HFD_FILTER_AND:
        return both(evaluate(r, f->left), evaluate(r, f->right));
    case HFD_FILTER_OR:
        return either(evaluate(r, f->left), evaluate(r, f->right));
    case HFD_FILTER_NOT:
        t = evaluate(r, f->left);
        return t == UNKNOWN ? UNKNOWN : truth_of(t == NO);
    case HFD_FILTER_LIKE:
    case HFD_FILTER_ILIKE: {
        const struct value v = field_value(r, f, false);

        return v.kind == NOTHING
                   ? UNKNOWN
                   : truth_of(matches(v.text, f->values[0].text, f->op == HFD_FILTER_ILIKE));
    }
    case HFD_FILTER_BETWEEN:
        return both(compare(r, f, HFD_FILTER_GE, &f->values[0]),
                    compare(r, f, HFD_FILTER_LE, &f->values[1]));
    case HFD_FILTER_IN:
        t = NO;
        for (size_t i = 0; i < f->value_count; i++)
            t = either(t, compare(r, f, HFD_FILTER_EQ, &f->values[i]));
        return t;
    case HFD_FILTER_IS_NULL:
        return truth_of(field_value(r, f, false).kind == NOTHING);
    default:
        return f->field >= HFD_FIELD_CONDITION ? condition_truth(r, f)
                                               : compare(r, f, f->op, &f->values[0]);
    }
}

/* ---- orders in memory ---- */

static const struct hfd_fleet_query *sort_query;

static int by_text_or_number(const struct value *a, const struct value *b)
{
    if (a->kind == NOTHING || b->kind == NOTHING) /* absent is the greatest */
        return (a->kind == NOTHING) - (b->kind == NOTHING);
    if (a->kind == TEXT)
        return hfd_slice_cmp(S(a->text), S(b->text));
    return a->number < b->number ? -1 : a->number > b->number;
}

static int by_query(const void *pa, const void *pb)
{
    const struct resource *a = *(struct resource *const *)pa, *b = *(struct resource *const *)pb;
    const struct hfd_fleet_query *q = sort_query;
    const bool oldest_first = q->order_count == 1 && q->order[0].field == HFD_FIELD_CREATED_TIME &&
                              !q->order[0].descending;
    int c;

    for (size_t i = 0; i < q->order_count; i++) {
        const struct hfd_filter f = {.field = q->order[i].field, .name = q->order[i].name};
        const struct value x = field_value(a, &f, false), y = field_value(b, &f, false);

        c = by_text_or_number(&x, &y);
        if (c != 0)
            return q->order[i].descending ? -c : c;
    }
    c = a->created_us < b->created_us ? -1 : a->created_us > b->created_us;
    if (c == 0)
        c = a < b ? -1 : a > b; /* as they were inserted */
    return oldest_first ? c : -c;
}

static size_t expected(struct fixture *fx, const struct hfd_fleet_query *q,
                       const struct resource *out[RESOURCES])
{
    size_t n = 0;

    for (size_t i = 0; i < RESOURCES; i++) {
        const struct resource *r = &fx->all[i];

        if (r->gone || r->kind != q->kind ||
            (q->owner_id.len > 0 && !hfd_slice_is(q->owner_id, r->owner)))
            continue;
        if (q->filter == NULL || evaluate(r, q->filter) == YES)
            out[n++] = r;
    }
    sort_query = q;
    qsort(out, n, sizeof(struct resource *), by_query);
    return n;
}

/* ---- random questions ---- */

static struct hfd_filter *node(struct fixture *fx, enum hfd_filter_op op)
{
    struct hfd_filter *f = hfd_arena_alloc(&fx->mem, sizeof(*f));

    assert_non_null(f);
    f->op = op;
    return f;
}

static struct hfd_filter_value text_of(const char *text)
{
    return (struct hfd_filter_value){.kind = HFD_VALUE_TEXT, .text = S(text)};
}

static struct hfd_filter_value int_of(size_t v)
{
    return (struct hfd_filter_value){.kind = HFD_VALUE_INT, .num = (int64_t)v};
}

static struct hfd_filter_value random_spec_value(struct fixture *fx)
{
    if (below(fx, 3) == 0)
        return (struct hfd_filter_value){.kind = HFD_VALUE_REAL, .real = (double)below(fx, 5) / 4};
    return below(fx, 2) ? int_of(below(fx, 5)) : text_of(below(fx, 3) ? PICK(fx, regions) : "true");
}

static struct hfd_filter_value random_value(struct fixture *fx, const struct hfd_filter *f,
                                            bool pattern)
{
    static const char *const ids[] = {"r0", "r1", "r2", "r3", "r4", "r6", "r9", "r27", "x"};
    static const char *const kinds[] = {"Cluster", "NodePool", "cluster"};
    static const char *const hrefs[] = {"/api/hyperfleet/v1/clusters/r3",
                                        "/api/hyperfleet/v1/clusters/r6/nodepools/r4"};
    static const char *const patterns[] = {"%",    "a%",   "A%",    "_l%a",  "%a",
                                           "b\\%", "b\\_", "b\\",   "b\\\\", "%\\",
                                           "",     "__",   "%e%a%", "us",    "r_"};

    if (pattern)
        return text_of(PICK(fx, patterns));
    switch ((int)f->field) {
    case HFD_FIELD_ID:
    case HFD_FIELD_OWNER_ID:
        return text_of(PICK(fx, ids));
    case HFD_FIELD_KIND:
        return text_of(PICK(fx, kinds));
    case HFD_FIELD_NAME:
        return text_of(PICK(fx, names));
    case HFD_FIELD_HREF:
        return text_of(PICK(fx, hrefs));
    case HFD_FIELD_CREATED_BY:
    case HFD_FIELD_UPDATED_BY:
        return text_of(PICK(fx, people));
    case HFD_FIELD_LABEL:
        return text_of(PICK(fx, label_values));
    case HFD_FIELD_GENERATION:
    case HFD_FIELD_CONDITION_GENERATION:
        return int_of(below(fx, 5));
    case HFD_FIELD_SPEC:
        return random_spec_value(fx);
    case HFD_FIELD_CONDITION_UPDATED:
    case HFD_FIELD_CONDITION_TRANSITION:
        return int_of((size_t)some_time(fx));
    default:
        return int_of(below(fx, TIMES));
    }
}

static void random_field(struct fixture *fx, enum hfd_kind kind, struct hfd_filter *f)
{
    static const enum hfd_field likely[] = {HFD_FIELD_ID, HFD_FIELD_NAME, HFD_FIELD_LABEL,
                                            HFD_FIELD_LABEL, HFD_FIELD_OWNER_ID};
    static const char *const paths[] = {"region",   "replicas", "net.ratio",
                                        "net.open", "net.none", "region.x"};

    f->field =
        below(fx, 3) == 0 ? PICK(fx, likely) : (enum hfd_field)below(fx, HFD_FIELD_CONDITION);
    if (f->field == HFD_FIELD_OWNER_ID && kind == HFD_KIND_CLUSTER)
        f->field = HFD_FIELD_NAME;
    if (f->field == HFD_FIELD_LABEL)
        f->name = S(below(fx, 10) == 0 ? "absent" : PICK(fx, label_keys));
    if (f->field == HFD_FIELD_SPEC)
        f->name = S(PICK(fx, paths));
}

static struct hfd_filter *random_condition(struct fixture *fx)
{
    static const enum hfd_field subs[] = {HFD_FIELD_CONDITION_UPDATED,
                                          HFD_FIELD_CONDITION_TRANSITION,
                                          HFD_FIELD_CONDITION_GENERATION};
    struct hfd_filter *f = node(fx, HFD_FILTER_EQ);
    struct hfd_filter_value *v = hfd_arena_alloc(&fx->mem, sizeof(*v));

    f->name = S(below(fx, 10) == 0 ? "Absent" : PICK(fx, condition_types));
    f->field = HFD_FIELD_CONDITION;
    *v = text_of(below(fx, 10) == 0 ? "Unknown" : PICK(fx, statuses));
    if (hfd_slice_is(f->name, "Reconciled"))
        f->field =
            hfd_slice_is(v->text, "False") ? HFD_FIELD_CONDITION_PENDING : HFD_FIELD_CONDITION_READ;
    if (below(fx, 2)) {
        f->field = PICK(fx, subs);
        f->op = HFD_FILTER_EQ + (unsigned)below(fx, 6);
        *v = random_value(fx, f, false);
    }
    f->values = v;
    f->value_count = 1;
    return f;
}

static struct hfd_filter *random_comparison(struct fixture *fx, enum hfd_kind kind)
{
    struct hfd_filter *f =
        node(fx, below(fx, 2)
                     ? HFD_FILTER_EQ
                     : HFD_FILTER_EQ + (unsigned)below(fx, HFD_FILTER_OP_COUNT - HFD_FILTER_EQ));
    struct hfd_filter_value *v = hfd_arena_array(&fx->mem, 4, sizeof(*v));

    random_field(fx, kind, f);
    if ((f->op == HFD_FILTER_LIKE || f->op == HFD_FILTER_ILIKE) &&
        (f->field == HFD_FIELD_GENERATION || f->field == HFD_FIELD_CREATED_TIME ||
         f->field == HFD_FIELD_UPDATED_TIME || f->field == HFD_FIELD_DELETED_TIME))
        f->op = HFD_FILTER_NE; /* the language has LIKE for text alone */
    f->value_count = f->op == HFD_FILTER_IS_NULL   ? 0
                     : f->op == HFD_FILTER_BETWEEN ? 2
                     : f->op == HFD_FILTER_IN      ? below(fx, 5)
                                                   : 1;
    for (size_t i = 0; i < f->value_count; i++)
        v[i] = random_value(fx, f, f->op == HFD_FILTER_LIKE || f->op == HFD_FILTER_ILIKE);
    f->values = v;
    return f;
}

/* NOT stands over no condition, as in the language. */
static struct hfd_filter *random_tree(struct fixture *fx, enum hfd_kind kind, int depth,
                                      bool conditions)
{
    struct hfd_filter *f;
    size_t what = below(fx, 10);

    if (depth == 0 || what < 2)
        return conditions && below(fx, 3) == 0 ? random_condition(fx) : random_comparison(fx, kind);
    f = node(fx, what < 6 ? HFD_FILTER_AND : what < 9 ? HFD_FILTER_OR : HFD_FILTER_NOT);
    conditions = conditions && f->op != HFD_FILTER_NOT;
    f->left = random_tree(fx, kind, depth - 1, conditions);
    if (f->op != HFD_FILTER_NOT)
        f->right = random_tree(fx, kind, depth - 1, conditions);
    return f;
}

static size_t random_order(struct fixture *fx, struct hfd_order *out)
{
    const size_t n = below(fx, 4);

    for (size_t i = 0; i < n; i++) {
        out[i] = (struct hfd_order){.field = (enum hfd_field)below(fx, HFD_FIELD_LABEL + 1),
                                    .descending = below(fx, 2)};
        if (out[i].field == HFD_FIELD_LABEL)
            out[i].name = S(PICK(fx, label_keys));
    }
    return n;
}

/* ---- the rules ---- */

/* The statement of a query, for messages. */
static const char *sql_of(struct fixture *fx, const struct hfd_fleet_query *q)
{
    struct hfd_search_sql sql;
    const char *text;

    ok(fx, hfd_search_compose(&fx->tx, q, &fx->mem, &sql, &fx->err));
    text = hfd_arena_dup(&fx->mem, hfd_buf_slice(&sql.total.text)).p;
    hfd_sql_fini(&sql.page);
    hfd_sql_fini(&sql.total);
    return text;
}

/*
 * Walks all pages of a query. Together they are the expected list, in order, and each gives the
 * same total.
 */
static void assert_pages(struct fixture *fx, struct hfd_fleet_query *q)
{
    const struct resource *want[RESOURCES];
    const size_t n = expected(fx, q, want);
    size_t seen = 0;

    for (q->offset = 0;; q->offset += q->limit) {
        struct hfd_fleet_list list;

        ok(fx, hfd_fleet_row_search(&fx->tx, q, &fx->mem, &list, &fx->err));
        if (list.total != (int64_t)n)
            fail_msg("%lld matches instead of %zu: %s", (long long)list.total, n, sql_of(fx, q));
        assert_int_equal(list.count, seen >= n                     ? 0
                                     : n - seen < (size_t)q->limit ? n - seen
                                                                   : (size_t)q->limit);
        for (size_t i = 0; i < list.count; i++, seen++)
            if (!hfd_slice_is(list.rows[i].id, want[seen]->id))
                fail_msg("at %zu: %.*s instead of %s", seen, HFD_SLICE_FMT(list.rows[i].id),
                         want[seen]->id);
        if (list.count == 0)
            break;
    }
    assert_int_equal(seen, n);
}

/* Random filters, orders, owners and page sizes give what a second evaluation gives. */
static void random_queries_agree_with_the_model(void **state)
{
    const int rounds = tier_is_quick() ? 300 : 3000;
    struct fixture *fx = *state;

    for (int round = 0; round < rounds; round++) {
        const enum hfd_kind kind = below(fx, 2) ? HFD_KIND_NODEPOOL : HFD_KIND_CLUSTER;
        struct hfd_order order[3];
        struct hfd_fleet_query q = {.kind = kind,
                                    .order = order,
                                    .order_count = random_order(fx, order),
                                    .limit = (int64_t)below(fx, 120) + 1};

        if (kind == HFD_KIND_NODEPOOL && below(fx, 3) == 0)
            q.owner_id = S(below(fx, 2) ? "r3" : "r9");
        if (below(fx, 20) != 0)
            q.filter = random_tree(fx, kind, (int)below(fx, 5), true);
        assert_pages(fx, &q);
        hfd_arena_fini(&fx->mem);
    }
}

/* A page without rows still gives the total; a page far behind the end is empty. */
static void empty_pages_tell_the_total(void **state)
{
    struct fixture *fx = *state;
    const struct resource *want[RESOURCES];
    struct hfd_fleet_query q = {.kind = HFD_KIND_CLUSTER};
    struct hfd_fleet_list list;

    ok(fx, hfd_fleet_row_search(&fx->tx, &q, &fx->mem, &list, &fx->err));
    assert_int_equal(list.total, expected(fx, &q, want));
    assert_int_equal(list.count, 0);
    q.limit = 100;
    q.offset = INT64_MAX;
    ok(fx, hfd_fleet_row_search(&fx->tx, &q, &fx->mem, &list, &fx->err));
    assert_int_equal(list.total, expected(fx, &q, want));
    assert_int_equal(list.count, 0);
}

/* ---- plans ---- */

static void explain(struct fixture *fx, struct hfd_sql *q, struct hfd_buf *out)
{
    struct hfd_sql asked = *q;
    struct hfd_stmt *st;
    bool row;

    hfd_buf_init(&asked.text, HFD_SQL_MAX_BYTES);
    hfd_buf_lit(&asked.text, "EXPLAIN QUERY PLAN ");
    hfd_buf_add(&asked.text, hfd_buf_slice(&q->text));
    ok(fx, hfd_sql_prepare(&asked, fx->db, &st, &fx->err));
    for (ok(fx, hfd_stmt_step(st, &row, &fx->err)); row;
         ok(fx, hfd_stmt_step(st, &row, &fx->err))) {
        hfd_buf_add(out, hfd_stmt_col_text(st, 3, &fx->mem));
        hfd_buf_addc(out, '\n');
    }
    hfd_stmt_done(st);
    hfd_sql_fini(&asked);
    hfd_buf_addc(out, '\0');
    out->len--;
}

static void parse(struct fixture *fx, enum hfd_kind kind, const char *text,
                  struct hfd_fleet_query *q)
{
    *q = (struct hfd_fleet_query){.kind = kind, .limit = 20};
    ok(fx, hfd_search_parse(kind, S(text), &fx->mem, &q->filter, &fx->err));
}

#define BY_PENDING "n USING COVERING INDEX fleet_pending"

static void assert_plan(struct fixture *fx, struct hfd_sql *q, const char *text, const char *index)
{
    struct hfd_buf plan;

    hfd_buf_init(&plan, 1 << 20);
    explain(fx, q, &plan);
    /* f, n and c are tables. Lists in the query itself may be scanned. So may an index that has
       nothing but what is asked for. */
    if (strstr(plan.p, "SCAN f") != NULL ||
        (strstr(plan.p, "SCAN n") != NULL && strcmp(index, BY_PENDING) != 0) ||
        strstr(plan.p, "SCAN c") != NULL)
        fail_msg("%s scans:\n%s\n%.*s", text, plan.p, HFD_SLICE_FMT(hfd_buf_slice(&q->text)));
    if (strstr(plan.p, index) == NULL)
        fail_msg("%s does not use %s:\n%s\n%.*s", text, index, plan.p,
                 HFD_SLICE_FMT(hfd_buf_slice(&q->text)));
    hfd_buf_fini(&plan);
}

#define BY_LABEL "SEARCH n USING PRIMARY KEY (kind=? AND key=? AND value=?)"
#define BY_CONDITION "SEARCH n USING PRIMARY KEY (kind=? AND type=? AND status=?)"
#define BY_AGE "SEARCH n USING COVERING INDEX fleet_ready (kind=? AND ready=? AND ready_seen_us<?)"
#define BY_NAME "fleet_named (kind=? AND name=?)"
#define BY_OWNER "fleet_owner (owner_id=?)"
#define BY_ID "(id=?)"

/*
 * Labels, names, owners, ids, conditions and stale resources are found by their index, in every
 * combination and order.
 */
static void plans_use_the_indexes(void **state)
{
    static const struct {
        const char *query, *index;
        enum hfd_kind kind;
    } cases[] = {
        {"labels.env='a'", BY_LABEL, HFD_KIND_CLUSTER},
        {"labels.env in ('a','b')", BY_LABEL, HFD_KIND_CLUSTER},
        {"labels.env='a' and spec.region='us'", BY_LABEL, HFD_KIND_CLUSTER},
        {"labels.env='a' and not labels.tier='b'", BY_LABEL, HFD_KIND_CLUSTER},
        {"labels.env='a' and (generation=1 or spec.region='us')", BY_LABEL, HFD_KIND_CLUSTER},
        {"labels.env='a' and labels.tier='b'", BY_LABEL, HFD_KIND_CLUSTER},
        {"labels.env='a' or labels.tier='b'", BY_LABEL, HFD_KIND_CLUSTER},
        {"labels.env='a' or name='alpha' and generation=1", BY_NAME, HFD_KIND_CLUSTER},
        {"(labels.env='a' or labels.tier='b') and generation=1", BY_LABEL, HFD_KIND_CLUSTER},
        {"name='alpha'", BY_NAME, HFD_KIND_CLUSTER},
        {"name='alpha' and generation > 1", BY_NAME, HFD_KIND_NODEPOOL},
        {"name in ('alpha','beta','gamma','delta','x','y')", BY_NAME, HFD_KIND_CLUSTER},
        {"owner_id='r3'", BY_OWNER, HFD_KIND_NODEPOOL},
        {"owner_id in ('r3','r6')", BY_OWNER, HFD_KIND_NODEPOOL},
        {"owner_id='r3' and name like 'a%'", BY_OWNER, HFD_KIND_NODEPOOL},
        {"id='r3'", BY_ID, HFD_KIND_CLUSTER},
        {"id in ('r3','r6','r9')", BY_ID, HFD_KIND_CLUSTER},
        {"id='r3' or id='r6' or labels.env='a'", BY_ID, HFD_KIND_CLUSTER},
        {"status.conditions.Ready='False'", BY_CONDITION, HFD_KIND_CLUSTER},
        {"status.conditions.Ready='True' or status.conditions.DnsSuccessful='False'", BY_CONDITION,
         HFD_KIND_CLUSTER},
        {"status.conditions.Ready='True' and status.conditions.Available.observed_generation>2",
         BY_CONDITION, HFD_KIND_CLUSTER},
        {"status.conditions.Ready='True' and "
         "status.conditions.Ready.last_updated_time<='1970-01-01T00:00:00Z'",
         BY_AGE, HFD_KIND_CLUSTER},
        {"status.conditions.Ready='False' and "
         "status.conditions.Ready.last_updated_time<'1970-01-01T00:00:00Z'",
         BY_AGE, HFD_KIND_CLUSTER},
        {"status.conditions.Reconciled='True' and labels.env='a'", BY_LABEL, HFD_KIND_CLUSTER},
        {"status.conditions.Reconciled='False'", BY_PENDING, HFD_KIND_CLUSTER},
        {"status.conditions.Reconciled='False'", BY_PENDING, HFD_KIND_NODEPOOL},
        {"status.conditions.Reconciled='False' and spec.region='us'", BY_PENDING, HFD_KIND_CLUSTER},
        {"status.conditions.Reconciled='False' or name='alpha'", BY_PENDING, HFD_KIND_CLUSTER},
        {"status.conditions.Reconciled='False' and not labels.env='a'", BY_PENDING,
         HFD_KIND_CLUSTER},
    };
    static const struct hfd_order orders[] = {{.field = HFD_FIELD_NAME},
                                              {.field = HFD_FIELD_CREATED_TIME}};
    struct fixture *fx = *state;

    if (test_on_postgres())
        skip(); /* the SQL is of SQLite */
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (size_t order = 0; order < 3; order++) {
            struct hfd_fleet_query q;
            struct hfd_search_sql sql;

            parse(fx, cases[i].kind, cases[i].query, &q);
            q.order = order > 0 ? &orders[order - 1] : NULL;
            q.order_count = order > 0 ? 1 : 0;
            ok(fx, hfd_search_compose(&fx->tx, &q, &fx->mem, &sql, &fx->err));
            assert_plan(fx, &sql.page, cases[i].query, cases[i].index);
            /* A total that is kept is one row, found by its key. */
            assert_plan(fx, &sql.total, cases[i].query,
                        slice_has((hfd_slice){sql.total.text.p, sql.total.text.len}, "fleet_count")
                            ? "SEARCH fleet_count USING PRIMARY KEY"
                            : cases[i].index);
            hfd_sql_fini(&sql.page);
            hfd_sql_fini(&sql.total);
        }
    }
}

/*
 * Totals by one condition or by one label's values are read, not counted, but for the label that
 * has another value for each cluster.
 */
static void common_totals_are_kept(void **state)
{
    static const struct {
        const char *query;
        bool kept;
    } cases[] = {
        {"", true},
        {"labels.env='a'", true},
        {"labels.env in ('a','b%','a','none')", true},
        {"labels.humanitec_guresid='a'", false},
        {"status.conditions.Ready='True'", true},
        {"labels.env='a' and labels.tier='b'", false},
        {"labels.env='a' or labels.tier='b'", false},
        {"labels.env!='a'", false},
        {"not labels.env='a'", false},
        {"name='alpha'", false},
        {"status.conditions.Ready.observed_generation=1", false},
    };
    struct fixture *fx = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct hfd_fleet_query q;

        parse(fx, HFD_KIND_NODEPOOL, cases[i].query, &q);
        if ((strstr(sql_of(fx, &q), "fleet_count") != NULL) != cases[i].kept)
            fail_msg("the total of \"%s\" is %s", cases[i].query,
                     cases[i].kept ? "counted" : "kept");
        assert_pages(fx, &q);
    }
}

static int64_t number_of(struct fixture *fx, const char *sql)
{
    struct hfd_stmt *st;
    int64_t v;
    bool row;

    ok(fx, hfd_db_prepare_once(fx->db, S(sql), &st, &fx->err));
    ok(fx, hfd_stmt_step(st, &row, &fx->err));
    assert_true(row);
    v = hfd_stmt_col_i64(st, 0);
    hfd_stmt_done(st);
    return v;
}

/*
 * Kept totals equal counts, after inserts, changes and removals. A value that no row has any more
 * has no total.
 */
static void kept_totals_are_what_is_there(void **state)
{
    static const char counted[] =
        "SELECT kind, 0, '', '', count(*) FROM fleet GROUP BY kind UNION ALL"
        " SELECT kind, 1, type, status, count(*) FROM fleet_condition GROUP BY kind, type, status "
        "UNION ALL"
        " SELECT kind, 2, key, value, count(*) FROM fleet_label WHERE key <> 'humanitec_guresid' "
        "GROUP BY kind, key, value";
    const struct hfd_fleet_keys none = {0};
    struct fixture *fx = *state;
    char sql[1024];

    ok(fx, hfd_totals_write(&fx->tx, &fx->err));
    assert_true(number_of(fx, "SELECT count(*) FROM fleet_count WHERE field = 2") > 10);
    (void)snprintf(
        sql, sizeof(sql),
        "SELECT count(*) FROM (%s EXCEPT SELECT kind, field, name, value, n FROM fleet_count) x",
        counted);
    assert_int_equal(number_of(fx, sql), 0);
    (void)snprintf(sql, sizeof(sql),
                   "SELECT count(*) FROM (SELECT kind, field, name, value, n FROM fleet_count "
                   "EXCEPT SELECT * FROM (%s) y) x",
                   counted);
    assert_int_equal(number_of(fx, sql), 0);
    for (size_t i = 0; i < RESOURCES; i++) {
        const struct hfd_fleet_row row = row_of(fx, &fx->all[i]);
        const struct hfd_fleet_keys was = keys_of(fx, &fx->all[i]);

        if (fx->all[i].gone)
            continue;
        ok(fx, hfd_fleet_keys_put(&fx->tx, &row, &was, &none, &fx->err));
        ok(fx, hfd_fleet_row_delete(&fx->tx, row.id, &fx->err));
        hfd_arena_fini(&fx->mem);
    }
    ok(fx, hfd_totals_write(&fx->tx, &fx->err));
    assert_int_equal(number_of(fx, "SELECT count(*) FROM fleet_count"), 0);
}

/*
 * For one label, name, condition or owner, and for the plain list, the page comes from the index as
 * it is, without sorting.
 */
static void common_pages_are_not_sorted(void **state)
{
    static const struct {
        const char *query, *owner;
        enum hfd_kind kind;
    } cases[] = {
        {"", "", HFD_KIND_CLUSTER},
        {"spec.region='us'", "", HFD_KIND_CLUSTER},
        {"labels.env='a'", "", HFD_KIND_CLUSTER},
        {"labels.env='a' and spec.region='us'", "", HFD_KIND_CLUSTER},
        {"name='alpha'", "", HFD_KIND_NODEPOOL},
        {"status.conditions.Ready='False'", "", HFD_KIND_CLUSTER},
        {"", "r3", HFD_KIND_NODEPOOL},
        {"spec.region='us'", "r3", HFD_KIND_NODEPOOL},
    };
    static const struct hfd_order by_time[] = {
        {.field = HFD_FIELD_CREATED_TIME}, {.field = HFD_FIELD_CREATED_TIME, .descending = true}};
    struct fixture *fx = *state;

    if (test_on_postgres())
        skip(); /* the SQL is of SQLite */
    for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
        struct hfd_fleet_query q;
        struct hfd_search_sql sql;
        struct hfd_buf plan;

        parse(fx, cases[i / 2].kind, cases[i / 2].query, &q);
        q.owner_id = S(cases[i / 2].owner);
        q.order = &by_time[i % 2];
        q.order_count = 1;
        hfd_buf_init(&plan, 1 << 20);
        ok(fx, hfd_search_compose(&fx->tx, &q, &fx->mem, &sql, &fx->err));
        explain(fx, &sql.page, &plan);
        if (strstr(plan.p, "TEMP B-TREE") != NULL)
            fail_msg("%s is sorted:\n%s\n%.*s", cases[i / 2].query, plan.p,
                     HFD_SLICE_FMT(hfd_buf_slice(&sql.page.text)));
        hfd_buf_fini(&plan);
        hfd_sql_fini(&sql.page);
        hfd_sql_fini(&sql.total);
    }
}

/* ---- the largest queries ---- */

static void assert_runs(struct fixture *fx, enum hfd_kind kind, const struct hfd_buf *text)
{
    struct hfd_fleet_query q = {.kind = kind, .limit = 1000};

    assert_int_equal(text->rc, HFD_OK);
    ok(fx, hfd_search_parse(kind, hfd_buf_slice(text), &fx->mem, &q.filter, &fx->err));
    assert_pages(fx, &q);
    hfd_arena_fini(&fx->mem);
}

/*
 * Nesting to the language's limit, on either side, with and without NOT, with long chains at each
 * level: the engine accepts all of it.
 */
static void deepest_queries_run(void **state)
{
    static const struct {
        const char *open[2], *close[2];
    } shapes[] = {
        {{"(id='r3' and ", "(id='r6' or "}, {")", ")"}},
        {{"(", "("}, {" and id='r3')", " or id='r6')"}},
        {{"not (id='r3' and ", "not (id='r6' or "}, {")", ")"}},
        {{"not (labels.env='a' or ", "not (spec.a=1 or "}, {")", ")"}},
        {{"(generation=1 or generation=2 and ", "(id='r3' or "}, {")", " and generation=1)"}},
        {{"not ", "not "}, {"", ""}},
    };
    struct fixture *fx = *state;
    struct hfd_buf b;

    hfd_buf_init(&b, HFD_SEARCH_MAX);
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        /* NOT counts for the language's depth as well. */
        const size_t depth = strncmp(shapes[i].open[0], "not (", 5) == 0
                                 ? HFD_SEARCH_DEPTH_MAX / 2 - 1
                                 : HFD_SEARCH_DEPTH_MAX - 1;

        hfd_buf_reset(&b);
        for (size_t k = 0; k < depth; k++)
            hfd_buf_add(&b, S(shapes[i].open[k % 2]));
        hfd_buf_lit(&b, "name='alpha'");
        for (size_t k = depth; k > 0; k--)
            hfd_buf_add(&b, S(shapes[i].close[(k - 1) % 2]));
        assert_runs(fx, HFD_KIND_CLUSTER, &b);
    }
    hfd_buf_fini(&b);
}

/*
 * Flat chains beside nested expressions, at every level. Written in their order they would overflow
 * the engine's parser stack.
 */
static void deep_queries_with_long_chains_run(void **state)
{
    struct fixture *fx = *state;
    struct hfd_buf b;
    int depth;

    hfd_buf_init(&b, HFD_SEARCH_MAX);
    for (depth = 0; depth < 24; depth++) {
        hfd_buf_addc(&b, '(');
        for (int k = 0; k < 24 - depth; k++)
            hfd_buf_add(&b, depth % 2 == 0 ? HFD_SLICE("id=''or ") : HFD_SLICE("id<'z'and "));
    }
    hfd_buf_lit(&b, "id='r3'");
    for (; depth > 0; depth--)
        hfd_buf_addc(&b, ')');
    assert_runs(fx, HFD_KIND_CLUSTER, &b);
    hfd_buf_fini(&b);
}

/* As many comparisons, branches and listed values as the length allows. */
static void longest_queries_run(void **state)
{
    static const struct {
        const char *head, *again, *tail;
        enum hfd_kind kind;
    } shapes[] = {
        {"id='r3'", " or id=''", "", HFD_KIND_CLUSTER},
        {"id='r3'", " and id>''", "", HFD_KIND_CLUSTER},
        {"name='alpha'", " or name=''", "", HFD_KIND_CLUSTER},
        {"name='alpha'", " or kind=''", "", HFD_KIND_CLUSTER},
        {"labels.env='a'", " or labels.a=''", "", HFD_KIND_CLUSTER},
        {"owner_id='r3'", " or owner_id=''", "", HFD_KIND_NODEPOOL},
        {"spec.region='us'", " and spec.a is null", "", HFD_KIND_CLUSTER},
        {"status.conditions.Ready='True'", " or status.conditions.A='True'", "", HFD_KIND_CLUSTER},
        {"name in ('alpha'", ",''", ")", HFD_KIND_CLUSTER},
        {"labels.env in ('a'", ",'b'", ")", HFD_KIND_CLUSTER},
        {"id in ['r3'", ",'r6'", "]", HFD_KIND_CLUSTER},
        {"spec.replicas in (1", ",2,'3',4", ")", HFD_KIND_CLUSTER},
    };
    struct fixture *fx = *state;
    struct hfd_buf b;

    hfd_buf_init(&b, HFD_SEARCH_MAX);
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        int values = 1;

        hfd_buf_reset(&b);
        hfd_buf_add(&b, S(shapes[i].head));
        while (b.len + strlen(shapes[i].again) + 1 <= HFD_SEARCH_MAX &&
               (shapes[i].tail[0] == '\0' || (values += 3) < 1000))
            hfd_buf_add(&b, S(shapes[i].again));
        hfd_buf_add(&b, S(shapes[i].tail));
        assert_runs(fx, shapes[i].kind, &b);
    }
    hfd_buf_fini(&b);
}

/* With any amount of memory the result is the list or HFD_NOMEM. */
static void out_of_memory_is_told(void **state)
{
    struct fixture *fx = *state;
    struct hfd_fleet_query q;
    hfd_rc rc = HFD_NOMEM;

    parse(fx, HFD_KIND_NODEPOOL,
          "labels.env in ('a','b') and (name='alpha' or id='r4' or spec.region='us')", &q);
    for (size_t max = 0; rc != HFD_OK; max += 256) {
        struct hfd_fleet_list list;
        struct hfd_arena mem;

        assert_true(max < 1000000);
        hfd_arena_init(&mem, max);
        rc = hfd_fleet_row_search(&fx->tx, &q, &mem, &list, &fx->err);
        assert_true(rc == HFD_OK || (rc == HFD_NOMEM && list.count == 0));
        hfd_arena_fini(&mem);
    }
}

/* A search term is always a value: SQL in it finds nothing and does nothing. */
static void injections_are_values(void **state)
{
    static const char *const attempts[] = {
        "name='x'' or 1=1 --'",
        "name=''' OR ''1''=''1'",
        "labels.env='a''; DROP TABLE fleet; --'",
        "id in ('x'') OR 1=1 --', '?1', '?')",
        "name like '\\\\'' UNION SELECT * FROM resource --'",
        "spec.region='$.x'",
        "created_by='f.created_by'",
    };
    struct fixture *fx = *state;

    for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++) {
        struct hfd_fleet_query q;
        struct hfd_fleet_list list;

        parse(fx, HFD_KIND_CLUSTER, attempts[i], &q);
        ok(fx, hfd_fleet_row_search(&fx->tx, &q, &fx->mem, &list, &fx->err));
        assert_int_equal(list.total, 0);
    }
}

/* Labels of resources that were stored before their keys could be searched are found. */
static void older_labels_are_found(void **state)
{
    static const char stored[] =
        "INSERT INTO fleet (seq, id, kind, name, generation, spec, labels, conditions, created_us,"
        " updated_us, created_by, updated_by) VALUES"
        " (1, 'a', 1, 'a', 1, '{}', "
        "'{\"example.org/Zone-a\":\"x\",\"env\":\"y\",\"-\":\"x\",\"a/b/c\":\"x\","
        "\"a..b/c\":\"x\"}', '[]', 5, 5, 'u', 'u'),"
        " (2, 'm', 1, 'm', 1, '{}', '{\"example.org/Zone-a\":\"x\"}', '[]', 6, 6, 'u', 'u');"
        "INSERT INTO fleet_condition VALUES (1, 'Available', 'False', 5, 1)";
    static const char *const found[] = {"labels.example.org/Zone-a='x'",
                                        "labels.example.org/Zone-a in ('x', 'z')"};
    struct fixture *fx = *state;
    struct hfd_fleet_list list;
    struct hfd_fleet_query q;
    struct hfd_stmt *st;
    bool row;

    if (test_on_postgres()) {
        ok(fx, hfd_db_begin(fx->db, &fx->err)); /* which the end of each test rolls back */
        skip();                                 /* such rows are of SQLite alone */
    }
    ok(fx, hfd_migrate(fx->db, hfd_migrations, LABELS_MIGRATION - 1, &fx->err));
    ok(fx, hfd_db_begin(fx->db, &fx->err));
    ok(fx, hfd_db_exec(fx->db, stored, &fx->err));
    ok(fx, hfd_db_commit(fx->db, &fx->err));
    ok(fx, hfd_migrate(fx->db, hfd_migrations, LABELS_MIGRATION, &fx->err));
    ok(fx, hfd_db_begin(fx->db, &fx->err));
    for (size_t i = 0; i < sizeof(found) / sizeof(found[0]); i++) {
        parse(fx, HFD_KIND_CLUSTER, found[i], &q);
        q.limit = 0; /* rows of that time have no checksums */
        ok(fx, hfd_fleet_row_search(&fx->tx, &q, &fx->mem, &list, &fx->err));
        assert_int_equal(list.total, 1);
    }
    ok(fx, hfd_db_prepare(fx->db, "SELECT count(*) FROM fleet_label", &st, &fx->err));
    ok(fx, hfd_stmt_step(st, &row, &fx->err));
    assert_int_equal(hfd_stmt_col_i64(st, 0), 1); /* no key that a removal would not find */
    hfd_stmt_done(st);
}

int main(void)
{
    static const struct CMUnitTest filled[] = {
        cmocka_unit_test(random_queries_agree_with_the_model),
        cmocka_unit_test(empty_pages_tell_the_total),
        cmocka_unit_test(plans_use_the_indexes),
        cmocka_unit_test(common_pages_are_not_sorted),
        cmocka_unit_test(deepest_queries_run),
        cmocka_unit_test(deep_queries_with_long_chains_run),
        cmocka_unit_test(longest_queries_run),
        cmocka_unit_test(out_of_memory_is_told),
        cmocka_unit_test(injections_are_values),
        cmocka_unit_test(common_totals_are_kept),
        cmocka_unit_test(kept_totals_are_what_is_there), /* removes everything */
    };
    static const struct CMUnitTest empty[] = {
        cmocka_unit_test(plans_use_the_indexes),
        cmocka_unit_test(common_pages_are_not_sorted),
    };

    static const struct CMUnitTest old[] = {cmocka_unit_test(older_labels_are_found)};

    return cmocka_run_group_tests_name("fleet_search", filled, open_filled, close_store) +
           cmocka_run_group_tests_name("fleet_search_old", old, open_old, close_store) +
           cmocka_run_group_tests_name("fleet_search_empty", empty, open_empty, close_store);
}
