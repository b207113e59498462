/*
 * The program: finds the command and runs it. The table of commands is in cli.h; it also makes the
 * help. Thread: main.
 */
#include "driver/base/buf.h"
#include "driver/base/nearest.h"
#include "handlers/cli/cli.h"
#include "handlers/settings/settings_show.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- version ---- */

enum hfd_exit hfd_cmd_version(int argc, const char **argv)
{
    enum hfd_exit status;
    struct hfd_buf b;

    if (!hfd_cli_read(&(struct hfd_flags){.command = "version", .others = HFD_FLAG_ALL}, argc, argv,
                      &status))
        return status;
    if (argc > 0)
        return hfd_cli_fail(HFD_EXIT_USAGE, "version", "unexpected argument %.60s", argv[0]);
    hfd_buf_init(&b, 256);
    hfd_buf_lit(&b, "hyperfleet-driver " HFD_VERSION "\n");
    return hfd_cli_print("version", &b);
}

/* ---- flags ---- */

static hfd_rc take_value(const struct hfd_flag *f, const char *name, const char *value,
                         struct hfd_err *err)
{
    if (f->kind == HFD_FLAG_TEXT) {
        *(const char **)f->out = value;
        return HFD_OK;
    }
    if (f->kind == HFD_FLAG_DURATION) {
        struct hfd_err why;

        return hfd_parse_duration_us(hfd_slice_of(value), f->out, &why) == HFD_OK
                   ? HFD_OK
                   : hfd_fail(err, HFD_INVALID, "%s: %s", name, why.msg);
    }
    if (f->kind == HFD_FLAG_LIST) {
        struct hfd_flag_list *list = f->out;

        if (list->count == HFD_FLAG_LIST_MAX)
            return hfd_fail(err, HFD_INVALID, "%s: expected at most %d of them", name,
                            HFD_FLAG_LIST_MAX);
        list->values[list->count++] = value;
        return HFD_OK;
    }
    if (f->kind == HFD_FLAG_CALL) {
        const struct hfd_flag_call *call = f->out;
        struct hfd_err why;
        const hfd_rc rc = call->fn(call->ctx, value, &why);

        return rc == HFD_OK ? rc : hfd_fail(err, rc, "%s: %s", name, why.msg);
    }
    return hfd_fail(err, HFD_INVALID, "%s takes no value", name);
}

static hfd_rc read_environment(const struct hfd_flags *flags, struct hfd_err *err)
{
    for (size_t i = 0; i < flags->count; i++) {
        const struct hfd_flag *f = &flags->table[i];
        const char *value = f->env != NULL ? getenv(f->env) : NULL;
        const hfd_rc rc =
            value != NULL && value[0] != '\0' ? take_value(f, f->env, value, err) : HFD_OK;

        if (rc != HFD_OK)
            return rc;
    }
    return HFD_OK;
}

/* Finds the flag of an argument, and its value behind "=", if it has one. */
static const struct hfd_flag *find(const struct hfd_flags *flags, const char *arg,
                                   const char **value)
{
    const char *eq = strchr(arg, '=');
    const hfd_slice name = {arg, eq != NULL ? (size_t)(eq - arg) : strlen(arg)};

    *value = eq != NULL ? eq + 1 : NULL;
    for (size_t i = 0; i < flags->count; i++)
        if (hfd_slice_is(name, flags->table[i].name))
            return &flags->table[i];
    return NULL;
}

static hfd_rc take_place(struct hfd_flags *flags, const char *arg, struct hfd_err *err)
{
    if (flags->place_count == HFD_FLAG_PLACES_MAX)
        return hfd_fail(err, HFD_INVALID, "unexpected argument %.60s", arg);
    flags->places[flags->place_count++] = arg;
    return HFD_OK;
}

/* A setting takes the next argument too, unless it has its value or a flag follows. */
static int take_rest(struct hfd_flags *flags, int at, int argc, const char **argv)
{
    flags->rest[flags->rest_count++] = argv[at];
    if (strchr(argv[at], '=') == NULL && at + 1 < argc && argv[at + 1][0] != '-')
        flags->rest[flags->rest_count++] = argv[++at];
    return at;
}

