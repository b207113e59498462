/* See pass.h. */
#include "driver/backend/remote/pass.h"

#include "driver/backend/backend.h"
#include "driver/backend/remote/http.h"
#include "driver/backend/remote/observe.h"
#include "driver/base/check.h"
#include "store/rows_fleet.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* The machine of a pass: its phases, its memory, and what always holds. See pass.h. */

#define PASS_MAX_BYTES ((size_t)64 * 1024 * 1024)
#define REQUEST_MAX_BYTES ((size_t)16 * 1024 * 1024)

/* ---- phases ---- */

#define TO(p) (1u << HFD_PASS_##p)
#define END TO(DONE)
/* The resource was removed and made anew meanwhile. */
#define ANEW TO(START)
/* To any later phase that has something to do. */
#define FROM_WRITE (TO(REPORTS) | END)
#define FROM_REST (TO(WRITE) | FROM_WRITE)
#define FROM_FIRST (TO(LOOK_REST) | FROM_REST)
#define FROM_POOLS (TO(REPORTS_FIRST) | FROM_FIRST)
#define FROM_LOOK (TO(DELETE) | TO(LIST_POOLS) | FROM_POOLS)
/* A PUT or DELETE meanwhile changes the goal, or adds the first nodepool. */
#define OTHER_GOAL (TO(DELETE) | TO(LIST_POOLS))

/* clang-format off */
static const unsigned next_phases[HFD_PASS_PHASE_COUNT] = {
    [HFD_PASS_START]           = TO(FIND) | TO(LOOK) | TO(MANY_CLUSTERS) | TO(SEARCH_CLUSTERS) | TO(ORPHAN_LOOK) | END,

    [HFD_PASS_FIND]            = TO(CREATE) | TO(ASK_OWNER) | TO(LOOK) | END,
    [HFD_PASS_FIND_NAME]       = TO(ASK_OWNER) | TO(LOOK) | END,
    [HFD_PASS_ASK_OWNER]       = END,
    [HFD_PASS_CREATE]          = TO(FIND) | TO(FIND_NAME) | TO(ASK_OWNER) | TO(LOOK) | END,

    [HFD_PASS_LOOK]            = FROM_LOOK | ANEW,
    [HFD_PASS_DELETE]          = TO(LOOK) | TO(LIST_POOLS) | FROM_POOLS | ANEW,
    [HFD_PASS_LIST_POOLS]      = TO(LOOK) | TO(DELETE) | FROM_POOLS | ANEW,
    [HFD_PASS_REPORTS_FIRST]   = OTHER_GOAL | FROM_FIRST | ANEW,
    [HFD_PASS_LOOK_REST]       = OTHER_GOAL | TO(REPORTS_FIRST) | FROM_REST | ANEW,
    [HFD_PASS_WRITE]           = TO(LOOK) | OTHER_GOAL | TO(REPORTS_FIRST) | TO(LOOK_REST) | FROM_WRITE | ANEW,
    [HFD_PASS_REPORTS]         = OTHER_GOAL | TO(WRITE) | ANEW | END,

    [HFD_PASS_MANY_CLUSTERS]   = TO(MANY_POOLS) | END,
    [HFD_PASS_MANY_POOLS]      = END,
    [HFD_PASS_SEARCH_CLUSTERS] = TO(SEARCH_POOLS) | END,
    [HFD_PASS_SEARCH_POOLS]    = END,

    [HFD_PASS_ORPHAN_LOOK]     = TO(ORPHAN_DELETE) | END,
    [HFD_PASS_ORPHAN_DELETE]   = TO(ORPHAN_VERIFY) | END,
    [HFD_PASS_ORPHAN_VERIFY]   = END,

    [HFD_PASS_DONE]            = 0,
};
/* clang-format on */

bool hfd_pass_may_move(enum hfd_pass_phase from, enum hfd_pass_phase to)
{
    return (next_phases[from] & (1u << to)) != 0;
}

void hfd_pass_move(struct hfd_pass_memory *m, enum hfd_pass_phase to)
{
    HFD_ASSERT(hfd_pass_may_move(m->phase, to));
    m->phase = to;
}

void hfd_pass_end(struct hfd_pass_memory *m)
{
    if (m->phase != HFD_PASS_DONE)
        hfd_pass_move(m, HFD_PASS_DONE);
}

/* ---- what always holds ---- */

/* The phases of each kind of work, beside START and DONE. */
static const unsigned phases_of[] = {
    [HFD_REMOTE_WORK_RESOURCE] =
        TO(FIND) | TO(FIND_NAME) | TO(ASK_OWNER) | TO(CREATE) | TO(LOOK) | FROM_LOOK,
    [HFD_REMOTE_WORK_MANY] = TO(MANY_CLUSTERS) | TO(MANY_POOLS),
    [HFD_REMOTE_WORK_SEARCH] = TO(SEARCH_CLUSTERS) | TO(SEARCH_POOLS),
    [HFD_REMOTE_WORK_ORPHAN] = TO(ORPHAN_LOOK) | TO(ORPHAN_DELETE) | TO(ORPHAN_VERIFY),
};

static bool is_sound_list(const struct hfd_pass_list *list)
{
    return list->page >= 0 && list->count >= 0 && (list->page > 0 || list->count == 0);
}

