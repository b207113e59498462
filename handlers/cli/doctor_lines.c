/* See doctor_lines.h. */
#include "handlers/cli/doctor_lines.h"

#include "driver/backend/backend.h"
#include "driver/backend/remote/wire.h"
#include "driver/base/clock.h"
#include "driver/base/meter.h"
#include "handlers/cli/cli.h"
#include "handlers/cli/look.h"
#include "handlers/client/http.h"
#include "store/migrate.h"
#include "store/postgres/facts.h"

#include <jansson.h>

#include <stdarg.h>
#include <stdlib.h>

/* ---- lines ---- */

void hfd_doctor_print_now(struct hfd_doctor_lines *l)
{
    hfd_meter_clear(&l->meter);
    if (l->printed == HFD_EXIT_OK)
        l->printed = hfd_cli_print("doctor", &l->out);
    hfd_buf_fini(&l->out);
    hfd_buf_init(&l->out, HFD_DOCTOR_OUTPUT_MAX);
}

/* Adds one line. */
static void say(struct hfd_doctor_lines *l, const char *about, bool good, hfd_slice text)
{
    const size_t from = l->out.len;

    if (!l->json) {
        hfd_buf_addf(&l->out, "%-9s ", about);
        hfd_buf_show(&l->out, text);
        hfd_buf_mask(&l->out, from);
        hfd_buf_addc(&l->out, '\n');
        hfd_doctor_print_now(l);
        return;
    }
    hfd_buf_addf(&l->out, "%s{\"about\":\"%s\",\"ok\":%s,\"text\":", l->out.len > 0 ? "," : "",
                 about, good ? "true" : "false");
    hfd_buf_json_str(&l->out, text);
    hfd_buf_mask(&l->out, from);
    hfd_buf_addc(&l->out, '}');
}

void hfd_doctor_say(struct hfd_doctor_lines *l, const char *about, bool good, const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vasprintf(&text, fmt, ap);
    va_end(ap);
    say(l, about, good, n < 0 ? HFD_SLICE("out of memory") : (hfd_slice){text, (size_t)n});
    if (n >= 0)
        free(text);
    l->findings += !good;
}

/* ---- a PostgreSQL store ---- */

#define MEM_MAX ((size_t)4 << 20)
#define TEXT_MAX 1024
#define PATRONI_MIN 4
#define PATRONI_TIMEOUT_US (5 * HFD_US_PER_S)

struct look {
    struct hfd_settings *s;
    struct hfd_doctor_lines *lines;
    struct hfd_arena mem;
    struct hfd_pg_facts facts;
    struct hfd_pg_replicas replicas;
};

/* ---- the database ---- */

static void say_settings(const struct look *l)
{
    const struct hfd_pg_facts *f = &l->facts;

    hfd_doctor_say(l->lines, "database", true,
                   "%s: PostgreSQL %.*s, collation %.*s, encoding %.*s, schema %lld",
                   hfd_cli_place_text(l->s), HFD_SLICE_FMT(f->version), HFD_SLICE_FMT(f->collation),
                   HFD_SLICE_FMT(f->encoding), (long long)f->schema);
    if (f->standby)
        hfd_doctor_say(l->lines, "database", false,
                       "it is a standby and takes no writes: name the primary in store, or all "
                       "hosts with target_session_attrs=read-write");
    if (f->schema == 0)
        hfd_doctor_say(l->lines, "database", true,
                       "it has no tables yet: the first start makes them");
    else if (f->schema != (int64_t)hfd_migrations_count)
        hfd_doctor_say(l->lines, "database", true,
                       "this program knows schema %zu: rows are not read here, ask with the "
                       "version that serves",
                       hfd_migrations_count);
    if (f->schema < (int64_t)hfd_migrations_count && !f->may_create)
        hfd_doctor_say(l->lines, "database", false,
                       "this user may not make tables: make it the owner of the database, or GRANT "
                       "CREATE on its schema");
}

static void find_odd(void *ctx, const char *text)
{
    hfd_doctor_say(((const struct look *)ctx)->lines, "schema", false, "%s", text);
}

