/*
 * Walks a document and a schema side by side. Work and depth are counted, so that no pair of both
 * takes longer than we allow; what is found is told in the words of the person who wrote the
 * document.
 */
#include "schemas/schema_int.h"

#include <inttypes.h>
#include <math.h>

#include "driver/base/clock.h"
#include "driver/base/jsonx.h"
#include "schemas/equal.h"

#define WORK_MAX 2000000
#define DEPTH_MAX 256
#define KEY_SHOWN_MAX 80
#define TEXT_MAX 400

/* Where we are in the document; on the stack, from the innermost place outwards. */
struct place {
    const struct place *up;
    const json_t *in; /* the object or array that has it; NULL at the top */
    const char *key;  /* NULL: an element */
    size_t index;
};

/* A string that was taken for a number. */
struct spelled {
    struct spelled *earlier;
    const json_t *in;
    const char *key;
    size_t index;
};

struct run {
    const struct hfd_schema *schema;
    const struct hfd_schema_use *use;
    struct hfd_arena *mem;
    struct hfd_violations *out; /* NULL while a branch is only tried */
    struct spelled *spelled; /* the latest; those of a branch that does not hold are taken back */
    int64_t work;
    int depth;
    hfd_rc rc; /* why the run was given up, or HFD_OK */
};

static bool check(struct run *r, const struct hfd_schema_node *n, const json_t *v,
                  const struct place *at);

/* Gives up: the answer would be wrong. */
static bool give_up(struct run *r, hfd_rc rc)
{
    if (r->rc == HFD_OK)
        r->rc = rc;
    return false;
}

static void add_place(struct hfd_buf *b, const struct place *at)
{
    if (at->up == NULL) {
        hfd_buf_add(b, hfd_slice_of(at->key));
        return;
    }
    add_place(b, at->up);
    if (at->key == NULL) {
        hfd_buf_addf(b, "[%zu]", at->index);
        return;
    }
    if (b->len > 0)
        hfd_buf_addc(b, '.');
    hfd_buf_addf(b, "%.*s", KEY_SHOWN_MAX, at->key);
}

/* Notes a violation, unless a branch is only tried. Always false. */
__attribute__((format(printf, 4, 5))) static bool
violated(struct run *r, const struct place *at, const char *constraint, const char *fmt, ...)
{
    struct hfd_violation *x;
    char text[TEXT_MAX];
    struct hfd_buf b;
    va_list ap;
    int n;

    if (r->out == NULL || r->out->count == HFD_VIOLATIONS_MAX)
        return false;
    va_start(ap, fmt);
    n = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    x = &r->out->items[r->out->count];
    hfd_buf_init(&b, DEPTH_MAX * (KEY_SHOWN_MAX + 24));
    add_place(&b, at);
    x->field = hfd_arena_dup(r->mem, hfd_buf_slice(&b));
    x->message =
        hfd_arena_dup(r->mem, (hfd_slice){text, n < 0                      ? 0
                                                : (size_t)n < sizeof(text) ? (size_t)n
                                                                           : sizeof(text) - 1});
    x->constraint = constraint;
    if (b.rc != HFD_OK || x->field.p == NULL || x->message.p == NULL)
        give_up(r, HFD_NOMEM);
    else
        r->out->count++;
    hfd_buf_fini(&b);
    return false;
}

/* Whether a value fits a branch, without a word about it. */
static bool fits_branch(struct run *r, const struct hfd_schema_node *n, const json_t *v,
                        const struct place *at)
{
    struct hfd_violations *out = r->out;
    struct spelled *spelled = r->spelled;
    bool ok;

    r->out = NULL;
    ok = check(r, n, v, at);
    r->out = out;
    if (!ok)
        r->spelled = spelled;
    return ok;
}

/* The same for what only asks, and says nothing of what the value is. */
static bool fits(struct run *r, const struct hfd_schema_node *n, const json_t *v,
                 const struct place *at)
{
    struct spelled *spelled = r->spelled;
    bool ok = fits_branch(r, n, v, at);

    r->spelled = spelled;
    return ok;
}

static bool is_integral(const json_t *v)
{
    return json_is_integer(v) ||
           (json_is_real(v) && json_real_value(v) == floor(json_real_value(v)));
}

