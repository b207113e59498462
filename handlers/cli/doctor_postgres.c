/* See doctor_postgres.h. */
#include "handlers/cli/doctor_postgres.h"

#include "driver/base/clock.h"
#include "handlers/client/http.h"
#include "store/migrate.h"
#include "store/postgres/facts.h"

#include <jansson.h>
#include <stdarg.h>

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

__attribute__((format(printf, 4, 5))) static void say(const struct look *l, const char *about,
                                                      bool good, const char *fmt, ...)
{
    char text[TEXT_MAX];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (good)
        hfd_doctor_good(l->lines, about, hfd_slice_of(text));
    else
        hfd_doctor_finding(l->lines, about, hfd_slice_of(text));
}

/* ---- the database ---- */

static void say_settings(const struct look *l)
{
    const struct hfd_pg_facts *f = &l->facts;

    say(l, "database", true, "%s: PostgreSQL %.*s, collation %.*s, encoding %.*s, schema %lld",
        hfd_cli_place_text(l->s), HFD_SLICE_FMT(f->version), HFD_SLICE_FMT(f->collation),
        HFD_SLICE_FMT(f->encoding), (long long)f->schema);
    if (f->standby)
        say(l, "database", false,
            "it is a standby and takes no writes: name the primary in store, or all hosts with "
            "target_session_attrs=read-write");
    if (f->schema == 0)
        say(l, "database", true, "it has no tables yet: the first start makes them");
    else if (f->schema != (int64_t)hfd_migrations_count)
        say(l, "database", true,
            "this program knows schema %zu: rows are not read here, ask with the version that "
            "serves",
            hfd_migrations_count);
    if (f->schema < (int64_t)hfd_migrations_count && !f->may_create)
        say(l, "database", false,
            "this user may not make tables: make it the owner of the database, or GRANT CREATE on "
            "its schema");
}

/* synchronous_commit is never off here. Without a synchronous standby all its values are one. */
static bool waits_for_standby(const struct look *l)
{
    const struct hfd_pg_facts *f = &l->facts;

    if (f->standby_names.len == 0)
        return true;
    if (hfd_slice_is(f->synchronous_commit, "local"))
        say(l, "durable", false,
            "synchronous_commit is local: a commit does not wait for the synchronous standby, so "
            "a failover loses what was acknowledged last. Set it to on");
    else if (hfd_slice_is(f->synchronous_commit, "remote_write"))
        say(l, "durable", false,
            "synchronous_commit is remote_write: the standby has not flushed what was "
            "acknowledged last. If its machine crashes and the primary is lost, that is lost too. "
            "Set it to on");
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
        say(l, "durable", false, "%s is off: PostgreSQL may lose what was acknowledged",
            rows[i].name);
        good = false;
    }
    if (good)
        say(l, "durable", true, "synchronous_commit is %.*s, fsync and full_page_writes are on",
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
            say(l, "standby", true, "%.*s is synchronous, of %zu connected", HFD_SLICE_FMT(b->name),
                f->standby_count);
            return;
        }
        unseen += b->sync.len == 0;
    }
    if (unseen > 0)
        say(l, "standby", false,
            "%zu connected; this user may not see if one is synchronous: GRANT pg_monitor to it",
            f->standby_count);
    else
        say(l, "standby", false,
            "no synchronous standby (%zu connected): the loss of the primary loses what was "
            "acknowledged last",
            f->standby_count);
}

/* ---- Patroni ---- */

int64_t hfd_doctor_major(const char *version)
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
        say(l, "patroni", false, "%s does not tell Patroni's version", l->s->store_patroni.p);
    else if (hfd_doctor_major(version) < PATRONI_MIN)
        say(l, "patroni", false,
            "version %.60s: expected %d or later. A leader of 3.0.2 that was paused and went on "
            "took the lead back, and 105 acknowledged writes were lost",
            version, PATRONI_MIN);
    else
        say(l, "patroni", true, "version %.60s", version);
    json_decref(doc);
}

