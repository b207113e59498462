/* The rules of sim.h, from SQL and tables of their own. */
#include "driver/core/cookie.h"
#include "driver/core/transition.h"
#include "tests/fault/sim.h"

#include <stdio.h>
#include <stdlib.h>

#include "driver/base/check.h"
#include "store/txn.h"
#include "tests/lib/contains.h"
#include "store/rows_fleet.h"
#include "store/rows_report.h"
#include "store/unit.h"

uint64_t sim_hash(uint64_t h, const void *bytes, size_t len)
{
    const unsigned char *p = bytes;

    for (size_t i = 0; i < len; i++)
        h = (h ^ p[i]) * UINT64_C(0x100000001b3);
    return h ^ h >> 29;
}

static uint64_t hash_slice(uint64_t h, hfd_slice s)
{
    return sim_hash(sim_hash(h, &s.len, sizeof(s.len)), s.p, s.len);
}

/* ---- looking ---- */

/* The next row of a statement that is being read; false at the end, and where *rc says why. */
static bool next_row(struct hfd_stmt *st, hfd_rc *rc, struct hfd_err *err)
{
    bool row = false;

    if (*rc == HFD_OK)
        *rc = hfd_stmt_step(st, &row, err);
    return row;
}

static void copy_text(char *out, size_t size, hfd_slice s)
{
    (void)snprintf(out, size, "%.*s", HFD_SLICE_FMT(s));
}

/* The index of the resource that owns a row. */
static size_t whose(struct sim *s, hfd_slice guresid)
{
    for (size_t i = 0; i < SIM_WHO; i++)
        if (hfd_slice_is(guresid, sim_names[i]))
            return i;
    sim_fail(s, "S7", "'%.*s' is no resource that was ordered", HFD_SLICE_FMT(guresid));
}

static int body_of(const struct sim *s, size_t who, hfd_slice digest)
{
    for (int i = 0; i < SIM_KEYS * SIM_BODIES; i++)
        if (hfd_slice_eq(digest, s->digests[i / SIM_BODIES][who][i % SIM_BODIES]))
            return i % SIM_BODIES;
    return -1;
}

/* Each stored row keeps the rule of its state. */
static hfd_rc check_invariants(struct hfd_txn *tx, struct sim *s, struct hfd_arena *mem,
                               struct hfd_err *err)
{
    for (int who = 0; who < SIM_WHO; who++) {
        struct hfd_resource_row row;
        hfd_rc rc = hfd_resource_row_get(tx, hfd_slice_of(sim_names[who]), mem, &row, err);

        if (rc != HFD_OK && rc != HFD_NOT_FOUND)
            return rc;
        if (rc == HFD_OK && hfd_resource_invariant(&row) != NULL)
            sim_fail(s, "H7", "%s is %s, but this does not hold: %s", sim_names[who],
                     hfd_state_name(hfd_state_known(row.state)), hfd_resource_invariant(&row));
    }
    return HFD_OK;
}

static hfd_rc look_rows(struct hfd_txn *tx, struct sim *s, struct hfd_arena *mem,
                        struct sim_view *out, struct hfd_err *err)
{
    static const char sql[] =
        "SELECT guresid, state, digest, op_started_us, op_deadline_us, "
        "incarnation, cookie, fail_code, fail_message,"
        " cluster_id, raw_digest = digest, mendable FROM resource ORDER BY guresid";
    struct hfd_stmt *st;
    hfd_rc rc = hfd_db_prepare(tx->db, sql, &st, err);

    while (next_row(st, &rc, err)) {
        const size_t who = whose(s, hfd_stmt_col_text(st, 0, mem));
        struct sim_res *r = &out->res[who];

        r->state = (int)hfd_stmt_col_i64(st, 1);
        r->body = body_of(s, who, hfd_stmt_col_text(st, 2, mem));
        r->started_us = hfd_stmt_col_i64(st, 3);
        r->deadline_us = hfd_stmt_col_i64(st, 4);
        r->incarnation = hash_slice(1, hfd_stmt_col_text(st, 5, mem));
        r->cookie = hash_slice(2, hfd_stmt_col_text(st, 6, mem));
        copy_text(r->code, sizeof(r->code), hfd_stmt_col_text(st, 7, mem));
        r->fail = hash_slice(3, hfd_stmt_col_text(st, 8, mem));
        copy_text(r->cluster_id, sizeof(r->cluster_id), hfd_stmt_col_text(st, 9, mem));
        r->restored = hfd_stmt_col_i64(st, 10) != 0;
        r->mendable = hfd_stmt_col_i64(st, 11) != 0;
    }
    hfd_stmt_done(st);
    return rc == HFD_OK ? check_invariants(tx, s, mem, err) : rc;
}

static hfd_rc look_parts(struct hfd_txn *tx, struct sim *s, struct hfd_arena *mem,
                         struct sim_view *out, struct hfd_err *err)
{
    static const char sql[] =
        "SELECT guresid, fleet_id, leaving FROM part ORDER BY guresid, fleet_id";
    struct hfd_stmt *st;
    hfd_rc rc = hfd_db_prepare(tx->db, sql, &st, err);

    while (next_row(st, &rc, err)) {
        const size_t who = whose(s, hfd_stmt_col_text(st, 0, mem));
        const int64_t leaving = hfd_stmt_col_i64(st, 2);

        out->res[who].parts = hash_slice(out->res[who].parts, hfd_stmt_col_text(st, 1, mem));
        out->res[who].parts = sim_hash(out->res[who].parts, &leaving, sizeof(leaving));
        out->res[who].part_count++;
    }
    hfd_stmt_done(st);
    return rc;
}

static bool equal(const struct sim_res *a, const struct sim_res *b)
{
    return a->state == b->state && a->body == b->body && a->restored == b->restored &&
           a->started_us == b->started_us && a->deadline_us == b->deadline_us &&
           a->incarnation == b->incarnation && a->cookie == b->cookie && a->fail == b->fail &&
           strcmp(a->code, b->code) == 0 && strcmp(a->cluster_id, b->cluster_id) == 0 &&
           a->parts == b->parts && a->part_count == b->part_count && a->mendable == b->mendable;
}

bool sim_equal(const struct sim_view *a, const struct sim_view *b)
{
    for (int i = 0; i < SIM_WHO; i++)
        if (!equal(&a->res[i], &b->res[i]))
            return false;
    return true;
}

hfd_rc sim_look(struct hfd_txn *tx, struct sim *s, struct sim_view *out, struct hfd_err *err)
{
    struct hfd_arena mem;
    hfd_rc rc;

    memset(out, 0, sizeof(*out));
    for (int i = 0; i < SIM_WHO; i++) {
        out->res[i].state = HFD_STATE_ABSENT;
        out->res[i].body = -1;
    }
    hfd_arena_init(&mem, (size_t)1 << 20);
    rc = look_rows(tx, s, &mem, out, err);
    if (rc == HFD_OK)
        rc = look_parts(tx, s, &mem, out, err);
    hfd_arena_fini(&mem);
    return rc;
}

/*
 * Reads every column of every table. But for the totals, which are written at the end of a commit,
 * behind its jobs; S7 counts them.
 */
static const char *content_sql(struct hfd_txn *tx, struct hfd_err *err)
{
    static const char sql[] = "SELECT group_concat('SELECT ''' || name || ''' || ' || cols || ' AS "
                              "x FROM ' || name, ' UNION ALL ') || ' ORDER BY 1' FROM "
                              "(SELECT m.name AS name, (SELECT group_concat('quote(' || c.name || "
                              "')', '|| ''|'' ||') FROM pragma_table_info(m.name) c) AS cols"
                              " FROM sqlite_schema m WHERE m.type = 'table' AND m.name NOT LIKE "
                              "'sqlite_%' AND m.name <> 'fleet_count' ORDER BY m.name)";
    static char *text;
    struct hfd_arena mem;
    struct hfd_stmt *st;
    bool row;

    if (text != NULL)
        return text;
    hfd_arena_init(&mem, (size_t)1 << 20);
    if (hfd_db_prepare(tx->db, sql, &st, err) == HFD_OK && hfd_stmt_step(st, &row, err) == HFD_OK &&
        row) {
        const hfd_slice found = hfd_stmt_col_text(st, 0, &mem);

        text = strndup(found.p, found.len);
    }
    hfd_stmt_done(st);
    hfd_arena_fini(&mem);
    return text;
}

