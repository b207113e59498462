/* See view.h. */
#include "handlers/cli/view.h"

#include "driver/base/check.h"
#include "driver/base/clock.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define SHARED_FLAGS (HFD_CLI_TARGET_FLAG_COUNT + 4)
#define FLAGS_MAX 21

/* ---- the arguments ---- */

static hfd_rc read_form(struct hfd_view *v, struct hfd_err *err)
{
    enum hfd_form form;

    v->form = HFD_VIEW_TEXT;
    if (v->form_name == NULL)
        return HFD_OK;
    if (v->has_wide && strcmp(v->form_name, "wide") == 0) {
        v->form = HFD_VIEW_WIDE;
        return HFD_OK;
    }
    if (hfd_form_read(v->form_name, &form, NULL) != HFD_OK)
        return hfd_fail(err, HFD_INVALID, "-o: expected json, yaml%s",
                        v->has_wide ? ", name or wide" : " or name");
    v->form = form == HFD_FORM_JSON   ? HFD_VIEW_JSON
              : form == HFD_FORM_YAML ? HFD_VIEW_YAML
                                      : HFD_VIEW_NAME;
    return HFD_OK;
}

enum hfd_exit hfd_view_wrong_use(const struct hfd_view *v, const char *msg)
{
    return hfd_cli_wrong_use(v->name, v->usage, msg);
}

static bool read_arguments(struct hfd_view *v, int argc, const char **argv, enum hfd_exit *status)
{
    struct hfd_flag table[FLAGS_MAX] = {
        HFD_CLI_TARGET_FLAGS(&v->target, "a bearer token with the scope view"),
        {"-o", NULL, HFD_FLAG_TEXT, &v->form_name, "FORM",
         v->has_wide ? "json, yaml, name or wide" : "json, yaml or name"},
        {"--watch", NULL, HFD_FLAG_SWITCH, &v->watch, NULL, "show it again until Ctrl-C"},
        {"-w", NULL, HFD_FLAG_SWITCH, &v->watch, NULL, "the same"},
        {"--help", NULL, HFD_FLAG_SWITCH, NULL, NULL, "print this text"},
    };
    struct hfd_flags flags = {.command = v->name,
                              .usage = v->usage,
                              .tail = v->examples,
                              .table = table,
                              .count = SHARED_FLAGS + v->own_count,
                              .place_max = HFD_FLAG_PLACES_MAX};
    struct hfd_err err = {0};
    hfd_rc rc;

    HFD_ASSERT(flags.count <= FLAGS_MAX);
    for (size_t i = 0; i < v->own_count; i++)
        table[SHARED_FLAGS + i] = v->own[i];
    if (!hfd_cli_read(&flags, argc, argv, status))
        return false;
    rc = read_form(v, &err);
    if (rc == HFD_OK && flags.place_count > (v->takes_place ? 1U : 0U))
        rc = hfd_fail(&err, HFD_INVALID, "unexpected argument %.60s",
                      flags.places[v->takes_place ? 1 : 0]);
    v->place = flags.places[0];
    if (rc != HFD_OK)
        *status = hfd_view_wrong_use(v, err.msg);
    return rc == HFD_OK;
}

bool hfd_view_open(struct hfd_view *v, int argc, const char **argv, enum hfd_exit *status)
{
    return read_arguments(v, argc, argv, status) &&
           hfd_cli_target_open(&v->target, v->name, &v->http, status);
}

void hfd_view_close(struct hfd_view *v)
{
    hfd_client_close(&v->http);
    hfd_cli_target_close(&v->target);
}

/* ---- one document ---- */

static enum hfd_exit refuse(const struct hfd_view *v, const struct hfd_http_answer *a,
                            const json_t *doc)
{
    const char *why = hfd_json_cstr(doc, "detail");

    why = why[0] != '\0' ? why : hfd_json_cstr(doc, "message");
    if (a->status == 401 && v->target.server.config.token_file == NULL)
        why = HFD_CLI_LOGIN_TEXT("view");
    if (a->status == 404 && hfd_json_cstr(doc, "code")[0] == '\0')
        return hfd_cli_fail(HFD_EXIT_CUT_SHORT, v->name,
                            "%s is no hyperfleet-driver: expected the URL of the server, without "
                            "the path of a driver",
                            v->target.url);
    return hfd_cli_fail(a->status == 404   ? HFD_EXIT_ABSENT
                        : a->status == 400 ? HFD_EXIT_USAGE
                                           : HFD_EXIT_CUT_SHORT,
                        v->name, "%s answers %d%s%s", v->target.url, a->status,
                        why[0] != '\0' ? ": " : "", why);
}

enum hfd_exit hfd_view_get(struct hfd_view *v, const char *path, json_t **out)
{
    const struct hfd_client_request request = {.method = "GET", .path = path};
    struct hfd_http_answer a = {.status = 0};
    enum hfd_exit status = HFD_EXIT_OK;

    *out = NULL;
    hfd_client_send(v->http, &request, &a, 1);
    v->answer_bytes = a.body.len;
    v->now_us = hfd_http_date_s(&a) * HFD_US_PER_S;
    if (v->now_us <= 0)
        v->now_us = hfd_clock_wall_us(&hfd_clock_system);
    if (a.status != 0 && a.body.len > 0)
        *out = json_loadb(a.body.p, a.body.len, JSON_REJECT_DUPLICATES, NULL);
    if (a.status == 0)
        status = hfd_cli_fail(HFD_EXIT_ADDRESS, v->name, "%s cannot be reached: %s", v->target.url,
                              a.why);
    else if (a.status != 200 || !json_is_object(*out))
        status = refuse(v, &a, *out);
    if (status != HFD_EXIT_OK) {
        json_decref(*out);
        *out = NULL;
    }
    hfd_http_answer_fini(&a);
    return status;
}

/* ---- texts ---- */

void hfd_view_add(struct hfd_buf *b, const json_t *doc, const char *key)
{
    hfd_buf_show(b, hfd_slice_of(hfd_json_cstr(doc, key)));
}

bool hfd_view_write(const struct hfd_view *v, const json_t *doc, struct hfd_buf *out)
{
    if (v->form != HFD_VIEW_JSON && v->form != HFD_VIEW_YAML)
        return false;
    hfd_form_write(out, v->form == HFD_VIEW_JSON ? HFD_FORM_JSON : HFD_FORM_YAML, doc, "");
    return true;
}
