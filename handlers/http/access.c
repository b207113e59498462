/* See access.h. */
#include "handlers/http/access.h"

#include "driver/base/log.h"
#include "driver/base/metrics.h"
#include "handlers/auth/credential.h"
#include "handlers/http/door.h"
#include "handlers/http/peer.h"

#include <sodium.h>

bool hfd_access_takes_basic(enum hfd_listener listener)
{
    return listener == HFD_LISTENER_OPS;
}

static void format_client(const struct hfd_exchange *x, char out[HFD_FROM_MAX])
{
    const struct hfd_host_address client = hfd_exchange_client(x);

    hfd_host_address_format(&client, out);
}
_Static_assert(HFD_FROM_MAX >= HFD_ADDRESS_TEXT_MAX, "an address fits");

/* Finds the credentials of a request and checks them. */
static hfd_rc identify(struct hfd_exchange *x, int64_t now_us, struct hfd_guard_answer *out,
                       struct hfd_err *err)
{
    const struct hfd_conn *conn = hfd_exchange_conn(x);
    const bool basic = hfd_access_takes_basic(conn->listener->which);
    hfd_slice secret = hfd_exchange_path_token(x), header;
    char password[HFD_BASIC_MAX_BYTES];
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
    if (basic)
        sodium_memzero(password, sizeof(password));
    return rc;
}

void hfd_access_log_refusal(const struct hfd_failure_note *note, const char *reason,
                            const char *from)
{
    const struct hfd_log_field fields[] = {HFD_LOG_CSTR("reason", reason),
                                           HFD_LOG_CSTR("from", from),
                                           HFD_LOG_INT("silent", note->silent)};

    if (note->log && hfd_log_enabled(HFD_LOG_INFO))
        hfd_log_write(HFD_LOG_INFO, "caller refused", fields, note->silent > 0 ? 3 : 2);
}

/* Refuses a caller that is known, or that brought no credentials: at once. */
static void refuse(struct hfd_exchange *x, enum hfd_access verdict, const char *text,
                   const char *reason)
{
    struct hfd_guard *guard = hfd_exchange_app(x)->guard;
    struct hfd_failure_note note = {.log = true};
    char from[HFD_FROM_MAX];
    struct hfd_err err;

    if (guard != NULL)
        note = hfd_failures_line(hfd_guard_failures(guard),
                                 hfd_loop_mono_us(hfd_exchange_conn(x)->loop));
    format_client(x, from);
    hfd_metric_add(HFD_METRIC_AUTH_REFUSED, HFD_LABELS(reason), 1);
    hfd_access_log_refusal(&note, reason, from);
    hfd_exchange_fail(x,
                      hfd_fail(&err,
                               verdict == HFD_ACCESS_FORBIDDEN ? HFD_FORBIDDEN : HFD_UNAUTHORIZED,
                               "%s", text),
                      &err);
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
    hfd_access_log_refusal(&note, reason, from);
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
    struct hfd_host_address client;

    if (networks->count == 0)
        return false;
    client = hfd_exchange_client(x);
    return !hfd_peer_is_in(networks, &client);
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
    if (verdict == HFD_ACCESS_UNKNOWN) {
        if (answer.caller.fault == HFD_AUTH_ABSENT)
            refuse(x, verdict, text, hfd_auth_fault_label(answer.caller.fault));
        else
            refuse_login(x, text, hfd_auth_fault_label(answer.caller.fault));
        return false;
    }
    note_use(x, &answer, now_us);
    if (!hfd_exchange_set_caller(x, answer.caller.name)) {
        hfd_exchange_fail(x, hfd_fail_nomem(&err, "name the caller"), &err);
        return false;
    }
    if (verdict == HFD_ACCESS_FORBIDDEN)
        refuse(x, verdict, text, "scope");
    return verdict == HFD_ACCESS_ALLOWED;
}
