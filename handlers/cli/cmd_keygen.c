/*
 * hyperfleet-driver keygen: creates the key ring; with --rotate adds a new active key to it. Never
 * overwrites a key ring. Prints no key. Thread: main.
 */
#include "driver/base/base.h"
#include "driver/core/keyring_file.h"
#include "handlers/cli/cli.h"

#include <sys/stat.h>

static enum hfd_exit failed(hfd_rc rc, const struct hfd_err *err, const char *hint)
{
    enum hfd_exit status = HFD_EXIT_DATA;

    if (rc == HFD_INVALID)
        status = HFD_EXIT_KEYS;
    else if (rc == HFD_NOMEM)
        status = HFD_EXIT_INTERNAL;
    return hfd_cli_fail(status, "keygen", "%s%s", err->msg, hint);
}

static enum hfd_exit make(const struct hfd_settings *s, const char *path, struct hfd_buf *b)
{
    struct hfd_err err = {0};
    hfd_rc rc = s->keys.len > 0 ? HFD_OK : hfd_cli_make_data(s, &err);

    if (rc == HFD_OK)
        rc = hfd_keyring_create(path, &hfd_rng_system, &err);
    if (rc != HFD_OK)
        return failed(rc, &err, rc == HFD_CONFLICT ? "; keygen --rotate adds a new key to it" : "");
    hfd_buf_addf(
        b,
        "made the key ring %s\n"
        "Back it up: without it neither driver cookies nor stored secrets can be opened.\n",
        path);
    return HFD_EXIT_OK;
}

static enum hfd_exit rotate(const char *path, struct hfd_buf *b)
{
    struct hfd_err err = {0};
    char id[9];
    hfd_rc rc = hfd_keyring_rotate(path, &hfd_rng_system, id, &err);

    if (rc != HFD_OK)
        return failed(rc, &err, rc == HFD_NOT_FOUND ? "; keygen without --rotate makes one" : "");
    hfd_buf_addf(b,
                 "added the active key %s to the key ring %s\n"
                 "A running server takes it up at SIGHUP or restart. Back the key ring up.\n",
                 id, path);
    return HFD_EXIT_OK;
}

enum hfd_exit hfd_cmd_keygen(int argc, const char *const *argv)
{
    struct hfd_cli_args args = {.argc = argc, .argv = argv, .own_flag = "--rotate"};
    struct hfd_settings *s;
    struct hfd_err err = {0};
    struct hfd_buf b;
    const char *path;
    enum hfd_exit status = hfd_cli_settings("keygen", &args, &s);

    if (status != HFD_EXIT_OK)
        return status;
    hfd_buf_init(&b, 16384);
    (void)umask(077);
    path = hfd_cli_keys_path(s);
    if (path == NULL)
        status = hfd_cli_fail(HFD_EXIT_INTERNAL, "keygen", "out of memory");
    else if (hfd_cli_need(s, HFD_SETTING_keys, &err) != HFD_OK)
        status = hfd_cli_fail(HFD_EXIT_USAGE, "keygen", "%s", err.msg);
    else if (hfd_base_init(&err) != HFD_OK)
        status = hfd_cli_fail(HFD_EXIT_INTERNAL, "keygen", "%s", err.msg);
    else
        status = args.own_given ? rotate(path, &b) : make(s, path, &b);
    hfd_settings_free(s);
    if (status == HFD_EXIT_OK)
        return hfd_cli_print("keygen", &b);
    hfd_buf_fini(&b);
    return status;
}
