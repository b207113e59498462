#include "store/row_io.h"

#include "driver/base/check.h"

#define KEY_SHOWN 64  /* characters of a key in a message */
#define ROWS_FIRST 8u /* rows that a list has room for at first */

/* Gives a damaged key as a line of ASCII. */
static const char *shown_key(hfd_slice key, char out[KEY_SHOWN + 1])
{
    size_t n = 0;

    for (; n < key.len && n < KEY_SHOWN; n++)
        out[n] = key.p[n] >= ' ' && key.p[n] <= '~' && key.p[n] != '\'' ? key.p[n] : '?';
    out[n] = '\0';
    return out;
}

static hfd_rc fail_damaged(const struct hfd_row_name *name, struct hfd_err *err)
{
    char first[KEY_SHOWN + 1], second[KEY_SHOWN + 1];

    return hfd_fail(err, HFD_DAMAGED,
                    "the stored row '%s%s%s' of table '%s' is damaged: its checksum does not "
                    "match. `doctor` lists all damaged rows; restore a backup",
                    shown_key(name->key.first, first), name->key.second.len > 0 ? "/" : "",
                    shown_key(name->key.second, second), name->table);
}

/* Stepping on also gives the errors that reading the columns of the row before has met. */
static hfd_rc next_row(struct hfd_row_in *in, bool *row, struct hfd_err *err)
{
    hfd_rc rc = hfd_stmt_step(in->st, row, err);

    if (in->bad && in->name.table != NULL && (rc == HFD_OK || rc == HFD_CORRUPT))
        rc = fail_damaged(&in->name, err);
    else if (rc == HFD_OK && in->bad)
        rc = hfd_fail(err, HFD_CORRUPT,
                      "store: a stored %s cannot be read: a value is missing or out of range",
                      in->form->what);
    in->at = 0;
    return rc;
}

hfd_rc hfd_row_one_by(struct hfd_row_in *in, void *row, struct hfd_err *err)
{
    bool there;
    bool more = false;
    hfd_rc rc = next_row(in, &there, err);

    if (rc == HFD_OK && !there)
        rc = hfd_fail(err, HFD_NOT_FOUND, "no such %s is stored", in->form->what);
    if (rc == HFD_OK) {
        in->form->read(in, row);
        rc = next_row(in, &more, err);
    }
    HFD_ASSERT(!more);
    hfd_stmt_done(in->st);
    return rc;
}

hfd_rc hfd_row_one(struct hfd_stmt *st, const struct hfd_row_form *form, struct hfd_arena *mem,
                   void *row, struct hfd_err *err)
{
    struct hfd_row_in in = {.st = st, .form = form, .mem = mem};

    return hfd_row_one_by(&in, row, err);
}

static void read_number(struct hfd_row_in *in, void *out)
{
    *(int64_t *)out = hfd_row_i64(in);
}

hfd_rc hfd_row_number(struct hfd_stmt *st, int64_t none, int64_t *out, struct hfd_err *err)
{
    static const struct hfd_row_form form = {"number", read_number, sizeof(int64_t)};
    const hfd_rc rc = hfd_row_one(st, &form, NULL, out, err);

    if (rc != HFD_OK)
        *out = none;
    return rc == HFD_NOT_FOUND ? HFD_OK : rc;
}

/* A list while it is read. */
struct growing {
    const struct hfd_row_form *form;
    struct hfd_arena *mem;
    char *rows;
    size_t count, cap;
};

/* Arena memory is not given back, so doubling costs as much again as the rows. */
static void *next_place(struct growing *g)
{
    if (g->count == g->cap) {
        const size_t wanted = g->cap == 0 ? ROWS_FIRST : g->cap * 2;
        char *wider = hfd_arena_array(g->mem, wanted, g->form->size);

        if (wider == NULL)
            return NULL;
        if (g->count != 0)
            memcpy(wider, g->rows, g->count * g->form->size);
        g->rows = wider;
        g->cap = wanted;
    }
    return g->rows + g->count * g->form->size;
}

