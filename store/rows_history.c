/* The SQL is the portable subset. Thread: that of the transaction. */
#include "store/rows_history.h"

#include "driver/base/check.h"

#include "store/number.h"
#include "store/row_io.h"
#include "store/rows_ended.h"
#include "store/unit.h"

#define TRIM_MAX 16 /* tombstones that one call takes away */
#define TRIM_MEM_BYTES ((size_t)64 * 1024 * 1024)

/* clang-format off */
#define HISTORY_COLUMNS "seq, about, id, incarnation, instance, at_us, from_state, to_state, what, generation, text"
/* The creation of a resource that is there: 0 and 1 are absent and creating. */
#define CREATION \
    "SELECT r.seq, 0, r.guresid, r.incarnation, r.seq, r.created_us, 0, 1, '" HFD_HISTORY_CREATE "', 1, '' FROM resource r" \
    " WHERE NOT EXISTS (SELECT 1 FROM history h WHERE h.seq = r.seq)"
/* Both sides are in order, so that the first rows of each are enough. */
#define PAGE(direction) \
    "SELECT * FROM (SELECT * FROM (SELECT " HISTORY_COLUMNS " FROM history" \
    " WHERE about = 0 AND seq > ?1 AND seq < ?2 ORDER BY seq " direction " LIMIT ?3) AS stored" \
    " UNION ALL SELECT * FROM (" CREATION " AND r.seq > ?1 AND r.seq < ?2 ORDER BY r.seq " direction " LIMIT ?3) AS made)" \
    " AS both_of_them ORDER BY 1 " direction " LIMIT ?3"

static const char sql_history_last[] =
    "SELECT MAX(n) FROM (SELECT MAX(seq) AS n FROM history UNION ALL SELECT MAX(seq) FROM resource"
    " UNION ALL SELECT seq FROM history_floor WHERE one = 1 UNION ALL SELECT 0) AS ends";
static const char sql_history_last_before[] =
    "SELECT MAX(n) FROM (SELECT MAX(seq) AS n FROM history WHERE seq < ?1"
    " UNION ALL SELECT MAX(seq) FROM resource WHERE seq < ?1"
    " UNION ALL SELECT seq FROM history_floor WHERE one = 1 AND seq < ?1 UNION ALL SELECT 0) AS ends";
static const char sql_history_floor[] =
    "SELECT seq FROM history_floor WHERE one = 1";
static const char sql_history_raise_floor[] =
    "INSERT INTO history_floor (one, seq) VALUES (1, ?1)"
    " ON CONFLICT (one) DO UPDATE SET seq = excluded.seq WHERE excluded.seq > history_floor.seq";
static const char sql_history_add[] =
    "INSERT INTO history (" HISTORY_COLUMNS ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"
    " ON CONFLICT (seq) DO NOTHING";
static const char sql_history_beyond[] =
    "SELECT seq FROM history WHERE about = ?1 AND id = ?2 ORDER BY seq DESC LIMIT 1 OFFSET ?3";
static const char sql_history_trim[] =
    "DELETE FROM history WHERE about = ?1 AND id = ?2 AND seq <= ?3";
static const char sql_history_list[] =
    "SELECT " HISTORY_COLUMNS " FROM history WHERE about = ?1 AND id = ?2"
    " UNION ALL " CREATION " AND r.guresid = ?2 AND ?1 = 0 ORDER BY 1";
static const char sql_history_oldest[] = PAGE("ASC");
static const char sql_history_newest[] = PAGE("DESC");

#define TOMBSTONE_COLUMNS "seq, about, id, removed_us, created_us, kind, type, incarnation, cluster_id, name, provider"

static const char sql_tombstone_add[] =
    "INSERT INTO tombstone (" TOMBSTONE_COLUMNS ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
static const char sql_tombstone_get[] =
    "SELECT " TOMBSTONE_COLUMNS " FROM tombstone WHERE about = ?1 AND id = ?2";
static const char sql_tombstone_delete[] =
    "DELETE FROM tombstone WHERE about = ?1 AND id = ?2";
