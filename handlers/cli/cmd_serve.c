/*
 * hyperfleet-driver serve: opens the parts of the server step by step, waits for signals, and
 * closes the parts in reverse order. Signals are blocked in every thread and read here. Thread:
 * main.
 */
#include "driver/adapters/aging.h"
#include "driver/adapters/demo.h"
#include "driver/backend/remote/remote.h"
#include "driver/base/base.h"
#include "driver/base/check.h"
#include "driver/base/clock.h"
#include "driver/base/file.h"
#include "driver/base/log.h"
#include "driver/base/steady.h"
#include "driver/core/driver.h"
#include "driver/core/keyring.h"
#include "driver/fleet/fleet.h"
#include "driver/replica/keeper.h"
#include "driver/base/bell.h"
#include "handlers/cli/cli.h"
#include "handlers/cli/look.h"
#include "handlers/cli/notify.h"
#include "handlers/cli/serve_driver.h"
#include "handlers/cli/serve_greet.h"
#include "handlers/cli/serve_events.h"
#include "handlers/cli/serve_hypershift.h"
#include "handlers/cli/serve_keys.h"
#include "handlers/http/server.h"
#include "handlers/web/web.h"
#include "store/migrate.h"
#include "store/row_cache.h"
#include "store/sqlite/folder.h"
#include "store/store.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* --- reports to systemd --- */

/*
 * The server reports that it is ready, loads files again, and stops; the watchdog gets a sign as
 * long as all loops turn. The last report stays until the next.
 */
struct reports {
    struct hfd_notify to;
    bool ready;  /* the server is ready */
    bool told;   /* and systemd has that message */
    bool silent; /* the watchdog got no sign at the last look; logged once */
};

#define LOOKS_PER_WATCHDOG 4
/* A loop turns once a second. A shorter watchdog must not take that for a hang. */
#define STALL_MIN_US (5 * HFD_US_PER_S)

/* Opens the socket of the environment. One that cannot be used is logged, and not used. */
static void open_reports(struct reports *n)
{
    const struct hfd_notify_env env = {.socket = getenv("NOTIFY_SOCKET"),
                                       .watchdog_usec = getenv("WATCHDOG_USEC"),
                                       .watchdog_pid = getenv("WATCHDOG_PID")};
    struct hfd_err err = {0};

    *n = (struct reports){.ready = false};
    if (hfd_notify_open(&n->to, &env, &err) != HFD_OK)
        HFD_LOG(HFD_LOG_WARN, "systemd gets no notifications", HFD_LOG_CSTR("error", err.msg));
}

static void report_ready(struct reports *n)
{
    n->ready = true;
    n->told = hfd_notify_send(&n->to, "READY=1\nSTATUS=ready\n");
}

static void report_reloading(struct reports *n)
{
    char text[80];

    (void)snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%" PRId64 "\n",
                   hfd_clock_mono_us(&hfd_clock_system));
    (void)hfd_notify_send(&n->to, text);
}

static void report_stopping(struct reports *n)
{
    n->ready = false;
    (void)hfd_notify_send(&n->to, "STOPPING=1\nSTATUS=stopping: open requests may finish\n");
}

/* Returns how long the main thread may wait between two looks, at most max_ms. */
static int wait_between_looks_ms(const struct reports *n, int max_ms)
{
    const int64_t wait_ms = n->to.watchdog_us / 1000 / LOOKS_PER_WATCHDOG;

    if (n->to.watchdog_us == 0 || wait_ms > max_ms)
        return max_ms;
    return wait_ms > 0 ? (int)wait_ms : 1;
}

/*
 * A look: sends what could not be sent before, and a sign to the watchdog if all loops turn.
 * @param stall_us  the longest time that a loop has not turned
 */
static void report_look(struct reports *n, int64_t stall_us)
{
    if (n->ready && !n->told)
        report_ready(n);
    if (n->to.watchdog_us == 0)
        return;
    if (stall_us < n->to.watchdog_us || stall_us < STALL_MIN_US) {
        (void)hfd_notify_send(&n->to, "WATCHDOG=1\n");
        n->silent = false;
    } else if (!n->silent) {
        HFD_LOG(HFD_LOG_ERROR, "a loop thread does not turn: the watchdog gets no sign",
                HFD_LOG_INT("stall_ms", stall_us / 1000));
        n->silent = true;
    }
}

/* ---- the server's parts ---- */

#define WATCH_MS 2000 /* how often files that may change are looked at */
/* Time to close after the store has failed, when open work cannot finish. */
#define BROKEN_GRACE_S 5

