#include "store/postgres/touch.h"

/* Returns false when both are known to differ. */
static bool value_may_equal(const struct hfd_value *a, const struct hfd_value *b)
{
    if (a->null || b->null || a->kind != b->kind)
        return true;
    if (a->kind == HFD_VALUE_I64)
        return a->as.i64 == b->as.i64;
    if (a->kind == HFD_VALUE_TEXT || a->kind == HFD_VALUE_BLOB)
        return hfd_slice_eq(a->as.bytes, b->as.bytes);
    return true;
}

bool hfd_value_is_same(const struct hfd_value *a, const struct hfd_value *b)
{
    if (a->kind != b->kind || a->null != b->null || a->kind == HFD_VALUE_F64)
        return false;
    return a->null || value_may_equal(a, b);
}

static bool names_table(const struct hfd_shape *s, hfd_slice table)
{
    for (size_t i = 0; i < s->table_count; i++)
        if (hfd_slice_eq(s->tables[i], table))
            return true;
    return false;
}

static bool differ(const struct hfd_shape_use *a, int of_a, const struct hfd_shape_use *b, int of_b)
{
    return !value_may_equal(&a->values[of_a - 1], &b->values[of_b - 1]);
}

/* The text of a write lives as long as the program; its shape may not. */
static const char *place_of(const struct hfd_shape_use *write)
{
    return write->shape->tables[0].p;
}

static bool is_still_apart(const struct hfd_apart *apart, const struct hfd_shape_use *write,
                           const struct hfd_shape_use *read)
{
    return apart != NULL && apart->write == place_of(write) &&
           differ(write, apart->of_write, read, apart->of_read);
}

static void note(struct hfd_apart *apart, const struct hfd_shape_use *write, int of_write,
                 int of_read)
{
    if (apart != NULL)
        *apart = (struct hfd_apart){place_of(write), of_write, of_read};
}

/* Returns true when a column has different values in the rows of both. */
static bool is_apart(const struct hfd_shape_use *a, const struct hfd_shape_use *b,
                     struct hfd_apart *apart)
{
    for (size_t i = 0; i < a->shape->equal_count; i++)
        for (size_t k = 0; k < b->shape->equal_count; k++) {
            const struct hfd_shape_equal *x = &a->shape->equals[i], *y = &b->shape->equals[k];

            if (!hfd_slice_eq(x->column, y->column) || !differ(a, x->param, b, y->param))
                continue;
            note(apart, a, x->param, y->param);
            return true;
        }
    return false;
}

bool hfd_shape_touches(const struct hfd_shape_use *write, const struct hfd_shape_use *other,
                       struct hfd_apart *apart)
{
    if (write->shape->kind == HFD_SHAPE_OTHER || other->shape->kind == HFD_SHAPE_OTHER)
        return true;
    if (is_still_apart(apart, write, other))
        return false;
    return names_table(other->shape, write->shape->tables[0]) && !is_apart(write, other, apart);
}

bool hfd_shape_fills(const struct hfd_shape_use *write, const struct hfd_shape_use *read,
                     struct hfd_apart *apart)
{
    const struct hfd_shape *w = write->shape;
    const struct hfd_shape_empty *empty = &read->shape->empty;

    if (w->kind == HFD_SHAPE_OTHER)
        return true;
    if (is_still_apart(apart, write, read))
        return false;
    if (hfd_slice_eq(w->tables[0], empty->other))
        return w->kind == HFD_SHAPE_DELETE || w->kind == HFD_SHAPE_UPDATE;
    if (!hfd_slice_eq(w->tables[0], empty->table))
        return false;
    for (size_t i = 0; i < w->equal_count; i++) {
        if (!hfd_slice_eq(w->equals[i].column, empty->equal.column))
            continue;
        if (!differ(write, w->equals[i].param, read, empty->equal.param))
            return true;
        note(apart, write, w->equals[i].param, empty->equal.param);
        return false;
    }
    return true;
}