static const char sql_tombstone_count[] =
    "SELECT COUNT(*) FROM tombstone";
static const char sql_tombstone_oldest[] =
    "SELECT " TOMBSTONE_COLUMNS " FROM tombstone ORDER BY seq LIMIT ?1";
/* clang-format on */

/* ---- numbers ---- */

/* The newest number before `end`. */
static hfd_rc last_before(struct hfd_txn *tx, int64_t end, int64_t *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    const hfd_rc rc = hfd_db_prepare(tx->db, sql_history_last_before, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, end);
    return hfd_row_number(st, 0, out, err);
}

hfd_rc hfd_history_next_seq(struct hfd_txn *tx, int64_t *out, struct hfd_err *err)
{
    return hfd_number_next(tx, tx->unit != NULL ? &tx->unit->actions : NULL, sql_history_last, out,
                           err);
}

static hfd_rc raise_floor(struct hfd_txn *tx, int64_t seq, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_row_write(tx, sql_history_raise_floor, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, seq);
    return hfd_stmt_run(st, NULL, err);
}

/* ---- entries ---- */

static void read_history(struct hfd_row_in *in, void *out)
{
    struct hfd_history_row *row = out;

    row->seq = hfd_row_i64(in);
    row->about = (enum hfd_history_about)hfd_row_enum(in);
    row->id = hfd_row_text(in);
    row->incarnation = hfd_row_text(in);
    row->instance = hfd_row_i64(in);
    row->at_us = hfd_row_i64(in);
    row->from = hfd_row_enum(in);
    row->to = hfd_row_enum(in);
    row->what = hfd_row_text(in);
    row->generation = hfd_row_i64(in);
    row->text = hfd_row_text(in);
}

static const struct hfd_row_form history_form = {"history entry", read_history,
                                                 sizeof(struct hfd_history_row)};

static hfd_rc all_entries(struct hfd_stmt *st, struct hfd_arena *mem, struct hfd_history_list *out,
                          struct hfd_err *err)
{
    struct hfd_row_list list;
    hfd_rc rc = hfd_row_all(st, &history_form, mem, &list, err);

    out->rows = list.rows;
    out->count = list.count;
    return rc;
}

/* Removes the entries of a subject up to this number. */
static hfd_rc remove_up_to(struct hfd_txn *tx, const struct hfd_history_subject *s, int64_t seq,
                           struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_row_write(tx, sql_history_trim, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, s->about);
    hfd_stmt_text(st, 2, hfd_row_some(s->id));
    hfd_stmt_i64(st, 3, seq);
    rc = hfd_stmt_run(st, NULL, err);
    return rc == HFD_OK ? raise_floor(tx, seq, err) : rc;
}

/* Finds the newest entry of a subject that is beyond `keep`; 0 = there is none. */
static hfd_rc find_beyond(struct hfd_txn *tx, const struct hfd_history_subject *s, int64_t keep,
                          int64_t *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    const hfd_rc rc = hfd_db_prepare(tx->db, sql_history_beyond, &st, err);

    *out = 0;
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, s->about);
    hfd_stmt_text(st, 2, hfd_row_some(s->id));
    hfd_stmt_i64(st, 3, keep);
    return hfd_row_number(st, 0, out, err);
}

hfd_rc hfd_history_row_wants(struct hfd_txn *tx, const struct hfd_history_subject *subject,
                             int64_t keep, struct hfd_err *err)
{
    int64_t unused;

    return find_beyond(tx, subject, keep - 1, &unused, err);
}

/* Reads before it writes: an engine that gathers cannot know beforehand what it reads afterwards.
 */
hfd_rc hfd_history_row_add(struct hfd_txn *tx, const struct hfd_history_row *row, int64_t keep,
                           struct hfd_err *err)
{
    const struct hfd_history_subject subject = {row->about, row->id};
    struct hfd_stmt *st;
    int64_t beyond;
    hfd_rc rc = find_beyond(tx, &subject, keep - 1, &beyond, err);

