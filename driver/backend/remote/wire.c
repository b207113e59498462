/* See wire.h. */
#include "driver/backend/remote/wire.h"

#include "driver/backend/backend.h"
#include "driver/base/clock.h"
#include "driver/base/foreign.h"
#include "driver/base/peer.h"
#include "driver/fleet/condition.h"
#include "driver/fleet/fleet.h"
#include "driver/fleet/report.h"
#include "store/rows_report.h"

#include <stdio.h>

#define GENERATION_MAX (INT64_C(1) << 53)
#define TOTAL_MAX INT64_C(1000000000)
#define CONDITIONS_MAX 300
#define CONDITIONS_MAX_BYTES ((size_t)4 * 1024 * 1024)
#define ADAPTER_MAX_BYTES 128
#define TYPE_MAX_BYTES 316
#define WORDS_MAX_BYTES 240
#define CODE_MAX_BYTES 64
#define ERRORS_MAX 3
#define PROBLEM_MAX_BYTES                                                                          \
    ((1 + 2 * ERRORS_MAX) * (WORDS_MAX_BYTES + 2)) /* what is read of one document */
#define REDACTED "[redacted]"

bool hfd_wire_id_ok(hfd_slice id)
{
    for (size_t i = 0; i < id.len; i++)
        if (!hfd_is_alnum(id.p[i]) && id.p[i] != '-')
            return false;
    return id.len > 0 && id.len <= HFD_WIRE_ID_MAX;
}

static hfd_rc take_text(hfd_slice text, struct hfd_arena *mem, hfd_slice *out, struct hfd_err *err)
{
    *out = hfd_arena_dup(mem, text);
    return out->p != NULL ? HFD_OK : hfd_fail_nomem(err, "read HyperFleet's answer");
}

/* 0 = no time, or one that cannot be read. */
static int64_t time_in(const json_t *obj, const char *key)
{
    const hfd_slice text = hfd_json_text(obj, key);
    int64_t at_us;

    return text.len > 0 && hfd_time_parse(text, &at_us, NULL) == HFD_OK ? at_us : 0;
}

static hfd_rc take_canonical(const json_t *v, struct hfd_arena *mem, hfd_slice *out,
                             struct hfd_err *err)
{
    struct hfd_buf b;

    hfd_buf_init(&b, mem->max_bytes);
    if (v != NULL)
        hfd_json_dump_for_store(&b, v);
    else
        hfd_buf_lit(&b, "{}");
    return hfd_buf_to_arena(&b, mem, out, NULL) == HFD_OK
               ? HFD_OK
               : hfd_fail_nomem(err, "read HyperFleet's answer");
}

/* A member that is an object, or NULL. Fails if it has another type. */
static hfd_rc object_in(const json_t *doc, const char *key, json_t **out, struct hfd_err *err)
{
    *out = json_object_get(doc, key);
    if (json_is_null(*out))
        *out = NULL;
    if (*out == NULL || json_is_object(*out))
        return HFD_OK;
    return hfd_fail(err, HFD_MALFORMED, "%s is %s", key, hfd_json_type_name(*out));
}

/* ---- conditions ---- */

static int64_t generation_in(const json_t *obj, const char *key)
{
    bool present;
    int64_t v;

    return hfd_json_get_i64(HFD_JSON_OPTIONAL(obj, "", key),
                            (struct hfd_json_range){0, GENERATION_MAX}, &present, &v,
                            NULL) == HFD_OK &&
                   present
               ? v
               : 0;
}

/* @return whether there is a condition to keep */
static bool read_condition(const json_t *v, bool of_report, struct hfd_arena *mem,
                           struct hfd_condition *c)
{
    const hfd_slice type = hfd_json_text(v, "type");

    *c = (struct hfd_condition){
        .type = hfd_arena_dup(mem, type),
        .reason = hfd_arena_dup(mem, hfd_json_text(v, "reason")),
        .message = hfd_arena_dup(mem, hfd_json_text(v, "message")),
        .last_transition_us = time_in(v, "last_transition_time"),
    };
    if (type.len == 0 || type.len > TYPE_MAX_BYTES ||
        !hfd_status_parse(hfd_json_text(v, "status"), &c->status))
        return false;
    if (of_report)
        return true;
    c->observed_generation = generation_in(v, "observed_generation");
    c->created_us = time_in(v, "created_time");
    c->last_updated_us = time_in(v, "last_updated_time");
    return true;
}

