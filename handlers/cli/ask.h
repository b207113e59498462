/*
 * The way to the running server of these settings, or to the one that flags name. On this machine a
 * command logs in with the token that the server leaves in the data folder for commands of its
 * user. Thread: main.
 */
#ifndef HFD_CLI_ASK_H
#define HFD_CLI_ASK_H

#include "handlers/cli/cli.h"
#include "handlers/client/http.h"
#include "handlers/http/http.h"
#include "handlers/http/tls.h"

#define HFD_CLI_ANSWER_MAX_BYTES ((size_t)8 * 1024 * 1024)

/**
 * Sends a GET.
 * @param body  initialised and freed by the caller
 * @param why   what went wrong; static
 * @return true if the answer is 200
 */
bool hfd_cli_ask(struct hfd_settings *s, const char *path, struct hfd_buf *body, const char **why);
/**
 * The same without a login, and to a server with any certificate. For a question without secrets,
 * whose answer must not depend on a file.
 */
bool hfd_cli_ask_openly(const struct hfd_settings *s, const char *path, struct hfd_buf *body,
                        const char **why);

/** The way to the running server of these settings, for hfd_client_open. */
struct hfd_cli_server {
    struct hfd_client_config config; /* borrows from the rest, and from the settings */
    char url[512];
    char pin[HFD_TLS_PIN_MAX];
};
/**
 * Finds a listener of it, and the token that it leaves for commands of its user.
 * @param out  must not move
 * @return HFD_OK, HFD_IO (the certificate of tls.cert_file cannot be read)
 */
HFD_MUST_CHECK hfd_rc hfd_cli_find(struct hfd_settings *s, enum hfd_listener l,
                                   struct hfd_cli_server *out, struct hfd_err *err);

/** The server that the flags of a command name. */
struct hfd_cli_address {
    const char *url, *ops_url; /* main and ops listener; NULL = not named */
    const char *token_file, *ca_file;
};
/**
 * Takes HFD_URL and HFD_OPS_URL in place of a flag that is missing, unless the flags have
 * settings: those mean the server on this machine.
 * @return false if both flags and settings are given: *err says so
 */
bool hfd_cli_address_complete(struct hfd_cli_address *a, const struct hfd_flags *flags,
                              struct hfd_err *err);

/** The main listener that a command of the client asks: that of --url, else that of the settings.
 */
struct hfd_cli_target {
    /* Results of flags; after open, url is set. */
    const char *url, *token_file, *ca_file, *config_file, *data;
    const char *ops_url; /* taken, so that the same flags fit all commands; not used */
    /* While it is open: */
    struct hfd_settings *settings; /* NULL with --url */
    struct hfd_cli_server server;
    char again[512]; /* the flags that name it: " --url URL" */
};

/* clang-format off */
/** Its rows for a table of struct hfd_flag. */
#define HFD_CLI_TARGET_FLAGS(t, token_text) \
    {"--url", "HFD_URL", HFD_FLAG_TEXT, &(t)->url, "URL", "the server; if none, that of the settings"}, \
    {"--ops-url", "HFD_OPS_URL", HFD_FLAG_TEXT, &(t)->ops_url, "URL", NULL}, \
    {"--token-file", "HFD_TOKEN_FILE", HFD_FLAG_TEXT, &(t)->token_file, "FILE", token_text}, \
    {"--ca-file", NULL, HFD_FLAG_TEXT, &(t)->ca_file, "FILE", "certificates to trust"}, \
    {"--config", NULL, HFD_FLAG_TEXT, &(t)->config_file, "FILE", "the settings of the server on this machine"}, \
    {"--data", NULL, HFD_FLAG_TEXT, &(t)->data, "FOLDER", "its data folder, in place of that of the settings"}
#define HFD_CLI_TARGET_FLAG_COUNT 6
/* clang-format on */

/** The way out of a 401 without a token. */
#define HFD_CLI_LOGIN_TEXT(scope)                                                                  \
    "give --token-file FILE (hyperfleet-driver token create --name me --scope " scope ")"

/**
 * Opens the way to it. The settings of this machine are loaded only if no URL is given.
 * @param t    must not move while it is open
 * @param out  gives; close it with hfd_client_close, then the target
 * @return false with the exit status, after a message
 */
bool hfd_cli_target_open(struct hfd_cli_target *t, const char *command,
                         struct hfd_client_http **out, enum hfd_exit *status);
void hfd_cli_target_close(struct hfd_cli_target *t);

#endif
