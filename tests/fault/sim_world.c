/* The program under test in one thread, its start and its ends. See sim.h. */
#include "tests/fault/sim.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "driver/backend/backend.h"
#include "driver/base/check.h"
#include "driver/core/driver.h"
#include "driver/core/keyring.h"
#include "store/rows_history.h"
#include "store/rows_overview.h"
#include "store/rows_resource.h"
#include "store/sqlite/db_sqlite_int.h"
#include "store/txn.h"
#include "store/unit.h"
#include "tests/lib/faultvfs.h"

const char *const sim_names[SIM_WHO] = {"sim-0", "sim-1", "sim-2"};

static const hfd_slice cluster_adapters[] = {HFD_SLICE("validation"), HFD_SLICE("dns")};
static const hfd_slice nodepool_adapters[] = {HFD_SLICE("validation")};
static const hfd_slice cluster_types[] = {HFD_SLICE("hyperfleet-cluster")};
static const hfd_slice nodepool_types[] = {HFD_SLICE("hyperfleet-nodepool")};
static const hfd_slice terminal[] = {HFD_SLICE("InvalidConfiguration")};

/* ---- inputs ---- */

/* clang-format off */
#define CLUSTER(name, v, pools)                                                                                             \
    "{\"type\":\"hyperfleet-cluster\",\"driver\":{\"values\":{\"cluster\":{\"name\":\"" name "\",\"spec\":{\"v\":" v "}}," \
    "\"nodepools\":[" pools "]}}}"
#define WORDS(name, v, pools)                                                                                               \
    " {\"driver\":{\"values\":{\"nodepools\":[" pools "],\"cluster\":{\"spec\":{\"v\":" v "},\"name\":\"" name "\"}}},"       \
    "\"type\":\"hyperfleet-cluster\"}"
#define POOL(name, v) "{\"name\":\"" name "\",\"spec\":{\"v\":" v "}}"
#define BODIES(form, name)                                                                        \
    {form(name, "0", POOL("np-a", "0")), form(name, "1", POOL("np-a", "0") "," POOL("np-b", "1")), \
     form(name, "1", POOL("np-b", "2")), form(name, "3", "")}
#define ONE(v) \
    "{\"type\":\"hyperfleet-nodepool\",\"driver\":{\"values\":{\"cluster_guresid\":\"sim-0\",\"nodepool\":" POOL("extra", v) "}}}"

static const char *const bodies[SIM_WHO][SIM_BODIES] = {
    BODIES(CLUSTER, "c-zero"), BODIES(CLUSTER, "c-one"), {ONE("0"), ONE("1"), ONE("2"), ONE("3")}};
/* The same, in other words. */
static const char *const others[SIM_WHO][SIM_BODIES] = {
    BODIES(WORDS, "c-zero"), BODIES(WORDS, "c-one"), {" " ONE("0"), " " ONE("1"), " " ONE("2"), " " ONE("3")}};
/* clang-format on */

const char *sim_body(int who, int body, bool other)
{
    return other ? others[who][body] : bodies[who][body];
}

static void learn_digests_of(struct sim *s, int who, int body)
{
    struct hfd_input in;

    if (hfd_input_parse(&(struct hfd_input_source){&s->driver.rules, hfd_slice_of(sim_names[who]),
                                                   0, hfd_slice_of(bodies[who][body])},
                        &s->digest_mem, &in, &s->err) != HFD_OK)
        sim_fail(s, "input", "%s", s->err.msg);
    for (size_t k = 0; k < SIM_KEYS; k++) {
        char *digest = hfd_arena_alloc(&s->digest_mem, HFD_DIGEST_BYTES);

        HFD_ASSERT(digest != NULL);
        hfd_keyring_digest(s->rings[k], in.canonical, (unsigned char *)digest);
        s->digests[k][who][body] = (hfd_slice){digest, HFD_DIGEST_BYTES};
    }
}

static void learn_digests(struct sim *s)
{
    for (int who = 0; who < SIM_WHO; who++)
        for (int b = 0; b < SIM_BODIES; b++)
            learn_digests_of(s, who, b);
}

/* ---- the operator ---- */

