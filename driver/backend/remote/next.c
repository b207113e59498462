/*
 * The next request of a pass: the first thing that is not known or not done yet, in the order of
 * README.md in this folder. Thread: any, in a read transaction.
 */
#include "driver/backend/remote/pass_int.h"

#include <stdio.h>

#include "driver/base/check.h"
#include "store/rows_remote.h"
#include "store/rows_remote_orphan.h"

#define BODY_MAX_BYTES ((size_t)8 * 1024 * 1024)

/* A choice under way. */
struct choice {
    struct hfd_pass *pass;
    const struct hfd_memory *m;
    struct hfd_pass_rows s;
    struct hfd_remote_request *out;
    struct hfd_err *err;
    hfd_rc rc;
    bool made;
};

static hfd_rc no_memory(struct hfd_err *err)
{
    return hfd_fail(err, HFD_NOMEM, "out of memory for a request to HyperFleet");
}

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
 * "?page=1&..." in the words of every generation. search: TSL, or empty; p is NULL when there was
 * no memory for it.
 */
static hfd_slice list_query(int64_t page, hfd_slice search, struct hfd_arena *mem)
{
    const hfd_slice escaped = search.p != NULL
                                  ? escape(search, mem)
                                  : HFD_SLICE_NONE; /* without it another list would be asked for */

    if (escaped.p == NULL)
        return HFD_SLICE_NONE;
    return hfd_arena_printf(mem,
                            "?page=%lld&size=%d&pageSize=%d&orderBy=created_time%%20desc&order="
                            "created_time%%20desc%s%.*s",
                            (long long)page + 1, HFD_REMOTE_PAGE, HFD_REMOTE_PAGE,
                            escaped.len > 0 ? "&search=" : "", HFD_SLICE_FMT(escaped));
}

/* Later ones take texts that begin like a date for one, and find nothing. */
static bool like_date(hfd_slice text)
{
    static const char form[] = "dddd-dd-dd";

    for (size_t i = 0; i < sizeof(form) - 1; i++)
        if (i >= text.len ||
            (form[i] == 'd' ? text.p[i] < '0' || text.p[i] > '9' : text.p[i] != form[i]))
            return false;
    return true;
}

/* What finds our own resources; more may be found, and each is looked at. */
static hfd_slice label_search(const struct choice *c, bool nested)
{
    const hfd_slice guresid = c->s.res.guresid, owner = c->pass->policy->owner;
    struct hfd_arena *mem = &c->pass->request;

    if (!like_date(guresid))
        return hfd_arena_printf(mem, "labels." HFD_GURESID_LABEL "='%.*s'", HFD_SLICE_FMT(guresid));
    if (nested || owner.len == 0 || like_date(owner))
        return HFD_SLICE("");
    return hfd_arena_printf(mem, "labels." HFD_OWNER_LABEL "='%.*s'", HFD_SLICE_FMT(owner));
}

/* ---- requests ---- */

static void make(struct choice *c, enum hfd_step step, enum hfd_remote_method method,
                 hfd_slice path, hfd_slice fleet_id)
{
    *c->out = (struct hfd_remote_request){.method = method,
                                          .path = path,
                                          .step = (int)step,
                                          .fleet_id = hfd_arena_dup(&c->pass->request, fleet_id)};
    c->made = true;
    if (path.p == NULL || c->out->fleet_id.p == NULL)
        c->rc = no_memory(c->err);
}

/* "/clusters/2abc", "/clusters/2abc/nodepools/2np1" */
static hfd_slice part_path(const struct choice *c, const struct hfd_pass_part *p, const char *rest)
{
    struct hfd_arena *mem = &c->pass->request;

    if (p->row.kind == HFD_KIND_CLUSTER)
        return hfd_arena_printf(mem, "/clusters/%.*s%s", HFD_SLICE_FMT(p->row.fleet_id), rest);
    if (p->fleet.owner_id.len == 0)
        return hfd_arena_printf(mem, "/nodepools/%.*s%s", HFD_SLICE_FMT(p->row.fleet_id), rest);
    return hfd_arena_printf(mem, "/clusters/%.*s/nodepools/%.*s%s",
                            HFD_SLICE_FMT(p->fleet.owner_id), HFD_SLICE_FMT(p->row.fleet_id), rest);
}

