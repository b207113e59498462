/* Entries are freed between jobs only. A forgotten entry stays in its list, without its key. */
#include "store/unit.h"

#include "driver/base/buf.h"
#include "driver/base/check.h"
#include "store/row_io.h"

#include <stdlib.h>

#define ALIGN sizeof(max_align_t)

hfd_rc hfd_unit_init(struct hfd_unit *unit, size_t max_bytes, struct hfd_err *err)
{
    *unit = (struct hfd_unit){.mem = malloc(max_bytes), .max_bytes = max_bytes};
    return unit->mem != NULL ? HFD_OK : hfd_fail_nomem(err, "open the store");
}

void hfd_unit_fini(struct hfd_unit *unit)
{
    free(unit->mem);
    unit->mem = NULL;
}

static void *take(struct hfd_unit *unit, size_t size_bytes)
{
    void *p = unit->mem + unit->used_bytes;

    if (size_bytes > unit->max_bytes - unit->used_bytes)
        return NULL;
    unit->used_bytes += (size_bytes + ALIGN - 1) / ALIGN * ALIGN;
    if (unit->used_bytes > unit->max_bytes)
        unit->used_bytes = unit->max_bytes;
    return p;
}

static void forget_all(struct hfd_unit *unit)
{
    unit->used_bytes = 0;
    memset(unit->buckets, 0, sizeof(unit->buckets));
    memset(unit->tables, 0, sizeof(unit->tables));
    unit->parsed = NULL;
}

void hfd_unit_begin(struct hfd_unit *unit)
{
    forget_all(unit);
    unit->changes = 0;
}

void hfd_unit_next(struct hfd_unit *unit)
{
    HFD_ASSERT(unit->changes == 0);
    if (unit->used_bytes > unit->max_bytes / 2)
        forget_all(unit);
    for (int t = 0; t < HFD_UNIT_TABLES; t++)
        for (struct hfd_kept *k = unit->tables[t]; k != NULL; k = k->in_table)
            k->fresh = false;
}

void hfd_unit_forget(struct hfd_txn *tx)
{
    if (tx->unit == NULL)
        return;
    HFD_ASSERT(tx->unit->changes == 0);
    forget_all(tx->unit);
}

/* ---- parsed texts ---- */

const void *hfd_unit_parsed_find(const struct hfd_txn *tx, hfd_slice text)
{
    const struct hfd_unit_parsed *p = tx->unit != NULL ? tx->unit->parsed : NULL;

    while (p != NULL && !hfd_slice_eq(p->text, text))
        p = p->next;
    return p != NULL ? p->form : NULL;
}

/* Rows have the other half of the memory for themselves. */
void *hfd_unit_parsed_keep(struct hfd_txn *tx, hfd_slice text, size_t size_bytes)
{
    struct hfd_unit *unit = tx->unit;
    struct hfd_unit_parsed *p;

    if (unit == NULL || text.len > HFD_UNIT_BYTES_MAX || size_bytes > HFD_UNIT_BYTES_MAX ||
        unit->used_bytes + text.len + size_bytes > HFD_UNIT_BYTES_MAX / 2)
        return NULL;
    p = take(unit, sizeof(*p) + size_bytes + text.len);
    if (p == NULL)
        return NULL;
    p->form = p + 1;
    p->text = (hfd_slice){memcpy((char *)(p + 1) + size_bytes, text.p, text.len), text.len};
    p->next = unit->parsed;
    unit->parsed = p;
    return p->form;
}

/* ---- entries ---- */

static size_t bucket_of(const struct hfd_unit_form *form, const struct hfd_unit_key *key)
{
    const uint64_t h = hfd_slice_hash_end(
        hfd_slice_hash_end(HFD_HASH_START + form->table, key->first), key->second);

    return (size_t)(h >> 32) % HFD_UNIT_BUCKETS;
}

static bool is_of(const struct hfd_kept *k, const struct hfd_unit_form *form,
                  const struct hfd_unit_key *key, bool all)
{
    return k->form == form && k->all == all && hfd_slice_eq(k->key.first, key->first) &&
           hfd_slice_eq(k->key.second, key->second);
}