/* Looks for objects of others. @return false: a server refuses the database */
static bool check_schema(struct look *l, const struct hfd_store_place *place)
{
    const struct hfd_schema_check check = {
        .list = hfd_migrations, .count = hfd_migrations_count, .found = find_odd, .ctx = l};
    struct hfd_db *db = NULL;
    struct hfd_err err = {0};
    hfd_rc rc;

    if (l->facts.standby)
        return false;
    rc = hfd_db_open(place, HFD_DB_WRITER, &db, &err);
    if (rc == HFD_OK)
        rc = hfd_migrate_check(db, &check, &err);
    hfd_db_close(&db);
    if (rc != HFD_OK)
        hfd_doctor_say(l->lines, "schema", false, "%s", err.msg);
    return rc == HFD_OK;
}

/* synchronous_commit is never off here. Without a synchronous standby all its values are one. */
static bool waits_for_standby(const struct look *l)
{
    const struct hfd_pg_facts *f = &l->facts;

    if (f->standby_names.len == 0)
        return true;
    if (hfd_slice_is(f->synchronous_commit, "local"))
        hfd_doctor_say(l->lines, "durable", false,
                       "synchronous_commit is local: a commit does not wait for the synchronous "
                       "standby, so a failover loses what was acknowledged last. Set it to on");
    else if (hfd_slice_is(f->synchronous_commit, "remote_write"))
        hfd_doctor_say(
            l->lines, "durable", false,
            "synchronous_commit is remote_write: the standby has not flushed what was acknowledged "
            "last. If its machine crashes and the primary is lost, that is lost too. Set it to on");
    else
        return true;
    return false;
}

/* A commit that was answered is on disk only with both. */
static void say_durability(const struct look *l)
{
    const struct {
        const char *name;
        hfd_slice value;
    } rows[] = {{"fsync", l->facts.fsync}, {"full_page_writes", l->facts.full_page_writes}};
    bool good = waits_for_standby(l);

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (!hfd_slice_is(rows[i].value, "off"))
            continue;
        hfd_doctor_say(l->lines, "durable", false,
                       "%s is off: PostgreSQL may lose what was acknowledged", rows[i].name);
        good = false;
    }
    if (good)
        hfd_doctor_say(l->lines, "durable", true,
                       "synchronous_commit is %.*s, fsync and full_page_writes are on",
                       HFD_SLICE_FMT(l->facts.synchronous_commit));
}

static void say_standbys(const struct look *l)
{
    const struct hfd_pg_facts *f = &l->facts;
    size_t unseen = 0;

    if (f->standby)
        return;
    for (size_t i = 0; i < f->standby_count; i++) {
        const struct hfd_pg_standby *b = &f->standbys[i];

        if (hfd_slice_is(b->sync, "sync") || hfd_slice_is(b->sync, "quorum")) {
            hfd_doctor_say(l->lines, "standby", true, "%.*s is synchronous, of %zu connected",
                           HFD_SLICE_FMT(b->name), f->standby_count);
            return;
        }
        unseen += b->sync.len == 0;
    }
    if (unseen > 0)
        hfd_doctor_say(
            l->lines, "standby", false,
            "%zu connected; this user may not see if one is synchronous: GRANT pg_monitor to it",
            f->standby_count);
    else
        hfd_doctor_say(l->lines, "standby", false,
                       "no synchronous standby (%zu connected): the loss of the primary loses what "
                       "was acknowledged last",
                       f->standby_count);
}

/* ---- Patroni ---- */

/* Returns the number in front of the first dot; 0 if there is none. Pure. */
static int64_t doctor_major(const char *version)
{
    int64_t n = 0;

    return hfd_parse_i64((hfd_slice){version, strspn(version, "0123456789")}, 0, 1000000, &n,
                         NULL) == HFD_OK
               ? n
               : 0;
}

static void say_patroni_version(const struct look *l, hfd_slice body)
{
    json_t *doc = json_loadb(body.p, body.len, 0, NULL);
    const char *version =
        json_string_value(json_object_get(json_object_get(doc, "patroni"), "version"));

    if (version == NULL)
        hfd_doctor_say(l->lines, "patroni", false, "%s does not tell Patroni's version",
                       l->s->store_patroni.p);
    else if (doctor_major(version) < PATRONI_MIN)
        hfd_doctor_say(l->lines, "patroni", false,
                       "version %.60s: expected %d or later. A leader of 3.0.2 that was paused and "
                       "went on took the lead back, and 105 acknowledged writes were lost",
                       version, PATRONI_MIN);
    else
        hfd_doctor_say(l->lines, "patroni", true, "version %.60s", version);
    json_decref(doc);
}