static unsigned type_of(const json_t *v)
{
    switch (json_typeof(v)) {
    case JSON_OBJECT:
        return HFD_TYPE_OBJECT;
    case JSON_ARRAY:
        return HFD_TYPE_ARRAY;
    case JSON_STRING:
        return HFD_TYPE_STRING;
    case JSON_INTEGER:
    case JSON_REAL:
        return HFD_TYPE_NUMBER | (is_integral(v) ? HFD_TYPE_INTEGER : 0u);
    case JSON_NULL:
        return HFD_TYPE_NULL;
    case JSON_TRUE:
    case JSON_FALSE:
        break;
    }
    return HFD_TYPE_BOOLEAN;
}

static bool wrong_type(struct run *r, const struct place *at, unsigned types, const json_t *v)
{
    static const struct {
        unsigned bit;
        const char *name;
    } names[] = {
        {HFD_TYPE_OBJECT, "an object"}, {HFD_TYPE_ARRAY, "an array"},
        {HFD_TYPE_STRING, "a string"},  {HFD_TYPE_INTEGER, "an integer"},
        {HFD_TYPE_NUMBER, "a number"},  {HFD_TYPE_BOOLEAN, "a boolean"},
        {HFD_TYPE_NULL, "null"},
    };
    char wanted[120] = "";
    size_t len = 0;

    /*
     * Where null is allowed beside something else it stands for nothing, which nobody has to be
     * told.
     */
    if ((types & ~(unsigned)HFD_TYPE_NULL) != 0)
        types &= ~(unsigned)HFD_TYPE_NULL;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if ((types & names[i].bit) != 0) {
            int n = snprintf(wanted + len, sizeof(wanted) - len, "%s%s", len > 0 ? " or " : "",
                             names[i].name);

            len += n > 0 ? (size_t)n : 0; /* all seven fit */
        }
    }
    return violated(r, at, "", "expected %s, got %s", wanted, hfd_json_type_name(v));
}

/*
 * Adds a value as JSON to those in a message. @return whether it and more may fit; else "..."
 * stands for it
 */
static bool add_value(const json_t *v, char *out, size_t cap, size_t *len)
{
    const char *before = *len > 0 ? ", " : "";
    struct hfd_buf b;
    bool fits;

    hfd_buf_init(&b, 80);
    hfd_json_dump(&b, v);
    fits = b.rc == HFD_OK && *len + b.len + sizeof(", ...") < cap;
    if (fits)
        *len += (size_t)snprintf(out + *len, cap - *len, "%s%.*s", before,
                                 HFD_SLICE_FMT(hfd_buf_slice(&b)));
    else
        snprintf(out + *len, cap - *len, "%s...", before);
    hfd_buf_fini(&b);
    return fits;
}

static bool check_values(struct run *r, const struct hfd_schema_node *n, const json_t *v,
                         const struct place *at)
{
    char text[TEXT_MAX - 40] = "";
    size_t len = 0;
    bool found = false;

    if (n->constant != NULL && !hfd_json_same(n->constant, v, &r->work)) {
        (void)add_value(n->constant, text, sizeof(text), &len);
        return violated(r, at, "enum", "must be %s", text);
    }
    if (n->enumeration == NULL)
        return true;
    for (size_t i = 0; !found && i < json_array_size(n->enumeration); i++)
        found = hfd_json_same(json_array_get(n->enumeration, i), v, &r->work);
    if (found)
        return true;
    for (size_t i = 0; i < json_array_size(n->enumeration) &&
                       add_value(json_array_get(n->enumeration, i), text, sizeof(text), &len);
         i++)
        continue;
    return violated(r, at, "enum", "must be one of %s", text);
}

/* @return whether the text matches; the run is given up when that takes too much work */
static bool matches(struct run *r, const struct hfd_schema_regex *regex, const char *text,
                    size_t len)
{
    pcre2_match_data *data = pcre2_match_data_create(1, NULL);
    int rc;

    if (data == NULL)
        return give_up(r, HFD_NOMEM);
    rc = pcre2_match(regex->code, (PCRE2_SPTR)text, len, 0, 0, data, r->schema->match);
    pcre2_match_data_free(data);
    r->work -= (int64_t)(len / 16);
    if (rc >= 0 || rc == PCRE2_ERROR_NOMATCH)
        return rc >= 0;
    return give_up(r, rc == PCRE2_ERROR_NOMEMORY ? HFD_NOMEM : HFD_LIMIT);
}