struct serve {
    struct hfd_settings *settings;
    int signal_fd;
    int broken_fd; /* written by the store's writer if the store fails */
    struct reports notify;
    bool has_data; /* there was a database before the start */
    struct hfd_steady steady;
    const char *clock_path;
    const struct hfd_clock *clock; /* the steady one, or that of the database */
    struct hfd_keeper *keeper;     /* NULL = the only server of its database */
    struct hfd_serve_keys keys;
    struct hfd_serve_reseal *reseal;
    struct hfd_guard *guard;
    struct hfd_spec_schemas spec_schemas;
    struct hfd_driver driver;
    struct hfd_bell bell;
    struct hfd_app early_app;
    struct hfd_server *early; /* of probes, before the store is open; NULL = none */
    struct hfd_store *store;
    struct hfd_serve_remote remote;
    struct hfd_app app;
    struct hfd_server *server;
    struct hfd_aging *aging;
    struct hfd_demo *demo;
    struct hfd_serve_hypershift hypershift;
    struct hfd_serve_events events;
    enum hfd_exit status; /* exit status so far */
    bool ended;           /* by a signal, before all parts were open */
    struct stat config_seen, files_seen[HFD_SETTING_COUNT]; /* of files that are read once */
};

/* --- files that are read at a start only --- */

/* Notes the state of a file, or says that it is another one than at the start. */
static void look_once(const char *setting, hfd_slice path, struct stat *seen, bool starting)
{
    struct stat now = {0};

    if (path.len == 0)
        return;
    (void)stat(path.p, &now); /* all zero when it is gone */
    if (!starting && !hfd_file_same(&now, seen))
        HFD_LOG(HFD_LOG_WARN,
                "a changed file is read at a restart only; what was read at the start stays in use",
                HFD_LOG_CSTR("setting", setting), HFD_LOG_STR("path", path));
    *seen = now;
}

static void look_at_fixed_files(struct serve *s, bool starting)
{
    look_once("config", s->settings->file, &s->config_seen, starting);
    for (size_t i = 0; i < hfd_setting_file_count; i++) {
        const enum hfd_setting which = hfd_setting_files[i].which;

        if (hfd_setting_files[i].reads == HFD_READS_STARTS)
            look_once(hfd_setting_key(which), hfd_setting_path(s->settings, which),
                      &s->files_seen[which], starting);
    }
}

/* --- signals --- */

static enum hfd_exit open_signals(struct serve *s, struct hfd_err *err)
{
    open_reports(&s->notify);
    s->signal_fd = hfd_serve_signals_open();
    s->broken_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->signal_fd >= 0 && s->broken_fd >= 0)
        return HFD_EXIT_OK;
    (void)hfd_fail(err, HFD_IO, "%s", strerror(errno));
    return HFD_EXIT_INTERNAL;
}

static void close_signals(struct serve *s)
{
    if (s->signal_fd >= 0)
        (void)close(s->signal_fd);
    if (s->broken_fd >= 0)
        (void)close(s->broken_fd);
    hfd_notify_close(&s->notify.to);
}

/* --- what the settings name --- */

static void log_odd(void *ctx, const char *key, const char *text)
{
    const struct serve *s = ctx;

    HFD_LOG(HFD_LOG_WARN, "suspicious setting", HFD_LOG_CSTR("setting", key),
            HFD_LOG_STR("given", hfd_settings_origin(s->settings, key)),
            HFD_LOG_CSTR("reason", text));
}

static enum hfd_exit exit_of_look(hfd_rc rc)
{
    if (rc == HFD_OK)
        return HFD_EXIT_OK;
    return rc == HFD_NOMEM ? HFD_EXIT_INTERNAL : HFD_EXIT_USAGE;
}

static void log_open(void *ctx, const char *key, const char *path, unsigned mode)
{
    char text[HFD_LOOK_OPEN_TEXT_MAX];

    (void)path;
    hfd_look_open_text(mode, text);
    log_odd(ctx, key, text);
}

/* Checks the settings and their files before anything is created. Later steps open the files. */
static enum hfd_exit look_at_settings(struct serve *s, struct hfd_err *err)
{
    hfd_rc rc;

    hfd_look_settings(s->settings, log_odd, s);
    look_at_fixed_files(s, true);
    rc = hfd_cli_need(s->settings, HFD_SETTING_keys, err);
    if (rc == HFD_OK)
        rc = hfd_look_files(s->settings, NULL, NULL, err);
    if (rc == HFD_OK)
        rc = hfd_look_secrets(s->settings, log_open, s, err);
    return exit_of_look(rc);
}