/* A ring of so many keys, of which the newest seals. */
static void make_ring(struct sim *s, size_t count, struct hfd_keyring **out)
{
    struct hfd_key_list keys = {.count = count, .active = count - 1};
    hfd_rc rc = hfd_secret_init(&keys.masters, count * HFD_KEY_BYTES, &s->err);

    for (size_t i = 0; rc == HFD_OK && i < count; i++)
        keys.ids[i][0] = keys.masters.p[i * HFD_KEY_BYTES] = (unsigned char)(7 + i);
    if (rc == HFD_OK)
        rc = hfd_keyring_new(&keys, out, &s->err);
    if (rc != HFD_OK)
        sim_fail(s, "start", "%s", s->err.msg);
    hfd_secret_fini(&keys.masters);
}

void sim_rotate(struct sim *s)
{
    if (s->driver.ring == s->rings[SIM_KEYS - 1])
        return;
    s->driver.ring = s->rings[SIM_KEYS - 1];
    sim_tally.keys++;
    sim_trace(s, "a new key");
}

/* Sets what a configuration file may change from the next start on. */
static void configure(struct sim *s, size_t adapters, int64_t deadline_us, int64_t estimate_us)
{
    s->driver.fleet.required[HFD_KIND_CLUSTER] =
        (struct hfd_adapter_names){cluster_adapters, adapters};
    s->driver.fleet.required[HFD_KIND_NODEPOOL] = (struct hfd_adapter_names){nodepool_adapters, 1};
    s->driver.fleet.due_keep_us = deadline_us;
    s->driver.fleet.tombstone_us = deadline_us;
    for (int kind = HFD_KIND_CLUSTER; kind <= HFD_KIND_NODEPOOL; kind++) {
        for (int op = 0; op < HFD_OP_COUNT; op++) {
            s->driver.estimate_us[op] = estimate_us;
            s->driver.deadline_us[kind][op] = deadline_us;
        }
    }
    hfd_driver_complete(&s->driver);
}

static void change_settings(struct sim *s)
{
    const size_t adapters = 1 + sim_below(s, 2);
    const int64_t deadline_us = (int64_t)(600 + sim_below(s, 3000)) * HFD_US_PER_S;

    s->adapters_changed =
        s->adapters_changed || adapters != s->driver.fleet.required[HFD_KIND_CLUSTER].count;
    configure(s, adapters, deadline_us, (int64_t)(1 + sim_below(s, 1200)) * HFD_US_PER_S);
    sim_tally.settings++;
    sim_trace(s, "new settings: %zu adapters, deadlines of %lld s", adapters,
              (long long)(deadline_us / HFD_US_PER_S));
}

/* ---- start and end ---- */

static hfd_rc try_open(struct sim *s)
{
    const struct hfd_store_config config = {
        .place.dir = s->dir, .clock = &s->clock.clock, .readers = 1, .stepped = true};
    hfd_rc rc = hfd_store_open(&config, &s->store, &s->err);

    for (int i = 0; rc == HFD_OK && i < SIM_READERS; i++)
        rc = hfd_store_reader_open(s->store, &s->readers[i], &s->err);
    return rc == HFD_OK ? hfd_store_reader_open(s->store, &s->witness, &s->err) : rc;
}

static void shut(struct sim *s)
{
    for (int i = 0; i < SIM_READERS; i++)
        hfd_store_reader_close(&s->readers[i]);
    hfd_store_reader_close(&s->witness);
    hfd_store_close(&s->store);
}

/* A disk that may stop within the next calls, or one that lasts. */
static void arm_power(struct sim *s)
{
    s->power_armed = !s->calm && sim_chance(s, s->mix.crash);
    faultvfs_power_arm(s->power_armed ? 1 + sim_below(s, 160) : 0);
}

/* A start on what is there; the power may fail again in the middle of it. */
static void start(struct sim *s)
{
    for (;;) {
        bool stopped;

        arm_power(s);
        if (try_open(s) == HFD_OK)
            break;
        shut(s);
        stopped = faultvfs_power_cut();
        if (!stopped)
            sim_fail(s, "S8", "the store does not open on what a crash left: %s", s->err.msg);
        faultvfs_power_back(sim_below(s, 1u << 30));
        sim_trace(s, "power failed again while starting");
    }
}

struct look {
    struct sim *s;
    struct sim_view view;
    uint64_t content;
    bool sound;
};

static hfd_rc txn_look(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct look *l = arg;
    hfd_rc rc = sim_look(tx, l->s, &l->view, err);

    return rc == HFD_OK ? sim_content(tx, l->s, &l->content, err) : rc;
}

static struct look look(struct sim *s)
{
    struct look l = {.s = s};

