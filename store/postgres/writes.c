#include "store/postgres/writes.h"

#include "driver/base/check.h"
#include "store/postgres/touch.h"

/* How many writes one is compared with before it begins a set of its own. */
#define COMPARED_MAX 2048

void hfd_writes_init(struct hfd_writes *w)
{
    *w = (struct hfd_writes){.first = NULL};
    hfd_arena_init(&w->mem, HFD_WRITES_BYTES_MAX);
}

void hfd_writes_fini(struct hfd_writes *w)
{
    hfd_arena_fini(&w->mem);
    w->first = w->last = NULL;
}

void hfd_writes_clear(struct hfd_writes *w)
{
    hfd_writes_fini(w);
}

struct hfd_value *hfd_values_copy(struct hfd_arena *mem, const struct hfd_value *values, int count)
{
    struct hfd_value *copy = hfd_arena_array(mem, (size_t)count + 1, sizeof(*copy));

    for (int i = 0; copy != NULL && i < count; i++) {
        const bool bytes = values[i].kind == HFD_VALUE_TEXT || values[i].kind == HFD_VALUE_BLOB;

        copy[i] = values[i];
        if (!bytes || values[i].null)
            continue;
        copy[i].as.bytes = hfd_arena_dup(mem, values[i].as.bytes);
        if (copy[i].as.bytes.p == NULL)
            return NULL;
    }
    return copy;
}

static uint64_t hash_of(const struct hfd_shape_use *use)
{
    uint64_t h = HFD_HASH_START;

    for (size_t i = 0; i < use->shape->equal_count; i++) {
        const struct hfd_value *v = &use->values[use->shape->equals[i].param - 1];

        if (v->kind == HFD_VALUE_I64)
            h = (h ^ (uint64_t)v->as.i64) * UINT64_C(0x9E3779B97F4A7C15);
        else if (v->kind != HFD_VALUE_F64 && !v->null)
            h = hfd_slice_hash_end(h, v->as.bytes);
    }
    return h ^ h >> 32;
}

/* Returns true when the rows of a write may be those of one in the set. */
static bool has_equal(const struct hfd_write_set *set, const struct hfd_shape_use *use,
                      uint64_t hash)
{
    const struct hfd_write *w = set->buckets[hash % HFD_WRITES_BUCKETS];

    for (; w != NULL; w = w->in_bucket)
        if (w->hash == hash &&
            hfd_shape_touches(&(struct hfd_shape_use){set->shape, w->values}, use, NULL))
            return true;
    return false;
}

/* Values that are NULL, or not comparable, tell nothing. */
static bool is_comparable(const struct hfd_shape_use *use)
{
    for (size_t i = 0; i < use->shape->equal_count; i++) {
        const struct hfd_value *v = &use->values[use->shape->equals[i].param - 1];

        if (v->null || v->kind == HFD_VALUE_F64 || v->kind == HFD_VALUE_NONE)
            return false;
    }
    return true;
}

/* Returns true when the write can join a set of its statement. */
static bool can_join(const struct hfd_write_set *set, const struct hfd_write_new *new,
                     uint64_t hash)
{
    if (set->sql != new->sql || !set->shape->settable || set->expects_one != new->expects_one)
        return false;
    if (new->use.shape->kind == HFD_SHAPE_INSERT || new->use.shape->kind == HFD_SHAPE_DELETE)
        return true;
    return set->comparable && is_comparable(&new->use) && !has_equal(set, &new->use, hash);
}

static bool same_columns(const struct hfd_shape *a, const struct hfd_shape *b)
{
    bool same = a->equal_count == b->equal_count && a->equal_count > 0;

    for (size_t i = 0; same && i < a->equal_count; i++)
        same = hfd_slice_eq(a->equals[i].column, b->equals[i].column);
    return same;
}

/* Returns true when the write may be done before all of the set. */
static bool can_pass(const struct hfd_write_set *set, const struct hfd_write_new *new,
                     uint64_t hash, int *compared)
{
    const struct hfd_shape_use one = {set->shape, set->first->values};

    if (same_columns(set->shape, new->use.shape) && set->comparable && is_comparable(&new->use) &&
        (set->shape->keeps_unique || new->use.shape->keeps_unique) &&
        hfd_slice_eq(set->shape->tables[0], new->use.shape->tables[0]))
        return !has_equal(set, &new->use, hash);
    if (!hfd_shape_commutes(&one, &new->use))
        return false;
    for (const struct hfd_write *w = set->first->next; w != NULL; w = w->next)
        if (++*compared > COMPARED_MAX ||
            !hfd_shape_commutes(&(struct hfd_shape_use){set->shape, w->values}, &new->use))
            return false;
    return true;
}

static bool shares_table(const struct hfd_shape *a, const struct hfd_shape *b)
{
    if (a->kind == HFD_SHAPE_OTHER || b->kind == HFD_SHAPE_OTHER)
        return true;
    for (size_t i = 0; i < a->table_count; i++)
        for (size_t k = 0; k < b->table_count; k++)
            if (hfd_slice_eq(a->tables[i], b->tables[k]))
                return true;
    return false;
}

/* The set that the write can join; NULL = a new one. */
static struct hfd_write_set *find_set(struct hfd_writes *w, const struct hfd_write_new *new,
                                      uint64_t hash)
{
    int compared = 0;
    struct hfd_write_set *set = w->last;

    for (; set != NULL; set = set->before) {
        if (can_join(set, new, hash))
            return set;
        if (shares_table(set->shape, new->use.shape) && !can_pass(set, new, hash, &compared))
            return NULL;
    }
    return NULL;
}

static struct hfd_write_set *add_set(struct hfd_writes *w, const struct hfd_write_new *new)
{
    struct hfd_write_set *set = hfd_arena_alloc(&w->mem, sizeof(*set));

    if (set == NULL)
        return NULL;
    set->sql = new->sql;
    set->shape = new->use.shape;
    set->before = w->last;
    set->expects_one = new->expects_one;
    set->comparable = true;
    if (w->last != NULL)
        w->last->next = set;
    else
        w->first = set;
    w->last = set;
    return set;
}

hfd_rc hfd_writes_add(struct hfd_writes *w, const struct hfd_write_new *new, struct hfd_err *err)
{
    const uint64_t hash = hash_of(&new->use);
    struct hfd_write_set *set = find_set(w, new, hash);
    struct hfd_write *write = hfd_arena_alloc(&w->mem, sizeof(*write));
    struct hfd_write **bucket;

    w->count++;
    if (write != NULL)
        write->values = hfd_values_copy(&w->mem, new->use.values, new->use.shape->params);
    if (write == NULL || write->values == NULL)
        return hfd_fail_nomem(err, "a write of the store");
    if (set == NULL)
        set = add_set(w, new);
    if (set == NULL)
        return hfd_fail_nomem(err, "a write of the store");
    bucket = &set->buckets[hash % HFD_WRITES_BUCKETS];
    write->hash = hash;
    write->in_bucket = *bucket;
    *bucket = write;
    if (set->last != NULL)
        set->last->next = write;
    else
        set->first = write;
    set->last = write;
    set->count++;
    set->comparable = set->comparable && is_comparable(&new->use);
    return HFD_OK;
}