/* Returns whether each held part was seen before. */
static bool all_seen(const struct hfd_pass_memory *m, const struct hfd_held_part *held)
{
    for (; held != NULL; held = held->next) {
        const struct hfd_seen_part *seen = m->seen;

        while (seen != NULL && !hfd_slice_eq(seen->fleet_id, held->fleet_id))
            seen = seen->next;
        if (seen == NULL)
            return false;
    }
    return true;
}

static void check_lists(const struct hfd_pass_memory *m)
{
    HFD_ASSERT(is_sound_list(&m->find.list));
    HFD_ASSERT(is_sound_list(&m->name));
    HFD_ASSERT(is_sound_list(&m->pools));
    HFD_ASSERT(is_sound_list(&m->reports.list));
    HFD_ASSERT(is_sound_list(&m->many));
}

static void check_memory(const struct hfd_pass *pass, const struct hfd_pass_memory *m)
{
    const enum hfd_remote_work_kind kind = hfd_remote_work_kind(&pass->work);

    HFD_ASSERT(m->phase < HFD_PASS_PHASE_COUNT);
    HFD_ASSERT(((phases_of[kind] | TO(START) | TO(DONE)) & (1u << m->phase)) != 0);
    HFD_ASSERT(m->find.foreign.len > 0 || m->find.foreign_owner.len == 0);
    HFD_ASSERT(m->looks_again >= 0 && m->looks_again <= HFD_PASS_LOOKS_AGAIN_MAX + 1);
    HFD_ASSERT(kind == HFD_REMOTE_WORK_RESOURCE || (m->seen == NULL && m->notes == NULL));
    HFD_ASSERT(m->before.answers > 0 || (m->seen == NULL && m->notes == NULL));
    HFD_ASSERT(!m->creation.announced || m->before.answers > 0);
    HFD_ASSERT(!m->pools.complete || m->before.answers > 0);
    HFD_ASSERT(all_seen(m, m->worse) && all_seen(m, m->held));
    check_lists(m);
}

void hfd_pass_invariant(const struct hfd_pass *pass)
{
    HFD_CHECK_OBJ(pass, HFD_PASS_MAGIC);
    check_memory(pass, &pass->now);
    check_memory(pass, &pass->then);
    HFD_ASSERT(pass->then.before.answers >= pass->now.before.answers);
}

/* ---- memory ---- */

struct hfd_pass_list *hfd_pass_list(struct hfd_pass_memory *m)
{
    switch ((int)m->phase) {
    case HFD_PASS_FIND:
        return &m->find.list;
    case HFD_PASS_FIND_NAME:
    case HFD_PASS_WRITE:
        return &m->name;
    case HFD_PASS_LIST_POOLS:
        return &m->pools;
    case HFD_PASS_REPORTS_FIRST:
    case HFD_PASS_REPORTS:
        return &m->reports.list;
    default:
        return &m->many;
    }
}

const struct hfd_seen_part *hfd_pass_seen(const struct hfd_pass_memory *m, hfd_slice fleet_id)
{
    for (const struct hfd_seen_part *seen = m->seen; seen != NULL; seen = seen->next)
        if (hfd_slice_eq(seen->fleet_id, fleet_id))
            return seen->forgotten ? NULL : seen;
    return NULL;
}

/* A part with an id that was not seen; parts that leave come last. NULL = none. */
static const struct hfd_pass_part *first_unseen(const struct hfd_pass_memory *m,
                                                const struct hfd_pass_rows *rows)
{
    const struct hfd_pass_part *leaving = NULL;

    for (size_t i = 0; i < rows->count; i++) {
        const struct hfd_pass_part *p = &rows->parts[i];

        if (!p->exists || !hfd_backend_id_is_given(p->row.fleet_id) ||
            hfd_pass_seen(m, p->row.fleet_id) != NULL)
            continue;
        if (!p->row.leaving)
            return p;
        leaving = leaving != NULL ? leaving : p;
    }
    return leaving;
}

/* The first part of the list that still exists; NULL = none. */
static const struct hfd_pass_part *first_held(const struct hfd_held_part *list,
                                              const struct hfd_pass_rows *rows)
{
    for (; list != NULL; list = list->next) {
        const struct hfd_pass_part *p = hfd_pass_part_by_id(rows, list->fleet_id);

        if (p != NULL && p->exists)
            return p;
    }
    return NULL;
}

bool hfd_pass_is_all_known(const struct hfd_pass_memory *m, const struct hfd_pass_rows *rows)
{
    return m->pools.complete && first_held(m->worse, rows) == NULL && first_unseen(m, rows) == NULL;
}

bool hfd_pass_noted(const struct hfd_pass_memory *m, hfd_slice fleet_id, enum hfd_part_fact fact)
{
    for (const struct hfd_part_note *note = m->notes; note != NULL; note = note->next)
        if (note->fact == fact && hfd_slice_eq(note->fleet_id, fleet_id))
            return true;
    return false;
}

/* ---- life ---- */

hfd_rc hfd_pass_new(const struct hfd_remote_policy *policy, const struct hfd_remote_work *work,
                    struct hfd_pass **out, struct hfd_err *err)
{
    struct hfd_pass *pass = calloc(1, sizeof(*pass));

