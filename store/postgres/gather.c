#include "store/postgres/gather.h"

#include "driver/base/check.h"
#include "driver/base/metrics.h"
#include "store/postgres/text.h"
#include "store/stmt_slots.h"

#include <stdlib.h>

#define HFD_GATHER_MAGIC UINT32_C(0x67617374)

enum gather_mode {
    HFD_GATHER_DIRECT,  /* no transaction, or each statement is sent on its own */
    HFD_GATHER_LOOKING, /* what is not known is noted */
    HFD_GATHER_PLAIN    /* what is not known is read alone */
};

#define WRITES_BYTES_MAX ((size_t)256 << 20)
#define WRITES_BUCKETS 64u

struct writes {
    struct hfd_arena mem;
    struct hfd_write_table *first, *last;
    struct hfd_write_table *open; /* the first one that takes writes; NULL = none does */
    size_t count;
};

/* One more write. */
struct new_write {
    struct hfd_shape_use use;
    bool expects_one; /* it is to change one row; else any number */
};

struct hfd_db {
    const struct hfd_engine *engine; /* first */
    struct hfd_db *inner;
    hfd_burst_fn *burst;
    const char *look; /* what a burst of reads counts as */
    enum gather_mode mode;
    bool in_transaction;
    bool begun;        /* the other engine's transaction has begun */
    bool reads_only;   /* nothing is written: the first burst is a transaction of its own */
    bool ended;        /* it has been; what it did not read needs another one */
    bool missed;       /* looking: a read was not known */
    bool blocked;      /* looking: a read was hidden by a write of this run */
    bool surprised;    /* the transaction is of no use */
    bool alone;        /* the next transaction sends each statement on its own */
    bool leaves_roots; /* the next transaction is alone */
    struct hfd_roots roots;
    int looks; /* of this transaction */
    struct writes writes;
    struct hfd_knowns knowns;
    struct hfd_gather_counts counts;
    struct hfd_stmt_slots stmts;
};

struct hfd_stmt {
    const struct hfd_engine *engine; /* first */
    uint32_t magic;
    struct hfd_db *db;
    const char *sql;
    struct hfd_shape shape;
    struct hfd_value values[HFD_SHAPE_PARAMS_MAX];
    struct hfd_stmt *inner; /* the other engine's, while it is used */
    bool in_use;
    bool once;
    bool stepped;
    hfd_rc stuck;
    const struct hfd_known_row *next, *row;
};

#define LOOKS_MAX 12 /* of a transaction */
#define ROOTS_BYTES_MAX ((size_t)1 << 20)

/* Notes that the group is of no use, and fails. */
static hfd_rc gather_surprised(struct hfd_db *db, struct hfd_err *err)
{
    db->surprised = true;
    return hfd_fail(err, HFD_BUSY, "store: the group runs again, one statement after the other");
}

/* ---- writes that are kept back ---- */

static void init_writes(struct writes *w)
{
    *w = (struct writes){.first = NULL};
    hfd_arena_init(&w->mem, WRITES_BYTES_MAX);
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
    return &set->buckets[hash_of(set->shape->of, values) % WRITES_BUCKETS];
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
static bool can_join(struct writes *w, struct hfd_write_set *set, const struct new_write *new)
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
        set->buckets = hfd_arena_array(&w->mem, WRITES_BUCKETS, sizeof(struct hfd_write *));
        if (set->buckets == NULL)
            return false;
        add_to_bucket(set, set->first);
    }
    return !has_equal(set, new->use.values);
}

/* The list of the write's table. */
static struct hfd_write_table *find_table(struct writes *w, const char *name)
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

static struct hfd_write_set *add_set(struct writes *w, struct hfd_write_table *table,
                                     const struct new_write *new)
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

/* Adds a write; copies its values. */
static hfd_rc add_write(struct writes *w, const struct new_write *new, struct hfd_err *err)
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

/* ---- roots ---- */

/* Forgets all roots, and frees their names. Accepts zeroed memory. */
static void clear_roots(struct hfd_roots *roots)
{
    hfd_arena_fini(&roots->mem);
    hfd_arena_init(&roots->mem, ROOTS_BYTES_MAX);
    roots->count = 0;
    roots->alone = false;
}

/* Adds a root; a group with too many of them is alone. */
static hfd_rc add_root(struct hfd_roots *roots, enum hfd_db_root kind, hfd_slice id,
                       struct hfd_err *err)
{
    const char *prefix = kind == HFD_DB_ROOT_RESOURCE ? "r" : "f";
    hfd_slice name;

