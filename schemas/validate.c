/* See validate.h. */
#include "schemas/validate.h"

#include "driver/base/buf.h"
#include "driver/base/clock.h"
#include "driver/base/foreign.h"
#include "driver/base/jsonx.h"
#include "driver/base/nearest.h"
#include "schemas/compile_int.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---- walk ---- */

/* Places, violations and patterns of a validation. */

/*
 * Numbers that a document spells as strings ("3"). With lenient_numbers they count as numbers where
 * the schema wants a number, and hfd_schema_validate_numbers puts numbers in their places.
 */

/* A string that was taken for a number. Those of a branch that does not hold are taken back. */
struct hfd_spelled {
    struct hfd_spelled *earlier;
    const json_t *in;
    const char *key;
    size_t index;
};

/*
 * The state of a validation. It walks a document and a schema side by side, and notes what is
 * wrong. Thread: any.
 */

#define HFD_WALK_DEPTH_MAX 256
#define HFD_WALK_TEXT_MAX 400 /* bytes of a message */

/* A place in the document. Places live on the stack, linked from the inside out. */
struct hfd_schema_place {
    const struct hfd_schema_place *up;
    const json_t *in; /* the object or array that holds the value; NULL at the top */
    const char *key;  /* NULL = an element of an array */
    size_t index;
};

/* One validation in progress. */
struct hfd_walk {
    const struct hfd_schema_use *use;
    struct hfd_arena *mem;
    struct hfd_violations *out;  /* NULL while a branch is only tried */
    struct hfd_spelled *spelled; /* the latest; see validate.h */
    int64_t work;                /* what is left; below 0 the walk is given up */
    int depth;
    hfd_rc rc; /* why the walk was given up, or HFD_OK */
};

#define KEY_SHOWN_MAX 80
#define VALUE_SHOWN_MAX 80

/* Gives the walk up, since its result would be wrong. @return false always */
static bool walk_give_up(struct hfd_walk *w, hfd_rc rc)
{
    if (w->rc == HFD_OK)
        w->rc = rc;
    return false;
}

static void add_place(struct hfd_buf *b, const struct hfd_schema_place *at)
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

/* The value at a place as JSON text; none where it is long, an object or an array. */
static hfd_slice value_at(const struct hfd_schema_place *at, struct hfd_arena *mem)
{
    const json_t *v = NULL;
    hfd_slice text;
    struct hfd_buf b;

    if (at->in != NULL)
        v = at->key != NULL ? json_object_get(at->in, at->key) : json_array_get(at->in, at->index);
    if (v == NULL || json_is_object(v) || json_is_array(v) ||
        json_string_length(v) > VALUE_SHOWN_MAX)
        return HFD_SLICE_NONE;
    hfd_buf_init(&b, VALUE_SHOWN_MAX * 6 + 2);
    hfd_json_dump(&b, v);
    return hfd_buf_to_arena(&b, mem, &text, NULL) == HFD_OK ? text : HFD_SLICE_NONE;
}

