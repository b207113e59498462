/*
 * Shared by the commands: the table of commands, the exit statuses, and the first and last steps
 * of each command. Results go to stdout, messages to stderr. Thread: main.
 */
#ifndef HFD_CLI_CLI_H
#define HFD_CLI_CLI_H

#include "handlers/settings/settings.h"
#include "store/place.h"

/* clang-format off */
/* name, status, meaning: the numbers above 2 are those of sysexits.h */
#define HFD_EXIT_LIST(X) \
    X(OK,         0, "success; serve: stopped by SIGTERM or SIGINT, all work finished") \
    X(CUT_SHORT,  1, "cut short: a second SIGTERM or SIGINT, or the output cannot be written; " \
                     "health: the server does not live, or is not ready; check: a rule is broken; " \
                     "apply, get, wait, delete: the operation failed; " \
                     "list, status, backup, token list, register --check: the server refuses") \
    X(USAGE,      2, "unknown command or flag, or a bad setting") \
    X(FOUND,      3, "doctor: problems or orphans found; register --check: something is missing or differs; " \
                     "keygen --activate: a replica lacks the key") \
    X(ABSENT,     4, "get, wait, status: there is no such resource") \
    X(ADDRESS,   69, "cannot listen on an address; commands of the client: the server cannot be reached") \
    X(INTERNAL,  70, "out of memory, or the store failed; a restart recovers all acknowledged work") \
    X(DATA,      73, "cannot create, lock or use the data folder, a file in it, or the database; backup, restore: FILE cannot be " \
                     "written, or is damaged; migrate: both databases differ, or one is in use") \
    X(UNDER_WAY, 75, "apply, wait, delete: still under way when the time was over, or at Ctrl-C") \
    X(KEYS,      78, "the key ring is unreadable, or missing although there is data, or lacks a key that is needed")

/* name, arguments, what it does */
#define HFD_COMMAND_LIST(X) \
    X(serve,   "[--demo[=SECONDS]] [SETTINGS]", "run the server") \
    X(adapter, "hypershift --api URL [--token-file FILE] [--ca-file FILE] [--send-secrets] [SETTINGS]", \
      "run the HyperShift adapter for a HyperFleet API elsewhere") \
    X(keygen,  "[--rotate | --prepare | --activate] [SETTINGS]", "create the key ring, or bring a new key into it") \
    X(token,   "create --name NAME --scope SCOPE[,SCOPE] [--expires DURATION] | list [--ops-url URL] [--token-file FILE] [--ca-file FILE] | revoke NAME [SETTINGS]", \
      "make a token for a caller and print it, list tokens, or revoke one") \
    X(config,  "check [SETTINGS] | show [--origin] [SETTINGS] | docs", \
      "check settings and the files they name, show them as YAML, or list all as Markdown") \
    X(doctor,  "[--json] [--url URL] [--ops-url URL] [--token-file FILE] [--ca-file FILE] | [--json] [SETTINGS]", \
      "check settings, keys, data and the remote, and list orphans; or check a server elsewhere") \
    X(health,  "[--ready] [SETTINGS]", "exit with 0 if the server on this machine lives, or is ready") \
    X(apply,   "FILE|- [--id GURESID] [FLAGS]", "order a resource from a Humanitec driver") \
    X(get,     "GURESID [FLAGS]", "print a resource of a Humanitec driver") \
    X(wait,    "GURESID [FLAGS]", "wait until a resource is ready, and print it") \
    X(delete,  "GURESID [FLAGS]", "delete a resource of a Humanitec driver") \
    X(list,    "[FLAGS]", "list the resources of a server, those in trouble first") \
    X(status,  "[GURESID] [FLAGS]", "show what needs attention, or one resource in full") \
    X(register,"--print|--check --org ORG --target URL [FLAGS]", \
      "print what an orchestrator has to know of this driver, or compare it with what it has") \
    X(check,   "URL --input FILE [--update FILE] [FLAGS]", \
      "check any Humanitec driver against the Driver API 0.9.3") \
    X(backup,  "FILE [--ops-url URL] [--token-file FILE] [--ca-file FILE] [SETTINGS]", \
      "write a copy of the data of the running server, or of its PostgreSQL database, to FILE") \
    X(migrate, "--from PLACE --to PLACE [--password-file FILE] [--json] | --contract [--json] [SETTINGS]", \
      "move all data to another database, or end the use of a database by older versions") \
    X(restore, "FILE [SETTINGS]", "make the data folder, or fill an empty PostgreSQL database, from a backup") \
    X(version, "", "print the version") \
    X(help,    "[COMMAND]", "print this text")

/* The text of --ops-url where only the main listener is asked: the same flags fit all commands. */
#define HFD_OPS_URL_TEXT "not used here: the ops listener, for doctor, token list and backup"

