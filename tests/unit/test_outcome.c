/* From conditions to answers: ready, failed, gone, health, and the sentences that go with them. */
#include "driver/core/outcome.h"

#include "tests/lib/contains.h"
#include "tests/lib/seams.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define T TEST_TIME_US
#define PARTS_MAX 8

static const hfd_slice adapters[] = {HFD_SLICE("validation"), HFD_SLICE("dns"),
                                     HFD_SLICE("hypershift")};
static const struct hfd_adapter_names required[] = {
    [HFD_KIND_CLUSTER] = {adapters, 3}, [HFD_KIND_NODEPOOL] = {adapters + 2, 1}};
/* Of either kind. */
static const struct hfd_adapter_names all_required[] = {
    [HFD_KIND_CLUSTER] = {adapters, 3}, [HFD_KIND_NODEPOOL] = {adapters, 3}};
static const hfd_slice terminal[] = {HFD_SLICE("InvalidConfiguration"), HFD_SLICE("QuotaExceeded")};

/* Adapters' conditions and parts, built a line each. */
struct fixture {
    struct hfd_arena mem;
    struct hfd_condition conditions[64];
    size_t condition_count;
    struct hfd_part_report reports[16];
    size_t report_count;
    struct hfd_part_view parts[PARTS_MAX];
    struct hfd_outcome_input in;
    struct hfd_outcome out;
};

static int setup(void **state)
{
    static struct fixture fx;

    memset(&fx, 0, sizeof(fx));
    hfd_arena_init(&fx.mem, 1u << 20);
    fx.in = (struct hfd_outcome_input){
        .guresid = HFD_SLICE("3c0a1948"),
        .parts = fx.parts,
        .terminal_reasons = terminal,
        .terminal_reason_count = 2,
        .required = required,
        .state = HFD_STATE_CREATING,
        .deadline_us = T + 1000,
        .now_us = T + 10,
    };
    *state = &fx;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fx = *state;

    hfd_arena_fini(&fx->mem);
    return 0;
}

/* A part that exists, wanted and being at generation 2, with no conditions. */
static struct hfd_part_view *add_part(struct fixture *fx, enum hfd_kind kind, const char *name,
                                      const char *id)
{
    struct hfd_part_view *part = &fx->parts[fx->in.part_count++];

    *part = (struct hfd_part_view){.kind = kind,
                                   .id = hfd_slice_of(id),
                                   .name = hfd_slice_of(name),
                                   .exists = true,
                                   .wanted_generation = 2,
                                   .generation = 2};
    part->conditions.items = &fx->conditions[fx->condition_count];
    return part;
}

/* Conditions of one owner are added one behind the other. */
static struct hfd_condition *add_condition(struct fixture *fx, struct hfd_conditions *cs,
                                           const char *type, enum hfd_status status,
                                           int64_t generation)
{
    struct hfd_condition *c = &fx->conditions[fx->condition_count++];

    assert_ptr_equal(c, cs->items + cs->count);
    cs->count++;
    *c = (struct hfd_condition){.type = hfd_slice_of(type),
                                .status = status,
                                .reason = hfd_slice_of(""),
                                .message = hfd_slice_of(""),
                                .observed_generation = generation};
    return c;
}

static void explain(struct hfd_condition *c, const char *reason, const char *message)
{
    c->reason = hfd_slice_of(reason);
    c->message = hfd_slice_of(message);
}

static void add_ready(struct fixture *fx, struct hfd_part_view *part, enum hfd_status status,
                      int64_t generation)
{
    (void)add_condition(fx, &part->conditions, "Ready", status, generation);
}

/* The next report of the part whose reports were last begun; with no conditions. */
static struct hfd_part_report *add_report(struct fixture *fx, struct hfd_part_view *part,
                                          const char *adapter)
{
    struct hfd_part_report *r = &fx->reports[fx->report_count++];

    if (part->report_count++ == 0)
        part->reports = r;
    *r = (struct hfd_part_report){
        .adapter = hfd_slice_of(adapter), .observed_generation = 2, .received_us = T + 1};
    r->conditions.items = &fx->conditions[fx->condition_count];
    return r;
}

/* A report in which an adapter gives up, with the message given. */
static struct hfd_part_report *add_failure(struct fixture *fx, struct hfd_part_view *part,
                                           const char *adapter, const char *message)
{
    struct hfd_part_report *r = add_report(fx, part, adapter);

    explain(add_condition(fx, &r->conditions, "Available", HFD_STATUS_FALSE, 0), "Waiting", "");
    explain(add_condition(fx, &r->conditions, "Applied", HFD_STATUS_FALSE, 0),
            "InvalidConfiguration", message);
    (void)add_condition(fx, &r->conditions, "Health", HFD_STATUS_TRUE, 0);
    return r;
}

static void judge(struct fixture *fx)
{
    assert_int_equal(hfd_outcome_judge(&fx->in, &fx->mem, &fx->out), HFD_OK);
    assert_non_null(fx->out.health);
    assert_non_null(fx->out.message.p);
    assert_non_null(fx->out.health_reason.p);
    assert_non_null(fx->out.health_message.p);
    assert_true(fx->out.message.len <= 500);
}