    if (sim_read(s, txn_look, &l) != HFD_OK)
        sim_fail(s, "read", "%s", s->err.msg);
    return l;
}

static void post(struct hfd_sink *sink, struct hfd_job *list)
{
    (void)sink;
    for (struct hfd_job *job = list, *next; job != NULL; job = next) {
        next = (struct hfd_job *)job->node.next;
        ((struct sim_job *)job)->answered = true;
    }
}

void sim_open(struct sim *s)
{
    tmpdir_make(s->base);
    (void)snprintf(s->dir, sizeof(s->dir), "%s/data", s->base);
    test_clock_init(&s->clock);
    s->latest_us = s->clock.wall_us;
    test_rng_init(&s->random, s->seed ^ UINT64_C(0x5bd1e995));
    hfd_arena_init(&s->mem, (size_t)64 << 20);
    hfd_arena_init(&s->digest_mem, (size_t)1 << 20);
    s->sink.post = post;
    for (size_t k = 0; k < SIM_KEYS; k++)
        make_ring(s, k + 1, &s->rings[k]);
    s->driver = (struct hfd_driver){
        .fleet = {.rng = &s->random.rng},
        .rules = {.cluster_types = cluster_types,
                  .cluster_type_count = 1,
                  .nodepool_types = nodepool_types,
                  .nodepool_type_count = 1},
        .ring = s->rings[0],
        .rng = &s->random.rng,
        .terminal_reasons = terminal,
        .terminal_reason_count = 1,
        .backend = HFD_SLICE("embedded"),
        .backend_ops = &hfd_backend_embedded,
        .drift = s->mix.repair > 0 ? HFD_DRIFT_REPAIR : HFD_DRIFT_REPORT,
    };
    configure(s, 2, 3600 * HFD_US_PER_S, 600 * HFD_US_PER_S);
    learn_digests(s);
    start(s);
    s->now = look(s).view;
    s->content = look(s).content;
}

void sim_close(struct sim *s)
{
    shut(s);
    (void)faultvfs_power_cut();
    faultvfs_power_back(1);
    for (size_t k = 0; k < SIM_KEYS; k++)
        hfd_keyring_free(s->rings[k]);
    hfd_arena_fini(&s->mem);
    hfd_arena_fini(&s->digest_mem);
    tmpdir_remove(s->base);
}

hfd_rc sim_read(struct sim *s, hfd_txn_fn *fn, void *arg)
{
    return hfd_store_read(s->witness, fn, arg, &s->err);
}

static hfd_rc txn_sound(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    static const char sql[] = "PRAGMA integrity_check(1)";
    struct look *l = arg;
    struct hfd_stmt *st;
    bool row = false;
    hfd_rc rc = hfd_db_prepare(tx->db, sql, &st, err);

    if (rc == HFD_OK)
        rc = hfd_stmt_step(st, &row, err);
    l->sound = rc == HFD_OK && row && hfd_slice_is(hfd_stmt_col_text(st, 0, &l->s->mem), "ok");
    hfd_stmt_done(st);
    return rc;
}

/* S8. maybe: a view and content that are right as well, or NULL */
static void compare(struct sim *s, const struct sim_view *maybe, uint64_t maybe_content)
{
    struct look l = look(s);
    const bool old = sim_equal(&l.view, &s->now) && (s->content == 0 || l.content == s->content);
    const bool later = maybe != NULL && sim_equal(&l.view, maybe) &&
                       (maybe_content == 0 || l.content == maybe_content);

    if (!old && !later)
        sim_fail(s, "S8",
                 "after a crash the database is neither what was committed nor that with the batch "
                 "under way");
    if (sim_read(s, txn_sound, &l) != HFD_OK || !l.sound)
        sim_fail(s, "S8", "after a crash the database is damaged");
    s->now = l.view;
    s->content = l.content;
    sim_tally.unknown_kept += !old;
    sim_tally.unknown_lost += old && later;
    sim_trace(s, "on disk: %s, %016llx", old ? "as committed" : "with the last batch",
              (unsigned long long)l.content);
}

static void forget_jobs(struct sim *s)
{
    for (size_t i = 0; i < s->queued; i++)
        hfd_arena_fini(&s->jobs[i].mem);
    s->queued = 0;
}