/* --- authentication --- */

/* A start off loopback needs a valid credential. Checked before anything is created. */
static enum hfd_exit open_guard(struct serve *s, struct hfd_err *err)
{
    hfd_rc rc = hfd_look_guard(s->settings, &s->guard, err);

    if (rc == HFD_OK && s->settings->insecure_no_auth && !hfd_guard_is_on(s->guard))
        HFD_LOG(HFD_LOG_WARN,
                "insecure_no_auth: everyone who reaches a listener may do everything");
    return exit_of_look(rc);
}

static void close_guard(struct serve *s)
{
    hfd_guard_free(s->guard);
}

static enum hfd_exit start_guard(struct serve *s, struct hfd_err *err)
{
    const char *path = hfd_cli_local_token_path(s->settings);
    hfd_rc rc;

    if (path == NULL) {
        (void)hfd_fail_nomem(err, "start the server");
        return HFD_EXIT_INTERNAL;
    }
    rc = hfd_guard_start(s->guard, s->store, path, err);
    if (rc == HFD_IO)
        return HFD_EXIT_DATA;
    return rc == HFD_OK ? HFD_EXIT_OK : HFD_EXIT_INTERNAL;
}

static void stop_guard(struct serve *s)
{
    hfd_guard_stop(s->guard);
}

/*
 * Loads the schemas of specs. An unusable file stops the start, because any spec would pass without
 * it.
 */
static enum hfd_exit open_spec_schemas(struct serve *s, struct hfd_err *err)
{
    return exit_of_look(hfd_look_spec_schemas(s->settings, &s->spec_schemas, err));
}

static void close_spec_schemas(struct serve *s)
{
    hfd_spec_schemas_free(&s->spec_schemas);
}

static enum hfd_exit exit_of_listen(hfd_rc rc)
{
    return rc == HFD_IO ? HFD_EXIT_ADDRESS : exit_of_look(rc);
}

/* An address in use ends the start before anything is made. */
static enum hfd_exit probe_addresses(struct serve *s, struct hfd_err *err)
{
    return exit_of_listen(hfd_addresses_probe(s->settings, err));
}

/* --- data and keys --- */

static enum hfd_exit open_data(struct serve *s, struct hfd_err *err)
{
    const char *path;

    if (hfd_settings_has_postgres(s->settings))
        return HFD_EXIT_OK;
    if (hfd_cli_make_data(s->settings, err) != HFD_OK)
        return HFD_EXIT_DATA;
    path = hfd_arena_printf(&s->settings->mem, "%s/" HFD_FOLDER_DB_NAME, s->settings->data.p).p;
    if (path == NULL) {
        (void)hfd_fail_nomem(err, "start the server");
        return HFD_EXIT_INTERNAL;
    }
    s->has_data = access(path, F_OK) == 0 || errno != ENOENT;
    return HFD_EXIT_OK;
}

static void warn_clock(const struct hfd_err *err)
{
    HFD_LOG(HFD_LOG_WARN, "after a restart, jumps of the wall clock will not be noticed",
            HFD_LOG_CSTR("error", err->msg));
}

/* The server runs without it. */
static enum hfd_exit open_clock(struct serve *s, struct hfd_err *err)
{
    if (s->keeper != NULL) {
        s->clock = hfd_keeper_clock(s->keeper);
        return HFD_EXIT_OK;
    }
    s->clock = &s->steady.clock;
    s->clock_path = hfd_arena_printf(&s->settings->mem, "%s/clock", s->settings->data.p).p;
    if (s->clock_path == NULL) {
        (void)hfd_fail_nomem(err, "start the server");
        return HFD_EXIT_INTERNAL;
    }
    hfd_steady_init(&s->steady, &hfd_clock_boot);
    if (hfd_steady_resume(&s->steady, s->clock_path, err) != HFD_OK)
        warn_clock(err);
    return HFD_EXIT_OK;
}

static void close_clock(struct serve *s)
{
    struct hfd_err err;

    if (s->clock_path != NULL && hfd_steady_save(&s->steady, s->clock_path, &err) != HFD_OK)
        warn_clock(&err);
}

/* Runs before the store opens. If a start ends between the two, the next start uses the ring. */
static enum hfd_exit open_keys(struct serve *s, struct hfd_err *err)
{
    const char *path = hfd_cli_keys_path(s->settings);
    enum hfd_serve_ring_need need = s->has_data ? HFD_SERVE_RING_DATA : HFD_SERVE_RING_MAKE;