    if (roots->count == HFD_ROOTS_MAX)
        roots->alone = true;
    if (roots->alone)
        return HFD_OK;
    name = hfd_arena_printf(&roots->mem, "%s%.*s", prefix, HFD_SLICE_FMT(id));
    if (name.p == NULL)
        return hfd_fail_nomem(err, "a lock of the store");
    roots->names[roots->count++] = name;
    return HFD_OK;
}

/* ---- bursts ---- */

static void forget_writes(struct hfd_db *db)
{
    hfd_arena_fini(&db->writes.mem);
    init_writes(&db->writes);
}

static hfd_rc send_burst(struct hfd_db *db, struct hfd_burst *burst, const char *purpose,
                         struct hfd_err *err)
{
    hfd_rc rc;

    burst->begins = db->in_transaction && !db->begun;
    burst->roots = &db->roots;
    burst->writes = db->writes.first;
    burst->knowns = &db->knowns;
    db->begun = db->begun || burst->begins;
    db->counts.bursts++;
    hfd_metric_add(HFD_METRIC_STORE_ROUND_TRIPS, HFD_LABELS(purpose), 1);
    rc = db->burst(db->inner, burst, err);
    forget_writes(db);
    if (rc == HFD_CONFLICT || (rc != HFD_OK && hfd_db_fate(db->inner) == HFD_DB_UNDONE))
        return gather_surprised(db, err);
    return rc;
}

/* Sends the writes so far, and reads. Both may be none. @return also HFD_BUSY: it runs again */
static hfd_rc gather_send(struct hfd_db *db, struct hfd_known *reads, struct hfd_err *err)
{
    struct hfd_burst burst = {.reads = reads};

    HFD_ASSERT(!db->ended);
    return db->writes.first != NULL || reads != NULL
               ? send_burst(db, &burst,
                            reads == NULL                    ? "write"
                            : db->mode == HFD_GATHER_LOOKING ? db->look
                                                             : "miss",
                            err)
               : HFD_OK;
}

/* The other engine is used itself: the transaction begins, and the writes so far are sent. */
static hfd_rc gather_go_inside(struct hfd_db *db, struct hfd_err *err)
{
    struct hfd_burst burst = {.begins = true};

    if (db->ended) {
        db->blocked = true;
        return hfd_fail(err, HFD_BUSY, "store: the group runs again in another snapshot");
    }
    if (db->writes.first == NULL && (db->begun || !db->in_transaction))
        return HFD_OK;
    return send_burst(db, &burst, "write", err);
}

/* ---- transactions ---- */

/* The other engine's transaction begins with the first burst. */
static hfd_rc begin(struct hfd_db *db, enum gather_mode mode, struct hfd_err *err)
{
    const hfd_rc rc = hfd_db_cause(db->inner, err);

    HFD_ASSERT(!db->in_transaction);
    if (rc != HFD_OK)
        return rc;
    db->in_transaction = true;
    db->begun = db->ended = false;
    db->mode = db->alone ? HFD_GATHER_DIRECT : mode;
    db->counts.alone += db->alone;
    clear_roots(&db->roots);
    db->roots.alone = db->mode == HFD_GATHER_DIRECT || db->leaves_roots;
    db->alone = db->missed = db->blocked = db->surprised = db->leaves_roots = false;
    db->looks = 0;
    return HFD_OK;
}

/* Without a group it cannot run again: each statement is sent on its own. */
static hfd_rc gather_begin(struct hfd_db *db, struct hfd_err *err)
{
    return begin(db, HFD_GATHER_DIRECT, err);
}

static hfd_rc gather_begin_group(struct hfd_db *db, struct hfd_err *err)
{
    return begin(db, HFD_GATHER_LOOKING, err);
}

static void end_transaction(struct hfd_db *db)
{
    forget_writes(db);
    hfd_knowns_clear(&db->knowns);
    db->in_transaction = db->ended = false;
    db->mode = HFD_GATHER_DIRECT;
}

static void gather_rollback(struct hfd_db *db)
{
    if (!db->in_transaction)
        return;
    if (db->begun)
        hfd_db_rollback(db->inner);
    db->alone = db->surprised && !db->leaves_roots;
    end_transaction(db);
}