    *out = NULL;
    if (pass == NULL || work->guresid.len >= sizeof(pass->guresid) ||
        work->orphan.len > sizeof(pass->orphan)) {
        free(pass);
        return hfd_fail_nomem(err, "begin a pass against HyperFleet");
    }
    pass->magic = HFD_PASS_MAGIC;
    pass->policy = policy;
    pass->work = *work;
    memcpy(pass->guresid, work->guresid.len > 0 ? work->guresid.p : "", work->guresid.len);
    memcpy(pass->orphan, work->orphan.len > 0 ? work->orphan.p : "", work->orphan.len);
    pass->work.guresid = (hfd_slice){pass->guresid, work->guresid.len};
    pass->work.orphan = (hfd_slice){pass->orphan, work->orphan.len};
    hfd_arena_init(&pass->mem, PASS_MAX_BYTES);
    hfd_arena_init(&pass->request, REQUEST_MAX_BYTES);
    *out = pass;
    return HFD_OK;
}

void hfd_pass_free(struct hfd_pass *pass)
{
    if (pass == NULL)
        return;
    HFD_CHECK_OBJ(pass, HFD_PASS_MAGIC);
    pass->magic = 0;
    hfd_arena_fini(&pass->mem);
    hfd_arena_fini(&pass->request);
    free(pass);
}

const struct hfd_remote_work *hfd_pass_work(const struct hfd_pass *pass)
{
    return &pass->work;
}

static hfd_rc load_parts(struct hfd_txn *tx, hfd_slice guresid, struct hfd_arena *mem,
                         struct hfd_pass_rows *out, struct hfd_err *err)
{
    struct hfd_part_list list;
    hfd_rc rc = hfd_part_row_list(tx, guresid, mem, &list, err);

    if (rc != HFD_OK)
        return rc;
    out->parts = hfd_arena_array(mem, list.count + 1, sizeof(*out->parts));
    if (out->parts == NULL)
        return hfd_fail_nomem(err, "load the parts of a resource");
    out->count = list.count;
    for (size_t i = 0; i < list.count; i++) {
        struct hfd_pass_part *p = &out->parts[i];

        p->row = list.rows[i];
        rc = hfd_fleet_row_get(tx, p->row.fleet_id, mem, &p->fleet, err);
        if (rc != HFD_OK && rc != HFD_NOT_FOUND)
            return rc;
        p->exists = rc == HFD_OK;
        if (out->own == SIZE_MAX && p->row.kind == out->res.kind)
            out->own = i;
    }
    return HFD_OK;
}

hfd_rc hfd_pass_rows_load(struct hfd_txn *tx, hfd_slice guresid, struct hfd_arena *mem,
                          struct hfd_pass_rows *out, struct hfd_err *err)
{
    hfd_rc rc;

    *out = (struct hfd_pass_rows){.own = SIZE_MAX};
    rc = hfd_remote_row_get(tx, guresid, mem, &out->remote, err);
    if (rc == HFD_OK && out->remote.goal != HFD_GOAL_ABSENT)
        rc = hfd_resource_row_get(tx, guresid, mem, &out->res, err);
    if (rc == HFD_NOT_FOUND || (rc == HFD_OK && out->remote.goal == HFD_GOAL_ABSENT))
        return HFD_OK;
    if (rc != HFD_OK)
        return rc;
    out->found = true;
    return load_parts(tx, guresid, mem, out, err);
}

struct hfd_pass_part *hfd_pass_own(const struct hfd_pass_rows *rows)
{
    return rows->own < rows->count ? &rows->parts[rows->own] : NULL;
}

struct hfd_pass_part *hfd_pass_part_by_id(const struct hfd_pass_rows *rows, hfd_slice fleet_id)
{
    for (size_t i = 0; i < rows->count; i++)
        if (hfd_slice_eq(rows->parts[i].row.fleet_id, fleet_id))
            return &rows->parts[i];
    return NULL;
}

/* ---- the next request ---- */

/* One request in the making. */
struct request_maker {
    struct hfd_pass *pass;
    struct hfd_pass_memory *m; /* pass->now */
    struct hfd_pass_rows rows;
    struct hfd_remote_request *out;
    struct hfd_err *err;
    hfd_rc rc; /* the first failure: HFD_NOMEM, HFD_LIMIT */
};

/*
 * Makes the requests of a pass: method, path, query and body, in the words of every HyperFleet
 * generation. Thread: any.
 * Source: HyperFleet API.
 */

#define BODY_MAX_BYTES ((size_t)8 * 1024 * 1024)

/* ---- texts ---- */

static hfd_slice escape(hfd_slice text, struct hfd_arena *mem)
{
    static const char hex[] = "0123456789ABCDEF";
    char *p = hfd_arena_alloc(mem, 3 * text.len + 1);
    size_t n = 0;

    if (p == NULL)
        return HFD_SLICE_NONE;
    for (size_t i = 0; i < text.len; i++) {
        const unsigned char c = (unsigned char)text.p[i];

        if (hfd_is_alnum(text.p[i]) || c == '-' || c == '.' || c == '_' || c == '~') {
            p[n++] = text.p[i];
            continue;
        }
        p[n++] = '%';
        p[n++] = hex[c >> 4];
        p[n++] = hex[c & 15];
    }
    return (hfd_slice){p, n};
}

/*
 * "?page=1&...", with the parameters of every generation. search: TSL, or empty. The result has no
 * p if memory is short, or if search has none: another list would be asked for.
 */
