#include "store/postgres/value.h"

#define INT2 21u
#define INT4 23u
#define OID 26u
#define NUMERIC 1700u
#define INT8_ARRAY 1016u
#define TEXT_ARRAY 1009u
#define BYTEA_ARRAY 1001u
#define FLOAT8_ARRAY 1022u
#define NUMERIC_BASE 10000
#define NUMERIC_NEGATIVE 0x4000u

/* Reads big-endian bytes, with the sign of the first one. */
static int64_t read_be(const char *p, size_t len)
{
    uint64_t v = len > 0 && ((unsigned char)p[0] & 0x80u) != 0 ? UINT64_MAX : 0;

    for (size_t i = 0; i < len; i++)
        v = v << 8 | (unsigned char)p[i];
    return (int64_t)v;
}

/* Digits to the base of 10,000: how many, the power of the first, the sign, the scale, digits. */
static bool read_numeric(hfd_slice b, int64_t *out)
{
    int64_t count, weight, sum = 0;
    uint64_t sign;

    if (b.len < 8)
        return false;
    count = read_be(b.p, 2);
    weight = read_be(b.p + 2, 2);
    sign = (uint64_t)read_be(b.p + 4, 2) & 0xffffu;
    if (count < 0 || b.len != 8 + 2 * (size_t)count || (sign != 0 && sign != NUMERIC_NEGATIVE))
        return false;
    if (count > weight + 1) /* trailing digits are never 0: it has a fraction */
        return false;
    for (int64_t i = 0; i <= weight; i++) {
        const int64_t digit = i < count ? read_be(b.p + 8 + 2 * i, 2) : 0;

        if (__builtin_mul_overflow(sum, NUMERIC_BASE, &sum) ||
            __builtin_sub_overflow(sum, digit, &sum)) /* the lowest number has no opposite */
            return false;
    }
    if (sign == 0 && sum == INT64_MIN)
        return false;
    *out = sign == 0 ? -sum : sum;
    return true;
}

bool hfd_pg_number(unsigned type, hfd_slice b, int64_t *out)
{
    *out = 0;
    switch (type) {
    case HFD_PG_BOOL:
        *out = b.len == 1 && b.p[0] != 0;
        return b.len == 1;
    case HFD_PG_INT8:
    case INT4:
    case INT2:
        *out = read_be(b.p, b.len);
        return b.len <= 8;
    case OID:
        *out = read_be(b.p, b.len) & 0xffffffff;
        return b.len == 4;
    case NUMERIC:
        return read_numeric(b, out);
    default:
        return false;
    }
}

bool hfd_pg_is_text(unsigned type)
{
    return type == HFD_PG_TEXT || type == HFD_PG_BYTEA || type == 1043u || type == 19u ||
           type == 705u || type == 114u; /* varchar, name, unknown, json */
}

/* ---- arrays as parameters ---- */

unsigned hfd_pg_array_type(enum hfd_value_kind kind)
{
    static const unsigned types[] = {[HFD_VALUE_NONE] = TEXT_ARRAY,
                                     [HFD_VALUE_I64] = INT8_ARRAY,
                                     [HFD_VALUE_F64] = FLOAT8_ARRAY,
                                     [HFD_VALUE_TEXT] = TEXT_ARRAY,
                                     [HFD_VALUE_BLOB] = BYTEA_ARRAY};

    return types[kind];
}

static unsigned element_type(enum hfd_value_kind kind)
{
    static const unsigned types[] = {[HFD_VALUE_NONE] = HFD_PG_TEXT,
                                     [HFD_VALUE_I64] = HFD_PG_INT8,
                                     [HFD_VALUE_F64] = HFD_PG_FLOAT8,
                                     [HFD_VALUE_TEXT] = HFD_PG_TEXT,
                                     [HFD_VALUE_BLOB] = HFD_PG_BYTEA};

    return types[kind];
}

/* The highest byte first. */
static void add_be(struct hfd_buf *b, uint64_t v, size_t bytes)
{
    char out[8];

    for (size_t i = 0; i < bytes; i++)
        out[i] = (char)(v >> (8 * (bytes - 1 - i)));
    hfd_buf_add(b, (hfd_slice){out, bytes});
}

void hfd_pg_array_begin(struct hfd_buf *b, enum hfd_value_kind kind, size_t count)
{
    add_be(b, 1, 4); /* dimensions */
    add_be(b, 1, 4); /* some may be NULL */
    add_be(b, element_type(kind), 4);
    add_be(b, count, 4);
    add_be(b, 1, 4); /* the first index */
}

void hfd_pg_array_add(struct hfd_buf *b, const struct hfd_value *v)
{
    uint64_t bits = 0;

    if (v->null || v->kind == HFD_VALUE_NONE) {
        add_be(b, UINT32_MAX, 4);
    } else if (v->kind == HFD_VALUE_I64 || v->kind == HFD_VALUE_F64) {
        memcpy(&bits, &v->as, sizeof(bits));
        add_be(b, 8, 4);
        add_be(b, bits, 8);
    } else {
        add_be(b, v->as.bytes.len, 4);
        hfd_buf_add(b, v->as.bytes);
    }
}
