/*
 * Fills a store with driver resources, each with its HyperFleet cluster, labels, conditions and
 * adapter reports. It uses the store's own row functions: a million takes minutes, where the API
 * would take hours. The cookies have the right size but open nothing.
 *
 * usage: fill --data DIR --count N [--items FILE] [--told MARK]
 *
 * Nine of ten resources are ready. These are written to FILE, with tabs between the columns. The
 * columns are GUResID, cluster id, name, team, and for each adapter the microsecond of its round in
 * which it reported.
 *
 * MARK is the fleet.told that the program itself gives a ready resource. The store then looks as if
 * the program had seen all of them ready.
 */
#include "driver/base/check.h"
#include "driver/base/clock.h"
#include "driver/core/life.h"
#include "driver/fleet/aggregate.h"
#include "driver/fleet/keys.h"
#include "store/rows_fleet.h"
#include "store/rows_report.h"
#include "store/rows_resource.h"
#include "store/store.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#define BATCH 10000
#define MEM_MAX_BYTES ((size_t)256 << 20)
#define TEXT_MAX_BYTES 65536
#define TEAMS 1000
#define ADAPTERS 4
#define FIRST_CREATED_US (INT64_C(1767225600) * HFD_US_PER_S) /* 2026-01-01 */
#define STEP_US 1000
#define DAY_US (86400 * HFD_US_PER_S)
#define ROUND_US                                                                                   \
    (INT64_C(1) << 32) /* more than an hour: each adapter goes round all clusters, one adapter     \
                          after the other */

static const hfd_slice adapters[ADAPTERS] = {
    {"validation", sizeof("validation") - 1},
    {"dns", sizeof("dns") - 1},
    {"pullsecret", sizeof("pullsecret") - 1},
    {"hypershift", sizeof("hypershift") - 1},
};
static const char *const environments[] = {"production", "staging", "development"};

/* Common to all clusters. */
struct model {
    hfd_slice report_text;
};

struct batch {
    const struct model *model;
    struct hfd_arena mem;
    FILE *items;
    int64_t told;
    int64_t from, count;
};

static _Noreturn void die(const char *what, const struct hfd_err *err)
{
    (void)fprintf(stderr, "fill: %s%s%s\n", what, err != NULL ? ": " : "",
                  err != NULL ? err->msg : "");
    exit(2);
}

static hfd_slice text_of(const struct hfd_conditions *cs, bool of_report, struct hfd_arena *mem)
{
    struct hfd_buf b;
    hfd_slice text;

    hfd_buf_init(&b, TEXT_MAX_BYTES);
    hfd_conditions_format(&b, cs, of_report);
    text = b.rc == HFD_OK ? hfd_arena_dup(mem, hfd_buf_slice(&b)) : HFD_SLICE_NONE;
    hfd_buf_fini(&b);
    if (text.p == NULL)
        die("out of memory", NULL);
    return text;
}

/* "dns" went round first. The clusters' order has nothing to do with that of their creation. */
static int64_t reported_us(size_t adapter, int64_t place_us)
{
    return FIRST_CREATED_US + (int64_t)((adapter + ADAPTERS - 1) % ADAPTERS) * ROUND_US + place_us;
}

/* The conditions of a cluster on which the first `count` adapters have reported success. */
static struct hfd_conditions aggregated(size_t count, int64_t place_us, struct hfd_arena *mem)
{
    struct hfd_agg_report reports[ADAPTERS];
    struct hfd_conditions now;

    const struct hfd_agg_input made = {.required = {adapters, ADAPTERS},
                                       .now_us = FIRST_CREATED_US};

    if (hfd_agg_created(&made, mem, &now) != HFD_OK)
        die("out of memory", NULL);
    for (size_t i = 0; i < count; i++) {
        const struct hfd_conditions prev = now;
        struct hfd_agg_input in = {
            .required = {adapters, ADAPTERS},
            .kind_name = "Cluster",
            .generation = 1,
            .now_us = FIRST_CREATED_US,
            .updated_us = FIRST_CREATED_US,
            .prev = &prev,
            .reports = {reports, i + 1},
            .event = &reports[i],
        };

        reports[i] = (struct hfd_agg_report){
            .adapter = adapters[i],
            .observed_generation = 1,
            .observed_us = reported_us(i, place_us),
            .available = HFD_STATUS_TRUE,
            .reason = HFD_SLICE("Succeeded"),
            .message = HFD_SLICE("the adapter has done its part"),
        };
        if (hfd_agg_reported(&in, mem, &now) != HFD_OK)
            die("out of memory", NULL);
    }
    return now;
}

