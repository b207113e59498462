/*
 * Compares JSON values. See equal.h. Documents come from hfd_json_parse, so their depth is bounded.
 */
#include "schemas/equal.h"

#include <float.h>
#include <string.h>

_Static_assert(LDBL_MANT_DIG >= 64, "a long double must hold every int64");

int hfd_json_number_cmp(const json_t *a, const json_t *b)
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
        return hfd_json_number_cmp(a, b) == 0;
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

uint64_t hfd_json_hash(const json_t *v, int64_t *work)
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
            h = mix(h + 5, hfd_json_hash(json_array_get(v, i), work));
        return mix(4, h);
    }
    if (json_is_object(v)) {
        json_object_foreach ((json_t *)(uintptr_t)v, key, value)
            h += mix(hash_bytes(key, strlen(key)),
                     hfd_json_hash(value, work)); /* a sum: the order does not matter */
        return mix(6, h);
    }
    return mix(7, (uint64_t)json_typeof(v));
}
