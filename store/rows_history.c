/* See rows_history.h. The SQL is the portable subset. Thread: that of the transaction. */
#include "store/rows_history.h"

#include "driver/base/arena.h"
#include "driver/base/check.h"
#include "store/row_io.h"
#include "store/unit.h"

/* ---- targets of events ---- */

#define OUTBOX_COL(type, member) HFD_COL(struct hfd_outbox_row, type, #member, member)

/* clang-format off */
static const struct hfd_col outbox_cols[] = {
    {OUTBOX_COL(TEXT, name)}, {OUTBOX_COL(I64, stream)}, {OUTBOX_COL(I64, seq)}, {OUTBOX_COL(I64, failing_us)},
};
const struct hfd_table hfd_outbox_table = {
    HFD_TABLE("outbox_target", struct hfd_outbox_row, "target of events", outbox_cols), .keys = 2,
    HFD_TABLE_PUT(hfd_outbox_table), HFD_TABLE_REMOVE(hfd_outbox_table)};

static struct hfd_query sql_outbox_list = {.table = &hfd_outbox_table, .text =
    "SELECT @cols FROM outbox_target ORDER BY name, stream"};
static struct hfd_query sql_outbox_lowest = {.table = &hfd_outbox_table, .text =
    "SELECT MIN(seq) FROM outbox_target WHERE stream = ?1 HAVING COUNT(*) > 0"};
/* clang-format on */

hfd_rc hfd_outbox_row_list(struct hfd_txn *tx, struct hfd_arena *mem, struct hfd_outbox_list *out,
                           struct hfd_err *err)
{
    return HFD_QUERY_LIST(tx, &sql_outbox_list, HFD_ARGS_NONE, mem, out, err);
}

hfd_rc hfd_outbox_row_put(struct hfd_txn *tx, const struct hfd_outbox_row *row, struct hfd_err *err)
{
    return hfd_query_write(tx, hfd_outbox_table.put, row, NULL, err);
}

hfd_rc hfd_outbox_row_delete(struct hfd_txn *tx, const struct hfd_outbox_row *row,
                             struct hfd_err *err)
{
    return hfd_query_run(tx, hfd_outbox_table.remove,
                         HFD_ARGS(hfd_arg_text(row->name), hfd_arg_i64(row->stream)), err);
}

/* Gives the number up to which all targets have a stream; INT64_MAX = none has it. */
static hfd_rc outbox_lowest(struct hfd_txn *tx, enum hfd_stream stream, int64_t *out,
                            struct hfd_err *err)
{
    return hfd_query_number(tx, &sql_outbox_lowest, HFD_ARGS(hfd_arg_i64(stream)), INT64_MAX, out,
                            err);
}

/* ---- ended instances ---- */

#define SUM_BYTES ((size_t)65536)
#define SUM_SHARE 256
#define ENDED_COL(type, member) HFD_COL(struct hfd_ended_row, type, #member, member)

/* clang-format off */
static const struct hfd_col ended_cols[] = {
    {ENDED_COL(INT, about)}, {ENDED_COL(TEXT, id)}, {ENDED_COL(I64, instance)}, {ENDED_COL(TEXT, fleet_id)}, {ENDED_COL(TEXT, adapter)},
    {ENDED_COL(KIND, kind)}, {ENDED_COL(TEXT, name)}, {ENDED_COL(TEXT, provider)}, {ENDED_COL(TEXT, cluster)}, {ENDED_COL(BOOL, counted)},
    {ENDED_COL(I64, verdict)}, {ENDED_COL(TEXT, counts)}, {ENDED_COL(TEXT, objects)},
};
const struct hfd_table hfd_ended_table = {
    HFD_TABLE("ended", struct hfd_ended_row, "report of an ended instance", ended_cols), .keys = 5,
    HFD_TABLE_PUT(hfd_ended_table)};