const char *hfd_flags_nearest(const struct hfd_flags *flags, hfd_slice name, bool shown)
{
    struct hfd_nearest n = hfd_nearest_to(name);
    const char *near = NULL;

    for (size_t i = 0; i < flags->count; i++)
        if ((flags->table[i].text != NULL || !shown) &&
            hfd_nearest_consider(&n, hfd_slice_of(flags->table[i].name)))
            near = flags->table[i].name;
    return near;
}

static hfd_rc unknown_flag(const struct hfd_flags *flags, const char *arg, struct hfd_err *err)
{
    const hfd_slice name = {arg, strcspn(arg, "=")};
    const char *near = hfd_flags_nearest(flags, name, false);

    return hfd_fail(
        err, HFD_INVALID, "unknown flag %.*s%s%s%s", (int)(name.len < 60 ? name.len : 60), arg,
        near != NULL ? "; did you mean " : "", near != NULL ? near : "", near != NULL ? "?" : "");
}

/* Takes the flag at argv[*at], with its value. */
static hfd_rc take_flag(struct hfd_flags *flags, int *at, int argc, const char **argv,
                        struct hfd_err *err)
{
    const char *value;
    const struct hfd_flag *f = find(flags, argv[*at], &value);

    if (f == NULL && flags->others == HFD_FLAG_REFUSED)
        return unknown_flag(flags, argv[*at], err);
    if (f == NULL) {
        *at = take_rest(flags, *at, argc, argv);
    } else if (f->kind == HFD_FLAG_SETTING) {
        flags->rest[flags->rest_count++] = *(const char *const *)f->out;
        if (value != NULL)
            flags->rest[flags->rest_count++] = value;
    } else if (f->kind == HFD_FLAG_SWITCH && value == NULL) {
        *(bool *)f->out = true;
    } else {
        if (value == NULL && ++*at == argc)
            return hfd_fail(err, HFD_INVALID,
                            f->kind == HFD_FLAG_CALL ? "%s: expected a value"
                                                     : "%s: expected %s behind it",
                            f->name, f->arg);
        return take_value(f, f->name, value != NULL ? value : argv[*at], err);
    }
    return HFD_OK;
}

/*
 * Reads the variables, then the arguments: `--name value`, `--name=value`. Results borrow from
 * both.
 * @return HFD_OK, HFD_INVALID (an unknown flag, a missing or bad value, too many arguments)
 */
static hfd_rc read_flags(struct hfd_flags *flags, int argc, const char **argv, struct hfd_err *err)
{
    hfd_rc rc = read_environment(flags, err);

    flags->place_count = 0;
    flags->rest_count = 0;
    if (flags->rest == NULL)
        flags->rest = argv;
    for (int i = 0; rc == HFD_OK && i < argc; i++) {
        if (argv[i][0] == '-' && argv[i][1] != '\0')
            rc = take_flag(flags, &i, argc, argv, err);
        else if (flags->others == HFD_FLAG_ALL)
            flags->rest[flags->rest_count++] = argv[i];
        else
            rc = take_place(flags, argv[i], err);
    }
    if (rc == HFD_OK && flags->place_count > flags->place_max)
        rc = hfd_fail(err, HFD_INVALID, "unexpected argument %.60s",
                      flags->places[flags->place_max]);
    return rc;
}

/* Adds a line for each flag. */
static void add_flags(const struct hfd_flags *flags, struct hfd_buf *b)
{
    for (size_t i = 0; i < flags->count; i++) {
        const struct hfd_flag *f = &flags->table[i];
        char head[40];

        if (f->text == NULL)
            continue;
        (void)snprintf(head, sizeof(head), "%s%s%s", f->name, f->arg != NULL ? " " : "",
                       f->arg != NULL ? f->arg : "");
        hfd_buf_addf(b, "  %-22s %s", head, f->text);
        if (f->env != NULL && strstr(f->text, f->env) == NULL)
            hfd_buf_addf(b, " (%s)", f->env);
        hfd_buf_addc(b, '\n');
    }
}

/* ---- help ---- */

#define HELP_MAX 65536

struct command {
    const char *name;
    const char *args;
    const char *text;
    hfd_command_fn *fn;
};

