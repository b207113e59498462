#include "store/postgres/writes.h"

void hfd_writes_init(struct hfd_writes *w)
{
    *w = (struct hfd_writes){.first = NULL};
    hfd_arena_init(&w->mem, HFD_WRITES_BYTES_MAX);
}

void hfd_writes_fini(struct hfd_writes *w)
{
    hfd_arena_fini(&w->mem);
    w->first = w->last = w->open = NULL;
}

static uint64_t hash_of(const struct hfd_db_use *of, const struct hfd_value *values)
{
    uint64_t h = HFD_HASH_START;

    for (size_t i = 0; i < of->equal_count; i++) {
        const struct hfd_value *v = &values[of->equals[i].param - 1];

        if (v->kind == HFD_VALUE_I64)
            h = (h ^ (uint64_t)v->as.i64) * UINT64_C(0x9E3779B97F4A7C15);
        else
            h = hfd_slice_hash_end(h, v->as.bytes);
    }
    return h ^ h >> 32;
}

/* Returns true when the equals can be compared: none is NULL, or a number that is rounded. */
static bool is_comparable(const struct hfd_db_use *of, const struct hfd_value *values)
{
    bool all = true;

    for (size_t i = 0; all && i < of->equal_count; i++) {
        const struct hfd_value *v = &values[of->equals[i].param - 1];

        all = !v->null && v->kind != HFD_VALUE_F64 && v->kind != HFD_VALUE_NONE;
    }
    return all;
}

static bool are_same(const struct hfd_db_use *of, const struct hfd_value *a,
                     const struct hfd_value *b)
{
    bool same = true;

    for (size_t i = 0; same && i < of->equal_count; i++)
        same = hfd_value_is_same(&a[of->equals[i].param - 1], &b[of->equals[i].param - 1]);
    return same;
}

static struct hfd_write **bucket_of(const struct hfd_write_set *set, const struct hfd_value *values)
{
    return &set->buckets[hash_of(set->shape->of, values) % HFD_WRITES_BUCKETS];
}

static void add_to_bucket(struct hfd_write_set *set, struct hfd_write *write)
{
    struct hfd_write **bucket = bucket_of(set, write->values);

    write->in_bucket = *bucket;
    *bucket = write;
}

static bool has_equal(const struct hfd_write_set *set, const struct hfd_value *values)
{
    const struct hfd_write *w = *bucket_of(set, values);

    while (w != NULL && !are_same(set->shape->of, w->values, values))
        w = w->in_bucket;
    return w != NULL;
}

/* Returns true when the write can be one of the set. */
static bool can_join(struct hfd_writes *w, struct hfd_write_set *set,
                     const struct hfd_write_new *new)
{
    const struct hfd_db_use *of = new->use.shape->of;

    if (set == NULL || set->shape != new->use.shape || of->set == NULL ||
        set->expects_one != new->expects_one)
        return false;
    if (!of->differs)
        return true;
    if (!is_comparable(of, set->first->values) || !is_comparable(of, new->use.values))
        return false;
    if (set->buckets == NULL) {
        set->buckets = hfd_arena_array(&w->mem, HFD_WRITES_BUCKETS, sizeof(struct hfd_write *));
        if (set->buckets == NULL)
            return false;
        add_to_bucket(set, set->first);
    }
    return !has_equal(set, new->use.values);
}

/* The list of the write's table. */
static struct hfd_write_table *find_table(struct hfd_writes *w, const char *name)
{
    struct hfd_write_table *table = name != NULL ? w->open : NULL;

    while (table != NULL && strcmp(table->name, name) != 0)
        table = table->next;
    if (table != NULL)
        return table;
    table = hfd_arena_alloc(&w->mem, sizeof(*table));
    if (table == NULL)
        return NULL;
    table->name = name;
    if (w->last != NULL)
        w->last->next = table;
    else
        w->first = table;
    w->last = table;
    if (name == NULL) /* what comes later is behind it */
        w->open = NULL;
    else if (w->open == NULL)
        w->open = table;
    return table;
}

static struct hfd_write_set *add_set(struct hfd_writes *w, struct hfd_write_table *table,
                                     const struct hfd_write_new *new)
{
    struct hfd_write_set *set = hfd_arena_alloc(&w->mem, sizeof(*set));

    if (set == NULL)
        return NULL;
    set->shape = new->use.shape;
    set->expects_one = new->expects_one;
    if (table->last != NULL)
        table->last->next = set;
    else
        table->first = set;
    table->last = set;
    return set;
}

hfd_rc hfd_writes_add(struct hfd_writes *w, const struct hfd_write_new *new, struct hfd_err *err)
{
    struct hfd_write_table *table = find_table(w, new->use.shape->of->table);
    struct hfd_write *write = hfd_arena_alloc(&w->mem, sizeof(*write));
    struct hfd_write_set *set;

    w->count++;
    if (write != NULL)
        write->values = hfd_values_copy(&w->mem, new->use.values, new->use.shape->params);
    if (table == NULL || write == NULL || write->values == NULL)
        return hfd_fail_nomem(err, "a write of the store");
    set = can_join(w, table->last, new) ? table->last : add_set(w, table, new);
    if (set == NULL)
        return hfd_fail_nomem(err, "a write of the store");
    if (set->buckets != NULL)
        add_to_bucket(set, write);
    if (set->last != NULL)
        set->last->next = write;
    else
        set->first = write;
    set->last = write;
    set->count++;
    return HFD_OK;
}