static struct hfd_kept *find(const struct hfd_unit *unit, const struct hfd_unit_form *form,
                             const struct hfd_unit_key *key, bool all)
{
    struct hfd_kept *k = unit->buckets[bucket_of(form, key)];

    while (k != NULL && !is_of(k, form, key, all))
        k = k->in_bucket;
    return k;
}

struct hfd_kept *hfd_unit_find(const struct hfd_txn *tx, const struct hfd_unit_form *form,
                               const struct hfd_unit_key *key)
{
    return tx->unit != NULL ? find(tx->unit, form, key, false) : NULL;
}

static void settle(struct hfd_unit *unit, struct hfd_kept *k)
{
    unit->changes -= k->change != 0;
    k->change = 0;
}

/* Forgets the row of a key, and that all rows with its first text are kept. */
static void drop(struct hfd_unit *unit, const struct hfd_unit_form *form,
                 const struct hfd_unit_key *key)
{
    const struct hfd_unit_key all = {key->first, HFD_SLICE_NONE};
    struct hfd_kept *const dropped[] = {find(unit, form, key, false), find(unit, form, &all, true)};

    for (size_t i = 0; i < 2; i++) {
        if (dropped[i] == NULL)
            continue;
        settle(unit, dropped[i]);
        dropped[i]->row = NULL;
        dropped[i]->key = (struct hfd_unit_key){HFD_SLICE_NONE, HFD_SLICE_NONE};
        dropped[i]->form = NULL;
    }
}

static struct hfd_kept *add(struct hfd_unit *unit, const struct hfd_unit_form *form,
                            const struct hfd_unit_key *key)
{
    struct hfd_kept **bucket = &unit->buckets[bucket_of(form, key)];
    struct hfd_kept *k = take(unit, sizeof(*k));

    if (k == NULL)
        return NULL;
    *k = (struct hfd_kept){
        .in_bucket = *bucket, .in_table = unit->tables[form->table], .form = form, .key = *key};
    *bucket = unit->tables[form->table] = k;
    return k;
}

/* ---- copies ---- */

/* A row of the form, in a copy: its texts stand behind it. */
static void *copy_of(const struct hfd_unit_form *form, const void *row, struct hfd_unit *unit)
{
    const size_t size = form->rows->form.size;
    const size_t head = (size + sizeof(void *) - 1) / sizeof(void *) * sizeof(void *);
    char *to = take(unit, head + hfd_table_bytes(form->rows, row) + 1);

    if (to != NULL) {
        memcpy(to, row, size);
        hfd_table_take(form->rows, to, to + head);
    }
    return to;
}

static struct hfd_unit_key key_of(const struct hfd_unit_form *form, const void *row)
{
    return form->key_of != NULL ? form->key_of(row) : hfd_table_key(form->rows, row);
}

struct hfd_kept *hfd_unit_keep(struct hfd_txn *tx, const struct hfd_unit_form *form,
                               const void *row)
{
    struct hfd_unit_key key;
    struct hfd_kept *k;
    void *own;

    if (tx->unit == NULL)
        return NULL;
    key = key_of(form, row);
    k = find(tx->unit, form, &key, false);
    own = copy_of(form, row, tx->unit);
    if (own != NULL && k == NULL)
        k = add(tx->unit, form, &key);
    if (own == NULL || k == NULL) {
        drop(tx->unit, form, &key);
        return NULL;
    }
    settle(tx->unit, k);
    k->row = own;
    k->key = key_of(form, own);
    k->head = false;
    return k;
}

static struct hfd_kept *add_key(struct hfd_unit *unit, const struct hfd_unit_form *form,
                                const struct hfd_unit_key *key)
{
    struct hfd_unit_key own = *key;
    char *text = take(unit, key->first.len + key->second.len + 1);

    if (text == NULL)
        return NULL;
    own.first.p = memcpy(text, key->first.len > 0 ? key->first.p : "", key->first.len);
    if (key->second.len > 0)
        own.second.p = memcpy(text + key->first.len, key->second.p, key->second.len);
    return add(unit, form, &own);
}