    HFD_ASSERT(keep > 0);
    if (rc == HFD_OK)
        rc = hfd_row_write(tx, sql_history_add, &st, err);
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, row->seq);
    hfd_stmt_i64(st, 2, row->about);
    hfd_stmt_text(st, 3, hfd_row_some(row->id));
    hfd_stmt_text(st, 4, hfd_row_some(row->incarnation));
    hfd_stmt_i64(st, 5, row->instance);
    hfd_stmt_i64(st, 6, row->at_us);
    hfd_stmt_i64(st, 7, row->from);
    hfd_stmt_i64(st, 8, row->to);
    hfd_stmt_text(st, 9, hfd_row_some(row->what));
    hfd_stmt_i64(st, 10, row->generation);
    hfd_stmt_text(st, 11, hfd_row_some(row->text));
    rc = hfd_stmt_run(st, NULL, err);
    return rc == HFD_OK && beyond > 0 ? remove_up_to(tx, &subject, beyond, err) : rc;
}

/* Lists read the rows of resources, too. */
static hfd_rc prepare_list(struct hfd_txn *tx, const char *sql, struct hfd_stmt **st,
                           struct hfd_err *err)
{
    const hfd_rc rc = tx->writable ? hfd_unit_write_table(tx, HFD_UNIT_RESOURCE, err) : HFD_OK;

    return rc == HFD_OK ? hfd_db_prepare(tx->db, sql, st, err) : rc;
}

hfd_rc hfd_history_row_list(struct hfd_txn *tx, const struct hfd_history_subject *subject,
                            struct hfd_arena *mem, struct hfd_history_list *out,
                            struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc;

    *out = (struct hfd_history_list){.count = 0};
    rc = prepare_list(tx, sql_history_list, &st, err);
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, subject->about);
    hfd_stmt_text(st, 2, hfd_row_some(subject->id));
    return all_entries(st, mem, out, err);
}

hfd_rc hfd_history_row_page(struct hfd_txn *tx, const struct hfd_history_query *query,
                            struct hfd_arena *mem, struct hfd_history_list *out,
                            struct hfd_err *err)
{
    struct hfd_stmt *st;
    int64_t end;
    hfd_rc rc = hfd_number_end(tx, &end, err);

    *out = (struct hfd_history_list){.count = 0};
    if (rc == HFD_OK)
        rc = prepare_list(tx, query->newest ? sql_history_newest : sql_history_oldest, &st, err);
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, query->after);
    hfd_stmt_i64(st, 2, query->before < end ? query->before : end);
    hfd_stmt_i64(st, 3, query->limit);
    return all_entries(st, mem, out, err);
}

hfd_rc hfd_history_row_ends(struct hfd_txn *tx, struct hfd_history_ends *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    int64_t end;
    hfd_rc rc = hfd_number_end(tx, &end, err);

    if (rc == HFD_OK)
        rc = prepare_list(tx, sql_history_floor, &st, err);
    if (rc == HFD_OK)
        rc = hfd_row_number(st, 0, &out->floor, err);
    if (rc == HFD_OK && out->floor >= end)
        out->floor = end - 1;
    if (rc == HFD_OK)
        rc = last_before(tx, INT64_MAX, &out->newest, err);
    out->last = out->newest;
    return rc == HFD_OK && out->newest >= end ? last_before(tx, end, &out->last, err) : rc;
}

/* ---- tombstones ---- */

static void read_tombstone(struct hfd_row_in *in, void *out)
{
    struct hfd_tombstone_row *row = out;

    row->seq = hfd_row_i64(in);
    row->about = (enum hfd_history_about)hfd_row_enum(in);
    row->id = hfd_row_text(in);
    row->removed_us = hfd_row_i64(in);
    row->created_us = hfd_row_i64(in);
    row->kind = hfd_row_kind(in);
    row->type = hfd_row_text(in);
    row->incarnation = hfd_row_text(in);
    row->cluster_id = hfd_row_text(in);
    row->name = hfd_row_text(in);
    row->provider = hfd_row_text(in);
}

static const struct hfd_row_form tombstone_form = {"tombstone", read_tombstone,
                                                   sizeof(struct hfd_tombstone_row)};