/* Notes a violation, unless a branch is only tried. @return false always */
static bool walk_violated(struct hfd_walk *w, const struct hfd_schema_place *at,
                          const char *constraint, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
static bool walk_violated(struct hfd_walk *w, const struct hfd_schema_place *at,
                          const char *constraint, const char *fmt, ...)
{
    struct hfd_violation *x;
    char text[HFD_WALK_TEXT_MAX];
    struct hfd_buf b;
    va_list ap;
    int n;

    if (w->out == NULL || w->out->count == HFD_VIOLATIONS_MAX)
        return false;
    va_start(ap, fmt);
    n = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (n < 0)
        text[0] = '\0';
    hfd_foreign_drop_halves(text);
    x = &w->out->items[w->out->count];
    hfd_buf_init(&b, HFD_WALK_DEPTH_MAX * (KEY_SHOWN_MAX + 24));
    add_place(&b, at);
    x->field = hfd_arena_dup(w->mem, hfd_buf_slice(&b));
    x->message = hfd_arena_dup(w->mem, hfd_slice_of(text));
    x->constraint = constraint;
    x->value = value_at(at, w->mem);
    if (b.rc != HFD_OK || x->field.p == NULL || x->message.p == NULL)
        walk_give_up(w, HFD_NOMEM);
    else
        w->out->count++;
    hfd_buf_fini(&b);
    return false;
}

/* Matches a pattern. @return whether the text matches; false when the walk is given up */
static bool walk_matches(struct hfd_walk *w, const struct hfd_schema_regex *regex, const char *text,
                         size_t len)
{
    pcre2_match_data *data = pcre2_match_data_create(1, NULL);
    int rc;

    if (data == NULL)
        return walk_give_up(w, HFD_NOMEM);
    rc = pcre2_match(regex->code, (PCRE2_SPTR)text, len, 0, 0, data, w->use->schema->match);
    pcre2_match_data_free(data);
    w->work -= (int64_t)(len / 16);
    if (rc >= 0 || rc == PCRE2_ERROR_NOMATCH)
        return rc >= 0;
    return walk_give_up(w, rc == PCRE2_ERROR_NOMEMORY ? HFD_NOMEM : HFD_LIMIT);
}

/* "" for 1, else "s". */
static const char *walk_plural(size_t n)
{
    return n == 1 ? "" : "s";
}

/* ---- equal ---- */

/*
 * Compares JSON values. Documents come from hfd_json_parse, so their depth is bounded.
 */

_Static_assert(LDBL_MANT_DIG >= 64, "a long double must hold every int64");

/*
 * Compares two numbers exactly, integers and reals.
 * @return -1, 0 or 1
 */
static int json_number_cmp(const json_t *a, const json_t *b)
{
    long double x =
        json_is_integer(a) ? (long double)json_integer_value(a) : (long double)json_real_value(a);
    long double y =
        json_is_integer(b) ? (long double)json_integer_value(b) : (long double)json_real_value(b);

    return (x > y) - (x < y);
}

static bool same_arrays(const json_t *a, const json_t *b, int64_t *work)
{
    if (json_array_size(a) != json_array_size(b))
        return false;
    for (size_t i = 0; i < json_array_size(a); i++)
        if (!hfd_json_same(json_array_get(a, i), json_array_get(b, i), work))
            return false;
    return true;
}

static bool same_objects(const json_t *a, const json_t *b, int64_t *work)
{
    const char *key;
    json_t *value;

    if (json_object_size(a) != json_object_size(b))
        return false;
    json_object_foreach ((json_t *)(uintptr_t)a, key, value)
        if (!hfd_json_same(value, json_object_get(b, key), work))
            return false;
    return true;
}

bool hfd_json_same(const json_t *a, const json_t *b, int64_t *work)
{
    if (a == NULL || b == NULL || --*work < 0)
        return false;
    if (json_is_number(a) && json_is_number(b))
        return json_number_cmp(a, b) == 0;
    if (json_typeof(a) != json_typeof(b))
        return false;
    if (json_is_array(a))
        return same_arrays(a, b, work);
    if (json_is_object(a))
        return same_objects(a, b, work);
    if (json_is_string(a))
        return json_string_length(a) == json_string_length(b) &&
               memcmp(json_string_value(a), json_string_value(b), json_string_length(a)) == 0;
    return true; /* true, false, null */
}

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ (h >> 29);
}

static uint64_t hash_bytes(const char *p, size_t n)
{
    uint64_t h = n;

    for (size_t i = 0; i < n; i++)
        h = mix(h, (unsigned char)p[i]);
    return h;
}

static uint64_t hash_number(const json_t *v)
{
    double d = json_number_value(v) +
               0.0; /* -0.0 becomes 0.0; two integers beyond 2^53 may share a hash */
    uint64_t bits;

    memcpy(&bits, &d, sizeof(bits));
    return mix(2, bits);
}

/*
 * A hash that is equal for values that are the same.
 * @param work as above
 */
static uint64_t json_hash(const json_t *v, int64_t *work)
{
    uint64_t h = 0;
    const char *key;
    json_t *value;

    if (--*work < 0)
        return 0;
    if (json_is_number(v))
        return hash_number(v);
    if (json_is_string(v))
        return mix(3, hash_bytes(json_string_value(v), json_string_length(v)));
    if (json_is_array(v)) {
        for (size_t i = 0; i < json_array_size(v); i++)
            h = mix(h + 5, json_hash(json_array_get(v, i), work));
        return mix(4, h);
    }
    if (json_is_object(v)) {
        json_object_foreach ((json_t *)(uintptr_t)v, key, value)
            h += mix(hash_bytes(key, strlen(key)),
                     json_hash(value, work)); /* a sum: the order does not matter */
        return mix(6, h);
    }
    return mix(7, (uint64_t)json_typeof(v));
}