static void say_patroni(const struct look *l)
{
    const struct hfd_client_config config = {.url = l->s->store_patroni.p,
                                             .timeout_us = PATRONI_TIMEOUT_US};
    const struct hfd_client_request get = {.method = "GET", .path = "patroni"};
    struct hfd_client_http *http = NULL;
    struct hfd_client_answer answer;
    struct hfd_err err = {0};

    if (l->s->store_patroni.len == 0) {
        if (l->facts.patroni)
            say(l, "patroni", true,
                "it runs here; its version is unknown without store.patroni. Expected %d or later",
                PATRONI_MIN);
        return;
    }
    if (hfd_client_open(&config, &http, &err) != HFD_OK) {
        say(l, "patroni", false, "%s cannot be asked: %s", config.url, err.msg);
        return;
    }
    hfd_client_send(http, &(struct hfd_client_batch){&get, &answer, 1});
    if (answer.status == 0)
        say(l, "patroni", false, "%s cannot be asked: %s", config.url, answer.why);
    else
        say_patroni_version(l, hfd_buf_slice(&answer.body));
    hfd_client_answer_fini(&answer);
    hfd_client_close(&http);
}

/* ---- replicas ---- */

/* The connections of one server: writer, leases and signals; all GETs; readers and short lists. */
static int64_t connections_of_one(const struct hfd_settings *s)
{
    return 3 + 1 + s->store_readers + 1;
}

/* An update starts a replica before it stops another. */
static void say_connections(const struct look *l)
{
    const int64_t one = connections_of_one(l->s), may = l->facts.connections,
                  servers = (int64_t)l->replicas.count + 1, all = one * servers;

    say(l, "sessions", all <= may,
        "%lld allowed, %lld in use; a server with these settings needs %lld, so %lld of them need "
        "%lld",
        (long long)may, (long long)l->facts.in_use, (long long)one, (long long)servers,
        (long long)all);
}

static void say_replicas(const struct look *l)
{
    const struct hfd_pg_replicas *list = &l->replicas;
    int64_t newest = 0;
    size_t behind = 0;

    say(l, "replicas", true, "%zu live", list->count);
    for (size_t i = 0; i < list->count; i++)
        newest = list->items[i].epoch > newest ? list->items[i].epoch : newest;
    for (size_t i = 0; i < list->count; i++) {
        const struct hfd_pg_replica *r = &list->items[i];

        behind += r->epoch < newest;
        say(l, "replica", true,
            "%.*s (%.*s): version %.*s, schema %lld, settings epoch %lld, %lld leases, last sign "
            "of life %lld.%lld s ago",
            HFD_SLICE_FMT(r->name), HFD_SLICE_FMT(r->id), HFD_SLICE_FMT(r->version),
            (long long)r->schema, (long long)r->epoch, (long long)r->leases,
            (long long)(r->age_us / HFD_US_PER_S), (long long)(r->age_us / 100000 % 10));
    }
    if (behind > 0)
        say(l, "replicas", false,
            "%zu of them have older settings than the newest one: restart them with the same",
            behind);
}

/* ---- the whole ---- */

bool hfd_doctor_postgres(struct hfd_settings *s, struct hfd_doctor_lines *lines)
{
    const struct hfd_store_place place = hfd_cli_place(s);
    struct look l = {.s = s, .lines = lines};
    struct hfd_err err = {0};
    hfd_rc rc;

    hfd_arena_init(&l.mem, MEM_MAX);
    rc = hfd_pg_facts_read(&place, &l.mem, &l.facts, &err);
    if (rc == HFD_OK)
        rc = hfd_pg_replicas_read(&place, &l.mem, &l.replicas, &err);
    if (rc == HFD_OK) {
        say_settings(&l);
        say_durability(&l);
        say_standbys(&l);
        say_connections(&l);
        say_replicas(&l);
    } else {
        say(&l, "database", false, "%s: %s", hfd_cli_place_text(s), err.msg);
    }
    say_patroni(&l);
    hfd_arena_fini(&l.mem);
    return rc == HFD_OK && !l.facts.standby && l.facts.schema == (int64_t)hfd_migrations_count;
}