struct conditions_of {
    bool report;                 /* in: conditions of a report, not of a resource */
    bool later_names;            /* out: the remote reports Reconciled for Ready */
    struct hfd_conditions found; /* out */
};

/* Reads what can be read. If the remote has both names of one condition, the first counts. */
static hfd_rc read_conditions(const json_t *list, struct hfd_arena *mem, struct conditions_of *c,
                              struct hfd_err *err)
{
    const size_t count =
        json_array_size(list) < CONDITIONS_MAX ? json_array_size(list) : CONDITIONS_MAX;
    struct hfd_conditions *out = &c->found;

    c->later_names = false;
    *out = (struct hfd_conditions){hfd_arena_array(mem, count + 1, sizeof(*out->items)), 0};
    if (out->items == NULL)
        return hfd_fail_nomem(err, "read HyperFleet's answer");
    for (size_t i = 0; i < count; i++) {
        struct hfd_condition *one = &out->items[out->count];

        if (!read_condition(json_array_get(list, i), c->report, mem, one))
            continue;
        if (one->type.p == NULL || one->reason.p == NULL || one->message.p == NULL)
            return hfd_fail_nomem(err, "read HyperFleet's answer");
        if (!c->report && hfd_vocabulary_restore(one))
            c->later_names = true;
        if (hfd_condition_find(out, one->type) == NULL)
            out->count++;
    }
    return HFD_OK;
}

static hfd_rc store_conditions(const struct hfd_conditions *cs, bool of_report,
                               struct hfd_arena *mem, hfd_slice *out, struct hfd_err *err)
{
    struct hfd_buf b;
    hfd_rc rc;

    hfd_buf_init(&b, CONDITIONS_MAX_BYTES);
    hfd_conditions_format(&b, cs, of_report);
    rc = hfd_buf_to_arena(&b, mem, out, err);
    return rc != HFD_LIMIT ? rc
                           : hfd_fail(err, HFD_MALFORMED, "its conditions take more than %zu bytes",
                                      CONDITIONS_MAX_BYTES);
}

/* ---- resources ---- */

static hfd_rc read_labels(const json_t *doc, struct hfd_arena *mem, struct hfd_wire_resource *out,
                          struct hfd_err *err)
{
    json_t *labels, *rest;
    hfd_rc rc = object_in(doc, "labels", &labels, err);

    if (rc == HFD_OK)
        rc = take_text(hfd_json_text(labels, HFD_GURESID_LABEL), mem, &out->guresid, err);
    if (rc == HFD_OK)
        rc = take_text(hfd_json_text(labels, HFD_OWNER_LABEL), mem, &out->made_by, err);
    if (rc != HFD_OK)
        return rc;
    if (json_object_get(labels, HFD_OWNER_LABEL) == NULL)
        return take_canonical(labels, mem, &out->labels, err);
    rest = hfd_json_copy(labels);
    if (rest == NULL)
        return hfd_fail_nomem(err, "read HyperFleet's answer");
    (void)json_object_del(rest, HFD_OWNER_LABEL);
    rc = take_canonical(rest, mem, &out->labels, err);
    json_decref(rest);
    return rc;
}

static hfd_rc read_status(const json_t *doc, struct hfd_arena *mem, struct hfd_wire_resource *out,
                          struct hfd_err *err)
{
    const struct hfd_condition *ready;
    struct conditions_of cs = {.report = false};
    json_t *status;
    hfd_rc rc = object_in(doc, "status", &status, err);

    if (rc == HFD_OK)
        rc = read_conditions(json_object_get(status, "conditions"), mem, &cs, err);
    if (rc != HFD_OK)
        return rc;
    out->later_names = cs.later_names;
    ready = hfd_condition_find(&cs.found, HFD_SLICE("Ready"));
    out->ready = ready != NULL && ready->status == HFD_STATUS_TRUE &&
                 ready->observed_generation >= out->generation;
    return store_conditions(&cs.found, false, mem, &out->conditions, err);
}

