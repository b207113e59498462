#include "store/postgres/gather_stmt.h"

#include "driver/base/check.h"
#include "store/postgres/text.h"

#include <stdlib.h>

static struct hfd_stmt *new_stmt(struct hfd_db *db, const char *sql)
{
    struct hfd_stmt *st = calloc(1, sizeof(*st));

    if (st == NULL)
        return NULL;
    st->engine = db->engine;
    st->magic = HFD_GATHER_MAGIC;
    st->db = db;
    st->sql = sql;
    return st;
}

static void use(struct hfd_stmt *st)
{
    HFD_ASSERT(!st->in_use);
    st->in_use = true;
    st->stepped = false;
    st->stuck = HFD_OK;
    st->next = st->row = NULL;
    memset(st->values, 0, sizeof(st->values[0]) * (size_t)st->shape.params);
}

/* Nothing is known of a statement, and of the number of a group that it touches no table. */
static const struct hfd_db_use unknown, of_no_table = {.table = "none"};

static hfd_rc count_params(const char *sql, int *out, struct hfd_err *err)
{
    char *text = hfd_pg_placeholders(hfd_slice_of(sql), "$", out);

    if (text == NULL)
        return hfd_fail_nomem(err, "make a statement");
    free(text);
    HFD_ASSERT(*out <= HFD_SHAPE_PARAMS_MAX);
    return HFD_OK;
}

/* Finds the statement of a text; makes it at its first use. @param use  NULL = nothing is known */
static hfd_rc find_stmt(struct hfd_db *db, const char *sql, const struct hfd_db_use *use,
                        struct hfd_stmt **out, struct hfd_err *err)
{
    struct hfd_shape shape = {.of = use};
    hfd_rc rc;

    *out = hfd_stmt_slots_find(&db->stmts, sql);
    if (*out != NULL)
        return HFD_OK;
    rc = hfd_stmt_slots_reserve(&db->stmts, err);
    if (rc == HFD_OK)
        rc = count_params(sql, &shape.params, err);
    if (rc != HFD_OK)
        return rc;
    if (use == NULL)
        shape.of = sql == hfd_db_sql_number(db->inner) ? &of_no_table : &unknown;
    *out = new_stmt(db, sql);
    if (*out == NULL)
        return hfd_fail_nomem(err, "make a statement");
    (*out)->shape = shape;
    hfd_stmt_slots_add(&db->stmts, sql, *out);
    return HFD_OK;
}

static hfd_rc prepare(struct hfd_db *db, const char *sql, const struct hfd_db_use *use_of,
                      struct hfd_stmt **out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    const hfd_rc rc = find_stmt(db, sql, use_of, &st, err);

    *out = NULL;
    if (rc != HFD_OK)
        return rc;
    use(st);
    *out = st;
    return HFD_OK;
}

hfd_rc hfd_gather_prepare(struct hfd_db *db, const char *sql, struct hfd_stmt **out,
                          struct hfd_err *err)
{
    return prepare(db, sql, NULL, out, err);
}

hfd_rc hfd_gather_prepare_use(struct hfd_db *db, const struct hfd_db_use *use,
                              struct hfd_stmt **out, struct hfd_err *err)
{
    return prepare(db, use->sql, use, out, err);
}

/* A composed text is not gathered. It sees the writes so far. */
hfd_rc hfd_gather_prepare_once(struct hfd_db *db, hfd_slice sql, struct hfd_stmt **out,
                               struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc;

    *out = NULL;
    if (db->mode == HFD_GATHER_LOOKING && db->writes.first != NULL) {
        db->blocked = true;
        return hfd_fail(err, HFD_BUSY, "store: the group runs again before this search");
    }
    rc = hfd_gather_go_inside(db, err);
    if (rc != HFD_OK)
        return rc;
    st = new_stmt(db, "a composed query");
    if (st == NULL)
        return hfd_fail_nomem(err, "a statement of the store");
    rc = hfd_db_prepare_once(db->inner, sql, &st->inner, err);
    if (rc != HFD_OK) {
        free(st);
        return rc;
    }
    st->once = st->in_use = true;
    *out = st;
    return HFD_OK;
}

void hfd_gather_done(struct hfd_stmt *st)
{
    if (st == NULL)
        return;
    HFD_CHECK_OBJ(st, HFD_GATHER_MAGIC);
    hfd_stmt_done(st->inner);
    st->inner = NULL;
    st->in_use = false;
    if (st->once) {
        st->magic = 0;
        free(st);
    }
}

static void bind(struct hfd_stmt *st, int at, struct hfd_value v)
{
    HFD_CHECK_OBJ(st, HFD_GATHER_MAGIC);
    HFD_ASSERT(at >= 1 && at <= st->shape.params);
    st->values[at - 1] = v;
}