#define ROW_(name, args, text) {#name, args, text, hfd_cmd_##name},
static const struct command commands[] = {HFD_COMMAND_LIST(ROW_)};
#undef ROW_
#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))
#define ROW_(name, status, text) {status, text},
static const struct {
    int status;
    const char *text;
} exits[] = {HFD_EXIT_LIST(ROW_)};
#undef ROW_

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    }
    return NULL;
}

#define ROW_(command, settings, examples) {#command, settings, examples},
static const struct {
    const char *command, *settings, *examples;
} settings_users[] = {HFD_SETTINGS_USER_LIST(ROW_)};
#undef ROW_

/* Adds the settings that matter to a command, and its examples. */
static void add_some_settings(struct hfd_buf *b, const struct command *about)
{
    for (size_t i = 0; i < sizeof(settings_users) / sizeof(settings_users[0]); i++) {
        if (strcmp(settings_users[i].command, about->name) != 0)
            continue;
        hfd_buf_addf(b, "\nSettings:\n  %-22s %s\n", "--config FILE", "the file of settings");
        hfd_settings_help_some(b, settings_users[i].settings);
        hfd_buf_lit(b, "  All: hyperfleet-driver help settings\n\nExamples:\n");
        for (const char *p = settings_users[i].examples; *p != '\0'; p += strlen(p) + 1)
            hfd_buf_addf(b, "  hyperfleet-driver %s\n", p);
    }
}

static enum hfd_exit print_settings(void)
{
    struct hfd_buf b;

    hfd_buf_init(&b, HELP_MAX);
    hfd_buf_lit(&b,
                "Settings, from a YAML file, then the environment, then flags; later wins. The "
                "file is that of --config FILE, else of\n"
                "HFD_CONFIG, else of an installed program " HFD_SETTINGS_FILE ".\n"
                "The flag --log-level is the key log.level in the file (or level below log) and "
                "the variable HFD_LOG_LEVEL.\n"
                "DURATION: 90s, 45m, 1h30m. SIZE: 1048576, 512KiB, 1MiB. LIST: a, b or [a, b].\n"
                "TIME: on, off, seconds or a duration. SWITCH: on or off.\n\n");
    hfd_settings_help(&b, false);
    return hfd_cli_print("help", &b);
}

static void add_exits(struct hfd_buf *b)
{
    hfd_buf_lit(b, "\nExit status:\n");
    for (size_t i = 0; i < sizeof(exits) / sizeof(exits[0]); i++)
        hfd_buf_addf(b, "  %2d  %s\n", exits[i].status, exits[i].text);
}

/* Prints the help of the program. */
static enum hfd_exit print_help(void)
{
    struct hfd_buf b;

    hfd_buf_init(&b, HELP_MAX);
    hfd_buf_lit(&b, "Usage: hyperfleet-driver COMMAND [ARGUMENTS]\n\n"
                    "A Humanitec driver for HyperFleet clusters and nodepools.\n"
                    "Try it: hyperfleet-driver serve --demo\n\nCommands:\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        hfd_buf_addf(&b, "  %-8s %s\n", commands[i].name, commands[i].text);
    add_exits(&b);
    return hfd_cli_print("help", &b);
}

/* Prints the help of a command with these flags. */
static enum hfd_exit print_command(const struct hfd_flags *flags)
{
    const size_t len = strcspn(flags->command, " ");
    const struct command *about = commands;
    struct hfd_buf b;

    hfd_buf_init(&b, HELP_MAX);
    if (flags->usage != NULL) {
        hfd_buf_addf(&b, "Usage: hyperfleet-driver %s\n\nFlags:\n", flags->usage);
        add_flags(flags, &b);
        hfd_buf_addf(&b, "\n%s", flags->tail);
        return hfd_cli_print(flags->command, &b);
    }
    while (strlen(about->name) != len || memcmp(about->name, flags->command, len) != 0)
        about++;
    hfd_buf_addf(&b, "Usage: hyperfleet-driver %s%s%s\n\n%s\n", about->name,
                 about->args[0] != '\0' ? " " : "", about->args, about->text);
    if (flags->count > 0)
        hfd_buf_lit(&b, "\nFlags:\n");
    add_flags(flags, &b);
    add_some_settings(&b, about);
    return hfd_cli_print("help", &b);
}

bool hfd_cli_read(struct hfd_flags *flags, int argc, const char **argv, enum hfd_exit *status)
{
    struct hfd_err err;

    if (argc == 1 && strcmp(argv[0], "--help") == 0)
        *status = print_command(flags);
    else if (read_flags(flags, argc, argv, &err) == HFD_OK)
        return true;
    else
        *status = flags->usage != NULL
                      ? hfd_cli_wrong_use(flags->command, flags->usage, err.msg)
                      : hfd_cli_fail(HFD_EXIT_USAGE, flags->command, "%s", err.msg);
    return false;
}

/* Says which command was meant, or where they are listed. */
static enum hfd_exit unknown_command(const char *name)
{
    struct hfd_nearest n;
    const char *near = NULL;