static const char *plural(size_t n)
{
    return n == 1 ? "" : "s";
}

static bool check_string(struct run *r, const struct hfd_schema_node *n, const json_t *v,
                         const struct place *at)
{
    const char *text = json_string_value(v);
    size_t len = json_string_length(v);
    size_t points = 0;
    int64_t ignored;
    bool ok = true;

    for (size_t i = 0; i < len; i++)
        points += ((unsigned char)text[i] & 0xc0u) != 0x80u ? 1 : 0;
    if (points < n->min_length)
        ok = violated(r, at, "min_length", "must be at least %zu character%s", n->min_length,
                      plural(n->min_length));
    if (points > n->max_length)
        ok = violated(r, at, "max_length", "must be at most %zu character%s", n->max_length,
                      plural(n->max_length));
    if (n->pattern != NULL && !matches(r, n->pattern, text, len))
        ok = violated(r, at, "pattern", "must match the pattern %.200s", n->pattern->text);
    if (n->date_time && hfd_time_parse((hfd_slice){text, len}, &ignored, NULL) != HFD_OK)
        ok = violated(r, at, "format", "must be a date and time like 2025-01-01T00:00:00Z");
    return ok;
}

static bool is_multiple(const json_t *v, const json_t *of)
{
    double q;

    if (json_is_integer(v) && json_is_integer(of))
        return json_integer_value(v) % json_integer_value(of) == 0;
    q = json_number_value(v) / json_number_value(of);
    /* 0.0075 / 0.0001 is not quite 75. */
    return isfinite(q) && fabs(q - round(q)) <= 1e-9 * fmax(1.0, fabs(q) * 1e-3);
}

static const char *number_text(const json_t *v, char out[32])
{
    struct hfd_buf b;

    hfd_buf_init(&b, 31);
    hfd_json_dump(&b, v);
    snprintf(out, 32, "%.*s", HFD_SLICE_FMT(hfd_buf_slice(&b)));
    hfd_buf_fini(&b);
    return out;
}

static bool check_number(struct run *r, const struct hfd_schema_node *n, const json_t *v,
                         const struct place *at)
{
    char text[32];
    bool ok = true;

    if (n->minimum != NULL && hfd_json_number_cmp(v, n->minimum) < 0)
        ok = violated(r, at, "min", "must be at least %s", number_text(n->minimum, text));
    if (n->maximum != NULL && hfd_json_number_cmp(v, n->maximum) > 0)
        ok = violated(r, at, "max", "must be at most %s", number_text(n->maximum, text));
    if (n->exclusive_minimum != NULL && hfd_json_number_cmp(v, n->exclusive_minimum) <= 0)
        ok = violated(r, at, "min", "must be greater than %s",
                      number_text(n->exclusive_minimum, text));
    if (n->exclusive_maximum != NULL && hfd_json_number_cmp(v, n->exclusive_maximum) >= 0)
        ok =
            violated(r, at, "max", "must be less than %s", number_text(n->exclusive_maximum, text));
    if (n->multiple_of != NULL && !is_multiple(v, n->multiple_of))
        ok = violated(r, at, "", "must be a multiple of %s", number_text(n->multiple_of, text));
    return ok;
}

/* One member against everything that is said about members. */
static bool check_member(struct run *r, const struct hfd_schema_node *n, const struct place *here,
                         const json_t *v)
{
    const char *key = here->key;
    bool named = n->properties != NULL && json_object_get(n->properties, key) != NULL;
    bool ok = true;
    json_t *name;

    for (size_t i = 0; i < n->pattern_count; i++) {
        if (!matches(r, n->patterns[i].regex, key, strlen(key)))
            continue;
        named = true;
        ok = check(r, n->patterns[i].node, v, here) && ok;
    }
    if (!named && n->additional_properties != NULL)
        ok = check(r, n->additional_properties, v, here) && ok;
    if (n->property_names != NULL) {
        name = json_string(key);
        if (name == NULL)
            return give_up(r, HFD_NOMEM);
        if (!fits(r, n->property_names, name, here))
            ok = violated(r, here, "", "is not an allowed name");
        json_decref(name);
    }
    return ok;
}