static void assert_text(hfd_slice text, const char *wanted)
{
    if (!hfd_slice_is(text, wanted))
        fail_msg("got  \"%.*s\"\nwant \"%s\"", HFD_SLICE_FMT(text), wanted);
}

static const struct {
    int64_t wanted, generation, ready_generation;
    int ready; /* enum hfd_status, or -1 for no condition */
    enum hfd_progress progress;
} ready_rows[] = {
    {2, 2, 2, HFD_STATUS_TRUE, HFD_PROGRESS_READY},
    {2, 3, 3, HFD_STATUS_TRUE, HFD_PROGRESS_READY}, /* another client changed it, and it is ready */
    {2, 3, 2, HFD_STATUS_TRUE, HFD_PROGRESS_READY},
    {2, 2, 1, HFD_STATUS_TRUE, HFD_PROGRESS_WORKING}, /* ready at an earlier generation */
    {2, 1, 2, HFD_STATUS_TRUE, HFD_PROGRESS_WORKING}, /* HyperFleet has not got the change */
    {2, 2, 2, HFD_STATUS_FALSE, HFD_PROGRESS_WORKING},
    {2, 2, 2, HFD_STATUS_UNKNOWN, HFD_PROGRESS_WORKING},
    {2, 2, 0, -1, HFD_PROGRESS_WORKING},
};

/*
 * A part is ready when Ready is True at or above the generation that the driver wrote, and not
 * otherwise.
 */
static void outcome_ready_by_generation(void **state)
{
    for (size_t i = 0; i < sizeof(ready_rows) / sizeof(ready_rows[0]); i++) {
        struct fixture *fx = *state;
        struct hfd_part_view *part = add_part(fx, HFD_KIND_CLUSTER, "c1", "2abc");

        part->wanted_generation = ready_rows[i].wanted;
        part->generation = ready_rows[i].generation;
        if (ready_rows[i].ready >= 0)
            add_ready(fx, part, (enum hfd_status)ready_rows[i].ready,
                      ready_rows[i].ready_generation);
        judge(fx);
        if (fx->out.progress != ready_rows[i].progress)
            fail_msg("row %zu: %d", i, (int)fx->out.progress);
        assert_string_equal(fx->out.health, ready_rows[i].progress == HFD_PROGRESS_READY
                                                ? "Healthy"
                                                : "Progressing");
        assert_int_equal(fx->out.message.len, 0);
        teardown(state);
        setup(state);
    }
}

/* Available alone makes nothing ready: it is sticky. */
static void outcome_available_is_not_ready(void **state)
{
    struct fixture *fx = *state;
    struct hfd_part_view *part = add_part(fx, HFD_KIND_CLUSTER, "c1", "2abc");

    (void)add_condition(fx, &part->conditions, "Available", HFD_STATUS_TRUE, 2);
    judge(fx);
    assert_int_equal(fx->out.progress, HFD_PROGRESS_WORKING);
}

/* All parts must be ready, and there must be one. */
static void outcome_ready_needs_every_part(void **state)
{
    struct fixture *fx = *state;
    struct hfd_part_view *part;

    judge(fx);
    assert_int_equal(fx->out.progress, HFD_PROGRESS_WORKING);
    assert_string_equal(fx->out.health, "Progressing");
    add_ready(fx, add_part(fx, HFD_KIND_NODEPOOL, "np1", "2np1"), HFD_STATUS_TRUE, 2);
    add_ready(fx, add_part(fx, HFD_KIND_CLUSTER, "c1", "2abc"), HFD_STATUS_TRUE, 2);
    judge(fx);
    assert_int_equal(fx->out.progress, HFD_PROGRESS_READY);
    part = add_part(fx, HFD_KIND_NODEPOOL, "np2", "2np2");
    add_ready(fx, part, HFD_STATUS_FALSE, 2);
    judge(fx);
    assert_int_equal(fx->out.progress, HFD_PROGRESS_WORKING);
    assert_text(fx->out.health_reason, "AwaitingAdapters");
    assert_text(fx->out.health_message, "nodepool 'np2' (2np2) is being brought to generation 2");
    part->generation = 3;
    judge(fx);
    assert_text(fx->out.health_reason, "GenerationChanged");
    assert_text(fx->out.health_message, "nodepool 'np2' (2np2) is being brought to generation 3");
}

/*
 * A part is pending while HyperFleet has not taken its change. It is neither ready nor failed,
 * whatever the old reports contain. It may have no id yet.
 */
