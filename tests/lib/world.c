/* See world.h. */
#include "tests/lib/world.h"

#include "driver/core/keyring.h"
#include "driver/core/transition.h"
#include "tests/lib/place.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "driver/backend/backend.h"
#include "driver/base/base.h"
#include "store/rows_fleet.h"
#include "store/rows_resource.h"
#include "store/search.h"

static const hfd_slice cluster_adapters[] = {HFD_SLICE("validation"), HFD_SLICE("dns")};
static const hfd_slice nodepool_adapters[] = {HFD_SLICE("validation")};
static const hfd_slice cluster_types[] = {HFD_SLICE("hyperfleet-cluster")};
static const hfd_slice nodepool_types[] = {HFD_SLICE("hyperfleet-nodepool")};
static const hfd_slice terminal[] = {HFD_SLICE("InvalidConfiguration")};

hfd_rc world_start(struct world *w)
{
    const struct hfd_store_config config = {.place = test_place(w->dir)};
    hfd_rc rc = hfd_store_open(&config, &w->store, &w->err);

    if (rc == HFD_OK)
        rc = hfd_store_reader_open(w->store, &w->reader, &w->err);
    if (rc != HFD_OK)
        world_stop(w);
    return rc;
}

static void open_store(struct world *w)
{
    if (world_start(w) != HFD_OK)
        fail_msg("%s", w->err.msg);
}

void world_init(struct world *w)
{
    *w = (struct world){0};
    assert_int_equal(hfd_base_init(&w->err), HFD_OK);
    tmpdir_make(w->base);
    (void)snprintf(w->dir, sizeof(w->dir), "%s/data", w->base);
    test_clock_init(&w->clock);
    test_rng_init(&w->rng, 1);
    hfd_arena_init(&w->mem, (size_t)256 * 1024 * 1024);
    assert_int_equal(hfd_keyring_fixed(7, &w->ring, &w->err), HFD_OK);
    w->driver = (struct hfd_driver){
        .fleet = {.rng = &w->rng.rng},
        .rules = {.cluster_types = cluster_types,
                  .cluster_type_count = 1,
                  .nodepool_types = nodepool_types,
                  .nodepool_type_count = 1},
        .ring = w->ring,
        .rng = &w->rng.rng,
        .terminal_reasons = terminal,
        .terminal_reason_count = 1,
        .backend = HFD_SLICE("embedded"),
        .backend_ops = &hfd_backend_embedded,
    };
    w->driver.fleet.required[HFD_KIND_CLUSTER] = (struct hfd_adapter_names){cluster_adapters, 2};
    w->driver.fleet.required[HFD_KIND_NODEPOOL] = (struct hfd_adapter_names){nodepool_adapters, 1};
    w->driver.fleet.due_keep_us = 24 * 3600 * HFD_US_PER_S;
    w->driver.fleet.tombstone_us = 7 * 24 * 3600 * HFD_US_PER_S;
    for (int op = 0; op < HFD_OP_COUNT; op++)
        for (int kind = HFD_KIND_CLUSTER; kind <= HFD_KIND_NODEPOOL; kind++) {
            w->driver.estimate_us[op] = 600 * HFD_US_PER_S;
            w->driver.deadline_us[kind][op] = 3600 * HFD_US_PER_S;
        }
    hfd_driver_complete(&w->driver);
}

void world_open(struct world *w)
{
    world_init(w);
    open_store(w);
}

void world_stop(struct world *w)
{
    hfd_store_reader_close(&w->reader);
    hfd_store_close(&w->store);
}

void world_close(struct world *w)
{
    world_stop(w);
    hfd_keyring_free(w->ring);
    hfd_arena_fini(&w->mem);
    tmpdir_remove(w->base);
}

int world_setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));

    assert_non_null(w);
    world_open(w);
    *state = w;
    return 0;
}

int world_teardown(void **state)
{
    world_close(*state);
    free(*state);
    return 0;
}

void world_restart(struct world *w)
{
    world_stop(w);
    open_store(w);
}

int64_t world_now(const struct world *w)
{
    return hfd_clock_wall_us(w->now != NULL ? w->now : &w->clock.clock);
}

void world_lose(struct world *w)
{
    world_stop(w);
    test_place_remove(w->dir);
    open_store(w);
}

/* ---- the driver contract ---- */

typedef hfd_rc resource_fn(struct hfd_txn *tx, const struct hfd_call *call,
                           struct hfd_answer_doc *out, struct hfd_err *err);

struct step {
    resource_fn *fn;
    const struct hfd_call *call;
    struct hfd_answer_doc *out;
};

static hfd_rc txn_step(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct step *s = arg;

    return s->fn(tx, s->call, s->out, err);
}