/* command, flag, value or NULL, what it does: the flags beside settings. Other commands have tables of struct hfd_flag. */
#define HFD_OWN_FLAG_LIST(X) \
    X(adapter, "--api",    "URL",            "HyperFleet API that it works for; the same as --backend") \
    X(adapter, "--token-file", "FILE",       "its token; the same as --remote-token-file") \
    X(adapter, "--ca-file", "FILE",          "its authorities; the same as --remote-ca-file") \
    X(adapter, "--send-secrets", NULL,       "report kubeconfigs: for an API of hyperfleet-driver alone") \
    X(keygen, "--rotate",  NULL,             "add a new active key; the others still open what they sealed") \
    X(keygen, "--prepare", NULL,             "add a key that only opens yet: the first step with replicas") \
    X(keygen, "--activate", NULL,            "make the prepared key the active one, when all live replicas have it") \
    X(token,  "--name",    "NAME",           "create: the name of the caller") \
    X(token,  "--scope",   "SCOPE[,SCOPE]",  "create: driver, fleet-read, adapter, fleet-write, view or admin") \
    X(token,  "--expires", "DURATION",       "create: the token is not valid after this time") \
    X(config, "--origin",  NULL,             "show: where each value comes from") \
    X(token,  "--ops-url", "URL",            "list: the ops listener of a server elsewhere (HFD_OPS_URL)") \
    X(token,  "--url",     "URL",            "list: its main listener (HFD_URL); not used here") \
    X(token,  "--token-file", "FILE",        "list: a bearer token with the scope admin (HFD_TOKEN_FILE)") \
    X(token,  "--ca-file", "FILE",           "list: certificates to trust") \
    X(doctor, "--json",    NULL,             "print one JSON document") \
    X(doctor, "--url",     "URL",            "check the server with this main listener (HFD_URL), from here") \
    X(doctor, "--ops-url", "URL",            "check the server with this ops listener (HFD_OPS_URL), from here") \
    X(doctor, "--token-file", "FILE",        "a bearer token, for both (HFD_TOKEN_FILE)") \
    X(doctor, "--ca-file", "FILE",           "certificates to trust, for both") \
    X(health, "--ready",   NULL,             "ask whether it is ready, not whether it lives") \
    X(migrate, "--from",   "PLACE",          "where the data is: sqlite:FOLDER, or postgres://USER@HOST:PORT/DATABASE") \
    X(migrate, "--to",     "PLACE",          "where it goes: an empty database or folder, or that of a move that was cut short") \
    X(migrate, "--password-file", "FILE",    "the password of the PostgreSQL user (HFD_STORE_PASSWORD_FILE)") \
    X(migrate, "--contract", NULL,           "with PostgreSQL: take away what only older versions use; none of them runs") \
    X(migrate, "--json",   NULL,             "print one JSON document") \
    X(backup, "--ops-url", "URL",            "the ops listener of the server (HFD_OPS_URL); without it, that of the settings") \
    X(backup, "--url",     "URL",            "its main listener; not used here") \
    X(backup, "--token-file", "FILE",        "a bearer token with the scope admin (HFD_TOKEN_FILE)") \
    X(backup, "--ca-file", "FILE",           "certificates to trust")
/* clang-format on */

#define HFD_EXIT_ENUM_(name, status, text) HFD_EXIT_##name = (status),
enum hfd_exit {
    HFD_EXIT_LIST(HFD_EXIT_ENUM_)
};
#undef HFD_EXIT_ENUM_

/**
 * A command.
 * @param argv  the arguments after its name
 */
typedef enum hfd_exit hfd_command_fn(int argc, const char *const *argv);

/* The commands: hfd_cmd_serve, hfd_cmd_keygen, ... */
#define HFD_COMMAND_FN_(name, args, text) hfd_command_fn hfd_cmd_##name;
HFD_COMMAND_LIST(HFD_COMMAND_FN_)
#undef HFD_COMMAND_FN_

/** Prints "hyperfleet-driver COMMAND: message" on stderr. Returns status. */
enum hfd_exit hfd_cli_fail(enum hfd_exit status, const char *command, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/**
 * Prints a result and frees it.
 * @return OK, CUT_SHORT (stdout cannot be written), INTERNAL (the result is incomplete)
 */
enum hfd_exit hfd_cli_print(const char *command, struct hfd_buf *b);

/** The arguments of a command: settings, and possibly one flag of its own. */
struct hfd_cli_args {
    int argc;
    const char *const *argv;
    const char *own_flag; /* "--json"; NULL = none */
    bool own_given;       /* result */
};

/**
 * Loads the settings from file, environment and flags, and prints what is wrong with them.
 * @param out  gives on OK; free with hfd_settings_free
 * @return OK, USAGE, INTERNAL
 */
enum hfd_exit hfd_cli_settings(const char *command, struct hfd_cli_args *args,
                               struct hfd_settings **out);

/*
 * Paths, borrowed from s; NULL if memory is short. With PostgreSQL there is no data folder: those
 * that no setting names are empty, which is the name of no file.
 */
/** Returns the path of the key ring: `keys`, or DATA/keys. */
const char *hfd_cli_keys_path(struct hfd_settings *s);

/** The same for the tokens file: `auth.tokens_file`, or DATA/tokens. */
const char *hfd_cli_tokens_path(struct hfd_settings *s);
/** The same for the file with the token of the running server, for commands on this machine. */
const char *hfd_cli_local_token_path(struct hfd_settings *s);

/** The same for the file with the address of the running server's ops listener. */
const char *hfd_cli_ops_path(struct hfd_settings *s);

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
 * Creates the data folder (mode 0700) and syncs its name to disk. Does not create its parents.
 * @return HFD_OK, HFD_IO, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_cli_make_data(const struct hfd_settings *s, struct hfd_err *err);

/**
 * Gives a file to the owner of the data folder when root has made it: the server may run as that
 * user.
 * @return HFD_OK, HFD_IO
 */
HFD_MUST_CHECK hfd_rc hfd_cli_give_to_owner(const struct hfd_settings *s, const char *path,
                                            struct hfd_err *err);

#endif