static bool check_object(struct run *r, const struct hfd_schema_node *n, const json_t *v,
                         const struct place *at)
{
    size_t size = json_object_size(v);
    const char *key;
    json_t *value;
    bool ok = true;

    for (size_t i = 0; n->required != NULL && i < json_array_size(n->required); i++) {
        key = json_string_value(json_array_get(n->required, i));
        if (json_object_get(v, key) == NULL)
            ok = violated(r, at, "required", "\"%.80s\" is required", key);
    }
    if (size < n->min_properties)
        ok = violated(r, at, "min", "must have at least %zu member%s", n->min_properties,
                      plural(n->min_properties));
    if (size > n->max_properties)
        ok = violated(r, at, "max", "must have at most %zu member%s", n->max_properties,
                      plural(n->max_properties));
    for (size_t i = 0; i < n->member_count; i++) {
        const struct place here = {.up = at, .in = v, .key = n->members[i].key};

        value = json_object_get(v, n->members[i].key);
        if (value != NULL)
            ok = check(r, n->members[i].node, value, &here) && ok;
    }
    if (n->pattern_count == 0 && n->additional_properties == NULL && n->property_names == NULL)
        return ok;
    json_object_foreach ((json_t *)(uintptr_t)v, key, value) {
        const struct place here = {.up = at, .in = v, .key = key};

        ok = check_member(r, n, &here, value) && ok;
    }
    return ok;
}

struct hashed {
    uint64_t hash;
    size_t index;
};

