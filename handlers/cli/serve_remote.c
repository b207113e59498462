/* See serve_remote.h. */
#include "handlers/cli/serve_remote.h"

#include "driver/backend/remote/work.h"
#include "driver/core/resource.h"
#include "driver/replica/keeper.h"
#include "handlers/cli/look.h"

static void polled(void *ctx, hfd_slice guresid)
{
    const struct hfd_serve_remote *r = ctx;

    hfd_remote_asked(r->thread, guresid);
}

static void wake(void *ctx)
{
    const struct hfd_serve_remote *r = ctx;

    hfd_remote_wake(r->thread);
    hfd_keeper_note(r->keeper);
}

static void on_news(void *thread)
{
    hfd_remote_wake(thread);
}

/* Without TLS, others on the way can read the token. */
static void warn_of_plain_http(const struct hfd_settings *s)
{
    static const char *const near[] = {"http://127.", "http://localhost", "http://[::1]"};

    if (s->remote_token_file.len == 0 || !hfd_slice_starts(s->backend, HFD_SLICE("http://")))
        return;
    for (size_t i = 0; i < sizeof(near) / sizeof(near[0]); i++)
        if (hfd_slice_starts(s->backend, hfd_slice_of(near[i])))
            return;
    HFD_LOG(HFD_LOG_WARN, "the token for the remote is sent without TLS; use an https:// URL",
            HFD_LOG_STR("remote", s->backend));
}

enum hfd_exit hfd_serve_remote_open(struct hfd_serve_remote *r,
                                    const struct hfd_serve_remote_parts *parts, struct hfd_err *err)
{
    const struct hfd_settings *s = parts->settings;
    struct hfd_driver *d = parts->driver;
    struct hfd_remote_config config = {
        .store = parts->store,
        .keeper = parts->keeper,
        .policy = &r->policy,
        .rng = &hfd_rng_system,
        .http = hfd_look_http(s),
        .fresh_us = s->remote_fresh_us,
        .in_flight_max = s->remote_in_flight_max,
        .per_second_max = s->remote_per_second_max,
    };
    hfd_rc rc;

    config.http.clock = parts->clock;
    *r = (struct hfd_serve_remote){.keeper = parts->keeper};
    if (!hfd_look_is_remote(s))
        return HFD_EXIT_OK;
    hfd_keyring_fingerprint(d->ring, r->owner);
    r->policy = (struct hfd_remote_policy){
        .fleet = &d->fleet,
        .owner = hfd_slice_of(r->owner),
        .watch_us = s->remote_watch_us,
        .idle_us = s->remote_idle_us,
        .retry_min_us = s->remote_retry_min_us,
        .retry_max_us = s->remote_retry_max_us,
        .rng = &hfd_rng_system,
        .observer = d,
        .on_changes = hfd_resource_on_changes,
        .on_trouble = hfd_resource_on_trouble,
        .on_refused = hfd_resource_on_refused,
    };
    warn_of_plain_http(s);
    rc = hfd_remote_start(&config, &r->thread, err);
    if (rc == HFD_OK) {
        d->worker = (struct hfd_backend_worker){r, polled, wake};
        hfd_keeper_listen(r->keeper, on_news, r->thread);
        /* The store may be older than existing HyperFleet resources. */
        hfd_remote_asked(r->thread, HFD_REMOTE_ORPHANS);
        return HFD_EXIT_OK;
    }
    return rc == HFD_INVALID ? HFD_EXIT_USAGE : HFD_EXIT_INTERNAL;
}

void hfd_serve_remote_close(struct hfd_serve_remote *r)
{
    hfd_keeper_unlisten(r->keeper, r->thread);
    hfd_remote_stop(&r->thread);
}

void hfd_serve_remote_health(void *remote, struct hfd_buf *b)
{
    struct hfd_remote_state state;

    hfd_remote_state(remote, &state);
    hfd_buf_addf(b, "{\"health\":\"%s\",\"paused\":%s,\"requests_in_flight\":%lld",
                 hfd_remote_health_name(state.health), state.breaker_open ? "true" : "false",
                 (long long)state.in_flight);
    if (state.last_answer_us != 0)
        hfd_buf_member_time(b, ",\"last_answer\":", state.last_answer_us);
    if (state.last_failure[0] != '\0')
        hfd_buf_member_str(b, ",\"last_failure\":", hfd_slice_of(state.last_failure));
    hfd_buf_addc(b, '}');
}
