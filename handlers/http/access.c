/* See access.h. */
#include "handlers/http/access.h"

#include "driver/base/log.h"
#include "driver/base/metrics.h"
#include "driver/core/driver.h"
#include "handlers/auth/decide.h"
#include "handlers/http/door.h"
#include "handlers/http/origin.h"

static void format_client(const struct hfd_exchange *x, char out[HFD_FROM_MAX])
{
    hfd_host_address_format(&x->client, out);
}
_Static_assert(HFD_FROM_MAX >= HFD_IP_TEXT_MAX, "an address fits");

/* Finds the credentials of a request and checks them. */
static hfd_rc identify(struct hfd_exchange *x, int64_t now_us, struct hfd_guard_answer *out,
                       struct hfd_err *err)
{
    const struct hfd_conn *conn = hfd_exchange_conn(x);
    const bool basic = hfd_headers_takes_basic(conn->listener->which);
    hfd_slice secret = hfd_exchange_path_token(x), header;
    HFD_BASIC_TEXT(password);
    hfd_rc rc = HFD_OK;

    *out = (struct hfd_guard_answer){.caller = {.fault = HFD_AUTH_NONE}};
    if (secret.len == 0) {
        rc = hfd_exchange_header(x, "authorization", &header, err);
        out->caller.fault = rc == HFD_OK
                                ? hfd_credential_read(header, basic ? password : NULL, &secret)
                                : HFD_AUTH_UNREADABLE;
    }
    if (out->caller.fault == HFD_AUTH_NONE)
        hfd_guard_check(hfd_exchange_app(x)->guard, &conn->loop->guard_view, secret, now_us, out);
    hfd_credential_wipe(password, secret);
    return rc;
}

/* Counts and logs the refusal of a caller that is known, or that brought no credentials. */
static void note_refusal(const struct hfd_exchange *x, const char *text, const char *reason)
{
    struct hfd_guard *guard = hfd_exchange_app(x)->guard;
    struct hfd_failure_note note = {.log = true};
    char from[HFD_FROM_MAX];

    if (guard != NULL)
        note = hfd_failures_line(hfd_guard_failures(guard),
                                 hfd_loop_mono_us(hfd_exchange_conn(x)->loop));
    format_client(x, from);
    hfd_metric_add(HFD_METRIC_AUTH_REFUSED, HFD_LABELS(reason), 1);
    hfd_conn_log_refusal(&note, reason, text, from);
}

/* Refuses at once. */
static void refuse(struct hfd_exchange *x, enum hfd_access verdict, const char *text,
                   const char *reason)
{
    const hfd_rc rc = verdict == HFD_ACCESS_FORBIDDEN ? HFD_FORBIDDEN
                      : verdict == HFD_ACCESS_LATER   ? HFD_UNCHECKED
                                                      : HFD_UNAUTHORIZED;
    struct hfd_err err;

    note_refusal(x, text, reason);
    hfd_exchange_fail(x, hfd_fail(&err, rc, "%s", text), &err);
}

/* Refuses credentials that are not valid. The answer waits, the longer the more an address fails.
 */
static void refuse_login(struct hfd_exchange *x, const char *text, const char *reason)
{
    struct hfd_failure_note note;
    char from[HFD_FROM_MAX];
    struct hfd_err err;

    format_client(x, from);
    hfd_metric_add(HFD_METRIC_AUTH_REFUSED, HFD_LABELS(reason), 1);
    note = hfd_failures_add(hfd_guard_failures(hfd_exchange_app(x)->guard), from,
                            hfd_loop_mono_us(hfd_exchange_conn(x)->loop));
    hfd_conn_log_refusal(&note, reason, text, from);
    (void)hfd_fail(&err, HFD_UNAUTHORIZED, "%s", text);
    hfd_exchange_refuse_later(x, &err, note.delay_us);
}

static void note_use(struct hfd_exchange *x, struct hfd_guard_answer *answer, int64_t now_us)
{
    char from[HFD_FROM_MAX];

    if (answer->used == NULL)
        return;
    format_client(x, from);
    hfd_guard_note(hfd_exchange_app(x)->guard, answer->used, from, now_us);
}

