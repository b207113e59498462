/* See fleet.h. */
#include "driver/adapters/hypershift/fleet.h"

#include "driver/adapters/hypershift/report.h"
#include "driver/core/transition.h"
#include "driver/core/output.h"
#include "driver/fleet/report.h"
#include "store/rows_due.h"
#include "store/rows_resource.h"

#define MEM_BYTES ((size_t)64 << 20)

static hfd_rc store(struct hfd_txn *tx, void *arg, struct hfd_err *err);

static hfd_rc open_reader(void *arg, struct hfd_err *err)
{
    struct hfd_hs_fleet_store *f = arg;

    f->news = (struct hfd_news){.store = f->store};
    return hfd_store_reader_open(f->store, &f->news.reader, err);
}

static void close_reader(void *arg)
{
    struct hfd_hs_fleet_store *f = arg;

    hfd_store_reader_close(&f->news.reader);
}

static hfd_rc look(void *arg, const struct hfd_news_look *want, struct hfd_err *err)
{
    struct hfd_hs_fleet_store *f = arg;

    return hfd_news_read(&f->news, want, err);
}

/* ---- one resource ---- */

/* A resource to read. */
struct visit {
    struct hfd_hs_fleet_store *fleet;
    struct hfd_hs_work *work;
    hfd_slice id;
};

static hfd_rc parse(hfd_slice text, json_t **out, struct hfd_err *err)
{
    return hfd_json_parse(text, out, err);
}

/* Replaces a document of the work: a transaction function may run again. */
static hfd_rc read_json(json_t **doc, hfd_slice text, struct hfd_err *err)
{
    json_decref(*doc);
    *doc = NULL;
    return parse(text, doc, err);
}

static hfd_rc read_cluster(struct hfd_txn *tx, struct hfd_hs_work *w, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    w->cluster = w->row;
    w->has_cluster = true;
    if (w->row.kind == HFD_KIND_NODEPOOL)
        rc = hfd_fleet_row_get(tx, w->row.owner_id, w->mem, &w->cluster, err);
    if (rc == HFD_NOT_FOUND) {
        w->has_cluster = false;
        return HFD_OK;
    }
    return rc == HFD_OK ? read_json(&w->cluster_spec, w->cluster.spec, err) : rc;
}

static hfd_rc pool_wants_nodes(struct hfd_txn *tx, hfd_slice id, bool *yes, struct hfd_err *err)
{
    struct hfd_fleet_row row;
    struct hfd_arena scratch;
    json_t *spec = NULL;
    hfd_rc rc;

    hfd_arena_init(&scratch, (size_t)8 << 20);
    rc = hfd_fleet_row_get(tx, id, &scratch, &row, err);
    if (rc == HFD_OK)
        rc = parse(row.spec, &spec, err);
    if (rc == HFD_OK)
        *yes = row.deleted_us == 0 && hfd_hs_pool_wants_nodes(spec);
    json_decref(spec);
    hfd_arena_fini(&scratch);
    return rc;
}

static hfd_rc read_children(struct hfd_txn *tx, struct hfd_hs_work *w, struct hfd_err *err)
{
    struct hfd_fleet_list children;
    hfd_rc rc;

    w->wants_nodes = false;
    w->has_children = false;
    if (w->row.kind != HFD_KIND_CLUSTER)
        return HFD_OK;
    rc = hfd_fleet_row_children(tx, w->row.id, w->mem, &children, err);
    w->has_children = rc == HFD_OK && children.count > 0;
    for (size_t i = 0; rc == HFD_OK && !w->wants_nodes && i < children.count; i++)
        rc = pool_wants_nodes(tx, children.rows[i].id, &w->wants_nodes, err);
    return rc;
}

static hfd_rc read_report(struct hfd_txn *tx, const struct hfd_hs_work *w, const char *adapter,
                          struct hfd_report_row *out, struct hfd_err *err)
{
    const struct hfd_report_key key = {w->row.id, hfd_slice_of(adapter)};
    hfd_rc rc = hfd_report_row_get(tx, &key, w->mem, out, err);

    if (rc != HFD_NOT_FOUND)
        return rc;
    *out = (struct hfd_report_row){.adapter = HFD_SLICE("")};
    return HFD_OK;
}

static hfd_rc read_reports(struct hfd_txn *tx, const struct visit *v, struct hfd_err *err)
{
    struct hfd_hs_work *w = v->work;
    hfd_rc rc = read_report(tx, w, HFD_HS_ADAPTER, &w->prev, err);

    if (rc == HFD_OK)
        rc = read_report(tx, w, HFD_HS_VALIDATION, &w->prev_validation, err);
    w->prev_secrets = HFD_SLICE("");
    if (rc == HFD_OK)
        rc = read_json(
            &w->prev_data,
            w->prev.adapter.len > 0 && w->prev.data.len > 0 ? w->prev.data : HFD_SLICE("{}"), err);
    if (rc == HFD_OK && w->prev.adapter.len > 0 && w->prev.secrets.len > 0 &&
        hfd_report_secrets_open(v->fleet->driver, &w->prev, w->mem, &w->prev_secrets) != HFD_OK)
        w->prev_secrets = HFD_SLICE(""); /* a key is missing: they are sealed anew */
    return rc;
}