struct hfd_kept *hfd_unit_keep_absent(struct hfd_txn *tx, const struct hfd_unit_form *form,
                                      const struct hfd_unit_key *key)
{
    struct hfd_kept *k = hfd_unit_find(tx, form, key);

    if (tx->unit == NULL)
        return NULL;
    if (k == NULL)
        k = add_key(tx->unit, form, key);
    if (k == NULL) {
        drop(tx->unit, form, key);
        return NULL;
    }
    settle(tx->unit, k);
    k->row = NULL;
    k->head = false;
    return k;
}

void hfd_unit_change(struct hfd_txn *tx, struct hfd_kept *kept, unsigned change)
{
    HFD_ASSERT(tx->writable && change != 0);
    tx->unit->changes += kept->change == 0;
    kept->change |= change;
}

/* Copies a row; without the large texts for a list of heads. */
static bool give(const struct hfd_kept *k, bool head, struct hfd_arena *mem, void *to)
{
    char *text;

    memcpy(to, k->row, k->form->rows->form.size);
    if (head)
        k->form->behead(to);
    text = hfd_arena_alloc(mem, hfd_table_bytes(k->form->rows, to) + 1);
    if (text != NULL)
        hfd_table_take(k->form->rows, to, text);
    return text != NULL;
}

hfd_rc hfd_unit_give(const struct hfd_kept *kept, struct hfd_arena *mem, void *out,
                     struct hfd_err *err)
{
    if (kept->row == NULL)
        return hfd_fail(err, HFD_NOT_FOUND, "no such %s is stored", kept->form->rows->form.what);
    return give(kept, false, mem, out) ? HFD_OK : hfd_fail_nomem(err, "a row of the store");
}

/* ---- lists ---- */

bool hfd_unit_has_all(const struct hfd_txn *tx, const struct hfd_unit_form *form, hfd_slice first)
{
    const struct hfd_unit_key key = {first, HFD_SLICE_NONE};

    return tx->unit != NULL && find(tx->unit, form, &key, true) != NULL;
}

/* Returns true when a row of the list is to be written. */
static bool has_changes(const struct hfd_unit *unit, const struct hfd_unit_list *list)
{
    const struct hfd_kept *k = unit->changes > 0 ? unit->tables[list->form->table] : NULL;

    while (k != NULL && (k->change == 0 || !hfd_slice_eq(k->key.first, list->first)))
        k = k->in_table;
    return k != NULL;
}

/*
 * Keeps all rows that the database has; those that are kept already are as new or newer, and stay.
 * @return whether there was room for all
 */
static bool keep_all(struct hfd_txn *tx, const struct hfd_unit_list *list,
                     const struct hfd_row_list *rows)
{
    const struct hfd_unit_key all = {list->first, HFD_SLICE_NONE};
    struct hfd_kept *k;

    for (size_t i = 0; i < rows->count; i++) {
        const void *row = (const char *)rows->rows + i * list->form->rows->form.size;
        const struct hfd_unit_key key = key_of(list->form, row);

        if (find(tx->unit, list->form, &key, false) != NULL)
            continue;
        k = hfd_unit_keep(tx, list->form, row);
        if (k == NULL)
            return false;
        k->head = list->heads;
    }
    k = add_key(tx->unit, list->form, &all);
    if (k != NULL)
        k->all = true;
    return k != NULL;
}

static bool is_listed(const struct hfd_kept *k, const struct hfd_unit_list *list)
{
    return k->row != NULL && hfd_slice_eq(k->key.first, list->first);
}

static hfd_rc give_all(const struct hfd_unit *unit, const struct hfd_unit_list *list,
                       struct hfd_row_list *out, struct hfd_err *err)
{
    const size_t size = list->form->rows->form.size;
    size_t count = 0;
    char *rows;

