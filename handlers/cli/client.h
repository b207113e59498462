/*
 * Shared by apply, get, wait and delete: their flags, the way to the driver, and the last step of
 * each. Thread: main.
 */
#ifndef HFD_CLI_CLIENT_H
#define HFD_CLI_CLIENT_H

#include "handlers/cli/cli.h"
#include "handlers/client/flags.h"
#include "handlers/client/form.h"
#include "handlers/client/progress.h"

/* A command that calls a driver. */
struct hfd_client_command {
    const char *name, *usage, *example;
    /* Results of the flags: */
    const char *url, *token_file, *ca_file, *state_file, *form_name, *id;
    const char *ops_url; /* taken, so that the same flags fit all commands; not used */
    int64_t timeout_us;
    bool wait, dry_run, help;
    const char *place; /* the argument: FILE or GUResID */
    /* Between open and close: */
    enum hfd_form form;
    struct hfd_client_state state;
    struct hfd_client_http *http;
};

/**
 * Reads the arguments. With --help it prints the flags.
 * @return true when the command goes on; otherwise *status is its end
 */
bool hfd_client_command_read(struct hfd_client_command *c, int argc, const char *const *argv,
                             enum hfd_exit *status);
/** Finds the state file, and opens the way to the driver. @return as hfd_client_command_read */
bool hfd_client_command_open(struct hfd_client_command *c, enum hfd_exit *status);
void hfd_client_command_close(struct hfd_client_command *c);

/** Ends with a message about an error: 2 for a bad argument, 69 for a driver that is away. */
enum hfd_exit hfd_client_command_fail(const struct hfd_client_command *c, hfd_rc rc,
                                      const struct hfd_err *err);

/** A request, and whether it is repeated until the operation has ended. */
struct hfd_client_step {
    struct hfd_order_request request;
    bool follow;
    bool quiet;  /* a 202 is not printed */
    bool no_get; /* in: a 405 is not printed; out: false after a 405 */
};

/**
 * Carries a step out, prints the answer, and says how to resume when it was cut short.
 * @return the exit status of the command
 */
enum hfd_exit hfd_client_command_run(struct hfd_client_command *c, struct hfd_client_step *step);

/** Prints an answer as the last one of a command. @return its exit status */
enum hfd_exit hfd_client_command_finish(const struct hfd_client_command *c,
                                        const struct hfd_order_answer *a,
                                        struct hfd_client_step *step);

#endif