static struct hfd_query sql_ended_trim = {.table = &hfd_ended_table, .text =
    "DELETE FROM ended WHERE about = ?1 AND id = ?2 AND instance <"
    " COALESCE((SELECT instance FROM (SELECT DISTINCT instance FROM ended WHERE about = ?1 AND id = ?2) AS kept"
    " ORDER BY instance DESC LIMIT 1 OFFSET ?3), 0)"};
/*
 * Oldest first. A cluster that no driver resource has counts its instances from 1: its last action says
 * how old they are.
 */
static struct hfd_query sql_ended_bound = {.table = &hfd_ended_table, .text =
    "UPDATE ended SET objects = '' WHERE objects <> '' AND (about, id, instance) IN (SELECT about, id, instance FROM"
    " (SELECT about, id, instance, SUM(bytes) OVER (ORDER BY age DESC, about, id, instance DESC) AS kept FROM"
    " (SELECT about, id, instance, SUM(octet_length(objects)) AS bytes, CASE about WHEN 0 THEN instance ELSE"
    " (SELECT COALESCE(MAX(h.seq), 0) FROM history h WHERE h.about = e.about AND h.id = e.id) END AS age"
    " FROM ended e WHERE objects <> '' GROUP BY about, id, instance) AS instances) AS sums"
    " WHERE kept > CAST(?1 AS BIGINT) ORDER BY kept DESC LIMIT 1000)", .mixed = true};
static struct hfd_query sql_ended_list = {.table = &hfd_ended_table, .by = {"about", "id", "instance"}, .text =
    "SELECT @cols FROM ended WHERE about = ?1 AND id = ?2 AND instance = ?3 ORDER BY fleet_id, adapter"};
static struct hfd_query sql_ended_oldest = {.table = &hfd_ended_table, .by = {"about", "id"}, .text =
    "SELECT COALESCE(MIN(instance), 0) FROM ended WHERE about = ?1 AND id = ?2"};
static struct hfd_query sql_ended_delete_all = {.table = &hfd_ended_table, .by = {"about", "id"}, .text =
    "DELETE FROM ended WHERE about = ?1 AND id = ?2"};
/* clang-format on */

/*
 * The sum reads all rows. So it is made for a large row, and for one in 256 small ones. The bound
 * is passed by 16 MiB at most.
 */
static bool is_sum_due(const struct hfd_ended_row *row)
{
    uint64_t n = (uint64_t)row->instance;

    for (size_t i = 0; i < row->id.len; i++)
        n = n * 31 + (unsigned char)row->id.p[i];
    return row->objects.len >= SUM_BYTES || (row->objects.len > 0 && n % SUM_SHARE == 0);
}

hfd_rc hfd_ended_row_put(struct hfd_txn *tx, const struct hfd_ended_row *row, int64_t keep,
                         struct hfd_err *err)
{
    hfd_rc rc = hfd_query_write(tx, hfd_ended_table.put, row, NULL, err);

    if (rc == HFD_OK && is_sum_due(row))
        rc = hfd_query_run(tx, &sql_ended_bound, HFD_ARGS(hfd_arg_i64(HFD_ENDED_BYTES_MAX)), err);
    return rc == HFD_OK ? hfd_query_run(tx, &sql_ended_trim,
                                        HFD_ARGS(hfd_arg_i64(row->about), hfd_arg_text(row->id),
                                                 hfd_arg_i64(keep - 1)),
                                        err)
                        : rc;
}

hfd_rc hfd_ended_row_list(struct hfd_txn *tx, const struct hfd_ended_query *query,
                          struct hfd_arena *mem, struct hfd_ended_list *out, struct hfd_err *err)
{
    return HFD_QUERY_LIST(tx, &sql_ended_list,
                          HFD_ARGS(hfd_arg_i64(query->subject.about),
                                   hfd_arg_text(query->subject.id), hfd_arg_i64(query->instance)),
                          mem, out, err);
}

hfd_rc hfd_ended_row_oldest(struct hfd_txn *tx, const struct hfd_history_subject *subject,
                            int64_t *out, struct hfd_err *err)
{
    return hfd_query_number(tx, &sql_ended_oldest,
                            HFD_ARGS(hfd_arg_i64(subject->about), hfd_arg_text(subject->id)), 0,
                            out, err);
}