static bool is_foreign(const struct hfd_exchange *x)
{
    const struct hfd_list *networks = &hfd_exchange_app(x)->settings->auth_networks;

    return networks->count != 0 && !hfd_peer_is_in(networks, &x->client);
}

bool hfd_access_check(struct hfd_exchange *x, enum hfd_need need)
{
    const struct hfd_app *app = hfd_exchange_app(x);
    struct hfd_guard_answer answer;
    char text[HFD_AUTH_TEXT_MAX];
    enum hfd_access verdict;
    struct hfd_err err;
    int64_t now_us;
    hfd_rc rc;

    if (need == HFD_NEED_OPEN)
        return true;
    if (is_foreign(x)) {
        refuse(x, HFD_ACCESS_FORBIDDEN, "this address is in no network of auth.networks",
               "network");
        return false;
    }
    if (app->guard == NULL || !hfd_guard_is_on(app->guard))
        return true;
    now_us = hfd_exchange_request(x)->received_us + hfd_clock_skew_us(app->clock);
    rc = identify(x, now_us, &answer, &err);
    if (rc != HFD_OK) {
        hfd_exchange_fail(x, rc, &err);
        return false;
    }
    verdict = hfd_auth_decide(true, need, &answer.caller, text);
    if (verdict == HFD_ACCESS_UNKNOWN || verdict == HFD_ACCESS_LATER) {
        if (answer.caller.fault == HFD_AUTH_ABSENT || verdict == HFD_ACCESS_LATER)
            refuse(x, verdict, text, hfd_auth_fault_label(answer.caller.fault));
        else
            refuse_login(x, text, hfd_auth_fault_label(answer.caller.fault));
        return false;
    }
    note_use(x, &answer, now_us);
    if (!hfd_exchange_set_caller(x, &answer.caller)) {
        hfd_exchange_fail(x, hfd_fail_nomem(&err, "name the caller"), &err);
        return false;
    }
    if (verdict == HFD_ACCESS_FORBIDDEN)
        refuse(x, verdict, text, "scope");
    return verdict == HFD_ACCESS_ALLOWED;
}

bool hfd_access_lasts(struct hfd_exchange *x)
{
    const struct hfd_app *app = hfd_exchange_app(x);
    const int64_t now_us = hfd_clock_wall_us(&hfd_clock_system);
    struct hfd_guard_answer answer;
    char text[HFD_AUTH_TEXT_MAX];
    struct hfd_err err;

    if (app->guard == NULL || !hfd_guard_is_on(app->guard))
        return true;
    return identify(x, now_us, &answer, &err) == HFD_OK &&
           hfd_auth_decide(true, x->match.route->need, &answer.caller, text) == HFD_ACCESS_ALLOWED;
}

bool hfd_access_may_report(struct hfd_exchange *x, hfd_slice adapter)
{
    char text[HFD_AUTH_TEXT_MAX];

    if (hfd_grant_has_adapter(&x->grant, adapter))
        return true;
    (void)snprintf(text, sizeof(text),
                   "the caller may report as the adapters of its scopes only: %.*s",
                   HFD_SLICE_FMT(x->grant.adapters));
    refuse(x, HFD_ACCESS_FORBIDDEN, text, "adapter");
    return false;
}

hfd_rc hfd_access_check_name(const struct hfd_exchange *x, hfd_slice name, struct hfd_err *err)
{
    static const char text[] =
        "the identity header names the caller as one of this server's own: a "
        "token, or another name of hyperfleet.local";
    const struct hfd_keyset *own = hfd_exchange_conn(x)->loop->guard_view.set;

    if (!hfd_identity_is_ours(name) && (own == NULL || !hfd_keyset_has_name(own, name)))
        return HFD_OK;
    note_refusal(x, text, hfd_auth_fault_label(HFD_AUTH_RESERVED));
    return hfd_fail(err, HFD_FORBIDDEN, "%s", text);
}
