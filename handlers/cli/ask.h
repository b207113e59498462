/*
 * Asks the running server of these settings through its ops listener. It logs in with the token
 * that the server leaves in the data folder for commands of its user. Thread: main.
 */
#ifndef HFD_CLI_ASK_H
#define HFD_CLI_ASK_H

#include "handlers/cli/cli.h"
#include "handlers/client/http.h"
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
 * Finds its ops listener, and the token that it leaves for commands of its user.
 * @param out  must not move
 * @return HFD_OK, HFD_IO (the certificate of tls.cert_file cannot be read)
 */
HFD_MUST_CHECK hfd_rc hfd_cli_find(struct hfd_settings *s, struct hfd_cli_server *out,
                                   struct hfd_err *err);

/** The server that the flags of a command name. */
struct hfd_cli_address {
    const char *url, *ops_url; /* main and ops listener; NULL = not named */
    const char *token_file, *ca_file;
};
/**
 * Takes HFD_URL and HFD_OPS_URL in place of a flag that is missing, unless the command has
 * settings: those mean the server on this machine.
 * @return false if both flags and settings are given: *err says so
 */
bool hfd_cli_address_complete(struct hfd_cli_address *a, const struct hfd_cli_args *settings,
                              struct hfd_err *err);

#endif