hfd_rc sim_content(struct hfd_txn *tx, struct sim *s, uint64_t *out, struct hfd_err *err)
{
    const char *sql = content_sql(tx, err);
    struct hfd_arena mem;
    struct hfd_stmt *st;
    hfd_rc rc;

    (void)s;
    *out = 1;
    if (sql == NULL)
        return HFD_IO;
    hfd_arena_init(&mem, (size_t)4 << 20);
    rc = hfd_db_prepare(tx->db, sql, &st, err);
    while (next_row(st, &rc, err))
        *out = hash_slice(*out, hfd_stmt_col_text(st, 0, &mem));
    hfd_stmt_done(st);
    hfd_arena_fini(&mem);
    return rc;
}

/* The number that a query with up to two parameters gives; the second one is 0. */
static hfd_rc count_of(struct hfd_txn *tx, const char *sql, const char *text, int64_t *out,
                       struct hfd_err *err)
{
    struct hfd_stmt *st;
    bool row;
    hfd_rc rc = hfd_db_prepare(tx->db, sql, &st, err);

    if (rc == HFD_OK) {
        hfd_stmt_text(st, 1, hfd_slice_of(text));
        hfd_stmt_i64(st, 2, 0);
        rc = hfd_stmt_step(st, &row, err);
        *out = rc == HFD_OK ? hfd_stmt_col_i64(st, 0) : 0;
    }
    hfd_stmt_done(st);
    return rc;
}

/* ---- inside the transaction ---- */

enum hfd_state sim_settled(const struct sim_res *r, int64_t now_us)
{
    const enum hfd_state state = (enum hfd_state)r->state;

    return (state == HFD_STATE_CREATING || state == HFD_STATE_UPDATING) && now_us >= r->deadline_us
               ? HFD_STATE_FAILED
               : state;
}

#define TO(name) (1u << HFD_STATE_##name)

/* Where a call on the resource itself may lead (H1); several arrows at once count as one. */
static const unsigned by_put[HFD_STATE_COUNT] = {
    [HFD_STATE_ABSENT] = TO(CREATING) | TO(READY),
    [HFD_STATE_UPDATING] = TO(UPDATING) | TO(READY),
    [HFD_STATE_READY] = TO(UPDATING) | TO(READY),
    [HFD_STATE_FAILED] = TO(CREATING) | TO(UPDATING) | TO(READY),
};
/* Where news from HyperFleet may lead: reports, what strangers do, and other resources' calls. */
static const unsigned by_news[HFD_STATE_COUNT] = {
    [HFD_STATE_CREATING] = TO(READY) | TO(FAILED),
    [HFD_STATE_UPDATING] = TO(READY) | TO(FAILED),
    [HFD_STATE_READY] = TO(FAILED),
    [HFD_STATE_DELETING] = TO(ABSENT),
};

/* Where the repair of drift may lead. */
static const unsigned by_repair[HFD_STATE_COUNT] = {
    [HFD_STATE_READY] = TO(UPDATING) | TO(READY),
    [HFD_STATE_FAILED] = TO(CREATING) | TO(UPDATING) | TO(READY),
};

/*
 * A call with a cookie, and no row: it may bring a lost resource back, as it stands in HyperFleet.
 */
static bool restores(const struct sim_job *j)
{
    return j->who >= 0 && j->before.res[j->who].state == HFD_STATE_ABSENT && j->call.cookie.len > 0;
}

static bool arrow_exists(const struct sim_job *j, int who)
{
    const struct sim_res *a = &j->before.res[who], *b = &j->after.res[who];
    const unsigned to = 1u << b->state;

    if (a->state == b->state)
        return true;
    if (j->what == SIM_TIMER)
        return b->state == HFD_STATE_FAILED && sim_settled(a, j->now_us) == HFD_STATE_FAILED;
    if (j->what == SIM_REPAIR)
        return (by_repair[a->state] & to) != 0;
    if (j->what == SIM_STRANGER && j->act == SIM_FORGET && who == j->label)
        return b->state == HFD_STATE_ABSENT;
    if (who == j->who && restores(j)) /* any state that its parts are in */
        return true;
    if (who != j->who)
        return (by_news[a->state] & to) != 0;
    if (j->what == SIM_DELETE)
        return (to & (TO(DELETING) | TO(ABSENT))) != 0;
    return (by_put[sim_settled(a, j->now_us)] & to) != 0;
}

static hfd_rc rule_failed(struct hfd_txn *tx, struct sim_job *j, int who, struct hfd_err *err)
{
    static const char gone_sql[] = "SELECT count(*) FROM part p LEFT JOIN fleet f ON f.id = "
                                   "p.fleet_id WHERE p.guresid = ?1 AND ?2 = 0"
                                   " AND p.leaving = 0 AND (f.id IS NULL OR f.deleted_us <> 0)";
    static const char terminal_sql[] =
        "SELECT count(*) FROM part p JOIN report r ON r.fleet_id = p.fleet_id AND "
        "r.observed_generation >= p.generation"
        " WHERE p.guresid = ?1 AND p.leaving = 0 AND ?2 = 0"
        " AND r.conditions LIKE '%\"status\":\"False\",\"reason\":\"InvalidConfiguration\"%'";
    const struct sim_res *b = &j->after.res[who];
    int64_t gone, said;
    hfd_rc rc;

    if (strcmp(b->code, "RES-105") == 0) {
        if (j->now_us < j->before.res[who].deadline_us)
            sim_fail(j->sim, "A4", "%s failed by a deadline that has not passed", sim_names[who]);
        return HFD_OK;
    }
    rc = count_of(tx, gone_sql, sim_names[who], &gone, err);
    if (rc == HFD_OK)
        rc = count_of(tx, terminal_sql, sim_names[who], &said, err);
    if (rc == HFD_OK && (strcmp(b->code, "RES-104") != 0 || gone + said == 0))
        sim_fail(j->sim, "A4", "%s failed with %s, and no part is gone and no report is terminal",
                 sim_names[who], b->code);
    /* An attempt is ended by the report or the event that has just come. */
    if (rc == HFD_OK && gone == 0 && !restores(j) &&
        (j->what != SIM_REPORT || !j->message.terminal))
        sim_fail(j->sim, "A4", "%s failed by a report of an earlier attempt", sim_names[who]);
    return rc;
}

static hfd_rc rule_ready(struct hfd_txn *tx, struct sim_job *j, int who, struct hfd_err *err)
{
    static const char sql[] =
        "SELECT count(*) FROM part p LEFT JOIN fleet f ON f.id = p.fleet_id WHERE p.guresid = ?1 "
        "AND ?2 = 0 AND (p.leaving <> 0"
        " OR f.id IS NULL OR f.deleted_us <> 0 OR f.generation < p.generation OR (SELECT count(*) "
        "FROM report r WHERE r.fleet_id = f.id"
        " AND r.observed_generation = f.generation AND (r.adapter = 'validation' OR (f.kind = 1 "
        "AND r.adapter = 'dns'))"
        " AND r.conditions LIKE '%{\"type\":\"Available\",\"status\":\"True\"%') <> CASE f.kind "
        "WHEN 1 THEN 2 ELSE 1 END)";
    int64_t unready;
    hfd_rc rc = count_of(tx, sql, sim_names[who], &unready, err);

    if (rc == HFD_OK &&
        ((unready != 0 && !j->sim->adapters_changed) || j->after.res[who].part_count == 0))
        sim_fail(j->sim, "H2", "%s became ready with %lld parts that are not", sim_names[who],
                 (long long)unready);
    return rc;
}

/*
 * H3: what were its parts is gone. Labels are ours, and strangers' things carry them too: those
 * that are no part may stay.
 */
