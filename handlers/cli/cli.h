/*
 * Shared by the commands: the table of commands, the exit statuses, and the first and last steps
 * of each command. Results go to stdout, messages to stderr. Thread: main.
 */
#ifndef HFD_CLI_CLI_H
#define HFD_CLI_CLI_H

#include "driver/base/buf.h"
#include "handlers/settings/settings.h"
#include "store/place.h"

/* clang-format off */
/* name, status, meaning: the numbers above 2 are those of sysexits.h */
#define HFD_EXIT_LIST(X) \
    X(OK,         0, "success; serve: stopped by SIGTERM or SIGINT, all work finished") \
    X(CUT_SHORT,  1, "cut short: a second SIGTERM or SIGINT, or the output cannot be written; " \
                     "health: the server does not live, or is not ready; " \
                     "apply, get, wait, delete: the operation failed; " \
                     "list, status, purge, backup, token list, register --check: the server refuses") \
    X(USAGE,      2, "unknown command or flag, or a bad setting; purge: --yes is missing") \
    X(FOUND,      3, "doctor: problems or orphans found; register --check: something is missing or differs; " \
                     "keygen --activate: a replica lacks the key") \
    X(ABSENT,     4, "get, wait, status, purge: there is no such resource") \
    X(ADDRESS,   69, "cannot listen on an address; commands of the client: the server cannot be reached") \
    X(INTERNAL,  70, "out of memory, or the store failed; a restart recovers all acknowledged work") \
    X(DATA,      73, "cannot create, lock or use the data folder, a file in it, or the database; backup, restore, apply: FILE cannot be " \
                     "written, or is damaged; migrate: both databases differ, or one is in use") \
    X(UNDER_WAY, 75, "apply, wait, delete: still under way when the time was over, or at Ctrl-C") \
    X(KEYS,      78, "the key ring is unreadable, or missing although there is data, or lacks a key that is needed")

/* name, arguments, what it does */
#define HFD_COMMAND_LIST(X) \
    X(serve,   "[--demo[=SECONDS]] [SETTINGS]", "run the server") \
    X(adapter, "hypershift --api URL [--token-file FILE] [--ca-file FILE] [--send-secrets] [SETTINGS]", \
      "run the HyperShift adapter for a HyperFleet API elsewhere") \
    X(keygen,  "[--new | --rotate | --prepare | --activate] [SETTINGS]", "create the key ring, or bring a new key into it") \
    X(token,   "create --name NAME --scope SCOPE[,SCOPE] [--expires DURATION] [--new] | list [--ops-url URL] [--token-file FILE] [--ca-file FILE] | revoke NAME [SETTINGS]", \
      "make a token for a caller and print it, list tokens, or revoke one") \
    X(config,  "check [SETTINGS] | show [--origin] [--changed] [SETTINGS] | docs", \
      "check settings and the files they name, show them as YAML, or list all as Markdown") \
    X(doctor,  "[--json] [--url URL] [--ops-url URL] [--token-file FILE] [--ca-file FILE] | [--json] [--new] [SETTINGS]", \
      "check settings, keys, data and the remote, and list orphans; or check a server elsewhere") \
    X(health,  "[--ready] [SETTINGS]", "exit with 0 if the server on this machine lives, or is ready") \
    X(apply,   "FILE|- [--id GURESID] [FLAGS]", "order a resource from a Humanitec driver") \
    X(get,     "GURESID [FLAGS]", "print a resource of a Humanitec driver") \
    X(wait,    "GURESID [FLAGS]", "wait until a resource is ready, and print it") \
    X(delete,  "GURESID [FLAGS]", "delete a resource of a Humanitec driver") \
    X(purge,   "GURESID|ID [--yes --reason TEXT] [FLAGS]", "remove a cluster or nodepool whose deletion never ends") \
    X(list,    "[FLAGS]", "list the resources of a server, those in trouble first") \
    X(status,  "[GURESID] [FLAGS]", "show what needs attention, or one resource in full") \
    X(register,"--print|--check --org ORG --target URL [FLAGS]", \
      "print what an orchestrator has to know of this driver, or compare it with what it has") \
    X(backup,  "FILE [--ops-url URL] [--token-file FILE] [--ca-file FILE] [SETTINGS]", \
      "write a copy of the data of the running server, or of its PostgreSQL database, to FILE") \
    X(migrate, "--from PLACE --to PLACE [--store-password-file FILE] [--json] | --contract [--json] [SETTINGS]", \
      "move all data to another database, or end the use of a database by older versions") \
    X(restore, "FILE [SETTINGS]", "make the data folder, or fill an empty PostgreSQL database, from a backup") \
    X(version, "", "print the version") \
    X(help,    "[COMMAND | settings]", "print this text, that of a command, or all settings")