static hfd_slice list_query(const struct request_maker *k, hfd_slice search)
{
    struct hfd_arena *mem = &k->pass->request;
    const hfd_slice escaped = search.p != NULL ? escape(search, mem) : HFD_SLICE_NONE;

    if (escaped.p == NULL)
        return HFD_SLICE_NONE;
    return hfd_arena_printf(mem,
                            "?page=%lld&size=%d&pageSize=%d&orderBy=created_time%%20desc&order="
                            "created_time%%20desc%s%.*s",
                            (long long)hfd_pass_list(k->m)->page + 1, HFD_REMOTE_PAGE,
                            HFD_REMOTE_PAGE, escaped.len > 0 ? "&search=" : "",
                            HFD_SLICE_FMT(escaped));
}

/* Later generations read a text that begins like a date as a date, and find nothing. */
static bool like_date(hfd_slice text)
{
    static const char form[] = "dddd-dd-dd";

    for (size_t i = 0; i < sizeof(form) - 1; i++)
        if (i >= text.len ||
            (form[i] == 'd' ? text.p[i] < '0' || text.p[i] > '9' : text.p[i] != form[i]))
            return false;
    return true;
}

/* Finds all of our own; it may find more, so that the answer's labels are compared. */
static hfd_slice label_search(const struct request_maker *k, bool nested)
{
    const hfd_slice guresid = k->rows.res.guresid, owner = k->pass->policy->owner;
    struct hfd_arena *mem = &k->pass->request;

    if (!like_date(guresid))
        return hfd_arena_printf(mem, "labels." HFD_GURESID_LABEL "='%.*s'", HFD_SLICE_FMT(guresid));
    if (nested || owner.len == 0 || like_date(owner))
        return HFD_SLICE("");
    return hfd_arena_printf(mem, "labels." HFD_OWNER_LABEL "='%.*s'", HFD_SLICE_FMT(owner));
}

/* ---- requests ---- */

static void make(struct request_maker *k, enum hfd_pass_step step, enum hfd_remote_method method,
                 hfd_slice path, hfd_slice fleet_id)
{
    *k->out = (struct hfd_remote_request){.method = method,
                                          .path = path,
                                          .step = (int)step,
                                          .fleet_id = hfd_arena_dup(&k->pass->request, fleet_id)};
    if (path.p == NULL || k->out->fleet_id.p == NULL)
        k->rc = hfd_fail_nomem(k->err, "make a request to HyperFleet");
}

/* A list about another part than before begins at its first page. */
static void begin_list(struct request_maker *k, hfd_slice of)
{
    struct hfd_pass_list *list = hfd_pass_list(k->m);

    if (list->of.p != NULL && hfd_slice_eq(list->of, of))
        return;
    *list = (struct hfd_pass_list){.of = hfd_arena_dup(&k->pass->mem, of)};
    if (list->of.p == NULL)
        k->rc = hfd_fail_nomem(k->err, "make a request to HyperFleet");
}

/* "/clusters/2abc", "/clusters/2abc/nodepools/2np1" */
static hfd_slice part_path(const struct request_maker *k, const struct hfd_pass_part *p,
                           const char *rest)
{
    struct hfd_arena *mem = &k->pass->request;

    if (p->row.kind == HFD_KIND_CLUSTER)
        return hfd_arena_printf(mem, "/clusters/%.*s%s", HFD_SLICE_FMT(p->row.fleet_id), rest);
    if (p->fleet.owner_id.len == 0)
        return hfd_arena_printf(mem, "/nodepools/%.*s%s", HFD_SLICE_FMT(p->row.fleet_id), rest);
    return hfd_arena_printf(mem, "/clusters/%.*s/nodepools/%.*s%s",
                            HFD_SLICE_FMT(p->fleet.owner_id), HFD_SLICE_FMT(p->row.fleet_id), rest);
}

/* "/clusters", or the nodepools of a cluster; all nodepools if the cluster is not known. */
static hfd_slice list_path(const struct request_maker *k, enum hfd_kind kind, hfd_slice owner_id,
                           hfd_slice query)
{
    struct hfd_arena *mem = &k->pass->request;

    if (query.p == NULL)
        return HFD_SLICE_NONE;
    if (kind == HFD_KIND_CLUSTER)
        return hfd_arena_printf(mem, "/clusters%.*s", HFD_SLICE_FMT(query));
    if (owner_id.len == 0)
        return hfd_arena_printf(mem, "/nodepools%.*s", HFD_SLICE_FMT(query));
    return hfd_arena_printf(mem, "/clusters/%.*s/nodepools%.*s", HFD_SLICE_FMT(owner_id),
                            HFD_SLICE_FMT(query));
}

static void request_get(struct request_maker *k, const struct hfd_pass_part *p)
{
    make(k, HFD_STEP_GET, HFD_REMOTE_GET, part_path(k, p, ""), p->row.fleet_id);
}

/* A page of a list. @param p  the part that it is about; NULL = it is about none */
static void request_list(struct request_maker *k, enum hfd_pass_step step,
                         const struct hfd_pass_part *p, enum hfd_kind kind, hfd_slice owner_id,
                         hfd_slice search)
{
    if (p != NULL)
        begin_list(k, p->row.fleet_id);
    make(k, step, HFD_REMOTE_GET, list_path(k, kind, owner_id, list_query(k, search)),
         p != NULL ? p->row.fleet_id : HFD_SLICE(""));
}