static hfd_rc rule_gone(struct hfd_txn *tx, struct sim_job *j, int who, struct hfd_err *err)
{
    static const char parts_sql[] = "SELECT count(*) FROM part WHERE guresid = ?1 AND ?2 = 0";
    struct sim *s = j->sim;
    int64_t left = 0;
    hfd_rc rc = count_of(tx, parts_sql, sim_names[who], &left, err);

    if (rc == HFD_OK && left != 0)
        sim_fail(s, "H3", "%s went and left its parts", sim_names[who]);
    return rc;
}

/* The cookie changes with an order. After a rotation the next PUT of the same order changes it. */
static bool changed_cookie_rightly(const struct sim_job *j, int who)
{
    const struct sim_res *a = &j->before.res[who], *b = &j->after.res[who];
    const struct sim *s = j->sim;

    if (b->state == HFD_STATE_ABSENT || (j->who == who && restores(j)))
        return true;
    if (j->what == SIM_REPAIR) /* a nodepool that was removed was made again */
        return a->parts != b->parts;
    return j->what == SIM_PUT && j->who == who &&
           (a->incarnation != b->incarnation || a->body != b->body || a->parts != b->parts ||
            s->driver.ring == s->rings[SIM_KEYS - 1]);
}

static hfd_rc rules_of(struct hfd_txn *tx, struct sim_job *j, int who, struct hfd_err *err)
{
    const struct sim_res *a = &j->before.res[who], *b = &j->after.res[who];
    struct sim *s = j->sim;

    sim_tally.arrows[a->state][b->state]++;
    if (!arrow_exists(j, who))
        sim_fail(s, "H1", "%s went from %s to %s", sim_names[who],
                 hfd_state_name((enum hfd_state)a->state),
                 hfd_state_name((enum hfd_state)b->state));
    if (a->cookie != b->cookie && !changed_cookie_rightly(j, who))
        sim_fail(s, "H5", "the cookie of %s changed", sim_names[who]);
    if (a->cookie == b->cookie && b->state != HFD_STATE_ABSENT &&
        (a->incarnation != b->incarnation || a->body != b->body))
        sim_fail(s, "H5", "the cookie of %s did not change with its input", sim_names[who]);
    if (b->state == HFD_STATE_ABSENT)
        return a->state != HFD_STATE_ABSENT ? rule_gone(tx, j, who, err) : HFD_OK;
    if (b->state == HFD_STATE_READY && (a->state != HFD_STATE_READY || a->body != b->body))
        return rule_ready(tx, j, who, err);
    return b->state == HFD_STATE_FAILED && a->state != HFD_STATE_FAILED
               ? rule_failed(tx, j, who, err)
               : HFD_OK;
}

/* H4: whether the call had nothing to do for its resource. */
static bool idle(const struct sim_job *j)
{
    const struct sim_res *a = &j->before.res[j->who];
    const enum hfd_state state = sim_settled(a, j->now_us);

    if (restores(j))
        return false;
    if (j->what == SIM_DELETE)
        return state == HFD_STATE_ABSENT ||
               (state == HFD_STATE_DELETING && j->now_us < a->deadline_us);
    if (state == HFD_STATE_DELETING || state == HFD_STATE_CREATING)
        return true;
    return a->body == j->body && !a->restored &&
           ((state == HFD_STATE_READY && !a->mendable) || state == HFD_STATE_UPDATING);
}

/* D1 */
static void rule_timer(const struct sim_job *j)
{
    int64_t next_us = INT64_MAX;
    size_t failed = 0;

    for (int who = 0; who < SIM_WHO; who++) {
        const struct sim_res *a = &j->before.res[who], *b = &j->after.res[who];
        const bool late = (enum hfd_state)a->state != sim_settled(a, j->now_us);

        failed += late;
        if (late && (b->state != HFD_STATE_FAILED || strcmp(b->code, "RES-105") != 0))
            sim_fail(j->sim, "D1", "the timer left %s at its deadline", sim_names[who]);
        if (!late && !equal(a, b))
            sim_fail(j->sim, "D1", "the timer changed %s before its deadline", sim_names[who]);
        if (!late && (a->state == HFD_STATE_CREATING || a->state == HFD_STATE_UPDATING) &&
            a->deadline_us < next_us)
            next_us = a->deadline_us;
    }
    if (j->settled.count != failed || j->settled.next_us != next_us)
        sim_fail(j->sim, "D1", "the timer says %zu failed, the next is at %lld: %zu, %lld",
                 j->settled.count, (long long)j->settled.next_us, failed, (long long)next_us);
}

hfd_rc sim_rules_inside(struct hfd_txn *tx, struct sim_job *j, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    for (int who = 0; rc == HFD_OK && who < SIM_WHO; who++)
        rc = rules_of(tx, j, who, err);
    if (rc == HFD_OK && j->what == SIM_TIMER && j->inner == HFD_OK)
        rule_timer(j);
    if (rc != HFD_OK || j->who < 0)
        return rc;
    if (idle(j) && !changed_cookie_rightly(j, j->who) && !sim_equal(&j->before, &j->after))
        sim_fail(j->sim, "H4", "a call on %s that had nothing to do changed something",
                 sim_names[j->who]);
    sim_rules_answer(
        j->sim,
        &(struct sim_asked){.found = restores(j) ? &j->after.res[j->who] : &j->before.res[j->who],
                            .what = j->what,
                            .who = j->who,
                            .now_us = j->now_us},
        &j->doc);
    return rc;
}

/* Rows D1 to D7, in their order. */
void sim_expect_verdict(struct hfd_txn *tx, struct sim_job *j)
{
    const struct sim_message *m = &j->message;
    struct hfd_report_row prev;
    struct hfd_fleet_row f;
    hfd_rc rc;

    j->expected_known = false;
    if (hfd_fleet_row_get(tx, hfd_slice_of(m->id), &j->mem, &f, NULL) != HFD_OK)
        return;
    rc = hfd_report_row_get(tx, &(struct hfd_report_key){f.id, hfd_slice_of(m->adapter)}, &j->mem,
                            &prev, NULL);
    j->expected_known = rc == HFD_OK || rc == HFD_NOT_FOUND;
    j->expected = HFD_VERDICT_STORE;
    if (m->generation > f.generation ||
        (rc == HFD_OK && m->generation < prev.observed_generation) ||
        (rc == HFD_OK && m->generation == prev.observed_generation &&
         m->observed_us < prev.observed_us))
        j->expected = HFD_VERDICT_DISCARD;
    else if (m->incomplete)
        j->expected = HFD_VERDICT_REJECT;
    else if (m->available == HFD_STATUS_UNKNOWN && !(m->finalized && f.deleted_us != 0))
        j->expected = HFD_VERDICT_DISCARD;
}

/* ---- V1 ---- */

/* Counts and generations of HyperFleet's rows that live, of one name in one place. */
struct lives {
    int64_t count, generation;
};

static hfd_rc look_lives(struct hfd_txn *tx, const struct hfd_preview_part *p, hfd_slice cluster_id,
                         struct lives *out, struct hfd_err *err)
{
    static const char sql[] =
        "SELECT count(*), coalesce(max(generation), 0) FROM fleet WHERE kind = ?1 AND name = ?2 "
        "AND deleted_us = 0 AND (kind = 1 OR owner_id = ?3)";
    struct hfd_stmt *st;
    bool row;
    hfd_rc rc = hfd_unit_write(tx, err);

    if (rc == HFD_OK)
        rc = hfd_db_prepare(tx->db, sql, &st, err);
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, (int64_t)p->kind);
    hfd_stmt_text(st, 2, p->name);
    hfd_stmt_text(st, 3, cluster_id);
    rc = hfd_stmt_step(st, &row, err);
    if (rc == HFD_OK)
        *out = (struct lives){hfd_stmt_col_i64(st, 0), hfd_stmt_col_i64(st, 1)};
    hfd_stmt_done(st);
    return rc;
}

