/*
 * Asks the running server of these settings through its ops listener. It logs in with the token
 * that the server leaves in the data folder for commands of its user. Thread: main.
 */
#ifndef HFD_CLI_ASK_H
#define HFD_CLI_ASK_H

#include "handlers/cli/cli.h"

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

#endif