    if (hfd_settings_has_postgres(s->settings))
        need = HFD_SERVE_RING_SHARED;
    if (path != NULL)
        return hfd_serve_keys_open(&s->keys, path, need, err);
    (void)hfd_fail_nomem(err, "start the server");
    return HFD_EXIT_INTERNAL;
}

static void close_keys(struct serve *s)
{
    hfd_serve_keys_close(&s->keys);
}

static enum hfd_exit open_hypershift(struct serve *s, struct hfd_err *err)
{
    return exit_of_look(hfd_serve_hypershift_open(&s->hypershift, s->settings, false, err));
}

static void close_hypershift(struct serve *s)
{
    hfd_serve_hypershift_close(&s->hypershift);
}

static enum hfd_exit open_events(struct serve *s, struct hfd_err *err)
{
    return exit_of_look(hfd_serve_events_open(&s->events, s->settings, &hfd_clock_system, err));
}

static void close_events(struct serve *s)
{
    hfd_serve_events_close(&s->events);
}

/* Another replica has committed something. */
static void on_news(void *ctx)
{
    struct serve *s = ctx;

    atomic_fetch_add(&hfd_store_stamps(s->store)->others, 1);
    hfd_bell_ring(&s->bell);
}

/* A driver resource has changed. */
static void on_changed(void *ctx)
{
    struct serve *s = ctx;

    hfd_bell_wake(&s->bell);
    hfd_keeper_note(s->keeper);
}

/* A cluster or nodepool has become due. */
static void on_due(void *ctx)
{
    struct serve *s = ctx;

    hfd_bell_ring(&s->bell);
    hfd_keeper_note(s->keeper);
}

static enum hfd_exit open_driver(struct serve *s, struct hfd_err *err)
{
    hfd_rc rc = hfd_serve_driver_init(&s->driver, s->settings, s->keys.rings->ring, err);

    if (rc == HFD_OK)
        rc = hfd_serve_hypershift_add(&s->hypershift, s->settings, &s->driver, err);
    if (rc == HFD_OK)
        hfd_driver_complete(&s->driver);

    s->driver.fleet.bell = (struct hfd_fleet_bell){on_due, s};
    s->driver.rules.spec_schema[HFD_KIND_CLUSTER] = s->spec_schemas.cluster;
    s->driver.rules.spec_schema[HFD_KIND_NODEPOOL] = s->spec_schemas.nodepool;
    return rc == HFD_OK ? HFD_EXIT_OK : HFD_EXIT_INTERNAL;
}

/* --- probes before the start --- */

/* Thread: loop. */
static const char *not_ready(void *ctx)
{
    (void)ctx;
    return "waiting for the database";
}

/*
 * Opens the ops listener for probes and metrics alone. While the server waits for its database,
 * /livez answers 200 and /readyz 503, so that no orchestrator restarts it. With SQLite it opens
 * none: no database is away, or shared with a server that migrates it.
 */
static enum hfd_exit open_early(struct serve *s, struct hfd_err *err)
{
    hfd_rc rc;

    if (!hfd_settings_has_postgres(s->settings))
        return HFD_EXIT_OK;
    s->early_app = (struct hfd_app){
        .settings = s->settings,
        .clock = &hfd_clock_system,
        .rng = &hfd_rng_system,
        .ops_only = true,
        .opens_later = true,
        .not_ready = not_ready,
    };
    rc = hfd_server_open(&s->early_app, &s->early, err);
    if (rc == HFD_OK)
        rc = hfd_server_start(s->early, err);
    if (rc != HFD_OK)
        hfd_server_free(&s->early);
    return exit_of_listen(rc);
}

/* Closes it, once the server itself listens there as well. Closed already: no error. */
static void close_early(struct serve *s)
{
    if (s->early != NULL)
        hfd_server_stop(s->early);
    hfd_server_free(&s->early);
}

/* --- the store --- */

static void on_broken(void *ctx)
{
    struct serve *s = ctx;

    (void)eventfd_write(s->broken_fd, 1);
}

/* Waits for a time, or for a signal that ends the server. */
static bool pause_start(struct serve *s, int64_t pause_us)
{
    struct pollfd fd = {.fd = s->signal_fd, .events = POLLIN};

    if (poll(&fd, 1, (int)(pause_us / 1000)) == 1)
        s->ended = hfd_serve_signals_read(s->signal_fd) != SIGHUP;
    return !s->ended;
}

#define PAUSE_MIN_US (HFD_US_PER_S / 5)
#define PAUSE_MAX_US (5 * HFD_US_PER_S)
#define SAY_AGAIN_US (30 * HFD_US_PER_S)

