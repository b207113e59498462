#include "store/postgres/array.h"

#define INT8_ARRAY 1016u
#define TEXT_ARRAY 1009u
#define BYTEA_ARRAY 1001u
#define FLOAT8_ARRAY 1022u

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
    static const unsigned types[] = {[HFD_VALUE_NONE] = 25,
                                     [HFD_VALUE_I64] = 20,
                                     [HFD_VALUE_F64] = 701,
                                     [HFD_VALUE_TEXT] = 25,
                                     [HFD_VALUE_BLOB] = 17};

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