static struct hfd_call call_of(struct world *w, const char *guresid, const char *cookie)
{
    return (struct hfd_call){
        .driver = &w->driver,
        .now_us = world_now(w),
        .caller = HFD_SLICE("tester@example.com"),
        .guresid = hfd_slice_of(guresid),
        .only = w->only,
        .cookie = hfd_slice_of(cookie),
        .mem = &w->mem,
    };
}

static hfd_rc peek(struct world *w, resource_fn *fn, const struct hfd_call *call,
                   struct hfd_answer_doc *out)
{
    struct step s = {fn, call, out};

    return hfd_store_read(w->reader, txn_step, &s, &w->err);
}

static hfd_rc update(struct world *w, resource_fn *fn, const struct hfd_call *call,
                     struct hfd_answer_doc *out)
{
    struct step s = {fn, call, out};

    return hfd_store_update_wait(w->store, txn_step, &s, &w->err);
}

hfd_rc world_put(struct world *w, const char *guresid, const char *body, const char *cookie,
                 struct hfd_answer_doc *out)
{
    struct hfd_call call = call_of(w, guresid, cookie);
    struct hfd_input input;
    hfd_rc rc;

    call.body = hfd_slice_of(body);
    rc = peek(w, hfd_resource_put_peek, &call, out);
    if (rc != HFD_OK || out->decided)
        return rc;
    rc = hfd_input_parse(&(struct hfd_input_source){&w->driver.rules, call.guresid, 0, call.body},
                         &w->mem, &input, &w->err);
    if (rc != HFD_OK)
        return rc;
    call.input = &input;
    return update(w, hfd_resource_put, &call, out);
}

hfd_rc world_get(struct world *w, const char *guresid, const char *cookie,
                 struct hfd_answer_doc *out)
{
    const struct hfd_call call = call_of(w, guresid, cookie);
    hfd_rc rc;

    rc = peek(w, hfd_resource_get, &call, out);
    if (rc != HFD_OK || out->decided)
        return rc;
    return update(w, hfd_resource_get_restored, &call, out);
}

hfd_rc world_delete(struct world *w, const char *guresid, const char *cookie,
                    struct hfd_answer_doc *out)
{
    const struct hfd_call call = call_of(w, guresid, cookie);
    hfd_rc rc;

    rc = peek(w, hfd_resource_delete_peek, &call, out);
    if (rc != HFD_OK || out->decided)
        return rc;
    return update(w, hfd_resource_delete, &call, out);
}

static void assert_answered(const struct world *w, const char *call, hfd_rc rc)
{
    if (rc != HFD_OK)
        fail_msg("%s: %s: %s: %s", call, hfd_rc_name(rc), w->err.field, w->err.msg);
}

struct hfd_answer_doc world_put_ok(struct world *w, const char *guresid, const char *body,
                                   const char *cookie)
{
    struct hfd_answer_doc doc;

    assert_answered(w, "PUT", world_put(w, guresid, body, cookie, &doc));
    return doc;
}

struct hfd_answer_doc world_get_ok(struct world *w, const char *guresid, const char *cookie)
{
    struct hfd_answer_doc doc;

    assert_answered(w, "GET", world_get(w, guresid, cookie, &doc));
    return doc;
}

struct hfd_answer_doc world_delete_ok(struct world *w, const char *guresid, const char *cookie)
{
    struct hfd_answer_doc doc;

    assert_answered(w, "DELETE", world_delete(w, guresid, cookie, &doc));
    return doc;
}

/* ---- HyperFleet ---- */

struct lookup {
    struct hfd_arena *mem;
    enum hfd_kind kind;
    hfd_slice name;
    hfd_slice id;
    struct hfd_fleet_row row;
    struct hfd_fleet_list list;
    struct hfd_part_list parts;
    struct hfd_resource_row resource;
};

static hfd_rc txn_by_id(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct lookup *l = arg;

    return hfd_fleet_row_get(tx, l->id, l->mem, &l->row, err);
}

static hfd_rc txn_page(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct lookup *l = arg;

    return hfd_fleet_row_search(tx, &(struct hfd_fleet_query){.kind = l->kind, .limit = 1000},
                                l->mem, &l->list, err);
}

static hfd_rc txn_parts(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct lookup *l = arg;

    return hfd_part_row_list(tx, l->name, l->mem, &l->parts, err);
}

static hfd_rc txn_resource(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct lookup *l = arg;

    return hfd_resource_row_get(tx, l->name, l->mem, &l->resource, err);
}

const struct hfd_fleet_row *world_find(struct world *w, enum hfd_kind kind, const char *name)
{
    struct lookup l = {.mem = &w->mem, .kind = kind};

    assert_int_equal(hfd_store_read(w->reader, txn_page, &l, &w->err), HFD_OK);
    for (size_t i = 0; i < l.list.count; i++)
        if (hfd_slice_is(l.list.rows[i].name, name) && l.list.rows[i].deleted_us == 0)
            return &l.list.rows[i];
    return NULL;
}

