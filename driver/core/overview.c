/* See overview.h. */
#include "driver/core/overview.h"

#include "driver/base/clock.h"
#include "driver/base/jsonx.h"
#include "driver/core/driver.h"
#include "driver/core/hint.h"
#include "driver/core/transition.h"
#include "driver/core/outcome.h"
#include "driver/core/output.h"
#include "driver/fleet/keys.h"
#include "store/rows_history.h"
#include "store/rows_overview.h"
#include "store/rows_resource.h"

#include <sodium.h>

#include <ctype.h>
#include <stdlib.h>

/* ---- overview ---- */

#define TOKEN_MAX_BYTES 256
#define TIME_MAX_US (INT64_C(253402300799) * HFD_US_PER_S) /* 9999-12-31T23:59:59Z */
/* Version, order, time, rank, at, seq, fingerprint; the name follows. */
#define TOKEN_FORM "1 %lld %lld %lld %lld %lld %lld "
#define TOKEN_NUMBERS 7

const char *hfd_overview_order_name(enum hfd_overview_order order)
{
    static const char *const names[HFD_ORDERS] = {"trouble", "created", "name"};

    return names[order];
}

/* When an operation under way counts as stuck: twice its first estimate, at least 5 minutes. */
static int64_t overview_stuck_us(int64_t started_us, int64_t expected_us)
{
    const int64_t twice_us = 2 * (expected_us - started_us);

    return started_us + (twice_us > HFD_STUCK_AFTER_US ? twice_us : HFD_STUCK_AFTER_US);
}

/* ---- places ---- */

const char *hfd_overview_trouble_name(enum hfd_overview_trouble trouble)
{
    static const char *const names[HFD_OVERVIEW_TROUBLES] = {"failed", "stuck", "degraded"};

    return names[trouble];
}

/* The first ranks are the kinds of trouble. */
enum rank {
    RANK_FAILED = HFD_OVERVIEW_FAILED,
    RANK_STUCK = HFD_OVERVIEW_STUCK,
    RANK_DEGRADED = HFD_OVERVIEW_DEGRADED,
    RANK_UNDER_WAY,
    RANK_READY
};

