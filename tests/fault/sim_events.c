/*
 * The events of a run: orchestrator, adapters, strangers and the machine, by the plan of the seed;
 * then the calm. See sim.h.
 */
#include "tests/fault/sim.h"

#include <stdio.h>

#include "driver/base/check.h"
#include "store/txn.h"
#include "tests/lib/faultvfs.h"

#define CALM_US (4 * 3600 * HFD_US_PER_S)
#define CALM_STEP_US (60 * HFD_US_PER_S)

unsigned sim_below(struct sim *s, unsigned bound)
{
    return (unsigned)test_rng_below(&s->plan, bound);
}

bool sim_chance(struct sim *s, unsigned share_of_256)
{
    return sim_below(s, 256) < share_of_256;
}

/* A share of a quarter of the runs. */
static unsigned share(struct sim *s, unsigned most)
{
    return sim_below(s, 4) == 0 ? 1 + sim_below(s, most) : 0;
}

void sim_begin(struct sim *s)
{
    test_rng_init(&s->plan, s->seed);
    s->mix = (struct sim_mix){
        .crash = share(s, 256),
        .io = share(s, 48),
        .stranger = share(s, 200),
        .jump = share(s, 128),
        .forged = share(s, 64),
        .lost = share(s, 128),
        .garbage = share(s, 96),
        .terminal = share(s, 96),
        .unavailable = share(s, 128),
        .silent = share(s, 160),
        .stale = share(s, 128),
        .late = share(s, 200),
        .keys = share(s, 48),
        .settings = share(s, 200),
        .timer = share(s, 200),
        .repair = share(s, 128),
    };
    if (s->changes) {
        s->mix.stranger = 256;
        s->mix.crash /= 16;
        s->mix.io /= 8;
        s->mix.silent = s->mix.unavailable = s->mix.terminal = 0;
    }
}

/* ---- time ---- */

static void pass(struct sim *s, int64_t us)
{
    test_clock_advance(&s->clock, us);
    if (s->clock.wall_us > s->latest_us)
        s->latest_us = s->clock.wall_us;
}

static void some_time(struct sim *s)
{
    static const unsigned upto_s[] = {1, 1, 1, 5, 60, 60, 900, 4000};

    pass(s, (int64_t)sim_below(s, upto_s[sim_below(s, 8)] * 1000) * 1000);
    if (sim_chance(s, s->mix.jump / 4)) { /* the wall clock alone is set */
        const int64_t by_us = ((int64_t)sim_below(s, 7200) - 3600) * HFD_US_PER_S;

        s->clock.wall_us += by_us;
        if (s->clock.wall_us > s->latest_us)
            s->latest_us = s->clock.wall_us;
        sim_trace(s, "the clock jumps by %lld s", (long long)(by_us / HFD_US_PER_S));
    }
}

/* ---- the orchestrator ---- */

/* The cookie that comes with a call. @return whether it must be refused */
static bool choose_cookie(struct sim *s, int who, char out[SIM_COOKIE])
{
    const unsigned which = s->calm ? 1 : sim_below(s, 8);
    size_t len;

    out[0] = '\0';
    if (sim_chance(s, s->calm ? 0 : s->mix.forged)) {
        const int other = (who + 1) % SIM_WHO;

        memcpy(out, s->cookies[sim_chance(s, 128) ? who : other][0], SIM_COOKIE);
        len = strlen(out);
        if (len == 0)
            memcpy(out, "Zm9yZ2Vk", sizeof("Zm9yZ2Vk"));
        else if (strcmp(out, s->cookies[who][0]) == 0 && sim_chance(s, 128))
            out[sim_below(s, (unsigned)len)] = '\0';
        else if (strcmp(out, s->cookies[who][0]) == 0)
            out[len - 5] = out[len - 5] == 'A' ? 'B' : 'A';
        return out[0] != '\0';
    }
    if (which < 5)
        memcpy(out, s->cookies[who][0], SIM_COOKIE);
    else if (which == 5)
        memcpy(out, s->cookies[who][1], SIM_COOKIE);
    return false;
}

struct peek {
    hfd_rc (*fn)(struct hfd_txn *tx, const struct hfd_call *call, struct hfd_answer_doc *out,
                 struct hfd_err *err);
    const struct hfd_call *call;
    struct hfd_answer_doc doc;
};