/* Removes all rows of a subject. */
static hfd_rc ended_row_delete_all(struct hfd_txn *tx, const struct hfd_history_subject *subject,
                                   struct hfd_err *err)
{
    return hfd_query_run(tx, &sql_ended_delete_all,
                         HFD_ARGS(hfd_arg_i64(subject->about), hfd_arg_text(subject->id)), err);
}

/* ---- history ---- */

#define TRIM_MAX 16 /* tombstones that one call takes away */
#define TRIM_MEM_BYTES ((size_t)64 * 1024 * 1024)
#define HISTORY_COL(type, member) HFD_COL(struct hfd_history_row, type, #member, member)
#define STONE(type, member) HFD_COL(struct hfd_tombstone_row, type, #member, member)

/* clang-format off */
static const struct hfd_col history_cols[] = {
    {HISTORY_COL(I64, seq)}, {HISTORY_COL(INT, about)}, {HISTORY_COL(TEXT, id)}, {HISTORY_COL(TEXT, incarnation)}, {HISTORY_COL(I64, instance)}, {HISTORY_COL(I64, at_us)},
    {HFD_COL(struct hfd_history_row, INT, "from_state", from)}, {HFD_COL(struct hfd_history_row, INT, "to_state", to)},
    {HISTORY_COL(TEXT, what)}, {HISTORY_COL(I64, generation)}, {HISTORY_COL(TEXT, text)},
};
const struct hfd_table hfd_history_table = {
    HFD_TABLE("history", struct hfd_history_row, "history entry", history_cols), .keys = 1};
static const struct hfd_col tombstone_cols[] = {
    {STONE(I64, seq), .marks = HFD_COL_PRIMARY}, {STONE(INT, about)}, {STONE(TEXT, id)}, {STONE(I64, removed_us)}, {STONE(I64, created_us)},
    {STONE(KIND, kind)}, {STONE(TEXT, type)}, {STONE(TEXT, incarnation)}, {STONE(TEXT, cluster_id)}, {STONE(TEXT, name)}, {STONE(TEXT, provider)},
};
const struct hfd_table hfd_tombstone_table = {
    HFD_TABLE("tombstone", struct hfd_tombstone_row, "tombstone", tombstone_cols), .key = 1, .keys = 2,
    HFD_TABLE_GET(hfd_tombstone_table), HFD_TABLE_REMOVE(hfd_tombstone_table)};
struct floor {
    int64_t one, seq;
};
static const struct hfd_col floor_cols[] = {
    {HFD_COL(struct floor, I64, "one", one)}, {HFD_COL(struct floor, I64, "seq", seq)},
};
const struct hfd_table hfd_history_floor_table = {
    HFD_TABLE("history_floor", struct floor, "history floor", floor_cols), .keys = 1};

/* The creation of a resource that is there: 0 and 1 are absent and creating. */
#define CREATION \
    "SELECT r.seq, 0, r.guresid, r.incarnation, r.seq, r.created_us, 0, 1, '" HFD_HISTORY_CREATE "', 1, '' FROM resource r" \
    " WHERE NOT EXISTS (SELECT 1 FROM history h WHERE h.seq = r.seq)"
#define HISTORY_AFTER HFD_UNIT_BIT(HFD_UNIT_RESOURCE) /* lists read the rows of resources, too */
/* Both sides are in order, so that the first rows of each are enough. */
#define PAGE(direction) \
    "SELECT * FROM (SELECT * FROM (SELECT @cols FROM history" \
    " WHERE about = 0 AND seq > ?1 AND seq < ?2 ORDER BY seq " direction " LIMIT ?3) AS stored" \
    " UNION ALL SELECT * FROM (" CREATION " AND r.seq > ?1 AND r.seq < ?2 ORDER BY r.seq " direction " LIMIT ?3) AS made)" \
    " AS both_of_them ORDER BY 1 " direction " LIMIT ?3"

