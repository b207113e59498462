/*
 * hyperfleet-driver apply, get, wait and delete: order a resource from a driver, and follow it.
 * They share their flags, the way to the driver, and the last step. Thread: main.
 */
#include "driver/base/file.h"
#include "driver/base/jsonx.h"
#include "handlers/cli/ask.h"
#include "handlers/client/form.h"
#include "handlers/client/order.h"

#include <sodium.h>

#include <errno.h>
#include <unistd.h>

/* ---- the flags ---- */

/* A command that calls a driver. */
struct hfd_client_command {
    const char *name, *usage, *example;
    /* Results of the flags: */
    struct hfd_cli_target target;
    const char *state_file, *form_name, *id, *plan_file, *plan_out;
    char plan[80]; /* of plan_file, with quotes */
    int64_t timeout_us;
    bool wait, dry_run, show_secrets;
    bool told_of_cookie; /* that one is not kept: once */
    bool under_way;      /* the last step had a 202 */
    const char *place;   /* the argument: FILE or GUResID */
    /* Between open and close: */
    enum hfd_form form;
    struct hfd_client_state state;
    struct hfd_client_http *http;
};

/* A request, and whether it is repeated until the operation has ended. */
struct hfd_client_step {
    struct hfd_order_request request;
    bool follow;
    bool quiet;  /* a 202 is not printed */
    bool busy;   /* in: a 409 is said, and is no end; out: there was one */
    bool freed;  /* any end will do: it is not printed */
    bool no_get; /* in: a 405 is not printed; out: false after a 405 */
};

#define OUTPUT_MAX_BYTES ((size_t)64 * 1024 * 1024)
#define BUSY "another operation is under way"

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
    (void)number;
    if (stopped != 0)
        _exit(HFD_EXIT_CUT_SHORT);
    stopped = 1;
}

static enum hfd_exit wrong_use(const struct hfd_client_command *c, const char *msg)
{
    return hfd_cli_wrong_use(c->name, c->usage, msg);
}

/*
 * Reads the arguments. With --help it prints the flags.
 * @return true when the command goes on; otherwise *status is its end
 */
static bool client_command_read(struct hfd_client_command *c, int argc, const char **argv,
                                enum hfd_exit *status)
{
    const struct hfd_flag table[] = {
        HFD_CLI_TARGET_FLAGS(&c->target, "a bearer token"),
        {"--id", NULL, HFD_FLAG_TEXT, &c->id, "GURESID", "apply: of this resource"},
        {"--wait", NULL, HFD_FLAG_SWITCH, &c->wait, NULL, "wait for the end of the operation"},
        {"--timeout", NULL, HFD_FLAG_DURATION, &c->timeout_us, "DURATION", "wait no longer"},
        {"--dry-run", NULL, HFD_FLAG_SWITCH, &c->dry_run, NULL,
         "apply, delete: say what would be done (apply: by the driver's /validate)"},
        {"--plan-out", NULL, HFD_FLAG_TEXT, &c->plan_out, "FILE",
         "apply: say what would be done, and write it to FILE"},
        {"--plan", NULL, HFD_FLAG_TEXT, &c->plan_file, "FILE",
         "apply: do just what FILE says, or nothing"},
        {"--show-secrets", NULL, HFD_FLAG_SWITCH, &c->show_secrets, NULL,
         "print secrets on a terminal, too"},
        {"-o", NULL, HFD_FLAG_TEXT, &c->form_name, "FORM", "json, yaml or name"},
        {"--state", NULL, HFD_FLAG_TEXT, &c->state_file, "FILE", "the file of cookies"},
        {"--help", NULL, HFD_FLAG_SWITCH, NULL, NULL, "print this text"},
    };
    struct hfd_flags flags = {.command = c->name,
                              .usage = c->usage,
                              .tail = c->example,
                              HFD_FLAG_TABLE(table),
                              .place_max = HFD_FLAG_PLACES_MAX};
    struct hfd_err err = {0};