void hfd_gather_text(struct hfd_stmt *st, int at, hfd_slice v)
{
    if (st->once)
        hfd_stmt_text(st->inner, at, v);
    else
        bind(st, at, (struct hfd_value){HFD_VALUE_TEXT, v.p == NULL, {.bytes = v}});
}

void hfd_gather_blob(struct hfd_stmt *st, int at, hfd_slice v)
{
    if (st->once)
        hfd_stmt_blob(st->inner, at, v);
    else
        bind(st, at, (struct hfd_value){HFD_VALUE_BLOB, v.p == NULL, {.bytes = v}});
}

void hfd_gather_i64(struct hfd_stmt *st, int at, int64_t v)
{
    if (st->once)
        hfd_stmt_i64(st->inner, at, v);
    else
        bind(st, at, (struct hfd_value){HFD_VALUE_I64, false, {.i64 = v}});
}

void hfd_gather_f64(struct hfd_stmt *st, int at, double v)
{
    if (st->once)
        hfd_stmt_f64(st->inner, at, v);
    else
        bind(st, at, (struct hfd_value){HFD_VALUE_F64, false, {.f64 = v}});
}

void hfd_gather_null(struct hfd_stmt *st, int at)
{
    if (st->once)
        hfd_stmt_null(st->inner, at);
    else
        bind(st, at, (struct hfd_value){HFD_VALUE_NONE, true, {.i64 = 0}});
}

void hfd_gather_bind(struct hfd_stmt *to, const struct hfd_value *values, int params)
{
    for (int i = 0; i < params; i++) {
        const struct hfd_value *v = &values[i];

        if (v->kind == HFD_VALUE_I64)
            hfd_stmt_i64(to, i + 1, v->as.i64);
        else if (v->kind == HFD_VALUE_F64)
            hfd_stmt_f64(to, i + 1, v->as.f64);
        else if (v->kind == HFD_VALUE_TEXT)
            hfd_stmt_text(to, i + 1, v->null ? HFD_SLICE_NONE : v->as.bytes);
        else if (v->kind == HFD_VALUE_BLOB)
            hfd_stmt_blob(to, i + 1, v->null ? HFD_SLICE_NONE : v->as.bytes);
        else
            hfd_stmt_null(to, i + 1);
    }
}

/* Has the other engine run the statement, behind all writes so far. */
static hfd_rc go_inside(struct hfd_stmt *st, struct hfd_err *err)
{
    hfd_rc rc;

    if (st->inner != NULL)
        return HFD_OK;
    rc = hfd_gather_go_inside(st->db, err);
    if (rc == HFD_OK)
        rc = hfd_db_prepare(st->db->inner, st->sql, &st->inner, err);
    if (rc == HFD_OK)
        hfd_gather_bind(st->inner, st->values, st->shape.params);
    return rc;
}

static hfd_rc fail_looking(bool *which, struct hfd_err *err)
{
    *which = true;
    return hfd_fail(err, HFD_BUSY, "store: the group runs again when this is read");
}

hfd_rc hfd_gather_follow(struct hfd_db *db, const struct hfd_db_follow *follow, hfd_slice key,
                         struct hfd_err *err)
{
    const struct hfd_value value = {HFD_VALUE_TEXT, false, {.bytes = key}};
    struct hfd_stmt *via, *target;
    hfd_rc rc;

    if (db->mode != HFD_GATHER_LOOKING || key.p == NULL)
        return HFD_OK;
    rc = find_stmt(db, follow->via, NULL, &via, err);
    if (rc == HFD_OK)
        rc = find_stmt(db, follow->target->sql, follow->target, &target, err);
    if (rc != HFD_OK)
        return rc;
    HFD_ASSERT(via->shape.params == 1 && target->shape.params == 1);
    db->missed = true;
    return hfd_known_follow(&db->knowns,
                            &(struct hfd_known){.sql = via->sql,
                                                .shape = &via->shape,
                                                .values = &value,
                                                .target = target->sql,
                                                .target_shape = &target->shape},
                            err);
}

/* Finds the result of a read, or reads it. */
static hfd_rc find_result(struct hfd_stmt *st, struct hfd_err *err)
{
    struct hfd_db *db = st->db;
    const struct hfd_shape_use read = {&st->shape, st->values};
    struct hfd_known *known = hfd_known_find(&db->knowns, st->sql, &read);
    hfd_rc rc;

    hfd_known_note_usual(&db->knowns, st->sql, &read, db->roots.alone);
    if (known != NULL && known->read) {
        st->next = known->rows;
        return HFD_OK;
    }
    if (known != NULL)
        return fail_looking(&db->missed, err);
    if (db->mode == HFD_GATHER_LOOKING && hfd_known_is_hidden(&db->knowns, st->sql, &read))
        return fail_looking(&db->blocked, err);
    known = hfd_known_want(&db->knowns, st->sql, &read);
    if (known == NULL)
        return hfd_fail_nomem(err, "a result of the store");
    if (db->mode == HFD_GATHER_LOOKING)
        return fail_looking(&db->missed, err);
    db->counts.misses++;
    rc = hfd_gather_send(db, hfd_known_take_wanted(&db->knowns), err);
    st->next = known->rows;
    return rc;
}