    if (name == NULL)
        return hfd_cli_fail(HFD_EXIT_USAGE, "",
                            "expected a command, such as serve; see `hyperfleet-driver help`");
    if (strcmp(name, "check") == 0)
        return hfd_cli_fail(HFD_EXIT_USAGE, "",
                            "unknown command check; hyperfleet-driver-check is a program of its "
                            "own");
    n = hfd_nearest_to(hfd_slice_of(name));
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (hfd_nearest_consider(&n, hfd_slice_of(commands[i].name)))
            near = commands[i].name;
    return hfd_cli_fail(HFD_EXIT_USAGE, "", "unknown command %.60s; %s%s%s", name,
                        near != NULL ? "did you mean " : "see `hyperfleet-driver help`",
                        near != NULL ? near : "", near != NULL ? "?" : "");
}

/* Each command knows its flags itself. */
static enum hfd_exit ask_for_help(const struct command *about)
{
    const char *help[] = {"--help"};

    return about->fn(1, help);
}

enum hfd_exit hfd_cmd_help(int argc, const char **argv)
{
    const struct command *about = argc > 0 ? find_command(argv[0]) : NULL;
    const bool settings = argc > 0 && strcmp(argv[0], "settings") == 0;

    if (argc > 0 && about == NULL && !settings)
        return unknown_command(argv[0]);
    if (argc > 1)
        return hfd_cli_fail(HFD_EXIT_USAGE, "help", "unexpected argument %.60s", argv[1]);
    if (about != NULL && about->fn == hfd_cmd_help)
        return print_command(&(struct hfd_flags){.command = "help"});
    return settings ? print_settings() : about != NULL ? ask_for_help(about) : print_help();
}

static bool is_one_of(const char *arg, const char *long_form, const char *short_form)
{
    return strcmp(arg, long_form) == 0 || strcmp(arg, short_form) == 0;
}

static bool asks_for_help(int argc, const char **argv)
{
    for (int i = 0; i < argc; i++) {
        if (is_one_of(argv[i], "--help", "-h"))
            return true;
    }
    return false;
}

/*
 * Opens missing standard descriptors. Otherwise a file of the program could get number 2 and
 * receive log lines. The one for stdout is not writable, so that a command notices that its output
 * is lost.
 */
static bool hold_standard_fds(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
            open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_RDWR) != fd)
            return false;
    }
    return true;
}

/*
 * Keeps keys out of core dumps, and this process from being traced by others of its user. Not under
 * a sanitizer, which traces it at the end.
 */
static void forbid_dumps(void)
{
    const struct rlimit none = {0, 0};

    (void)setrlimit(RLIMIT_CORE, &none);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
#endif
}

static enum hfd_exit run(int argc, const char **args)
{
    const struct command *command;

    if (!hold_standard_fds())
        return HFD_EXIT_INTERNAL;
    forbid_dumps();
    if (argc < 2)
        return unknown_command(NULL);
    if (is_one_of(args[1], "--help", "-h"))
        return print_help();
    if (is_one_of(args[1], "--version", "-V"))
        return hfd_cmd_version(argc - 2, args + 2);
    command = find_command(args[1]);
    if (command == NULL)
        return unknown_command(args[1]);
    if (asks_for_help(argc - 2, args + 2))
        return hfd_cmd_help(1, args + 1);
    return command->fn(argc - 2, args + 2);
}

int main(int argc, char **argv)
{
    return (int)run(argc, (const char **)(void *)argv);
}