static const char sql_history_last[] =
    "SELECT MAX(n) FROM (SELECT MAX(seq) AS n FROM history UNION ALL SELECT MAX(seq) FROM resource"
    " UNION ALL SELECT seq FROM history_floor WHERE one = 1 UNION ALL SELECT 0) AS ends";
static struct hfd_query sql_history_last_before = {.table = &hfd_history_table, .mixed = true, .text =
    "SELECT MAX(n) FROM (SELECT MAX(seq) AS n FROM history WHERE seq < ?1"
    " UNION ALL SELECT MAX(seq) FROM resource WHERE seq < ?1"
    " UNION ALL SELECT seq FROM history_floor WHERE one = 1 AND seq < ?1 UNION ALL SELECT 0) AS ends"};
static struct hfd_query sql_history_floor = {.table = &hfd_history_floor_table, .text =
    "SELECT seq FROM history_floor WHERE one = 1", .after = HISTORY_AFTER};
static struct hfd_query sql_history_raise_floor = {.table = &hfd_history_floor_table, .text =
    "INSERT INTO history_floor (one, seq) VALUES (1, ?1)"
    " ON CONFLICT (one) DO UPDATE SET seq = excluded.seq WHERE excluded.seq > history_floor.seq"};
static struct hfd_query sql_history_add = {.table = &hfd_history_table, .text =
    "INSERT INTO history (@cols) @values ON CONFLICT (seq) DO NOTHING"};
static struct hfd_query sql_history_beyond = {.table = &hfd_history_table, .by = {"about", "id"}, .text =
    "SELECT seq FROM history WHERE about = ?1 AND id = ?2 ORDER BY seq DESC LIMIT 1 OFFSET ?3"};
static struct hfd_query sql_history_trim = {.table = &hfd_history_table, .by = {"about", "id"}, .text =
    "DELETE FROM history WHERE about = ?1 AND id = ?2 AND seq <= ?3"};
static struct hfd_query sql_history_list = {.table = &hfd_history_table, .mixed = true, .text =
    "SELECT @cols FROM history WHERE about = ?1 AND id = ?2"
    " UNION ALL " CREATION " AND r.guresid = ?2 AND ?1 = 0 ORDER BY 1", .after = HISTORY_AFTER};
static struct hfd_query sql_history_oldest = {.table = &hfd_history_table, .mixed = true, .text = PAGE("ASC"), .after = HISTORY_AFTER};
static struct hfd_query sql_history_newest = {.table = &hfd_history_table, .mixed = true, .text = PAGE("DESC"), .after = HISTORY_AFTER};

static struct hfd_query sql_tombstone_add = {.table = &hfd_tombstone_table, .text =
    "INSERT INTO tombstone (@cols) @values"};
static struct hfd_query sql_tombstone_count = {.table = &hfd_tombstone_table, .text =
    "SELECT COUNT(*) FROM tombstone"};
static struct hfd_query sql_tombstone_oldest = {.table = &hfd_tombstone_table, .text =
    "SELECT @cols FROM tombstone ORDER BY seq LIMIT ?1"};
/* clang-format on */

/* ---- numbers ---- */

/* The newest number before `end`. */
static hfd_rc last_before(struct hfd_txn *tx, int64_t end, int64_t *out, struct hfd_err *err)
{
    return hfd_query_number(tx, &sql_history_last_before, HFD_ARGS(hfd_arg_i64(end)), 0, out, err);
}

hfd_rc hfd_history_next_seq(struct hfd_txn *tx, int64_t *out, struct hfd_err *err)
{
    if (tx->stamps != NULL)
        hfd_row_stamps_change(tx->stamps, HFD_SLICE("")); /* of the feed */
    return hfd_number_next(tx, tx->unit != NULL ? &tx->unit->actions : NULL, sql_history_last, out,
                           err);
}

/* ---- entries ---- */

/* Removes the entries of a subject up to this number. */
static hfd_rc remove_up_to(struct hfd_txn *tx, const struct hfd_history_subject *s, int64_t seq,
                           struct hfd_err *err)
{
    const hfd_rc rc =
        hfd_query_run(tx, &sql_history_trim,
                      HFD_ARGS(hfd_arg_i64(s->about), hfd_arg_text(s->id), hfd_arg_i64(seq)), err);

