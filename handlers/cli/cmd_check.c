/* hyperfleet-driver check: tries any driver against the Humanitec Driver API. Thread: main. */
#include "handlers/cli/cli.h"

#include "driver/base/file.h"
#include "driver/base/jsonx.h"
#include "handlers/client/check_report.h"
#include "handlers/client/flags.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define USAGE "Usage: hyperfleet-driver check URL --input FILE [--update FILE] [FLAGS]"
#define DOCUMENT_MAX_BYTES ((size_t)1024 * 1024)
#define REPORT_MAX_BYTES ((size_t)1024 * 1024)
#define REQUEST_TIMEOUT_US (INT64_C(60) * HFD_US_PER_S)
#define PATIENCE_US (INT64_C(1800) * HFD_US_PER_S)

struct check {
    const char *input_file, *update_file, *only, *level, *junit_file, *token_file, *ca_file;
    bool json;
    int64_t patience_us, interval_us;
    struct hfd_buf input, update;
    struct hfd_check_choice choice;
    struct hfd_check_report report;
};

static volatile sig_atomic_t stopped;

/* The first signal ends the check after a clean-up, the second one ends the program. */
static void on_signal(int number)
{
    (void)number;
    if (stopped != 0)
        _exit(HFD_EXIT_CUT_SHORT);
    stopped = 1;
}

static void say(const char *text)
{
    (void)fprintf(stderr, "check: %s\n", text);
}

static enum hfd_exit wrong_use(const char *msg)
{
    (void)hfd_cli_fail(HFD_EXIT_USAGE, "check", "%s", msg);
    (void)fprintf(stderr, USAGE "\n");
    return HFD_EXIT_USAGE;
}

/* Reads a document that the check orders; ${id} may stand in it. */
static hfd_rc read_document(const char *path, struct hfd_buf *out, struct hfd_err *err)
{
    struct hfd_err why;
    json_t *doc = NULL;
    hfd_rc rc = hfd_file_read(path, "document", out, err);

    if (rc != HFD_OK)
        return rc;
    rc = hfd_json_parse(hfd_buf_slice(out), &doc, &why);
    if (rc != HFD_OK || !json_is_object(doc))
        rc = hfd_fail(err, HFD_INVALID, "%s: expected a JSON object%s%s", path,
                      rc != HFD_OK ? ": " : "", rc != HFD_OK ? why.msg : "");
    json_decref(doc);
    return rc;
}

static enum hfd_exit write_file(const char *path, struct hfd_buf *b)
{
    FILE *f = fopen(path, "we");
    enum hfd_exit status = HFD_EXIT_OK;

    if (f == NULL || b->rc != HFD_OK || fwrite(b->p, 1, b->len, f) != b->len)
        status = hfd_cli_fail(HFD_EXIT_CUT_SHORT, "check", "write %s: %s", path, strerror(errno));
    if (f != NULL && fclose(f) != 0 && status == HFD_EXIT_OK)
        status = hfd_cli_fail(HFD_EXIT_CUT_SHORT, "check", "write %s: %s", path, strerror(errno));
    hfd_buf_fini(b);
    return status;
}

static enum hfd_exit print(const struct check *c, const char *url)
{
    const struct hfd_check_summary s = {url, &c->report, &c->choice};
    enum hfd_exit status;
    struct hfd_buf b;

    hfd_buf_init(&b, REPORT_MAX_BYTES);
    if (c->json)
        hfd_check_write_json(&s, &b);
    else
        hfd_check_write_table(&s, &b);
    status = hfd_cli_print("check", &b);
    if (status == HFD_EXIT_OK && c->junit_file != NULL) {
        hfd_buf_init(&b, REPORT_MAX_BYTES);
        hfd_check_write_junit(&s, &b);
        status = write_file(c->junit_file, &b);
    }
    if (status != HFD_EXIT_OK)
        return status;
    return stopped != 0 || hfd_check_count(&s).failed > 0 ? HFD_EXIT_CUT_SHORT : HFD_EXIT_OK;
}

static enum hfd_exit run(struct check *c, const char *url)
{
    const struct hfd_client_config config = {.url = url,
                                             .token_file = c->token_file,
                                             .ca_file = c->ca_file,
                                             .timeout_us = REQUEST_TIMEOUT_US};
    const struct hfd_check_options options = {
        .target = url,
        .input = hfd_buf_slice(&c->input),
        .update = c->update_file != NULL ? hfd_buf_slice(&c->update) : HFD_SLICE_NONE,
        .patience_us = c->patience_us,
        .interval_us = c->interval_us,
        .say = say,
        .stop = &stopped};
    const struct sigaction action = {.sa_handler = on_signal};
    struct hfd_client_http *http;
    struct hfd_err err = {0};
    hfd_rc rc = hfd_client_open(&config, &http, &err);