static void outcome_waits_for_pending(void **state)
{
    struct fixture *fx = *state;
    struct hfd_part_view *part = add_part(fx, HFD_KIND_CLUSTER, "c1", "");

    add_ready(fx, part, HFD_STATUS_TRUE, 2);
    (void)add_failure(fx, part, "dns", "m")->observed_generation++;
    part->pending = true;
    judge(fx);
    assert_int_equal(fx->out.progress, HFD_PROGRESS_WORKING);
    fx->in.now_us = fx->in.deadline_us;
    fx->in.trouble = HFD_SLICE("HyperFleet could not be reached: connection refused.");
    judge(fx);
    assert_text(fx->out.message, "The creation of resource 3c0a1948 was not finished at its "
                                 "deadline: cluster 'c1' (not made yet) has not been taken up by "
                                 "HyperFleet: HyperFleet could not be reached: connection refused. "
                                 "Deploy again to give it more time, or delete "
                                 "the resource.");
    assert_text(fx->out.cause, "hyperfleet DeadlineExceeded HyperFleet could not be reached: "
                               "connection refused");
    fx->in.now_us = T;
    part->report_count = 0;
    judge(fx);
    assert_int_equal(fx->out.progress, HFD_PROGRESS_WORKING);
    part->pending = false;
    judge(fx);
    assert_int_equal(fx->out.progress, HFD_PROGRESS_READY);
}

/*
 * A part removed or being deleted is gone, ready or failed as the rest may be, and the message says
 * what to do.
 */
static void outcome_gone_comes_first(void **state)
{
    struct fixture *fx = *state;
    struct hfd_part_view *pool = add_part(fx, HFD_KIND_NODEPOOL, "np1", "2np1"), *cluster;

    fx->in.cluster_id = HFD_SLICE("2abc");
    add_ready(fx, pool, HFD_STATUS_TRUE, 2);
    pool->deleting = true;
    cluster = add_part(fx, HFD_KIND_CLUSTER, "c1", "2abc");
    (void)add_failure(fx, cluster, "dns", "no zone");
    judge(fx);
    assert_int_equal(fx->out.progress, HFD_PROGRESS_GONE);
    assert_text(fx->out.message,
                "Nodepool 'np1' (2np1) of cluster 2abc of resource 3c0a1948 is being deleted in "
                "HyperFleet, and not through this resource. "
                "Deploy again to make a new one, or delete the resource to forget it.");
    assert_string_equal(fx->out.health, "Degraded");
    assert_text(fx->out.health_reason, "RemovedInHyperFleet");
    cluster->exists = false;
    judge(fx);
    assert_text(fx->out.message, "Cluster 'c1' (2abc) of resource 3c0a1948 was removed in "
                                 "HyperFleet, and not through this resource. Deploy "
                                 "again to make a new one, or delete the resource to forget it.");
    assert_text(fx->out.cause, "hyperfleet RemovedInHyperFleet was removed");
}

static const struct {
    enum hfd_status health, applied, available;
    const char *applied_reason, *available_reason;
    int64_t generation, received_us;
    const char *failed; /* the condition that is named, or NULL */
} failed_rows[] = {
#define OK_ HFD_STATUS_TRUE
#define NO HFD_STATUS_FALSE
#define UN HFD_STATUS_UNKNOWN
    {OK_, NO, NO, "InvalidConfiguration", "x", 2, T + 1,
     "Applied=False, reason InvalidConfiguration"},
    {OK_, NO, NO, "x", "QuotaExceeded", 2, T + 1, "Available=False, reason QuotaExceeded"},
    {OK_, NO, NO, "InvalidConfiguration", "QuotaExceeded", 2, T + 1, "Applied=False"},
    {OK_, OK_, NO, "InvalidConfiguration", "QuotaExceeded", 3, T + 1, "Available=False"},
    {OK_, NO, UN, "QuotaExceeded", "x", 2, T + 1, "Applied=False"},
    {NO, NO, NO, "InvalidConfiguration", "QuotaExceeded", 2, T + 1,
     NULL}, /* the adapter does not work: it may be wrong */
    {UN, NO, NO, "InvalidConfiguration", "QuotaExceeded", 2, T + 1, NULL},
    {OK_, OK_, OK_, "InvalidConfiguration", "QuotaExceeded", 2, T + 1, NULL},
    {OK_, UN, UN, "InvalidConfiguration", "QuotaExceeded", 2, T + 1, NULL},
    {OK_, NO, NO, "invalidconfiguration", "InvalidConfiguration2", 2, T + 1,
     NULL}, /* exact match */
    {OK_, NO, NO, "", "", 2, T + 1, NULL},
    {OK_, NO, NO, "InvalidConfiguration", "x", 1, T + 1, NULL}, /* of an earlier generation */
    {OK_, NO, NO, "InvalidConfiguration", "x", 2, 0, NULL},     /* of an earlier attempt */
};

/*
 * Failed for good: a working adapter says so, with a terminal reason, of the wanted generation, in
 * this attempt.
 */