    return rc == HFD_OK
               ? hfd_query_run(tx, &sql_history_raise_floor, HFD_ARGS(hfd_arg_i64(seq)), err)
               : rc;
}

/* Finds the newest entry of a subject that is beyond `keep`; 0 = there is none. */
static hfd_rc find_beyond(struct hfd_txn *tx, const struct hfd_history_subject *s, int64_t keep,
                          int64_t *out, struct hfd_err *err)
{
    return hfd_query_number(tx, &sql_history_beyond,
                            HFD_ARGS(hfd_arg_i64(s->about), hfd_arg_text(s->id), hfd_arg_i64(keep)),
                            0, out, err);
}

hfd_rc hfd_history_row_prefetch(struct hfd_txn *tx, const struct hfd_history_subject *subject,
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
    int64_t beyond;
    hfd_rc rc = find_beyond(tx, &subject, keep - 1, &beyond, err);

    HFD_ASSERT(keep > 0);
    if (rc == HFD_OK)
        rc = hfd_query_write(tx, &sql_history_add, row, NULL, err);
    return rc == HFD_OK && beyond > 0 ? remove_up_to(tx, &subject, beyond, err) : rc;
}

hfd_rc hfd_history_row_list(struct hfd_txn *tx, const struct hfd_history_subject *subject,
                            struct hfd_arena *mem, struct hfd_history_list *out,
                            struct hfd_err *err)
{
    return HFD_QUERY_LIST(tx, &sql_history_list,
                          HFD_ARGS(hfd_arg_i64(subject->about), hfd_arg_text(subject->id)), mem,
                          out, err);
}

hfd_rc hfd_history_row_page(struct hfd_txn *tx, const struct hfd_history_query *query,
                            struct hfd_arena *mem, struct hfd_history_list *out,
                            struct hfd_err *err)
{
    struct hfd_row_list list = {NULL, 0};
    int64_t end;
    hfd_rc rc = hfd_number_end(tx, &end, err);

    if (rc == HFD_OK)
        rc = hfd_query_all(tx, query->newest ? &sql_history_newest : &sql_history_oldest,
                           HFD_ARGS(hfd_arg_i64(query->after),
                                    hfd_arg_i64(query->before < end ? query->before : end),
                                    hfd_arg_i64(query->limit)),
                           mem, &list, err);
    *out = (struct hfd_history_list){list.rows, list.count};
    return rc;
}

hfd_rc hfd_history_row_ends(struct hfd_txn *tx, struct hfd_history_ends *out, struct hfd_err *err)
{
    int64_t end;
    hfd_rc rc = hfd_number_end(tx, &end, err);

    if (rc == HFD_OK)
        rc = hfd_query_number(tx, &sql_history_floor, HFD_ARGS_NONE, 0, &out->floor, err);
    if (rc == HFD_OK && out->floor >= end)
        out->floor = end - 1;
    if (rc == HFD_OK)
        rc = last_before(tx, INT64_MAX, &out->newest, err);
    out->last = out->newest;
    return rc == HFD_OK && out->newest >= end ? last_before(tx, end, &out->last, err) : rc;
}

/* ---- tombstones ---- */

hfd_rc hfd_tombstone_row_get(struct hfd_txn *tx, const struct hfd_history_subject *subject,
                             struct hfd_arena *mem, struct hfd_tombstone_row *out,
                             struct hfd_err *err)
{
    return hfd_query_one(tx, hfd_tombstone_table.get,
                         HFD_ARGS(hfd_arg_i64(subject->about), hfd_arg_text(subject->id)), mem, out,
                         err);
}

hfd_rc hfd_tombstone_row_delete(struct hfd_txn *tx, const struct hfd_history_subject *subject,
                                struct hfd_err *err)
{
    return hfd_query_run(tx, hfd_tombstone_table.remove,
                         HFD_ARGS(hfd_arg_i64(subject->about), hfd_arg_text(subject->id)), err);
}