static hfd_rc gather_commit(struct hfd_db *db, struct hfd_err *err)
{
    struct hfd_burst burst = {.commits = true};
    hfd_rc rc = HFD_OK;

    HFD_ASSERT(db->in_transaction && !db->missed && !db->blocked);
    if (db->surprised)
        rc = gather_surprised(db, err);
    else if (db->begun || db->writes.first != NULL)
        rc = send_burst(db, &burst, "commit", err);
    if (rc == HFD_OK)
        end_transaction(db);
    return rc;
}

/*
 * Reads what was wanted. Where nothing is written, the first burst also ends its transaction: it is
 * the only round trip if the jobs want no more. If they do, all is read anew in a transaction that
 * stays, so that each answer rests on one snapshot.
 */
static hfd_rc send_looks(struct hfd_db *db, struct hfd_err *err)
{
    struct hfd_burst burst = {.commits = true};
    const bool whole = db->reads_only && !db->begun && !db->ended;
    hfd_rc rc;

    if (db->ended)
        hfd_known_renew(&db->knowns);
    db->ended = false;
    db->counts.looks++;
    if (!whole)
        return gather_send(db, hfd_known_take_wanted(&db->knowns), err);
    burst.reads = hfd_known_take_wanted(&db->knowns);
    rc = send_burst(db, &burst, db->look, err);
    db->ended = rc == HFD_OK;
    db->begun = !db->ended;
    return rc;
}

static hfd_rc gather_look(struct hfd_db *db, bool *again, struct hfd_err *err)
{
    const bool missed = db->missed || db->ended;
    hfd_rc rc = HFD_OK;

    *again = false;
    if (!db->missed && !db->blocked)
        return HFD_OK;
    HFD_ASSERT(db->mode == HFD_GATHER_LOOKING);
    *again = true;
    forget_writes(db); /* none has been sent */
    if (missed && db->looks == 0)
        rc = hfd_known_want_usual(&db->knowns, db->roots.alone, err);
    if (rc == HFD_OK && missed)
        rc = send_looks(db, err);
    hfd_known_again(&db->knowns);
    if (!missed || ++db->looks == LOOKS_MAX)
        db->mode = HFD_GATHER_PLAIN;
    db->missed = db->blocked = false;
    return rc;
}

static hfd_rc gather_root(struct hfd_db *db, enum hfd_db_root kind, hfd_slice id,
                          struct hfd_err *err)
{
    const hfd_rc rc = add_root(&db->roots, kind, id, err);

    HFD_ASSERT(!db->begun || db->roots.alone);
    if (rc != HFD_OK)
        db->roots.alone = true;
    return rc;
}

/* A group without roots is alone. One that has begun with roots runs again. */
static hfd_rc gather_exclusive(struct hfd_db *db, struct hfd_err *err)
{
    if (!db->in_transaction || db->roots.alone)
        return HFD_OK;
    if (!db->begun) {
        db->roots.alone = true;
        return HFD_OK;
    }
    db->surprised = db->leaves_roots = true;
    return hfd_fail(err, HFD_BUSY, "store: the group runs again, without another one beside it");
}

static bool gather_is_looking(const struct hfd_db *db)
{
    return db->missed || db->blocked || db->surprised;
}

static int64_t gather_changes(const struct hfd_db *db)
{
    return hfd_db_changes(db->inner) + (int64_t)db->writes.count;
}

/* ---- statements ---- */

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

static hfd_rc gather_prepare(struct hfd_db *db, const char *sql, struct hfd_stmt **out,
                             struct hfd_err *err)
{
    return prepare(db, sql, NULL, out, err);
}

static hfd_rc gather_prepare_use(struct hfd_db *db, const struct hfd_db_use *use,
                                 struct hfd_stmt **out, struct hfd_err *err)
{
    return prepare(db, use->sql, use, out, err);
}