/* After the PUT: each change that was named has been made. */
static hfd_rc check_changes(struct hfd_txn *tx, const struct sim_job *j,
                            const struct hfd_validated *said, struct hfd_err *err)
{
    const hfd_slice guresid = hfd_slice_of(sim_names[j->who]);
    struct hfd_resource_row row;
    struct hfd_arena mem;
    hfd_rc rc;

    hfd_arena_init(&mem, (size_t)1 << 20);
    rc = hfd_resource_row_get(tx, guresid, &mem, &row, err);
    for (size_t i = 0; rc == HFD_OK && i < said->changes.count; i++) {
        const struct hfd_preview_part *p = &said->changes.parts[i];
        const bool goes = strcmp(p->action, "delete") == 0;
        struct lives is;

        rc = look_lives(tx, p, row.cluster_id, &is, err);
        if (rc == HFD_OK &&
            (is.count != (goes ? 0 : 1) || (!goes && is.generation != p->generation + 1)))
            sim_fail(j->sim, "V1", "%s: '%.*s' was to be %sd, and there are %lld, generation %lld",
                     sim_names[j->who], HFD_SLICE_FMT(p->name), p->action, (long long)is.count,
                     (long long)is.generation);
    }
    hfd_arena_fini(&mem);
    return rc;
}

/* All generations together: those that no change names must stay. */
static hfd_rc sum_of_generations(struct hfd_txn *tx, int64_t *out, struct hfd_err *err)
{
    static const char sql[] = "SELECT coalesce(sum(generation), 0) FROM fleet WHERE deleted_us = 0 "
                              "AND ?1 = '' AND ?2 = 0";
    const hfd_rc rc = hfd_unit_write(tx, err);

    return rc == HFD_OK ? count_of(tx, sql, "", out, err) : rc;
}

/* The answer of /validate, and how it ended. */
struct said {
    struct hfd_validated doc;
    hfd_rc rc;
    int64_t generations;
};

static void tally_said(const struct said *said)
{
    enum {
        REFUSED,
        BUSY,
        NOTHING,
        CHANGES
    } kind = CHANGES;

    if (said->rc != HFD_OK)
        kind = REFUSED;
    else if (said->doc.action == NULL)
        kind = BUSY;
    else if (strcmp(said->doc.action, "none") == 0)
        kind = NOTHING;
    sim_tally.planned[kind]++;
}

/* Compares a PUT that was carried out with what was said of it. */
static hfd_rc compare_put(struct hfd_txn *tx, const struct sim_job *j, const struct said *said,
                          struct hfd_err *err)
{
    const bool busy = j->doc.answer == HFD_ANSWER_BUSY;
    const char *action = said->doc.action;
    int64_t after;
    hfd_rc rc;

    if (busy != (action == NULL))
        sim_fail(j->sim, "V1", "a PUT of %s is %sin the way of another", sim_names[j->who],
                 busy ? "" : "not ");
    rc = sum_of_generations(tx, &after, err);
    if (rc == HFD_OK && after != said->generations &&
        (busy || strcmp(action, "none") == 0 || said->doc.changes.count == 0))
        sim_fail(j->sim, "V1", "a PUT of %s was to change nothing", sim_names[j->who]);
    return rc == HFD_OK && !busy ? check_changes(tx, j, &said->doc, err) : rc;
}

hfd_rc sim_planned_put(struct hfd_txn *tx, struct sim_job *j, struct hfd_err *err)
{
    const bool known = !restores(j); /* a cookie tells a PUT more than /validate has */
    struct hfd_call call = j->call;
    struct said said = {.rc = HFD_OK};
    struct hfd_err why;
    hfd_rc rc = sum_of_generations(tx, &said.generations, err);

    call.cookie = HFD_SLICE_NONE;
    if (rc == HFD_OK && known)
        said.rc = hfd_resource_validate(tx, &call, &said.doc, &why);
    if (rc == HFD_OK)
        rc = hfd_resource_put(tx, &j->call, &j->doc, err);
    if (!known || rc == HFD_IO || said.rc == HFD_IO)
        return rc;
    tally_said(&said);
    if (rc != said.rc)
        sim_fail(j->sim, "V1", "a PUT of %s ends with %s, and was to end with %s",
                 sim_names[j->who], hfd_rc_name(rc), hfd_rc_name(said.rc));
    return rc == HFD_OK ? compare_put(tx, j, &said, err) : rc;
}

/* ---- answers ---- */

static unsigned allowed_put(enum hfd_state state, bool same, bool drifted)
{
    switch (state) {
    case HFD_STATE_CREATING:
        return same ? 1u << HFD_ANSWER_HINT : 1u << HFD_ANSWER_BUSY;
    case HFD_STATE_DELETING:
        return 1u << HFD_ANSWER_BUSY;
    case HFD_STATE_UPDATING:
        return same ? 1u << HFD_ANSWER_HINT : 1u << HFD_ANSWER_HINT | 1u << HFD_ANSWER_OUTPUT;
    case HFD_STATE_READY:
        if (same)
            return drifted ? 1u << HFD_ANSWER_HINT : 1u << HFD_ANSWER_OUTPUT;
        break;
    case HFD_STATE_ABSENT:
    case HFD_STATE_FAILED:
    case HFD_STATE_COUNT:
        break;
    }
    return 1u << HFD_ANSWER_HINT | 1u << HFD_ANSWER_OUTPUT;
}

/* body: what the call brought; -1 for those without */
static unsigned allowed(const struct sim_res *found, enum sim_what what, int body, int64_t now_us)
{
    const enum hfd_state state = sim_settled(found, now_us);
    const bool overdue = state == HFD_STATE_DELETING && now_us >= found->deadline_us;

    if (what == SIM_PUT && found->restored) /* the same or not: what is known of it may be old */
        return allowed_put(state, true, found->mendable) | allowed_put(state, false, false);
    if (what == SIM_PUT)
        return allowed_put(state, body == found->body, found->mendable);
    if (what == SIM_DELETE) /* 204 where nothing is left, at once too; 202 without a row where a
                               cookie knows of more */
        return 1u << HFD_ANSWER_HINT | 1u << HFD_ANSWER_ABSENT;
    switch (state) { /* GET */
    case HFD_STATE_ABSENT:
        return 1u << HFD_ANSWER_ABSENT;
    case HFD_STATE_READY:
        return 1u << HFD_ANSWER_OUTPUT;
    case HFD_STATE_FAILED:
        return 1u << HFD_ANSWER_FAILED;
    case HFD_STATE_DELETING:
        return overdue ? 1u << HFD_ANSWER_FAILED : 1u << HFD_ANSWER_HINT;
    case HFD_STATE_CREATING:
    case HFD_STATE_UPDATING:
    case HFD_STATE_COUNT:
        break;
    }
    return 1u << HFD_ANSWER_HINT;
}

static void rule_hint(struct sim *s, const char *name, int64_t now_us, const struct hfd_hint *h)
{
    if (h->estimated_us / HFD_US_PER_S < now_us / HFD_US_PER_S) /* as the document states both */
        sim_fail(s, "A3", "the estimate of %s is in the past", name);
    if (h->retry_after_s < 1 || h->retry_after_s > HFD_RETRY_MAX_S)
        sim_fail(s, "A3", "Retry-After of %s is %d s", name, h->retry_after_s);
}

/* The hint of a call that changed nothing speaks of the operation that it found. */
static void rule_hint_of(struct sim *s, const struct sim_res *found, const char *name,
                         const struct hfd_hint *h)
{
    static const char *const words[HFD_STATE_COUNT] = {[HFD_STATE_CREATING] = "creating",
                                                       [HFD_STATE_UPDATING] = "updating",
                                                       [HFD_STATE_DELETING] = "deleting"};
    const int64_t deadline_us = found->deadline_us / HFD_US_PER_S * HFD_US_PER_S;

    if (words[found->state] == NULL || strcmp(h->status, words[found->state]) != 0)
        sim_fail(s, "A3", "%s is %s, its hint says %s", name,
                 hfd_state_name((enum hfd_state)found->state), h->status);
    if (h->deadline_us != deadline_us)
        sim_fail(s, "A3", "the deadline in the hint of %s is not the operation's", name);
}