/* The GUResID of the resource that the cluster or nodepool is a part of, and its secrets. */
static hfd_rc read_order(struct hfd_txn *tx, const struct visit *v, struct hfd_err *err)
{
    struct hfd_hs_work *w = v->work;
    const struct hfd_ctx c = {.tx = tx, .driver = v->fleet->driver, .mem = w->mem, .err = err};
    struct hfd_resource_row res;
    struct hfd_part_row part;
    hfd_slice plain;
    hfd_rc rc = hfd_part_row_by_fleet(tx, w->row.id, w->mem, &part, err);

    if (rc != HFD_OK && rc != HFD_NOT_FOUND)
        return rc;
    w->source.guresid = rc == HFD_OK ? part.guresid : HFD_SLICE("");
    if (rc == HFD_OK)
        rc = hfd_resource_row_get(tx, part.guresid, w->mem, &res, err);
    if (rc != HFD_OK && rc != HFD_NOT_FOUND)
        return rc;
    w->deadline_us = rc == HFD_OK ? res.op_deadline_us : 0;
    rc = hfd_order_secrets_open(&c, w->source.guresid, &plain);
    return rc == HFD_OK ? read_json(&w->secrets, plain, err) : rc;
}

static hfd_rc load(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    const struct visit *visit = arg;
    struct hfd_hs_work *w = visit->work;
    hfd_rc rc = hfd_fleet_row_get(tx, visit->id, w->mem, &w->row, err);

    if (rc == HFD_OK)
        rc = read_cluster(tx, w, err);
    if (rc == HFD_OK && w->row.kind == HFD_KIND_NODEPOOL)
        rc = read_json(&w->pool_spec, w->row.spec, err);
    if (rc == HFD_OK)
        rc = read_children(tx, w, err);
    if (rc == HFD_OK)
        rc = read_reports(tx, visit, err);
    if (rc == HFD_OK)
        rc = hfd_hs_read_validated(w, err);
    return rc == HFD_OK ? read_order(tx, visit, err) : rc;
}

static hfd_rc load_row(void *arg, struct hfd_hs_work *w, hfd_slice id, struct hfd_err *err)
{
    struct hfd_hs_fleet_store *f = arg;
    struct visit v = {f, w, id};
    hfd_rc rc = hfd_store_read(f->news.reader, load, &v, err);

    if (rc != HFD_OK)
        return rc;
    hfd_keeper_hold(f->keeper, &f->hold);
    if (f->hold.leads)
        return HFD_OK;
    f->seen.leads = false;
    return hfd_fail(err, HFD_CONFLICT, "another replica leads");
}

/* True when it leads and did not at the last look, or left a visit to another one since. */
static bool has_gained(void *arg)
{
    struct hfd_hs_fleet_store *f = arg;
    const bool led = f->seen.leads;

    hfd_keeper_hold(f->keeper, &f->seen);
    return f->seen.leads && !led;
}

static hfd_rc read_row(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    const struct visit *visit = arg;
    struct hfd_fleet_row row;
    hfd_rc rc = hfd_fleet_row_get(tx, visit->id, visit->work->mem, &row, err);

    if (rc == HFD_OK && (row.generation != visit->work->row.generation ||
                         row.deleted_us != visit->work->row.deleted_us))
        return HFD_CONFLICT;
    return rc;
}

static bool is_current(void *arg, struct hfd_hs_work *w)
{
    struct visit v = {arg, w, w->row.id};
    const struct hfd_arena_mark mark = hfd_arena_mark(w->mem);
    const hfd_rc rc = hfd_store_read(v.fleet->news.reader, read_row, &v, NULL);

    hfd_arena_rewind(w->mem, mark);
    return rc == HFD_OK && hfd_keeper_holds(v.fleet->keeper, &v.fleet->hold);
}

/* ---- storing ---- */

/* A job of the writer. */
struct storing {
    const struct hfd_hs_fleet_store *fleet;
    struct hfd_hs_work *w;
    const struct hfd_hs_reports *reports;
    bool left; /* to another replica, which reports now */
};