static hfd_rc read_audit(const json_t *doc, struct hfd_arena *mem, struct hfd_wire_resource *out,
                         struct hfd_err *err)
{
    hfd_rc rc;

    out->created_us = time_in(doc, "created_time");
    out->updated_us = time_in(doc, "updated_time");
    out->deleting = hfd_json_text(doc, "deleted_time").len > 0;
    out->deleted_us = out->deleting ? time_in(doc, "deleted_time") : 0;
    if (out->deleting && out->deleted_us == 0)
        out->deleted_us = 1; /* a time that cannot be read */
    rc = take_text(hfd_json_text(doc, "created_by"), mem, &out->created_by, err);
    if (rc == HFD_OK)
        rc = take_text(hfd_json_text(doc, "updated_by"), mem, &out->updated_by, err);
    return rc == HFD_OK ? take_text(hfd_json_text(doc, "deleted_by"), mem, &out->deleted_by, err)
                        : rc;
}

static hfd_rc read_identity(const json_t *doc, enum hfd_kind kind, struct hfd_arena *mem,
                            struct hfd_wire_resource *out, struct hfd_err *err)
{
    const hfd_slice told = hfd_json_text(doc, "kind");
    json_t *owner;
    hfd_rc rc = object_in(doc, "owner_references", &owner, err);

    if (rc != HFD_OK)
        return rc;
    if (told.len > 0 && !hfd_slice_is(told, hfd_kind_name(kind)))
        return hfd_fail(err, HFD_MALFORMED, "expected kind %s, got another kind",
                        hfd_kind_name(kind));
    if (!hfd_wire_id_ok(hfd_json_text(doc, "id")))
        return hfd_fail(err, HFD_MALFORMED, "it has no id of letters, digits and hyphens");
    out->generation = generation_in(doc, "generation");
    if (out->generation < 1)
        return hfd_fail(err, HFD_MALFORMED, "it has no generation");
    rc = take_text(hfd_json_text(doc, "id"), mem, &out->id, err);
    if (rc == HFD_OK)
        rc = take_text(hfd_json_text(doc, "name"), mem, &out->name, err);
    if (rc == HFD_OK && hfd_name_check(kind, out->name, NULL) != HFD_OK)
        return hfd_fail(err, HFD_MALFORMED, "its name is not a name of HyperFleet");
    if (rc == HFD_OK)
        rc = take_text(hfd_wire_id_ok(hfd_json_text(owner, "id")) ? hfd_json_text(owner, "id")
                                                                  : HFD_SLICE(""),
                       mem, &out->owner_id, err);
    return rc;
}

hfd_rc hfd_wire_resource_read(const json_t *doc, enum hfd_kind kind, struct hfd_arena *mem,
                              struct hfd_wire_resource *out, struct hfd_err *err)
{
    json_t *spec;
    hfd_rc rc;

    *out = (struct hfd_wire_resource){.generation = 0};
    if (!json_is_object(doc))
        return hfd_fail(err, HFD_MALFORMED, "expected a resource, got %s", hfd_json_type_name(doc));
    rc = read_identity(doc, kind, mem, out, err);
    if (rc == HFD_OK)
        rc = object_in(doc, "spec", &spec, err);
    if (rc == HFD_OK)
        rc = take_canonical(spec, mem, &out->spec, err);
    if (rc == HFD_OK)
        rc = read_labels(doc, mem, out, err);
    if (rc == HFD_OK)
        rc = read_audit(doc, mem, out, err);
    return rc == HFD_OK ? read_status(doc, mem, out, err) : rc;
}