hfd_rc hfd_gather_step(struct hfd_stmt *st, bool *row, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    HFD_CHECK_OBJ(st, HFD_GATHER_MAGIC);
    HFD_ASSERT(st->in_use);
    *row = false;
    if (st->db->surprised && st->db->in_transaction)
        return hfd_gather_surprised(st->db, err);
    if (st->stuck != HFD_OK)
        return hfd_fail(err, st->stuck, "store: %.48s: a column holds a value of another type",
                        st->sql);
    if (!st->stepped && !st->once && st->db->mode == HFD_GATHER_DIRECT)
        rc = go_inside(st, err);
    else if (!st->stepped && !st->once)
        rc = find_result(st, err);
    if (rc != HFD_OK)
        return rc;
    st->stepped = true;
    if (st->inner != NULL)
        return hfd_stmt_step(st->inner, row, err);
    st->row = st->next;
    st->next = st->row != NULL ? st->row->next : NULL;
    *row = st->row != NULL;
    return HFD_OK;
}

/* Keeps a write back. It is taken to change one row where the caller asks how many. */
static hfd_rc keep_back(struct hfd_stmt *st, int64_t *changed, struct hfd_err *err)
{
    struct hfd_db *db = st->db;
    const struct hfd_write_new new = {{&st->shape, st->values}, changed != NULL};
    const hfd_rc rc =
        db->surprised ? hfd_gather_surprised(db, err) : hfd_writes_add(&db->writes, &new, err);

    if (rc == HFD_OK)
        hfd_known_write(&db->knowns, &new.use);
    if (changed != NULL)
        *changed = rc == HFD_OK;
    hfd_gather_done(st);
    return rc;
}

hfd_rc hfd_gather_run(struct hfd_stmt *st, int64_t *changed, struct hfd_err *err)
{
    hfd_rc rc;

    HFD_CHECK_OBJ(st, HFD_GATHER_MAGIC);
    HFD_ASSERT(st->in_use && !st->once);
    if (st->db->mode != HFD_GATHER_DIRECT && st->shape.of->sql != NULL)
        return keep_back(st, changed, err);
    rc = go_inside(st, err);
    if (rc == HFD_OK) {
        struct hfd_stmt *inner = st->inner;

        st->inner = NULL;
        hfd_known_write(&st->db->knowns, &(struct hfd_shape_use){&st->shape, st->values});
        rc = hfd_stmt_run(inner, changed, err);
    }
    hfd_gather_done(st);
    return rc;
}

/* ---- columns ---- */

static const struct hfd_value *cell_of(struct hfd_stmt *st, int at)
{
    HFD_CHECK_OBJ(st, HFD_GATHER_MAGIC);
    HFD_ASSERT(st->row != NULL && at >= 0 && at < st->row->count);
    return &st->row->cells[at];
}

static void stick(struct hfd_stmt *st, hfd_rc rc)
{
    if (st->stuck == HFD_OK)
        st->stuck = rc;
}

int64_t hfd_gather_col_i64(struct hfd_stmt *st, int at)
{
    const struct hfd_value *cell;

    if (st->inner != NULL)
        return hfd_stmt_col_i64(st->inner, at);
    cell = cell_of(st, at);
    if (!cell->null && cell->kind == HFD_VALUE_I64)
        return cell->as.i64;
    stick(st, HFD_CORRUPT);
    return 0;
}

bool hfd_gather_is_stuck(const struct hfd_stmt *st)
{
    return st->stuck != HFD_OK || (st->inner != NULL && hfd_stmt_is_stuck(st->inner));
}

bool hfd_gather_col_is_null(struct hfd_stmt *st, int at)
{
    return st->inner != NULL ? hfd_stmt_col_is_null(st->inner, at) : cell_of(st, at)->null;
}

hfd_slice hfd_gather_col_text(struct hfd_stmt *st, int at, struct hfd_arena *mem)
{
    const struct hfd_value *cell;
    hfd_slice v;

    if (st->inner != NULL)
        return hfd_stmt_col_text(st->inner, at, mem);
    cell = cell_of(st, at);
    if (cell->null)
        return HFD_SLICE_NONE;
    if (cell->kind != HFD_VALUE_TEXT && cell->kind != HFD_VALUE_BLOB) {
        stick(st, HFD_CORRUPT);
        return HFD_SLICE_NONE;
    }
    v = hfd_arena_dup(mem, cell->as.bytes);
    if (v.p == NULL)
        stick(st, HFD_NOMEM);
    return v;
}