    if (rc == HFD_NOMEM)
        return hfd_cli_fail(HFD_EXIT_INTERNAL, "check", "%s", err.msg);
    if (rc != HFD_OK)
        return wrong_use(err.msg);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    rc = hfd_check_run(http, &options, &hfd_rng_system, &c->report, &err);
    hfd_client_close(&http);
    return rc == HFD_OK ? print(c, url) : hfd_cli_fail(HFD_EXIT_ADDRESS, "check", "%s", err.msg);
}

/* Prints the flags. */
static enum hfd_exit print_flags(const struct hfd_flags *flags)
{
    struct hfd_buf b;

    hfd_buf_init(&b, REPORT_MAX_BYTES);
    hfd_buf_lit(&b, USAGE "\n\nFlags:\n");
    hfd_flags_help(flags, &b);
    hfd_buf_lit(&b, "\nExample: hyperfleet-driver check https://driver.example.com/s3/ --input "
                    "s3.json\n${id} in FILE stands for the GUResID of each order.\n");
    return hfd_cli_print("check", &b);
}

/* Reads documents and choices, then runs. */
static enum hfd_exit prepare(struct check *c, const char *url)
{
    enum hfd_exit status;
    struct hfd_err err = {0};
    hfd_rc rc;

    hfd_buf_init(&c->input, DOCUMENT_MAX_BYTES);
    hfd_buf_init(&c->update, DOCUMENT_MAX_BYTES);
    rc = hfd_check_choose(c->only, c->level, &c->choice, &err);
    if (rc == HFD_OK)
        rc = read_document(c->input_file, &c->input, &err);
    if (rc == HFD_OK && c->update_file != NULL)
        rc = read_document(c->update_file, &c->update, &err);
    status = rc == HFD_OK ? run(c, url) : wrong_use(err.msg);
    hfd_buf_fini(&c->input);
    hfd_buf_fini(&c->update);
    return status;
}

enum hfd_exit hfd_cmd_check(int argc, const char *const *argv)
{
    struct check c = {.patience_us = PATIENCE_US};
    const char *url = NULL, *ops_url = NULL; /* the second is taken, and not used */
    bool help = false;
    const struct hfd_flag table[] = {
        {"--input", NULL, HFD_FLAG_TEXT, &c.input_file, "FILE", "the document that is ordered"},
        {"--update", NULL, HFD_FLAG_TEXT, &c.update_file, "FILE", "a change of it"},
        {"--only", NULL, HFD_FLAG_TEXT, &c.only, "RULE,...", "check these rules alone"},
        {"--level", NULL, HFD_FLAG_TEXT, &c.level, "LEVEL", "must, should or may: and stronger"},
        {"--timeout", NULL, HFD_FLAG_DURATION, &c.patience_us, "DURATION",
         "for one operation: 30m by default"},
        {"--interval", NULL, HFD_FLAG_DURATION, &c.interval_us, "DURATION",
         "between polls; else as the driver asks"},
        {"--json", NULL, HFD_FLAG_SWITCH, &c.json, NULL, "print JSON"},
        {"--junit", NULL, HFD_FLAG_TEXT, &c.junit_file, "FILE", "write JUnit's XML as well"},
        {"--url", "HFD_URL", HFD_FLAG_TEXT, &url, "URL", "the driver, in place of the argument"},
        {"--ops-url", "HFD_OPS_URL", HFD_FLAG_TEXT, &ops_url, "URL", HFD_OPS_URL_TEXT},
        {"--token-file", "HFD_TOKEN_FILE", HFD_FLAG_TEXT, &c.token_file, "FILE", "a bearer token"},
        {"--ca-file", NULL, HFD_FLAG_TEXT, &c.ca_file, "FILE", "certificates to trust"},
        {"--help", NULL, HFD_FLAG_SWITCH, &help, NULL, "print this text"},
    };
    struct hfd_flags flags = {.table = table, .count = sizeof(table) / sizeof(table[0])};
    struct hfd_err err = {0};

    if (hfd_flags_read(&flags, argc, argv, &err) != HFD_OK)
        return wrong_use(err.msg);
    if (help)
        return print_flags(&flags);
    if (flags.place_count > 1)
        return wrong_use("expected one URL");
    url = flags.place_count == 1 ? flags.places[0] : url;
    if (url == NULL || c.input_file == NULL)
        return wrong_use("expected the URL of a driver and --input FILE");
    return prepare(&c, url);
}