/* "/clusters" or a cluster's nodepools; all nodepools where the cluster is not known. */
static hfd_slice list_path(const struct choice *c, enum hfd_kind kind, hfd_slice owner_id,
                           hfd_slice query)
{
    struct hfd_arena *mem = &c->pass->request;

    if (query.p == NULL)
        return HFD_SLICE_NONE;
    if (kind == HFD_KIND_CLUSTER)
        return hfd_arena_printf(mem, "/clusters%.*s", HFD_SLICE_FMT(query));
    if (owner_id.len == 0)
        return hfd_arena_printf(mem, "/nodepools%.*s", HFD_SLICE_FMT(query));
    return hfd_arena_printf(mem, "/clusters/%.*s/nodepools%.*s", HFD_SLICE_FMT(owner_id),
                            HFD_SLICE_FMT(query));
}

static void ask_for(struct choice *c, const struct hfd_pass_part *p)
{
    make(c, HFD_STEP_GET, HFD_REMOTE_GET, part_path(c, p, ""), p->row.fleet_id);
}

static void find(struct choice *c, const struct hfd_pass_part *p)
{
    const bool nested = p->row.kind == HFD_KIND_NODEPOOL && p->fleet.owner_id.len > 0;
    const hfd_slice query = list_query(c->m->page, label_search(c, nested), &c->pass->request);

    make(c, HFD_STEP_FIND, HFD_REMOTE_GET, list_path(c, p->row.kind, p->fleet.owner_id, query),
         p->row.fleet_id);
}

static void find_name(struct choice *c, const struct hfd_pass_part *p)
{
    const hfd_slice search =
        like_date(p->fleet.name)
            ? HFD_SLICE("")
            : hfd_arena_printf(&c->pass->request, "name='%.*s'", HFD_SLICE_FMT(p->fleet.name));
    const hfd_slice query = list_query(c->m->page, search, &c->pass->request);

    make(c, HFD_STEP_FIND_NAME, HFD_REMOTE_GET, list_path(c, p->row.kind, p->fleet.owner_id, query),
         p->row.fleet_id);
}

static void list_pools(struct choice *c, const struct hfd_pass_part *cluster)
{
    const hfd_slice query = list_query(c->m->page, label_search(c, true), &c->pass->request);

    make(c, HFD_STEP_POOLS, HFD_REMOTE_GET,
         list_path(c, HFD_KIND_NODEPOOL, cluster->row.fleet_id, query), cluster->row.fleet_id);
}

static void ask_reports(struct choice *c, const struct hfd_pass_part *p)
{
    const hfd_slice query = list_query(c->m->page, HFD_SLICE(""), &c->pass->request);
    const hfd_slice path = part_path(c, p, "/statuses");

    make(c, HFD_STEP_REPORTS, HFD_REMOTE_GET,
         query.p != NULL && path.p != NULL
             ? hfd_arena_printf(&c->pass->request, "%.*s%.*s", HFD_SLICE_FMT(path),
                                HFD_SLICE_FMT(query))
             : HFD_SLICE_NONE,
         p->row.fleet_id);
}

