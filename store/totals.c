/* See totals.h. The SQL is the portable subset. */
#include "store/totals.h"

#include "store/row_io.h"

#include <stdlib.h>

/* clang-format off */
static const char sql_count_add[] =
    "INSERT INTO fleet_count (kind, field, name, value, n) VALUES (?1, ?2, ?3, ?4, ?5)"
    " ON CONFLICT (kind, field, name, value) DO UPDATE SET n = fleet_count.n + excluded.n";
static const char sql_count_drop[] =
    "DELETE FROM fleet_count WHERE kind = ?1 AND field = ?2 AND name = ?3 AND value = ?4 AND n = 0";
static const char sql_count_get[] =
    "SELECT n FROM fleet_count WHERE kind = ?1 AND field = ?2 AND name = ?3 AND value = ?4";
static const char sql_count_resources[] =
    "SELECT name, CAST(value AS BIGINT), CAST(sum(n) AS BIGINT) FROM fleet_count WHERE kind IN (1, 2) AND field = 3"
    " GROUP BY name, value";
/* clang-format on */

static void bind_key(struct hfd_stmt *st, const struct hfd_count_key *key)
{
    hfd_stmt_i64(st, 1, key->kind);
    hfd_stmt_i64(st, 2, key->field);
    hfd_stmt_text(st, 3, hfd_row_some(key->name));
    hfd_stmt_text(st, 4, hfd_row_some(key->value));
}

static hfd_rc prepare(struct hfd_txn *tx, const char *sql, const struct hfd_count_key *key,
                      struct hfd_stmt **out, struct hfd_err *err)
{
    const hfd_rc rc = hfd_row_write(tx, sql, out, err);

    if (rc == HFD_OK)
        bind_key(*out, key);
    return rc;
}

static hfd_rc add_sum(struct hfd_txn *tx, const struct hfd_count_key *key, int64_t by,
                      struct hfd_err *err)
{
    struct hfd_stmt *st;
    const hfd_rc rc = prepare(tx, sql_count_add, key, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 5, by);
    return hfd_stmt_run(st, NULL, err);
}

static hfd_rc drop_empty(struct hfd_txn *tx, const struct hfd_count_key *key, struct hfd_err *err)
{
    struct hfd_stmt *st;
    const hfd_rc rc = prepare(tx, sql_count_drop, key, &st, err);

    return rc == HFD_OK ? hfd_stmt_run(st, NULL, err) : rc;
}

static hfd_rc write_sum(struct hfd_txn *tx, const struct hfd_count_key *key, int64_t by,
                        struct hfd_err *err)
{
    const hfd_rc rc = add_sum(tx, key, by, err);

    return rc == HFD_OK && by < 0 ? drop_empty(tx, key, err) : rc;
}

static struct hfd_count_key key_of(const struct hfd_totals_place *p)
{
    return (struct hfd_count_key){
        p->kind, p->field, {p->text, p->name_len}, {p->text + p->name_len, p->value_len}};
}

static hfd_rc write_place(struct hfd_txn *tx, struct hfd_totals_place *p, struct hfd_err *err)
{
    const struct hfd_count_key key = key_of(p);
    const int64_t by = p->by;

    p->by = 0;
    return by != 0 ? write_sum(tx, &key, by, err) : HFD_OK;
}

static struct hfd_totals_place *place_of(struct hfd_totals *totals, const struct hfd_count_key *key)
{
    const char of[] = {(char)key->kind, (char)key->field};
    uint64_t h = hfd_slice_hash(HFD_HASH_START, key->name);

    h = hfd_slice_hash(h, (hfd_slice){of, sizeof(of)});
    h = hfd_slice_hash(h, key->value);
    return &totals->places[(h ^ h >> 32) % HFD_TOTALS_PLACES];
}

static bool is_of(const struct hfd_totals_place *p, const struct hfd_count_key *key)
{
    return p->kind == key->kind && p->field == key->field &&
           hfd_slice_eq((hfd_slice){p->text, p->name_len}, key->name) &&
           hfd_slice_eq((hfd_slice){p->text + p->name_len, p->value_len}, key->value);
}

/*
 * Where another total has the place: the next one that is empty or of the key; `first` if there is
 * none. A sum that is written early is out of order.
 */
static struct hfd_totals_place *place_beside(struct hfd_totals *totals,
                                             const struct hfd_count_key *key,
                                             struct hfd_totals_place *first)
{
    const size_t at = (size_t)(first - totals->places);

    for (size_t i = 1; i < HFD_TOTALS_PLACES; i++) {
        struct hfd_totals_place *p = &totals->places[(at + i) % HFD_TOTALS_PLACES];

        if (p->by == 0 || is_of(p, key))
            return p;
    }
    return first;
}