/* command, the settings that matter to it, examples: for the help of commands that take settings */
#define HFD_SETTINGS_USER_LIST(X) \
    X(serve,   "listen ops_listen data store backend demo hypershift.kubeconfig", \
      "serve --demo --data /tmp/hyperfleet\0serve --config hyperfleet-driver.yaml\0") \
    X(adapter, "ops_listen hypershift.kubeconfig hypershift.namespace hypershift.pull_secret_file", \
      "adapter hypershift --api https://hyperfleet.example/ --hypershift-kubeconfig kubeconfig\0" \
      "adapter hypershift --api http://127.0.0.1:8000/ --send-secrets --config adapter.yaml\0") \
    X(keygen,  "data keys store", "keygen --keys FILE\0keygen --rotate\0") \
    X(token,   "data auth.tokens_file", \
      "token create --name orchestrator --scope driver\0token create --name dns --scope adapter=dns --expires 90d\0") \
    X(config,  "", "config check --config new.yaml\0config show --changed --origin\0") \
    X(doctor,  "data store ops_listen", \
      "doctor\0doctor --url https://driver.example/ --ops-url https://driver.example:8080/\0") \
    X(health,  "ops_listen data", "health --ready\0health --ops-listen 127.0.0.1:8081\0") \
    X(backup,  "data store ops_listen", \
      "backup hyperfleet.backup\0backup hyperfleet.backup --ops-url https://driver.example:8080/ --token-file token\0") \
    X(migrate, "store store.password_file", \
      "migrate --from sqlite:data --to postgres://hyperfleet@db-0/hyperfleet\0migrate --contract --config FILE\0") \
    X(restore, "data keys store", \
      "restore hyperfleet.backup --data data --keys keys\0restore hyperfleet.backup --store postgres://hyperfleet@db-0/hyperfleet --keys keys\0")
/* clang-format on */

#define HFD_EXIT_ENUM_(name, status, text) HFD_EXIT_##name = (status),
enum hfd_exit {
    HFD_EXIT_LIST(HFD_EXIT_ENUM_)
};
#undef HFD_EXIT_ENUM_

/* ---- flags: a table of each command ---- */

enum hfd_flag_kind {
    HFD_FLAG_TEXT,     /* const char ** */
    HFD_FLAG_SWITCH,   /* bool * */
    HFD_FLAG_DURATION, /* int64_t *, microseconds */
    HFD_FLAG_LIST,     /* struct hfd_flag_list *: it may be given several times */
    HFD_FLAG_CALL,     /* struct hfd_flag_call *: it may be given several times */
    HFD_FLAG_SETTING   /* const char **: the flag of the setting that it stands for */
};

#define HFD_FLAG_LIST_MAX 16
struct hfd_flag_list {
    const char *values[HFD_FLAG_LIST_MAX];
    size_t count;
};

/* Takes a value. @return HFD_OK, or why the value is refused */
struct hfd_flag_call {
    hfd_rc (*fn)(void *ctx, const char *value, struct hfd_err *err);
    void *ctx;
};

struct hfd_flag {
    const char *name; /* "--url" */
    const char *env;  /* the variable that stands for it; NULL = none */
    enum hfd_flag_kind kind;
    void *out;
    const char *arg, *text; /* for the help; text: NULL = it is not in the help */
};

#define HFD_FLAG_PLACES_MAX 2

/** The arguments that are neither in the table nor the value of a flag in the table. */
enum hfd_flag_others {
    HFD_FLAG_REFUSED,  /* flags are refused; other arguments are places */
    HFD_FLAG_SETTINGS, /* flags, with their values, are settings; other arguments are places */
    HFD_FLAG_ALL       /* all are settings, which refuse what is no flag */
};

/** The arguments of a command, and what is left of them beside flags. */
struct hfd_flags {
    const char *command;      /* "token list", for messages */
    const char *usage, *tail; /* of its help; NULL = that of the table of commands */
    const struct hfd_flag *table;
    size_t count, place_max;
    enum hfd_flag_others others;
    const char *places[HFD_FLAG_PLACES_MAX]; /* results: the arguments that are no flags */
    size_t place_count;
    /* Results: the settings. NULL = there is room in the arguments; else room for twice as many. */
    const char **rest;
    int rest_count;
};
#define HFD_FLAG_TABLE(t) .table = (t), .count = sizeof(t) / sizeof((t)[0])

/* ---- commands ---- */

/**
 * A command.
 * @param argv  the arguments after its name; they may be moved
 */
typedef enum hfd_exit hfd_command_fn(int argc, const char **argv);

/* The commands: hfd_cmd_serve, hfd_cmd_keygen, ... */
#define HFD_COMMAND_FN_(name, args, text) hfd_command_fn hfd_cmd_##name;
HFD_COMMAND_LIST(HFD_COMMAND_FN_)
#undef HFD_COMMAND_FN_

