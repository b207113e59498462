/* See request.h. Source: HyperFleet API. */
#include "driver/backend/remote/request.h"

#include <stdio.h>

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
static hfd_slice list_query(const struct hfd_request_maker *k, hfd_slice search)
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
static hfd_slice label_search(const struct hfd_request_maker *k, bool nested)
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

static void make(struct hfd_request_maker *k, enum hfd_pass_step step,
                 enum hfd_remote_method method, hfd_slice path, hfd_slice fleet_id)
{
    *k->out = (struct hfd_remote_request){.method = method,
                                          .path = path,
                                          .step = (int)step,
                                          .fleet_id = hfd_arena_dup(&k->pass->request, fleet_id)};
    if (path.p == NULL || k->out->fleet_id.p == NULL)
        k->rc = hfd_fail_nomem(k->err, "make a request to HyperFleet");
}

/* A list about another part than before begins at its first page. */
static void begin_list(struct hfd_request_maker *k, hfd_slice of)
{
    struct hfd_pass_list *list = hfd_pass_list(k->m);

    if (list->of.p != NULL && hfd_slice_eq(list->of, of))
        return;
    *list = (struct hfd_pass_list){.of = hfd_arena_dup(&k->pass->mem, of)};
    if (list->of.p == NULL)
        k->rc = hfd_fail_nomem(k->err, "make a request to HyperFleet");
}

/* "/clusters/2abc", "/clusters/2abc/nodepools/2np1" */
static hfd_slice part_path(const struct hfd_request_maker *k, const struct hfd_pass_part *p,
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
static hfd_slice list_path(const struct hfd_request_maker *k, enum hfd_kind kind,
                           hfd_slice owner_id, hfd_slice query)
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

void hfd_request_get(struct hfd_request_maker *k, const struct hfd_pass_part *p)
{
    make(k, HFD_STEP_GET, HFD_REMOTE_GET, part_path(k, p, ""), p->row.fleet_id);
}

void hfd_request_find(struct hfd_request_maker *k, const struct hfd_pass_part *p)
{
    const bool nested = p->row.kind == HFD_KIND_NODEPOOL && p->fleet.owner_id.len > 0;
    hfd_slice query;

    begin_list(k, p->row.fleet_id);
    query = list_query(k, label_search(k, nested));
    make(k, HFD_STEP_FIND, HFD_REMOTE_GET, list_path(k, p->row.kind, p->fleet.owner_id, query),
         p->row.fleet_id);
}

void hfd_request_find_name(struct hfd_request_maker *k, const struct hfd_pass_part *p)
{
    const hfd_slice search =
        like_date(p->fleet.name)
            ? HFD_SLICE("")
            : hfd_arena_printf(&k->pass->request, "name='%.*s'", HFD_SLICE_FMT(p->fleet.name));
    hfd_slice query;

    begin_list(k, p->row.fleet_id);
    query = list_query(k, search);
    make(k, HFD_STEP_FIND_NAME, HFD_REMOTE_GET, list_path(k, p->row.kind, p->fleet.owner_id, query),
         p->row.fleet_id);
}

void hfd_request_owner(struct hfd_request_maker *k, const struct hfd_pass_part *p)
{
    make(k, HFD_STEP_OWNER, HFD_REMOTE_GET,
         hfd_arena_printf(&k->pass->request, "/clusters/%.*s", HFD_SLICE_FMT(p->fleet.owner_id)),
         p->row.fleet_id);
}

void hfd_request_pools(struct hfd_request_maker *k, const struct hfd_pass_part *cluster)
{
    hfd_slice query;

    begin_list(k, cluster->row.fleet_id);
    query = list_query(k, label_search(k, true));
    make(k, HFD_STEP_POOLS, HFD_REMOTE_GET,
         list_path(k, HFD_KIND_NODEPOOL, cluster->row.fleet_id, query), cluster->row.fleet_id);
}

void hfd_request_reports(struct hfd_request_maker *k, const struct hfd_pass_part *p)
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
static void add_labels(const struct hfd_request_maker *k, struct hfd_buf *b, hfd_slice labels)
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
static void set_body(struct hfd_request_maker *k, const struct hfd_pass_part *p, struct hfd_buf *b)
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

void hfd_request_post(struct hfd_request_maker *k, const struct hfd_pass_part *p)
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

void hfd_request_patch(struct hfd_request_maker *k, const struct hfd_pass_part *p,
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

void hfd_request_delete(struct hfd_request_maker *k, const struct hfd_pass_part *p)
{
    make(k, HFD_STEP_DELETE, HFD_REMOTE_DELETE, part_path(k, p, ""), p->row.fleet_id);
}

void hfd_request_check_route(struct hfd_request_maker *k)
{
    make(k, HFD_STEP_CHECK_ROUTE, HFD_REMOTE_GET, HFD_SLICE("/clusters?page=1&size=1&pageSize=1"),
         HFD_SLICE(""));
}

void hfd_request_many(struct hfd_request_maker *k, enum hfd_kind kind, bool later_names)
{
    const hfd_slice search = hfd_arena_printf(
        &k->pass->request, "labels." HFD_OWNER_LABEL "='%.*s' and status.conditions.%s='False'",
        HFD_SLICE_FMT(k->pass->policy->owner), later_names ? "Reconciled" : "Ready");

    make(k, HFD_STEP_MANY, HFD_REMOTE_GET,
         list_path(k, kind, HFD_SLICE_NONE, list_query(k, search)), HFD_SLICE(""));
}

void hfd_request_search(struct hfd_request_maker *k, enum hfd_kind kind)
{
    const hfd_slice owner = k->pass->policy->owner;
    const hfd_slice search =
        like_date(owner) ? HFD_SLICE("")
                         : hfd_arena_printf(&k->pass->request, "labels." HFD_OWNER_LABEL "='%.*s'",
                                            HFD_SLICE_FMT(owner));

    make(k, HFD_STEP_SEARCH, HFD_REMOTE_GET,
         list_path(k, kind, HFD_SLICE_NONE, list_query(k, search)), HFD_SLICE(""));
}

void hfd_request_orphan(struct hfd_request_maker *k, enum hfd_remote_method method,
                        const struct hfd_orphan_row *orphan)
{
    struct hfd_pass_part part = {.row = {.kind = orphan->kind, .fleet_id = orphan->id}};

    part.fleet.owner_id = orphan->owner_id;
    make(k, method == HFD_REMOTE_DELETE ? HFD_STEP_ORPHAN_DELETE : HFD_STEP_ORPHAN_GET, method,
         part_path(k, &part, ""), orphan->id);
}