static void rule_error(struct sim *s, const struct sim_res *found, const char *name, int64_t now_us,
                       const struct hfd_answer_doc *doc)
{
    const bool late = found->state != HFD_STATE_FAILED && now_us >= found->deadline_us;
    const char *code = late ? "RES-105" : found->code;

    if (!hfd_slice_is(doc->error, code) || doc->message.len == 0)
        sim_fail(s, "A4", "%s answers %.*s where %s is the reason", name, HFD_SLICE_FMT(doc->error),
                 code);
}

void sim_rules_answer(struct sim *s, const struct sim_asked *asked,
                      const struct hfd_answer_doc *doc)
{
    const char *name = sim_names[asked->who];

    sim_tally.answers[asked->what][doc->answer]++;
    if (doc->answer == HFD_ANSWER_HINT || doc->answer == HFD_ANSWER_BUSY)
        rule_hint(s, name, asked->now_us, &doc->hint);
    if (doc->answer == HFD_ANSWER_FAILED)
        rule_error(s, asked->found, name, asked->now_us, doc);
    if (doc->answer == HFD_ANSWER_OUTPUT && (doc->values.len == 0 || doc->type.len == 0))
        sim_fail(s, "A6", "a 200 of %s without its output", name);
    if (doc->has_cookie && (doc->cookie.len == 0 || doc->cookie.len > SIM_COOKIE - 1))
        sim_fail(s, "H5", "%s was answered with a cookie of %zu bytes", name, doc->cookie.len);
}

/* ---- on what is committed ---- */

/* The history of driver resources, each entry with the state that the one before came to. */
#define HISTORY                                                                                    \
    "SELECT id, seq, from_state, LAG(to_state, 1, from_state) OVER (PARTITION BY id ORDER BY seq)" \
    " AS came_to FROM (SELECT id, seq, from_state, to_state FROM history WHERE about = 0 UNION "   \
    "ALL SELECT r.guresid, r.seq, 0, 1 FROM resource r WHERE NOT EXISTS (SELECT 1 FROM history h " \
    "WHERE h.seq = r.seq))"

/* Rows that must not be there; the first column says which. */
static const struct {
    const char *rule, *what;
    const char *sql;
} broken[] = {
    {"S1", "a resource without its one cluster",
     "SELECT r.guresid FROM resource r WHERE r.kind = 1 AND r.state IN (1, 2, 3) AND (SELECT "
     "count(*) FROM part p JOIN fleet f ON"
     " f.id = p.fleet_id WHERE p.guresid = r.guresid AND f.kind = 1 AND f.deleted_us = 0 AND f.id "
     "= r.cluster_id) <> 1"},
    {"S1", "a resource that misses a part",
     "SELECT r.guresid FROM resource r JOIN part p ON p.guresid = r.guresid LEFT JOIN fleet f ON "
     "f.id = p.fleet_id"
     " WHERE r.state IN (1, 2, 3) AND p.leaving = 0 AND (f.id IS NULL OR f.deleted_us <> 0)"},
    {"S1", "a deleting resource with a part that lives",
     "SELECT r.guresid FROM resource r JOIN part p ON p.guresid = r.guresid JOIN fleet f ON f.id = "
     "p.fleet_id"
     " WHERE r.state = 5 AND f.deleted_us = 0"},
    {"S1", "a part that leaves and lives",
     "SELECT p.fleet_id FROM part p JOIN fleet f ON f.id = p.fleet_id WHERE p.leaving <> 0 AND "
     "f.deleted_us = 0"},
    {"S2", "a part of two resources",
     "SELECT fleet_id FROM part GROUP BY fleet_id HAVING count(*) > 1"},
    {"S4", "a Ready that its reports do not say",
     "SELECT f.id FROM fleet f WHERE f.deleted_us = 0 AND f.ready <> ((SELECT count(*) FROM report "
     "r WHERE r.fleet_id = f.id"
     " AND r.observed_generation = f.generation AND (r.adapter = 'validation' OR (f.kind = 1 AND "
     "r.adapter = 'dns'))"
     " AND r.conditions LIKE '%{\"type\":\"Available\",\"status\":\"True\"%') = CASE f.kind WHEN 1 "
     "THEN 2 ELSE 1 END)"},
    {"S5", "a resource that waits for nothing",
     "SELECT r.guresid FROM resource r WHERE r.state IN (1, 2) AND NOT EXISTS (SELECT 1 FROM part "
     "p LEFT JOIN fleet f ON f.id = p.fleet_id"
     " WHERE p.guresid = r.guresid AND (p.leaving <> 0 OR f.id IS NULL OR f.deleted_us <> 0 OR "
     "f.ready = 0))"},
    {"S5", "a deletion that waits for nothing",
     "SELECT r.guresid FROM resource r WHERE r.state = 5 AND NOT EXISTS (SELECT 1 FROM part p JOIN "
     "fleet f ON f.id = p.fleet_id"
     " WHERE p.guresid = r.guresid)"},
    {"S5", "a leaving part that is gone",
     "SELECT p.fleet_id FROM part p JOIN resource r ON r.guresid = p.guresid WHERE p.leaving <> 0 "
     "AND NOT EXISTS"
     " (SELECT 1 FROM fleet f WHERE f.id = p.fleet_id)"},
    {"S7", "a ready resource without output, or of another cluster",
     "SELECT guresid FROM resource WHERE state = 3 AND instr(output, cluster_id) = 0"},
    {"S9", "an output whose health is not that of the parts",
     "SELECT r.guresid FROM resource r WHERE r.state = 3 AND (instr(r.output, "
     "'\"health\":\"Healthy\"') > 0) <> (NOT EXISTS"
     " (SELECT 1 FROM part p JOIN fleet f ON f.id = p.fleet_id WHERE p.guresid = r.guresid AND "
     "p.leaving = 0 AND f.ready = 0))"},
    {"S9", "an output that does not name a part with its generation",
     "SELECT r.guresid || ' ' || f.id FROM resource r JOIN part p ON p.guresid = r.guresid JOIN "
     "fleet f ON f.id = p.fleet_id"
     " WHERE r.state = 3 AND p.leaving = 0 AND instr(r.output, f.id || '\",\"generation\":' || "
     "f.generation || ',')"
     " + instr(r.output, f.id || '\",\"generation\":' || f.generation || '}') = 0"},
    {"S7", "a part without its resource",
     "SELECT fleet_id FROM part WHERE guresid NOT IN (SELECT guresid FROM resource)"},
    {"S7", "a nodepool without its cluster",
     "SELECT id FROM fleet WHERE kind = 2 AND owner_id NOT IN (SELECT id FROM fleet WHERE kind = "
     "1)"},
    {"S7", "a report without its resource",
     "SELECT fleet_id FROM report WHERE fleet_id NOT IN (SELECT id FROM fleet)"},
    {"S7", "a label without its resource",
     "SELECT fleet_seq FROM fleet_label WHERE fleet_seq NOT IN (SELECT seq FROM fleet)"},
    {"S7", "a condition without its resource",
     "SELECT fleet_seq FROM fleet_condition WHERE fleet_seq NOT IN (SELECT seq FROM fleet)"},
    {"S7", "a condition that its document does not say",
     "SELECT f.id || ' ' || c.type FROM fleet_condition c JOIN fleet f ON f.seq = c.fleet_seq "
     "WHERE f.kind <> c.kind OR f.created_us <>"
     " c.created_us OR instr(f.conditions, '{\"type\":\"' || c.type || '\",\"status\":\"' || "
     "c.status || '\"') = 0"},
    {"S7", "a document with other conditions than it is found by",
     "SELECT f.id FROM fleet f WHERE (SELECT count(*) FROM json_each(f.conditions) e WHERE"
     " json_extract(e.value, '$.type') NOT IN ('Reconciled', 'LastKnownReconciled')) <>"
     " (SELECT count(*) FROM fleet_condition c WHERE c.fleet_seq = f.seq)"},
    {"S7", "a Ready that its document does not say",
     "SELECT f.id FROM fleet f WHERE f.ready <> (SELECT count(*) FROM fleet_condition c WHERE "
     "c.fleet_seq = f.seq AND c.type = 'Ready' AND"
     " c.status = 'True') OR f.ready_seen_us / 1000000 <> (SELECT "
     "unixepoch(substr(json_extract(e.value, '$.last_updated_time'), 1, 19))"
     " FROM json_each(f.conditions) e WHERE json_extract(e.value, '$.type') = 'Ready')"},
    {"S7", "a total that is not the count",
     "SELECT c.kind || ' ' || c.name || ' ' || c.value FROM fleet_count c WHERE c.n <> CASE "
     "c.field WHEN 0 THEN"
     " (SELECT count(*) FROM fleet f WHERE f.kind = c.kind) WHEN 1 THEN (SELECT count(*) FROM "
     "fleet_condition x WHERE x.kind = c.kind"
     " AND x.type = c.name AND x.status = c.value) WHEN 2 THEN (SELECT count(*) FROM fleet_label l "
     "WHERE l.kind = c.kind AND l.key = c.name"
     " AND l.value = c.value) ELSE (SELECT count(*) FROM resource r WHERE r.kind = c.kind AND "
     "substr(r.type, instr(r.type, '/') + 1) = c.name AND CAST(r.state AS TEXT) = c.value) END"},
    {"S7", "a state without its total",
     "SELECT guresid FROM resource r WHERE NOT EXISTS (SELECT 1 FROM fleet_count c WHERE c.field = "
     "3 AND c.kind = r.kind AND c.name = substr(r.type, instr(r.type, '/') + 1) AND c.value = "
     "CAST(r.state AS TEXT))"},
    {"S7", "a resource that is pending since another time than its document says",
     "SELECT f.id FROM fleet f WHERE f.pending_us / 1000000 <> coalesce((SELECT "
     "unixepoch(substr(json_extract(e.value, '$.last_transition_time'), 1, 19))"
     " FROM json_each(f.conditions) e WHERE json_extract(e.value, '$.type') = 'Reconciled' AND "
     "json_extract(e.value, '$.status') = 'False'), 0)"},
    {"H6", "a history whose steps do not meet",
     "SELECT id || ' ' || seq FROM (" HISTORY ") WHERE from_state <> came_to"},
    {"H6", "a history that does not end where the resource is",
     "SELECT r.guresid FROM resource r WHERE r.state <> coalesce((SELECT h.to_state FROM history h "
     "WHERE h.about = 0 AND h.id = r.guresid AND h.seq >= r.seq"
     " ORDER BY h.seq DESC LIMIT 1), 1)"},
    {"H6", "a history without its resource or tombstone",
     "SELECT id FROM history WHERE about = 0 AND id NOT IN (SELECT guresid FROM resource UNION "
     "SELECT id FROM tombstone WHERE about = 0)"},
    {"H6", "a resource and its tombstone",
     "SELECT guresid FROM resource WHERE guresid IN (SELECT id FROM tombstone WHERE about = 0)"},
    {"H6", "a tombstone that is not where the history ends",
     "SELECT t.id FROM tombstone t WHERE t.seq <> coalesce((SELECT MAX(seq) FROM history h WHERE "
     "h.about = t.about AND h.id = t.id), 0)"},
    {"H6", "an entry of an instance that did not begin",
     "SELECT h.id || ' ' || h.seq FROM history h WHERE h.about = 0 AND h.instance >= (SELECT "
     "MIN(seq) FROM history o WHERE o.id = h.id) AND NOT EXISTS (SELECT 1 FROM resource r WHERE "
     "r.seq = h.instance) AND NOT EXISTS (SELECT 1 FROM history b WHERE b.seq = "
     "h.instance AND b.id = h.id AND b.what IN ('create', 'update', 'retarget', 'retry', "
     "'adopted'))"},
};