static void outcome_failed_by_terminal_report(void **state)
{
    for (size_t i = 0; i < sizeof(failed_rows) / sizeof(failed_rows[0]); i++) {
        struct fixture *fx = *state;
        struct hfd_part_view *part = add_part(fx, HFD_KIND_CLUSTER, "c1", "2abc");
        struct hfd_part_report *r;

        add_ready(fx, part, HFD_STATUS_TRUE, 2);
        r = add_report(fx, part, "dns");
        r->observed_generation = failed_rows[i].generation;
        r->received_us = failed_rows[i].received_us;
        explain(add_condition(fx, &r->conditions, "Available", failed_rows[i].available, 0),
                failed_rows[i].available_reason, "m");
        explain(add_condition(fx, &r->conditions, "Applied", failed_rows[i].applied, 0),
                failed_rows[i].applied_reason, "m");
        (void)add_condition(fx, &r->conditions, "Health", failed_rows[i].health, 0);
        judge(fx);
        if (fx->out.progress !=
            (failed_rows[i].failed != NULL ? HFD_PROGRESS_FAILED : HFD_PROGRESS_READY))
            fail_msg("row %zu: %d", i, (int)fx->out.progress);
        if (failed_rows[i].failed != NULL && !slice_has(fx->out.message, failed_rows[i].failed))
            fail_msg("row %zu: %.*s", i, HFD_SLICE_FMT(fx->out.message));
        teardown(state);
        setup(state);
    }
}

/* A report without Health fails nothing. */
static void outcome_failed_needs_health(void **state)
{
    struct fixture *fx = *state;
    struct hfd_part_view *part = add_part(fx, HFD_KIND_CLUSTER, "c1", "2abc");

    add_failure(fx, part, "dns", "m")->conditions.count = 2;
    judge(fx);
    assert_int_equal(fx->out.progress, HFD_PROGRESS_WORKING);
}

/*
 * The sentence names part, ids, adapter, condition, reason and message, the cluster before a
 * nodepool, and says what to do.
 */
static void outcome_failed_message(void **state)
{
    struct fixture *fx = *state;
    struct hfd_part_view *pool = add_part(fx, HFD_KIND_NODEPOOL, "np1", "2np1"), *cluster;

    fx->in.cluster_id = HFD_SLICE("2abc");
    fx->in.required = all_required;
    (void)add_failure(fx, pool, "validation", "Too\tmany\r\n\x7f\xc2\x85 nodes\xc3\xa9.\n");
    judge(fx);
    assert_int_equal(fx->out.progress, HFD_PROGRESS_FAILED);
    assert_text(fx->out.message,
                "Nodepool 'np1' (2np1) of cluster 2abc of resource 3c0a1948 could not be "
                "provisioned: adapter validation reported "
                "Applied=False, reason InvalidConfiguration: Too many     "
                "nodes\xc3\xa9. "
                "Correct the input and deploy again, or delete the resource.");
    assert_text(fx->out.cause, "validation InvalidConfiguration Too many     nodes\xc3\xa9");
    cluster = add_part(fx, HFD_KIND_CLUSTER, "c1", "2abc");
    (void)add_failure(fx, cluster, "dns", " . ");
    judge(fx);
    assert_text(
        fx->out.message,
        "Cluster 'c1' (2abc) of resource 3c0a1948 could not be provisioned: adapter dns reported "
        "Applied=False, reason "
        "InvalidConfiguration. Correct the input and deploy again, or delete the resource.");
}

/*
 * An adapter's words stay one line, read from left to right; what only looks like a control
 * character is kept.
 */
