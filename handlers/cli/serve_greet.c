/* See serve_greet.h. */
#include "handlers/cli/serve_greet.h"

#include "driver/base/log.h"
#include "handlers/cli/serve_ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

bool hfd_serve_logs_text(const struct hfd_settings *s)
{
    return hfd_slice_is(s->log_format, "text") ||
           (hfd_slice_is(s->log_format, "auto") && isatty(STDERR_FILENO) == 1);
}

hfd_slice hfd_serve_url(struct hfd_settings *s, bool tls, hfd_slice listen, int port)
{
    const char *colon = memrchr(listen.p, ':', listen.len);

    if (hfd_slice_starts(listen, HFD_SLICE("unix:")))
        return listen;
    return hfd_arena_printf(&s->mem, "%s://%.*s:%d", tls ? "https" : "http",
                            (int)(colon - listen.p), listen.p, port);
}

void hfd_serve_greet(const struct hfd_settings *s, hfd_slice main_url, hfd_slice ops_url)
{
    if (hfd_serve_logs_text(s))
        (void)fprintf(stderr,
                      "hyperfleet-driver serves the Driver API at %.*s/ and its status at %.*s/. "
                      "Try: curl %.*s/api/driver/v1/resources\n",
                      HFD_SLICE_FMT(main_url), HFD_SLICE_FMT(ops_url), HFD_SLICE_FMT(main_url));
}

void hfd_serve_ready(const struct hfd_serve_ready *r)
{
    struct hfd_settings *s = r->settings;
    const bool tls = hfd_server_has_tls(r->server);
    const int port = hfd_server_port(r->server, HFD_LISTENER_MAIN),
              ops_port = hfd_server_port(r->server, HFD_LISTENER_OPS);
    const hfd_slice main_url = hfd_serve_url(s, tls, s->listen, port),
                    ops_url = hfd_serve_url(s, tls, s->ops_listen, ops_port);
    char *folder = realpath(s->data.p, NULL);
    const char *place = folder != NULL ? folder : hfd_cli_place_text(s);

    hfd_serve_ops_write(s, ops_port);
    HFD_LOG(HFD_LOG_INFO, "ready", HFD_LOG_STR("url", main_url), HFD_LOG_STR("ops_url", ops_url),
            HFD_LOG_INT("port", port), HFD_LOG_INT("ops_port", ops_port),
            HFD_LOG_CSTR(hfd_settings_has_postgres(s) ? "store" : "data", place),
            HFD_LOG_CSTR("version", HFD_VERSION),
            HFD_LOG_CSTR("demo", s->demo_us < 0 ? "off" : "on"),
            HFD_LOG_CSTR("authentication", r->guarded ? "on" : "off"),
            HFD_LOG_STR("backend", s->backend));
    free(folder);
    hfd_serve_greet(s, main_url, ops_url);
}