static hfd_rc txn_peek(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct peek *p = arg;

    return p->fn(tx, p->call, &p->doc, err);
}

/* Reads first, by any reader, perhaps with a disk that fails. @return true if that was an answer */
static bool read_first(struct sim *s, const struct sim_job *j, bool forged, struct peek *p)
{
    const int who = j->who;
    const bool failing = !s->calm && sim_chance(s, s->mix.io / 2);
    hfd_rc rc;

    if (failing)
        faultvfs_arm(FAULTVFS_READS, 1 + sim_below(s, 3), false, 0);
    rc = hfd_store_read(s->readers[sim_below(s, SIM_READERS)], txn_peek, p, &s->err);
    if (failing && faultvfs_disarm() > 0 && rc == HFD_IO) {
        sim_trace(s, "%s: the disk did not read", sim_names[who]);
        return true;
    }
    if ((rc == HFD_COOKIE) != forged || (rc != HFD_OK && rc != HFD_COOKIE))
        sim_fail(s, forged ? "A5" : "A2", "%s with a cookie that is %s: %s", sim_names[who],
                 forged ? "forged" : "ours", hfd_rc_name(rc));
    sim_tally.forged += forged;
    if (rc == HFD_COOKIE)
        return true;
    if (p->doc.decided) {
        sim_trace(s, "read %d %s: %d", j->what, sim_names[who], p->doc.answer);
        s->answered = p->doc.answer;
        sim_rules_read(s, j->what, who, j->body, &p->doc);
    }
    return p->doc.decided;
}

/*
 * One call of the orchestrator; body is that of a PUT. @return the job, when it is one and now
 * under way
 */
static struct sim_job *call(struct sim *s, enum sim_what what, int who, int body)
{
    char cookie[SIM_COOKIE];
    const bool forged = choose_cookie(s, who, cookie);
    const bool other_words = sim_chance(s, 48);
    struct sim_job *j = sim_job_new(s, what);
    struct peek p = {.fn = what == SIM_GET   ? hfd_resource_get
                           : what == SIM_PUT ? hfd_resource_put_peek
                                             : hfd_resource_delete_peek,
                     .call = &j->call};

    j->who = who;
    j->body = body;
    j->call = (struct hfd_call){
        .driver = &s->driver,
        .now_us = s->clock.wall_us,
        .caller = HFD_SLICE("orchestrator@example.com"),
        .guresid = hfd_slice_of(sim_names[who]),
        .cookie = hfd_arena_dup(&j->mem, hfd_slice_of(cookie)),
        .mem = &j->mem,
        .body = what == SIM_PUT ? hfd_slice_of(sim_body(who, body, other_words)) : HFD_SLICE_NONE,
    };
    if (read_first(s, j, forged, &p)) {
        hfd_arena_fini(&j->mem);
        return NULL;
    }
    if (what == SIM_PUT) {
        if (hfd_input_parse(
                &(struct hfd_input_source){&s->driver.rules, j->call.guresid, 0, j->call.body},
                &j->mem, &j->input, &s->err) != HFD_OK)
            sim_fail(s, "A1", "%s", s->err.msg);
        j->call.input = &j->input;
    }
    j->lost = sim_chance(s, s->calm ? 0 : s->mix.lost);
    sim_submit(s, j);
    return j;
}

static void orchestrate(struct sim *s)
{
    static const enum sim_what mix[] = {SIM_GET, SIM_GET, SIM_PUT,    SIM_PUT,
                                        SIM_PUT, SIM_PUT, SIM_DELETE, SIM_PUT};
    const enum sim_what what = mix[sim_below(s, 8)];
    const int who = (int)sim_below(s, SIM_WHO);
    int body = (int)sim_below(s, SIM_BODIES);

    if (s->now.res[who].body >= 0 && sim_below(s, 3) != 0)
        body = s->now.res[who].body; /* most calls poll */
    for (unsigned times = 1 + (unsigned)sim_chance(s, s->mix.lost); times > 0;
         times--) /* a retry overtakes its first try */
        (void)call(s, what, who, what == SIM_PUT ? body : -1);
}