static void outcome_message_is_one_line(void **state)
{
    static const struct {
        const char *said, *shown;
    } rows[] = {
        {"a\n\tb\x1b[31mc\x7f"
         "d",
         "a  b [31mc d"},
        {"a\xc2\x80"
         "b\xc2\xa0"
         "c\xe2\x80\xae"
         "d\xe2\x80\xaf"
         "e",
         "a b\xc2\xa0"
         "c d\xe2\x80\xaf"
         "e"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char want[80];
        struct fixture *fx = *state;

        fx->in.part_count = 0;
        (void)add_failure(fx, add_part(fx, HFD_KIND_CLUSTER, "c1", "2abc"), "dns", rows[i].said);
        judge(fx);
        (void)snprintf(want, sizeof(want), "InvalidConfiguration: %s. Correct the input",
                       rows[i].shown);
        if (!slice_has(fx->out.message, want))
            fail_msg("row %zu: %.*s", i, HFD_SLICE_FMT(fx->out.message));
    }
}

/*
 * However long and strange the names and the message, at most 500 bytes of whole characters come
 * out, with the advice at the end.
 */
static void outcome_failed_message_is_cut(void **state)
{
    static const char advice[] = "Correct the input and deploy again, or delete the resource.";
    static char name[200], message[5000];
    struct fixture *fx = *state;
    hfd_slice long_reason = {name, sizeof(name) - 1};
    const struct hfd_adapter_names long_required[] = {[HFD_KIND_NODEPOOL] = {&long_reason, 1}};
    struct hfd_part_view *part;

    memset(name, 'n', sizeof(name) - 1);
    for (size_t shift = 0; shift < 4; shift++) {
        teardown(state);
        setup(state);
        memset(message, 'x', shift);
        for (size_t i = shift; i + 4 < sizeof(message); i += 4)
            memcpy(message + i, "\xf0\x9f\x98\x80", 4);
        fx->in.required = shift > 1 ? long_required : all_required;
        part = add_part(fx, HFD_KIND_NODEPOOL, shift > 1 ? name : "c1", shift > 1 ? name : "2abc");
        (void)add_failure(fx, part, shift > 1 ? name : "dns", message);
        if (shift > 1) {
            fx->in.guresid = long_reason;
            fx->in.terminal_reasons = &long_reason;
            fx->in.terminal_reason_count = 1;
            fx->conditions[1].reason = long_reason;
        }
        judge(fx);
        assert_int_equal(fx->out.progress, HFD_PROGRESS_FAILED);
        assert_true(fx->out.message.len > 490);
        assert_memory_equal(fx->out.message.p + fx->out.message.len - strlen(advice), advice,
                            strlen(advice));
        assert_null(strstr(fx->out.message.p, "...."));
        for (size_t i = 0; i < fx->out.message.len; i++)
            if ((unsigned char)fx->out.message.p[i] == 0xf0) {
                assert_memory_equal(fx->out.message.p + i, "\xf0\x9f\x98\x80", 4);
                i += 3;
            } else {
                assert_in_range(fx->out.message.p[i], ' ', '~');
            }
    }
}

/* A GUResID of 63 characters and ids of HyperFleet's length are named whole. */
static void outcome_names_ids_whole(void **state)
{
    static const char guresid[] = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz01234567890";
    struct fixture *fx = *state;
    struct hfd_part_view *part =
        add_part(fx, HFD_KIND_CLUSTER, "a-name-of-fifty-three-characters-which-is-the-longest",
                 "2srhGmJyu02nQJtxeDEbhIjc7zn");

    assert_int_equal(strlen(guresid), 63);
    assert_int_equal(part->name.len, 53);
    fx->in.guresid = hfd_slice_of(guresid);
    (void)add_failure(fx, part, "dns", "m");
    judge(fx);
    assert_non_null(strstr(fx->out.message.p, guresid));
    assert_non_null(strstr(fx->out.message.p, part->name.p));
    assert_non_null(strstr(fx->out.message.p, part->id.p));
}

static const struct {
    const char *type;
    enum hfd_status status;
    int64_t generation;
    bool was_true;
    const char *reason;
    const char *health, *health_reason, *message;
} health_rows[] = {
    {"DnsSuccessful", NO, 2, false, "NoZone", "Degraded", "NoZone",
     "cluster 'c1' (2abc): adapter dns reported Available=False: why"},
    {"DnsSuccessful", NO, 3, false, "", "Degraded", "DnsSuccessful",
     "cluster 'c1' (2abc): adapter dns reported Available=False: why"},
    {"OddSuccessful", NO, 2, false, "NoZone", "Degraded", "NoZone",
     "cluster 'c1' (2abc): condition OddSuccessful is False: why"},
    {"Available", NO, 2, true, "Lost", "Degraded", "Lost",
     "cluster 'c1' (2abc): condition Available is False: why"},
    {"Available", NO, 2, false, "AwaitingAdapters", "Healthy", "", ""}, /* never was */
    {"Available", NO, 1, true, "Lost", "Healthy", "", ""},
    {"DnsSuccessful", NO, 1, false, "NoZone", "Healthy", "", ""}, /* of an earlier generation */
    {"DnsSuccessful", OK_, 2, false, "", "Healthy", "", ""},
    {"DnsSuccessful", UN, 2, false, "", "Healthy", "", ""},
    {"Successful", NO, 2, false, "x", "Healthy", "", ""},
    {"Unsuccessfu", NO, 2, false, "x", "Healthy", "", ""},
};

/*
 * Degraded: an adapter's condition, or the aggregated one once it was True, says False at the
 * wanted generation or above.
 */
static void outcome_health_names_the_adapter(void **state)
{
    for (size_t i = 0; i < sizeof(health_rows) / sizeof(health_rows[0]); i++) {
        struct fixture *fx = *state;
        struct hfd_part_view *part = add_part(fx, HFD_KIND_CLUSTER, "c1", "2abc");
        struct hfd_condition *c;

        add_ready(fx, part, HFD_STATUS_TRUE, 2);
        c = add_condition(fx, &part->conditions, health_rows[i].type, health_rows[i].status,
                          health_rows[i].generation);
        explain(c, health_rows[i].reason, "why");
        c->created_us = T;
        c->last_transition_us = health_rows[i].was_true ? T + 1 : T;
        (void)add_report(fx, part, "validation");
        (void)add_report(fx, part, "dns");
        judge(fx);
        assert_int_equal(fx->out.progress, HFD_PROGRESS_READY);
        assert_string_equal(fx->out.health, health_rows[i].health);
        assert_text(fx->out.health_reason, health_rows[i].health_reason);
        assert_text(fx->out.health_message, health_rows[i].message);
        teardown(state);
        setup(state);
    }
}

/* Judges as late, and checks the list of what is unfinished between the sentence's fixed words. */
static void assert_late(struct fixture *fx, bool deleting, const char *list)
{
    char wanted[600];

    fx->in.state = deleting ? HFD_STATE_DELETING : HFD_STATE_CREATING;
    fx->in.now_us = fx->in.deadline_us;
    judge(fx);
    assert_string_equal(fx->out.code, "RES-105");
    (void)snprintf(wanted, sizeof(wanted),
                   "%s of resource 3c0a1948 was not finished at its deadline: %s. %s",
                   deleting ? "The deletion" : "The creation", list,
                   deleting ? "It goes on; delete again to wait for it."
                            : "Deploy again to give it more time, or delete the resource.");
    assert_text(fx->out.message, wanted);
}

/*
 * A late operation names unfinished parts with the adapters that they wait for; finished ones are
 * not named; many are counted.
 */
static void outcome_late_names_parts_and_adapters(void **state)
{
    struct fixture *fx = *state;
    struct hfd_part_view *part = add_part(fx, HFD_KIND_CLUSTER, "c1", "2abc");
    struct hfd_part_report *report = add_report(fx, part, "validation");

    (void)add_condition(fx, &report->conditions, "Available", HFD_STATUS_TRUE, 0);
    assert_late(fx, false,
                "cluster 'c1' (2abc) waits for adapters dns (has not reported), hypershift (has "
                "not reported)");
    assert_text(fx->out.cause, "dns DeadlineExceeded has not reported");
    report->observed_generation = 1;
    assert_late(fx, false,
                "cluster 'c1' (2abc) waits for adapters validation (has reported on generation 1 "
                "of 2), dns (has not reported), "
                "hypershift (has not reported)");
    report->observed_generation = 2;
    part = add_part(fx, HFD_KIND_NODEPOOL, "np1", "2np1");
    add_ready(fx, part, HFD_STATUS_TRUE, 2);
    add_part(fx, HFD_KIND_NODEPOOL, "np2", "2np2")->exists = false;
    add_part(fx, HFD_KIND_NODEPOOL, "np3", "2np3")->leaving = true;
    assert_late(fx, false,
                "cluster 'c1' (2abc) waits for adapters dns (has not reported), hypershift (has "
                "not reported); nodepool 'np2' (2np2) "
                "was removed in HyperFleet; nodepool 'np3' (2np3) waits for Finalized from "
                "hypershift (has not reported)");
    report->conditions.count = 0;
    assert_late(fx, true,
                "cluster 'c1' (2abc) waits for Finalized from validation (has not reported "
                "Finalized), dns (has not reported), hypershift "
                "(has not reported); nodepool 'np1' (2np1) waits for Finalized from hypershift "
                "(has not reported); nodepool 'np3' (2np3) "
                "waits for Finalized from hypershift (has not reported)");
    for (int i = 0; i < 4; i++)
        (void)add_part(fx, HFD_KIND_NODEPOOL, "np", "2np");
    fx->in.guresid = HFD_SLICE("abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz01234567890");
    fx->parts[0].name = fx->in.guresid;
    judge(fx);
    assert_non_null(
        strstr(fx->out.message.p, "...; and 4 more. It goes on; delete again to wait for it."));
    assert_in_range(fx->out.message.len, 460, 500);
}

static const struct {
    enum hfd_status available, health;
    const char *reason, *message, *wanted;
} late_rows[] = {
    {NO, OK_, "NoZone", "no zone.", "dns (Available=False, reason NoZone: no zone)"},
    {UN, OK_, "Working", "", "dns (Available=Unknown, reason Working)"},
    {NO, NO, "Unreachable", "down", "dns (Health=False, reason Unreachable: down)"},
};

/*
 * The last message of an adapter is quoted where its work is not done. An adapter that does not
 * work itself is named for that alone.
 */
static void outcome_late_quotes_the_adapter(void **state)
{
    for (size_t i = 0; i < sizeof(late_rows) / sizeof(late_rows[0]); i++) {
        struct fixture *fx = *state;
        struct hfd_part_view *part = add_part(fx, HFD_KIND_NODEPOOL, "np1", "2np1");
        struct hfd_part_report *r = add_report(fx, part, "hypershift");
        char wanted[300];

        explain(add_condition(fx, &r->conditions, "Available", late_rows[i].available, 0),
                late_rows[i].reason, late_rows[i].message);
        explain(add_condition(fx, &r->conditions, "Health", late_rows[i].health, 0),
                late_rows[i].reason, late_rows[i].message);
        (void)snprintf(wanted, sizeof(wanted),
                       "nodepool 'np1' (2np1) waits for adapters hypershift%s",
                       late_rows[i].wanted + 3);
        assert_late(fx, false, wanted);
        teardown(state);
        setup(state);
    }
}

/*
 * All adapters have done their part, and still it is not Ready; or only nodepools are left of a
 * deletion.
 */
static void outcome_late_without_an_adapter(void **state)
{
    struct fixture *fx = *state;
    struct hfd_part_view *part = add_part(fx, HFD_KIND_NODEPOOL, "np1", "2np1");
    struct hfd_part_report *r = add_report(fx, part, "hypershift");

    (void)add_condition(fx, &r->conditions, "Available", OK_, 0);
    (void)add_condition(fx, &r->conditions, "Finalized", OK_, 0);
    assert_late(fx, false, "nodepool 'np1' (2np1) is not Ready");
    assert_late(fx, true, "nodepool 'np1' (2np1) waits for its nodepools to be removed");
}

static const struct {
    enum hfd_state state;
    enum hfd_progress progress;
    bool late;
    enum hfd_state to;
    const char *code;
} decision_rows[] = {
#define ST(x) HFD_STATE_##x
#define PR(x) HFD_PROGRESS_##x
    {ST(CREATING), PR(WORKING), false, ST(CREATING), NULL},
    {ST(CREATING), PR(READY), false, ST(READY), NULL},
    {ST(CREATING), PR(FAILED), false, ST(FAILED), "RES-104"},
    {ST(CREATING), PR(GONE), false, ST(FAILED), "RES-104"},
    {ST(CREATING), PR(WORKING), true, ST(FAILED), "RES-105"},
    {ST(CREATING), PR(READY), true, ST(FAILED), "RES-105"}, /* a GET may have said so already */
    {ST(CREATING), PR(FAILED), true, ST(FAILED), "RES-105"},
    {ST(UPDATING), PR(WORKING), false, ST(UPDATING), NULL},
    {ST(UPDATING), PR(READY), false, ST(READY), NULL},
    {ST(UPDATING), PR(FAILED), false, ST(FAILED), "RES-104"},
    {ST(UPDATING), PR(GONE), false, ST(FAILED), "RES-104"},
    {ST(UPDATING), PR(WORKING), true, ST(FAILED), "RES-105"},
    {ST(READY), PR(READY), true, ST(READY), NULL}, /* its operation is over: no deadline */
    {ST(READY), PR(WORKING), false, ST(READY), NULL},
    {ST(READY), PR(FAILED), false, ST(READY), NULL},
    {ST(READY), PR(GONE), false, ST(FAILED), "RES-104"},
    {ST(FAILED), PR(READY), false, ST(FAILED), NULL}, /* until a PUT or DELETE */
    {ST(FAILED), PR(GONE), true, ST(FAILED), NULL},
    {ST(DELETING), PR(WORKING), false, ST(DELETING), NULL},
    {ST(DELETING), PR(FAILED), false, ST(DELETING), NULL},
    {ST(DELETING), PR(WORKING), true, ST(DELETING), "RES-105"},
    {ST(DELETING), PR(GONE), false, ST(ABSENT), NULL},
    {ST(DELETING), PR(GONE), true, ST(ABSENT), NULL},
};

/* Where a state, what the parts say and the deadline lead. */
static void outcome_decides_the_state(void **state)
{
    for (size_t i = 0; i < sizeof(decision_rows) / sizeof(decision_rows[0]); i++) {
        struct fixture *fx = *state;
        struct hfd_part_view *part = add_part(fx, HFD_KIND_CLUSTER, "c1", "2abc");
        const char *code;

        if (decision_rows[i].progress == HFD_PROGRESS_READY)
            add_ready(fx, part, HFD_STATUS_TRUE, 2);
        else if (decision_rows[i].progress == HFD_PROGRESS_FAILED)
            (void)add_failure(fx, part, "dns", "m");
        else if (decision_rows[i].progress == HFD_PROGRESS_GONE)
            part->exists = false;
        fx->in.state = decision_rows[i].state;
        fx->in.now_us = fx->in.deadline_us - (decision_rows[i].late ? 0 : 1);
        judge(fx);
        code = fx->out.code != NULL ? fx->out.code : "";
        if (fx->out.progress != decision_rows[i].progress || fx->out.state != decision_rows[i].to ||
            strcmp(code, decision_rows[i].code != NULL ? decision_rows[i].code : "") != 0)
            fail_msg("row %zu: progress %d, state %s, code %s", i, (int)fx->out.progress,
                     hfd_state_name(fx->out.state), code);
        assert_int_equal(fx->out.message.len > 0, fx->out.code != NULL);
        teardown(state);
        setup(state);
    }
}

/* An adapter that is not required fails nothing, on the kind of part where it is not. */
static void outcome_terminal_reason_of_another_adapter(void **state)
{
    struct fixture *fx = *state;
    struct hfd_part_view *cluster = add_part(fx, HFD_KIND_CLUSTER, "c1", "2abc"), *pool;

    (void)add_failure(fx, cluster, "dsn", "no");
    judge(fx);
    assert_int_equal(fx->out.progress, HFD_PROGRESS_WORKING);
    assert_int_equal(fx->out.state, HFD_STATE_CREATING);
    pool = add_part(fx, HFD_KIND_NODEPOOL, "np1", "2np1");
    (void)add_failure(fx, pool, "dns", "no");
    judge(fx);
    assert_int_equal(fx->out.state, HFD_STATE_CREATING);
    (void)add_failure(fx, pool, "hypershift", "no");
    judge(fx);
    assert_int_equal(fx->out.progress, HFD_PROGRESS_FAILED);
    assert_int_equal(fx->out.state, HFD_STATE_FAILED);
}

/*
 * ADAPTER:REASON is terminal in the mouth of that adapter alone; a plain reason may look like one.
 */
static void outcome_terminal_reason_of_one_adapter(void **state)
{
    static const struct {
        const char *entry, *adapter;
        bool failed;
    } rows[] = {
        {"dns:InvalidConfiguration", "dns", true},
        {"dns:InvalidConfiguration", "hypershift", false},
        {"dns:InvalidConfiguratio", "dns", false},
        {"dnsInvalidConfiguration", "dns", false},
        {"ns:InvalidConfiguration", "dns", false},
        {"dns:", "dns", false},
        {"InvalidConfiguration", "dns", true},
        {":InvalidConfiguration", "dns", false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fixture *fx = *state;
        const hfd_slice entry = hfd_slice_of(rows[i].entry);

        fx->in.terminal_reasons = &entry;
        fx->in.terminal_reason_count = 1;
        (void)add_failure(fx, add_part(fx, HFD_KIND_CLUSTER, "c1", "2abc"), rows[i].adapter, "m");
        judge(fx);
        if ((fx->out.progress == HFD_PROGRESS_FAILED) != rows[i].failed)
            fail_msg("row %zu", i);
        teardown(state);
        setup(state);
    }
}

/* A nodepool that leaves holds up readiness until it is gone, and is never missed. */
static void outcome_waits_for_what_leaves(void **state)
{
    struct fixture *fx = *state;
    struct hfd_part_view *leaving;

    add_ready(fx, add_part(fx, HFD_KIND_CLUSTER, "c1", "2abc"), HFD_STATUS_TRUE, 2);
    leaving = add_part(fx, HFD_KIND_NODEPOOL, "np1", "2np1");
    leaving->leaving = leaving->deleting = true;
    assert_int_equal(hfd_outcome_judge(&fx->in, &fx->mem, &fx->out), HFD_OK);
    assert_int_equal(fx->out.progress, HFD_PROGRESS_WORKING);
    leaving->exists = false;
    assert_int_equal(hfd_outcome_judge(&fx->in, &fx->mem, &fx->out), HFD_OK);
    assert_int_equal(fx->out.progress, HFD_PROGRESS_READY);
    assert_string_equal(fx->out.health, "Healthy");
}

/* With any limit of memory, the failure is HFD_NOMEM. */
static void outcome_tells_of_short_memory(void **state)
{
    struct fixture *fx = *state;
    struct hfd_part_view *part = add_part(fx, HFD_KIND_CLUSTER, "c1", "2abc");
    bool done = false;

    explain(add_condition(fx, &part->conditions, "DnsSuccessful", HFD_STATUS_FALSE, 2), "NoZone",
            "why");
    (void)add_failure(fx, part, "dns", "m");
    for (size_t max = 0; !done; max += 16) {
        struct hfd_arena mem;
        hfd_rc rc;

        assert_true(max < 100000);
        hfd_arena_init(&mem, max);
        rc = hfd_outcome_judge(&fx->in, &mem, &fx->out);
        assert_true(rc == HFD_OK || rc == HFD_NOMEM);
        done = rc == HFD_OK;
        hfd_arena_fini(&mem);
        hfd_arena_init(&mem, max);
        fx->in.state = HFD_STATE_DELETING;
        fx->in.now_us = fx->in.deadline_us;
        rc = hfd_outcome_judge(&fx->in, &mem, &fx->out);
        assert_true(rc == HFD_OK ? fx->out.message.len > 0 : rc == HFD_NOMEM);
        done = done && rc == HFD_OK;
        fx->in.state = HFD_STATE_CREATING;
        hfd_arena_fini(&mem);
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(outcome_ready_by_generation),
        TEST(outcome_available_is_not_ready),
        TEST(outcome_ready_needs_every_part),
        TEST(outcome_waits_for_pending),
        TEST(outcome_gone_comes_first),
        TEST(outcome_failed_by_terminal_report),
        TEST(outcome_failed_needs_health),
        TEST(outcome_failed_message),
        TEST(outcome_message_is_one_line),
        TEST(outcome_failed_message_is_cut),
        TEST(outcome_names_ids_whole),
        TEST(outcome_health_names_the_adapter),
        TEST(outcome_late_names_parts_and_adapters),
        TEST(outcome_late_quotes_the_adapter),
        TEST(outcome_late_without_an_adapter),
        TEST(outcome_decides_the_state),
        TEST(outcome_terminal_reason_of_one_adapter),
        TEST(outcome_terminal_reason_of_another_adapter),
        TEST(outcome_waits_for_what_leaves),
        TEST(outcome_tells_of_short_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