/* The wait for a database: it doubles its pauses, and logs each reason once in half a minute. */
struct wait {
    struct hfd_settings *settings;
    int64_t pause_us;
    int64_t said_us; /* when a reason was logged; 0 = never */
    char said[256];  /* its beginning */
};

static void say(struct wait *w, const struct hfd_err *why)
{
    const int64_t now_us = hfd_clock_mono_us(&hfd_clock_system);
    char text[sizeof(w->said)];

    (void)snprintf(text, sizeof(text), "%s", why->msg);
    if (w->said_us != 0 && strcmp(text, w->said) == 0 && now_us - w->said_us < SAY_AGAIN_US)
        return;
    memcpy(w->said, text, sizeof(w->said));
    w->said_us = now_us;
    HFD_LOG(HFD_LOG_WARN, "waiting for the database: not ready until it can be reached",
            HFD_LOG_CSTR("store", hfd_cli_place_text(w->settings)),
            HFD_LOG_CSTR("error", why->msg));
}

static enum hfd_exit exit_of(hfd_rc rc)
{
    if (rc == HFD_CONFLICT || rc == HFD_IO || rc == HFD_INVALID || rc == HFD_CORRUPT)
        return HFD_EXIT_DATA;
    return rc == HFD_OK ? HFD_EXIT_OK : HFD_EXIT_INTERNAL;
}

/*
 * Opens the store. While a PostgreSQL database cannot be reached it tries on, and logs the reason.
 * Any other failure ends the attempt: a wrong password, a database without C collation. There is no
 * store if a signal ends the wait.
 */
static enum hfd_exit open_store(struct serve *s, struct hfd_err *err)
{
    const struct hfd_settings *settings = s->settings;
    const struct hfd_store_config config = {
        .place = hfd_cli_place(settings),
        .queue_max = (size_t)settings->store_queue_max,
        .readers = (unsigned)settings->store_readers,
        .read_timeout_us = settings->store_read_timeout_us,
        .clock = &hfd_clock_system,
    };
    struct wait w = {.settings = s->settings, .pause_us = PAUSE_MIN_US};
    hfd_rc rc;

    if (settings->unused_data.len > 0)
        HFD_LOG(HFD_LOG_INFO, "the folder of HFD_DATA is not used: the store is PostgreSQL",
                HFD_LOG_STR("data", settings->unused_data));
    for (;;) {
        rc = hfd_store_open(&config, &s->store, err);
        if (rc != HFD_AWAY)
            break;
        say(&w, err);
        if (!pause_start(s, w.pause_us))
            return HFD_EXIT_OK;
        w.pause_us = 2 * w.pause_us < PAUSE_MAX_US ? 2 * w.pause_us : PAUSE_MAX_US;
    }
    if (rc != HFD_OK)
        return exit_of(rc);
    if (w.said_us != 0)
        HFD_LOG(HFD_LOG_INFO, "the database can be reached",
                HFD_LOG_CSTR("store", hfd_cli_place_text(s->settings)));
    hfd_store_on_broken(s->store, on_broken, s);
    hfd_store_on_change(s->store, on_changed, s);
    return HFD_EXIT_OK;
}

/* Gives the exit status of a failed step. @return OK, KEYS, INTERNAL, DATA */
static enum hfd_exit exit_of_keys(hfd_rc rc)
{
    if (rc == HFD_INVALID || rc == HFD_CONFLICT)
        return HFD_EXIT_KEYS;
    if (rc == HFD_NOMEM)
        return HFD_EXIT_INTERNAL;
    return rc == HFD_OK ? HFD_EXIT_OK : HFD_EXIT_DATA;
}

static enum hfd_exit compare_keys(struct serve *s, struct hfd_err *err)
{
    return exit_of_keys(hfd_serve_keys_check(&s->keys, s->store, err));
}

#define NAME_MAX_BYTES 256

/*
 * Starts the keeper, and gives the driver's fingerprint the epoch of the settings: this server is
 * one of several on a PostgreSQL database (driver/replica/keeper.h). With SQLite there is none.
 * @return OK, DATA (the database failed), INTERNAL
 */