/* ---- adapters ---- */

struct pick {
    struct sim *s;
    unsigned nth;
    bool alive; /* only those that live */
    struct sim_message found;
};

/* The nth HyperFleet resource, as lists show it. */
static hfd_rc txn_pick(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    static const char sql[] = "SELECT id, kind, generation, deleted_us FROM fleet WHERE deleted_us "
                              "= 0 OR ?1 = 0 ORDER BY id";
    struct pick *p = arg;
    struct hfd_stmt *st;
    struct hfd_arena mem;
    bool row = true;
    unsigned n = 0;
    hfd_rc rc = hfd_db_prepare(tx->db, sql, &st, err);

    p->found.id[0] = '\0';
    hfd_arena_init(&mem, (size_t)1 << 20);
    if (rc == HFD_OK)
        hfd_stmt_i64(st, 1, p->alive);
    while (rc == HFD_OK && n++ <= p->nth) {
        rc = hfd_stmt_step(st, &row, err);
        if (rc != HFD_OK || !row)
            break;
        (void)snprintf(p->found.id, sizeof(p->found.id), "%.*s",
                       HFD_SLICE_FMT(hfd_stmt_col_text(st, 0, &mem)));
        p->found.kind = (enum hfd_kind)hfd_stmt_col_i64(st, 1);
        p->found.generation = hfd_stmt_col_i64(st, 2);
        p->found.finalized = hfd_stmt_col_i64(st, 3) != 0;
    }
    hfd_stmt_done(st);
    hfd_arena_fini(&mem);
    return rc;
}

/* @return whether there is one */
static bool pick(struct sim *s, unsigned nth, bool alive, struct sim_message *out)
{
    struct pick p = {.s = s, .nth = nth, .alive = alive};

    if (sim_read(s, txn_pick, &p) != HFD_OK)
        sim_fail(s, "read", "%s", s->err.msg);
    *out = p.found;
    return p.found.id[0] != '\0';
}

/* An adapter looks at a resource and sends what it thinks of it. */
static void adapter_reports(struct sim *s)
{
    struct sim_message m;

    if (s->message_count == SIM_MESSAGES || !pick(s, sim_below(s, 12), false, &m))
        return;
    m.adapter = m.kind == HFD_KIND_CLUSTER && sim_chance(s, 128) ? "dns" : "validation";
    if (m.adapter[0] == 'd' && sim_chance(s, s->mix.silent))
        return;
    m.observed_us = s->clock.wall_us;
    m.available = m.finalized ? HFD_STATUS_FALSE : HFD_STATUS_TRUE;
    if (sim_chance(s, s->mix.unavailable)) {
        m.available = HFD_STATUS_FALSE;
        m.finalized = false;
    }
    if (sim_chance(s, s->mix.terminal)) {
        m.available = HFD_STATUS_FALSE;
        m.terminal = true;
    }
    if (sim_chance(s, s->mix.garbage)) {
        static const char *const adapters[] = {"validation", "dns", "nobody-asked"};

        m.adapter = adapters[sim_below(s, 3)];
        m.generation += (int64_t)sim_below(s, 4) - 1;
        m.observed_us += ((int64_t)sim_below(s, 4000) - 2000) * HFD_US_PER_S;
        m.available = (enum hfd_status)sim_below(s, 3);
        m.incomplete = sim_chance(s, 64);
        m.finalized = sim_chance(s, 128);
    }
    s->messages[s->message_count++] = m;
}

static void deliver(struct sim *s)
{
    unsigned at = 0;
    struct sim_job *j;

    if (s->message_count == 0)
        return;
    if (sim_chance(s, s->mix.late))
        at = sim_below(s, (unsigned)s->message_count);
    j = sim_job_new(s, SIM_REPORT);
    j->message = s->messages[at];
    if (!sim_chance(s, s->mix.stale)) { /* else it comes again */
        s->message_count--;
        memmove(&s->messages[at], &s->messages[at + 1],
                (s->message_count - at) * sizeof(s->messages[0]));
    }
    if (sim_chance(s, s->mix.lost / 2)) {
        hfd_arena_fini(&j->mem);
        return;
    }
    sim_submit(s, j);
}