static void restart(struct sim *s, bool power, const struct sim_view *maybe, uint64_t maybe_content)
{
    s->crashes++;
    sim_tally.power_cuts += power;
    if (power)
        (void)faultvfs_power_cut();
    shut(s);
    (void)faultvfs_power_cut();
    faultvfs_power_back(sim_below(s, 1u << 30));
    if (sim_chance(s, s->mix.settings))
        change_settings(s);
    start(s);
    compare(s, maybe, maybe_content);
    sim_rules_committed(s);
}

void sim_crash(struct sim *s, bool power)
{
    sim_trace(s, "%s", power ? "power cut" : "restart");
    if (!power)
        sim_commit(
            s, false); /* what was taken is finished first, as when the program is asked to end */
    restart(s, power, NULL, 0);
    forget_jobs(s);
}

/* ---- calls that write ---- */

struct sim_job *sim_job_new(struct sim *s, enum sim_what what)
{
    struct sim_job *j;

    if (s->queued == SIM_JOBS)
        sim_commit(s, false);
    j = &s->jobs[s->queued];
    *j =
        (struct sim_job){.sim = s, .what = what, .now_us = s->clock.wall_us, .who = -1, .body = -1};
    hfd_arena_init(&j->mem, (size_t)16 << 20);
    return j;
}

static hfd_rc do_report(struct hfd_txn *tx, struct sim_job *j, struct hfd_err *err)
{
    const struct sim_message *m = &j->message;
    struct hfd_condition conditions[4] = {
        {.type = HFD_SLICE("Available"),
         .status = m->available,
         .reason = hfd_slice_of(m->terminal ? "InvalidConfiguration" : "Told")},
        {.type = HFD_SLICE("Health"), .status = HFD_STATUS_TRUE},
        {.type = HFD_SLICE("Finalized"),
         .status = m->finalized ? HFD_STATUS_TRUE : HFD_STATUS_FALSE},
        {.type = HFD_SLICE("Applied"), .status = HFD_STATUS_TRUE},
    };
    struct hfd_fleet_changes changes = {.mem = &j->mem};
    const struct hfd_fleet_call call = {.fleet = &j->sim->driver.fleet,
                                        .now_us = j->now_us,
                                        .caller = HFD_SLICE("adapter@example.com"),
                                        .mem = &j->mem,
                                        .changes = &changes};
    const struct hfd_fleet_report in = {
        .target = {.kind = m->kind, .id = hfd_slice_of(m->id)},
        .adapter = hfd_slice_of(m->adapter),
        .observed_generation = m->generation,
        .observed_us = m->observed_us,
        .conditions = {conditions, m->incomplete ? 3 : 4},
        .data = HFD_SLICE("{}"),
        .metadata = HFD_SLICE(""),
    };
    struct hfd_fleet_reported stored;
    hfd_rc rc = hfd_fleet_report(tx, &call, &in, &stored, err);

    j->verdict = stored.verdict;
    return rc == HFD_OK ? hfd_resource_observe(tx, &j->sim->driver, &call, err) : rc;
}

/* The driver resource is gone, as from a store that was lost; HyperFleet knows nothing of that. */
static hfd_rc forget(struct hfd_txn *tx, struct sim_job *j, struct hfd_err *err)
{
    static const struct hfd_tombstone_limits none = {0, INT64_MAX, INT64_MAX};
    const hfd_slice guresid = hfd_slice_of(sim_names[j->label]);
    struct hfd_tombstone_row stone = {.id = guresid, .kind = HFD_KIND_CLUSTER};
    struct hfd_resource_row row;
    struct hfd_part_list parts;
    hfd_rc rc = hfd_part_row_list(tx, guresid, &j->mem, &parts, err);

    for (size_t i = 0; rc == HFD_OK && i < parts.count; i++)
        sim_rules_orphan(j->sim, parts.rows[i].fleet_id, j->label);
    if (rc == HFD_OK)
        rc = hfd_resource_row_get(tx, guresid, &j->mem, &row, err);
    if (rc == HFD_OK)
        rc = hfd_resource_row_count(tx, &row, row.state, -1, err);
    else if (rc == HFD_NOT_FOUND)
        rc = HFD_OK;
    if (rc == HFD_OK)
        rc = hfd_resource_row_delete(tx, guresid, err);
    if (rc == HFD_OK) /* a removal of an earlier life may have left one */
        rc = hfd_tombstone_row_delete(tx, &(struct hfd_history_subject){stone.about, guresid}, err);
    if (rc == HFD_OK)
        rc = hfd_history_next_seq(tx, &stone.seq, err);
    return rc == HFD_OK ? hfd_tombstone_row_add(tx, &stone, &none, err) : rc;
}

