/*
 * hyperfleet-driver health: asks the running server whether it lives, or is ready, as a probe in an
 * image without curl. Thread: main.
 */
#include "handlers/cli/ask.h"

#include "driver/base/base.h"

#include <curl/curl.h>

#define ANSWER_MAX 65536

enum hfd_exit hfd_cmd_health(int argc, const char *const *argv)
{
    struct hfd_cli_args args = {.argc = argc, .argv = argv, .own_flag = "--ready"};
    struct hfd_settings *settings;
    enum hfd_exit status = hfd_cli_settings("health", &args, &settings);
    struct hfd_err err = {0};
    const char *why = "out of memory";
    struct hfd_buf body;

    if (status != HFD_EXIT_OK)
        return status;
    hfd_buf_init(&body, ANSWER_MAX);
    if (hfd_base_init(&err) != HFD_OK)
        status = hfd_cli_fail(HFD_EXIT_CUT_SHORT, "health", "%s", err.msg);
    else if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK ||
             !hfd_cli_ask_openly(settings, args.own_given ? "/readyz" : "/livez", &body, &why))
        status = hfd_cli_fail(HFD_EXIT_CUT_SHORT, "health", "%.*s: %s%s%.*s",
                              HFD_SLICE_FMT(settings->ops_listen), why, body.len > 0 ? ": " : "",
                              HFD_SLICE_FMT(hfd_buf_slice(&body)));
    hfd_buf_fini(&body);
    hfd_settings_free(settings);
    return status;
}