hfd_rc hfd_wire_page_read(const json_t *doc, struct hfd_wire_page *out, struct hfd_err *err)
{
    const json_t *items = json_object_get(doc, "items");
    bool present;

    *out = (struct hfd_wire_page){.total = -1};
    if (!json_is_object(doc) || (items != NULL && !json_is_array(items) && !json_is_null(items)) ||
        items == NULL)
        return hfd_fail(err, HFD_MALFORMED, "expected a list");
    if (json_is_array(items)) {
        out->items = items;
        out->count = json_array_size(items);
    }
    if (hfd_json_get_i64(HFD_JSON_OPTIONAL(doc, "", "total"), (struct hfd_json_range){0, TOTAL_MAX},
                         &present, &out->total, NULL) != HFD_OK ||
        !present)
        out->total = -1;
    return HFD_OK;
}

/* ---- reports ---- */

/* Takes data.secrets out of the document: each value is redacted there. */
static hfd_rc split_secrets(json_t *data, struct hfd_arena *mem, hfd_slice *secrets,
                            struct hfd_err *err)
{
    json_t *all = json_object_get(data, "secrets"), *plain, *v;
    const char *key;
    hfd_rc rc = HFD_OK;
    void *next;

    *secrets = HFD_SLICE_NONE;
    if (!json_is_object(all))
        return HFD_OK;
    plain = hfd_json_copy(all);
    if (plain == NULL)
        return hfd_fail_nomem(err, "read HyperFleet's answer");
    json_object_foreach_safe (all, next, key, v) {
        if (json_is_string(v) &&
            strcmp(json_string_value(v), REDACTED) == 0) { /* the word is not the secret */
            (void)json_object_del(plain, key);
            (void)json_object_del(all, key);
        } else if (json_object_set_new(all, key, json_string(REDACTED)) != 0)
            rc = hfd_fail_nomem(err, "read HyperFleet's answer");
    }
    if (rc == HFD_OK && json_object_size(plain) > 0) {
        *secrets = hfd_json_dump_arena(mem, plain);
        rc = secrets->p != NULL ? HFD_OK : hfd_fail_nomem(err, "read HyperFleet's answer");
    }
    json_decref(plain);
    return rc;
}

static hfd_rc count_objects(const json_t *data, struct hfd_arena *mem, hfd_slice *out,
                            struct hfd_err *err)
{
    struct hfd_object_counts counts = {.other = 0};

    hfd_objects_count(data, &counts);
    return hfd_object_counts_format(&counts, mem, out) == HFD_OK
               ? HFD_OK
               : hfd_fail_nomem(err, "read HyperFleet's answer");
}

hfd_rc hfd_wire_report_read(json_t *doc, struct hfd_arena *mem, struct hfd_report_row *row,
                            hfd_slice *secrets, struct hfd_err *err)
{
    const hfd_slice adapter = hfd_json_text(doc, "adapter");
    struct conditions_of cs = {.report = true};
    json_t *data, *metadata;
    hfd_rc rc;

    *row = (struct hfd_report_row){.metadata = HFD_SLICE("")};
    *secrets = HFD_SLICE_NONE;
    if (!json_is_object(doc) || adapter.len == 0 || adapter.len > ADAPTER_MAX_BYTES)
        return hfd_fail(err, HFD_MALFORMED, "expected a report with the name of its adapter");
    row->observed_generation = generation_in(doc, "observed_generation");
    row->observed_us = time_in(doc, "last_report_time");
    row->created_us = time_in(doc, "created_time");
    rc = take_text(adapter, mem, &row->adapter, err);
    if (rc == HFD_OK)
        rc = object_in(doc, "data", &data, err);
    if (rc == HFD_OK)
        rc = object_in(doc, "metadata", &metadata, err);
    if (rc == HFD_OK)
        rc = split_secrets(data, mem, secrets, err);
    if (rc == HFD_OK)
        rc = take_canonical(data, mem, &row->data, err);
    if (rc == HFD_OK)
        rc = count_objects(data, mem, &row->objects, err);
    if (rc == HFD_OK && metadata != NULL)
        rc = take_canonical(metadata, mem, &row->metadata, err);
    if (rc == HFD_OK)
        rc = read_conditions(json_object_get(doc, "conditions"), mem, &cs, err);
    return rc == HFD_OK ? store_conditions(&cs.found, true, mem, &row->conditions, err) : rc;
}