    if (!hfd_cli_read(&flags, argc, argv, status))
        return false;
    c->place = flags.places[0];
    if (hfd_form_read(c->form_name, &c->form, &err) != HFD_OK)
        *status = wrong_use(c, err.msg);
    else if (flags.place_count != 1 || flags.places[0][0] == '\0')
        *status = wrong_use(c, "expected one argument beside the flags");
    else
        return true;
    return false;
}

static enum hfd_exit client_command_fail(const struct hfd_client_command *c, hfd_rc rc,
                                         const struct hfd_err *err);

/* Finds the state file, and opens the way to the driver. @return as client_command_read */
static bool client_command_open(struct hfd_client_command *c, enum hfd_exit *status)
{
    const struct sigaction action = {.sa_handler = on_signal};
    struct hfd_err err = {0};
    const hfd_rc rc = hfd_client_state_find(c->state_file, &c->state, &err);

    if (rc != HFD_OK) {
        *status = rc == HFD_NOMEM ? client_command_fail(c, rc, &err) : wrong_use(c, err.msg);
        return false;
    }
    if (!hfd_cli_target_open(&c->target, c->name, &c->http, status))
        return false;
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    return true;
}

static void client_command_close(struct hfd_client_command *c)
{
    hfd_client_close(&c->http);
    hfd_cli_target_close(&c->target);
}

/* Ends with a message about an error: 2 for a bad argument, 69 for a driver that is away. */
static enum hfd_exit client_command_fail(const struct hfd_client_command *c, hfd_rc rc,
                                         const struct hfd_err *err)
{
    const enum hfd_exit status = rc == HFD_NOMEM ? HFD_EXIT_INTERNAL
                                 : rc == HFD_IO  ? HFD_EXIT_ADDRESS
                                                 : HFD_EXIT_USAGE;

    return hfd_cli_fail(status, c->name, "%s", err->msg);
}

/* ---- the last step ---- */

/* On a terminal the values of resource.secrets stay hidden. A pipe gets them. */
static enum hfd_exit print_document(const struct hfd_client_command *c, json_t *doc, const char *id)
{
    json_t *secrets = json_object_get(json_object_get(doc, "resource"), "secrets"), *value;
    const char *key;
    struct hfd_buf b;

    if (!c->show_secrets && isatty(STDOUT_FILENO) == 1)
        json_object_foreach (secrets, key, value)
            (void)json_object_set_new(secrets, key, json_string("[redacted]"));
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
            hfd_cli_say("  %s", text);
    }
}

static enum hfd_exit fail_by(const struct hfd_client_command *c, const struct hfd_order_answer *a,
                             const char *id)
{
    const enum hfd_exit status = a->http.status == 404 ? HFD_EXIT_ABSENT : HFD_EXIT_CUT_SHORT;
    const char *code = json_string_value(json_object_get(a->doc, "error"));
    const char *message = json_string_value(json_object_get(a->doc, "message"));

    if (a->http.status == 401 && c->target.server.config.token_file == NULL)
        message = HFD_CLI_LOGIN_TEXT("driver");
    if (message == NULL)
        message = a->http.status == 404   ? "there is no such resource"
                  : a->http.status == 409 ? BUSY
                                          : "the driver gives no reason";
    (void)hfd_cli_fail(status, c->name, "%s: %d%s%s: %s", id, a->http.status,
                       code != NULL ? " " : "", code != NULL ? code : "", message);
    print_mistakes(a->doc);
    return status;
}

static enum hfd_exit say_under_way(const struct hfd_client_command *c,
                                   const struct hfd_order_answer *a,
                                   const struct hfd_client_step *step)
{
    const bool deleting = strcmp(step->request.method, "DELETE") == 0;
    const char *id = step->request.id;
    char state[96] = "is still under way";

    if (a->away_us > 0)
        (void)snprintf(state, sizeof(state),
                       "was under way until the driver gave no answer, %lld s ago",
                       (long long)(a->away_us / HFD_US_PER_S));
    hfd_cli_say("%s %s. Resume: hyperfleet-driver %s %s%s%s", id, state,
                deleting ? "delete" : "wait", id, c->target.again, deleting ? " --wait" : "");
    return HFD_EXIT_UNDER_WAY;
}