/**
 * Prints "hyperfleet-driver COMMAND: message" on stderr: one line, as hfd_foreign_line makes it, so
 * that a text of a server may be in it. Returns status.
 */
enum hfd_exit hfd_cli_fail(enum hfd_exit status, const char *command, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/** The same with the message of an error. @return INTERNAL (NOMEM); USAGE for other results */
static inline enum hfd_exit hfd_cli_fail_rc(hfd_rc rc, const char *command,
                                            const struct hfd_err *err)
{
    return hfd_cli_fail(rc == HFD_NOMEM ? HFD_EXIT_INTERNAL : HFD_EXIT_USAGE, command, "%s",
                        err->msg);
}

struct hfd_http_answer;
/**
 * Fails as the ops listener of a server answers with another status than 200.
 * @return CUT_SHORT
 */
enum hfd_exit hfd_cli_refused(const char *command, const struct hfd_http_answer *answer,
                              bool has_token);

/** Prints a message on stderr, in the same way. */
void hfd_cli_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/**
 * Prints a result and frees it. Characters that a reader could not see are shown (foreign.h); only
 * line ends stay. In JSON and YAML the value stays the same.
 * @return OK, CUT_SHORT (stdout cannot be written), INTERNAL (the result is incomplete)
 */
enum hfd_exit hfd_cli_print(const char *command, struct hfd_buf *b);

/**
 * Reads the arguments of a command. With --help alone it prints the help.
 * @return true when the command goes on; otherwise *status is its end, after a message
 */
bool hfd_cli_read(struct hfd_flags *flags, int argc, const char **argv, enum hfd_exit *status);

/**
 * Returns the flag that is nearest to a name; NULL if none is near.
 * @param shown  only those with a line in the help
 */
const char *hfd_flags_nearest(const struct hfd_flags *flags, hfd_slice name, bool shown);

/** Says that the arguments are wrong, and how they should be. @return USAGE */
enum hfd_exit hfd_cli_wrong_use(const char *command, const char *usage, const char *msg);

/**
 * Loads the settings from file, environment and flags, and prints what is wrong with them.
 * @param flags  read: command, table and rest are used
 * @param out  gives on OK; free with hfd_settings_free
 * @return OK, USAGE, INTERNAL
 */
enum hfd_exit hfd_cli_settings(const struct hfd_flags *flags, struct hfd_settings **out);

/**
 * Returns the path of a file: the one given, else NAME in the data folder. With PostgreSQL there is
 * no data folder: then it is empty, which is the name of no file.
 * @return borrowed from s; NULL if memory is short
 */
const char *hfd_cli_path(struct hfd_settings *s, hfd_slice given, const char *name);

/** Return the path of the key ring, and of the tokens file. */
static inline const char *hfd_cli_keys_path(struct hfd_settings *s)
{
    return hfd_cli_path(s, s->keys, "keys");
}
static inline const char *hfd_cli_tokens_path(struct hfd_settings *s)
{
    return hfd_cli_path(s, s->auth_tokens_file, "tokens");
}
/** Return the path of what the running server leaves for commands: its token, and its addresses. */
static inline const char *hfd_cli_local_token_path(struct hfd_settings *s)
{
    return hfd_cli_path(s, HFD_SLICE_NONE, "local-token");
}
static inline const char *hfd_cli_addresses_path(struct hfd_settings *s)
{
    return hfd_cli_path(s, HFD_SLICE_NONE, "addresses");
}

/** Returns where the database is. Borrows from s. */
struct hfd_store_place hfd_cli_place(const struct hfd_settings *s);
/** Returns the data folder, or the URL without its password. Borrowed from s. */
const char *hfd_cli_place_text(struct hfd_settings *s);

/**
 * Checks that a PostgreSQL store has a setting without a default: `keys` or `auth.tokens_file`.
 * @return HFD_OK, HFD_INVALID
 */
HFD_MUST_CHECK hfd_rc hfd_cli_need(const struct hfd_settings *s, enum hfd_setting which,
                                   struct hfd_err *err);

/**
 * Checks that a server has used the data folder, so that a command does not work on another one.
 * @param may_begin  the command has a flag --new for the first use
 * @return HFD_OK (also with PostgreSQL), HFD_INVALID
 */
HFD_MUST_CHECK hfd_rc hfd_cli_need_store(const struct hfd_settings *s, bool may_begin,
                                         struct hfd_err *err);

/**
 * Creates the data folder (mode 0700) and syncs its name to disk. Does not create its parents.
 * @return HFD_OK, HFD_IO, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_cli_make_data(const struct hfd_settings *s, struct hfd_err *err);

struct hfd_move_progress;
/** Shows how far a move is; for hfd_move_config, with a struct hfd_meter as ctx. */
void hfd_cli_show_move(void *ctx, const struct hfd_move_progress *now);

#endif