static hfd_rc strange_act(struct hfd_txn *tx, struct sim_job *j, const struct hfd_fleet_call *call,
                          struct hfd_err *err)
{
    const enum hfd_kind kind = j->message.kind;
    char labels[64];
    const struct hfd_fleet_target target = {.kind = kind, .id = hfd_slice_of(j->id)};
    struct hfd_fleet_deletion deletion;
    struct hfd_fleet_row row;

    (void)snprintf(labels, sizeof(labels), "{\"" HFD_GURESID_LABEL "\":\"%s\"}",
                   sim_names[j->label]);
    switch (j->act) {
    case SIM_MAKE_CLUSTER:
    case SIM_MAKE_POOL: {
        const struct hfd_fleet_create in = {
            .kind = j->act == SIM_MAKE_POOL ? HFD_KIND_NODEPOOL : HFD_KIND_CLUSTER,
            .owner_id = j->act == SIM_MAKE_POOL ? hfd_slice_of(j->id) : HFD_SLICE_NONE,
            .name = hfd_slice_of(j->name),
            .spec = HFD_SLICE("{\"stranger\":1}"),
            .labels = j->act == SIM_MAKE_POOL && j->spec % 2 == 0 ? HFD_SLICE("{}")
                                                                  : hfd_slice_of(labels),
        };
        struct hfd_fleet_call foreign = *call;
        hfd_rc rc;

        foreign.by_others = in.labels.len == 2; /* else it could not carry our label */
        rc = hfd_fleet_create(tx, &foreign, &in, &row, err);

        if (rc == HFD_OK)
            (void)snprintf(j->id, sizeof(j->id), "%.*s", HFD_SLICE_FMT(row.id));
        return rc;
    }
    case SIM_PATCH: {
        static const char *const specs[SIM_SPECS] = {
            "{\"v\":\"patched\"}", "{\"v\":0}",   "{\"v\":1}",         "{\"v\":2}",
            "{\"v\":3}",           "{\"v\":1.0}", "{\"v\":0,\"w\":1}", "{\"w\":1}"};
        const struct hfd_fleet_patch in = {.target = target, .spec = hfd_slice_of(specs[j->spec])};
        struct hfd_fleet_call foreign = *call;

        foreign.by_others = true;
        return hfd_fleet_patch(tx, &foreign, &in, &row, err);
    }
    case SIM_REMOVE:
        return hfd_fleet_delete(tx, call, &target, &deletion, err);
    case SIM_FORCE:
        return hfd_fleet_force_delete(tx, call, &target, err);
    case SIM_FORGET:
        return forget(tx, j, err);
    case SIM_ACTS:
        break;
    }
    return HFD_OK;
}

static hfd_rc do_stranger(struct hfd_txn *tx, struct sim_job *j, struct hfd_err *err)
{
    struct hfd_fleet_changes changes = {.mem = &j->mem};
    const struct hfd_fleet_call call = {.fleet = &j->sim->driver.fleet,
                                        .now_us = j->now_us,
                                        .caller = HFD_SLICE("stranger@example.com"),
                                        .mem = &j->mem,
                                        .changes = &changes};
    const hfd_rc rc = strange_act(tx, j, &call, err);

    return rc == HFD_OK ? hfd_resource_observe(tx, &j->sim->driver, &call, err) : rc;
}

/* Mends the drift of one resource that is due. */
static hfd_rc do_repair(struct hfd_txn *tx, struct sim_job *j, struct hfd_err *err)
{
    const struct hfd_ctx c = {
        .tx = tx, .driver = &j->sim->driver, .now_us = j->now_us, .mem = &j->mem, .err = err};
    struct hfd_deadline_list due;
    const hfd_rc rc = hfd_repair_row_list(tx, SIM_WHO, &j->mem, &due, err);
    size_t count = 0;

    while (rc == HFD_OK && count < due.count && due.rows[count].deadline_us <= j->now_us)
        count++;
    j->repaired = count > 0;
    return count > 0 ? hfd_resource_repair(&c, due.rows[j->spec % (int)count].guresid, 0) : rc;
}