/* The nodepools and clusters themselves (S2, S3, S6). */
static const char fleet_sql[] = "SELECT f.id, f.generation, f.deleted_us, p.guresid, p.generation, "
                                "f.spec, f.kind, p.leaving FROM fleet f"
                                " LEFT JOIN part p ON p.fleet_id = f.id ORDER BY f.id";

static struct sim_seen *seen(struct sim *s, const char *id)
{
    for (size_t i = s->seen_count; i > 0; i--)
        if (strcmp(s->seen[i - 1].id, id) == 0)
            return &s->seen[i - 1];
    if (s->seen_count == SIM_IDS)
        sim_fail(s, "limit", "more than %d HyperFleet resources in one run", SIM_IDS);
    copy_text(s->seen[s->seen_count].id, sizeof(s->seen[0].id), hfd_slice_of(id));
    return &s->seen[s->seen_count++];
}

/* S6: the spec that a part must have while no stranger has changed it. */
static void rule_spec(struct sim *s, size_t who, const char *id, hfd_slice spec, bool cluster)
{
    static const char *const clusters[SIM_BODIES] = {"{\"v\":0}", "{\"v\":1}", "{\"v\":1}",
                                                     "{\"v\":3}"};
    static const char *const pools[SIM_BODIES] = {"{\"v\":0}", "{\"v\":1}", "{\"v\":2}",
                                                  "{\"v\":3}"};
    const struct sim_res *r = &s->now.res[who];
    const char *want;
    char same[16]; /* in another form */

    if (r->body < 0 || r->restored || r->state == HFD_STATE_DELETING ||
        (!cluster && who != SIM_POOL))
        return;
    want = cluster ? clusters[r->body] : pools[r->body];
    (void)snprintf(same, sizeof(same), "%.*s.0}", (int)strlen(want) - 1, want);
    if (!hfd_slice_is(spec, want) && !hfd_slice_is(spec, same))
        sim_fail(s, "S6", "%s of %s has the spec %.*s, and the last PUT said %s", id,
                 sim_names[who], HFD_SLICE_FMT(spec), want);
}

static void rule_fleet_row(struct sim *s, struct hfd_stmt *st, bool *found)
{
    const hfd_slice id = hfd_stmt_col_text(st, 0, &s->mem),
                    owner = hfd_stmt_col_text(st, 3, &s->mem);
    const int64_t generation = hfd_stmt_col_i64(st, 1), deleted_us = hfd_stmt_col_i64(st, 2);
    struct sim_seen *was = seen(s, id.p);

    found[was - s->seen] = true;
    if (was->gone || generation < was->generation || (was->deleting && deleted_us == 0))
        sim_fail(s, "S3", "%s came back, or its generation fell from %lld to %lld", id.p,
                 (long long)was->generation, (long long)generation);
    was->generation = generation;
    was->deleting = deleted_us != 0;
    if (owner.len > 0 && was->strange && !hfd_slice_is(owner, sim_names[was->label]))
        sim_fail(s, "S2", "%.*s took over %s, which carries the label of %s", HFD_SLICE_FMT(owner),
                 id.p, sim_names[was->label]);
    if (owner.len == 0 && deleted_us == 0 && !was->strange)
        sim_fail(s, "S2", "%s lives and is a part of nothing", id.p);
    if (owner.len > 0 && deleted_us == 0 && hfd_stmt_col_i64(st, 4) == generation)
        rule_spec(s, whose(s, owner), id.p, hfd_stmt_col_text(st, 5, &s->mem),
                  hfd_stmt_col_i64(st, 6) == HFD_KIND_CLUSTER);
}

/* ---- W1 ---- */

static const char drift_sql[] =
    "SELECT r.guresid, f.id, f.kind, f.name, f.spec, r.drift, r.drift_count, r.kind, "
    "p.guresid IS NOT NULL FROM resource r JOIN fleet f ON f.id IN (SELECT fleet_id FROM part "
    "WHERE guresid = r.guresid AND leaving = 0) OR (r.kind = 1 AND f.owner_id = r.cluster_id AND "
    "f.id NOT IN (SELECT fleet_id FROM part)) LEFT JOIN part p ON p.fleet_id = f.id WHERE "
    "r.state = 3 AND f.deleted_us = 0 ORDER BY r.guresid, f.id";

/* The `v` that an order wants of a part. */
static int ordered_v(const struct sim_res *r, int who, bool cluster, hfd_slice name)
{
    static const int clusters[SIM_BODIES] = {0, 1, 1, 3};

    if (who == SIM_POOL)
        return r->body;
    if (cluster)
        return clusters[r->body];
    return hfd_slice_is(name, "np-a") ? 0 : r->body == 1 ? 1 : 2;
}

