/* See overview.h. */
#include "driver/core/overview.h"

#include "driver/core/output.h"

#include "driver/base/clock.h"
#include "driver/base/jsonx.h"
#include "driver/core/hint.h"
#include "driver/core/judge.h"
#include "driver/core/labels.h"
#include "driver/fleet/keys.h"
#include "store/rows_overview.h"
#include "store/rows_part.h"

#include <ctype.h>
#include <sodium.h>

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

int64_t hfd_overview_stuck_us(int64_t started_us, int64_t expected_us)
{
    const int64_t twice_us = 2 * (expected_us - started_us);

    return started_us + (twice_us > HFD_STUCK_AFTER_US ? twice_us : HFD_STUCK_AFTER_US);
}

/* ---- places ---- */

enum rank {
    RANK_FAILED,
    RANK_STUCK,
    RANK_DEGRADED,
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
           now_us > hfd_overview_stuck_us(row->op_started_us,
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

/* The best places of a page so far, in order, and one more. */
struct choice {
    const struct hfd_overview_query *q;
    struct hfd_overview *out;
    struct hfd_overview_place *best;
    size_t count, room;
    bool choosing; /* else only counting */
    bool counting;
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

static void keep_best(struct choice *ch, const struct hfd_overview_place *place)
{
    size_t at = ch->count;

    if (ch->count == ch->room && compare_places(place, &ch->best[ch->count - 1]) >= 0)
        return;
    if (ch->count < ch->room)
        ch->count++;
    else
        at--;
    for (; at > 0 && compare_places(place, &ch->best[at - 1]) < 0; at--)
        ch->best[at] = ch->best[at - 1];
    ch->best[at] = *place;
}

static struct hfd_overview_place place_of(const struct choice *ch,
                                          const struct hfd_overview_row *row, enum hfd_state state,
                                          bool stuck)
{
    struct hfd_overview_place place = {.seq = row->seq};

    switch (ch->q->order) {
    case HFD_ORDER_TROUBLE:
        place_by_trouble(row, state, stuck, &place);
        break;
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

static void count_one(struct choice *ch, const struct hfd_overview_row *row, enum hfd_state state,
                      bool stuck)
{
    ch->out->counts[state]++;
    ch->out->stuck_count += stuck;
    ch->out->degraded_count += state == HFD_STATE_READY && row->degraded;
}

static bool see(void *ctx, const struct hfd_overview_row *row)
{
    struct choice *ch = ctx;
    const struct hfd_overview_query *q = ch->q;
    const enum hfd_state state = state_at(row, ch->out->time_us);
    const bool stuck = is_stuck(row, state, ch->out->time_us);
    struct hfd_overview_place place;

    if ((q->stuck && !stuck) || !matches_type(row->type, q->type) ||
        !matches_search(row, q->search) || !matches_labels(row, q))
        return true;
    if (ch->counting)
        count_one(ch, row, state, stuck);
    if (!ch->choosing || (q->states != 0 && (q->states & 1u << state) == 0))
        return true;
    place = place_of(ch, row, state, stuck);
    if (!q->goes_on || compare_places(&place, &q->after) > 0)
        keep_best(ch, &place);
    return true;
}

/* A walk in the order of the page: it ends when the page is full. */
static bool see_in_order(void *ctx, const struct hfd_overview_row *row)
{
    struct choice *ch = ctx;

    (void)see(ctx, row);
    return ch->count < ch->room;
}

/* ---- walking ---- */

/* True if resources can be found by labels of that key. Rows of a remote have no search keys. */
static bool has_index(const struct hfd_ctx *c, hfd_slice key)
{
    return hfd_slice_is(c->driver->backend, "embedded") && hfd_label_searchable(key);
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
    const bool wants_ready =
        !q->stuck && (q->states == 0 || (q->states & 1u << HFD_STATE_READY) != 0);
    const bool newest = q->order == HFD_ORDER_CREATED && wants_ready;
    const struct hfd_overview_walk walk = {.way = HFD_OVERVIEW_TROUBLE, .see = see, .ctx = ch};
    hfd_rc rc;

    ch->counting = true;
    ch->choosing = !newest;
    rc = hfd_overview_row_walk(c->tx, &walk, c->err);
    if (rc == HFD_OK && !q->stuck)
        rc = count_ready(c, ch->out);
    return rc == HFD_OK && wants_ready && ch->count < ch->room ? walk_in_order(c, newest, ch) : rc;
}

bool hfd_overview_is_short(const struct hfd_overview_query *q)
{
    return q->search.len == 0 && q->label_count == 0 && q->type.len == 0 &&
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

/* Its health, from the output of a ready resource. */
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
        out->stuck = c->now_us >
                     hfd_overview_stuck_us(row->op_started_us,
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
        .health = HFD_SLICE(""),
        .labels = HFD_SLICE("{}"),
        .cluster_id = hfd_backend_id_is_given(row->cluster_id) ? row->cluster_id : HFD_SLICE(""),
        .created_us = row->created_us,
    };
    if (rc == HFD_OK)
        rc = fill_item(c, &settled, out);
    return rc == HFD_OK ? read_main(c, row, out) : rc;
}

static hfd_rc make_items(const struct hfd_ctx *c, const struct choice *ch, struct hfd_overview *out)
{
    struct hfd_ctx as_of = *c;
    hfd_rc rc = HFD_OK;

    as_of.now_us = out->time_us;
    out->items = hfd_arena_array(c->mem, ch->count + 1, sizeof(*out->items));
    if (out->items == NULL)
        return hfd_fail_nomem(c->err, "list resources");
    for (size_t i = 0; rc == HFD_OK && i < ch->count && i < ch->q->size; i++) {
        struct hfd_resource_row row;

        rc = hfd_resource_row_at(c->tx, ch->best[i].seq, c->mem, &row, c->err);
        if (rc == HFD_OK)
            rc = hfd_overview_item_of(&as_of, &row, &out->items[out->count++]);
    }
    out->more = ch->count > ch->q->size;
    if (out->more)
        out->next = ch->best[ch->q->size - 1];
    return rc;
}

hfd_rc hfd_overview_read(const struct hfd_ctx *c, const struct hfd_overview_query *q,
                         struct hfd_overview *out)
{
    struct choice ch = {.q = q, .out = out, .room = q->size + 1};
    hfd_rc rc;

    *out = (struct hfd_overview){.time_us = q->goes_on ? q->time_us : c->now_us};
    ch.best = hfd_arena_array(c->mem, ch.room, sizeof(*ch.best));
    if (ch.best == NULL)
        return hfd_fail_nomem(c->err, "list resources");
    rc = hfd_overview_is_short(q) ? walk_in_parts(c, &ch) : walk_all(c, &ch);
    return rc == HFD_OK ? make_items(c, &ch, out) : rc;
}

/* ---- tokens ---- */

/* A number of everything that decides which resources are listed, and where. */
static int64_t fingerprint(const struct hfd_overview_query *q)
{
    uint64_t h = hfd_slice_hash(q->states * 4u + q->stuck * 2u, q->type);

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
