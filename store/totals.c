/* See totals.h. The SQL is the portable subset. */
#include "store/totals.h"

#include "store/row_io.h"

#include <stdlib.h>

/* A row of fleet_count. */
struct total {
    int64_t kind; /* enum hfd_kind, and HFD_SLOT_KINDS for each slot */
    int field;    /* enum hfd_count_field */
    hfd_slice name, value;
    int64_t n;
};
#define COUNT_COL(type, member) HFD_COL(struct total, type, #member, member)
#define SUM(type, sql, member) HFD_COL(struct hfd_resource_total, type, sql, member)

/* clang-format off */
static const struct hfd_col total_cols[] = {
    {COUNT_COL(I64, kind)}, {COUNT_COL(INT, field)}, {COUNT_COL(TEXT, name)}, {COUNT_COL(TEXT, value)}, {COUNT_COL(I64, n)},
};
const struct hfd_table hfd_fleet_count_table = {
    HFD_TABLE("fleet_count", struct total, "total of a slot", total_cols), .keys = 4};
static const struct hfd_col sum_cols[] = {
    {SUM(TEXT, "name", type)}, {SUM(I64, "CAST(value AS BIGINT)", state)}, {SUM(I64, "CAST(sum(n) AS BIGINT)", n)},
};
static const struct hfd_table sums = {
    HFD_TABLE(NULL, struct hfd_resource_total, "total of driver resources", sum_cols)};

#define KEY_ONLY HFD_COL_OWN /* a mark that no column has: the key alone is bound */
static struct hfd_query sql_count_add = {.table = &hfd_fleet_count_table, .text =
    "INSERT INTO fleet_count (@cols) @values ON CONFLICT (@keys) DO UPDATE SET n = fleet_count.n + excluded.n"};
static struct hfd_query sql_count_drop = {.table = &hfd_fleet_count_table, .text = "DELETE FROM fleet_count@using WHERE @key AND n = 0", .marks = KEY_ONLY};
static struct hfd_query sql_count_get = {.table = &hfd_fleet_count_table, .text =
    "SELECT CAST(COALESCE(sum(n), 0) AS BIGINT) FROM fleet_count WHERE kind IN " HFD_SQL_SLOTS("CAST(?1 AS BIGINT)")
    " AND field = ?2 AND name = ?3 AND value = ?4"};
static struct hfd_query sql_count_resources = {.table = &sums, .text =
    "SELECT @cols FROM fleet_count WHERE (kind IN " HFD_SQL_SLOTS("1")
    " OR kind IN " HFD_SQL_SLOTS("2") ") AND field = 3 GROUP BY name, value HAVING sum(n) <> 0"};
static struct hfd_query sql_slots_list = {.table = &hfd_fleet_count_table, .text =
    "SELECT @cols FROM fleet_count WHERE kind >= 16 ORDER BY kind, field, name, value LIMIT 1000"};
static struct hfd_query sql_slots_drop = {.table = &hfd_fleet_count_table, .text = HFD_SQL_REMOVE, .marks = KEY_ONLY};
/* clang-format on */

/* The total in the writer's own slot. */
static struct total own_total(const struct hfd_txn *tx, const struct hfd_count_key *key, int64_t by)
{
    return (struct total){(int64_t)key->kind + HFD_SLOT_KINDS * hfd_db_slot(tx->db),
                          (int)key->field, key->name, key->value, by};
}

static hfd_rc write_sum(struct hfd_txn *tx, const struct hfd_count_key *key, int64_t by,
                        struct hfd_err *err)
{
    const struct total own = own_total(tx, key, by);
    const hfd_rc rc = hfd_query_write(tx, &sql_count_add, &own, NULL, err);

    return rc == HFD_OK && by < 0 ? hfd_query_write(tx, &sql_count_drop, &own, NULL, err) : rc;
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
        const struct total own = own_total(tx, &key, all[i]->by);

        rc = hfd_query_write(tx, &sql_count_add, &own, NULL, err);
    }
    for (size_t i = 0; rc == HFD_OK && i < count; i++) {
        const struct hfd_count_key key = key_of(all[i]);
        const struct total own = own_total(tx, &key, 0);

        if (all[i]->by < 0)
            rc = hfd_query_write(tx, &sql_count_drop, &own, NULL, err);
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

hfd_rc hfd_totals_resources(struct hfd_txn *tx, struct hfd_arena *mem,
                            struct hfd_resource_totals *out, struct hfd_err *err)
{
    return HFD_QUERY_LIST(tx, &sql_count_resources, HFD_ARGS_NONE, mem, out, err);
}

hfd_rc hfd_totals_get(struct hfd_txn *tx, const struct hfd_count_key *key, int64_t *out,
                      struct hfd_err *err)
{
    return hfd_query_number(tx, &sql_count_get,
                            HFD_ARGS(hfd_arg_i64(key->kind), hfd_arg_i64(key->field),
                                     hfd_arg_text(key->name), hfd_arg_text(key->value)),
                            0, out, err);
}

/* ---- the other slots ---- */

/* The same total in slot 0. */
static struct total first_of(const struct total *row)
{
    struct total first = *row;

    first.kind %= HFD_SLOT_KINDS;
    return first;
}

/* Statements of one text stand together, so that each text is one set. */
static hfd_rc fold(struct hfd_txn *tx, const struct total *rows, size_t count, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; rc == HFD_OK && i < count; i++) {
        const struct total first = first_of(&rows[i]);

        rc = hfd_query_write(tx, &sql_count_add, &first, NULL, err);
    }
    for (size_t i = 0; rc == HFD_OK && i < count; i++) {
        const struct total first = first_of(&rows[i]);

        rc = hfd_query_write(tx, &sql_count_drop, &first, NULL, err);
    }
    for (size_t i = 0; rc == HFD_OK && i < count; i++)
        rc = hfd_query_write(tx, &sql_slots_drop, &rows[i], NULL, err);
    return rc;
}

hfd_rc hfd_totals_fold(struct hfd_txn *tx, struct hfd_err *err)
{
    struct hfd_row_list list;
    struct hfd_arena mem;
    hfd_rc rc;

    hfd_arena_init(&mem, HFD_ROW_BYTES_MAX);
    rc = hfd_query_all(tx, &sql_slots_list, HFD_ARGS_NONE, &mem, &list, err);
    if (rc == HFD_OK)
        rc = fold(tx, list.rows, list.count, err);
    hfd_arena_fini(&mem);
    return rc;
}