/* Removes a tombstone with the history of its subject. */
static hfd_rc bury(struct hfd_txn *tx, const struct hfd_tombstone_row *row, struct hfd_err *err)
{
    const struct hfd_history_subject subject = {row->about, row->id};
    hfd_rc rc = remove_up_to(tx, &subject, row->seq, err);

    if (rc == HFD_OK)
        rc = ended_row_delete_all(tx, &subject, err);
    return rc == HFD_OK ? hfd_tombstone_row_delete(tx, &subject, err) : rc;
}

static bool is_old(const struct hfd_tombstone_row *row, const struct hfd_tombstone_limits *limits,
                   int64_t reached)
{
    return row->removed_us <= limits->since_us &&
           (row->seq <= reached || row->removed_us <= limits->held_us);
}

hfd_rc hfd_tombstone_row_trim(struct hfd_txn *tx, const struct hfd_tombstone_limits *limits,
                              bool *more, struct hfd_err *err)
{
    const struct hfd_tombstone_row *rows;
    struct hfd_row_list list = {.count = 0};
    struct hfd_arena mem;
    int64_t count, reached = INT64_MAX;
    size_t taken = 0;
    hfd_rc rc = hfd_query_number(tx, &sql_tombstone_count, HFD_ARGS_NONE, 0, &count, err);

    if (rc != HFD_OK)
        return rc;
    hfd_arena_init(&mem, TRIM_MEM_BYTES);
    rc =
        hfd_query_all(tx, &sql_tombstone_oldest, HFD_ARGS(hfd_arg_i64(TRIM_MAX)), &mem, &list, err);
    rows = list.rows;
    if (rc == HFD_OK && list.count > 0 && limits->held_us < limits->since_us)
        rc = outbox_lowest(tx, HFD_STREAM_STATES, &reached, err);
    while (rc == HFD_OK && taken < list.count &&
           (count - (int64_t)taken > limits->max || is_old(&rows[taken], limits, reached)))
        rc = bury(tx, &rows[taken++], err);
    hfd_arena_fini(&mem);
    *more = taken == TRIM_MAX;
    return rc;
}

hfd_rc hfd_tombstone_row_add(struct hfd_txn *tx, const struct hfd_tombstone_row *row,
                             const struct hfd_tombstone_limits *limits, struct hfd_err *err)
{
    bool more;
    const hfd_rc rc = hfd_query_write(tx, &sql_tombstone_add, row, NULL, err);

    return rc == HFD_OK ? hfd_tombstone_row_trim(tx, limits, &more, err) : rc;
}

/* ---- past operations ---- */

/* A row with its key. */
struct past {
    struct hfd_past_key key;
    struct hfd_past_row row;
};
struct forecast {
    struct hfd_past_key key;
    struct hfd_forecast_row row;
};
#define PAST(type, member) HFD_COL(struct past, type, #member, row.member)
#define FORECAST(type, member) HFD_COL(struct forecast, type, #member, row.member)
#define LISTED(type, member) HFD_COL(struct hfd_past_row, type, #member, member)

/* clang-format off */
static const struct hfd_col past_cols[] = {
    {HFD_COL(struct past, KIND, "kind", key.kind)}, {HFD_COL(struct past, INT, "op", key.op)}, {HFD_COL(struct past, I64, "size", key.size)},
    {PAST(I64, ended_us)}, {PAST(I64, took_us)}, {PAST(INT, ending)}, {PAST(TEXT, milestones)},
};
const struct hfd_table hfd_past_table = {
    HFD_TABLE("past", struct past, "past operation", past_cols), .keys = 4};