static void make_model(struct model *m, struct hfd_arena *mem)
{
    static const char *const types[] = {"Available", "Applied", "Health"};
    struct hfd_condition reported[3];
    struct hfd_conditions of_report = {reported, 3};

    for (size_t i = 0; i < 3; i++)
        reported[i] = (struct hfd_condition){
            .type = hfd_slice_of(types[i]),
            .status = HFD_STATUS_TRUE,
            .reason = HFD_SLICE("Succeeded"),
            .message = HFD_SLICE("the adapter has done its part"),
        };
    m->report_text = text_of(&of_report, true, mem);
}

/* Spreads the ids over the key space, as those of an orchestrator are. */
static uint64_t spread(int64_t i)
{
    uint64_t v = (uint64_t)i * UINT64_C(0x9E3779B97F4A7C15);

    v ^= v >> 29;
    return v * UINT64_C(0xBF58476D1CE4E5B9);
}

/* The reports on one cluster: how many adapters, and the cluster's place in their rounds. */
struct reported {
    hfd_slice fleet_id, conditions;
    size_t count;
    int64_t place_us;
};

static hfd_rc put_reports(struct hfd_txn *tx, const struct reported *r, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; rc == HFD_OK && i < r->count; i++) {
        const struct hfd_report_row row = {
            .fleet_id = r->fleet_id,
            .adapter = adapters[i],
            .observed_generation = 1,
            .observed_us = reported_us(i, r->place_us),
            .received_us = reported_us(i, r->place_us),
            .created_us = reported_us(i, r->place_us),
            .conditions = r->conditions,
            .data = HFD_SLICE("{}"),
        };

        rc = hfd_report_row_put(tx, &row, err);
    }
    return rc;
}

/* Puts the cluster with its reports: r->fleet_id is not read. */
static hfd_rc put_cluster(struct hfd_txn *tx, struct hfd_fleet_row *row, struct reported r,
                          struct hfd_arena *mem, struct hfd_err *err)
{
    const struct hfd_conditions conditions = aggregated(r.count, r.place_us, mem);
    const struct hfd_fleet_found_by was = {.labels = HFD_SLICE_NONE};
    const struct hfd_fleet_found_by is = {row->labels, &conditions};
    hfd_rc rc;

    row->conditions = text_of(&conditions, false, mem);
    row->ready_seen_us = hfd_condition_find(&conditions, HFD_SLICE("Ready"))->last_updated_us;
    rc = hfd_fleet_row_insert(tx, row, err);
    if (rc == HFD_OK)
        rc = hfd_fleet_reindex(tx, row, &(struct hfd_fleet_reindex){was, is}, mem, err);
    r.fleet_id = row->id;
    return rc == HFD_OK ? put_reports(tx, &r, err) : rc;
}

static hfd_rc put_resource(struct hfd_txn *tx, hfd_slice guresid, const struct hfd_fleet_row *f,
                           struct hfd_arena *mem, struct hfd_err *err)
{
    static char cookie[300], digest[36];
    struct hfd_resource_row row = {
        .guresid = guresid,
        .type = HFD_SLICE("hyperfleet-cluster"),
        .kind = HFD_KIND_CLUSTER,
        .state = f->ready ? HFD_STATE_READY : HFD_STATE_CREATING,
        .incarnation = HFD_SLICE("0123456789abcdef"),
        .cluster_id = f->id,
        .digest = {digest, sizeof(digest)},
        .raw_digest = {digest, sizeof(digest)},
        .cookie = {cookie, sizeof(cookie)},
        .op_started_us = f->created_us,
        .op_estimate_us = f->created_us + DAY_US,
        .op_deadline_us = f->created_us + 3650 * DAY_US,
        .created_us = f->created_us,
        .updated_us = f->created_us,
    };
    const struct hfd_part_row part = {
        .guresid = guresid, .fleet_id = f->id, .kind = f->kind, .name = f->name, .generation = 1};
    hfd_rc rc;

    memset(cookie, 'A', sizeof(cookie));
    if (f->ready)
        row.output =
            hfd_arena_printf(mem,
                             "{\"name\":\"%.*s\",\"cluster_id\":\"%.*s\",\"href\":\"/api/"
                             "hyperfleet/v1/clusters/%.*s\","
                             "\"generation\":1,\"health\":\"Healthy\",\"nodepools\":[]}",
                             HFD_SLICE_FMT(f->name), HFD_SLICE_FMT(f->id), HFD_SLICE_FMT(f->id));
    rc = hfd_part_row_put(tx, &part, err);
    return rc == HFD_OK ? hfd_resource_row_put(tx, &row, err) : rc;
}