static int by_hash(const void *a, const void *b)
{
    const struct hashed *x = a;
    const struct hashed *y = b;

    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

/*
 * Sorted by hash, so that only what may be the same is compared; the work counter bounds what
 * hostile hashes cost.
 */
static bool check_unique(struct run *r, const json_t *v, const struct place *at)
{
    size_t n = json_array_size(v);
    struct hashed *h = calloc(n + 1, sizeof(*h));
    bool ok = true;

    if (h == NULL)
        return give_up(r, HFD_NOMEM);
    for (size_t i = 0; i < n; i++)
        h[i] = (struct hashed){hfd_json_hash(json_array_get(v, i), &r->work), i};
    qsort(h, n, sizeof(*h), by_hash);
    for (size_t i = 0; ok && i < n; i++)
        for (size_t k = i + 1; ok && k < n && h[k].hash == h[i].hash && r->work >= 0; k++)
            if (hfd_json_same(json_array_get(v, h[i].index), json_array_get(v, h[k].index),
                              &r->work))
                ok = violated(r, at, "unique", "elements %zu and %zu are equal", h[i].index,
                              h[k].index);
    free(h);
    return ok;
}

static bool check_array(struct run *r, const struct hfd_schema_node *n, const json_t *v,
                        const struct place *at)
{
    size_t size = json_array_size(v);
    bool contains = n->contains == NULL;
    bool ok = true;

    if (size < n->min_items)
        ok = violated(r, at, "min", "must have at least %zu element%s", n->min_items,
                      plural(n->min_items));
    if (size > n->max_items)
        ok = violated(r, at, "max", "must have at most %zu element%s", n->max_items,
                      plural(n->max_items));
    for (size_t i = 0; i < size; i++) {
        const struct hfd_schema_node *rest = n->tuple.count > 0 ? n->additional_items : n->items;
        const struct hfd_schema_node *item = i < n->tuple.count ? n->tuple.items[i] : rest;
        const struct place here = {.up = at, .in = v, .index = i};

        if (item != NULL)
            ok = check(r, item, json_array_get(v, i), &here) && ok;
        contains = contains || fits(r, n->contains, json_array_get(v, i), &here);
    }
    if (!contains)
        ok = violated(r, at, "", "no element is of the required form");
    if (n->unique)
        ok = check_unique(r, v, at) && ok;
    return ok;
}

static size_t count_matching(struct run *r, const struct hfd_schema_list *list, const json_t *v,
                             const struct place *at, size_t enough)
{
    size_t matching = 0;

    for (size_t i = 0; i < list->count && matching < enough; i++)
        matching += fits_branch(r, list->items[i], v, at) ? 1 : 0;
    return matching;
}

static bool check_combinations(struct run *r, const struct hfd_schema_node *n, const json_t *v,
                               const struct place *at)
{
    bool ok = true;
    size_t matching;

    for (size_t i = 0; i < n->all_of.count; i++)
        ok = check(r, n->all_of.items[i], v, at) && ok;
    if (n->any_of.count == 1)
        ok = check(r, n->any_of.items[0], v, at) && ok; /* says more than "none of one" */
    else if (n->any_of.count > 1 && count_matching(r, &n->any_of, v, at, 1) == 0)
        ok = violated(r, at, "", "fits none of the %zu allowed forms", n->any_of.count);
    if (n->one_of.count > 0) {
        matching = count_matching(r, &n->one_of, v, at, 2);
        if (matching == 0)
            ok = violated(r, at, "", "fits none of the %zu allowed forms", n->one_of.count);
        else if (matching > 1)
            ok = violated(r, at, "", "fits more than one of %zu forms that exclude each other",
                          n->one_of.count);
    }
    return ok;
}

static bool check_conditions(struct run *r, const struct hfd_schema_node *n, const json_t *v,
                             const struct place *at)
{
    const struct hfd_schema_node *branch;
    bool ok = true;

    if (n->negated != NULL && fits(r, n->negated, v, at))
        ok = violated(r, at, "", "is of a form that is not allowed");
    if (n->condition == NULL)
        return ok;
    branch = fits(r, n->condition, v, at) ? n->consequence : n->alternative;
    return (branch == NULL || check(r, branch, v, at)) && ok;
}

static bool check_body(struct run *r, const struct hfd_schema_node *n, const json_t *v,
                       const struct place *at)
{
    bool ok;

    if (n->types != 0 && (n->types & type_of(v)) == 0)
        return wrong_type(r, at, n->types, v);
    ok = check_values(r, n, v, at);
    if (json_is_string(v))
        ok = check_string(r, n, v, at) && ok;
    else if (json_is_number(v))
        ok = check_number(r, n, v, at) && ok;
    else if (json_is_object(v))
        ok = check_object(r, n, v, at) && ok;
    else if (json_is_array(v))
        ok = check_array(r, n, v, at) && ok;
    ok = check_combinations(r, n, v, at) && ok;
    return check_conditions(r, n, v, at) && ok;
}

/*
 * The number that a string spells, as JSON spells it; *out is NULL when it spells none. @return
 * HFD_OK, HFD_NOMEM
 */
static hfd_rc spelled_number(const json_t *v, json_t **out)
{
    const char *text = json_string_value(v);
    size_t len = json_string_length(v);

    *out = NULL;
    if (len == 0 || len > 40 || strspn(text, "+-.0123456789eE") != len)
        return HFD_OK;
    return hfd_json_parse((hfd_slice){text, len}, out, NULL) == HFD_NOMEM ? HFD_NOMEM : HFD_OK;
}

/*
 * Remembers that the value here is to become a number. A whole document that is one is nobody's
 * member.
 */
static void note_spelled(struct run *r, const struct place *at)
{
    struct spelled *s;

    if (at->in == NULL)
        return;
    s = hfd_arena_alloc(r->mem, sizeof(*s));
    if (s == NULL) {
        give_up(r, HFD_NOMEM);
        return;
    }
    *s = (struct spelled){.earlier = r->spelled, .in = at->in, .key = at->key, .index = at->index};
    r->spelled = s;
}

/* The number that a string stands for where one is wanted; NULL where it stands for itself. */
static json_t *lenient_number(struct run *r, const struct hfd_schema_node *n, const json_t *v)
{
    const unsigned numbers = HFD_TYPE_INTEGER | HFD_TYPE_NUMBER;
    json_t *number;

    if (!r->use->lenient_numbers || !json_is_string(v) || (n->types & numbers) == 0 ||
        (n->types & HFD_TYPE_STRING) != 0)
        return NULL;
    if (spelled_number(v, &number) != HFD_OK)
        give_up(r, HFD_NOMEM);
    return number;
}

static bool check(struct run *r, const struct hfd_schema_node *n, const json_t *v,
                  const struct place *at)
{
    json_t *number;
    bool ok;

    if (r->rc != HFD_OK)
        return false;
    if (--r->work < 0 || r->depth >= DEPTH_MAX)
        return give_up(r, HFD_LIMIT);
    if (n->never)
        return violated(r, at, "", "is not allowed");
    if (n->nullable && json_is_null(v))
        return true;
    number = lenient_number(r, n, v);
    r->depth++;
    ok = n->ref != NULL ? check(r, n->ref, v, at)
                        : check_body(r, n, number != NULL ? number : v, at);
    r->depth--;
    if (ok && number != NULL)
        note_spelled(r, at);
    json_decref(number);
    return ok && r->rc == HFD_OK;
}

static hfd_rc run_schema(struct run *r, const json_t *doc, struct hfd_err *err)
{
    const struct place top = {.key = r->use->root};
    struct hfd_violations *out = r->out;
    const struct hfd_violation *first = &out->items[0];
    char field[128]; /* a little more than an error holds, so that it marks what it cuts */
    bool ok;

    out->count = 0;
    ok = check(r, r->schema->root, doc, &top);
    if (r->work < 0)
        give_up(r, HFD_LIMIT); /* comparing stops without a word */
    if (r->rc != HFD_OK)
        out->count = 0;
    if (r->rc == HFD_NOMEM)
        return hfd_fail(err, HFD_NOMEM, "validate a document");
    if (r->rc != HFD_OK)
        return hfd_fail(err, HFD_LIMIT, "the document takes too much work to validate");
    if (ok)
        return HFD_OK;
    snprintf(field, sizeof(field), "%.*s", HFD_SLICE_FMT(first->field));
    return hfd_fail_field(err, HFD_INVALID, field, "%s%s%.*s", field, field[0] != '\0' ? ": " : "",
                          HFD_SLICE_FMT(first->message));
}

hfd_rc hfd_schema_validate(const struct hfd_schema *schema, const json_t *doc,
                           const struct hfd_schema_use *use, struct hfd_arena *mem,
                           struct hfd_violations *out, struct hfd_err *err)
{
    struct run r = {.schema = schema, .use = use, .mem = mem, .out = out, .work = WORK_MAX};

    return run_schema(&r, doc, err);
}

/*
 * Puts the number in the place of the string. It may be there already: two parts of a schema can
 * want the same.
 */
static hfd_rc store_number(const struct spelled *s)
{
    json_t *in = (json_t *)(uintptr_t)s->in; /* of the caller's own document */
    const json_t *v = s->key != NULL ? json_object_get(in, s->key) : json_array_get(in, s->index);
    json_t *number;

    if (!json_is_string(v))
        return HFD_OK;
    if (spelled_number(v, &number) != HFD_OK || number == NULL) /* it was one a moment ago */
        return HFD_NOMEM;
    if ((s->key != NULL ? json_object_set_new(in, s->key, number)
                        : json_array_set_new(in, s->index, number)) != 0)
        return HFD_NOMEM;
    return HFD_OK;
}

hfd_rc hfd_schema_validate_numbers(const struct hfd_schema *schema, json_t *doc,
                                   const struct hfd_schema_use *use, struct hfd_arena *mem,
                                   struct hfd_violations *out, struct hfd_err *err)
{
    const struct hfd_schema_use lenient = {.root = use->root, .lenient_numbers = true};
    struct run r = {.schema = schema, .use = &lenient, .mem = mem, .out = out, .work = WORK_MAX};
    hfd_rc rc = run_schema(&r, doc, err);

    if (rc != HFD_OK || r.spelled == NULL)
        return rc;
    for (const struct spelled *s = r.spelled; s != NULL; s = s->earlier)
        if (store_number(s) != HFD_OK)
            return hfd_fail(err, HFD_NOMEM, "store the numbers of a document");
    /* Parts of the schema that say nothing of types have seen strings. */
    return hfd_schema_validate(schema, doc, use, mem, out, err);
}
