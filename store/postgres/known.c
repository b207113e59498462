#include "store/postgres/known.h"

/* ---- what statements touch ---- */

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

/* Returns false when the write can change no row that the read reads. Errs on the safe side. */
static bool touches(const struct hfd_shape_use *write, const struct hfd_shape_use *read,
                    struct hfd_apart *apart)
{
    if (write->shape->of->table == NULL || read->shape->of->table == NULL)
        return true;
    if (is_still_apart(apart, write, read))
        return false;
    return is_table(read->shape, write->shape->of->table) && !is_apart(write, read, apart);
}

/* Returns false when the write cannot add the first row to an empty result. */
static bool fills(const struct hfd_shape_use *write, const struct hfd_shape_use *read,
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

/* ---- results ---- */

void hfd_knowns_init(struct hfd_knowns *k)
{
    *k = (struct hfd_knowns){.wanted = NULL};
    hfd_arena_init(&k->mem, HFD_KNOWN_BYTES_MAX);
}

void hfd_knowns_fini(struct hfd_knowns *k)
{
    hfd_arena_fini(&k->mem);
}

void hfd_knowns_clear(struct hfd_knowns *k)
{
    hfd_arena_fini(&k->mem);
    memset(k->buckets, 0, sizeof(k->buckets));
    k->wanted = NULL;
    k->wanted_count = k->table_count = 0;
    memset(k->places, 0, sizeof(k->places));
    k->group++;
}

static size_t bucket_of(const char *sql, const struct hfd_shape_use *use)
{
    uint64_t h = (uint64_t)(uintptr_t)sql * UINT64_C(0x9E3779B97F4A7C15);

    for (int i = 0; i < use->shape->params; i++) {
        const struct hfd_value *v = &use->values[i];

        if (v->kind == HFD_VALUE_I64)
            h = (h ^ (uint64_t)v->as.i64) * UINT64_C(0x9E3779B97F4A7C15);
        else if ((v->kind == HFD_VALUE_TEXT || v->kind == HFD_VALUE_BLOB) && !v->null)
            h = hfd_slice_hash_end(h, v->as.bytes);
    }
    return (size_t)((h ^ h >> 32) % HFD_KNOWN_BUCKETS);
}

static bool are_same(const struct hfd_value *a, const struct hfd_value *b, int count)
{
    bool same = true;

    for (int i = 0; same && i < count; i++)
        same = hfd_value_is_same(&a[i], &b[i]);
    return same;
}

struct hfd_known *hfd_known_find(const struct hfd_knowns *k, const char *sql,
                                 const struct hfd_shape_use *use, bool hidden)
{
    struct hfd_known *known = k->buckets[bucket_of(sql, use)];

    for (; known != NULL; known = known->in_bucket) {
        if (known->sql == sql && known->target == NULL && known->hidden == hidden &&
            are_same(known->values, use->values, known->shape->params))
            return known;
    }
    return NULL;
}

/* The list of results that read a table; NULL = there is no more place. */
static struct hfd_known_place **list_of(struct hfd_knowns *k, const char *table)
{
    for (size_t i = 0; i < k->table_count; i++)
        if (strcmp(k->tables[i], table) == 0)
            return &k->places[i];
    if (k->table_count == HFD_KNOWN_TABLES)
        return NULL;
    k->tables[k->table_count] = table;
    return &k->places[k->table_count++];
}

static bool list_it(struct hfd_knowns *k, struct hfd_known *known)
{
    const char *table = known->shape->of->table;
    struct hfd_known_place **list = list_of(k, table != NULL ? table : "");
    struct hfd_known_place *place = hfd_arena_alloc(&k->mem, sizeof(*place));

    if (list == NULL || place == NULL)
        return false;
    place->known = known;
    place->next = *list;
    *list = place;
    return true;
}

/* Adds a result that has not been read. */
static struct hfd_known *add(struct hfd_knowns *k, const struct hfd_known *new)
{
    const struct hfd_shape_use use = {new->shape, new->values};
    struct hfd_known **bucket = &k->buckets[bucket_of(new->sql, &use)];
    struct hfd_known *known = hfd_arena_alloc(&k->mem, sizeof(*known));

    if (known == NULL)
        return NULL;
    *known = *new;
    known->values = hfd_values_copy(&k->mem, new->values, new->shape->params);
    if (known->values == NULL || !list_it(k, known))
        return NULL;
    known->in_bucket = *bucket;
    *bucket = known;
    return known;
}

static struct hfd_known *want(struct hfd_knowns *k, const struct hfd_known *new)
{
    struct hfd_known *known = add(k, new);

    if (known == NULL)
        return NULL;
    known->in_wanted = k->wanted;
    k->wanted = known;
    k->wanted_count++;
    return known;
}

struct hfd_known *hfd_known_want(struct hfd_knowns *k, const char *sql,
                                 const struct hfd_shape_use *use)
{
    return want(k, &(struct hfd_known){.sql = sql, .shape = use->shape, .values = use->values});
}

hfd_rc hfd_known_follow(struct hfd_knowns *k, const struct hfd_known *follow, struct hfd_err *err)
{
    const struct hfd_shape_use use = {follow->shape, follow->values};
    const struct hfd_known *known = k->buckets[bucket_of(follow->sql, &use)];

    for (; known != NULL; known = known->in_bucket)
        if (known->sql == follow->sql && known->target == follow->target &&
            are_same(known->values, follow->values, known->shape->params))
            return HFD_OK;
    return want(k, follow) != NULL ? HFD_OK : hfd_fail_nomem(err, "a result of the store");
}

hfd_rc hfd_known_found(struct hfd_knowns *k, const struct hfd_known *follow,
                       const struct hfd_value *key, struct hfd_known **out, struct hfd_err *err)
{
    const struct hfd_shape_use use = {follow->target_shape, key};

    *out = hfd_known_find(k, follow->target, &use, false);
    if (*out != NULL && (*out)->source != follow)
        *out = NULL;
    else if (*out == NULL) {
        *out = add(k, &(struct hfd_known){.sql = follow->target,
                                          .shape = follow->target_shape,
                                          .values = key,
                                          .source = follow,
                                          .read = true});
        if (*out == NULL)
            return hfd_fail_nomem(err, "a result of the store");
    }
    return HFD_OK;
}

static bool is_usual(const struct hfd_shape_use *use)
{
    bool numbers = use->shape->params <= HFD_KNOWN_USUAL_PARAMS;

    for (int i = 0; numbers && i < use->shape->params; i++)
        numbers = use->values[i].kind == HFD_VALUE_I64 && use->values[i].as.i64 < 1000;
    return numbers;
}

void hfd_known_note_usual(struct hfd_knowns *k, const char *sql, const struct hfd_shape_use *use,
                          bool alone)
{
    struct hfd_known_usual *u = &k->usual[0];

    if (!is_usual(use))
        return;
    for (size_t i = 0; i < HFD_KNOWN_USUAL; i++) {
        if (k->usual[i].alone == alone && k->usual[i].sql == sql &&
            are_same(k->usual[i].values, use->values, use->shape->params)) {
            k->usual[i].used = k->group;
            return;
        }
        if (k->usual[i].used < u->used)
            u = &k->usual[i];
    }
    *u =
        (struct hfd_known_usual){.sql = sql, .shape = use->shape, .alone = alone, .used = k->group};
    for (int i = 0; i < use->shape->params; i++)
        u->values[i] = use->values[i];
}

hfd_rc hfd_known_want_usual(struct hfd_knowns *k, bool alone, struct hfd_err *err)
{
    for (size_t i = 0; i < HFD_KNOWN_USUAL; i++) {
        struct hfd_known_usual *u = &k->usual[i];
        const struct hfd_shape_use use = {u->shape, u->values};

        if (u->sql != NULL && k->group - u->used > HFD_KNOWN_USUAL_GROUPS)
            u->sql = NULL;
        if (u->sql == NULL || u->alone != alone || hfd_known_find(k, u->sql, &use, false) != NULL)
            continue;
        if (hfd_known_want(k, u->sql, &use) == NULL)
            return hfd_fail_nomem(err, "a result of the store");
    }
    return HFD_OK;
}

struct hfd_known *hfd_known_take_wanted(struct hfd_knowns *k)
{
    struct hfd_known *all = NULL;

    while (k->wanted != NULL) { /* the oldest first */
        struct hfd_known *known = k->wanted;

        k->wanted = known->in_wanted;
        known->in_wanted = all;
        known->read = true;
        all = known;
    }
    k->wanted_count = 0;
    return all;
}

/* A result that another read found is wanted itself: that read may find others now. */
static void renew(struct hfd_knowns *k, struct hfd_known *known)
{
    known->rows = known->last = NULL;
    known->source = NULL;
    known->read = false;
    known->in_wanted = k->wanted;
    k->wanted = known;
    k->wanted_count++;
}

void hfd_known_renew(struct hfd_knowns *k)
{
    for (size_t i = 0; i < HFD_KNOWN_BUCKETS; i++)
        for (struct hfd_known *known = k->buckets[i]; known != NULL; known = known->in_bucket)
            if (known->read)
                renew(k, known);
}

hfd_rc hfd_known_add_row(struct hfd_knowns *k, struct hfd_known *known,
                         const struct hfd_value *cells, int count, struct hfd_err *err)
{
    struct hfd_known_row *row = hfd_arena_alloc(&k->mem, sizeof(*row));
    const struct hfd_value *copy = hfd_values_copy(&k->mem, cells, count);

    if (row == NULL || copy == NULL)
        return hfd_fail_nomem(err, "a result of the store");
    row->cells = copy;
    row->count = count;
    if (known->last != NULL)
        known->last->next = row;
    else
        known->rows = row;
    known->last = row;
    return HFD_OK;
}

static bool is_touched(struct hfd_known *known, const struct hfd_shape_use *write)
{
    const struct hfd_shape_use read = {known->shape, known->values};

    if (known->read && known->rows == NULL && known->shape->of->empty.table != NULL)
        return fills(write, &read, &known->apart[1]);
    return touches(write, &read, &known->apart[0]);
}

void hfd_known_write(struct hfd_knowns *k, const struct hfd_shape_use *write)
{
    for (size_t i = 0; i < k->table_count; i++) {
        if (write->shape->of->table != NULL && k->tables[i][0] != '\0' &&
            strcmp(k->tables[i], write->shape->of->table) != 0)
            continue;
        for (struct hfd_known_place *p = k->places[i]; p != NULL; p = p->next)
            if (!p->known->hidden && is_touched(p->known, write))
                p->known->hidden = true;
    }
}

void hfd_known_again(struct hfd_knowns *k)
{
    for (size_t i = 0; i < k->table_count; i++)
        for (struct hfd_known_place *p = k->places[i]; p != NULL; p = p->next)
            p->known->hidden = false;
}
