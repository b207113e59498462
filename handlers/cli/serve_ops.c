/* See serve_ops.h. */
#include "handlers/cli/serve_ops.h"

#include "driver/base/log.h"
#include "handlers/cli/cli.h"

#include <unistd.h>

static bool write_address(struct hfd_settings *s, int port)
{
    const hfd_slice given = s->ops_listen;
    const bool is_unix = hfd_slice_starts(given, HFD_SLICE("unix:"));
    const char *path = hfd_cli_ops_path(s), *colon = memrchr(given.p, ':', given.len);
    FILE *f = path != NULL && colon != NULL ? fopen(path, "we") : NULL;
    int n;

    if (f == NULL)
        return false;
    if (is_unix)
        n = fprintf(f, "%.*s", HFD_SLICE_FMT(given));
    else
        n = fprintf(f, "%.*s:%d", (int)(colon - given.p), given.p, port);
    return fclose(f) == 0 && n > 0;
}

void hfd_serve_ops_write(struct hfd_settings *s, int port)
{
    if (hfd_settings_has_postgres(s))
        return; /* no folder */
    if (!write_address(s, port))
        HFD_LOG(HFD_LOG_WARN, "doctor will not find this server by itself",
                HFD_LOG_CSTR("reason", "its address cannot be written to the data folder"));
}

void hfd_serve_ops_remove(struct hfd_settings *s)
{
    const char *path = hfd_cli_ops_path(s);

    if (path != NULL && path[0] != '\0')
        (void)unlink(path);
}