static const struct hfd_col listed_cols[] = {
    {LISTED(I64, size)}, {LISTED(I64, took_us)}, {LISTED(INT, ending)}, {LISTED(TEXT, milestones)},
};
static const struct hfd_table past_listed = {HFD_TABLE("past", struct hfd_past_row, "past operation", listed_cols)};
static const struct hfd_col forecast_cols[] = {
    {HFD_COL(struct forecast, KIND, "kind", key.kind)}, {HFD_COL(struct forecast, INT, "op", key.op)}, {HFD_COL(struct forecast, I64, "size", key.size)},
    {FORECAST(I64, prior_us)}, {FORECAST(I64, deadline_us)}, {FORECAST(TEXT, plan)}, {FORECAST(TEXT, usual)},
};
const struct hfd_table hfd_forecast_table = {
    HFD_TABLE("forecast", struct forecast, "forecast", forecast_cols), .keys = 3,
    HFD_TABLE_PUT(hfd_forecast_table)};
/* Without the key. */
static const struct hfd_table forecast_only = {
    HFD_TABLE_OF("forecast", struct forecast, "forecast", forecast_cols + 3, HFD_COUNT_OF(forecast_cols) - 3)};

static struct hfd_query sql_past_add = {.table = &hfd_past_table, .text =
    "INSERT INTO past (@cols)"
    " SELECT ?1, ?2, ?3, CASE WHEN last.at_us >= ?4 THEN last.at_us + 1 ELSE ?4 END, ?5, ?6, ?7"
    " FROM (SELECT COALESCE(MAX(ended_us), 0) AS at_us FROM past WHERE kind = ?1 AND op = ?2 AND size = ?3) AS last"};
static struct hfd_query sql_past_trim = {.table = &hfd_past_table, .text =
    "DELETE FROM past WHERE kind = ?1 AND op = ?2 AND size = ?3 AND ended_us <="
    " (SELECT ended_us FROM past WHERE kind = ?1 AND op = ?2 AND size = ?3 ORDER BY ended_us DESC LIMIT 1 OFFSET ?4)"};
static struct hfd_query sql_past_list = {.table = &past_listed, .by = {"kind", "op"}, .text =
    "SELECT @cols FROM past WHERE kind = ?1 AND op = ?2"
    " ORDER BY CASE WHEN size = ?3 THEN 0 ELSE 1 END, ended_us DESC, size LIMIT ?4"};

static struct hfd_query sql_past_get = {.table = &forecast_only, .by = {"kind", "op", "size"}, .text =
    "SELECT @cols FROM forecast WHERE kind = ?1 AND op = ?2 AND size = ?3"};
static struct hfd_query sql_past_forget = {.table = &hfd_forecast_table, .by = {"kind", "op"}, .text =
    "DELETE FROM forecast WHERE kind = ?1 AND op = ?2"};
/* clang-format on */

/* The parameters ?1 to ?3. */
#define KEY_ARGS(key) hfd_arg_i64((key)->kind), hfd_arg_i64((key)->op), hfd_arg_i64((key)->size)

/* Removes the forecasts of all sizes: an operation changes those of other sizes a little too. */
static hfd_rc forget_forecasts(struct hfd_txn *tx, const struct hfd_past_key *key,
                               struct hfd_err *err)
{
    return hfd_query_run(tx, &sql_past_forget,
                         HFD_ARGS(hfd_arg_i64(key->kind), hfd_arg_i64(key->op)), err);
}

hfd_rc hfd_past_row_add(struct hfd_txn *tx, const struct hfd_past_key *key,
                        const struct hfd_past_row *row, int64_t keep, struct hfd_err *err)
{
    hfd_rc rc =
        hfd_query_run(tx, &sql_past_add,
                      HFD_ARGS(KEY_ARGS(key), hfd_arg_i64(row->ended_us), hfd_arg_i64(row->took_us),
                               hfd_arg_i64(row->ending), hfd_arg_text(row->milestones)),
                      err);

    if (rc == HFD_OK)
        rc = hfd_query_run(tx, &sql_past_trim, HFD_ARGS(KEY_ARGS(key), hfd_arg_i64(keep)), err);
    return rc == HFD_OK ? forget_forecasts(tx, key, err) : rc;
}

hfd_rc hfd_past_row_list(struct hfd_txn *tx, const struct hfd_past_query *query,
                         struct hfd_arena *mem, struct hfd_past_list *out, struct hfd_err *err)
{
    return HFD_QUERY_LIST(tx, &sql_past_list,
                          HFD_ARGS(KEY_ARGS(&query->key), hfd_arg_i64(query->limit)), mem, out,
                          err);
}