/* A list of what carries the GUResID's label, for the own part. */
static void request_find(struct request_maker *k, const struct hfd_pass_part *p)
{
    const bool nested = p->row.kind == HFD_KIND_NODEPOOL && p->fleet.owner_id.len > 0;

    request_list(k, HFD_STEP_FIND, p, p->row.kind, p->fleet.owner_id, label_search(k, nested));
}

/* A list of what has the part's name. */
static void request_find_name(struct request_maker *k, const struct hfd_pass_part *p)
{
    const hfd_slice search =
        like_date(p->fleet.name)
            ? HFD_SLICE("")
            : hfd_arena_printf(&k->pass->request, "name='%.*s'", HFD_SLICE_FMT(p->fleet.name));

    request_list(k, HFD_STEP_FIND_NAME, p, p->row.kind, p->fleet.owner_id, search);
}

/* The cluster that a nodepool part names. */
static void request_owner(struct request_maker *k, const struct hfd_pass_part *p)
{
    make(k, HFD_STEP_OWNER, HFD_REMOTE_GET,
         hfd_arena_printf(&k->pass->request, "/clusters/%.*s", HFD_SLICE_FMT(p->fleet.owner_id)),
         p->row.fleet_id);
}

static void request_pools(struct request_maker *k, const struct hfd_pass_part *cluster)
{
    request_list(k, HFD_STEP_POOLS, cluster, HFD_KIND_NODEPOOL, cluster->row.fleet_id,
                 label_search(k, true));
}

static void request_reports(struct request_maker *k, const struct hfd_pass_part *p)
{
    const hfd_slice path = part_path(k, p, "/statuses");
    hfd_slice query;

    if (!hfd_slice_eq(k->m->reports.list.of, p->row.fleet_id))
        k->m->reports.changed = false;
    begin_list(k, p->row.fleet_id);
    query = list_query(k, HFD_SLICE(""));
    make(k, HFD_STEP_REPORTS, HFD_REMOTE_GET,
         query.p != NULL && path.p != NULL
             ? hfd_arena_printf(&k->pass->request, "%.*s%.*s", HFD_SLICE_FMT(path),
                                HFD_SLICE_FMT(query))
             : HFD_SLICE_NONE,
         p->row.fleet_id);
}

/* Adds the labels that are wanted, and the label of this server. */
static void add_labels(const struct request_maker *k, struct hfd_buf *b, hfd_slice labels)
{
    const hfd_slice owner = k->pass->policy->owner;

    if (owner.len == 0) {
        hfd_buf_add(b, labels);
        return;
    }
    hfd_buf_lit(b, "{\"" HFD_OWNER_LABEL "\":");
    hfd_buf_json_str(b, owner);
    if (labels.len > 2) {
        hfd_buf_addc(b, ',');
        hfd_buf_add(b, (hfd_slice){labels.p + 1, labels.len - 1});
    } else {
        hfd_buf_addc(b, '}');
    }
}

/* Sets the body, and keeps what it asks for: a PUT may change the rows before the answer comes. */
static void set_body(struct request_maker *k, const struct hfd_pass_part *p, struct hfd_buf *b)
{
    struct hfd_pass *pass = k->pass;
    hfd_slice text;
    hfd_rc rc = hfd_buf_finish(b, &text, k->err);

    if (rc == HFD_OK) {
        k->out->body = hfd_arena_dup(&pass->request, text);
        pass->sent_spec = hfd_arena_dup(&pass->request, p->fleet.spec);
        pass->sent_labels = hfd_arena_dup(&pass->request, p->fleet.labels);
        if (k->out->body.p == NULL || pass->sent_spec.p == NULL || pass->sent_labels.p == NULL)
            rc = hfd_fail_nomem(k->err, "make a request to HyperFleet");
    }
    hfd_buf_fini(b);
    k->rc = k->rc == HFD_OK ? rc : k->rc;
}

static void request_post(struct request_maker *k, const struct hfd_pass_part *p)
{
    const bool cluster = p->row.kind == HFD_KIND_CLUSTER;
    struct hfd_buf b;

    make(k, HFD_STEP_POST, HFD_REMOTE_POST,
         cluster ? HFD_SLICE("/clusters")
                 : hfd_arena_printf(&k->pass->request, "/clusters/%.*s/nodepools",
                                    HFD_SLICE_FMT(p->fleet.owner_id)),
         p->row.fleet_id);
    hfd_buf_init(&b, BODY_MAX_BYTES);
    hfd_buf_addf(&b, "{\"kind\":\"%s\",\"name\":", cluster ? "Cluster" : "NodePool");
    hfd_buf_json_str(&b, p->fleet.name);
    hfd_buf_lit(&b, ",\"spec\":");
    hfd_buf_add(&b, p->fleet.spec);
    hfd_buf_lit(&b, ",\"labels\":");
    add_labels(k, &b, p->fleet.labels);
    hfd_buf_addc(&b, '}');
    set_body(k, p, &b);
}