/* True if a spec has this `v`, as an integer or with a point. */
static bool has_v(hfd_slice spec, int v)
{
    char forms[3][16];

    (void)snprintf(forms[0], sizeof(forms[0]), "\"v\":%d}", v);
    (void)snprintf(forms[1], sizeof(forms[1]), "\"v\":%d,", v);
    (void)snprintf(forms[2], sizeof(forms[2]), "\"v\":%d.0}", v);
    for (size_t i = 0; i < 3; i++)
        if (slice_has(spec, forms[i]))
            return true;
    return false;
}

/* Of one resource: what it should tell, at least and at most. */
struct told {
    size_t who;
    int64_t least, most, count;
};

static void check_told(struct sim *s, const struct told *t)
{
    if (t->who == SIM_WHO)
        return;
    if (t->count < t->least || t->count > t->most)
        sim_fail(s, "W1", "%s counts %lld drifted fields; %lld to %lld are", sim_names[t->who],
                 (long long)t->count, (long long)t->least, (long long)t->most);
    sim_tally.several += t->count > 1;
}

static void rule_drift_row(struct sim *s, struct hfd_stmt *st, struct told *t)
{
    const size_t who = whose(s, hfd_stmt_col_text(st, 0, &s->mem));
    const hfd_slice id = hfd_stmt_col_text(st, 1, &s->mem),
                    name = hfd_stmt_col_text(st, 3, &s->mem),
                    spec = hfd_stmt_col_text(st, 4, &s->mem),
                    drift = hfd_stmt_col_text(st, 5, &s->mem);
    const bool cluster = hfd_stmt_col_i64(st, 2) == HFD_KIND_CLUSTER,
               own = hfd_stmt_col_i64(st, 2) == hfd_stmt_col_i64(st, 7),
               part = hfd_stmt_col_i64(st, 8) != 0;
    const struct sim_res *r = &s->now.res[who];
    char field[64];
    bool differs, told;

    if (r->restored || r->body < 0)
        return;
    if (t->who != who) {
        check_told(s, t);
        *t = (struct told){.who = who, .count = hfd_stmt_col_i64(st, 6)};
    }
    (void)snprintf(field, sizeof(field), "\"field\":\"%s%.*s%s%s\"",
                   cluster ? "cluster"
                   : own   ? "nodepool"
                           : "nodepools[",
                   own ? 0 : (int)name.len, name.p, own ? "" : "]", part ? ".spec.v" : "");
    told = slice_has(drift, field);
    if (!part && !seen(s, id.p)->alien) { /* with our label, or an orphan: it may be told */
        t->most++;
        return;
    }
    differs = !part || !has_v(spec, ordered_v(r, (int)who, cluster, name));
    t->least += differs;
    t->most += differs;
    sim_tally.aliens += !part;
    sim_tally.drifted += part && differs;
    if (differs != told)
        sim_fail(s, "W1", "%s of %s has the spec %.*s and is %stold: %.*s", id.p, sim_names[who],
                 HFD_SLICE_FMT(spec), told ? "" : "not ", HFD_SLICE_FMT(drift));
}

static hfd_rc rule_drift(struct hfd_txn *tx, struct sim *s, struct hfd_err *err)
{
    struct told t = {.who = SIM_WHO};
    struct hfd_stmt *st;
    hfd_rc rc = hfd_db_prepare(tx->db, drift_sql, &st, err);

    while (next_row(st, &rc, err))
        rule_drift_row(s, st, &t);
    hfd_stmt_done(st);
    check_told(s, &t);
    return rc;
}

static hfd_rc txn_committed(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct sim *s = arg;
    bool found[SIM_IDS] = {false};
    struct hfd_stmt *st;
    bool row;
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; rc == HFD_OK && i < sizeof(broken) / sizeof(broken[0]); i++) {
        if (s->adapters_changed && strcmp(broken[i].rule, "S4") == 0)
            continue;
        rc = hfd_db_prepare(tx->db, broken[i].sql, &st, err);
        if (rc == HFD_OK)
            rc = hfd_stmt_step(st, &row, err);
        if (rc == HFD_OK && row)
            sim_fail(s, broken[i].rule, "%s: %s", broken[i].what,
                     hfd_stmt_col_text(st, 0, &s->mem).p);
        hfd_stmt_done(st);
    }
    if (rc == HFD_OK)
        rc = hfd_db_prepare(tx->db, fleet_sql, &st, err);
    if (rc != HFD_OK)
        return rc;
    while (next_row(st, &rc, err))
        rule_fleet_row(s, st, found);
    hfd_stmt_done(st);
    for (size_t i = 0; rc == HFD_OK && i < s->seen_count; i++)
        s->seen[i].gone = s->seen[i].gone || !found[i];
    return rc == HFD_OK ? rule_drift(tx, s, err) : rc;
}

void sim_rules_committed(struct sim *s)
{
    if (sim_read(s, txn_committed, s) != HFD_OK)
        sim_fail(s, "read", "%s", s->err.msg);
}

static hfd_rc txn_empty(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    static const char sql[] =
        "SELECT (SELECT count(*) FROM resource) + (SELECT count(*) FROM part) + (SELECT count(*) "
        "FROM fleet)"
        " + (SELECT count(*) FROM report) + (SELECT count(*) FROM fleet_label) + (SELECT count(*) "
        "FROM fleet_condition)"
        " + (SELECT count(*) FROM fleet_count) + (SELECT count(*) FROM history WHERE id NOT IN "
        "(SELECT id FROM "
        "tombstone))";
    struct sim *s = arg;
    int64_t rows = 0;
    struct hfd_stmt *st;
    bool row;
    hfd_rc rc = hfd_db_prepare(tx->db, sql, &st, err);

    if (rc == HFD_OK)
        rc = hfd_stmt_step(st, &row, err);
    if (rc == HFD_OK)
        rows = hfd_stmt_col_i64(st, 0);
    hfd_stmt_done(st);
    if (rc == HFD_OK && rows != 0)
        sim_fail(s, "L2", "all is deleted, and %lld rows are left", (long long)rows);
    return rc;
}

void sim_rules_empty(struct sim *s)
{
    if (sim_read(s, txn_empty, s) != HFD_OK)
        sim_fail(s, "read", "%s", s->err.msg);
}

static void rule_refusal(struct sim *s, const struct sim_job *j)
{
    const bool names = s->strangers_were || j->who == SIM_POOL;

    if (j->job.rc == HFD_COOKIE)
        sim_fail(s, "A5", "a cookie that was given out for %s is refused", sim_names[j->who]);
    if (j->what == SIM_PUT && names && (j->job.rc == HFD_INVALID || j->job.rc == HFD_IMMUTABLE))
        return;
    sim_fail(s, "A1", "a call on %s was refused: %s: %s", sim_names[j->who], hfd_rc_name(j->job.rc),
             j->job.err.msg);
}

static void rule_report(struct sim *s, const struct sim_job *j)
{
    const hfd_rc there = j->expected == HFD_VERDICT_REJECT ? HFD_INVALID : HFD_OK;
    const hfd_rc want = j->expected_known ? there : HFD_NOT_FOUND;
    const bool repeat = j->verdict == HFD_VERDICT_REPEAT && j->expected == HFD_VERDICT_STORE;

    if (j->job.rc != want || (want == HFD_OK && j->verdict != j->expected && !repeat))
        sim_fail(s, "A7", "a report of %s on %s: %s, verdict %d, expected %s, %d",
                 j->message.adapter, j->message.id, hfd_rc_name(j->job.rc), j->verdict,
                 hfd_rc_name(want), j->expected);
}

/* The last cookie that came counts; a DELETE that is answered by 204 ends it. */
static void keep_cookie(struct sim *s, int who, hfd_slice cookie)
{
    if (hfd_slice_is(cookie, s->cookies[who][0]))
        return;
    memcpy(s->cookies[who][1], s->cookies[who][0], SIM_COOKIE);
    copy_text(s->cookies[who][0], SIM_COOKIE, cookie);
}