static hfd_rc put_one(struct hfd_txn *tx, struct batch *b, int64_t i, struct hfd_arena *mem,
                      struct hfd_err *err)
{
    const int64_t created_us = FIRST_CREATED_US + i * STEP_US;
    const hfd_slice guresid = hfd_arena_printf(mem, "bench-%016llx", (unsigned long long)spread(i));
    const int team = (int)(spread(i) % TEAMS);
    const int64_t place_us = (int64_t)(spread(i) >> 32); /* below ROUND_US */
    char id[HFD_KSUID_LEN];
    struct hfd_fleet_row f = {
        .kind = HFD_KIND_CLUSTER,
        .name = hfd_arena_printf(mem, "c-%lld", (long long)i),
        .generation = 1,
        .spec = HFD_SLICE("{\"region\":\"eu-1\",\"version\":\"4.16.2\",\"replicas\":3}"),
        .labels = hfd_arena_printf(
            mem, "{\"environment\":\"%s\",\"humanitec_guresid\":\"%.*s\",\"team\":\"team-%d\"}",
            environments[i % 3], HFD_SLICE_FMT(guresid), team),
        .ready = i % 10 != 0,
        .observer_idle = i % 10 != 0 ? b->told : 0,
        .created_us = created_us,
        .updated_us = created_us,
        .created_by = HFD_SLICE("system@hyperfleet.local"),
        .updated_by = HFD_SLICE("system@hyperfleet.local"),
    };
    hfd_rc rc;

    hfd_ksuid_make(created_us, &hfd_rng_system, id);
    f.id = (hfd_slice){id, sizeof(id)};
    rc = put_cluster(tx, &f,
                     (struct reported){.conditions = b->model->report_text,
                                       .count = f.ready ? ADAPTERS : 2,
                                       .place_us = place_us},
                     mem, err);
    if (rc == HFD_OK)
        rc = put_resource(tx, guresid, &f, mem, err);
    if (rc == HFD_OK && f.ready && b->items != NULL)
        (void)fprintf(b->items, "%.*s\t%.*s\t%.*s\tteam-%d\t%lld\n", HFD_SLICE_FMT(guresid),
                      HFD_SLICE_FMT(f.id), HFD_SLICE_FMT(f.name), team, (long long)place_us);
    return rc;
}

static hfd_rc put_batch(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct batch *b = arg;
    hfd_rc rc = HFD_OK;

    hfd_arena_fini(&b->mem);
    hfd_arena_init(&b->mem, MEM_MAX_BYTES);
    for (int64_t i = b->from; rc == HFD_OK && i < b->from + b->count; i++)
        rc = put_one(tx, b, i, &b->mem, err);
    return rc;
}

static int64_t number(const char *option, const char *text, int64_t min, int64_t max)
{
    struct hfd_err err;
    int64_t v;

    if (hfd_parse_i64(hfd_slice_of(text), min, max, &v, &err) != HFD_OK)
        die(option, &err);
    return v;
}

static void fill(const char *dir, int64_t count, int64_t told, FILE *items)
{
    const struct hfd_store_config config = {.place.dir = dir, .readers = 1};
    struct hfd_store *store;
    struct hfd_arena mem;
    struct hfd_err err;
    struct model model;
    struct batch b = {.model = &model, .items = items, .told = told};

    hfd_arena_init(&mem, MEM_MAX_BYTES);
    make_model(&model, &mem);
    if (hfd_store_open(&config, &store, &err) != HFD_OK)
        die("open the store", &err);
    while (b.from < count) {
        b.count = count - b.from < BATCH ? count - b.from : BATCH;
        if (hfd_store_update_wait(store, put_batch, &b, &err) != HFD_OK)
            die("write", &err);
        b.from += b.count;
    }
    hfd_store_close(&store);
    hfd_arena_fini(&b.mem);
    hfd_arena_fini(&mem);
}

int main(int argc, char **argv)
{
    static const struct option names[] = {
        {"data", required_argument, NULL, 'd'},
        {"count", required_argument, NULL, 'n'},
        {"items", required_argument, NULL, 'i'},
        {"told", required_argument, NULL, 't'},
        {NULL, 0, NULL, 0},
    };
    const char *dir = NULL, *count = "", *told = "0", *items_path = NULL;
    FILE *items = NULL;
    int c;

    while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (c == 'd')
            dir = optarg;
        else if (c == 'n')
            count = optarg;
        else if (c == 'i')
            items_path = optarg;
        else if (c == 't')
            told = optarg;
        else
            exit(2);
    }
    if (dir == NULL)
        die("--data is missing", NULL);
    if (items_path != NULL && (items = fopen(items_path, "w")) == NULL)
        die(items_path, NULL);
    fill(dir, number("--count", count, 1, INT64_C(100000000)),
         number("--told", told, INT64_MIN, INT64_MAX), items);
    if (items != NULL && fclose(items) != 0)
        die("write the items", NULL);
    return 0;
}