hfd_rc hfd_forecast_row_get(struct hfd_txn *tx, const struct hfd_past_key *key,
                            struct hfd_arena *mem, struct hfd_forecast_row *out,
                            struct hfd_err *err)
{
    struct forecast row;
    const hfd_rc rc = hfd_query_one(tx, &sql_past_get, HFD_ARGS(KEY_ARGS(key)), mem, &row, err);

    if (rc == HFD_OK)
        *out = row.row;
    return rc;
}

hfd_rc hfd_forecast_row_put(struct hfd_txn *tx, const struct hfd_past_key *key,
                            const struct hfd_forecast_row *row, struct hfd_err *err)
{
    return hfd_query_write(tx, hfd_forecast_table.put, &(struct forecast){*key, *row}, NULL, err);
}

/* ---- the last days ---- */

/* The most entries of the history that are looked at, and the most creations, the newest. */
#define HFD_DAY_MAX 10000

/* clang-format off */
/* An end has the number of its order. The creation of a resource that is there is its row. */
static const char sql_actions[] =
    "SELECT h.at_us, CASE WHEN h.what IN ('create', 'update', 'retarget', 'retry') THEN 1 ELSE 0 END,"
    " CASE WHEN h.what = 'failed' THEN 1 ELSE 0 END,"
    " CASE WHEN h.what <> 'ready' THEN -1 ELSE h.at_us - COALESCE("
    "(SELECT o.at_us FROM history o WHERE o.seq = h.instance),"
    " (SELECT r.created_us FROM resource r WHERE r.seq = h.instance), h.at_us) END"
    " FROM history h WHERE h.about = 0 ORDER BY h.seq DESC LIMIT ?1";
static const char sql_creations[] =
    "SELECT r.created_us, 1, 0, -1 FROM resource r"
    " WHERE NOT EXISTS (SELECT 1 FROM history h WHERE h.seq = r.seq) ORDER BY r.seq DESC LIMIT ?1";
/* clang-format on */

/* The rows come newest first: the first one that is too old ends the walk. */
static hfd_rc walk(struct hfd_txn *tx, const char *sql, int64_t since_us, struct hfd_day *out,
                   struct hfd_err *err)
{
    struct hfd_stmt *st;
    int64_t seen = 0;
    bool row = false;
    hfd_rc rc = hfd_db_prepare(tx->db, sql, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, HFD_DAY_MAX);
    for (rc = hfd_stmt_step(st, &row, err); rc == HFD_OK && row;
         rc = hfd_stmt_step(st, &row, err)) {
        const struct hfd_day_action action = {.at_us = hfd_stmt_col_i64(st, 0),
                                              .order = hfd_stmt_col_i64(st, 1) != 0,
                                              .failed = hfd_stmt_col_i64(st, 2) != 0,
                                              .took_us = hfd_stmt_col_i64(st, 3)};

        if (action.at_us < since_us)
            break;
        seen++;
        out->actions[out->count++] = action;
        if (seen == HFD_DAY_MAX && action.at_us > out->whole_since_us)
            out->whole_since_us = action.at_us;
    }
    hfd_stmt_done(st);
    return rc;
}

hfd_rc hfd_day_read(struct hfd_txn *tx, int64_t since_us, struct hfd_arena *mem,
                    struct hfd_day *out, struct hfd_err *err)
{
    hfd_rc rc = hfd_unit_write(tx, err);

    *out = (struct hfd_day){
        .actions = hfd_arena_array(mem, 2 * (size_t)HFD_DAY_MAX, sizeof(*out->actions))};
    if (out->actions == NULL)
        return hfd_fail_nomem(err, "read the last days");
    if (rc == HFD_OK)
        rc = walk(tx, sql_actions, since_us, out, err);
    return rc == HFD_OK ? walk(tx, sql_creations, since_us, out, err) : rc;
}