/* ---- strangers ---- */

static void stranger(struct sim *s)
{
    static const char *const names[] = {"c-zero", "c-one", "np-a", "np-b", "extra", "other"};
    struct sim_job *j;
    struct sim_message at;

    if (!sim_chance(s, s->mix.stranger) || (s->seen_count + 16 > SIM_IDS && !s->changes))
        return;
    j = sim_job_new(s, SIM_STRANGER);
    j->act = (enum sim_act)sim_below(s, SIM_ACTS);
    if (s->changes && (s->seen_count + 16 > SIM_IDS || sim_below(s, 16) != 0))
        j->act = SIM_PATCH;
    j->spec = (int)sim_below(s, SIM_SPECS);
    j->label = (int)sim_below(s, SIM_WHO);
    if (j->act == SIM_MAKE_CLUSTER && !pick(s, 0, true, &at))
        at.id[0] = '\0';
    if (j->act != SIM_MAKE_CLUSTER && !pick(s, sim_below(s, 6), j->act != SIM_FORCE, &at)) {
        hfd_arena_fini(&j->mem);
        return;
    }
    if (j->act == SIM_MAKE_POOL && at.kind != HFD_KIND_CLUSTER)
        j->act = SIM_PATCH;
    j->message = at;
    (void)snprintf(j->id, sizeof(j->id), "%s", at.id);
    (void)snprintf(j->name, sizeof(j->name), "%s",
                   names[j->act == SIM_MAKE_CLUSTER ? sim_below(s, 2) : 2 + sim_below(s, 4)]);
    s->strangers_were = true;
    sim_submit(s, j);
}

/* ---- the timer ---- */

static void look_at_deadlines(struct sim *s)
{
    sim_submit(s, sim_job_new(s, SIM_TIMER));
    if (s->mix.repair > 0) {
        struct sim_job *j = sim_job_new(s, SIM_REPAIR);

        j->spec = (int)sim_below(s, SIM_WHO);
        sim_submit(s, j);
    }
}

/* All adapters report on all resources, as they should. */
static void adapters_work(struct sim *s)
{
    struct sim_message m;
    char last[32] = "";

    for (unsigned nth = 0; pick(s, nth, false, &m) && strcmp(m.id, last) != 0; nth++) {
        (void)snprintf(last, sizeof(last), "%s", m.id);
        m.observed_us = s->clock.wall_us;
        m.available = m.finalized ? HFD_STATUS_FALSE : HFD_STATUS_TRUE;
        for (int k = 0; k < (m.kind == HFD_KIND_CLUSTER ? 2 : 1); k++) {
            struct sim_job *j = sim_job_new(s, SIM_REPORT);

            m.adapter = k == 0 ? "validation" : "dns";
            j->message = m;
            sim_submit(s, j);
        }
    }
    sim_commit(s, false);
}

/* ---- the first phase ---- */

void sim_event(struct sim *s)
{
    static void (*const events[])(struct sim *) = {
        orchestrate,     orchestrate,     orchestrate,     adapter_reports,
        adapter_reports, adapter_reports, adapter_reports, deliver,
        deliver,         deliver,         deliver,         stranger,
    };

    s->step++;
    some_time(s);
    if (s->changes && sim_below(s, 3) != 0)
        stranger(s);
    else
        events[sim_below(s, sizeof(events) / sizeof(events[0]))](s);
    if (s->changes && sim_below(s, 16) == 0)
        adapters_work(s);
    if (sim_chance(s, s->mix.timer))
        look_at_deadlines(s);
    if (sim_below(s, 3) == 0)
        sim_commit(s, sim_chance(s, s->mix.io));
    if (sim_chance(s, s->mix.keys))
        sim_rotate(s);
    if (sim_chance(s, (s->mix.crash + s->mix.settings) / 32))
        sim_crash(s, sim_chance(s, 192));
}

/* ---- the second phase ---- */

