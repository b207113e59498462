/* See pass.h. */
#include "driver/backend/remote/pass.h"

#include "driver/backend/mirror.h"
#include "driver/backend/remote/http.h"
#include "driver/backend/remote/wire.h"
#include "driver/backend/remote/work.h"
#include "driver/base/check.h"
#include "store/rows_fleet.h"
#include "store/rows_remote.h"
#include "store/rows_resource.h"

#include <stdint.h>
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
static const struct {
    const char *name;
    unsigned next;
} phases[HFD_PASS_PHASE_COUNT] = {
    [HFD_PASS_START]           = {"START", TO(FIND) | TO(LOOK) | TO(MANY_CLUSTERS) | TO(SEARCH_CLUSTERS) | TO(ORPHAN_LOOK) | END},

    [HFD_PASS_FIND]            = {"FIND", TO(CREATE) | TO(ASK_OWNER) | TO(LOOK) | END},
    [HFD_PASS_FIND_NAME]       = {"FIND_NAME", TO(ASK_OWNER) | TO(LOOK) | END},
    [HFD_PASS_ASK_OWNER]       = {"ASK_OWNER", END},
    [HFD_PASS_CREATE]          = {"CREATE", TO(FIND) | TO(FIND_NAME) | TO(ASK_OWNER) | TO(LOOK) | END},

    [HFD_PASS_LOOK]            = {"LOOK", FROM_LOOK | ANEW},
    [HFD_PASS_DELETE]          = {"DELETE", TO(LOOK) | TO(LIST_POOLS) | FROM_POOLS | ANEW},
    [HFD_PASS_LIST_POOLS]      = {"LIST_POOLS", TO(LOOK) | TO(DELETE) | FROM_POOLS | ANEW},
    [HFD_PASS_REPORTS_FIRST]   = {"REPORTS_FIRST", OTHER_GOAL | FROM_FIRST | ANEW},
    [HFD_PASS_LOOK_REST]       = {"LOOK_REST", OTHER_GOAL | TO(REPORTS_FIRST) | FROM_REST | ANEW},
    [HFD_PASS_WRITE]           = {"WRITE", TO(LOOK) | OTHER_GOAL | TO(REPORTS_FIRST) | TO(LOOK_REST) | FROM_WRITE | ANEW},
    [HFD_PASS_REPORTS]         = {"REPORTS", OTHER_GOAL | TO(WRITE) | ANEW | END},

    [HFD_PASS_MANY_CLUSTERS]   = {"MANY_CLUSTERS", TO(MANY_POOLS) | END},
    [HFD_PASS_MANY_POOLS]      = {"MANY_POOLS", END},
    [HFD_PASS_SEARCH_CLUSTERS] = {"SEARCH_CLUSTERS", TO(SEARCH_POOLS) | END},
    [HFD_PASS_SEARCH_POOLS]    = {"SEARCH_POOLS", END},

    [HFD_PASS_ORPHAN_LOOK]     = {"ORPHAN_LOOK", TO(ORPHAN_DELETE) | END},
    [HFD_PASS_ORPHAN_DELETE]   = {"ORPHAN_DELETE", TO(ORPHAN_VERIFY) | END},
    [HFD_PASS_ORPHAN_VERIFY]   = {"ORPHAN_VERIFY", END},

    [HFD_PASS_DONE]            = {"DONE", 0},
};
/* clang-format on */

const char *hfd_pass_phase_name(enum hfd_pass_phase phase)
{
    return phases[phase].name;
}

bool hfd_pass_may_move(enum hfd_pass_phase from, enum hfd_pass_phase to)
{
    return (phases[from].next & (1u << to)) != 0;
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

const struct hfd_pass_part *hfd_pass_first_unseen(const struct hfd_pass_memory *m,
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

const struct hfd_pass_part *hfd_pass_first_held(const struct hfd_held_part *list,
                                                const struct hfd_pass_rows *rows)
{
    for (; list != NULL; list = list->next) {
        const struct hfd_pass_part *p = hfd_pass_part_by_id(rows, list->fleet_id);

        if (p != NULL && p->exists)
            return p;
    }
    return NULL;
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
