/*
 * hyperfleet-driver health: asks the running server whether it lives, or is ready, as a probe in an
 * image without curl. Thread: main.
 */
#include "handlers/cli/ask.h"

#include "driver/base/base.h"

#include <curl/curl.h>

#define ANSWER_MAX 65536

static hfd_slice first_line(hfd_slice text)
{
    const char *end = text.len > 0 ? memchr(text.p, '\n', text.len) : NULL;

    return end != NULL ? (hfd_slice){text.p, (size_t)(end - text.p)} : text;
}

enum hfd_exit hfd_cmd_health(int argc, const char **argv)
{
    bool ready = false;
    const struct hfd_flag table[] = {{"--ready", NULL, HFD_FLAG_SWITCH, &ready, NULL,
                                      "ask whether it is ready, not whether it lives"}};
    struct hfd_flags flags = {.command = "health", HFD_FLAG_TABLE(table), .others = HFD_FLAG_ALL};
    struct hfd_settings *settings;
    enum hfd_exit status;
    struct hfd_err err = {0};
    const char *why = "out of memory";
    struct hfd_buf body;
    hfd_slice line;

    if (!hfd_cli_read(&flags, argc, argv, &status))
        return status;
    status = hfd_cli_settings(&flags, &settings);
    if (status != HFD_EXIT_OK)
        return status;
    hfd_buf_init(&body, ANSWER_MAX);
    if (hfd_base_init(&err) != HFD_OK)
        status = hfd_cli_fail(HFD_EXIT_CUT_SHORT, "health", "%s", err.msg);
    else if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK ||
             !hfd_cli_ask_openly(settings, ready ? "/readyz" : "/livez", &body, &why)) {
        line = first_line(hfd_buf_slice(&body));
        status = hfd_cli_fail(HFD_EXIT_CUT_SHORT, "health", "%.*s: %s%s%.*s",
                              HFD_SLICE_FMT(settings->ops_listen), why, line.len > 0 ? ": " : "",
                              HFD_SLICE_FMT(line));
    }
    hfd_buf_fini(&body);
    hfd_settings_free(settings);
    return status;
}