/* A DELETE with the cookie of another life than today's. */
static bool is_of_another_life(struct sim *s, const struct sim_job *j)
{
    struct hfd_cookie cookie;
    struct hfd_arena mem;
    struct hfd_err err;
    bool other;

    if (j->what != SIM_DELETE || j->call.cookie.len == 0)
        return false;
    hfd_arena_init(&mem, (size_t)1 << 20);
    other = hfd_cookie_open(&(struct hfd_cookie_ctx){.ring = s->driver.ring,
                                                     .guresid = j->call.guresid,
                                                     .mem = &mem},
                            j->call.cookie, &cookie, &err) == HFD_OK &&
            hash_slice(1, cookie.incarnation) != j->before.res[j->who].incarnation;
    hfd_arena_fini(&mem);
    return other;
}

/* A8: a 204 to a DELETE of an ended life leaves the resource of today as it is. */
static bool spares(struct sim *s, const struct sim_job *j)
{
    if (j->job.rc != HFD_OK || j->doc.answer != HFD_ANSWER_ABSENT ||
        j->before.res[j->who].state == HFD_STATE_ABSENT || !is_of_another_life(s, j) ||
        j->after.res[j->who].state == HFD_STATE_ABSENT)
        return false;
    if (!sim_equal(&j->before, &j->after))
        sim_fail(s, "A8", "a late DELETE of %s is 204, and changed it", sim_names[j->who]);
    return true;
}

/* A6: the answer is that of the state which the call leaves behind. */
static void rule_answer_fits(struct sim *s, const struct sim_job *j)
{
    static const unsigned states[] = {
        [HFD_ANSWER_OUTPUT] = TO(READY),
        [HFD_ANSWER_HINT] = TO(CREATING) | TO(UPDATING) | TO(DELETING),
        [HFD_ANSWER_BUSY] = TO(CREATING) | TO(DELETING),
        [HFD_ANSWER_FAILED] = TO(FAILED) | TO(DELETING),
        [HFD_ANSWER_ABSENT] = TO(ABSENT),
    };

    if (spares(s, j))
        return;
    if (j->job.rc == HFD_OK &&
        (states[j->doc.answer] & 1u << sim_settled(&j->after.res[j->who], j->now_us)) == 0)
        sim_fail(s, "A6", "%s answered %d and is %s", sim_names[j->who], j->doc.answer,
                 hfd_state_name((enum hfd_state)j->after.res[j->who].state));
    if (j->job.rc == HFD_OK && j->what == SIM_PUT &&
        (j->doc.answer == HFD_ANSWER_OUTPUT || j->doc.answer == HFD_ANSWER_HINT) &&
        j->after.res[j->who].state != HFD_STATE_CREATING && j->after.res[j->who].restored)
        sim_fail(s, "S6", "a PUT of %s was taken without a look at what HyperFleet has",
                 sim_names[j->who]);
}

void sim_rules_orphan(struct sim *s, hfd_slice id, int label)
{
    struct sim_seen *it;
    char text[32];

    copy_text(text, sizeof(text), id);
    it = seen(s, text);
    it->strange = true;
    it->label = label;
}

void sim_rules_strange(struct sim *s, const struct sim_job *j)
{
    if (j->what == SIM_STRANGER && j->inner == HFD_OK &&
        (j->act == SIM_MAKE_CLUSTER || j->act == SIM_MAKE_POOL))
        sim_rules_orphan(s, hfd_slice_of(j->id), j->label);
    if (j->what == SIM_STRANGER && j->inner == HFD_OK && j->act == SIM_MAKE_POOL)
        seen(s, j->id)->alien = j->spec % 2 == 0;
}

/* Everything but the calls of the orchestrator. */
static void note_other(struct sim *s, struct sim_job *j)
{
    if (j->what == SIM_REPORT) {
        sim_tally.reports[j->job.rc]++;
        rule_report(s, j);
        sim_trace(s, "report %s on %s generation %lld: %s %d", j->message.adapter, j->message.id,
                  (long long)j->message.generation, hfd_rc_name(j->job.rc), j->verdict);
    }
    if (j->what == SIM_TIMER) {
        if (j->job.rc == HFD_OK)
            sim_tally.timed_out += (unsigned)j->settled.count;
        sim_trace(s, "timer: %s, %zu failed", hfd_rc_name(j->job.rc), j->settled.count);
    }
    if (j->what == SIM_REPAIR) {
        sim_tally.repairs += j->job.rc == HFD_OK ? (unsigned)j->repaired : 0;
        sim_trace(s, "repair: %s, %zu", hfd_rc_name(j->job.rc), j->repaired);
    }
    if (j->what == SIM_STRANGER) {
        sim_tally.patches += j->job.rc == HFD_OK && j->act == SIM_PATCH;
        sim_tally.strangers += j->job.rc == HFD_OK;
        sim_rules_strange(s, j);
        sim_trace(s, "stranger %d %s %s: %s", j->act, j->id, j->name, hfd_rc_name(j->job.rc));
    }
}

void sim_rules_job(struct sim *s, struct sim_job *j)
{
    static const char *const words[] = {
        [SIM_GET] = "GET", [SIM_PUT] = "PUT", [SIM_DELETE] = "DELETE"};
    const struct hfd_answer_doc *doc = &j->doc;

    if (j->who < 0) {
        note_other(s, j);
        return;
    }
    rule_answer_fits(s, j);
    sim_trace(s, "%s %s body %d: %s answer %d, %s -> %s", words[j->what], sim_names[j->who],
              j->body, hfd_rc_name(j->job.rc), doc->answer,
              hfd_state_name((enum hfd_state)j->before.res[j->who].state),
              hfd_state_name((enum hfd_state)j->after.res[j->who].state));
    if (j->job.rc != HFD_OK) {
        rule_refusal(s, j);
        return;
    }
    if (!restores(j) &&
        (allowed(&j->before.res[j->who], j->what, j->body, j->now_us) & 1u << doc->answer) == 0)
        sim_fail(s, "A1", "%s in %s answered %d", sim_names[j->who],
                 hfd_state_name((enum hfd_state)j->before.res[j->who].state), doc->answer);
    if (doc->has_cookie && !j->lost)
        keep_cookie(s, j->who, doc->cookie);
    else if (j->what == SIM_DELETE && doc->answer == HFD_ANSWER_ABSENT && !j->lost)
        keep_cookie(s, j->who, HFD_SLICE(""));
}

void sim_rules_read(struct sim *s, enum sim_what what, int who, int body,
                    const struct hfd_answer_doc *doc)
{
    static const char *const words[] = {
        [SIM_GET] = "GET", [SIM_PUT] = "PUT", [SIM_DELETE] = "DELETE"};
    const struct sim_res *found = &s->now.res[who];

    if ((allowed(found, what, body, s->clock.wall_us) & 1u << doc->answer) == 0)
        sim_fail(s, "A2", "%s of %s in %s answered %d", words[what], sim_names[who],
                 hfd_state_name((enum hfd_state)found->state), doc->answer);
    sim_rules_answer(
        s,
        &(struct sim_asked){.found = found, .what = what, .who = who, .now_us = s->clock.wall_us},
        doc);
    if (doc->answer == HFD_ANSWER_HINT || doc->answer == HFD_ANSWER_BUSY)
        rule_hint_of(s, found, sim_names[who], &doc->hint);
    if (doc->answer == HFD_ANSWER_OUTPUT && !slice_has(doc->values, found->cluster_id))
        sim_fail(s, "A6", "the output of %s does not name its cluster %s", sim_names[who],
                 found->cluster_id);
    if (doc->has_cookie && hash_slice(2, doc->cookie) != found->cookie)
        sim_fail(s, "H5", "a repeated call on %s gives another cookie", sim_names[who]);
    if (doc->has_cookie)
        keep_cookie(s, who, doc->cookie);
    else if (what == SIM_DELETE && doc->answer == HFD_ANSWER_ABSENT)
        keep_cookie(s, who, HFD_SLICE(""));
}