static enum hfd_exit open_replica(struct serve *s, struct hfd_err *err)
{
    char name[NAME_MAX_BYTES] = "";
    char key_ids[HFD_SERVE_KEY_IDS_MAX];
    struct hfd_fleet *const fleet = &s->driver.fleet;
    const struct hfd_keeper_config config = {
        .store = s->store,
        .clock = &hfd_clock_boot,
        .rng = &hfd_rng_system,
        .name = name,
        .schema = (int64_t)hfd_migrations_count,
        .key_ids = key_ids,
        .settings = {fleet->settings_fingerprint, hfd_driver_rules_fingerprint(&s->driver)},
    };
    hfd_rc rc;

    if (!hfd_settings_has_postgres(s->settings) || s->store == NULL)
        return HFD_EXIT_OK;
    if (gethostname(name, sizeof(name) - 1) != 0)
        name[0] = '\0'; /* it may have written some */
    hfd_serve_keys_name(s->driver.ring, key_ids);
    rc = hfd_keeper_start(&config, &s->keeper, err);
    if (rc != HFD_OK)
        return rc == HFD_NOMEM ? HFD_EXIT_INTERNAL : HFD_EXIT_DATA;
    fleet->settings_fingerprint =
        hfd_fleet_fingerprint_of_epoch(fleet->settings_fingerprint, hfd_keeper_epoch(s->keeper));
    return HFD_EXIT_OK;
}

/* The driver has another key ring: the other replicas and the work of a rotation learn it. */
static void tell_of_keys(struct serve *s)
{
    char key_ids[HFD_SERVE_KEY_IDS_MAX];

    if (s->keeper != NULL) {
        hfd_serve_keys_name(s->driver.ring, key_ids);
        hfd_keeper_set_keys(s->keeper, key_ids);
    }
    hfd_serve_reseal_wake(s->reseal);
}

/*
 * Logs why the store takes no more work.
 * @return DATA (the database needs a newer program), INTERNAL (the store failed)
 */
static enum hfd_exit say_broken(const struct serve *s)
{
    struct hfd_keeper_state state = {.shut_out = false};

    if (s->keeper != NULL)
        hfd_keeper_state(s->keeper, &state);
    if (state.shut_out) {
        HFD_LOG(HFD_LOG_ERROR, "stopping: the database needs a newer version of this program");
        return HFD_EXIT_DATA;
    }
    HFD_LOG(HFD_LOG_ERROR, "stopping: the store failed; a restart recovers what was acknowledged");
    return HFD_EXIT_INTERNAL;
}

static void close_replica(struct serve *s)
{
    hfd_keeper_stop(&s->keeper);
}

static enum hfd_exit start_reseal(struct serve *s, struct hfd_err *err)
{
    const struct hfd_serve_reseal_parts parts = {&s->driver, s->store, s->keeper};

    return exit_of_keys(hfd_serve_reseal_start(&parts, &s->reseal, err));
}

static void stop_reseal(struct serve *s)
{
    hfd_serve_reseal_stop(&s->reseal);
}

static void close_store(struct serve *s)
{
    if (s->store == NULL)
        return;
    if (!hfd_store_ok(s->store) && s->status == HFD_EXIT_OK)
        s->status = HFD_EXIT_INTERNAL; /* also if the store failed while draining */
    hfd_store_close(&s->store);
}

static enum hfd_exit open_remote(struct serve *s, struct hfd_err *err)
{
    const struct hfd_serve_remote_parts parts = {s->settings, &s->driver, s->store, s->clock,
                                                 s->keeper};

    return hfd_serve_remote_open(&s->remote, &parts, err);
}

static void close_remote(struct serve *s)
{
    hfd_keeper_unlisten(s->remote.keeper, s->remote.thread);
    hfd_remote_stop(&s->remote.thread);
}

/* --- the server --- */

static enum hfd_exit open_server(struct serve *s, struct hfd_err *err)
{
    bool known;

    s->app = (struct hfd_app){
        .settings = s->settings,
        .before = s->early,
        .store = s->store,
        .driver = &s->driver,
        .clock = s->clock,
        .bell = &s->bell,
        .repeats = s->events.repeats,
        .keeper = s->keeper,
        .rng = &hfd_rng_system,
        .guard = s->guard,
        .without_fleet = s->remote.thread != NULL,
        .backend_health = s->remote.thread != NULL ? hfd_serve_remote_health : NULL,
        .backend_health_ctx = s->remote.thread,
        .page = hfd_web_serve,
    };
    known = hfd_vocabulary_parse(s->settings->fleet_conditions, &s->app.vocabulary);
    HFD_ASSERT(known); /* checked by the settings */
    return exit_of_listen(hfd_server_open(&s->app, &s->server, err));
}

static void close_server(struct serve *s)
{
    hfd_server_free(&s->server);
}