static void say_patroni(const struct look *l)
{
    const struct hfd_client_config config = {.url = l->s->store_patroni.p,
                                             .timeout_us = PATRONI_TIMEOUT_US};
    const struct hfd_client_request get = {.method = "GET", .path = "patroni"};
    struct hfd_client_http *http = NULL;
    struct hfd_http_answer answer;
    struct hfd_err err = {0};

    if (l->s->store_patroni.len == 0) {
        if (l->facts.patroni)
            hfd_doctor_say(
                l->lines, "patroni", true,
                "it runs here; its version is unknown without store.patroni. Expected %d or later",
                PATRONI_MIN);
        return;
    }
    if (hfd_client_open(&config, &http, &err) != HFD_OK) {
        hfd_doctor_say(l->lines, "patroni", false, "%s cannot be asked: %s", config.url, err.msg);
        return;
    }
    hfd_client_send(http, &get, &answer, 1);
    if (answer.status == 0)
        hfd_doctor_say(l->lines, "patroni", false, "%s cannot be asked: %s", config.url,
                       answer.why);
    else
        say_patroni_version(l, hfd_buf_slice(&answer.body));
    hfd_http_answer_fini(&answer);
    hfd_client_close(&http);
}

/* ---- replicas ---- */

/*
 * The connections of one server: writer, lease and signals; all GETs; readers and short lists; the
 * look for what is wrong.
 */
static int64_t connections_of_one(const struct hfd_settings *s)
{
    return 3 + 1 + s->store_readers + 1 + 1;
}

/* An update starts a replica before it stops another. */
static void say_connections(const struct look *l)
{
    const int64_t one = connections_of_one(l->s), may = l->facts.connections,
                  servers = (int64_t)l->replicas.count + 1, all = one * servers;

    hfd_doctor_say(l->lines, "sessions", all <= may,
                   "%lld allowed, %lld in use; a server with these settings needs %lld, so %lld of "
                   "them need %lld",
                   (long long)may, (long long)l->facts.in_use, (long long)one, (long long)servers,
                   (long long)all);
}

static void say_replicas(const struct look *l)
{
    const struct hfd_pg_replicas *list = &l->replicas;
    int64_t newest = 0;
    size_t behind = 0;

    hfd_doctor_say(l->lines, "replicas", true, "%zu live", list->count);
    for (size_t i = 0; i < list->count; i++)
        newest = list->items[i].epoch > newest ? list->items[i].epoch : newest;
    for (size_t i = 0; i < list->count; i++) {
        const struct hfd_pg_replica *r = &list->items[i];

        behind += r->epoch < newest;
        hfd_doctor_say(l->lines, "replica", true,
                       "%.*s (%.*s): version %.*s, schema %lld, settings epoch %lld, %slast sign "
                       "of life %lld.%lld s ago",
                       HFD_SLICE_FMT(r->name), HFD_SLICE_FMT(r->id), HFD_SLICE_FMT(r->version),
                       (long long)r->schema, (long long)r->epoch, r->leads ? "leads, " : "",
                       (long long)(r->age_us / HFD_US_PER_S), (long long)(r->age_us / 100000 % 10));
    }
    if (behind > 0)
        hfd_doctor_say(
            l->lines, "replicas", false,
            "%zu of them have older settings than the newest one: restart them with the same",
            behind);
}

/* ---- the whole ---- */

bool hfd_doctor_postgres(struct hfd_settings *s, struct hfd_doctor_lines *lines)
{
    const struct hfd_store_place place = hfd_cli_place(s);
    struct look l = {.s = s, .lines = lines};
    struct hfd_err err = {0};
    bool ours = false;
    hfd_rc rc;

    hfd_arena_init(&l.mem, MEM_MAX);
    rc = hfd_pg_facts_read(&place, &l.mem, &l.facts, &err);
    if (rc == HFD_OK)
        rc = hfd_pg_replicas_read(&place, &l.mem, &l.replicas, &err);
    if (rc == HFD_OK) {
        say_settings(&l);
        ours = check_schema(&l, &place);
        say_durability(&l);
        say_standbys(&l);
        say_connections(&l);
        say_replicas(&l);
    } else {
        hfd_doctor_say(lines, "database", false, "%s: %s", hfd_cli_place_text(s), err.msg);
    }
    say_patroni(&l);
    hfd_arena_fini(&l.mem);
    return ours && l.facts.schema == (int64_t)hfd_migrations_count;
}