static hfd_rc do_call(struct hfd_txn *tx, struct sim_job *j, struct hfd_err *err)
{
    switch (j->what) {
    case SIM_PUT:
        return sim_planned_put(tx, j, err);
    case SIM_DELETE:
        return hfd_resource_delete(tx, &j->call, &j->doc, err);
    case SIM_REPORT:
        sim_expect_verdict(tx, j);
        return do_report(tx, j, err);
    case SIM_STRANGER:
        return do_stranger(tx, j, err);
    case SIM_TIMER:
        return hfd_resource_settle_due(&(struct hfd_ctx){.tx = tx,
                                                         .driver = &j->sim->driver,
                                                         .now_us = j->now_us,
                                                         .mem = &j->mem,
                                                         .err = err},
                                       &j->settled);
    case SIM_REPAIR:
        return do_repair(tx, j, err);
    case SIM_GET:
        return hfd_resource_get_restored(tx, &j->call, &j->doc, err);
    case SIM_WHATS:
        break;
    }
    return HFD_OK;
}

/* The call between two views of all resources. */
static hfd_rc txn_job(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct sim_job *j = arg;
    hfd_rc rc;

    rc = sim_look(tx, j->sim, &j->before, err);
    if (rc != HFD_OK)
        return rc;
    j->inner = rc = do_call(tx, j, err);
    j->after = j->before;
    if (rc == HFD_OK)
        rc = hfd_unit_write(tx, err); /* the rules look at the database itself */
    if (rc == HFD_OK)
        rc = sim_look(tx, j->sim, &j->after, err);
    if (rc == HFD_OK)
        rc = sim_rules_inside(tx, j, err);
    if (rc == HFD_OK && j->sim->power_armed)
        rc = sim_content(tx, j->sim, &j->content, err);
    j->ran = true;
    return rc;
}

void sim_submit(struct sim *s, struct sim_job *j)
{
    j->job.fn = txn_job;
    j->job.arg = j;
    j->job.sink = &s->sink;
    if (hfd_store_update(s->store, &j->job, &s->err) != HFD_OK)
        sim_fail(s, "store", "refused work: %s", s->err.msg);
    s->queued++;
}

/* ---- commits ---- */

/* The batch is on disk: what it made is the truth now, and its answers are out. */
static void on_committed(struct sim *s)
{
    for (size_t i = 0; i < s->queued; i++) {
        struct sim_job *j = &s->jobs[i];

        if (!j->ran || !j->answered)
            sim_fail(s, "store", "a job of a batch was not run, or not answered");
        /* The others of a batch run again without a refused one, and draw other ids. */
        if (j->job.rc == HFD_OK && !sim_equal(&j->before, &s->now))
            sim_fail(s, "H1", "resources changed between two transactions");
        if (j->job.rc == HFD_OK) {
            s->now = j->after;
            s->content = j->content;
        }
        sim_rules_job(s, j);
    }
}

/* It is unknown whether the batch is on disk: a restart must show all of it, or nothing. */
static void on_unknown(struct sim *s, bool failed)
{
    struct sim_view maybe = s->now;
    uint64_t content = s->content;
    bool whole = failed;

    for (size_t i = 0; failed && i < s->queued; i++) {
        const struct sim_job *j = &s->jobs[i];

        if (j->job.rc != HFD_IO)
            sim_fail(s, "store", "a batch failed by half");
        whole = whole && j->ran && j->inner != HFD_IO;
        if (j->ran && j->inner == HFD_OK) {
            sim_rules_strange(s, j);
            maybe = j->after;
            content = j->content;
        }
    }
    sim_tally.broken++;
    s->failures++;
    sim_trace(s, "the store broke: %s", s->jobs[0].job.err.msg);
    restart(s, false, whole ? &maybe : NULL, content);
}

void sim_commit(struct sim *s, bool failing)
{
    bool failed = false;

    if (s->queued == 0)
        return;
    if (failing)
        faultvfs_arm(FAULTVFS_CHANGES, 1 + sim_below(s, 12), sim_chance(s, 128),
                     sim_chance(s, 64) ? SQLITE_FULL : 0);
    hfd_store_step(s->store);
    if (failing)
        (void)faultvfs_disarm();
    for (size_t i = 0; i < s->queued; i++)
        failed = failed || s->jobs[i].job.rc == HFD_IO;
    if (!failed)
        on_committed(s);
    if (failed && hfd_store_ok(s->store))
        sim_fail(s, "store", "a commit failed, and the store goes on");
    if (!hfd_store_ok(s->store))
        on_unknown(s, failed);
    else
        sim_rules_committed(s);
    forget_jobs(s);
}