/* Sends what differs from `seen`. */
static void request_patch(struct request_maker *k, const struct hfd_pass_part *p,
                          const struct hfd_seen_part *seen)
{
    const bool spec = !hfd_slice_eq(p->fleet.spec, seen->spec),
               labels = !hfd_slice_eq(p->fleet.labels, seen->labels);
    struct hfd_buf b;

    make(k, HFD_STEP_PATCH, HFD_REMOTE_PATCH, part_path(k, p, ""), p->row.fleet_id);
    hfd_buf_init(&b, BODY_MAX_BYTES);
    hfd_buf_addc(&b, '{');
    if (spec) {
        hfd_buf_lit(&b, "\"spec\":");
        hfd_buf_add(&b, p->fleet.spec);
    }
    if (labels) {
        hfd_buf_add(&b, spec ? HFD_SLICE(",\"labels\":") : HFD_SLICE("\"labels\":"));
        add_labels(k, &b, p->fleet.labels);
    }
    hfd_buf_addc(&b, '}');
    set_body(k, p, &b);
}

static void request_delete(struct request_maker *k, const struct hfd_pass_part *p)
{
    make(k, HFD_STEP_DELETE, HFD_REMOTE_DELETE, part_path(k, p, ""), p->row.fleet_id);
}

/*
 * All clusters or nodepools of this server that are not ready.
 * @param later_names  the remote reports Reconciled for Ready
 */
static void request_many(struct request_maker *k, enum hfd_kind kind, bool later_names)
{
    const hfd_slice search = hfd_arena_printf(
        &k->pass->request, "labels." HFD_OWNER_LABEL "='%.*s' and status.conditions.%s='False'",
        HFD_SLICE_FMT(k->pass->policy->owner), later_names ? "Reconciled" : "Ready");

    request_list(k, HFD_STEP_MANY, NULL, kind, HFD_SLICE_NONE, search);
}

/* All clusters or nodepools of this server. */
static void request_search(struct request_maker *k, enum hfd_kind kind)
{
    const hfd_slice owner = k->pass->policy->owner;
    const hfd_slice search =
        like_date(owner) ? HFD_SLICE("")
                         : hfd_arena_printf(&k->pass->request, "labels." HFD_OWNER_LABEL "='%.*s'",
                                            HFD_SLICE_FMT(owner));

    request_list(k, HFD_STEP_SEARCH, NULL, kind, HFD_SLICE_NONE, search);
}

/* GET or DELETE of an orphan. */
static void request_orphan(struct request_maker *k, enum hfd_remote_method method,
                           const struct hfd_orphan_row *orphan)
{
    struct hfd_pass_part part = {.row = {.kind = orphan->kind, .fleet_id = orphan->id}};

    part.fleet.owner_id = orphan->owner_id;
    make(k, method == HFD_REMOTE_DELETE ? HFD_STEP_ORPHAN_DELETE : HFD_STEP_ORPHAN_GET, method,
         part_path(k, &part, ""), orphan->id);
}

/* Which phase a pass goes to next. See the diagram in pass.h. */

/* ---- a resource without an id ---- */

/* Returns whether the phase belongs to the search for an id, or its creation. */
static bool is_before_id(enum hfd_pass_phase phase)
{
    return phase == HFD_PASS_START || phase == HFD_PASS_FIND || phase == HFD_PASS_FIND_NAME ||
           phase == HFD_PASS_ASK_OWNER || phase == HFD_PASS_CREATE;
}

static enum hfd_pass_phase phase_without_id(struct request_maker *k,
                                            const struct hfd_pass_part *own)
{
    struct hfd_pass_memory *m = k->m;

    if (own->fleet.owner_id.len > 0 && !hfd_backend_id_is_given(own->fleet.owner_id))
        return HFD_PASS_DONE; /* its cluster comes first, and makes this work due
                                 again */
    if (!is_before_id(m->phase))
        hfd_pass_move(m, HFD_PASS_START);
    if (m->phase == HFD_PASS_START)
        return HFD_PASS_FIND;
    if (m->phase != HFD_PASS_CREATE || k->rows.remote.goal == HFD_GOAL_MAKE)
        return m->phase;
    return m->creation.announced ? HFD_PASS_FIND : HFD_PASS_DONE; /* the goal changed meanwhile */
}

/* ---- a resource with an id ---- */

static bool has_pools(const struct hfd_pass_rows *rows)
{
    if (rows->res.kind != HFD_KIND_CLUSTER)
        return false;
    for (size_t i = 0; i < rows->count; i++)
        if (rows->parts[i].row.kind == HFD_KIND_NODEPOOL)
            return true;
    return rows->remote.goal == HFD_GOAL_ADOPT;
}

/* The first request of WRITE. */
struct write {
    enum hfd_pass_step step;
    const struct hfd_pass_part *part; /* NULL = nothing to write */
    const struct hfd_seen_part *seen;
};

static struct write write_of(const struct hfd_pass_memory *m, const struct hfd_pass_part *p)
{
    const struct hfd_seen_part *seen = hfd_pass_seen(m, p->row.fleet_id);

    if (!p->row.pending || p->row.leaving || p->fleet.deleted_us != 0)
        return (struct write){.part = NULL};
    if (!hfd_backend_id_is_given(p->row.fleet_id))
        return (struct write){hfd_pass_noted(m, p->row.fleet_id, HFD_PART_NAME_TAKEN)
                                  ? HFD_STEP_FIND_NAME
                                  : HFD_STEP_POST,
                              p, NULL};
    /* A later PUT may want what the remote has already: then its document is enough. */
    if (seen == NULL || (!seen->deleting && hfd_observe_equal(p, seen->spec, seen->labels)))
        return (struct write){HFD_STEP_GET, p, NULL};
    return (struct write){HFD_STEP_PATCH, seen->deleting ? NULL : p, seen};
}

