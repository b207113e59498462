/* See client.h. */
#include "handlers/cli/client.h"

#include <unistd.h>

#define OUTPUT_MAX_BYTES ((size_t)64 * 1024 * 1024)
#define REQUEST_TIMEOUT_US (INT64_C(60) * HFD_US_PER_S)
#define URL_DEFAULT "http://127.0.0.1:8000/"

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
    (void)number;
    if (stopped != 0)
        _exit(HFD_EXIT_CUT_SHORT);
    stopped = 1;
}

static enum hfd_exit print_flags(const struct hfd_client_command *c, const struct hfd_flags *flags)
{
    struct hfd_buf b;

    hfd_buf_init(&b, OUTPUT_MAX_BYTES);
    hfd_buf_addf(&b, "Usage: hyperfleet-driver %s\n\nFlags:\n", c->usage);
    hfd_flags_help(flags, &b);
    hfd_buf_addf(&b, "\nExample: hyperfleet-driver %s\n", c->example);
    return hfd_cli_print(c->name, &b);
}

static enum hfd_exit wrong_use(const struct hfd_client_command *c, const char *msg)
{
    (void)hfd_cli_fail(HFD_EXIT_USAGE, c->name, "%s", msg);
    (void)fprintf(stderr, "Usage: hyperfleet-driver %s\n", c->usage);
    return HFD_EXIT_USAGE;
}

bool hfd_client_command_read(struct hfd_client_command *c, int argc, const char *const *argv,
                             enum hfd_exit *status)
{
    const struct hfd_flag table[] = {
        {"--url", "HFD_URL", HFD_FLAG_TEXT, &c->url, "URL", "the driver: " URL_DEFAULT " if none"},
        {"--ops-url", "HFD_OPS_URL", HFD_FLAG_TEXT, &c->ops_url, "URL", HFD_OPS_URL_TEXT},
        {"--id", NULL, HFD_FLAG_TEXT, &c->id, "GURESID", "apply: of this resource"},
        {"--wait", NULL, HFD_FLAG_SWITCH, &c->wait, NULL, "wait for the end of the operation"},
        {"--timeout", NULL, HFD_FLAG_DURATION, &c->timeout_us, "DURATION", "wait no longer"},
        {"--dry-run", NULL, HFD_FLAG_SWITCH, &c->dry_run, NULL,
         "apply: say what would be done (needs a driver that serves /validate)"},
        {"-o", NULL, HFD_FLAG_TEXT, &c->form_name, "FORM", "json, yaml or name"},
        {"--state", NULL, HFD_FLAG_TEXT, &c->state_file, "FILE", "the file of cookies"},
        {"--token-file", "HFD_TOKEN_FILE", HFD_FLAG_TEXT, &c->token_file, "FILE", "a bearer token"},
        {"--ca-file", NULL, HFD_FLAG_TEXT, &c->ca_file, "FILE", "certificates to trust"},
        {"--help", NULL, HFD_FLAG_SWITCH, &c->help, NULL, "print this text"},
    };
    struct hfd_flags flags = {.table = table, .count = sizeof(table) / sizeof(table[0])};
    struct hfd_err err = {0};
    hfd_rc rc = hfd_flags_read(&flags, argc, argv, &err);

    if (rc == HFD_OK)
        rc = hfd_form_read(c->form_name, &c->form, &err);
    c->url = c->url != NULL ? c->url : URL_DEFAULT;
    c->place = flags.place_count > 0 ? flags.places[0] : NULL;
    if (rc != HFD_OK)
        *status = wrong_use(c, err.msg);
    else if (c->help)
        *status = print_flags(c, &flags);
    else if (flags.place_count != 1 || flags.places[0][0] == '\0')
        *status = wrong_use(c, "expected one argument beside the flags");
    else
        return true;
    return false;
}

bool hfd_client_command_open(struct hfd_client_command *c, enum hfd_exit *status)
{
    const struct hfd_client_config config = {.url = c->url,
                                             .token_file = c->token_file,
                                             .ca_file = c->ca_file,
                                             .timeout_us = REQUEST_TIMEOUT_US};
    const struct sigaction action = {.sa_handler = on_signal};
    struct hfd_err err = {0};
    hfd_rc rc = hfd_client_state_find(c->state_file, &c->state, &err);

    if (rc == HFD_OK)
        rc = hfd_client_open(&config, &c->http, &err);
    if (rc != HFD_OK) {
        *status = rc == HFD_NOMEM ? hfd_client_command_fail(c, rc, &err) : wrong_use(c, err.msg);
        return false;
    }
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    return true;
}