hfd_rc hfd_totals_add(struct hfd_txn *tx, const struct hfd_count_key *key, int64_t by,
                      struct hfd_err *err)
{
    struct hfd_totals_place *p;
    hfd_rc rc;

    if (tx->totals == NULL || key->name.len + key->value.len > HFD_TOTALS_TEXT_MAX)
        return write_sum(tx, key, by, err);
    p = place_of(tx->totals, key);
    if (p->by != 0 && !is_of(p, key) && hfd_db_gathers(tx->db))
        p = place_beside(tx->totals, key, p);
    if (p->by == 0 || !is_of(p, key)) {
        rc = write_place(tx, p, err);
        if (rc != HFD_OK)
            return rc;
        p->kind = key->kind;
        p->field = key->field;
        p->name_len = (uint16_t)key->name.len;
        p->value_len = (uint16_t)key->value.len;
        if (key->name.len > 0)
            memcpy(p->text, key->name.p, key->name.len);
        if (key->value.len > 0)
            memcpy(p->text + key->name.len, key->value.p, key->value.len);
    }
    p->by += by;
    tx->totals->additions++;
    return HFD_OK;
}

static int by_key(const void *a, const void *b)
{
    const struct hfd_count_key x = key_of(*(struct hfd_totals_place *const *)a);
    const struct hfd_count_key y = key_of(*(struct hfd_totals_place *const *)b);
    const int names = hfd_slice_cmp(x.name, y.name);

    if (x.kind != y.kind || x.field != y.field)
        return x.kind != y.kind ? (int)x.kind - (int)y.kind : (int)x.field - (int)y.field;
    return names != 0 ? names : hfd_slice_cmp(x.value, y.value);
}

/* Groups that write at the same time lock the rows in one order. */
static hfd_rc write_in_order(struct hfd_txn *tx, struct hfd_err *err)
{
    struct hfd_totals_place *all[HFD_TOTALS_PLACES];
    size_t count = 0;
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; i < HFD_TOTALS_PLACES; i++)
        if (tx->totals->places[i].by != 0)
            all[count++] = &tx->totals->places[i];
    qsort(all, count, sizeof(all[0]), by_key);
    for (size_t i = 0; rc == HFD_OK && i < count; i++) {
        const struct hfd_count_key key = key_of(all[i]);

        rc = add_sum(tx, &key, all[i]->by, err);
    }
    for (size_t i = 0; rc == HFD_OK && i < count; i++) {
        const struct hfd_count_key key = key_of(all[i]);

        if (all[i]->by < 0)
            rc = drop_empty(tx, &key, err);
        all[i]->by = 0;
    }
    return rc;
}

hfd_rc hfd_totals_write(struct hfd_txn *tx, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    if (hfd_db_gathers(tx->db))
        return write_in_order(tx, err);
    for (size_t i = 0; rc == HFD_OK && i < HFD_TOTALS_PLACES; i++)
        rc = write_place(tx, &tx->totals->places[i], err);
    return rc;
}

void hfd_totals_drop(struct hfd_totals *totals)
{
    for (size_t i = 0; i < HFD_TOTALS_PLACES; i++)
        totals->places[i].by = 0;
}

static void read_resource_total(struct hfd_row_in *in, void *out)
{
    struct hfd_resource_total *row = out;

    row->type = hfd_row_text(in);
    row->state = hfd_row_i64(in);
    row->n = hfd_row_i64(in);
}

static const struct hfd_row_form resource_total_form = {
    "total of driver resources", read_resource_total, sizeof(struct hfd_resource_total)};

hfd_rc hfd_totals_resources(struct hfd_txn *tx, struct hfd_arena *mem,
                            struct hfd_resource_totals *out, struct hfd_err *err)
{
    struct hfd_row_list list;
    struct hfd_stmt *st;
    hfd_rc rc = hfd_db_prepare(tx->db, sql_count_resources, &st, err);

    *out = (struct hfd_resource_totals){NULL, 0};
    if (rc == HFD_OK)
        rc = hfd_row_all(st, &resource_total_form, mem, &list, err);
    if (rc == HFD_OK)
        *out = (struct hfd_resource_totals){list.rows, list.count};
    return rc;
}

hfd_rc hfd_totals_get(struct hfd_txn *tx, const struct hfd_count_key *key, int64_t *out,
                      struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_db_prepare(tx->db, sql_count_get, &st, err);

    *out = 0;
    if (rc != HFD_OK)
        return rc;
    bind_key(st, key);
    return hfd_row_number(st, 0, out, err);
}
