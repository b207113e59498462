/* See door_auth.h. */
#include "handlers/http/door_auth.h"

#include "driver/base/metrics.h"
#include "handlers/auth/credential.h"
#include "handlers/http/access.h"
#include "handlers/http/route.h"

#include <sodium.h>

#define PATH_MEM_BYTES ((size_t)64 * 1024)

/* Returns what the route of a request needs; a path without a route needs any scope. */
static enum hfd_need need_of(const struct hfd_conn *conn, hfd_slice path)
{
    const enum hfd_method method = hfd_method_parse(conn->head.method);
    enum hfd_need need = HFD_NEED_ANY;
    struct hfd_arena mem;
    struct hfd_match match;
    struct hfd_path split;

    hfd_arena_init(&mem, PATH_MEM_BYTES);
    if (hfd_path_split(path, &mem, &split, NULL) == HFD_OK &&
        hfd_route_match(conn->loop->server->router, conn->listener->which, method, &split,
                        &match) == HFD_ROUTE_FOUND)
        need = match.route->need;
    hfd_arena_fini(&mem);
    return need;
}

/* Finds the credentials in the head, and checks them. */
static enum hfd_auth_fault check(struct hfd_conn *conn, hfd_slice secret)
{
    const struct hfd_app *app = conn->loop->server->app;
    const bool basic = hfd_access_takes_basic(conn->listener->which);
    const int64_t now_us = hfd_clock_wall_us(app->clock) + hfd_clock_skew_us(app->clock);
    struct hfd_guard_answer answer = {.caller = {.fault = HFD_AUTH_NONE}};
    char password[HFD_BASIC_MAX_BYTES];

    if (secret.len == 0)
        answer.caller.fault = hfd_credential_read(hfd_slice_trim(conn->head.authorization),
                                                  basic ? password : NULL, &secret);
    if (answer.caller.fault == HFD_AUTH_NONE)
        hfd_guard_check(app->guard, &conn->loop->guard_view, secret, now_us, &answer);
    if (basic)
        sodium_memzero(password, sizeof(password));
    return answer.caller.fault;
}

/* Counts and logs a refusal as access.c does. The answer to credentials that are wrong waits. */
static void note(struct hfd_conn *conn, enum hfd_auth_fault fault)
{
    const char *reason = hfd_auth_fault_label(fault);
    struct hfd_failures *failures = hfd_guard_failures(conn->loop->server->app->guard);
    const int64_t now_us = hfd_loop_mono_us(conn->loop);
    struct hfd_failure_note said;
    char from[HFD_ADDRESS_TEXT_MAX];

    hfd_conn_format_peer(conn, from);
    hfd_metric_add(HFD_METRIC_AUTH_REFUSED, HFD_LABELS(reason), 1);
    said = fault == HFD_AUTH_ABSENT ? hfd_failures_line(failures, now_us)
                                    : hfd_failures_add(failures, from, now_us);
    if (fault != HFD_AUTH_ABSENT)
        conn->until_us = now_us + said.delay_us;
    hfd_access_log_refusal(&said, reason, from);
}

/* Returns true if the request has arrived whole, as most do. */
static bool has_body(const struct hfd_conn *conn)
{
    const struct hfd_head *head = &conn->head;

    return head->framing == HFD_FRAMING_NONE ||
           (head->framing == HFD_FRAMING_LENGTH && conn->sock->input->size >= head->bytes &&
            conn->sock->input->size - head->bytes >= head->content_length);
}

enum hfd_head_verdict hfd_conn_check_caller(struct hfd_conn *conn, char text[HFD_AUTH_TEXT_MAX],
                                            struct hfd_head_fault *fault)
{
    const struct hfd_guard *guard = conn->loop->server->app->guard;
    struct hfd_caller caller = {.fault = HFD_AUTH_NONE};
    hfd_slice path = conn->head.path, secret;

    if (has_body(conn) || guard == NULL || !hfd_guard_is_on(guard))
        return HFD_HEAD_OK;
    hfd_credential_cut(&path, &secret);
    if (need_of(conn, path) == HFD_NEED_OPEN)
        return HFD_HEAD_OK;
    caller.fault = check(conn, secret);
    if (caller.fault == HFD_AUTH_NONE)
        return HFD_HEAD_OK;
    (void)hfd_auth_decide(true, HFD_NEED_ANY, &caller, text);
    note(conn, caller.fault);
    *fault = (struct hfd_head_fault){.status = 401, .reason = "unauthorized", .text = text};
    return HFD_HEAD_BAD;
}