/* ---- scalar ---- */

/* Checks of single values. */

static bool is_integral(const json_t *v)
{
    return json_is_integer(v) ||
           (json_is_real(v) && json_real_value(v) == floor(json_real_value(v)));
}

/* The HFD_TYPE_... bits that a value has. */
static unsigned scalar_type(const json_t *v)
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

/* Notes that a value has none of the wanted types. @return false always */
static bool scalar_wrong_type(struct hfd_walk *w, const struct hfd_schema_place *at, unsigned types,
                              const json_t *v)
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

    /* Null beside other types means "no value": the message does not mention it. */
    if ((types & ~(unsigned)HFD_TYPE_NULL) != 0)
        types &= ~(unsigned)HFD_TYPE_NULL;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if ((types & names[i].bit) != 0) {
            int n = snprintf(wanted + len, sizeof(wanted) - len, "%s%s", len > 0 ? " or " : "",
                             names[i].name);

            len += n > 0 ? (size_t)n : 0; /* all seven fit */
        }
    }
    return walk_violated(w, at, "", "expected %s, got %s", wanted, hfd_json_type_name(v));
}

/*
 * Adds a value as JSON to the values in a message.
 * @return whether it fitted; "..." stands for it otherwise
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

/* const and enum. */
static bool scalar_check_enum(struct hfd_walk *w, const struct hfd_schema_node *n, const json_t *v,
                              const struct hfd_schema_place *at)
{
    char text[HFD_WALK_TEXT_MAX - 40] = "";
    size_t len = 0;
    bool found = false;

    if (n->constant != NULL && !hfd_json_same(n->constant, v, &w->work)) {
        (void)add_value(n->constant, text, sizeof(text), &len);
        return walk_violated(w, at, "enum", "must be %s", text);
    }
    if (n->enumeration == NULL)
        return true;
    for (size_t i = 0; !found && i < json_array_size(n->enumeration); i++)
        found = hfd_json_same(json_array_get(n->enumeration, i), v, &w->work);
    if (found)
        return true;
    for (size_t i = 0; i < json_array_size(n->enumeration) &&
                       add_value(json_array_get(n->enumeration, i), text, sizeof(text), &len);
         i++)
        continue;
    return walk_violated(w, at, "enum", "must be one of %s", text);
}

static bool scalar_check_string(struct hfd_walk *w, const struct hfd_schema_node *n,
                                const json_t *v, const struct hfd_schema_place *at)
{
    const char *text = json_string_value(v);
    size_t len = json_string_length(v);
    size_t points = 0;
    int64_t ignored;
    bool ok = true;

    for (size_t i = 0; i < len; i++)
        points += ((unsigned char)text[i] & 0xc0u) != 0x80u ? 1 : 0;
    if (points < n->min_length)
        ok = walk_violated(w, at, "min_length", "must be at least %zu character%s", n->min_length,
                           walk_plural(n->min_length));
    if (points > n->max_length)
        ok = walk_violated(w, at, "max_length", "must be at most %zu character%s", n->max_length,
                           walk_plural(n->max_length));
    if (n->pattern != NULL && !walk_matches(w, n->pattern, text, len))
        ok = walk_violated(w, at, "pattern", "must match the pattern %.200s", n->pattern->text);
    if (n->date_time && hfd_time_parse((hfd_slice){text, len}, &ignored, NULL) != HFD_OK)
        ok = walk_violated(w, at, "format", "must be a date and time like 2025-01-01T00:00:00Z");
    return ok;
}