/* A composed text is not gathered. It sees the writes so far. */
static hfd_rc gather_prepare_once(struct hfd_db *db, hfd_slice sql, struct hfd_stmt **out,
                                  struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc;

    *out = NULL;
    if (db->mode == HFD_GATHER_LOOKING && db->writes.first != NULL) {
        db->blocked = true;
        return hfd_fail(err, HFD_BUSY, "store: the group runs again before this search");
    }
    rc = gather_go_inside(db, err);
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

static void gather_done(struct hfd_stmt *st)
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

/* Binds a value to a statement of any engine. */
static void bind_to(struct hfd_stmt *to, int at, const struct hfd_value *v)
{
    if (v->kind == HFD_VALUE_I64)
        hfd_stmt_i64(to, at, v->as.i64);
    else if (v->kind == HFD_VALUE_F64)
        hfd_stmt_f64(to, at, v->as.f64);
    else if (v->kind == HFD_VALUE_TEXT)
        hfd_stmt_text(to, at, v->null ? HFD_SLICE_NONE : v->as.bytes);
    else if (v->kind == HFD_VALUE_BLOB)
        hfd_stmt_blob(to, at, v->null ? HFD_SLICE_NONE : v->as.bytes);
    else
        hfd_stmt_null(to, at);
}

void hfd_gather_bind(struct hfd_stmt *to, const struct hfd_value *values, int params)
{
    for (int i = 0; i < params; i++)
        bind_to(to, i + 1, &values[i]);
}

static void bind(struct hfd_stmt *st, int at, struct hfd_value v)
{
    HFD_CHECK_OBJ(st, HFD_GATHER_MAGIC);
    if (st->once) {
        bind_to(st->inner, at, &v);
        return;
    }
    HFD_ASSERT(at >= 1 && at <= st->shape.params);
    st->values[at - 1] = v;
}

static void gather_text(struct hfd_stmt *st, int at, hfd_slice v)
{
    bind(st, at, (struct hfd_value){HFD_VALUE_TEXT, v.p == NULL, {.bytes = v}});
}

static void gather_blob(struct hfd_stmt *st, int at, hfd_slice v)
{
    bind(st, at, (struct hfd_value){HFD_VALUE_BLOB, v.p == NULL, {.bytes = v}});
}

static void gather_i64(struct hfd_stmt *st, int at, int64_t v)
{
    bind(st, at, (struct hfd_value){HFD_VALUE_I64, false, {.i64 = v}});
}

static void gather_f64(struct hfd_stmt *st, int at, double v)
{
    bind(st, at, (struct hfd_value){HFD_VALUE_F64, false, {.f64 = v}});
}

static void gather_null(struct hfd_stmt *st, int at)
{
    bind(st, at, (struct hfd_value){HFD_VALUE_NONE, true, {.i64 = 0}});
}

/* Has the other engine run the statement, behind all writes so far. */
static hfd_rc go_inside(struct hfd_stmt *st, struct hfd_err *err)
{
    hfd_rc rc;

    if (st->inner != NULL)
        return HFD_OK;
    rc = gather_go_inside(st->db, err);
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

static hfd_rc gather_follow(struct hfd_db *db, const struct hfd_db_follow *follow, hfd_slice key,
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
    struct hfd_known *known = hfd_known_find(&db->knowns, st->sql, &read, false);
    hfd_rc rc;

    hfd_known_note_usual(&db->knowns, st->sql, &read, db->roots.alone);
    if (known != NULL && known->read) {
        st->next = known->rows;
        return HFD_OK;
    }
    if (known != NULL)
        return fail_looking(&db->missed, err);
    if (db->mode == HFD_GATHER_LOOKING && hfd_known_find(&db->knowns, st->sql, &read, true) != NULL)
        return fail_looking(&db->blocked, err);
    known = hfd_known_want(&db->knowns, st->sql, &read);
    if (known == NULL)
        return hfd_fail_nomem(err, "a result of the store");
    if (db->mode == HFD_GATHER_LOOKING)
        return fail_looking(&db->missed, err);
    db->counts.misses++;
    rc = gather_send(db, hfd_known_take_wanted(&db->knowns), err);
    st->next = known->rows;
    return rc;
}

static hfd_rc gather_step(struct hfd_stmt *st, bool *row, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    HFD_CHECK_OBJ(st, HFD_GATHER_MAGIC);
    HFD_ASSERT(st->in_use);
    *row = false;
    if (st->db->surprised && st->db->in_transaction)
        return gather_surprised(st->db, err);
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
    const struct new_write new = {{&st->shape, st->values}, changed != NULL};
    const hfd_rc rc = db->surprised ? gather_surprised(db, err) : add_write(&db->writes, &new, err);

    if (rc == HFD_OK)
        hfd_known_write(&db->knowns, &new.use);
    if (changed != NULL)
        *changed = rc == HFD_OK;
    gather_done(st);
    return rc;
}

static hfd_rc gather_run(struct hfd_stmt *st, int64_t *changed, struct hfd_err *err)
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
    gather_done(st);
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

static int64_t gather_col_i64(struct hfd_stmt *st, int at)
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

static bool gather_is_stuck(const struct hfd_stmt *st)
{
    return st->stuck != HFD_OK || (st->inner != NULL && hfd_stmt_is_stuck(st->inner));
}

static bool gather_col_is_null(struct hfd_stmt *st, int at)
{
    return st->inner != NULL ? hfd_stmt_col_is_null(st->inner, at) : cell_of(st, at)->null;
}

static hfd_slice gather_col_text(struct hfd_stmt *st, int at, struct hfd_arena *mem)
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

/* ---- the connection ---- */

static void end_stmt(struct hfd_stmt *st)
{
    HFD_ASSERT(!st->in_use);
    free(st);
}

static void gather_close(struct hfd_db **db)
{
    struct hfd_db *own = *db;

    hfd_stmt_slots_clear(&own->stmts, end_stmt);
    hfd_db_close(&own->inner);
    hfd_arena_fini(&own->writes.mem);
    clear_roots(&own->roots);
    hfd_knowns_fini(&own->knowns);
    free(own);
    *db = NULL;
}

static struct hfd_db *gather_inner(const struct hfd_db *db)
{
    return db->inner;
}

/* Before its first burst a transaction has no fate: the other engine still has the last one's. */
static enum hfd_db_fate gather_fate(const struct hfd_db *db)
{
    enum hfd_db_fate fate = hfd_db_fate(db->inner);

    if (db->in_transaction && !db->begun && fate != HFD_DB_LOST)
        fate = HFD_DB_GOES_ON;

    return db->surprised && fate != HFD_DB_LOST ? HFD_DB_AGAIN : fate;
}

static const char *gather_undone_by(const struct hfd_db *db)
{
    return db->leaves_roots ? "roots" : hfd_db_undone_by(db->inner);
}

/* The statements may change anything. */
static hfd_rc gather_exec(struct hfd_db *db, const char *sql, struct hfd_err *err)
{
    static const struct hfd_db_use any;
    static const struct hfd_shape all = {.of = &any};
    const hfd_rc rc = gather_go_inside(db, err);

    hfd_known_write(&db->knowns, &(struct hfd_shape_use){&all, NULL});
    return rc == HFD_OK ? hfd_db_exec(db->inner, sql, err) : rc;
}

static const struct hfd_engine_statements statements = {
    .prepare = gather_prepare,
    .prepare_use = gather_prepare_use,
    .prepare_once = gather_prepare_once,
    .text = gather_text,
    .blob = gather_blob,
    .i64 = gather_i64,
    .f64 = gather_f64,
    .null = gather_null,
    .step = gather_step,
    .run = gather_run,
    .done = gather_done,
    .col_i64 = gather_col_i64,
    .is_stuck = gather_is_stuck,
    .col_is_null = gather_col_is_null,
    .col_text = gather_col_text,
};

static const struct hfd_engine engine = {
    .inner = gather_inner,
    .inside = gather_go_inside,
    .close = gather_close,
    .begin = gather_begin,
    .begin_group = gather_begin_group,
    .look = gather_look,
    .follow = gather_follow,
    .root = gather_root,
    .exclusive = gather_exclusive,
    .is_looking = gather_is_looking,
    .commit = gather_commit,
    .rollback = gather_rollback,
    .changes = gather_changes,
    .fate = gather_fate,
    .undone_by = gather_undone_by,
    .exec = gather_exec,
    .statements = &statements,
};

hfd_rc hfd_gather_open(struct hfd_db *inner, hfd_burst_fn *burst, enum hfd_db_mode mode,
                       struct hfd_db **out, struct hfd_err *err)
{
    struct hfd_db *db = calloc(1, sizeof(*db));

    *out = db;
    if (db == NULL) {
        hfd_db_close(&inner);
        return hfd_fail_nomem(err, "a connection of the store");
    }
    db->engine = &engine;
    db->inner = inner;
    db->burst = burst;
    db->look = mode == HFD_DB_WRITER ? "look" : "read";
    db->reads_only = mode == HFD_DB_POINTS;
    init_writes(&db->writes);
    clear_roots(&db->roots);
    hfd_knowns_init(&db->knowns);
    return HFD_OK;
}

struct hfd_gather_counts hfd_gather_counts(const struct hfd_db *db)
{
    return db->counts;
}