    for (const struct hfd_kept *k = unit->tables[list->form->table]; k != NULL; k = k->in_table)
        count += is_listed(k, list);
    rows = hfd_arena_array(list->mem, count + 1, size);
    if (rows == NULL)
        return hfd_fail_nomem(err, "rows of the store");
    count = 0;
    for (const struct hfd_kept *k = unit->tables[list->form->table]; k != NULL; k = k->in_table) {
        if (!is_listed(k, list))
            continue;
        if (!give(k, list->heads, list->mem, rows + count * size))
            return hfd_fail_nomem(err, "rows of the store");
        count++;
    }
    qsort(rows, count, size, list->form->compare);
    *out = (struct hfd_row_list){count > 0 ? rows : NULL, count};
    return HFD_OK;
}

hfd_rc hfd_unit_list(struct hfd_txn *tx, const struct hfd_unit_list *list, struct hfd_row_list *out,
                     struct hfd_err *err)
{
    hfd_rc rc;

    *out = (struct hfd_row_list){NULL, 0};
    if (hfd_unit_has_all(tx, list->form, list->first))
        return give_all(tx->unit, list, out, err);
    rc = list->read(tx, list->first, list->mem, out, err);
    if (rc != HFD_OK || tx->unit == NULL)
        return rc;
    if (keep_all(tx, list, out))
        return has_changes(tx->unit, list) ? give_all(tx->unit, list, out, err) : HFD_OK;
    if (!has_changes(tx->unit, list))
        return HFD_OK;
    rc = hfd_unit_write_table(tx, list->form->table, err);
    return rc == HFD_OK ? list->read(tx, list->first, list->mem, out, err) : rc;
}

/* Keeps the rows of one list, or the row of one key, of those that were read. */
static void keep_of(struct hfd_txn *tx, const struct hfd_unit_prefetch *want, hfd_slice first,
                    const struct hfd_row_list *rows)
{
    const struct hfd_unit_key key = {first, HFD_SLICE_NONE};
    const struct hfd_unit_list list = {.form = want->form, .first = first, .heads = want->heads};
    const size_t size = want->form->rows->form.size;
    size_t from = 0, to;

    while (from < rows->count &&
           !hfd_slice_eq(key_of(want->form, (const char *)rows->rows + from * size).first, first))
        from++;
    for (to = from;
         to < rows->count &&
         hfd_slice_eq(key_of(want->form, (const char *)rows->rows + to * size).first, first);)
        to++;
    if (want->form->compare != NULL) {
        const struct hfd_row_list of = {(char *)rows->rows + from * size, to - from};

        (void)keep_all(tx, &list, &of);
    } else if (from < to) {
        (void)hfd_unit_keep(tx, want->form, (const char *)rows->rows + from * size);
    } else {
        (void)hfd_unit_keep_absent(tx, want->form, &key);
    }
}

static bool is_known(const struct hfd_txn *tx, const struct hfd_unit_prefetch *want,
                     hfd_slice first)
{
    const struct hfd_unit_key key = {first, HFD_SLICE_NONE};

    return want->form->compare != NULL ? hfd_unit_has_all(tx, want->form, first)
                                       : find(tx->unit, want->form, &key, false) != NULL;
}

hfd_rc hfd_unit_prefetch(struct hfd_txn *tx, const struct hfd_unit_prefetch *want,
                         struct hfd_err *err)
{
    struct hfd_row_list rows;
    struct hfd_arena mem;
    struct hfd_buf json;
    hfd_slice text;
    hfd_rc rc;