/* Strangers take away what they made. @return whether they had to */
static bool strangers_leave(struct sim *s)
{
    bool any = false;

    for (size_t i = 0; i < s->seen_count; i++) {
        struct sim_job *j;

        if (!s->seen[i].strange || s->seen[i].gone || s->seen[i].deleting)
            continue;
        any = true;
        for (int kind = HFD_KIND_CLUSTER; kind <= HFD_KIND_NODEPOOL; kind++) {
            j = sim_job_new(s, SIM_STRANGER);
            j->act = SIM_REMOVE;
            j->message.kind = (enum hfd_kind)kind;
            (void)snprintf(j->id, sizeof(j->id), "%s", s->seen[i].id);
            sim_submit(s, j);
        }
    }
    sim_commit(s, false);
    return any;
}

/*
 * Calls until the answer is the wanted one; the pool's cluster comes before it and goes after it.
 */
static bool settle(struct sim *s, int who, bool wanted, int body)
{
    const enum sim_what what = wanted ? SIM_PUT : SIM_DELETE;

    (void)call(s, what, who, wanted ? body : -1);
    sim_commit(s, false);
    if (wanted)
        return s->now.res[who].state == HFD_STATE_READY && s->now.res[who].body == body;
    return s->now.res[who].state == HFD_STATE_ABSENT;
}

static void converge(struct sim *s, const bool wanted[SIM_WHO], const int body[SIM_WHO],
                     const char *rule)
{
    const int64_t end_us = s->latest_us + CALM_US;

    for (;;) {
        bool done = true;

        for (int i = 0; i < SIM_WHO; i++)
            done = settle(s, i, wanted[i], body[i]) && done;
        if (done)
            return;
        if (s->clock.wall_us > end_us)
            sim_fail(s, rule, "not all is as wanted after four hours of calm: %s, %s, %s",
                     hfd_state_name((enum hfd_state)s->now.res[0].state),
                     hfd_state_name((enum hfd_state)s->now.res[1].state),
                     hfd_state_name((enum hfd_state)s->now.res[2].state));
        pass(s, CALM_STEP_US);
        adapters_work(s);
    }
}

/*
 * L3: no adapter reports, so each operation becomes late in the end. Its answer is RES-105. In half
 * of the runs the timer is the first to see it.
 */
static void wait_in_vain(struct sim *s, const bool wanted[SIM_WHO], const int body[SIM_WHO])
{
    for (int i = 0; i < SIM_WHO; i++)
        (void)settle(s, i, wanted[i], body[i]);
    pass(s, s->latest_us - s->clock.wall_us + 3600 * HFD_US_PER_S);
    if (sim_chance(s, 128)) {
        look_at_deadlines(s);
        sim_commit(s, false);
        for (int i = 0; i < SIM_WHO; i++)
            if (s->now.res[i].state == HFD_STATE_CREATING ||
                s->now.res[i].state == HFD_STATE_UPDATING)
                sim_fail(s, "L3", "%s is stored as %s for ever", sim_names[i],
                         hfd_state_name((enum hfd_state)s->now.res[i].state));
    }
    for (int i = 0; i < SIM_WHO; i++) {
        (void)call(s, SIM_GET, i, -1);
        if (s->answered == HFD_ANSWER_HINT)
            sim_fail(s, "L3", "%s is under way for ever", sim_names[i]);
    }
}

void sim_calm(struct sim *s)
{
    static const bool none[SIM_WHO] = {false};
    bool wanted[SIM_WHO];
    int body[SIM_WHO];

    sim_commit(s, false);
    s->message_count = 0;
    s->calm = true;
    sim_crash(s, true);
    while (strangers_leave(s)) {
        pass(s, CALM_STEP_US);
        adapters_work(s);
    }
    for (int i = 0; i < SIM_WHO; i++) {
        wanted[i] = i == SIM_POOL ? wanted[0] && sim_chance(s, 128) : sim_chance(s, 192);
        body[i] = (int)sim_below(s, SIM_BODIES);
    }
    if (sim_chance(s, 32))
        wait_in_vain(s, wanted, body);
    converge(s, wanted, body, "L1");
    converge(s, none, body, "L1");
    for (int64_t end_us = s->latest_us + CALM_US; s->clock.wall_us < end_us && s->seen_count > 0;) {
        struct sim_message m;

        if (!pick(s, 0, false, &m))
            break;
        pass(s, CALM_STEP_US);
        adapters_work(s);
    }
    sim_rules_empty(s);
}