/* Says what is in the way of an order, which waits for it. */
static enum hfd_exit say_busy(const struct hfd_order_answer *a, const char *id)
{
    const char *message = json_string_value(json_object_get(a->doc, "message"));

    hfd_cli_say("%s: 409: %s", id, message != NULL ? message : BUSY);
    hfd_cli_say("%s: waits for that, and orders again", id);
    return HFD_EXIT_UNDER_WAY;
}

/* Returns whether an answer of GET says that no operation is under way any more. */
static bool is_end(int status)
{
    return status == 200 || status == 204 || status == 400 || status == 404;
}

/* Prints an answer as the last one of a command. @return its exit status */
static enum hfd_exit client_command_finish(const struct hfd_client_command *c,
                                           const struct hfd_order_answer *a,
                                           struct hfd_client_step *step)
{
    const bool may_be_busy = step->busy;
    const char *id = step->request.id;

    step->busy = may_be_busy && a->http.status == 409;
    if (step->busy)
        return say_busy(a, id);
    if (step->freed && is_end(a->http.status))
        return HFD_EXIT_OK;
    switch (a->http.status) {
    case 200:
        return print_document(c, a->doc, id);
    case 204:
        return HFD_EXIT_OK;
    case 202:
        if (step->quiet)
            return HFD_EXIT_UNDER_WAY;
        return step->follow ? say_under_way(c, a, step) : print_document(c, a->doc, id);
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

/*
 * Carries a step out, prints the answer, and says how to resume when it was cut short.
 * @return the exit status of the command
 */
static enum hfd_exit client_command_run(struct hfd_client_command *c, struct hfd_client_step *step)
{
    const struct hfd_order_driver driver = {c->http, &c->state, c->target.url};
    const struct hfd_order_follow follow = {
        .timeout_us = c->timeout_us, .stop = &stopped, .known = c->under_way};
    struct hfd_order_answer a;
    struct hfd_err err = {0};
    enum hfd_exit status;
    hfd_rc rc;

    rc = step->follow ? hfd_order_wait(&driver, &step->request, &follow, &a, &err)
                      : hfd_order_send(&driver, &step->request, &a, &err);
    if (a.cookie_flaw[0] != '\0' && !c->told_of_cookie)
        hfd_cli_say("hyperfleet-driver %s: warning: the driver has taken the request, but its "
                    "cookie is not kept: %s",
                    c->name, a.cookie_flaw);
    c->told_of_cookie = c->told_of_cookie || a.cookie_flaw[0] != '\0';
    c->under_way = rc == HFD_OK && a.http.status == 202;
    status = rc == HFD_OK ? client_command_finish(c, &a, step) : client_command_fail(c, rc, &err);
    hfd_order_answer_fini(&a);
    return status;
}

/* ---- get, wait and delete ---- */

/*
 * Looks whether there is something to delete. With --dry-run it says so and ends; otherwise it
 * speaks of what is not there, as the answer to DELETE does not.
 */
static bool goes_on_to_delete(struct hfd_client_command *c, enum hfd_exit *status)
{
    const struct hfd_order_driver driver = {c->http, &c->state, c->target.url};
    const struct hfd_order_request request = {.method = "GET", .id = c->place};
    struct hfd_client_step step = {.request = request};
    struct hfd_order_answer a;
    struct hfd_err err = {0};
    const hfd_rc rc = hfd_order_send(&driver, &request, &a, &err);
    const int found = a.http.status;

    if (found == 404)
        hfd_cli_say("%s: there is no such resource", c->place);
    if (c->dry_run && rc != HFD_OK) {
        *status = client_command_fail(c, rc, &err);
    } else if (c->dry_run) {
        if (found == 200 || found == 202 || found == 400 || found == 404) {
            json_decref(a.doc);
            a.doc =
                json_pack("{s:s, s:s}", "id", c->place, "action", found == 404 ? "none" : "delete");
            a.http.status = 200;
        }
        *status = client_command_finish(c, &a, &step);
    }
    hfd_order_answer_fini(&a);
    return !c->dry_run;
}

/* Carries out one step on the resource that is named. */
static enum hfd_exit run(struct hfd_client_command *c, int argc, const char **argv,
                         const char *method)
{
    const bool waits = strcmp(c->name, "wait") == 0;
    struct hfd_client_step step = {.request = {.method = method}};
    enum hfd_exit status;

    if (!client_command_read(c, argc, argv, &status))
        return status;
    step.request.id = c->place;
    step.follow = c->wait || waits;
    if (client_command_open(c, &status) &&
        (strcmp(method, "DELETE") != 0 || goes_on_to_delete(c, &status)))
        status = client_command_run(c, &step);
    client_command_close(c);
    return status;
}

enum hfd_exit hfd_cmd_get(int argc, const char **argv)
{
    struct hfd_client_command c = {.name = "get",
                                   .usage = "get GURESID [FLAGS]",
                                   .example =
                                       "Example: hyperfleet-driver get 3c0a194814284345 -o yaml\n"};

    return run(&c, argc, argv, "GET");
}

enum hfd_exit hfd_cmd_wait(int argc, const char **argv)
{
    struct hfd_client_command c = {
        .name = "wait",
        .usage = "wait GURESID [FLAGS]",
        .example = "Example: hyperfleet-driver wait 3c0a194814284345 --timeout 30m\n"};

    return run(&c, argc, argv, "GET");
}

enum hfd_exit hfd_cmd_delete(int argc, const char **argv)
{
    struct hfd_client_command c = {
        .name = "delete",
        .usage = "delete GURESID [FLAGS]",
        .example = "Example: hyperfleet-driver delete 3c0a194814284345 --wait\n"};

    return run(&c, argc, argv, "DELETE");
}

/* ---- apply ---- */

#define DOCUMENT_MAX_BYTES ((size_t)4 * 1024 * 1024)
#define ID_BYTES 10

static hfd_rc read_stdin(struct hfd_buf *out, struct hfd_err *err)
{
    char piece[65536];
    size_t n;

    while ((n = fread(piece, 1, sizeof(piece), stdin)) > 0)
        hfd_buf_add(out, (hfd_slice){piece, n});
    if (ferror(stdin) != 0)
        return hfd_fail(err, HFD_IO, "read stdin: %s", strerror(errno));
    return out->rc == HFD_OK ? HFD_OK : hfd_fail(err, HFD_INVALID, "stdin: expected at most 4 MiB");
}

static hfd_rc read_order(const char *path, struct hfd_buf *out, json_t **doc, struct hfd_err *err)
{
    struct hfd_err why;
    hfd_rc rc =
        strcmp(path, "-") == 0 ? read_stdin(out, err) : hfd_file_read(path, "order", out, err);

    *doc = NULL;
    if (rc != HFD_OK)
        return hfd_fail(err, HFD_INVALID, "%s", err->msg);
    rc = hfd_json_parse(hfd_buf_slice(out), doc, &why);
    if (rc != HFD_OK)
        return hfd_fail(err, rc == HFD_NOMEM ? rc : HFD_INVALID, "%s: %s", path, why.msg);
    return json_is_object(*doc) ? HFD_OK
                                : hfd_fail(err, HFD_INVALID, "%s: expected an object", path);
}

/*
 * The GUResID of an order without --id: a hash of its type and name. So the same order is the same
 * resource, from every machine.
 */
static bool derive_id(const json_t *doc, char out[2 * ID_BYTES + 1])
{
    const json_t *values = json_object_get(json_object_get(doc, "driver"), "values");
    const char *type = json_string_value(json_object_get(doc, "type"));
    const json_t *part = json_object_get(values, "cluster");
    unsigned char hash[crypto_generichash_BYTES];
    crypto_generichash_state h;
    const char *name, *owner;

    part = part != NULL ? part : json_object_get(values, "nodepool");
    name = json_string_value(json_object_get(part, "name"));
    owner = json_string_value(json_object_get(values, "cluster_guresid"));
    owner = owner != NULL ? owner : json_string_value(json_object_get(values, "cluster_id"));
    if (type == NULL || name == NULL)
        return false;
    (void)crypto_generichash_init(&h, NULL, 0, sizeof(hash));
    (void)crypto_generichash_update(&h, (const unsigned char *)type, strlen(type) + 1);
    (void)crypto_generichash_update(&h, (const unsigned char *)name, strlen(name) + 1);
    if (owner != NULL)
        (void)crypto_generichash_update(&h, (const unsigned char *)owner, strlen(owner) + 1);
    (void)crypto_generichash_final(&h, hash, sizeof(hash));
    (void)sodium_bin2hex(out, 2 * ID_BYTES + 1, hash, ID_BYTES);
    return true;
}

/* Reads a file that --plan-out wrote. */
static hfd_rc read_plan(struct hfd_client_command *c, struct hfd_err *err)
{
    const char *name;
    struct hfd_buf b;
    json_t *doc;
    hfd_rc rc;

    if (c->plan_file == NULL)
        return HFD_OK;
    if (c->plan_out != NULL || c->dry_run)
        return hfd_fail(err, HFD_INVALID, "--plan: expected without --plan-out and --dry-run");
    hfd_buf_init(&b, DOCUMENT_MAX_BYTES);
    rc = read_order(c->plan_file, &b, &doc, err);
    name = rc == HFD_OK ? hfd_json_cstr(doc, "plan") : "";
    if (rc == HFD_OK && (strncmp(name, "plan-", 5) != 0 || strchr(name, '"') != NULL ||
                         strlen(name) + 3 > sizeof(c->plan)))
        rc = hfd_fail(err, HFD_INVALID, "%s: expected a file that apply --plan-out wrote",
                      c->plan_file);
    if (rc == HFD_OK)
        (void)snprintf(c->plan, sizeof(c->plan), "\"%s\"", name);
    json_decref(doc);
    hfd_buf_fini(&b);
    return rc;
}

/* With --plan-out: keeps what a PUT would do. */
static enum hfd_exit keep_plan(const struct hfd_client_command *c, const json_t *doc)
{
    struct hfd_err err;
    struct hfd_buf b;
    hfd_rc rc;

    if (c->plan_out == NULL)
        return HFD_EXIT_OK;
    if (hfd_json_cstr(doc, "plan")[0] == '\0')
        return hfd_cli_fail(HFD_EXIT_CUT_SHORT, c->name, "%s makes no plans", c->target.url);
    hfd_buf_init(&b, OUTPUT_MAX_BYTES);
    hfd_json_dump(&b, doc);
    hfd_buf_addc(&b, '\n');
    rc = b.rc == HFD_OK ? hfd_file_replace(c->plan_out, "plan", hfd_buf_slice(&b), &err)
                        : hfd_fail_nomem(&err, "write the plan");
    hfd_buf_fini(&b);
    return rc == HFD_OK ? HFD_EXIT_OK : hfd_cli_fail(HFD_EXIT_DATA, c->name, "%s", err.msg);
}

/* Asks what a PUT would do. */
static enum hfd_exit say_dry_run(const struct hfd_client_command *c, const char *id, hfd_slice body)
{
    char path[256];
    const struct hfd_client_request request = {.method = "POST", .path = path, .body = body};
    struct hfd_order_answer a = {.doc = NULL};
    struct hfd_client_step step = {.request.id = id};
    struct hfd_err err;
    enum hfd_exit status;

    (void)snprintf(path, sizeof(path), "validate?id=%s", id);
    hfd_client_send(c->http, &request, &a.http, 1);
    if (a.http.status == 0) {
        status = hfd_cli_fail(HFD_EXIT_ADDRESS, c->name, "%s cannot be reached: %s", c->target.url,
                              a.http.why);
    } else if (hfd_json_parse(hfd_buf_slice(&a.http.body), &a.doc, &err) != HFD_OK ||
               (a.http.status != 200 && a.http.status != 400 && a.http.status != 409)) {
        status = hfd_cli_fail(HFD_EXIT_CUT_SHORT, c->name, "%s answers %d to /validate",
                              c->target.url, a.http.status);
    } else {
        status = a.http.status == 200 ? keep_plan(c, a.doc) : HFD_EXIT_OK;
        if (status == HFD_EXIT_OK)
            status = client_command_finish(c, &a, &step);
    }
    hfd_order_answer_fini(&a);
    return status;
}

static struct hfd_order_request put_of(const struct hfd_client_command *c, const char *id,
                                       hfd_slice body)
{
    return (struct hfd_order_request){
        .method = "PUT", .id = id, .body = body, .if_match = hfd_slice_of(c->plan)};
}

/*
 * Waits for the end of another operation, whatever that is. A driver without GET cannot be asked:
 * its 409 stands.
 * @return OK: the order can be repeated
 */
static enum hfd_exit wait_until_free(struct hfd_client_command *c, const char *id, hfd_slice body)
{
    struct hfd_client_step step = {
        .request = {.method = "GET", .id = id}, .follow = true, .freed = true, .no_get = true};
    const enum hfd_exit status = client_command_run(c, &step);

    if (step.no_get)
        return status;
    step = (struct hfd_client_step){.request = put_of(c, id, body)};
    return client_command_run(c, &step);
}

/* Orders. With --wait an operation that is in the way is waited for. @param until_us 0 = no end */
static enum hfd_exit order(struct hfd_client_command *c, const char *id, hfd_slice body)
{
    const int64_t until_us =
        c->timeout_us > 0 ? hfd_clock_mono_us(&hfd_clock_system) + c->timeout_us : 0;
    struct hfd_client_step step;
    enum hfd_exit status;

    do {
        step =
            (struct hfd_client_step){.request = put_of(c, id, body), .quiet = true, .busy = true};
        status = client_command_run(c, &step);
        if (step.busy)
            status = wait_until_free(c, id, body);
        if (until_us > 0) {
            const int64_t left_us = until_us - hfd_clock_mono_us(&hfd_clock_system);

            c->timeout_us = left_us > 1 ? left_us : 1;
        }
    } while (step.busy && status == HFD_EXIT_OK);
    return status;
}

static enum hfd_exit apply(struct hfd_client_command *c, const char *id, hfd_slice body)
{
    struct hfd_client_step step = {.request = put_of(c, id, body)};
    enum hfd_exit status;

    if (c->dry_run || c->plan_out != NULL)
        return say_dry_run(c, id, body);
    hfd_cli_say("%s", id);
    if (!c->wait)
        return client_command_run(c, &step);
    status = order(c, id, body);
    if (status != HFD_EXIT_UNDER_WAY)
        return status;
    step = (struct hfd_client_step){
        .request = {.method = "GET", .id = id}, .follow = true, .no_get = true};
    status = client_command_run(c, &step);
    if (step.no_get)
        return status;
    /* A driver without GET is polled by the same PUT. */
    step = (struct hfd_client_step){.request = put_of(c, id, body), .follow = true};
    return client_command_run(c, &step);
}

enum hfd_exit hfd_cmd_apply(int argc, const char **argv)
{
    struct hfd_client_command c = {.name = "apply",
                                   .usage = "apply FILE|- [--id GURESID] [FLAGS]",
                                   .example =
                                       "Example: hyperfleet-driver apply order.json --wait\n"};
    char derived[2 * ID_BYTES + 1];
    enum hfd_exit status;
    struct hfd_err err = {0};
    struct hfd_buf body;
    json_t *doc = NULL;
    hfd_rc rc;

    if (!client_command_read(&c, argc, argv, &status))
        return status;
    hfd_buf_init(&body, DOCUMENT_MAX_BYTES);
    rc = read_order(c.place, &body, &doc, &err);
    if (rc == HFD_OK && c.id == NULL) {
        if (derive_id(doc, derived))
            c.id = derived;
        else
            rc = hfd_fail(&err, HFD_INVALID,
                          "%s has no name to make a GUResID from: expected --id GURESID", c.place);
    }
    if (rc == HFD_OK)
        rc = read_plan(&c, &err);
    if (rc != HFD_OK)
        status = client_command_fail(&c, rc, &err);
    else if (client_command_open(&c, &status))
        status = apply(&c, c.id, hfd_buf_slice(&body));
    client_command_close(&c);
    json_decref(doc);
    hfd_buf_fini(&body);
    return status;
}