/* The labels that are wanted, and whose they are. */
static void add_labels(const struct choice *c, struct hfd_buf *b, hfd_slice labels)
{
    const hfd_slice owner = c->pass->policy->owner;

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

/*
 * Keeps the body, and what it says is wanted: a later PUT may want something else before the answer
 * comes.
 */
static void say(struct choice *c, const struct hfd_pass_part *p, struct hfd_buf *b)
{
    struct hfd_pass *pass = c->pass;
    hfd_slice text;
    hfd_rc rc = hfd_buf_finish(b, &text, c->err);

    if (rc == HFD_OK) {
        c->out->body = hfd_arena_dup(&pass->request, text);
        pass->sent_spec = hfd_arena_dup(&pass->request, p->fleet.spec);
        pass->sent_labels = hfd_arena_dup(&pass->request, p->fleet.labels);
        if (c->out->body.p == NULL || pass->sent_spec.p == NULL || pass->sent_labels.p == NULL)
            rc = no_memory(c->err);
    }
    hfd_buf_fini(b);
    c->rc = c->rc == HFD_OK ? rc : c->rc;
}

static void create(struct choice *c, const struct hfd_pass_part *p)
{
    const bool cluster = p->row.kind == HFD_KIND_CLUSTER;
    struct hfd_buf b;

    make(c, HFD_STEP_POST, HFD_REMOTE_POST,
         cluster ? HFD_SLICE("/clusters")
                 : hfd_arena_printf(&c->pass->request, "/clusters/%.*s/nodepools",
                                    HFD_SLICE_FMT(p->fleet.owner_id)),
         p->row.fleet_id);
    hfd_buf_init(&b, BODY_MAX_BYTES);
    hfd_buf_addf(&b, "{\"kind\":\"%s\",\"name\":", cluster ? "Cluster" : "NodePool");
    hfd_buf_json_str(&b, p->fleet.name);
    hfd_buf_lit(&b, ",\"spec\":");
    hfd_buf_add(&b, p->fleet.spec);
    hfd_buf_lit(&b, ",\"labels\":");
    add_labels(c, &b, p->fleet.labels);
    hfd_buf_addc(&b, '}');
    say(c, p, &b);
}

/* What differs from what the remote was seen to have. */
static void change(struct choice *c, const struct hfd_pass_part *p, const struct hfd_seen *seen)
{
    const bool spec = !hfd_slice_eq(p->fleet.spec, seen->spec),
               labels = !hfd_slice_eq(p->fleet.labels, seen->labels);
    struct hfd_buf b;

    make(c, HFD_STEP_PATCH, HFD_REMOTE_PATCH, part_path(c, p, ""), p->row.fleet_id);
    hfd_buf_init(&b, BODY_MAX_BYTES);
    hfd_buf_addc(&b, '{');
    if (spec) {
        hfd_buf_lit(&b, "\"spec\":");
        hfd_buf_add(&b, p->fleet.spec);
    }
    if (labels) {
        hfd_buf_add(&b, spec ? HFD_SLICE(",\"labels\":") : HFD_SLICE("\"labels\":"));
        add_labels(c, &b, p->fleet.labels);
    }
    hfd_buf_addc(&b, '}');
    say(c, p, &b);
}

static void erase(struct choice *c, const struct hfd_pass_part *p)
{
    make(c, HFD_STEP_DELETE, HFD_REMOTE_DELETE, part_path(c, p, ""), p->row.fleet_id);
}

/* A list is what every HyperFleet has, whatever has gone. */
static void ask_voucher(struct choice *c)
{
    make(c, HFD_STEP_VOUCH, HFD_REMOTE_GET, HFD_SLICE("/clusters?page=1&size=1&pageSize=1"),
         HFD_SLICE(""));
}

/* ---- the order of steps ---- */

/* The resource's own cluster or nodepool has no id yet. */
static void begin(struct choice *c, const struct hfd_pass_part *own)
{
    if (own->fleet.owner_id.len > 0 && !hfd_backend_id_is_given(own->fleet.owner_id))
        return; /* its cluster is to be made first, and will say when it is */
    if (c->m->owner_asked)
        make(c, HFD_STEP_OWNER, HFD_REMOTE_GET,
             hfd_arena_printf(&c->pass->request, "/clusters/%.*s",
                              HFD_SLICE_FMT(own->fleet.owner_id)),
             own->row.fleet_id);
    else if (hfd_pass_noted(c->m->taken, own->row.fleet_id))
        find_name(c, own);
    else if (!c->m->sought || (c->m->unsent && c->s.up.goal != HFD_GOAL_MAKE))
        find(c, own);
    else if (c->s.up.goal == HFD_GOAL_MAKE)
        create(c, own);
}

/* Whether to look for the nodepools of a cluster resource. */
static bool has_pools(const struct choice *c)
{
    if (c->s.res.kind != HFD_KIND_CLUSTER)
        return false;
    for (size_t i = 0; i < c->s.count; i++)
        if (c->s.parts[i].row.kind == HFD_KIND_NODEPOOL)
            return true;
    return c->s.up.goal == HFD_GOAL_ADOPT;
}

/* Nodepools that the list did not show are asked for: only that tells whether they are gone. */
static void observe_rest(struct choice *c)
{
    const struct hfd_pass_part *p = hfd_pass_first_unseen(&c->s, c->m);

    if (p != NULL)
        ask_for(c, p);
}

static void delete_leaving(struct choice *c)
{
    for (size_t i = 0; !c->made && i < c->s.count; i++) {
        const struct hfd_pass_part *p = &c->s.parts[i];
        const struct hfd_seen *seen = hfd_pass_seen(c->m, p->row.fleet_id);

        if (p->exists && p->row.leaving && seen != NULL && !seen->deleting &&
            !hfd_pass_noted(c->m->deleted, p->row.fleet_id))
            erase(c, p);
    }
}

/* A part that the remote has not taken as it is wanted. */
static void carry_out(struct choice *c, const struct hfd_pass_part *p)
{
    const struct hfd_seen *seen = hfd_pass_seen(c->m, p->row.fleet_id);

    if (!hfd_backend_id_is_given(p->row.fleet_id)) {
        if (hfd_pass_noted(c->m->taken, p->row.fleet_id))
            find_name(c, p);
        else
            create(c, p);
    } else if (seen == NULL ||
               (!seen->deleting && hfd_observe_equal(p, seen->spec, seen->labels))) {
        ask_for(c, p); /* it was asked for anew since it was seen, and is there already: what it
                          says is taken */
    } else if (!seen->deleting) {
        change(c, p, seen);
    }
}

static void carry_out_all(struct choice *c)
{
    for (size_t i = 0; !c->made && i < c->s.count; i++) {
        const struct hfd_pass_part *p = &c->s.parts[i];

        if (p->exists && p->row.pending && !p->row.leaving && p->fleet.deleted_us == 0)
            carry_out(c, p);
    }
}

static void observe_reports(struct choice *c, const struct hfd_held *list)
{
    const struct hfd_pass_part *p = hfd_pass_first_held(&c->s, list);

    if (!c->made && p != NULL)
        ask_reports(c, p);
}

/*
 * The order of README.md. A cluster that is being deleted is not worked on any more, but seen to
 * its end.
 */
static void choose(struct choice *c)
{
    const struct hfd_pass_part *own = c->s.own;
    const struct hfd_seen *seen;

    if (own == NULL || !own->exists)
        return;
    if (!hfd_backend_id_is_given(own->row.fleet_id)) {
        begin(c, own);
        return;
    }
    seen = hfd_pass_seen(c->m, own->row.fleet_id);
    if (seen == NULL)
        ask_for(c, own);
    else if (c->s.up.goal == HFD_GOAL_DELETE && !seen->deleting &&
             !hfd_pass_noted(c->m->deleted, own->row.fleet_id))
        erase(c, own);
    else if (has_pools(c) && !c->m->pools_known)
        list_pools(c, own);
    observe_reports(c, c->m->worse);
    if (!c->made)
        observe_rest(c);
    if (!c->made && c->s.up.goal == HFD_GOAL_MAKE && !seen->deleting) {
        delete_leaving(c);
        carry_out_all(c);
    }
    observe_reports(c, c->m->held);
}

/*
 * A look at many: first clusters, then nodepools, that carry our owner's label and are not ready.
 */
static hfd_rc choose_many(struct hfd_txn *tx, struct choice *c)
{
    struct hfd_arena *mem = &c->pass->request;
    struct hfd_remote_list first;
    hfd_slice search, query;
    hfd_rc rc = hfd_remote_row_due(tx, &(struct hfd_remote_due){HFD_WATCHED_CLOSELY, INT64_MAX, 1},
                                   mem, &first, c->err);

    if (rc != HFD_OK || first.count == 0)
        return rc;
    search = hfd_arena_printf(
        mem, "labels." HFD_OWNER_LABEL "='%.*s' and status.conditions.%s='False'",
        HFD_SLICE_FMT(c->pass->policy->owner), first.rows[0].later_names ? "Reconciled" : "Ready");
    query = list_query(c->m->page, search, mem);
    make(c, HFD_STEP_MANY, HFD_REMOTE_GET,
         list_path(c, c->m->many_pools ? HFD_KIND_NODEPOOL : HFD_KIND_CLUSTER, HFD_SLICE_NONE,
                   query),
         HFD_SLICE(""));
    return c->rc;
}

/* Clusters, then nodepools, that carry our owner's label. */
static void choose_orphans(struct choice *c)
{
    struct hfd_arena *mem = &c->pass->request;
    const hfd_slice owner = c->pass->policy->owner;
    const hfd_slice search =
        like_date(owner)
            ? HFD_SLICE("")
            : hfd_arena_printf(mem, "labels." HFD_OWNER_LABEL "='%.*s'", HFD_SLICE_FMT(owner));
    const hfd_slice query = list_query(c->m->page, search, mem);

    if (owner.len > 0)
        make(c, HFD_STEP_ORPHANS, HFD_REMOTE_GET,
             list_path(c, c->m->many_pools ? HFD_KIND_NODEPOOL : HFD_KIND_CLUSTER, HFD_SLICE_NONE,
                       query),
             HFD_SLICE(""));
}

/* One orphan is looked at; deleted, when that has just shown that it may be; and looked at again.
 */
static hfd_rc choose_orphan(struct hfd_txn *tx, struct choice *c, struct hfd_arena *mem)
{
    struct hfd_remote_orphan_row row;
    struct hfd_pass_part part;
    hfd_rc rc = hfd_remote_orphan_row_get(tx, c->pass->work.orphan, mem, &row, c->err);

    if (rc != HFD_OK)
        return rc == HFD_NOT_FOUND ? HFD_OK : rc;
    part = (struct hfd_pass_part){.row = {.kind = row.orphan.kind, .fleet_id = row.orphan.id}};
    part.fleet.owner_id = row.orphan.owner_id;
    make(c, c->m->confirmed ? HFD_STEP_ORPHAN_DELETE : HFD_STEP_ORPHAN_GET,
         c->m->confirmed ? HFD_REMOTE_DELETE : HFD_REMOTE_GET, part_path(c, &part, ""),
         row.orphan.id);
    return c->rc;
}

/* Work on one resource, or on one orphan. */
static hfd_rc choose_one(struct hfd_txn *tx, struct choice *c)
{
    struct hfd_arena mem;
    bool found;
    hfd_rc rc;

    hfd_arena_init(&mem, HFD_MIRROR_SCRATCH_MAX_BYTES);
    if (c->pass->work.orphan.len > 0) {
        rc = choose_orphan(tx, c, &mem);
    } else {
        rc = hfd_pass_rows_load(tx, c->pass->work.guresid, &mem, &c->s, &found, c->err);
        if (rc == HFD_OK && found)
            choose(c);
    }
    hfd_arena_fini(&mem);
    return rc;
}

hfd_rc hfd_pass_next(struct hfd_txn *tx, struct hfd_pass *pass, int64_t now_us,
                     struct hfd_remote_request *out, bool *done, struct hfd_err *err)
{
    struct choice c = {.pass = pass, .m = &pass->now, .out = out, .err = err, .rc = HFD_OK};
    hfd_rc rc = HFD_OK;

    HFD_CHECK_OBJ(pass, HFD_PASS_MAGIC);
    *out = (struct hfd_remote_request){.step = 0};
    *done = true;
    pass->now = pass->then;
    if (pass->now.began_us == 0)
        pass->now.began_us = pass->then.began_us = now_us;
    if (pass->now.over)
        return HFD_OK;
    hfd_arena_fini(&pass->request);
    if (pass->now.doubted && !pass->now.vouched)
        ask_voucher(&c);
    else if (pass->work.guresid.len == 0)
        rc = choose_many(tx, &c);
    else if (pass->work.orphan.len == 0 && hfd_slice_eq(pass->work.guresid, HFD_REMOTE_ORPHANS))
        choose_orphans(&c);
    else
        rc = choose_one(tx, &c);
    rc = rc == HFD_OK ? c.rc : rc;
    *done = rc != HFD_OK || !c.made;
    if (!*done && out->step == HFD_STEP_POST)
        pass->now.unsent = false;
    return rc;
}