/* ---- a remote ---- */

static const char *condition_of(const json_t *resource)
{
    const json_t *conditions = json_object_get(json_object_get(resource, "status"), "conditions");

    for (size_t i = 0; i < json_array_size(conditions); i++) {
        const char *type =
            json_string_value(json_object_get(json_array_get(conditions, i), "type"));

        if (type != NULL && (strcmp(type, "Reconciled") == 0 || strcmp(type, "Ready") == 0))
            return type;
    }
    return NULL;
}

/* The names of conditions show the version; without a cluster it is unknown. */
static const char *conditions_of(const json_t *list)
{
    const json_t *items = json_object_get(list, "items");
    const char *type = NULL;

    for (size_t i = 0; type == NULL && i < json_array_size(items); i++)
        type = condition_of(json_array_get(items, i));
    return type;
}

/* Adds the line about an answer. */
static void say_answer(const struct hfd_remote_call *call, hfd_slice url,
                       struct hfd_doctor_lines *lines)
{
    const struct hfd_remote_answer *a = &call->answer;
    const long long ms = (long long)(call->duration_us / 1000);
    json_t *list = a->is_json ? json_loadb(a->body.p, a->body.len, 0, NULL) : NULL;
    const char *type = conditions_of(list);
    const bool has_list = a->status == 200 && json_is_array(json_object_get(list, "items"));
    struct hfd_buf b;
    bool well = false;

    hfd_buf_init(&b, HFD_DOCTOR_OUTPUT_MAX);
    if (!a->arrived)
        hfd_buf_add(&b, hfd_slice_of(a->failure));
    else
        switch (hfd_remote_health_of(a)) {
        case HFD_REMOTE_WELL:
            well = has_list;
            if (!has_list)
                hfd_buf_addf(&b, "answers with status %d but without a list of clusters",
                             a->status);
            else if (type != NULL)
                hfd_buf_addf(&b, "answers as a HyperFleet with condition %s, in %lld ms", type, ms);
            else
                hfd_buf_addf(&b, "answers as a HyperFleet without clusters, in %lld ms", ms);
            break;
        case HFD_REMOTE_REFUSES:
            hfd_buf_addf(&b,
                         "refuses our credentials with status %d; check remote.token_file and "
                         "remote.cert_file",
                         a->status);
            break;
        case HFD_REMOTE_WRONG:
            hfd_buf_addf(
                &b, "is not a HyperFleet API: it answers with status %d; check the URL in backend",
                a->status);
            break;
        case HFD_REMOTE_ILL:
            hfd_buf_addf(&b, "answers with an error: status %d%s", a->status,
                         a->is_json ? "" : ", and no JSON");
            break;
        }
    hfd_doctor_say(lines, "remote", well, "%.*s %.*s", HFD_SLICE_FMT(url),
                   HFD_SLICE_FMT(hfd_buf_slice(&b)));
    hfd_buf_fini(&b);
    json_decref(list);
}

static void on_done(struct hfd_remote_call *call)
{
    *(bool *)call->arg = true;
}

void hfd_doctor_remote(const struct hfd_settings *s, struct hfd_doctor_lines *lines)
{
    const struct hfd_remote_http_config config = hfd_look_http(s);
    bool ended = false;
    struct hfd_remote_call call = {.done = on_done, .arg = &ended};
    struct hfd_remote_http *http = NULL;
    struct hfd_err err = {0};
    hfd_rc rc;

    call.request = (struct hfd_remote_request){
        .method = HFD_REMOTE_GET, .path = HFD_SLICE("/clusters?page=1&size=10&pageSize=10")};
    rc = hfd_remote_http_open(&config, &http, &err);
    if (rc == HFD_OK)
        rc = hfd_remote_http_send(http, &call, &err);
    while (rc == HFD_OK && !ended)
        hfd_remote_http_run(http, s->remote_timeout_us);
    if (rc == HFD_OK)
        say_answer(&call, s->backend, lines);
    else
        hfd_doctor_say(lines, "remote", false, "%.*s cannot be asked: %s",
                       HFD_SLICE_FMT(s->backend), err.msg);
    hfd_remote_call_fini(&call);
    hfd_remote_http_close(&http);
}
