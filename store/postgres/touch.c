#include "store/postgres/touch.h"

bool hfd_value_may_equal(const struct hfd_value *a, const struct hfd_value *b)
{
    if (a->null || b->null || a->kind != b->kind)
        return true;
    if (a->kind == HFD_VALUE_I64)
        return a->as.i64 == b->as.i64;
    if (a->kind == HFD_VALUE_TEXT || a->kind == HFD_VALUE_BLOB)
        return hfd_slice_eq(a->as.bytes, b->as.bytes);
    return true;
}

static bool names_table(const struct hfd_shape *s, hfd_slice table)
{
    for (size_t i = 0; i < s->table_count; i++)
        if (hfd_slice_eq(s->tables[i], table))
            return true;
    return false;
}

/* Returns true when a column has different values in the rows of both. */
static bool is_apart(const struct hfd_shape_use *a, const struct hfd_shape_use *b)
{
    for (size_t i = 0; i < a->shape->equal_count; i++)
        for (size_t k = 0; k < b->shape->equal_count; k++) {
            const struct hfd_shape_equal *x = &a->shape->equals[i], *y = &b->shape->equals[k];

            if (hfd_slice_eq(x->column, y->column) &&
                !hfd_value_may_equal(&a->values[x->param - 1], &b->values[y->param - 1]))
                return true;
        }
    return false;
}

bool hfd_shape_touches(const struct hfd_shape_use *write, const struct hfd_shape_use *other)
{
    if (write->shape->kind == HFD_SHAPE_OTHER || other->shape->kind == HFD_SHAPE_OTHER)
        return true;
    return names_table(other->shape, write->shape->tables[0]) && !is_apart(write, other);
}

bool hfd_shape_fills(const struct hfd_shape_use *write, const struct hfd_shape_use *read)
{
    const struct hfd_shape *w = write->shape;
    const struct hfd_shape_empty *empty = &read->shape->empty;

    if (w->kind == HFD_SHAPE_OTHER)
        return true;
    if (hfd_slice_eq(w->tables[0], empty->other))
        return w->kind == HFD_SHAPE_DELETE || w->kind == HFD_SHAPE_UPDATE;
    if (!hfd_slice_eq(w->tables[0], empty->table))
        return false;
    for (size_t i = 0; i < w->equal_count; i++)
        if (hfd_slice_eq(w->equals[i].column, empty->equal.column))
            return hfd_value_may_equal(&write->values[w->equals[i].param - 1],
                                       &read->values[empty->equal.param - 1]);
    return true;
}

bool hfd_shape_commutes(const struct hfd_shape_use *a, const struct hfd_shape_use *b)
{
    if (!hfd_shape_touches(a, b) && !hfd_shape_touches(b, a))
        return !names_table(b->shape, a->shape->tables[0]) || a->shape == b->shape ||
               a->shape->keeps_unique || b->shape->keeps_unique;
    return false;
}
