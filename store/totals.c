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
    "SELECT CAST(COALESCE(sum(n), 0) AS BIGINT) FROM fleet_count WHERE kind IN " HFD_SQL_SLOTS("CAST(?1 AS BIGINT)")
    " AND field = ?2 AND name = ?3 AND value = ?4";
static const char sql_count_resources[] =
    "SELECT name, CAST(value AS BIGINT), CAST(sum(n) AS BIGINT) FROM fleet_count WHERE (kind IN " HFD_SQL_SLOTS("1")
    " OR kind IN " HFD_SQL_SLOTS("2") ") AND field = 3 GROUP BY name, value HAVING sum(n) <> 0";
static const char sql_slots_list[] =
    "SELECT kind, field, name, value, n FROM fleet_count WHERE kind >= 16 ORDER BY kind, field, name, value LIMIT 1000";
static const char sql_slots_drop[] =
    "DELETE FROM fleet_count WHERE kind = ?1 AND field = ?2 AND name = ?3 AND value = ?4";
/* clang-format on */

/* A row of fleet_count. */
struct place {
    int slot;
    struct hfd_count_key key;
};

static struct place own_place(const struct hfd_txn *tx, const struct hfd_count_key *key)
{
    return (struct place){hfd_db_slot(tx->db), *key};
}

static void bind_place(struct hfd_stmt *st, const struct place *at)
{
    hfd_stmt_i64(st, 1, (int64_t)at->key.kind + HFD_SLOT_KINDS * at->slot);
    hfd_stmt_i64(st, 2, at->key.field);
    hfd_stmt_text(st, 3, hfd_row_some(at->key.name));
    hfd_stmt_text(st, 4, hfd_row_some(at->key.value));
}

static hfd_rc add_sum(struct hfd_txn *tx, const struct place *at, int64_t by, struct hfd_err *err)
{
    struct hfd_stmt *st;
    const hfd_rc rc = hfd_row_write(tx, sql_count_add, &st, err);

    if (rc != HFD_OK)
        return rc;
    bind_place(st, at);
    hfd_stmt_i64(st, 5, by);
    return hfd_stmt_run(st, NULL, err);
}

/* @param sql  sql_count_drop or sql_slots_drop */
static hfd_rc drop(struct hfd_txn *tx, const char *sql, const struct place *at, struct hfd_err *err)
{
    struct hfd_stmt *st;
    const hfd_rc rc = hfd_row_write(tx, sql, &st, err);

    if (rc != HFD_OK)
        return rc;
    bind_place(st, at);
    return hfd_stmt_run(st, NULL, err);
}

static hfd_rc write_sum(struct hfd_txn *tx, const struct hfd_count_key *key, int64_t by,
                        struct hfd_err *err)
{
    const struct place at = own_place(tx, key);
    const hfd_rc rc = add_sum(tx, &at, by, err);

    return rc == HFD_OK && by < 0 ? drop(tx, sql_count_drop, &at, err) : rc;
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
        const struct place at = own_place(tx, &key);

        rc = add_sum(tx, &at, all[i]->by, err);
    }
    for (size_t i = 0; rc == HFD_OK && i < count; i++) {
        const struct hfd_count_key key = key_of(all[i]);
        const struct place at = own_place(tx, &key);

        if (all[i]->by < 0)
            rc = drop(tx, sql_count_drop, &at, err);
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
    bind_place(st, &(struct place){0, *key});
    return hfd_row_number(st, 0, out, err);
}

/* ---- the other slots ---- */

struct slot_row {
    struct place at;
    int64_t n;
};

static void read_slot_row(struct hfd_row_in *in, void *out)
{
    struct slot_row *row = out;
    const int64_t kind = hfd_row_i64(in);

    row->at.slot = (int)(kind / HFD_SLOT_KINDS);
    row->at.key.kind = (enum hfd_kind)(kind % HFD_SLOT_KINDS);
    row->at.key.field = (enum hfd_count_field)hfd_row_enum(in);
    row->at.key.name = hfd_row_text(in);
    row->at.key.value = hfd_row_text(in);
    row->n = hfd_row_i64(in);
}

static const struct hfd_row_form slot_form = {"total of a slot", read_slot_row,
                                              sizeof(struct slot_row)};

/* Statements of one text stand together, so that each text is one set. */
static hfd_rc fold(struct hfd_txn *tx, const struct slot_row *rows, size_t count,
                   struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; rc == HFD_OK && i < count; i++)
        rc = add_sum(tx, &(struct place){0, rows[i].at.key}, rows[i].n, err);
    for (size_t i = 0; rc == HFD_OK && i < count; i++)
        rc = drop(tx, sql_count_drop, &(struct place){0, rows[i].at.key}, err);
    for (size_t i = 0; rc == HFD_OK && i < count; i++)
        rc = drop(tx, sql_slots_drop, &rows[i].at, err);
    return rc;
}

hfd_rc hfd_totals_fold(struct hfd_txn *tx, struct hfd_err *err)
{
    struct hfd_row_list list = {NULL, 0};
    struct hfd_arena mem;
    struct hfd_stmt *st;
    hfd_rc rc = hfd_db_prepare(tx->db, sql_slots_list, &st, err);

    hfd_arena_init(&mem, HFD_ROW_BYTES_MAX);
    if (rc == HFD_OK)
        rc = hfd_row_all(st, &slot_form, &mem, &list, err);
    if (rc == HFD_OK)
        rc = fold(tx, list.rows, list.count, err);
    hfd_arena_fini(&mem);
    return rc;
}