static bool must_delete(const struct hfd_pass_memory *m, const struct hfd_pass_part *p)
{
    const struct hfd_seen_part *seen = hfd_pass_seen(m, p->row.fleet_id);

    return p->row.leaving && seen != NULL && !seen->deleting &&
           !hfd_pass_noted(m, p->row.fleet_id, HFD_PART_DELETE_SENT);
}

/* Deletions first. Nothing is written to a cluster that is being deleted. */
static struct write first_write(const struct request_maker *k, const struct hfd_seen_part *own)
{
    const struct hfd_pass_rows *rows = &k->rows;
    struct write w = {.part = NULL};

    if (rows->remote.goal != HFD_GOAL_MAKE || own->deleting)
        return w;
    for (size_t i = 0; i < rows->count; i++)
        if (rows->parts[i].exists && must_delete(k->m, &rows->parts[i]))
            return (struct write){HFD_STEP_DELETE, &rows->parts[i], NULL};
    for (size_t i = 0; w.part == NULL && i < rows->count; i++)
        if (rows->parts[i].exists)
            w = write_of(k->m, &rows->parts[i]);
    return w;
}

/* The first phase that has something to do. */
static enum hfd_pass_phase phase_with_id(const struct request_maker *k,
                                         const struct hfd_pass_part *own)
{
    const struct hfd_pass_memory *m = k->m;
    const struct hfd_seen_part *seen = hfd_pass_seen(m, own->row.fleet_id);

    if (seen == NULL)
        return HFD_PASS_LOOK;
    if (k->rows.remote.goal == HFD_GOAL_DELETE && !seen->deleting &&
        !hfd_pass_noted(m, own->row.fleet_id, HFD_PART_DELETE_SENT))
        return HFD_PASS_DELETE;
    if (has_pools(&k->rows) && !m->pools.complete)
        return HFD_PASS_LIST_POOLS;
    if (first_held(m->worse, &k->rows) != NULL)
        return HFD_PASS_REPORTS_FIRST;
    if (first_unseen(m, &k->rows) != NULL)
        return HFD_PASS_LOOK_REST;
    if (first_write(k, seen).part != NULL)
        return HFD_PASS_WRITE;
    return first_held(m->held, &k->rows) != NULL ? HFD_PASS_REPORTS : HFD_PASS_DONE;
}

/* A part whose reports are half read goes on; else the first of the list. */
static const struct hfd_pass_part *reports_part(const struct request_maker *k,
                                                const struct hfd_held_part *list)
{
    const struct hfd_pass_list *reports = &k->m->reports.list;

    for (const struct hfd_held_part *h = list; reports->page > 0 && h != NULL; h = h->next) {
        const struct hfd_pass_part *p = hfd_pass_part_by_id(&k->rows, h->fleet_id);

        if (p != NULL && p->exists && hfd_slice_eq(h->fleet_id, reports->of))
            return p;
    }
    return first_held(list, &k->rows);
}

/* ---- requests ---- */

static void request_write(struct request_maker *k, const struct hfd_pass_part *own)
{
    const struct write w = first_write(k, hfd_pass_seen(k->m, own->row.fleet_id));

    HFD_ASSERT(w.part != NULL); /* else the phase is another one */
    if (w.step == HFD_STEP_DELETE)
        request_delete(k, w.part);
    else if (w.step == HFD_STEP_FIND_NAME)
        request_find_name(k, w.part);
    else if (w.step == HFD_STEP_POST)
        request_post(k, w.part);
    else if (w.step == HFD_STEP_PATCH)
        request_patch(k, w.part, w.seen);
    else
        request_get(k, w.part);
}

static void request_reports_first(struct request_maker *k, const struct hfd_pass_part *own)
{
    (void)own;
    request_reports(k, reports_part(k, k->m->worse));
}

static void request_rest(struct request_maker *k, const struct hfd_pass_part *own)
{
    (void)own;
    request_get(k, first_unseen(k->m, &k->rows));
}

static void request_other_reports(struct request_maker *k, const struct hfd_pass_part *own)
{
    (void)own;
    request_reports(k, reports_part(k, k->m->held));
}

/* Nothing in DONE. */
static void request_for_phase(struct request_maker *k, const struct hfd_pass_part *own)
{
    static void (*const by_phase[HFD_PASS_PHASE_COUNT])(struct request_maker *,
                                                        const struct hfd_pass_part *) = {
        [HFD_PASS_FIND] = request_find,
        [HFD_PASS_FIND_NAME] = request_find_name,
        [HFD_PASS_ASK_OWNER] = request_owner,
        [HFD_PASS_CREATE] = request_post,
        [HFD_PASS_LOOK] = request_get,
        [HFD_PASS_DELETE] = request_delete,
        [HFD_PASS_LIST_POOLS] = request_pools,
        [HFD_PASS_REPORTS_FIRST] = request_reports_first,
        [HFD_PASS_LOOK_REST] = request_rest,
        [HFD_PASS_WRITE] = request_write,
        [HFD_PASS_REPORTS] = request_other_reports,
    };

    if (by_phase[k->m->phase] != NULL)
        by_phase[k->m->phase](k, own);
}

