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

static bool is_table(const struct hfd_shape *s, const char *table)
{
    return s->of->table == table || strcmp(s->of->table, table) == 0;
}

static bool differ(const struct hfd_shape_use *a, int of_a, const struct hfd_shape_use *b, int of_b)
{
    return !value_may_equal(&a->values[of_a - 1], &b->values[of_b - 1]);
}

static bool is_still_apart(const struct hfd_apart *apart, const struct hfd_shape_use *write,
                           const struct hfd_shape_use *read)
{
    return apart != NULL && apart->write == write->shape &&
           differ(write, apart->of_write, read, apart->of_read);
}

static void note(struct hfd_apart *apart, const struct hfd_shape_use *write, int of_write,
                 int of_read)
{
    if (apart != NULL)
        *apart = (struct hfd_apart){write->shape, of_write, of_read};
}

/* Returns true when a column has different values in the rows of both. */
static bool is_apart(const struct hfd_shape_use *a, const struct hfd_shape_use *b,
                     struct hfd_apart *apart)
{
    const struct hfd_db_use *x = a->shape->of, *y = b->shape->of;

    for (size_t i = 0; i < x->equal_count; i++)
        for (size_t k = 0; k < y->equal_count; k++) {
            if (strcmp(x->equals[i].column, y->equals[k].column) != 0 ||
                !differ(a, x->equals[i].param, b, y->equals[k].param))
                continue;
            note(apart, a, x->equals[i].param, y->equals[k].param);
            return true;
        }
    return false;
}

bool hfd_shape_touches(const struct hfd_shape_use *write, const struct hfd_shape_use *read,
                       struct hfd_apart *apart)
{
    if (write->shape->of->table == NULL || read->shape->of->table == NULL)
        return true;
    if (is_still_apart(apart, write, read))
        return false;
    return is_table(read->shape, write->shape->of->table) && !is_apart(write, read, apart);
}

bool hfd_shape_fills(const struct hfd_shape_use *write, const struct hfd_shape_use *read,
                     struct hfd_apart *apart)
{
    const struct hfd_db_use *w = write->shape->of, *r = read->shape->of;

    if (w->table == NULL)
        return true;
    if (is_still_apart(apart, write, read))
        return false;
    if (is_table(write->shape, r->empty.other))
        return !w->adds;
    if (!is_table(write->shape, r->empty.table))
        return false;
    for (size_t i = 0; i < w->equal_count; i++) {
        if (strcmp(w->equals[i].column, r->empty.equal.column) != 0)
            continue;
        if (!differ(write, w->equals[i].param, read, r->empty.equal.param))
            return true;
        note(apart, write, w->equals[i].param, r->empty.equal.param);
        return false;
    }
    return true;
}
