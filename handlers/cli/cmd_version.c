/* hyperfleet-driver version: prints one line. Thread: main. */
#include "handlers/cli/cli.h"

enum hfd_exit hfd_cmd_version(int argc, const char *const *argv)
{
    struct hfd_buf b;

    if (argc > 0)
        return hfd_cli_fail(HFD_EXIT_USAGE, "version", "unexpected argument %.60s", argv[0]);
    hfd_buf_init(&b, 256);
    hfd_buf_lit(&b, "hyperfleet-driver " HFD_VERSION "\n");
    return hfd_cli_print("version", &b);
}