static hfd_rc store_one(struct hfd_txn *tx, const struct storing *s, const struct hfd_hs_report *r,
                        struct hfd_err *err)
{
    struct hfd_hs_work *w = s->w;
    const struct hfd_report_row *prev = hfd_hs_report_previous(w, r);
    struct hfd_condition conditions[HFD_HS_CONDITIONS_MAX];
    const int64_t floor_us = prev->adapter.len > 0 ? prev->observed_us : 0;
    const struct hfd_fleet_report report = {
        .target = {w->row.kind, w->row.owner_id, w->row.id},
        .adapter = hfd_slice_of(r->adapter),
        .observed_generation = r->generation,
        .observed_us = w->now_us > floor_us ? w->now_us : floor_us,
        .conditions = {conditions, hfd_hs_report_conditions(w, r, conditions)},
        .data = r->data.text,
        .objects = r->data.objects,
        .secrets = r->data.secrets.len > 0 ? r->data.secrets : HFD_SLICE_NONE,
    };
    struct hfd_arena mem;
    struct hfd_fleet_changes changes = {.mem = &mem};
    const struct hfd_fleet_call call = {.fleet = &s->fleet->driver->fleet,
                                        .now_us = w->now_us,
                                        .caller = HFD_SLICE("hypershift@hyperfleet.local"),
                                        .mem = &mem,
                                        .changes = &changes};
    struct hfd_fleet_reported stored;
    hfd_rc rc;

    hfd_arena_init(&mem, MEM_BYTES);
    rc = hfd_fleet_report(tx, &call, &report, &stored, err);
    if (rc == HFD_OK)
        rc = hfd_resource_observe(tx, s->fleet->driver, &call, err);
    hfd_arena_fini(&mem);
    /* Removed meanwhile, perhaps by the report before. */
    return rc == HFD_NOT_FOUND ? HFD_OK : rc;
}

static hfd_rc store(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct storing *s = arg;
    hfd_rc rc = hfd_keeper_check(s->fleet->keeper, tx, &s->fleet->hold, err);

    s->left = rc == HFD_CONFLICT;
    if (s->left)
        return HFD_OK;
    for (size_t i = 0; rc == HFD_OK && i < s->reports->count; i++)
        rc = store_one(tx, s, &s->reports->items[i], err);
    return rc;
}

/* True if the stored report says the same. A report from before the operation is sent again. */
static bool is_known(struct hfd_hs_work *w, const struct hfd_hs_report *r)
{
    const struct hfd_report_row *prev = hfd_hs_report_previous(w, r);
    struct hfd_condition conditions[HFD_HS_CONDITIONS_MAX];
    const struct hfd_conditions all = {conditions, hfd_hs_report_conditions(w, r, conditions)};
    const bool secret = strcmp(r->adapter, HFD_HS_ADAPTER) == 0;
    struct hfd_buf b;
    bool same;

    if (prev->adapter.len == 0 || prev->received_us == 0 ||
        prev->observed_generation != r->generation || !hfd_slice_eq(prev->data, r->data.text) ||
        (secret && !hfd_slice_eq(w->prev_secrets, r->data.secrets)))
        return false;
    hfd_buf_init(&b, MEM_BYTES);
    hfd_conditions_format(&b, &all, true);
    same = b.rc == HFD_OK && hfd_slice_eq(hfd_buf_slice(&b), prev->conditions);
    hfd_buf_fini(&b);
    return same;
}

static hfd_rc send(void *arg, struct hfd_hs_work *w, const struct hfd_hs_reports *reports,
                   struct hfd_err *err)
{
    struct hfd_hs_fleet_store *f = arg;
    struct hfd_hs_reports news = {.count = 0};
    struct storing s = {f, w, &news, false};
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; i < reports->count; i++)
        if (!is_known(w, &reports->items[i]))
            news.items[news.count++] = reports->items[i];
    if (news.count > 0)
        rc = hfd_store_update_wait(f->store, store, &s, err);
    f->seen.leads = f->seen.leads && !s.left;
    return rc;
}

struct respec {
    const struct hfd_hs_fleet_store *fleet;
    struct hfd_hs_work *w;
    hfd_slice spec;
};

static hfd_rc write_spec(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    const struct respec *r = arg;
    struct hfd_fleet_row row;
    struct hfd_arena mem;
    hfd_rc rc = hfd_keeper_check(r->fleet->keeper, tx, &r->fleet->hold, err);

    if (rc != HFD_OK)
        return rc == HFD_CONFLICT ? HFD_OK : rc;
    hfd_arena_init(&mem, MEM_BYTES);
    rc = hfd_fleet_row_get(tx, r->w->row.id, &mem, &row, err);
    if (rc == HFD_OK && row.generation == r->w->row.generation) {
        row.spec = r->spec;
        row.generation++;
        rc = hfd_due_next(tx, &row.due_seq, err);
        if (rc == HFD_OK)
            rc = hfd_fleet_row_update(tx, &row, err);
    }
    hfd_arena_fini(&mem);
    return rc == HFD_NOT_FOUND ? HFD_OK : rc;
}

static hfd_rc set_spec(void *arg, struct hfd_hs_work *w, hfd_slice spec, struct hfd_err *err)
{
    struct hfd_hs_fleet_store *f = arg;
    struct respec r = {f, w, spec};

    return hfd_store_update_wait(f->store, write_spec, &r, err);
}

const struct hfd_hs_fleet_ops hfd_hs_fleet_store_ops = {
    .embedded = true,
    .open = open_reader,
    .close = close_reader,
    .look = look,
    .load = load_row,
    .is_current = is_current,
    .send = send,
    .set_spec = set_spec,
    .has_gained = has_gained,
};