    if (tx->unit == NULL || want->count == 0)
        return HFD_OK;
    hfd_arena_init(&mem, HFD_UNIT_READ_BYTES_MAX);
    hfd_buf_init(&json, HFD_UNIT_READ_BYTES_MAX);
    hfd_buf_addc(&json, '[');
    for (size_t i = 0; i < want->count; i++) {
        if (is_known(tx, want, want->firsts[i]))
            continue;
        if (json.len > 1)
            hfd_buf_addc(&json, ',');
        hfd_buf_json_str(&json, want->firsts[i]);
    }
    hfd_buf_addc(&json, ']');
    rc = hfd_buf_finish(&json, &text, err);
    if (rc == HFD_OK && text.len > 2)
        rc = hfd_query_all(tx, want->query, HFD_ARGS(hfd_arg_text(text)), &mem, &rows, err);
    for (size_t i = 0; rc == HFD_OK && text.len > 2 && i < want->count; i++)
        if (!is_known(tx, want, want->firsts[i]))
            keep_of(tx, want, want->firsts[i], &rows);
    hfd_buf_fini(&json);
    hfd_arena_fini(&mem);
    return rc;
}

void hfd_unit_lose_all(struct hfd_txn *tx, const struct hfd_unit_form *form, hfd_slice first)
{
    struct hfd_kept *k = tx->unit != NULL ? tx->unit->tables[form->table] : NULL;

    for (; k != NULL; k = k->in_table) {
        if (!hfd_slice_eq(k->key.first, first))
            continue;
        settle(tx->unit, k);
        k->row = NULL;
    }
}

/* ---- writing ---- */

hfd_rc hfd_unit_write_table(struct hfd_txn *tx, enum hfd_unit_table table, struct hfd_err *err)
{
    if (tx->unit == NULL || tx->unit->changes == 0)
        return HFD_OK;
    /* New rows stand first, those of earlier jobs behind them. */
    for (struct hfd_kept *k = tx->unit->tables[table]; k != NULL && tx->unit->changes > 0;
         k = k->in_table) {
        const hfd_rc rc = k->change != 0 ? k->form->write(tx, k, err) : HFD_OK;

        if (rc != HFD_OK)
            return rc;
        settle(tx->unit, k);
    }
    return HFD_OK;
}

hfd_rc hfd_unit_write(struct hfd_txn *tx, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    for (int t = 0; rc == HFD_OK && t < HFD_UNIT_TABLES; t++)
        rc = hfd_unit_write_table(tx, (enum hfd_unit_table)t, err);
    return rc;
}

/* ---- numbers ---- */

static hfd_rc read_number(struct hfd_txn *tx, const char *sql, int64_t *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    const hfd_rc rc = hfd_db_prepare(tx->db, sql, &st, err);

    return rc == HFD_OK ? hfd_row_number(st, 0, out, err) : rc;
}

hfd_rc hfd_number_next(struct hfd_txn *tx, struct hfd_number *n, const char *sql_last, int64_t *out,
                       struct hfd_err *err)
{
    const char *own = n != NULL ? hfd_db_sql_number(tx->db) : NULL;
    hfd_rc rc = HFD_OK;

    *out = n != NULL ? n->last : 0;
    if (*out == 0) {
        rc = read_number(tx, own != NULL ? own : sql_last, out, err);
        if (n != NULL)
            n->first = *out;
    }
    if (rc == HFD_OK && own != NULL && *out - n->first >= HFD_NUMBERS_MAX)
        rc = hfd_fail(err, HFD_LIMIT, "store: a group of jobs has more than %d numbers",
                      HFD_NUMBERS_MAX);
    if (rc != HFD_OK)
        return rc;
    (*out)++;
    if (n != NULL)
        n->last = *out;
    return HFD_OK;
}

hfd_rc hfd_number_end(struct hfd_txn *tx, int64_t *out, struct hfd_err *err)
{
    const char *sql = tx->writable ? NULL : hfd_db_sql_number_end(tx->db);

    *out = INT64_MAX;
    return sql != NULL ? read_number(tx, sql, out, err) : HFD_OK;
}

hfd_rc hfd_number_bound(struct hfd_txn *tx, int64_t *out, struct hfd_err *err)
{
    const char *sql = tx->writable ? NULL : hfd_db_sql_number_bound(tx->db);

    *out = INT64_MAX;
    return sql != NULL ? read_number(tx, sql, out, err) : HFD_OK;
}