static enum hfd_exit start_server(struct serve *s, struct hfd_err *err)
{
    if (hfd_server_start(s->server, err) != HFD_OK)
        return HFD_EXIT_INTERNAL;
    hfd_keeper_listen(s->keeper, on_news, s);
    close_early(s);
    hfd_server_watch(s->server, false);
    return HFD_EXIT_OK;
}

static void stop_server(struct serve *s)
{
    const char *addresses = hfd_cli_addresses_path(s->settings);

    if (addresses != NULL && addresses[0] != '\0')
        (void)unlink(addresses);
    hfd_keeper_unlisten(s->keeper, s);
    hfd_server_stop(s->server);
}

static void stop_adapters(struct serve *s)
{
    hfd_serve_hypershift_stop(&s->hypershift);
    hfd_demo_stop(&s->demo);
    hfd_aging_stop(&s->aging);
}

/* Starts the adapters inside the server, each with its thread. If one does not start, stops the
 * others. */
static enum hfd_exit start_adapters(struct serve *s, struct hfd_err *err)
{
    const struct hfd_aging_config aging = {
        .store = s->store,
        .keeper = s->keeper,
        .driver = &s->driver,
        .clock = s->clock,
        .folder = s->keeper == NULL ? s->settings->data.p : NULL,
    };
    const struct hfd_demo_config demo = {
        .store = s->store,
        .keeper = s->keeper,
        .driver = &s->driver,
        .clock = s->clock,
        .bell = &s->bell,
        .total_us = s->settings->demo_us,
    };
    const struct hfd_serve_hypershift_parts parts = {s->store, &s->driver, s->clock, s->keeper,
                                                     &s->bell};
    hfd_rc rc = hfd_aging_start(&aging, &s->aging, err);

    if (rc == HFD_OK && demo.total_us >= 0)
        rc = hfd_demo_start(&demo, &s->demo, err);
    if (rc == HFD_OK)
        rc = hfd_serve_hypershift_start(&s->hypershift, &parts, err);
    if (rc != HFD_OK)
        stop_adapters(s);
    return exit_of_look(rc);
}

static void stop_events(struct serve *s)
{
    hfd_serve_events_stop(&s->events);
}

static enum hfd_exit start_events(struct serve *s, struct hfd_err *err)
{
    const struct hfd_outbox_parts parts = {.store = s->store,
                                           .keeper = s->keeper,
                                           .driver = &s->driver,
                                           .clock = s->clock,
                                           .rng = &hfd_rng_system,
                                           .bell = &s->bell};

    return exit_of_look(hfd_serve_events_start(&s->events, &parts, err));
}

/* --- the whole --- */

/*
 * The parts of the server, opened in this order and closed in reverse. A failed step closes what it
 * opened, except the first one.
 */
static const struct {
    const char *name;
    enum hfd_exit (*open)(struct serve *s, struct hfd_err *err);
    void (*close)(struct serve *s);
} steps[] = {
    {"signals", open_signals, NULL},
    {"files of the settings", look_at_settings, NULL},
    {"authentication", open_guard, close_guard},
    {"fleet.spec_schema", open_spec_schemas, close_spec_schemas},
    {"hypershift", open_hypershift, close_hypershift},
    {"targets", open_events, close_events},
    {"addresses", probe_addresses, NULL},
    {"data folder", open_data, NULL},
    {"key ring", open_keys, close_keys},
    {"driver", open_driver, NULL},
    {"early probes", open_early, close_early},
    {"store", open_store, close_store},
    {"keys of the data", compare_keys, NULL},
    {"replica", open_replica, close_replica},
    {"clock", open_clock, close_clock}, /* after the lock: it writes to the folder when it closes */
    {"remote", open_remote, close_remote},
    {"guard", start_guard, stop_guard},
    {"listeners", open_server, close_server},
    {"adapters", start_adapters, stop_adapters},
    {"sealing again", start_reseal, stop_reseal},
    {"targets of events", start_events, stop_events},
    {"loops", start_server, stop_server}, /* last: a stop waits for no thread before it drains */
};
#define STEP_COUNT (sizeof(steps) / sizeof(steps[0]))

static void close_steps(struct serve *s, size_t opened)
{
    while (opened-- > 0) {
        if (steps[opened].close != NULL)
            steps[opened].close(s);
    }
}