static int compare_number(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_places(const struct hfd_overview_place *a, const struct hfd_overview_place *b)
{
    int by = compare_number(a->rank, b->rank);

    if (by == 0)
        by = compare_number(a->at, b->at);
    if (by == 0)
        by = hfd_slice_cmp((hfd_slice){a->name, a->name_len}, (hfd_slice){b->name, b->name_len});
    return by != 0 ? by : compare_number(a->seq, b->seq);
}

static bool is_under_way(enum hfd_state state)
{
    return state == HFD_STATE_CREATING || state == HFD_STATE_UPDATING ||
           state == HFD_STATE_DELETING;
}

/* A passed deadline ends a creation or an update; a deletion goes on. */
static enum hfd_state state_at(const struct hfd_overview_row *row, int64_t now_us)
{
    const enum hfd_state state = hfd_state_known(row->state);

    return is_under_way(state) && state != HFD_STATE_DELETING && now_us >= row->op_deadline_us
               ? HFD_STATE_FAILED
               : state;
}

static int64_t expected_of(int64_t expected_us, int64_t estimate_us)
{
    return expected_us != 0 ? expected_us : estimate_us;
}

static bool is_stuck(const struct hfd_overview_row *row, enum hfd_state state, int64_t now_us)
{
    return is_under_way(state) &&
           now_us > overview_stuck_us(row->op_started_us,
                                      expected_of(row->op_expected_us, row->op_estimate_us));
}

static void place_by_trouble(const struct hfd_overview_row *row, enum hfd_state state, bool stuck,
                             struct hfd_overview_place *out)
{
    const bool late = state == HFD_STATE_FAILED && is_under_way((enum hfd_state)row->state);

    out->at = is_under_way(state) ? row->op_started_us
              : late              ? row->op_deadline_us
                                  : row->updated_us;
    if (state == HFD_STATE_FAILED)
        out->rank = RANK_FAILED;
    else if (stuck)
        out->rank = RANK_STUCK;
    else if (is_under_way(state))
        out->rank = RANK_UNDER_WAY;
    else if (row->degraded)
        out->rank = RANK_DEGRADED;
    else
        *out = (struct hfd_overview_place){.rank = RANK_READY, .seq = out->seq};
}

/* ---- choosing ---- */

/* The best places so far, in order. */
struct best {
    struct hfd_overview_place *places;
    size_t count, room;
};

/* The places of a page and one more, and the first ones of each cause. */
struct choice {
    const struct hfd_overview_query *q;
    struct hfd_overview *out;
    struct hfd_arena *mem;
    struct best page;
    struct best *of_cause; /* beside out->causes */
    bool choosing;         /* else only counting */
    bool counting;
    bool nomem;
};

static bool search_in(hfd_slice text, hfd_slice what)
{
    for (size_t i = 0; i + what.len <= text.len; i++) {
        size_t n = 0;

        while (n < what.len &&
               tolower((unsigned char)text.p[i + n]) == tolower((unsigned char)what.p[n]))
            n++;
        if (n == what.len)
            return true;
    }
    return false;
}

/* Labels as text to search in: {"team":"a","env":"b"} is "team=a" and "env=b". */
static hfd_slice plain_labels(hfd_slice json, char *text)
{
    bool quoted = false;
    size_t n = 0;

    for (size_t i = 0; i < json.len; i++) {
        const char ch = json.p[i];

        if (ch == '"')
            quoted = !quoted;
        else if (ch == '\\' && i + 1 < json.len)
            text[n++] = json.p[++i];
        else if (quoted)
            text[n++] = ch;
        else if (ch == ':' || ch == ',')
            text[n++] = ch == ':' ? '=' : '\n';
    }
    return (hfd_slice){text, n};
}

static bool matches_search(const struct hfd_overview_row *row, hfd_slice what)
{
    bool found;
    char *text;

    if (what.len == 0 || search_in(row->guresid, what) || search_in(row->name, what))
        return true;
    text = malloc(row->labels.len + 1);
    found = text != NULL && search_in(plain_labels(row->labels, text), what);
    free(text);
    return found;
}

static bool matches_labels(const struct hfd_overview_row *row, const struct hfd_overview_query *q)
{
    json_t *labels;
    bool all = true;

    if (q->label_count == 0)
        return true;
    if (hfd_json_parse(row->labels, &labels, NULL) != HFD_OK)
        return false;
    for (size_t i = 0; all && i < q->label_count; i++) {
        const json_t *v = json_object_getn(labels, q->labels[i].key.p, q->labels[i].key.len);

        all = json_is_string(v) &&
              hfd_slice_eq((hfd_slice){json_string_value(v), json_string_length(v)},
                           q->labels[i].value);
    }
    json_decref(labels);
    return all;
}

static bool matches_type(hfd_slice type, hfd_slice want)
{
    return want.len == 0 || hfd_slice_eq(type, want) ||
           (type.len > want.len && type.p[type.len - want.len - 1] == '/' &&
            memcmp(type.p + type.len - want.len, want.p, want.len) == 0);
}

static void keep_best(struct best *b, const struct hfd_overview_place *place)
{
    size_t at = b->count;

    if (b->count == b->room &&
        (b->room == 0 || compare_places(place, &b->places[b->count - 1]) >= 0))
        return;
    if (b->count < b->room)
        b->count++;
    else
        at--;
    for (; at > 0 && compare_places(place, &b->places[at - 1]) < 0; at--)
        b->places[at] = b->places[at - 1];
    b->places[at] = *place;
}

static struct hfd_overview_place place_of(const struct choice *ch,
                                          const struct hfd_overview_row *row,
                                          const struct hfd_overview_place *by_trouble)
{
    struct hfd_overview_place place = {.seq = row->seq};

    switch (ch->q->order) {
    case HFD_ORDER_TROUBLE:
        return *by_trouble;
    case HFD_ORDER_CREATED:
        place.at = -row->seq;
        break;
    case HFD_ORDER_NAME:
        place.name_len = row->name.len < sizeof(place.name) ? row->name.len : sizeof(place.name);
        memcpy(place.name, row->name.p, place.name_len);
        break;
    case HFD_ORDERS:
        break;
    }
    return place;
}

/* The cause of a row; behind a deadline that no writer has met yet it is that of a late one. */
static struct hfd_cause cause_at(const struct hfd_overview_row *row, enum hfd_state state)
{
    struct hfd_cause cause = hfd_cause_parse(row->cause);

    if (cause.reason.len > 0 && (int)state != row->state)
        cause.reason = HFD_SLICE(HFD_CAUSE_LATE);
    return cause;
}

static bool cause_is(const struct hfd_overview_cause *c, int trouble, const struct hfd_cause *cause)
{
    return (int)c->trouble == trouble && hfd_slice_eq(c->cause.reason, cause->reason) &&
           hfd_slice_eq(c->cause.who, cause->who);
}

/* Finds a cause in the list, or adds it. Where there are too many, others share one. */
static size_t find_cause(struct choice *ch, int trouble, struct hfd_cause cause)
{
    struct hfd_overview *out = ch->out;
    size_t i = 0;

    while (i < out->cause_count && !cause_is(&out->causes[i], trouble, &cause))
        i++;
    if (i == out->cause_count && i >= HFD_OVERVIEW_CAUSES_MAX && cause.reason.len > 0)
        return find_cause(ch, trouble,
                          (struct hfd_cause){HFD_SLICE(""), HFD_SLICE(""), HFD_SLICE("")});
    if (i < out->cause_count)
        return i;
    out->causes[i] =
        (struct hfd_overview_cause){.trouble = (enum hfd_overview_trouble)trouble,
                                    .cause = {hfd_arena_dup(ch->mem, cause.who),
                                              hfd_arena_dup(ch->mem, cause.reason), HFD_SLICE("")}};
    ch->of_cause[i] = (struct best){
        .places = hfd_arena_array(ch->mem, ch->q->cause_size + 1, sizeof(*ch->of_cause->places)),
        .room = ch->q->cause_size};
    if (out->causes[i].cause.who.p == NULL || out->causes[i].cause.reason.p == NULL ||
        ch->of_cause[i].places == NULL)
        ch->nomem = true;
    else
        out->cause_count++;
    return i;
}

static void count_one(struct choice *ch, enum hfd_state state,
                      const struct hfd_overview_place *place, struct hfd_cause cause)
{
    size_t i;

    ch->out->counts[state]++;
    ch->out->stuck_count += place->rank == RANK_STUCK;
    ch->out->degraded_count += place->rank == RANK_DEGRADED;
    if (place->rank >= HFD_OVERVIEW_TROUBLES)
        return;
    i = find_cause(ch, place->rank, cause);
    if (ch->nomem)
        return;
    if (ch->out->causes[i].count++ == 0 || place->at < ch->out->causes[i].since_us)
        ch->out->causes[i].since_us = place->at;
    keep_best(&ch->of_cause[i], place);
}

/* Returns whether a row has the trouble and the cause that are asked for. */
static bool matches_cause(const struct hfd_overview_query *q, const struct hfd_overview_row *row,
                          const struct hfd_overview_place *by_trouble,
                          const struct hfd_cause *cause)
{
    return (!q->drifted || (row->drift_count > 0 && row->state == HFD_STATE_READY)) &&
           (!q->stuck || by_trouble->rank == RANK_STUCK) &&
           (!q->degraded || by_trouble->rank == RANK_DEGRADED) &&
           (q->who.len == 0 || hfd_slice_eq(q->who, cause->who)) &&
           (q->reason.len == 0 || hfd_slice_eq(q->reason, cause->reason));
}

static bool see(void *ctx, const struct hfd_overview_row *row)
{
    struct choice *ch = ctx;
    const struct hfd_overview_query *q = ch->q;
    const enum hfd_state state = state_at(row, ch->out->time_us);
    const struct hfd_cause cause = cause_at(row, state);
    struct hfd_overview_place place = {.seq = row->seq};

    place_by_trouble(row, state, is_stuck(row, state, ch->out->time_us), &place);
    if (!matches_cause(q, row, &place, &cause) || !matches_type(row->type, q->type) ||
        !matches_search(row, q->search) || !matches_labels(row, q))
        return true;
    if (ch->counting)
        count_one(ch, state, &place, cause);
    if (!ch->choosing || (q->states != 0 && (q->states & 1u << state) == 0))
        return true;
    place = place_of(ch, row, &place);
    if (!q->goes_on || compare_places(&place, &q->after) > 0)
        keep_best(&ch->page, &place);
    return !ch->nomem;
}

/* A walk in the order of the page: it ends when the page is full. */
static bool see_in_order(void *ctx, const struct hfd_overview_row *row)
{
    struct choice *ch = ctx;

    (void)see(ctx, row);
    return ch->page.count < ch->page.room;
}

/* ---- walking ---- */

/* True if resources can be found by labels of that key. Rows of a remote have no search keys. */
static bool has_index(const struct hfd_ctx *c, hfd_slice key)
{
    return !hfd_driver_is_remote(c->driver) && hfd_label_searchable(key);
}

static hfd_rc walk_all(const struct hfd_ctx *c, struct choice *ch)
{
    const struct hfd_overview_query *q = ch->q;
    struct hfd_overview_walk walk = {.way = HFD_OVERVIEW_BARE, .see = see, .ctx = ch};

    ch->choosing = ch->counting = true;
    for (size_t i = 0; i < q->label_count; i++)
        if (has_index(c, q->labels[i].key)) {
            walk.way = HFD_OVERVIEW_LABEL;
            walk.key = q->labels[i].key;
            walk.value = q->labels[i].value;
        }
    if (walk.way == HFD_OVERVIEW_LABEL)
        return hfd_overview_row_walk(c->tx, &walk, c->err);
    if (q->search.len > 0 || q->label_count > 0) {
        walk.way = HFD_OVERVIEW_ALL;
    } else if (q->drifted && q->order != HFD_ORDER_NAME) {
        walk.way = HFD_OVERVIEW_DRIFTED;
    } else if (q->order == HFD_ORDER_NAME) {
        walk.way = HFD_OVERVIEW_NAMED;
    }
    return hfd_overview_row_walk(c->tx, &walk, c->err);
}

/* Counts the ready ones: all but those that the walk over trouble saw. */
static hfd_rc count_ready(const struct hfd_ctx *c, struct hfd_overview *out)
{
    int64_t all, seen = 0;
    hfd_rc rc = hfd_overview_row_count(c->tx, &all, c->err);

    for (int s = 0; s < HFD_STATE_COUNT; s++)
        seen += out->counts[s];
    if (rc == HFD_OK)
        out->counts[HFD_STATE_READY] += all - seen;
    return rc;
}

/* Takes ready resources, or the newest of all, from an index until the page is full. */
static hfd_rc walk_in_order(const struct hfd_ctx *c, bool newest, struct choice *ch)
{
    const struct hfd_overview_query *q = ch->q;
    struct hfd_overview_walk walk = {.way = newest ? HFD_OVERVIEW_NEWEST : HFD_OVERVIEW_QUIET,
                                     .from = newest ? INT64_MAX : 0,
                                     .see = see_in_order,
                                     .ctx = ch};

    ch->counting = false;
    ch->choosing = true;
    if (q->goes_on && (newest || q->after.rank == RANK_READY))
        walk.from = q->after.seq;
    return hfd_overview_row_walk(c->tx, &walk, c->err);
}

/* Nearly all resources are ready in most places: only the others are walked and sorted. */
static hfd_rc walk_in_parts(const struct hfd_ctx *c, struct choice *ch)
{
    const struct hfd_overview_query *q = ch->q;
    const bool troubled = q->stuck || q->degraded || q->who.len > 0 || q->reason.len > 0;
    const bool wants_ready =
        !troubled && (q->states == 0 || (q->states & 1u << HFD_STATE_READY) != 0);
    const bool newest = q->order == HFD_ORDER_CREATED && wants_ready;
    const struct hfd_overview_walk walk = {.way = HFD_OVERVIEW_TROUBLE, .see = see, .ctx = ch};
    hfd_rc rc;

    ch->counting = true;
    ch->choosing = !newest;
    rc = hfd_overview_row_walk(c->tx, &walk, c->err);
    if (rc == HFD_OK && !troubled)
        rc = count_ready(c, ch->out);
    return rc == HFD_OK && wants_ready && ch->page.count < ch->page.room
               ? walk_in_order(c, newest, ch)
               : rc;
}

bool hfd_overview_is_short(const struct hfd_overview_query *q)
{
    return !q->drifted && q->search.len == 0 && q->label_count == 0 && q->type.len == 0 &&
           q->order != HFD_ORDER_NAME;
}

/* ---- items ---- */

/* The name and labels of its cluster, or of the nodepool of a nodepool resource. */
static hfd_rc read_main(const struct hfd_ctx *c, const struct hfd_resource_row *row,
                        struct hfd_overview_item *out)
{
    struct hfd_part_list parts;
    struct hfd_fleet_row fleet;
    hfd_rc rc = hfd_part_row_list(c->tx, row->guresid, c->mem, &parts, c->err);

    for (size_t i = 0; rc == HFD_OK && i < parts.count; i++) {
        if (parts.rows[i].kind != row->kind || parts.rows[i].leaving)
            continue;
        out->name = parts.rows[i].name;
        rc = hfd_fleet_row_get(c->tx, parts.rows[i].fleet_id, c->mem, &fleet, c->err);
        if (rc == HFD_OK)
            return hfd_labels_given(fleet.labels, c->mem, &out->labels, c->err);
        return rc == HFD_NOT_FOUND ? HFD_OK : rc;
    }
    return rc;
}

static hfd_slice text_of(const json_t *values, const char *name)
{
    const char *text = json_string_value(json_object_get(values, name));

    return hfd_slice_of(text != NULL ? text : "");
}

/* "not as ordered: cluster.spec.region, and 2 more". */
static hfd_rc say_drift(const struct hfd_ctx *c, const struct hfd_resource_row *row, hfd_slice *out)
{
    json_t *items;
    hfd_rc rc = hfd_json_parse(row->drift, &items, c->err);

    if (rc != HFD_OK)
        return rc;
    *out = hfd_arena_printf(c->mem, "not as ordered: %s",
                            hfd_json_cstr(json_array_get(items, 0), "field"));
    if (row->drift_count > 1 && out->p != NULL)
        *out = hfd_arena_printf(c->mem, "%.*s, and %lld more", HFD_SLICE_FMT(*out),
                                (long long)row->drift_count - 1);
    json_decref(items);
    return out->p != NULL ? HFD_OK : hfd_fail_nomem(c->err, "list resources");
}

/* Its health, from the output of a ready resource, and its drift. */
static hfd_rc read_output(const struct hfd_ctx *c, const struct hfd_resource_row *row,
                          struct hfd_overview_item *out)
{
    hfd_slice reason, message;
    json_t *values;
    hfd_rc rc = hfd_json_parse(hfd_output_values(row), &values, c->err);

    if (rc != HFD_OK)
        return rc;
    reason = text_of(values, "health_reason");
    message = text_of(values, "health_message");
    out->health = hfd_arena_dup(c->mem, text_of(values, "health"));
    out->message =
        hfd_arena_printf(c->mem, "%.*s%s%.*s", HFD_SLICE_FMT(reason),
                         reason.len > 0 && message.len > 0 ? ": " : "", HFD_SLICE_FMT(message));
    if (out->health.p == NULL || out->message.p == NULL)
        rc = hfd_fail_nomem(c->err, "list resources");
    json_decref(values);
    if (rc == HFD_OK && row->drift_count > 0 && !row->degraded)
        rc = say_drift(c, row, &out->message);
    return rc;
}

/* The times and the message of an operation under way. */
static hfd_rc read_operation(const struct hfd_ctx *c, const struct hfd_resource_row *row,
                             struct hfd_overview_item *out)
{
    const struct hfd_hint hint = hfd_hint_make(&(struct hfd_hint_input){
        .status = "",
        .started_us = row->op_started_us,
        .estimate_us = row->op_estimate_us,
        .deadline_us = row->op_deadline_us,
        .now_us = c->now_us,
        .plan = row->op_plan,
    });
    struct hfd_outcome late;
    hfd_rc rc = HFD_OK;

    out->operation = hfd_op_name((enum hfd_op)row->op);
    out->started_us = row->op_started_us;
    out->estimated_us = hint.estimated_us;
    out->usual_us = expected_of(row->op_expected_us, row->op_estimate_us);
    out->deadline_us = hint.deadline_us;
    out->message = row->op_waits;
    if (row->state == HFD_STATE_DELETING && hfd_resource_overdue(row, c->now_us)) {
        rc = hfd_judge_outcome(c, row, NULL, &late);
        if (rc == HFD_OK && late.code != NULL) {
            out->code = hfd_slice_of(late.code);
            out->message = late.message;
        }
    }
    return rc;
}

static hfd_rc fill_item(const struct hfd_ctx *c, const struct hfd_resource_row *row,
                        struct hfd_overview_item *out)
{
    switch (out->state) {
    case HFD_STATE_READY:
        return read_output(c, row, out);
    case HFD_STATE_FAILED:
        out->operation = hfd_op_name((enum hfd_op)row->op);
        out->code = row->fail_code;
        out->message = row->fail_message;
        return HFD_OK;
    case HFD_STATE_CREATING:
    case HFD_STATE_UPDATING:
    case HFD_STATE_DELETING:
        out->stuck =
            c->now_us > overview_stuck_us(row->op_started_us,
                                          expected_of(row->op_expected_us, row->op_estimate_us));
        return read_operation(c, row, out);
    case HFD_STATE_ABSENT:
    case HFD_STATE_COUNT:
        break;
    }
    return HFD_OK;
}

hfd_rc hfd_overview_item_of(const struct hfd_ctx *c, const struct hfd_resource_row *row,
                            struct hfd_overview_item *out)
{
    struct hfd_resource_row settled = *row;
    struct hfd_move late;
    bool is_late;
    hfd_rc rc = hfd_judge_late(c, row, &late, &is_late);

    if (rc == HFD_OK && is_late)
        hfd_resource_move_copy(&settled, &late);
    *out = (struct hfd_overview_item){
        .guresid = row->guresid,
        .type = row->type,
        .name = HFD_SLICE(""),
        .kind = row->kind,
        .state = hfd_state_known(settled.state),
        .since_us = settled.updated_us,
        .code = HFD_SLICE(""),
        .message = HFD_SLICE(""),
        .drift = row->state == HFD_STATE_READY ? row->drift : HFD_SLICE(""),
        .drift_count = row->state == HFD_STATE_READY ? row->drift_count : 0,
        .health = HFD_SLICE(""),
        .labels = HFD_SLICE("{}"),
        .cause = hfd_cause_parse(settled.cause),
        .cluster_id = hfd_backend_id_is_given(row->cluster_id) ? row->cluster_id : HFD_SLICE(""),
        .created_us = row->created_us,
    };
    if (rc == HFD_OK)
        rc = fill_item(c, &settled, out);
    return rc == HFD_OK ? read_main(c, row, out) : rc;
}

/* Fills the items of places, as of the time of the list. */
static hfd_rc fill_places(const struct hfd_ctx *c, const struct best *b, size_t max,
                          struct hfd_overview_item **out, size_t *count)
{
    hfd_rc rc = HFD_OK;

    struct hfd_resource_prefetch want = {.count = b->count < max ? b->count : max};
    int64_t *seqs = hfd_arena_array(c->mem, want.count + 1, sizeof(*seqs));

    *out = hfd_arena_array(c->mem, max + 1, sizeof(**out));
    if (*out == NULL || seqs == NULL)
        return hfd_fail_nomem(c->err, "list resources");
    for (size_t i = 0; i < want.count; i++)
        seqs[i] = b->places[i].seq;
    want.seqs = seqs;
    rc = hfd_resource_row_prefetch(c->tx, &want, c->mem, c->err);
    for (*count = 0; rc == HFD_OK && *count < b->count && *count < max;) {
        struct hfd_resource_row row;

        rc = hfd_resource_row_at(c->tx, b->places[*count].seq, c->mem, &row, c->err);
        if (rc == HFD_OK)
            rc = hfd_overview_item_of(c, &row, &(*out)[(*count)++]);
    }
    return rc;
}

static int compare_causes(const void *a, const void *b)
{
    const struct hfd_overview_cause *x = a, *y = b;
    int by = (int)x->trouble - (int)y->trouble;

    if (by == 0)
        by = compare_number(y->count, x->count);
    return by != 0 ? by : compare_number(x->since_us, y->since_us);
}

static hfd_rc make_items(const struct hfd_ctx *c, const struct choice *ch, struct hfd_overview *out)
{
    struct hfd_ctx as_of = *c;
    hfd_rc rc;

    as_of.now_us = out->time_us;
    rc = fill_places(&as_of, &ch->page, ch->q->size, &out->items, &out->count);
    for (size_t i = 0; rc == HFD_OK && i < out->cause_count; i++)
        rc = fill_places(&as_of, &ch->of_cause[i], ch->q->cause_size, &out->causes[i].items,
                         &out->causes[i].item_count);
    qsort(out->causes, out->cause_count, sizeof(*out->causes), compare_causes);
    out->more = ch->page.count > ch->q->size;
    if (out->more)
        out->next = ch->page.places[ch->q->size - 1];
    return rc;
}

hfd_rc hfd_overview_read(const struct hfd_ctx *c, const struct hfd_overview_query *q,
                         struct hfd_overview *out)
{
    const size_t causes = HFD_OVERVIEW_CAUSES_MAX + HFD_OVERVIEW_TROUBLES;
    struct choice ch = {.q = q, .out = out, .mem = c->mem, .page.room = q->size + 1};
    hfd_rc rc;

    *out = (struct hfd_overview){.time_us = q->goes_on ? q->time_us : c->now_us};
    ch.page.places = hfd_arena_array(c->mem, ch.page.room, sizeof(*ch.page.places));
    out->causes = hfd_arena_array(c->mem, causes, sizeof(*out->causes));
    ch.of_cause = hfd_arena_array(c->mem, causes, sizeof(*ch.of_cause));
    if (ch.page.places == NULL || out->causes == NULL || ch.of_cause == NULL)
        return hfd_fail_nomem(c->err, "list resources");
    rc = hfd_overview_is_short(q) ? walk_in_parts(c, &ch) : walk_all(c, &ch);
    if (rc == HFD_OK && ch.nomem)
        return hfd_fail_nomem(c->err, "list resources");
    return rc == HFD_OK ? make_items(c, &ch, out) : rc;
}

/* ---- tokens ---- */

/* A number of everything that decides which resources are listed, and where. */
static int64_t fingerprint(const struct hfd_overview_query *q)
{
    uint64_t h = hfd_slice_hash(
        q->states * 16u + q->drifted * 8u + q->stuck * 4u + q->degraded * 2u, q->type);

    h = hfd_slice_hash(hfd_slice_hash(h, q->who), q->reason);
    h = hfd_slice_hash(h, q->search);
    for (size_t i = 0; i < q->label_count; i++)
        h = hfd_slice_hash(hfd_slice_hash(h, q->labels[i].key), q->labels[i].value);
    return (int64_t)(h >> 1);
}

hfd_slice hfd_overview_token(const struct hfd_overview_query *q, const struct hfd_overview *page,
                             struct hfd_arena *mem)
{
    const struct hfd_overview_place *p = &page->next;
    char text[TOKEN_MAX_BYTES], *out;
    int n = snprintf(text, sizeof(text), TOKEN_FORM, (long long)q->order, (long long)page->time_us,
                     (long long)p->rank, (long long)p->at, (long long)p->seq,
                     (long long)fingerprint(q));
    const size_t len = (size_t)n + p->name_len;
    const size_t max = sodium_base64_encoded_len(len, sodium_base64_VARIANT_URLSAFE_NO_PADDING);

    memcpy(text + n, p->name, p->name_len);
    out = hfd_arena_alloc(mem, max);
    if (out == NULL)
        return HFD_SLICE_NONE;
    (void)sodium_bin2base64(out, max, (const unsigned char *)text, len,
                            sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    return (hfd_slice){out, max - 1};
}

/* Takes the numbers off the front of a token, each with the space behind it. */
static bool take_numbers(hfd_slice *text, int64_t numbers[TOKEN_NUMBERS])
{
    for (size_t i = 0; i < TOKEN_NUMBERS; i++) {
        const char *end = text->len > 0 ? memchr(text->p, ' ', text->len) : NULL;
        const size_t len = end != NULL ? (size_t)(end - text->p) : 0;

        if (hfd_parse_i64((hfd_slice){text->p, len}, INT64_MIN, INT64_MAX, &numbers[i], NULL) !=
            HFD_OK)
            return false;
        *text = (hfd_slice){text->p + len + 1, text->len - len - 1};
    }
    return true;
}

hfd_rc hfd_overview_go_on(hfd_slice token, struct hfd_overview_query *q, struct hfd_err *err)
{
    char bytes[TOKEN_MAX_BYTES];
    hfd_slice text = {bytes, 0};
    int64_t n[TOKEN_NUMBERS];

    if (sodium_base642bin((unsigned char *)bytes, sizeof(bytes), token.p, token.len, NULL,
                          &text.len, NULL, sodium_base64_VARIANT_URLSAFE_NO_PADDING) != 0 ||
        !take_numbers(&text, n) || n[0] != 1 || n[1] != (int64_t)q->order || n[2] < 0 ||
        n[2] > TIME_MAX_US || n[3] < 0 || n[3] > RANK_READY || n[6] != fingerprint(q) ||
        text.len > sizeof(q->after.name))
        return hfd_fail_field(err, HFD_INVALID, "after",
                              "after must be `next` of a page with the same parameters; leave it "
                              "out to begin at the first page");
    q->goes_on = true;
    q->time_us = n[2];
    q->after = (struct hfd_overview_place){
        .rank = (int)n[3], .at = n[4], .seq = n[5], .name_len = text.len};
    memcpy(q->after.name, text.p, text.len);
    return HFD_OK;
}

/* ---- trends ---- */

#define WEEK_DAYS 7

static int by_size(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* The smallest of sorted values that `percent` of them do not exceed. */
static int64_t percentile(const int64_t *sorted, size_t count, size_t percent)
{
    return sorted[(count * percent + 99) / 100 - 1];
}

/* The number of the bar that an action belongs to; negative = none. */
static int64_t bar_of(const struct hfd_trend_range *r, int64_t age_us)
{
    const int64_t last = (int64_t)r->count - 1, from_end = age_us > 0 ? age_us / r->bar_us : 0;

    /* An action that is exactly as old as the range belongs to it. */
    return age_us == r->bar_us * (int64_t)r->count ? 0 : last - from_end;
}

/* Sums up the actions of one bar; of all bars if it is negative. */
static void sum(const struct hfd_day *day, const struct hfd_trend_range *r, int64_t now_us,
                int64_t bar, int64_t *took_us, struct hfd_trend_bar *out)
{
    size_t n = 0;

    for (size_t i = 0; i < day->count; i++) {
        const struct hfd_day_action *a = &day->actions[i];
        const int64_t its = bar_of(r, now_us - a->at_us);

        if (its < 0 || (bar >= 0 && its != bar))
            continue;
        out->orders += a->order;
        out->failed += a->failed;
        if (a->took_us >= 0)
            took_us[n++] = a->took_us;
    }
    out->finished = (int64_t)n;
    if (n == 0)
        return;
    qsort(took_us, n, sizeof(took_us[0]), by_size);
    out->median_us = percentile(took_us, n, 50);
    out->p95_us = percentile(took_us, n, 95);
}

static void fill(const struct hfd_day *day, int64_t now_us, int64_t *took_us,
                 struct hfd_trend_range *r)
{
    sum(day, r, now_us, -1, took_us, &r->all);
    for (size_t i = 0; i < r->count; i++)
        sum(day, r, now_us, (int64_t)i, took_us, &r->bars[i]);
}

hfd_rc hfd_trends_read(const struct hfd_ctx *c, struct hfd_trends *out)
{
    struct hfd_day day;
    hfd_rc rc = hfd_day_read(c->tx, c->now_us - WEEK_DAYS * HFD_DAY_US, c->mem, &day, c->err);
    int64_t *took_us;

    *out = (struct hfd_trends){
        .day = {.bar_us = HFD_DAY_US / 24, .count = 24},
        .week = {.bar_us = HFD_DAY_US / 4, .count = WEEK_DAYS * 4},
    };
    if (rc != HFD_OK)
        return rc;
    took_us = hfd_arena_array(c->mem, day.count + 1, sizeof(*took_us));
    if (took_us == NULL)
        return hfd_fail_nomem(c->err, "sum up the last days");
    for (size_t i = 0; i < day.count; i++)
        if (out->first_us == 0 || day.actions[i].at_us < out->first_us)
            out->first_us = day.actions[i].at_us;
    out->whole_since_us = day.whole_since_us;
    fill(&day, c->now_us, took_us, &out->day);
    fill(&day, c->now_us, took_us, &out->week);
    return HFD_OK;
}

/* ---- orphans ---- */

hfd_rc hfd_orphans_list(struct hfd_txn *tx, const struct hfd_backend *ops,
                        const struct hfd_orphan_owner *owner, struct hfd_arena *mem,
                        struct hfd_orphans *out, struct hfd_err *err)
{
    static const enum hfd_kind kinds[] = {HFD_KIND_CLUSTER, HFD_KIND_NODEPOOL};
    struct hfd_backend_orphans found[2];
    size_t count = 0;
    hfd_rc rc = HFD_OK;

    *out = (struct hfd_orphans){.more = false};
    for (size_t k = 0; rc == HFD_OK && k < 2; k++) {
        const struct hfd_backend_orphan_query query = {
            .kind = kinds[k], .owner = *owner, .limit = HFD_ORPHANS_MAX, .mem = mem};

        rc = ops->orphans(tx, &query, &found[k], err);
        out->more = out->more || (rc == HFD_OK && found[k].more);
        count += rc == HFD_OK ? found[k].list.count : 0;
    }
    if (rc == HFD_OK)
        rc = hfd_backend_orphans_state(ops, tx, mem, &out->as, err);
    if (rc != HFD_OK)
        return rc;
    out->list.rows = hfd_arena_array(mem, count + 1, sizeof(*out->list.rows));
    if (out->list.rows == NULL)
        return hfd_fail_nomem(err, "list orphans");
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < found[k].list.count; i++)
            out->list.rows[out->list.count++] = found[k].list.rows[i];
    return HFD_OK;
}

/* ---- objects of an adapter ---- */

struct taking {
    struct hfd_arena *mem;
    struct hfd_orphan_row *rows; /* of HFD_ORPHANS_MAX */
    size_t count;
    bool more, failed;
};

static hfd_slice keep(struct taking *t, hfd_slice text)
{
    const hfd_slice kept = hfd_arena_dup(t->mem, text);

    t->failed = t->failed || kept.p == NULL;
    return kept;
}

static void take_object(void *ctx, const struct hfd_adapter_object *o)
{
    struct taking *t = ctx;
    struct hfd_orphan_row *row = &t->rows[t->count];

    if (t->count == HFD_ORPHANS_MAX) {
        t->more = true;
        return;
    }
    *row = (struct hfd_orphan_row){
        .kind = o->kind,
        .label = keep(t, o->guresid),
        .id = keep(t, o->id),
        .owner_id = HFD_SLICE(""),
        .name = keep(t, o->name),
        .generation = o->generation,
        .created_us = o->created_us,
        .deleted_us = o->deleted_us,
        .created_by = HFD_SLICE("hypershift@hyperfleet.local"),
        .error = hfd_arena_printf(t->mem, "%s %.*s/%.*s on the management cluster %.*s", o->object,
                                  HFD_SLICE_FMT(o->namespace), HFD_SLICE_FMT(o->name),
                                  HFD_SLICE_FMT(o->place)),
    };
    t->failed = t->failed || row->error.p == NULL;
    t->count++;
}

/* True if a resource has it, or can take it over by itself. */
static hfd_rc is_owned(const struct hfd_ctx *c, const struct hfd_orphan_row *o, bool *yes)
{
    const struct hfd_arena_mark mark = hfd_arena_mark(c->mem);
    struct hfd_resource_row resource;
    struct hfd_fleet_row row;
    hfd_rc rc = hfd_fleet_row_get(c->tx, o->id, c->mem, &row, c->err);

    *yes = rc == HFD_OK;
    if (rc == HFD_NOT_FOUND) {
        rc = hfd_resource_row_get(c->tx, o->label, c->mem, &resource, c->err);
        *yes = rc == HFD_OK;
    }
    hfd_arena_rewind(c->mem, mark);
    return rc == HFD_NOT_FOUND ? HFD_OK : rc;
}

/* Moves what is owned out of the rows. */
static hfd_rc leave_out_owned(const struct hfd_ctx *c, struct taking *t)
{
    size_t left = 0;
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; rc == HFD_OK && i < t->count; i++) {
        bool owned;

        rc = is_owned(c, &t->rows[i], &owned);
        if (rc == HFD_OK && !owned)
            t->rows[left++] = t->rows[i];
    }
    t->count = left;
    return rc;
}

hfd_rc hfd_orphans_add_objects(const struct hfd_ctx *c, struct hfd_orphans *out)
{
    const struct hfd_adapter_hooks *hooks = c->driver->hooks;
    struct hfd_orphan_row *all;
    struct taking t = {.mem = c->mem};
    hfd_rc rc;

    if (hooks == NULL || hooks->objects == NULL)
        return HFD_OK;
    t.rows = hfd_arena_array(c->mem, HFD_ORPHANS_MAX + 1, sizeof(*t.rows));
    if (t.rows != NULL)
        hooks->objects(hooks->ctx, take_object, &t);
    if (t.rows == NULL || t.failed)
        return hfd_fail_nomem(c->err, "list orphans");
    rc = leave_out_owned(c, &t);
    if (rc != HFD_OK || t.count == 0)
        return rc;
    all = hfd_arena_array(c->mem, out->list.count + t.count, sizeof(*all));
    if (all == NULL)
        return hfd_fail_nomem(c->err, "list orphans");
    if (out->list.count > 0)
        memcpy(all, out->list.rows, out->list.count * sizeof(*all));
    memcpy(all + out->list.count, t.rows, t.count * sizeof(*all));
    out->list.rows = all;
    out->list.count += t.count;
    out->more = out->more || t.more;
    return HFD_OK;
}

hfd_rc hfd_orphan_remove(const struct hfd_ctx *c, hfd_slice caller,
                         const struct hfd_orphan_choice *chosen, struct hfd_fleet_deletion *out)
{
    struct hfd_fleet_changes changes = {.mem = c->mem};
    struct hfd_ctx own = *c;
    struct hfd_fleet_call fc;
    hfd_rc rc;

    own.changes = &changes;
    fc = hfd_ctx_fleet_call(&own, caller);
    rc = c->driver->backend_ops->remove_orphan(c->tx, &fc, chosen->id, chosen->owner, out, c->err);
    if (rc == HFD_OK)
        rc = hfd_resource_observe_others(&own, HFD_SLICE_NONE);
    return rc == HFD_OK ? hfd_ctx_wake_worker(c) : rc;
}
