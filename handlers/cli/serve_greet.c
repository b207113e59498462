/* See serve_greet.h. */
#include "handlers/cli/serve_greet.h"

#include <stdio.h>
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