int64_t world_count(struct world *w, enum hfd_kind kind)
{
    struct lookup l = {.mem = &w->mem, .kind = kind};

    assert_int_equal(hfd_store_read(w->reader, txn_page, &l, &w->err), HFD_OK);
    return l.list.total;
}

struct hfd_resource_row world_row(struct world *w, const char *guresid)
{
    struct lookup l = {.mem = &w->mem, .name = hfd_slice_of(guresid)};
    hfd_rc rc = hfd_store_read(w->reader, txn_resource, &l, &w->err);

    assert_true(rc == HFD_OK || rc == HFD_NOT_FOUND);
    if (rc == HFD_NOT_FOUND)
        l.resource = (struct hfd_resource_row){.state = HFD_STATE_ABSENT};
    return l.resource;
}

size_t world_observed;

struct report_step {
    struct hfd_fleet_call call;
    struct hfd_fleet_report in;
    struct hfd_fleet_reported out;
    const struct hfd_driver *driver;
    size_t observed; /* in the last run of the job */
};

static hfd_rc txn_report(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct report_step *s = arg;

    struct hfd_fleet_changes changes = {.mem = s->call.mem};
    hfd_rc rc;

    s->call.changes = &changes;
    rc = hfd_fleet_report(tx, &s->call, &s->in, &s->out, err);
    s->observed = changes.count;
    return rc == HFD_OK ? hfd_resource_observe(tx, s->driver, &s->call, err) : rc;
}

/* As the door does. */
static void count_objects(struct hfd_fleet_report *in)
{
    json_t *data;

    assert_int_equal(hfd_json_parse(in->data, &data, NULL), HFD_OK);
    hfd_objects_count(data, &in->objects);
    json_decref(data);
}

enum hfd_verdict world_report(struct world *w, hfd_slice fleet_id, const struct world_report *r)
{
    struct hfd_condition conditions[4] = {
        {.type = HFD_SLICE("Available"),
         .status = r->available,
         .reason = hfd_slice_of(r->reason != NULL ? r->reason : "Test"),
         .message = HFD_SLICE("told by the test")},
        {.type = HFD_SLICE("Applied"), .status = HFD_STATUS_TRUE},
        {.type = HFD_SLICE("Health"),
         .status = r->health_false ? HFD_STATUS_FALSE : HFD_STATUS_TRUE},
        {.type = HFD_SLICE("Finalized"), .status = HFD_STATUS_TRUE},
    };
    struct lookup l = {.mem = &w->mem, .id = fleet_id};
    struct report_step s;
    hfd_rc rc;

    assert_int_equal(hfd_store_read(w->reader, txn_by_id, &l, &w->err), HFD_OK);
    s = (struct report_step){
        .call = {.fleet = &w->driver.fleet,
                 .now_us = world_now(w),
                 .caller = HFD_SLICE("adapter@example.com"),
                 .mem = &w->mem},
        .in = {.target = {.kind = l.row.kind, .id = fleet_id},
               .adapter = hfd_slice_of(r->adapter),
               .observed_generation = r->generation != 0 ? r->generation : l.row.generation,
               .observed_us = world_now(w),
               .conditions = {conditions, r->finalized ? 4 : 3},
               .data = hfd_slice_of(r->data != NULL ? r->data : "{}"),
               .secrets = hfd_slice_of(r->secrets),
               .metadata = HFD_SLICE("")},
        .driver = &w->driver,
    };
    count_objects(&s.in);
    rc = hfd_store_update_wait(w->store, txn_report, &s, &w->err);
    world_observed += s.observed;
    if (rc != HFD_OK)
        fail_msg("report of %s: %s", r->adapter, w->err.msg);
    return s.out.verdict;
}

void world_succeed(struct world *w, hfd_slice fleet_id)
{
    struct lookup l = {.mem = &w->mem, .id = fleet_id};
    const struct hfd_adapter_names *required;

    assert_int_equal(hfd_store_read(w->reader, txn_by_id, &l, &w->err), HFD_OK);
    required = &w->driver.fleet.required[l.row.kind];
    for (size_t i = 0; i < required->count; i++) {
        char adapter[32];
        const bool deleting = l.row.deleted_us != 0;

        (void)snprintf(adapter, sizeof(adapter), "%.*s", HFD_SLICE_FMT(required->items[i]));
        (void)world_report(
            w, fleet_id,
            &(struct world_report){.adapter = adapter,
                                   .available = deleting ? HFD_STATUS_FALSE : HFD_STATUS_TRUE,
                                   .finalized = deleting});
    }
}

void world_succeed_all(struct world *w, const char *guresid)
{
    struct lookup l = {.mem = &w->mem, .name = hfd_slice_of(guresid)};

    assert_int_equal(hfd_store_read(w->reader, txn_parts, &l, &w->err), HFD_OK);
    for (size_t i = 0; i < l.parts.count; i++)
        world_succeed(w, l.parts.rows[i].fleet_id);
}