static hfd_rc insert_tombstone(struct hfd_txn *tx, const struct hfd_tombstone_row *row,
                               struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_row_write(tx, sql_tombstone_add, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, row->seq);
    hfd_stmt_i64(st, 2, row->about);
    hfd_stmt_text(st, 3, hfd_row_some(row->id));
    hfd_stmt_i64(st, 4, row->removed_us);
    hfd_stmt_i64(st, 5, row->created_us);
    hfd_stmt_i64(st, 6, row->kind);
    hfd_stmt_text(st, 7, hfd_row_some(row->type));
    hfd_stmt_text(st, 8, hfd_row_some(row->incarnation));
    hfd_stmt_text(st, 9, hfd_row_some(row->cluster_id));
    hfd_stmt_text(st, 10, hfd_row_some(row->name));
    hfd_stmt_text(st, 11, hfd_row_some(row->provider));
    return hfd_stmt_run(st, NULL, err);
}

hfd_rc hfd_tombstone_row_get(struct hfd_txn *tx, const struct hfd_history_subject *subject,
                             struct hfd_arena *mem, struct hfd_tombstone_row *out,
                             struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_db_prepare(tx->db, sql_tombstone_get, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, subject->about);
    hfd_stmt_text(st, 2, hfd_row_some(subject->id));
    return hfd_row_one(st, &tombstone_form, mem, out, err);
}

hfd_rc hfd_tombstone_row_delete(struct hfd_txn *tx, const struct hfd_history_subject *subject,
                                struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_row_write(tx, sql_tombstone_delete, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, subject->about);
    hfd_stmt_text(st, 2, hfd_row_some(subject->id));
    return hfd_stmt_run(st, NULL, err);
}

static hfd_rc oldest_tombstones(struct hfd_txn *tx, struct hfd_arena *mem, struct hfd_row_list *out,
                                struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_db_prepare(tx->db, sql_tombstone_oldest, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, TRIM_MAX);
    return hfd_row_all(st, &tombstone_form, mem, out, err);
}

/* Removes a tombstone with the history of its subject. */
static hfd_rc bury(struct hfd_txn *tx, const struct hfd_tombstone_row *row, struct hfd_err *err)
{
    const struct hfd_history_subject subject = {row->about, row->id};
    hfd_rc rc = remove_up_to(tx, &subject, row->seq, err);

    if (rc == HFD_OK)
        rc = hfd_ended_row_delete_all(tx, &subject, err);
    return rc == HFD_OK ? hfd_tombstone_row_delete(tx, &subject, err) : rc;
}

hfd_rc hfd_tombstone_row_trim(struct hfd_txn *tx, const struct hfd_tombstone_limits *limits,
                              bool *more, struct hfd_err *err)
{
    const struct hfd_tombstone_row *rows;
    struct hfd_row_list list = {.count = 0};
    struct hfd_arena mem;
    struct hfd_stmt *st;
    int64_t count;
    size_t taken = 0;
    hfd_rc rc = hfd_db_prepare(tx->db, sql_tombstone_count, &st, err);

    if (rc == HFD_OK)
        rc = hfd_row_number(st, 0, &count, err);
    if (rc != HFD_OK)
        return rc;
    hfd_arena_init(&mem, TRIM_MEM_BYTES);
    rc = oldest_tombstones(tx, &mem, &list, err);
    rows = list.rows;
    while (rc == HFD_OK && taken < list.count &&
           (count - (int64_t)taken > limits->max || rows[taken].removed_us <= limits->since_us))
        rc = bury(tx, &rows[taken++], err);
    hfd_arena_fini(&mem);
    *more = taken == TRIM_MAX;
    return rc;
}

hfd_rc hfd_tombstone_row_add(struct hfd_txn *tx, const struct hfd_tombstone_row *row,
                             const struct hfd_tombstone_limits *limits, struct hfd_err *err)
{
    bool more;
    hfd_rc rc = insert_tombstone(tx, row, err);

    return rc == HFD_OK ? hfd_tombstone_row_trim(tx, limits, &more, err) : rc;
}
