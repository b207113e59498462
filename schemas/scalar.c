/* Checks of single values. See scalar_int.h. */
#include "schemas/scalar_int.h"

#include <math.h>

#include "driver/base/clock.h"
#include "driver/base/jsonx.h"
#include "schemas/equal.h"

static bool is_integral(const json_t *v)
{
    return json_is_integer(v) ||
           (json_is_real(v) && json_real_value(v) == floor(json_real_value(v)));
}

unsigned hfd_scalar_type(const json_t *v)
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

bool hfd_scalar_wrong_type(struct hfd_walk *w, const struct hfd_place *at, unsigned types,
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
    return hfd_walk_violated(w, at, "", "expected %s, got %s", wanted, hfd_json_type_name(v));
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

bool hfd_scalar_check_enum(struct hfd_walk *w, const struct hfd_schema_node *n, const json_t *v,
                           const struct hfd_place *at)
{
    char text[HFD_WALK_TEXT_MAX - 40] = "";
    size_t len = 0;
    bool found = false;

    if (n->constant != NULL && !hfd_json_same(n->constant, v, &w->work)) {
        (void)add_value(n->constant, text, sizeof(text), &len);
        return hfd_walk_violated(w, at, "enum", "must be %s", text);
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
    return hfd_walk_violated(w, at, "enum", "must be one of %s", text);
}

bool hfd_scalar_check_string(struct hfd_walk *w, const struct hfd_schema_node *n, const json_t *v,
                             const struct hfd_place *at)
{
    const char *text = json_string_value(v);
    size_t len = json_string_length(v);
    size_t points = 0;
    int64_t ignored;
    bool ok = true;

    for (size_t i = 0; i < len; i++)
        points += ((unsigned char)text[i] & 0xc0u) != 0x80u ? 1 : 0;
    if (points < n->min_length)
        ok = hfd_walk_violated(w, at, "min_length", "must be at least %zu character%s",
                               n->min_length, hfd_walk_plural(n->min_length));
    if (points > n->max_length)
        ok = hfd_walk_violated(w, at, "max_length", "must be at most %zu character%s",
                               n->max_length, hfd_walk_plural(n->max_length));
    if (n->pattern != NULL && !hfd_walk_matches(w, n->pattern, text, len))
        ok = hfd_walk_violated(w, at, "pattern", "must match the pattern %.200s", n->pattern->text);
    if (n->date_time && hfd_time_parse((hfd_slice){text, len}, &ignored, NULL) != HFD_OK)
        ok =
            hfd_walk_violated(w, at, "format", "must be a date and time like 2025-01-01T00:00:00Z");
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

bool hfd_scalar_check_number(struct hfd_walk *w, const struct hfd_schema_node *n, const json_t *v,
                             const struct hfd_place *at)
{
    char text[32];
    bool ok = true;

    if (n->minimum != NULL && hfd_json_number_cmp(v, n->minimum) < 0)
        ok = hfd_walk_violated(w, at, "min", "must be at least %s", number_text(n->minimum, text));
    if (n->maximum != NULL && hfd_json_number_cmp(v, n->maximum) > 0)
        ok = hfd_walk_violated(w, at, "max", "must be at most %s", number_text(n->maximum, text));
    if (n->exclusive_minimum != NULL && hfd_json_number_cmp(v, n->exclusive_minimum) <= 0)
        ok = hfd_walk_violated(w, at, "min", "must be greater than %s",
                               number_text(n->exclusive_minimum, text));
    if (n->exclusive_maximum != NULL && hfd_json_number_cmp(v, n->exclusive_maximum) >= 0)
        ok = hfd_walk_violated(w, at, "max", "must be less than %s",
                               number_text(n->exclusive_maximum, text));
    if (n->multiple_of != NULL && !is_multiple(v, n->multiple_of))
        ok = hfd_walk_violated(w, at, "", "must be a multiple of %s",
                               number_text(n->multiple_of, text));
    return ok;
}