hfd_rc hfd_row_all(struct hfd_stmt *st, const struct hfd_row_form *form, struct hfd_arena *mem,
                   struct hfd_row_list *out, struct hfd_err *err)
{
    struct hfd_row_in in = {.st = st, .form = form, .mem = mem};
    struct growing g = {.form = form, .mem = mem};
    bool row;
    hfd_rc rc;

    while ((rc = next_row(&in, &row, err)) == HFD_OK && row) {
        void *place = next_place(&g);

        if (place == NULL) {
            rc = hfd_fail(err, HFD_NOMEM, "store: out of memory for a list of %zu", g.count);
            break;
        }
        form->read(&in, place);
        g.count++;
    }
    hfd_stmt_done(st);
    *out = rc == HFD_OK ? (struct hfd_row_list){g.rows, g.count} : (struct hfd_row_list){NULL, 0};
    return rc;
}

/* ---- statements ---- */

static void bind(struct hfd_stmt *st, struct hfd_args args)
{
    for (size_t i = 0; i < args.count; i++) {
        const struct hfd_arg *a = &args.all[i];
        const int at = (int)i + 1;

        if (a->type == 'n')
            hfd_stmt_i64(st, at, a->number);
        else if (a->type == 't')
            hfd_stmt_text(st, at, a->text);
        else
            hfd_stmt_blob(st, at, a->text);
    }
}

/* Writes the changes that the statement must see. */
static hfd_rc write_before(struct hfd_txn *tx, const struct hfd_query *query, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    for (int t = 0; rc == HFD_OK && query->after >> t != 0; t++)
        if ((query->after & HFD_UNIT_BIT(t)) != 0)
            rc = hfd_unit_write_table(tx, (enum hfd_unit_table)t, err);
    return rc;
}

/* Gets a statement. An engine that gathers also gets what the statement touches. */
static hfd_rc prepare(struct hfd_txn *tx, struct hfd_query *query, struct hfd_stmt **out,
                      struct hfd_err *err)
{
    const struct hfd_db_use *use;
    const char *sql;
    hfd_rc rc = write_before(tx, query, err);

    *out = NULL;
    if (rc == HFD_OK && hfd_db_gathers(tx->db)) {
        rc = hfd_query_use(query, &use, err);
        return rc == HFD_OK ? hfd_db_prepare_use(tx->db, use, out, err) : rc;
    }
    if (rc == HFD_OK)
        rc = hfd_query_sql(query, &sql, err);
    return rc == HFD_OK ? hfd_db_prepare(tx->db, sql, out, err) : rc;
}

hfd_rc hfd_query_open(struct hfd_txn *tx, struct hfd_query *query, struct hfd_args args,
                      struct hfd_stmt **out, struct hfd_err *err)
{
    const hfd_rc rc = prepare(tx, query, out, err);

    if (rc == HFD_OK)
        bind(*out, args);
    return rc;
}

hfd_rc hfd_query_one(struct hfd_txn *tx, struct hfd_query *query, struct hfd_args args,
                     struct hfd_arena *mem, void *row, struct hfd_err *err)
{
    struct hfd_stmt *st;
    const hfd_rc rc = hfd_query_open(tx, query, args, &st, err);

    return rc == HFD_OK ? hfd_row_one(st, &query->table->form, mem, row, err) : rc;
}

hfd_rc hfd_query_all(struct hfd_txn *tx, struct hfd_query *query, struct hfd_args args,
                     struct hfd_arena *mem, struct hfd_row_list *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    const hfd_rc rc = hfd_query_open(tx, query, args, &st, err);

    *out = (struct hfd_row_list){NULL, 0};
    return rc == HFD_OK ? hfd_row_all(st, &query->table->form, mem, out, err) : rc;
}

hfd_rc hfd_query_number(struct hfd_txn *tx, struct hfd_query *query, struct hfd_args args,
                        int64_t none, int64_t *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    const hfd_rc rc = hfd_query_open(tx, query, args, &st, err);

    *out = none;
    return rc == HFD_OK ? hfd_row_number(st, none, out, err) : rc;
}

