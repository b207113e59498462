/*
 * hyperfleet-driver config: check says whether serve would take the settings, show prints the effective ones as a file, docs prints the
 * README's table. Opens nothing but the settings file. Source: DESIGN 8. Thread: main.
 */
#include "handlers/cli/cli.h"

#define OUTPUT_MAX (8 * 1024 * 1024)

static enum hfd_exit check(int argc, const char *const *argv)
{
    struct hfd_cli_args args = {.argc = argc, .argv = argv};
    struct hfd_settings *s;
    struct hfd_buf b;
    enum hfd_exit status = hfd_cli_settings("config check", &args, &s);

    if (status != HFD_EXIT_OK)
        return status;
    hfd_settings_free(s);
    hfd_buf_init(&b, OUTPUT_MAX);
    hfd_buf_lit(&b, "ok\n");
    return hfd_cli_print("config check", &b);
}

static enum hfd_exit show(int argc, const char *const *argv)
{
    struct hfd_cli_args args = {.argc = argc, .argv = argv, .own_flag = "--origin"};
    struct hfd_settings *s;
    struct hfd_buf b;
    enum hfd_exit status = hfd_cli_settings("config show", &args, &s);

    if (status != HFD_EXIT_OK)
        return status;
    hfd_buf_init(&b, OUTPUT_MAX);
    hfd_settings_show(s, args.own_given, &b);
    hfd_settings_free(s);
    return hfd_cli_print("config show", &b);
}

static enum hfd_exit docs(int argc, const char *const *argv)
{
    struct hfd_buf b;

    if (argc > 0)
        return hfd_cli_fail(HFD_EXIT_USAGE, "config docs", "unexpected argument %.60s", argv[0]);
    hfd_buf_init(&b, OUTPUT_MAX);
    hfd_settings_help(&b, true);
    return hfd_cli_print("config docs", &b);
}

enum hfd_exit hfd_cmd_config(int argc, const char *const *argv)
{
    static const struct {
        const char *name;
        hfd_command_fn *fn;
    } subs[] = {{"check", check}, {"show", show}, {"docs", docs}};

    for (size_t i = 0; argc > 0 && i < sizeof(subs) / sizeof(subs[0]); i++) {
        if (strcmp(argv[0], subs[i].name) == 0)
            return subs[i].fn(argc - 1, argv + 1);
    }
    return hfd_cli_fail(HFD_EXIT_USAGE, "config", "expected check, show or docs, got %.60s", argc > 0 ? argv[0] : "nothing");
}
