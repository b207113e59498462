/*
 * The program: finds the command and runs it. The table of commands is in cli.h; it also makes the
 * help. Thread: main.
 */
#include "handlers/cli/cli.h"
#include "handlers/settings/settings_show.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

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

#define ROW_(command, name, value, text) {#command, name, value, text},
static const struct {
    const char *command, *name, *value, *text;
} own_flags[] = {HFD_OWN_FLAG_LIST(ROW_)};
#undef ROW_

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    }
    return NULL;
}

static void add_commands(struct hfd_buf *b)
{
    hfd_buf_lit(b, "\nCommands:\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        hfd_buf_addf(b, "  %-8s %s\n", commands[i].name, commands[i].text);
}

static void add_own_flags(struct hfd_buf *b, const struct command *about)
{
    bool first = true;

    for (size_t i = 0; i < sizeof(own_flags) / sizeof(own_flags[0]); i++) {
        const char *value = own_flags[i].value;
        char head[40];

        if (strcmp(own_flags[i].command, about->name) != 0)
            continue;
        if (first)
            hfd_buf_lit(b, "\nFlags:\n");
        first = false;
        (void)snprintf(head, sizeof(head), "%s%s%s", own_flags[i].name, value != NULL ? " " : "",
                       value != NULL ? value : "");
        hfd_buf_addf(b, "  %-22s %s\n", head, own_flags[i].text);
    }
}

static void add_settings(struct hfd_buf *b)
{
    hfd_buf_lit(b, "\nSettings, from the YAML file of --config FILE (or HFD_CONFIG), then the "
                   "environment, then flags; later wins.\n"
                   "The flag --log-level is the key log.level in the file (or level below log) and "
                   "the variable HFD_LOG_LEVEL.\n"
                   "DURATION: 90s, 45m, 1h30m. SIZE: 1048576, 512KiB, 1MiB. LIST: a, b or [a, b].\n"
                   "TIME: on, off, seconds or a duration. SWITCH: on or off.\n\n");
    hfd_settings_help(b, false);
}

static void add_exits(struct hfd_buf *b)
{
    hfd_buf_lit(b, "\nExit status:\n");
    for (size_t i = 0; i < sizeof(exits) / sizeof(exits[0]); i++)
        hfd_buf_addf(b, "  %2d  %s\n", exits[i].status, exits[i].text);
}

/* Prints the help of a command; NULL = of the program. */
static enum hfd_exit print_help(const struct command *about)
{
    static const char *const help[] = {"--help"};
    struct hfd_buf b;

    /* A command with flags of its own knows them itself. */
    if (about != NULL && strstr(about->args, "FLAGS") != NULL)
        return about->fn(1, help);
    hfd_buf_init(&b, HELP_MAX);
    if (about == NULL) {
        hfd_buf_lit(&b, "Usage: hyperfleet-driver COMMAND [ARGUMENTS]\n\n"
                        "A Humanitec driver for HyperFleet clusters and nodepools.\n"
                        "Try it: hyperfleet-driver serve --demo\n");
    } else {
        hfd_buf_addf(&b, "Usage: hyperfleet-driver %s%s%s\n\n%s\n", about->name,
                     about->args[0] != '\0' ? " " : "", about->args, about->text);
        add_own_flags(&b, about);
    }
    add_commands(&b);
    if (about == NULL || strstr(about->args, "SETTINGS") != NULL)
        add_settings(&b);
    add_exits(&b);
    return hfd_cli_print("help", &b);
}

/* Prints the error and the list of commands. */
static enum hfd_exit unknown_command(const char *name)
{
    if (name == NULL)
        (void)fprintf(stderr, "hyperfleet-driver: expected a command\n");
    else
        (void)fprintf(stderr, "hyperfleet-driver: unknown command %.60s\n", name);
    (void)fprintf(stderr, "Commands:\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        (void)fprintf(stderr, "  %-8s %s\n", commands[i].name, commands[i].text);
    return HFD_EXIT_USAGE;
}

enum hfd_exit hfd_cmd_help(int argc, const char *const *argv)
{
    const struct command *about = argc > 0 ? find_command(argv[0]) : NULL;

    if (argc > 0 && about == NULL)
        return unknown_command(argv[0]);
    if (argc > 1)
        return hfd_cli_fail(HFD_EXIT_USAGE, "help", "unexpected argument %.60s", argv[1]);
    return print_help(about);
}

static bool is_one_of(const char *arg, const char *long_form, const char *short_form)
{
    return strcmp(arg, long_form) == 0 || strcmp(arg, short_form) == 0;
}

static bool asks_for_help(int argc, const char *const *argv)
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

static enum hfd_exit run(int argc, const char *const *args)
{
    const struct command *command;

    if (!hold_standard_fds())
        return HFD_EXIT_INTERNAL;
    forbid_dumps();
    if (argc < 2)
        return unknown_command(NULL);
    if (is_one_of(args[1], "--help", "-h"))
        return print_help(NULL);
    if (is_one_of(args[1], "--version", "-V"))
        return hfd_cmd_version(argc - 2, args + 2);
    command = find_command(args[1]);
    if (command == NULL)
        return unknown_command(args[1]);
    if (asks_for_help(argc - 2, args + 2))
        return print_help(command);
    return command->fn(argc - 2, args + 2);
}

int main(int argc, char **argv)
{
    return (int)run(argc, (const char *const *)argv);
}