static void move_to(struct hfd_pass_memory *m, enum hfd_pass_phase to)
{
    if (to != m->phase)
        hfd_pass_move(m, to);
}

/* ---- by kind of work ---- */

static hfd_rc next_of_resource(struct hfd_txn *tx, struct request_maker *k, struct hfd_arena *mem)
{
    const struct hfd_pass_part *own;
    hfd_rc rc = hfd_pass_rows_load(tx, k->pass->work.guresid, mem, &k->rows, k->err);

    if (rc != HFD_OK)
        return rc;
    own = hfd_pass_own(&k->rows);
    if (!k->rows.found || own == NULL || !own->exists) {
        hfd_pass_end(k->m);
        return HFD_OK;
    }
    if (!hfd_backend_id_is_given(own->row.fleet_id))
        move_to(k->m, phase_without_id(k, own));
    else
        move_to(k->m, is_before_id(k->m->phase) ? HFD_PASS_LOOK : k->m->phase);
    if (hfd_backend_id_is_given(own->row.fleet_id))
        move_to(k->m, phase_with_id(k, own));
    request_for_phase(k, own);
    k->out->trace = hfd_trace_parse(k->rows.res.trace);
    return HFD_OK;
}

static hfd_rc next_of_many(struct hfd_txn *tx, struct request_maker *k, struct hfd_arena *mem)
{
    const struct hfd_remote_due any = {HFD_WATCHED_CLOSELY, INT64_MAX, 1};
    struct hfd_remote_list first;
    hfd_rc rc = hfd_remote_row_due(tx, &any, mem, &first, k->err);

    if (rc != HFD_OK || first.count == 0)
        return rc;
    if (k->m->phase == HFD_PASS_START)
        hfd_pass_move(k->m, HFD_PASS_MANY_CLUSTERS);
    request_many(k, k->m->phase == HFD_PASS_MANY_POOLS ? HFD_KIND_NODEPOOL : HFD_KIND_CLUSTER,
                 first.rows[0].later_names);
    return HFD_OK;
}

static void next_of_search(struct request_maker *k)
{
    if (k->pass->policy->owner.len == 0)
        return; /* without the label of this server nothing is known to be ours */
    if (k->m->phase == HFD_PASS_START)
        hfd_pass_move(k->m, HFD_PASS_SEARCH_CLUSTERS);
    request_search(k, k->m->phase == HFD_PASS_SEARCH_POOLS ? HFD_KIND_NODEPOOL : HFD_KIND_CLUSTER);
}

static hfd_rc next_of_orphan(struct hfd_txn *tx, struct request_maker *k, struct hfd_arena *mem)
{
    struct hfd_remote_orphan_row row;
    hfd_rc rc = hfd_remote_orphan_row_get(tx, k->pass->work.orphan, mem, &row, k->err);

    if (rc != HFD_OK)
        return rc == HFD_NOT_FOUND ? HFD_OK : rc;
    if (k->m->phase == HFD_PASS_START)
        hfd_pass_move(k->m, HFD_PASS_ORPHAN_LOOK);
    request_orphan(k, k->m->phase == HFD_PASS_ORPHAN_DELETE ? HFD_REMOTE_DELETE : HFD_REMOTE_GET,
                   &row.orphan);
    return HFD_OK;
}

static hfd_rc next_of_work(struct hfd_txn *tx, struct request_maker *k, struct hfd_arena *mem)
{
    switch (hfd_remote_work_kind(&k->pass->work)) {
    case HFD_REMOTE_WORK_MANY:
        return next_of_many(tx, k, mem);
    case HFD_REMOTE_WORK_SEARCH:
        next_of_search(k);
        return HFD_OK;
    case HFD_REMOTE_WORK_ORPHAN:
        return next_of_orphan(tx, k, mem);
    case HFD_REMOTE_WORK_RESOURCE:
        break;
    }
    return next_of_resource(tx, k, mem);
}

hfd_rc hfd_pass_next(struct hfd_txn *tx, struct hfd_pass *pass, int64_t now_us,
                     struct hfd_remote_request *out, struct hfd_err *err)
{
    struct request_maker k = {.pass = pass, .m = &pass->now, .out = out, .err = err, .rc = HFD_OK};
    struct hfd_arena mem;
    hfd_rc rc;

    HFD_CHECK_OBJ(pass, HFD_PASS_MAGIC);
    *out = (struct hfd_remote_request){.path = HFD_SLICE_NONE};
    pass->now = pass->then;
    if (pass->now.began_us == 0)
        pass->now.began_us = pass->then.began_us = now_us;
    if (pass->now.phase == HFD_PASS_DONE)
        return HFD_OK;
    hfd_arena_fini(&pass->request);
    hfd_arena_init(&mem, HFD_MIRROR_SCRATCH_MAX_BYTES);
    rc = next_of_work(tx, &k, &mem);
    hfd_arena_fini(&mem);
    rc = rc == HFD_OK ? k.rc : rc;
    if (rc != HFD_OK)
        *out = (struct hfd_remote_request){.path = HFD_SLICE_NONE};
    else if (out->path.p == NULL)
        hfd_pass_end(&pass->now);
    else if (out->step == HFD_STEP_POST)
        pass->now.creation.announced = false;
    hfd_pass_invariant(pass);
    return rc;
}