hfd_rc hfd_query_run(struct hfd_txn *tx, struct hfd_query *query, struct hfd_args args,
                     struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc;

    HFD_ASSERT(tx->writable);
    rc = hfd_query_open(tx, query, args, &st, err);
    return rc == HFD_OK ? hfd_stmt_run(st, NULL, err) : rc;
}

hfd_rc hfd_query_write(struct hfd_txn *tx, struct hfd_query *query, const void *row,
                       int64_t *changed, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc;

    HFD_ASSERT(tx->writable);
    rc = prepare(tx, query, &st, err);
    if (rc != HFD_OK)
        return rc;
    hfd_query_bind(query, st, row);
    return hfd_stmt_run(st, changed, err);
}

hfd_rc hfd_query_follow(struct hfd_txn *tx, struct hfd_query *query, const char *via, hfd_slice key,
                        struct hfd_err *err)
{
    struct hfd_db_follow follow = {.via = via};
    const hfd_rc rc = hfd_query_use(query, &follow.target, err);

    return rc == HFD_OK ? hfd_db_follow(tx->db, &follow, key, err) : rc;
}

/* ---- rows that are kept ---- */

/* The parameters of a statement by a key. */
static struct hfd_args key_args(const struct hfd_table *table, const struct hfd_unit_key *key,
                                struct hfd_arg out[2])
{
    out[0] = hfd_arg_text(key->first);
    out[1] = hfd_arg_text(key->second);
    return (struct hfd_args){out, table->keys};
}

hfd_rc hfd_kept_get(struct hfd_txn *tx, const struct hfd_unit_form *form,
                    const struct hfd_unit_key *key, struct hfd_arena *mem, void *out,
                    struct hfd_err *err)
{
    const struct hfd_kept *kept = hfd_unit_find(tx, form, key);
    struct hfd_arg args[2];
    hfd_rc rc;

    if (kept != NULL && !kept->head)
        return hfd_unit_give(kept, mem, out, err);
    if (kept == NULL && hfd_unit_has_all(tx, form, key->first))
        return hfd_fail(err, HFD_NOT_FOUND, "no such %s is stored", form->rows->form.what);
    rc = hfd_query_one(tx, form->rows->get, key_args(form->rows, key, args), mem, out, err);
    if (rc == HFD_OK)
        (void)hfd_unit_keep(tx, form, out);
    else if (rc == HFD_NOT_FOUND)
        (void)hfd_unit_keep_absent(tx, form, key);
    return rc;
}

hfd_rc hfd_kept_put(struct hfd_txn *tx, const struct hfd_unit_form *form, const void *row,
                    unsigned change, struct hfd_err *err)
{
    struct hfd_kept now = {.form = form, .row = (void *)(uintptr_t)row, .change = change};
    struct hfd_kept *kept;

    now.key = hfd_table_key(form->rows, row);
    kept = hfd_unit_find(tx, form, &now.key);
    if (kept != NULL)
        now.change |= kept->change;
    kept = hfd_unit_keep(tx, form, row);
    if (kept == NULL)
        return form->write(tx, &now, err);
    hfd_unit_change(tx, kept, now.change);
    return HFD_OK;
}

hfd_rc hfd_kept_write(struct hfd_txn *tx, const struct hfd_kept *kept, struct hfd_err *err)
{
    const struct hfd_table *table = kept->form->rows;
    struct hfd_arg args[2];

    if (kept->row != NULL)
        return hfd_query_write(tx, table->put, kept->row, NULL, err);
    return hfd_query_run(tx, table->remove, key_args(table, &kept->key, args), err);
}

hfd_rc hfd_row_count(struct hfd_db *db, const char *table, int64_t *out, struct hfd_err *err)
{
    char sql[96];
    const int len = snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s", table);
    struct hfd_stmt *st;
    const hfd_rc rc = hfd_db_prepare_once(db, (hfd_slice){sql, (size_t)len}, &st, err);

    return rc == HFD_OK ? hfd_row_number(st, 0, out, err) : rc;
}