static void reload(struct serve *s)
{
    report_reloading(&s->notify);
    look_at_fixed_files(s, false);
    hfd_guard_look(s->guard);
    if (s->remote.thread != NULL)
        hfd_remote_reload(s->remote.thread);
    hfd_serve_hypershift_reload(&s->hypershift);
    hfd_serve_events_reload(&s->events);
    hfd_server_watch(s->server, true);
    (void)hfd_serve_keys_look(&s->keys, s->store, &s->driver, true);
    tell_of_keys(s);
    report_ready(&s->notify);
}

/* Takes up changed files. A key ring without replicas waits for SIGHUP. */
static void watch_files(struct serve *s)
{
    hfd_server_watch(s->server, false);
    if (hfd_settings_has_postgres(s->settings) &&
        hfd_serve_keys_look(&s->keys, s->store, &s->driver, false))
        tell_of_keys(s);
}

/* Handles one signal. Returns it if it ends the server, else 0. */
static uint32_t on_signal(struct serve *s)
{
    const uint32_t signo = hfd_serve_signals_read(s->signal_fd);

    if (signo != SIGHUP)
        return signo;
    reload(s);
    return 0;
}

/*
 * Waits for a signal that ends the server and returns it. Returns 0 if the store fails; s->status
 * says so.
 */
static uint32_t wait_for_the_end(struct serve *s)
{
    uint32_t signo = 0;

    while (signo == 0) {
        struct pollfd fds[] = {{.fd = s->signal_fd, .events = POLLIN},
                               {.fd = s->broken_fd, .events = POLLIN}};

        if (poll(fds, 2, wait_between_looks_ms(&s->notify, WATCH_MS)) < 0 && errno != EINTR) {
            HFD_LOG(HFD_LOG_ERROR, "stopping: cannot wait for signals",
                    HFD_LOG_CSTR("error", strerror(errno)));
            s->status = HFD_EXIT_INTERNAL;
            return 0;
        }
        if (fds[1].revents != 0) {
            s->status = say_broken(s);
            return 0;
        }
        if (fds[0].revents != 0)
            signo = on_signal(s);
        else
            watch_files(s);
        report_look(&s->notify, hfd_server_stall_us(s->server));
    }
    return signo;
}

static void run(struct serve *s)
{
    struct hfd_err err = {0};
    size_t opened = 0;
    uint32_t signo;

    while (opened < STEP_COUNT && s->status == HFD_EXIT_OK && !s->ended) {
        s->status = steps[opened].open(s, &err);
        if (s->status == HFD_EXIT_OK)
            opened++;
        else
            HFD_LOG(HFD_LOG_ERROR, "cannot start", HFD_LOG_CSTR("step", steps[opened].name),
                    HFD_LOG_CSTR("error", err.msg));
    }
    if (opened == STEP_COUNT && !s->ended) {
        hfd_serve_ready(
            &(struct hfd_serve_ready){s->settings, s->server, hfd_guard_is_on(s->guard)});
        report_ready(&s->notify);
        signo = wait_for_the_end(s);
        report_stopping(&s->notify);
        hfd_serve_signals_arm_second(s->signal_fd);
        if (signo == 0)
            (void)alarm(BROKEN_GRACE_S);
        else
            HFD_LOG(HFD_LOG_INFO, "stopping: open requests may finish",
                    HFD_LOG_CSTR("signal", signo == SIGTERM ? "SIGTERM" : "SIGINT"));
    }
    close_steps(s, opened);
    if (s->status == HFD_EXIT_OK)
        HFD_LOG(HFD_LOG_INFO, "stopped");
    close_signals(s);
}

enum hfd_exit hfd_cmd_serve(int argc, const char **argv)
{
    struct serve s = {.signal_fd = -1,
                      .broken_fd = -1,
                      .notify.to.fd = -1,
                      .bell = HFD_BELL_INIT,
                      .status = HFD_EXIT_OK};
    struct hfd_flags flags = {.command = "serve", .others = HFD_FLAG_ALL};
    struct hfd_err err = {0};

    if (!hfd_cli_read(&flags, argc, argv, &s.status))
        return s.status;
    hfd_serve_signals_block(); /* before the first thread, so that all threads block them */
    (void)signal(SIGPIPE, SIG_IGN);
    (void)umask(077);
    s.status = hfd_cli_settings(&flags, &s.settings);
    if (s.status != HFD_EXIT_OK)
        return s.status;
    hfd_log_set_level(s.settings->log_level);
    hfd_log_set_text(hfd_serve_logs_text(s.settings));
    if (hfd_base_init(&err) == HFD_OK)
        run(&s);
    else
        s.status = hfd_cli_fail(HFD_EXIT_INTERNAL, "serve", "%s", err.msg);
    hfd_settings_free(s.settings);
    return s.status;
}