/* ---- problems ---- */

static void add_words(struct hfd_buf *b, const char *between, hfd_slice text)
{
    if (text.len == 0)
        return;
    if (b->len > 0)
        hfd_buf_add(b, hfd_slice_of(between));
    hfd_buf_add(b, (hfd_slice){text.p, hfd_foreign_cut(text, WORDS_MAX_BYTES)});
}

static void read_problem(const json_t *doc, struct hfd_buf *words, struct hfd_arena *mem,
                         struct hfd_wire_problem *out)
{
    const json_t *errors = json_object_get(doc, "errors");
    const hfd_slice detail = hfd_json_text(doc, "detail"), code = hfd_json_text(doc, "code");

    out->no_route = hfd_slice_is(code, "HYPERFLEET-NTF-000") ||
                    hfd_slice_starts(detail, HFD_SLICE("The requested resource '"));
    out->status = json_integer_value(json_object_get(doc, "status"));
    out->code = hfd_arena_show(mem, code, CODE_MAX_BYTES);
    add_words(words, "; ", detail.len > 0 ? detail : hfd_json_text(doc, "title"));
    for (size_t i = 0; i < json_array_size(errors) && i < ERRORS_MAX; i++) {
        const json_t *e = json_array_get(errors, i);

        add_words(words, "; ", hfd_json_text(e, "field"));
        add_words(words, ": ", hfd_json_text(e, "message"));
    }
}

hfd_rc hfd_wire_problem_read(hfd_slice body, struct hfd_arena *mem, struct hfd_wire_problem *out,
                             struct hfd_err *err)
{
    struct hfd_buf words;
    json_t *doc;
    hfd_rc rc;

    *out = (struct hfd_wire_problem){.no_route = false};
    rc = hfd_json_parse(body, &doc, err);
    if (rc != HFD_OK)
        return rc == HFD_NOMEM ? rc : HFD_OK;
    hfd_buf_init(&words, PROBLEM_MAX_BYTES);
    read_problem(doc, &words, mem, out);
    out->words = hfd_arena_show(mem, hfd_buf_slice(&words), WORDS_MAX_BYTES);
    if (words.rc != HFD_OK || out->code.p == NULL || out->words.p == NULL) {
        *out = (struct hfd_wire_problem){.no_route = false};
        rc = hfd_fail_nomem(err, "read HyperFleet's answer");
    }
    hfd_buf_fini(&words);
    json_decref(doc);
    return rc;
}

/* ---- the meaning of an answer ---- */

/* Returns whether the body may be a whole document. Cheap: checks its last byte. */
static bool looks_whole(const struct hfd_remote_answer *a)
{
    hfd_slice b = a->body;

    while (b.len > 0 && strchr(" \t\r\n", b.p[b.len - 1]) != NULL)
        b.len--;
    return a->is_json && b.len > 1 && b.p[b.len - 1] == '}';
}

/* clang-format off */
static const struct {
    int from, to;                  /* of the status */
    const char *code;              /* the last characters of the problem's code; NULL = any */
    unsigned methods;              /* bits of enum hfd_remote_method; 0 = any */
    enum hfd_remote_verdict verdict;
} table[] = {
    {401, 401, NULL,      0,                                                      HFD_ON_REFUSED},
    {403, 403, NULL,      0,                                                      HFD_ON_REFUSED},
    {404, 404, NULL,      0,                                                      HFD_ON_MISSING},
    {410, 410, NULL,      0,                                                      HFD_ON_MISSING},
    {405, 405, NULL,      1u << HFD_REMOTE_PATCH | 1u << HFD_REMOTE_DELETE,   HFD_ON_UNABLE},
    {501, 501, NULL,      1u << HFD_REMOTE_PATCH | 1u << HFD_REMOTE_DELETE,   HFD_ON_UNABLE},
    {409, 409, "CNF-003", 0,                                                      HFD_ON_LEAVING},
    {409, 409, NULL,      1u << HFD_REMOTE_POST,                                HFD_ON_TAKEN},
    {409, 409, NULL,      0,                                                      HFD_ON_LATER}, /* other resources refer to it, and may be deleted soon */
    {400, 499, NULL,      1u << HFD_REMOTE_POST | 1u << HFD_REMOTE_PATCH,     HFD_ON_INVALID},
};
/* clang-format on */