void hfd_client_command_close(struct hfd_client_command *c)
{
    hfd_client_close(&c->http);
}

enum hfd_exit hfd_client_command_fail(const struct hfd_client_command *c, hfd_rc rc,
                                      const struct hfd_err *err)
{
    const enum hfd_exit status = rc == HFD_NOMEM ? HFD_EXIT_INTERNAL
                                 : rc == HFD_IO  ? HFD_EXIT_ADDRESS
                                                 : HFD_EXIT_USAGE;

    return hfd_cli_fail(status, c->name, "%s", err->msg);
}

/* ---- the last step ---- */

static enum hfd_exit print_document(const struct hfd_client_command *c, const json_t *doc,
                                    const char *id)
{
    struct hfd_buf b;

    hfd_buf_init(&b, OUTPUT_MAX_BYTES);
    hfd_form_write(&b, c->form, doc, id);
    return hfd_cli_print(c->name, &b);
}

/* Prints all mistakes of an order, where the driver lists them. */
static void print_mistakes(const json_t *doc)
{
    const json_t *all = json_object_get(json_object_get(doc, "details"), "errors");

    for (size_t i = 0; json_array_size(all) > 1 && i < json_array_size(all); i++) {
        const char *text = json_string_value(json_object_get(json_array_get(all, i), "message"));

        if (text != NULL)
            (void)fprintf(stderr, "  %s\n", text);
    }
}

static enum hfd_exit fail_by(const struct hfd_client_command *c, const struct hfd_order_answer *a,
                             const char *id)
{
    const enum hfd_exit status = a->http.status == 404 ? HFD_EXIT_ABSENT : HFD_EXIT_CUT_SHORT;
    const char *code = json_string_value(json_object_get(a->doc, "error"));
    const char *message = json_string_value(json_object_get(a->doc, "message"));

    if (message == NULL)
        message = a->http.status == 404   ? "there is no such resource"
                  : a->http.status == 409 ? "another operation is under way"
                                          : "the driver gives no reason";
    (void)hfd_cli_fail(status, c->name, "%s: %d%s%s: %s", id, a->http.status,
                       code != NULL ? " " : "", code != NULL ? code : "", message);
    print_mistakes(a->doc);
    return status;
}

static enum hfd_exit say_under_way(const struct hfd_client_command *c, const char *id,
                                   const struct hfd_client_step *step)
{
    const bool deleting = strcmp(step->request.method, "DELETE") == 0;

    (void)fprintf(stderr, "%s is still under way. Resume: hyperfleet-driver %s %s --url %s%s\n", id,
                  deleting ? "delete" : "wait", id, c->url, deleting ? " --wait" : "");
    return HFD_EXIT_UNDER_WAY;
}

enum hfd_exit hfd_client_command_finish(const struct hfd_client_command *c,
                                        const struct hfd_order_answer *a,
                                        struct hfd_client_step *step)
{
    const char *id = step->request.id;

    switch (a->http.status) {
    case 200:
        return print_document(c, a->doc, id);
    case 204:
        return HFD_EXIT_OK;
    case 202:
        if (step->quiet)
            return HFD_EXIT_UNDER_WAY;
        return step->follow ? say_under_way(c, id, step) : print_document(c, a->doc, id);
    case 405:
        if (step->no_get) {
            step->no_get = false;
            return HFD_EXIT_CUT_SHORT;
        }
        return fail_by(c, a, id);
    default:
        return fail_by(c, a, id);
    }
}

enum hfd_exit hfd_client_command_run(struct hfd_client_command *c, struct hfd_client_step *step)
{
    const struct hfd_order_driver driver = {c->http, &c->state, c->url};
    struct hfd_progress_view view;
    const struct hfd_order_follow follow = {
        .timeout_us = c->timeout_us, .stop = &stopped, .progress = hfd_progress_show, .ctx = &view};
    struct hfd_order_answer a;
    struct hfd_err err = {0};
    enum hfd_exit status;
    hfd_rc rc;

    hfd_progress_begin(&view, step->request.id);
    rc = step->follow ? hfd_order_wait(&driver, &step->request, &follow, &a, &err)
                      : hfd_order_send(&driver, &step->request, &a, &err);
    hfd_progress_end(&view);
    status = rc == HFD_OK ? hfd_client_command_finish(c, &a, step)
                          : hfd_client_command_fail(c, rc, &err);
    hfd_order_answer_fini(&a);
    return status;
}