static bool is_multiple(const json_t *v, const json_t *of)
{
    double q;

    if (json_is_integer(v) && json_is_integer(of))
        return json_integer_value(v) % json_integer_value(of) == 0;
    q = json_number_value(v) / json_number_value(of);
    /* 0.0075 / 0.0001 is not exactly 75. */
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

static bool scalar_check_number(struct hfd_walk *w, const struct hfd_schema_node *n,
                                const json_t *v, const struct hfd_schema_place *at)
{
    char text[32];
    bool ok = true;

    if (n->minimum != NULL && json_number_cmp(v, n->minimum) < 0)
        ok = walk_violated(w, at, "min", "must be at least %s", number_text(n->minimum, text));
    if (n->maximum != NULL && json_number_cmp(v, n->maximum) > 0)
        ok = walk_violated(w, at, "max", "must be at most %s", number_text(n->maximum, text));
    if (n->exclusive_minimum != NULL && json_number_cmp(v, n->exclusive_minimum) <= 0)
        ok = walk_violated(w, at, "min", "must be greater than %s",
                           number_text(n->exclusive_minimum, text));
    if (n->exclusive_maximum != NULL && json_number_cmp(v, n->exclusive_maximum) >= 0)
        ok = walk_violated(w, at, "max", "must be less than %s",
                           number_text(n->exclusive_maximum, text));
    if (n->multiple_of != NULL && !is_multiple(v, n->multiple_of))
        ok =
            walk_violated(w, at, "", "must be a multiple of %s", number_text(n->multiple_of, text));
    return ok;
}

/* ---- spelled ---- */

/* Numbers that a document spells as strings. */

/*
 * Parses the number that a string spells, in JSON's form.
 * @param out NULL when it spells none
 * @return HFD_OK, HFD_NOMEM
 */
static hfd_rc parse_number(const json_t *v, json_t **out)
{
    const char *text = json_string_value(v);
    size_t len = json_string_length(v);

    *out = NULL;
    if (len == 0 || len > 40 || strspn(text, "+-.0123456789eE") != len)
        return HFD_OK;
    return hfd_json_parse((hfd_slice){text, len}, out, NULL) == HFD_NOMEM ? HFD_NOMEM : HFD_OK;
}

/* Remembers that the value here becomes a number. A whole document cannot become one. */
static void spelled_note(struct hfd_walk *w, const struct hfd_schema_place *at)
{
    struct hfd_spelled *s;

    if (at->in == NULL)
        return;
    s = hfd_arena_alloc(w->mem, sizeof(*s));
    if (s == NULL) {
        walk_give_up(w, HFD_NOMEM);
        return;
    }
    *s = (struct hfd_spelled){
        .earlier = w->spelled, .in = at->in, .key = at->key, .index = at->index};
    w->spelled = s;
}

/* The number that a string stands for where a number is wanted. @return gives; NULL for others */
static json_t *spelled_number(struct hfd_walk *w, const struct hfd_schema_node *n, const json_t *v)
{
    const unsigned numbers = HFD_TYPE_INTEGER | HFD_TYPE_NUMBER;
    json_t *number;

    if (!w->use->lenient_numbers || !json_is_string(v) || (n->types & numbers) == 0 ||
        (n->types & HFD_TYPE_STRING) != 0)
        return NULL;
    if (parse_number(v, &number) != HFD_OK)
        walk_give_up(w, HFD_NOMEM);
    return number;
}

/*
 * Puts the number in the place of the string. It may be there already: two parts of a schema can
 * want the same.
 * @return HFD_OK, HFD_NOMEM
 */
static hfd_rc spelled_store(const struct hfd_spelled *s)
{
    json_t *in = (json_t *)(uintptr_t)s->in; /* of the caller's own document */
    const json_t *v = s->key != NULL ? json_object_get(in, s->key) : json_array_get(in, s->index);
    json_t *number;

    if (!json_is_string(v))
        return HFD_OK;
    if (parse_number(v, &number) != HFD_OK || number == NULL) /* it was a number before */
        return HFD_NOMEM;
    if ((s->key != NULL ? json_object_set_new(in, s->key, number)
                        : json_array_set_new(in, s->index, number)) != 0)
        return HFD_NOMEM;
    return HFD_OK;
}

/* ---- validate ---- */

/*
 * Walks a document and a schema side by side. Work and depth are counted, so that no document and
 * schema together take longer than allowed.
 */

#define WORK_MAX 2000000

static bool check_node(struct hfd_walk *w, const struct hfd_schema_node *n, const json_t *v,
                       const struct hfd_schema_place *at);

/* True if a value fits a branch. Notes no violation. */
static bool fits_branch(struct hfd_walk *w, const struct hfd_schema_node *n, const json_t *v,
                        const struct hfd_schema_place *at)
{
    struct hfd_violations *out = w->out;
    struct hfd_spelled *spelled = w->spelled;
    bool ok;

    w->out = NULL;
    ok = check_node(w, n, v, at);
    w->out = out;
    if (!ok)
        w->spelled = spelled;
    return ok;
}

/* The same for a schema that is only a question: numbers that it sees in strings are forgotten. */
static bool fits_silently(struct hfd_walk *w, const struct hfd_schema_node *n, const json_t *v,
                          const struct hfd_schema_place *at)
{
    struct hfd_spelled *spelled = w->spelled;
    bool ok = fits_branch(w, n, v, at);

    w->spelled = spelled;
    return ok;
}

/* The name of `properties` that is nearest to a key, or NULL if none is near. */
static const char *nearest_name(const json_t *properties, const char *key)
{
    struct hfd_nearest n = hfd_nearest_to(hfd_slice_of(key));
    const char *name, *best = NULL;
    json_t *value;

    json_object_foreach ((json_t *)(uintptr_t)properties, name, value) {
        if (hfd_nearest_consider(&n, hfd_slice_of(name)))
            best = name;
    }
    return best;
}

static bool refuse_unknown(struct hfd_walk *w, const struct hfd_schema_node *n,
                           const struct hfd_schema_place *here)
{
    const char *near = nearest_name(n->properties, here->key), *name;
    char names[HFD_WALK_TEXT_MAX / 2] = "";
    size_t len = 0;
    json_t *value;

    if (near != NULL)
        return walk_violated(w, here, "", "%s; did you mean %s?", w->use->unknown, near);
    json_object_foreach ((json_t *)(uintptr_t)n->properties, name, value) {
        if (len < sizeof(names))
            len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s", len > 0 ? ", " : "",
                                    name);
    }
    return walk_violated(w, here, "", "%s; expected one of %s", w->use->unknown, names);
}