static bool ends_with(hfd_slice s, const char *end)
{
    const size_t n = strlen(end);

    return s.len >= n && memcmp(s.p + s.len - n, end, n) == 0;
}

static bool fits(size_t row, enum hfd_remote_method method, int status, hfd_slice code)
{
    return status >= table[row].from && status <= table[row].to &&
           (table[row].methods == 0 || (table[row].methods & 1u << method) != 0) &&
           (table[row].code == NULL || ends_with(code, table[row].code));
}

static bool is_good(int status)
{
    return status >= 200 && status <= 299;
}

/* HyperFleet's problems have a code of their own, and the status of the answer. */
static bool is_problem(const struct hfd_remote_answer *a, const struct hfd_wire_problem *problem)
{
    return a->is_json && hfd_slice_starts(problem->code, HFD_SLICE("HYPERFLEET-")) &&
           (problem->status == 0 || problem->status == a->status);
}

static enum hfd_peer_body body_of(enum hfd_remote_method method, const struct hfd_remote_answer *a,
                                  const struct hfd_wire_problem *problem)
{
    const bool changes = method == HFD_REMOTE_PATCH || method == HFD_REMOTE_DELETE;

    if (is_good(a->status) && a->body.len > 0)
        return looks_whole(a) ? HFD_PEER_RESULT : HFD_PEER_STRANGE;
    /* The router of an old HyperFleet has no words for a method that it does not know. */
    if (a->body.len == 0)
        return a->status == 405 && changes ? HFD_PEER_ERROR : HFD_PEER_EMPTY;
    return is_problem(a, problem) ? HFD_PEER_ERROR : HFD_PEER_STRANGE;
}

enum hfd_remote_verdict hfd_remote_verdict_of(enum hfd_remote_method method,
                                              const struct hfd_remote_answer *a,
                                              const struct hfd_wire_problem *problem)
{
    enum hfd_peer_word word;

    if (!a->arrived)
        return HFD_ON_LATER;
    word = hfd_peer_word_of(a->status, body_of(method, a, problem), method == HFD_REMOTE_DELETE);
    if (word == HFD_PEER_DONE)
        return HFD_ON_WELL;
    if (a->status >= 300 && a->status <= 399)
        return HFD_ON_WRONG;
    if (word == HFD_PEER_FOREIGN)
        return HFD_ON_FOREIGN;
    if (a->status == 404 && problem->no_route)
        return HFD_ON_WRONG;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if ((word == HFD_PEER_DECIDES || a->status == 501) &&
            fits(i, method, a->status, problem->code))
            return table[i].verdict;
    return HFD_ON_LATER;
}

static bool contains(const struct hfd_remote_answer *a, hfd_slice words)
{
    return a->body.len > 0 && memmem(a->body.p, a->body.len, words.p, words.len) != NULL;
}

static bool is_wrong(const struct hfd_remote_answer *a)
{
    if (a->status != 404)
        return a->status >= 300 && a->status <= 399;
    return !a->is_json || !contains(a, HFD_SLICE("HYPERFLEET-")) ||
           contains(a, HFD_SLICE("HYPERFLEET-NTF-000"));
}

static bool is_ill(int status)
{
    return status < 200 || (status != 501 && hfd_peer_is_busy(status));
}

enum hfd_remote_health hfd_remote_health_of(const struct hfd_remote_answer *a)
{
    if (!a->arrived || is_ill(a->status))
        return HFD_REMOTE_ILL;
    if (is_good(a->status))
        return looks_whole(a) || a->body.len == 0 ? HFD_REMOTE_WELL : HFD_REMOTE_ILL;
    if (is_wrong(a))
        return HFD_REMOTE_WRONG;
    return a->status == 401 || a->status == 403 ? HFD_REMOTE_REFUSES : HFD_REMOTE_WELL;
}
