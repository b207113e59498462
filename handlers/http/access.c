/* See access.h. */
#include "handlers/http/access.h"

#include "driver/core/driver.h"
#include "handlers/auth/decide.h"
#include "handlers/http/door.h"

/* Finds the credentials of a request and checks them. */
static hfd_rc identify(struct hfd_exchange *x, int64_t now_us, struct hfd_guard_answer *out,
                       struct hfd_err *err)
{
    hfd_slice header = HFD_SLICE_NONE;
    hfd_rc rc = HFD_OK;

    if (x->path_token.len == 0)
        rc = hfd_exchange_header(x, "authorization", &header, err);
    if (rc == HFD_OK)
        hfd_conn_identify(x->conn, x->path_token, header, now_us, out);
    return rc;
}

/* Refuses at once. */
static void refuse(struct hfd_exchange *x, enum hfd_access verdict, const char *text,
                   const char *reason)
{
    const hfd_rc rc = verdict == HFD_ACCESS_FORBIDDEN ? HFD_FORBIDDEN
                      : verdict == HFD_ACCESS_LATER   ? HFD_UNCHECKED
                                                      : HFD_UNAUTHORIZED;
    struct hfd_err err;

    (void)hfd_conn_note_refusal(x->conn, false, reason, text);
    hfd_exchange_fail(x, hfd_fail(&err, rc, "%s", text), &err);
}

/* Refuses credentials that are not valid. The answer waits, the longer the more an address fails.
 */
static void refuse_login(struct hfd_exchange *x, const char *text, const char *reason)
{
    const int64_t delay_us = hfd_conn_note_refusal(x->conn, true, reason, text);
    struct hfd_err err;

    (void)hfd_fail(&err, HFD_UNAUTHORIZED, "%s", text);
    hfd_exchange_refuse_later(x, &err, delay_us);
}

static void note_use(struct hfd_exchange *x, struct hfd_guard_answer *answer, int64_t now_us)
{
    char from[HFD_IP_TEXT_MAX];

    if (answer->used == NULL)
        return;
    hfd_host_address_format(&x->client, from);
    hfd_guard_note(hfd_exchange_app(x)->guard, answer->used, from, now_us);
}

/* Copies the caller. Returns false if memory is short. */
static bool set_caller(struct hfd_exchange *x, const struct hfd_caller *caller)
{
    x->caller = hfd_arena_dup(&x->mem, caller->name);
    x->grant =
        (struct hfd_grant){caller->grant.scopes, hfd_arena_dup(&x->mem, caller->grant.adapters)};
    return x->caller.p != NULL && x->grant.adapters.p != NULL;
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
    if (!set_caller(x, &answer.caller)) {
        hfd_exchange_fail(x, hfd_fail_nomem(&err, "name the caller"), &err);
        return false;
    }
    if (verdict == HFD_ACCESS_FORBIDDEN)
        refuse(x, verdict, text, "scope");
    return verdict == HFD_ACCESS_ALLOWED;
}

/* The main listener takes tokens only, no passwords. */
bool hfd_access_keep(struct hfd_exchange *x)
{
    hfd_slice secret = x->path_token, header;

    if (secret.len == 0 && hfd_exchange_header(x, "authorization", &header, NULL) == HFD_OK)
        (void)hfd_credential_read(header, NULL, &secret);
    if (secret.len == 0)
        return true;
    x->mem.wipe = true;
    x->path_token = hfd_arena_dup(&x->mem, secret);
    return x->path_token.p != NULL;
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

bool hfd_access_may_force(struct hfd_exchange *x)
{
    const struct hfd_guard *guard = hfd_exchange_app(x)->guard;

    if (guard == NULL || !hfd_guard_is_on(guard) || (x->grant.scopes & HFD_SCOPE_BIT(ADMIN)) != 0)
        return true;
    refuse(x, HFD_ACCESS_FORBIDDEN, "force=true needs the scope admin", "scope");
    return false;
}

hfd_rc hfd_access_check_name(const struct hfd_exchange *x, hfd_slice name, struct hfd_err *err)
{
    static const char text[] =
        "the identity header names the caller as one of this server's own: a "
        "token, or another name of hyperfleet.local";
    const struct hfd_keyset *own = x->conn->loop->guard_view.set;

    if (!hfd_identity_is_ours(name) && (own == NULL || !hfd_keyset_has_name(own, name)))
        return HFD_OK;
    (void)hfd_conn_note_refusal(x->conn, false, hfd_auth_fault_label(HFD_AUTH_RESERVED), text);
    return hfd_fail(err, HFD_FORBIDDEN, "%s", text);
}