/* Checks one member against all keywords about members. */
static bool check_member(struct hfd_walk *w, const struct hfd_schema_node *n,
                         const struct hfd_schema_place *here, const json_t *v)
{
    const char *key = here->key;
    bool named = n->properties != NULL && json_object_get(n->properties, key) != NULL;
    bool ok = true;
    json_t *name;

    for (size_t i = 0; i < n->pattern_count; i++) {
        if (!walk_matches(w, n->patterns[i].regex, key, strlen(key)))
            continue;
        named = true;
        ok = check_node(w, n->patterns[i].node, v, here) && ok;
    }
    if (!named && n->additional_properties != NULL && n->additional_properties->never &&
        w->use->unknown != NULL)
        ok = refuse_unknown(w, n, here);
    else if (!named && n->additional_properties != NULL)
        ok = check_node(w, n->additional_properties, v, here) && ok;
    if (n->property_names != NULL) {
        name = json_string(key);
        if (name == NULL)
            return walk_give_up(w, HFD_NOMEM);
        if (!fits_silently(w, n->property_names, name, here))
            ok = walk_violated(w, here, "", "is not an allowed name");
        json_decref(name);
    }
    return ok;
}

static bool check_object(struct hfd_walk *w, const struct hfd_schema_node *n, const json_t *v,
                         const struct hfd_schema_place *at)
{
    size_t size = json_object_size(v);
    const char *key;
    json_t *value;
    bool ok = true;

    for (size_t i = 0; n->required != NULL && i < json_array_size(n->required); i++) {
        key = json_string_value(json_array_get(n->required, i));
        if (json_object_get(v, key) == NULL)
            ok = walk_violated(w, at, "required", "\"%.80s\" is required", key);
    }
    if (size < n->min_properties)
        ok = walk_violated(w, at, "min", "must have at least %zu member%s", n->min_properties,
                           walk_plural(n->min_properties));
    if (size > n->max_properties)
        ok = walk_violated(w, at, "max", "must have at most %zu member%s", n->max_properties,
                           walk_plural(n->max_properties));
    for (size_t i = 0; i < n->member_count; i++) {
        const struct hfd_schema_place here = {.up = at, .in = v, .key = n->members[i].key};

        value = json_object_get(v, n->members[i].key);
        if (value != NULL)
            ok = check_node(w, n->members[i].node, value, &here) && ok;
    }
    if (n->pattern_count == 0 && n->additional_properties == NULL && n->property_names == NULL)
        return ok;
    json_object_foreach ((json_t *)(uintptr_t)v, key, value) {
        const struct hfd_schema_place here = {.up = at, .in = v, .key = key};

        ok = check_member(w, n, &here, value) && ok;
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
 * Compares neighbours in the order of their hashes, since only those can be the same. The work
 * counter bounds the cost of hostile hashes.
 */
static bool check_unique(struct hfd_walk *w, const json_t *v, const struct hfd_schema_place *at)
{
    size_t n = json_array_size(v);
    struct hashed *h = calloc(n + 1, sizeof(*h));
    bool ok = true;

    if (h == NULL)
        return walk_give_up(w, HFD_NOMEM);
    for (size_t i = 0; i < n; i++)
        h[i] = (struct hashed){json_hash(json_array_get(v, i), &w->work), i};
    qsort(h, n, sizeof(*h), by_hash);
    for (size_t i = 0; ok && i < n; i++)
        for (size_t k = i + 1; ok && k < n && h[k].hash == h[i].hash && w->work >= 0; k++)
            if (hfd_json_same(json_array_get(v, h[i].index), json_array_get(v, h[k].index),
                              &w->work))
                ok = walk_violated(w, at, "unique", "elements %zu and %zu are equal", h[i].index,
                                   h[k].index);
    free(h);
    return ok;
}

static bool check_array(struct hfd_walk *w, const struct hfd_schema_node *n, const json_t *v,
                        const struct hfd_schema_place *at)
{
    size_t size = json_array_size(v);
    bool contains = n->contains == NULL;
    bool ok = true;

    if (size < n->min_items)
        ok = walk_violated(w, at, "min", "must have at least %zu element%s", n->min_items,
                           walk_plural(n->min_items));
    if (size > n->max_items)
        ok = walk_violated(w, at, "max", "must have at most %zu element%s", n->max_items,
                           walk_plural(n->max_items));
    for (size_t i = 0; i < size; i++) {
        const struct hfd_schema_node *rest = n->tuple.count > 0 ? n->additional_items : n->items;
        const struct hfd_schema_node *item = i < n->tuple.count ? n->tuple.items[i] : rest;
        const struct hfd_schema_place here = {.up = at, .in = v, .index = i};

        if (item != NULL)
            ok = check_node(w, item, json_array_get(v, i), &here) && ok;
        contains = contains || fits_silently(w, n->contains, json_array_get(v, i), &here);
    }
    if (!contains)
        ok = walk_violated(w, at, "", "no element is of the required form");
    if (n->unique)
        ok = check_unique(w, v, at) && ok;
    return ok;
}

static size_t count_matching(struct hfd_walk *w, const struct hfd_schema_list *list,
                             const json_t *v, const struct hfd_schema_place *at, size_t enough)
{
    size_t matching = 0;

    for (size_t i = 0; i < list->count && matching < enough; i++)
        matching += fits_branch(w, list->items[i], v, at) ? 1 : 0;
    return matching;
}

static bool check_combinations(struct hfd_walk *w, const struct hfd_schema_node *n, const json_t *v,
                               const struct hfd_schema_place *at)
{
    bool ok = true;
    size_t matching;

    for (size_t i = 0; i < n->all_of.count; i++)
        ok = check_node(w, n->all_of.items[i], v, at) && ok;
    if (n->any_of.count == 1)
        /* says more than "none of the 1 allowed forms" */
        ok = check_node(w, n->any_of.items[0], v, at) && ok;
    else if (n->any_of.count > 1 && count_matching(w, &n->any_of, v, at, 1) == 0)
        ok = walk_violated(w, at, "", "fits none of the %zu allowed forms", n->any_of.count);
    if (n->one_of.count > 0) {
        matching = count_matching(w, &n->one_of, v, at, 2);
        if (matching == 0)
            ok = walk_violated(w, at, "", "fits none of the %zu allowed forms", n->one_of.count);
        else if (matching > 1)
            ok = walk_violated(w, at, "", "fits more than one of %zu forms that exclude each other",
                               n->one_of.count);
    }
    return ok;
}

static bool check_conditions(struct hfd_walk *w, const struct hfd_schema_node *n, const json_t *v,
                             const struct hfd_schema_place *at)
{
    const struct hfd_schema_node *branch;
    bool ok = true;

    if (n->negated != NULL && fits_silently(w, n->negated, v, at))
        ok = walk_violated(w, at, "", "is of a form that is not allowed");
    if (n->condition == NULL)
        return ok;
    branch = fits_silently(w, n->condition, v, at) ? n->consequence : n->alternative;
    return (branch == NULL || check_node(w, branch, v, at)) && ok;
}

static bool check_body(struct hfd_walk *w, const struct hfd_schema_node *n, const json_t *v,
                       const struct hfd_schema_place *at)
{
    bool ok;

    if (n->types != 0 && (n->types & scalar_type(v)) == 0)
        return scalar_wrong_type(w, at, n->types, v);
    ok = scalar_check_enum(w, n, v, at);
    if (json_is_string(v))
        ok = scalar_check_string(w, n, v, at) && ok;
    else if (json_is_number(v))
        ok = scalar_check_number(w, n, v, at) && ok;
    else if (json_is_object(v))
        ok = check_object(w, n, v, at) && ok;
    else if (json_is_array(v))
        ok = check_array(w, n, v, at) && ok;
    ok = check_combinations(w, n, v, at) && ok;
    return check_conditions(w, n, v, at) && ok;
}

static bool check_node(struct hfd_walk *w, const struct hfd_schema_node *n, const json_t *v,
                       const struct hfd_schema_place *at)
{
    json_t *number;
    bool ok;

    if (w->rc != HFD_OK)
        return false;
    if (--w->work < 0 || w->depth >= HFD_WALK_DEPTH_MAX)
        return walk_give_up(w, HFD_LIMIT);
    if (n->never)
        return walk_violated(w, at, "", "is not allowed");
    if (n->nullable && json_is_null(v))
        return true;
    number = spelled_number(w, n, v);
    w->depth++;
    ok = n->ref != NULL ? check_node(w, n->ref, v, at)
                        : check_body(w, n, number != NULL ? number : v, at);
    w->depth--;
    if (ok && number != NULL)
        spelled_note(w, at);
    json_decref(number);
    return ok && w->rc == HFD_OK;
}

static hfd_rc run_schema(struct hfd_walk *w, const json_t *doc, struct hfd_err *err)
{
    const struct hfd_schema_place top = {.key = w->use->root};
    struct hfd_violations *out = w->out;
    const struct hfd_violation *first = &out->items[0];
    char field[128]; /* longer than err->field, so that hfd_fail_field marks the cut */
    bool ok;

    out->count = 0;
    ok = check_node(w, w->use->schema->root, doc, &top);
    if (w->work < 0)
        walk_give_up(w, HFD_LIMIT); /* comparing stops without an error */
    if (w->rc != HFD_OK)
        out->count = 0;
    if (w->rc == HFD_NOMEM)
        return hfd_fail_nomem(err, "validate a document");
    if (w->rc != HFD_OK)
        return hfd_fail(err, HFD_LIMIT, "the document takes too much work to validate");
    if (ok)
        return HFD_OK;
    snprintf(field, sizeof(field), "%.*s", HFD_SLICE_FMT(first->field));
    return hfd_fail_field(err, HFD_INVALID, field, "%s%s%.*s", field, field[0] != '\0' ? ": " : "",
                          HFD_SLICE_FMT(first->message));
}

hfd_rc hfd_schema_validate(const struct hfd_schema_use *use, const json_t *doc,
                           struct hfd_arena *mem, struct hfd_violations *out, struct hfd_err *err)
{
    struct hfd_walk w = {.use = use, .mem = mem, .out = out, .work = WORK_MAX};

    return run_schema(&w, doc, err);
}

hfd_rc hfd_schema_validate_numbers(const struct hfd_schema_use *use, json_t *doc,
                                   struct hfd_arena *mem, struct hfd_violations *out,
                                   struct hfd_err *err)
{
    const struct hfd_schema_use lenient = {use->schema, use->root, true, use->unknown};
    struct hfd_walk w = {.use = &lenient, .mem = mem, .out = out, .work = WORK_MAX};
    hfd_rc rc = run_schema(&w, doc, err);

    if (rc != HFD_OK || w.spelled == NULL)
        return rc;
    for (const struct hfd_spelled *s = w.spelled; s != NULL; s = s->earlier)
        if (spelled_store(s) != HFD_OK)
            return hfd_fail_nomem(err, "store the numbers of a document");
    /* Parts of the schema without a type have seen strings. */
    return hfd_schema_validate(use, doc, mem, out, err);
}
