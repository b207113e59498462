/* See health.h. */
#include "driver/backend/remote/health.h"

#include "driver/base/log.h"
#include "driver/base/metrics.h"

#include <stdio.h>

#define BAD_MAX 3 /* answers in a row: then the remote is no longer well */

const char *hfd_remote_health_name(enum hfd_remote_health health)
{
    static const char *const names[] = {[HFD_REMOTE_WELL] = "well",
                                        [HFD_REMOTE_ILL] = "ill",
                                        [HFD_REMOTE_REFUSES] = "refuses",
                                        [HFD_REMOTE_WRONG] = "wrong"};

    return names[health];
}

static const char *method_name(enum hfd_remote_method method)
{
    static const char *const names[] = {[HFD_REMOTE_GET] = "GET",
                                        [HFD_REMOTE_POST] = "POST",
                                        [HFD_REMOTE_PATCH] = "PATCH",
                                        [HFD_REMOTE_DELETE] = "DELETE"};

    return names[method];
}

static void count_answer(const struct hfd_remote_call *call)
{
    static const char *const classes[] = {"1xx", "2xx", "3xx", "4xx", "5xx"};
    const char *method = method_name(call->request.method), *class = "none";

    if (call->answer.arrived)
        class = call->answer.status >= 100 && call->answer.status < 600
                    ? classes[call->answer.status / 100 - 1]
                    : "other";
    hfd_metric_add(HFD_METRIC_REMOTE_REQUESTS, HFD_LABELS(method, class), 1);
    hfd_metric_observe_us(HFD_METRIC_REMOTE_SECONDS, HFD_LABELS(method), call->duration_us);
}

static void log_turn(const struct hfd_remote *r, enum hfd_remote_health health, const char *failure)
{
    static const char *const lines[] = {
        [HFD_REMOTE_WELL] = "remote HyperFleet answers well",
        [HFD_REMOTE_ILL] = ("remote HyperFleet does not answer well; will ask less often until it "
                            "does"),
        [HFD_REMOTE_REFUSES] = ("remote HyperFleet refuses the credentials; check "
                                "remote.token_file and remote.cert_file"),
        [HFD_REMOTE_WRONG] = "the remote is not a HyperFleet; check the URL in backend",
    };

    HFD_LOG(health == HFD_REMOTE_WELL ? HFD_LOG_INFO : HFD_LOG_ERROR, lines[health],
            HFD_LOG_CSTR("remote", r->config.http.url),
            HFD_LOG_CSTR("health", hfd_remote_health_name(health)),
            HFD_LOG_CSTR("failure", failure));
}

static void describe(const struct hfd_remote_call *call, char out[248])
{
    if (!call->answer.arrived)
        (void)snprintf(out, 248, "%s: %s", method_name(call->request.method), call->answer.failure);
    else if (call->answer.status >= 300)
        (void)snprintf(out, 248, "%s was answered with status %d",
                       method_name(call->request.method), call->answer.status);
    else
        (void)snprintf(out, 248, "%s was answered with status %d and %s",
                       method_name(call->request.method), call->answer.status,
                       call->answer.is_json ? "JSON that is no whole document"
                                            : "something else than JSON");
}

void hfd_remote_learn(struct hfd_remote *r, const struct hfd_remote_call *call)
{
    const enum hfd_remote_health health = r->rules->health_of(&call->answer);
    struct hfd_remote_state *state = &r->state;
    bool turned = false;
    char failure[248] = "";

    count_answer(call);
    (void)hfd_breaker_answer(&r->breaker, health == HFD_REMOTE_WELL || health == HFD_REMOTE_REFUSES,
                             hfd_remote_mono_us(r), r->config.rng);
    hfd_metric_set(HFD_METRIC_REMOTE_BREAKER_OPEN, NULL, r->breaker.state != HFD_BREAKER_CLOSED);
    r->bad = health == HFD_REMOTE_WELL ? 0 : r->bad + 1;
    if (health != HFD_REMOTE_WELL)
        describe(call, failure);
    (void)pthread_mutex_lock(&r->lock);
    if (r->bad == 0 || r->bad >= BAD_MAX || !r->ever_well) {
        turned = state->health != health || (health == HFD_REMOTE_WELL && !r->ever_well);
        state->health = health;
    }
    state->breaker_open = r->breaker.state != HFD_BREAKER_CLOSED;
    if (call->answer.arrived)
        state->last_answer_us = hfd_remote_wall_us(r) + hfd_clock_skew_us(r->config.http.clock);
    memcpy(state->last_failure, failure, sizeof(state->last_failure));
    (void)pthread_mutex_unlock(&r->lock);
    r->ever_well = r->ever_well || health == HFD_REMOTE_WELL;
    if (!turned)
        return;
    hfd_metric_set(HFD_METRIC_REMOTE_UP, NULL, health == HFD_REMOTE_WELL);
    log_turn(r, health, failure);
}

void hfd_remote_count_in_flight(struct hfd_remote *r, int by)
{
    (void)pthread_mutex_lock(&r->lock);
    r->state.in_flight += by;
    (void)pthread_mutex_unlock(&r->lock);
    hfd_metric_add(HFD_METRIC_REMOTE_IN_FLIGHT, NULL, by);
}

void hfd_remote_state(struct hfd_remote *r, struct hfd_remote_state *out)
{
    (void)pthread_mutex_lock(&r->lock);
    *out = r->state;
    (void)pthread_mutex_unlock(&r->lock);
}

static void on_greeted(struct hfd_remote_call *call)
{
    struct hfd_remote *r = call->arg;

    hfd_remote_learn(r, call);
    hfd_remote_count_in_flight(r, -1);
    hfd_remote_call_fini(call);
}

void hfd_remote_greet(struct hfd_remote *r)
{
    struct hfd_err err;

    r->greeting = (struct hfd_remote_call){
        .request = {.method = HFD_REMOTE_GET,
                    .path = HFD_SLICE("/clusters?page=1&size=1&pageSize=1")},
        .done = on_greeted,
        .arg = r};
    if (hfd_rate_take(&r->rate, hfd_remote_mono_us(r)) &&
        hfd_remote_http_send(r->http, &r->greeting, &err) == HFD_OK)
        hfd_remote_count_in_flight(r, 1);
}
