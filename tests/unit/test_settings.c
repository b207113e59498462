/*
 * Settings: every type, each source, precedence, errors that name key and place, hostile YAML, and
 * the way back through config show.
 */
#include "handlers/settings/settings_int.h"
#include "handlers/settings/settings_show.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define ARGS_MAX 8

static char dir[] = "/tmp/hfd-settings-XXXXXX";
static char file_path[64];

/* The sources of a case: text of the file (NULL = no file), variables, flags. */
struct sources {
    const char *file;
    const char *env[ARGS_MAX];
    const char *flags[ARGS_MAX];
};

static void write_bytes(const char *path, const char *bytes, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), len);
    assert_int_equal(close(fd), 0);
}

static hfd_rc load(const struct sources *from, struct hfd_settings **out, struct hfd_err *err)
{
    const char *argv[ARGS_MAX + 2] = {NULL};
    int argc = 0;

    memset(err, 0, sizeof(*err));
    if (from->file != NULL) {
        write_bytes(file_path, from->file, strlen(from->file));
        argv[argc++] = "--config";
        argv[argc++] = file_path;
    }
    for (int i = 0; i < ARGS_MAX && from->flags[i] != NULL; i++)
        argv[argc++] = from->flags[i];
    return hfd_settings_load(argc, argv, from->env, out, err);
}

static hfd_slice show(const struct hfd_settings *s, bool origins, struct hfd_buf *b)
{
    hfd_slice text;

    hfd_buf_init(b, 1 << 20);
    hfd_settings_show(s, &(struct hfd_settings_form){.origins = origins}, b);
    assert_int_equal(hfd_buf_finish(b, &text, NULL), HFD_OK);
    return text;
}

/* Tells if text has the line, up to its end or a comment. */
static bool has_line(hfd_slice text, const char *line)
{
    size_t len = strlen(line);
    const char *at = text.p;
    const char *end = text.p + text.len;

    while (at != NULL && at < end) {
        if ((size_t)(end - at) > len && memcmp(at, line, len) == 0 &&
            (at[len] == '\n' || memcmp(at + len, " # ", 3) == 0))
            return true;
        at = memchr(at, '\n', (size_t)(end - at));
        at = at != NULL ? at + 1 : NULL;
    }
    return false;
}

/* clang-format off */
static const struct {
    struct sources from;
    const char *lines[4]; /* that config show must have */
} good[] = {
    /* Without any source the defaults hold. */
    {{NULL, {0}, {0}}, {"listen: \"127.0.0.1:8000\"", "demo: off", "driver.deadline.create: 1h", "driver.outputs.values: {}"}},
    /* Variables that are not ours do not matter, nor do those without a value. */
    {{NULL, {"PATH=/bin", "HFDX=1", "HFD_BROKEN"}, {0}}, {"log.level: info"}},

    /* A size may be bytes or binary units; K and KiB are the same. */
    {{"http.body_max: 1048576", {0}, {0}}, {"http.body_max: 1MiB"}},
    {{"http.body_max: 512KiB", {0}, {0}}, {"http.body_max: 512KiB"}},
    {{"http.body_max: 1M", {0}, {0}}, {"http.body_max: 1MiB"}},
    {{"http.body_max: 1025", {0}, {0}}, {"http.body_max: 1025"}},
    {{"http.body_max: 16777216", {0}, {0}}, {"http.body_max: 16MiB"}},
    /* A duration is shown in its largest whole unit. */
    {{"driver.deadline.create: 1h30m", {0}, {0}}, {"driver.deadline.create: 90m"}},
    {{"driver.deadline.create: 1500ms", {0}, {0}}, {"driver.deadline.create: 1500ms"}},
    {{"driver.deadline.create: 720h", {0}, {0}}, {"driver.deadline.create: 30d"}},
    {{"http.drain_timeout: 0s", {0}, {0}}, {"http.drain_timeout: 0s"}},
    /* Numbers at both ends of their range, in quotes too. */
    {{"http.threads: 0\nstore.readers: '64'", {0}, {0}}, {"http.threads: 0", "store.readers: 64"}},
    /* The demo is off, on, or some seconds. */
    {{"demo: off", {0}, {0}}, {"demo: off"}},
    {{"demo: true", {0}, {0}}, {"demo: 10s"}},
    {{"demo: 3", {0}, {0}}, {"demo: 3s"}},
    {{NULL, {0}, {"--demo"}}, {"demo: 10s"}},
    {{NULL, {0}, {"--demo=0"}}, {"demo: 0s"}},
    {{NULL, {0}, {"--demo=250ms"}}, {"demo: 250ms"}},
    {{NULL, {"HFD_DEMO=5"}, {0}}, {"demo: 5s"}},
    {{NULL, {0}, {"--demo", "--listen", "127.0.0.1:0"}}, {"demo: 10s", "listen: \"127.0.0.1:0\""}},
    {{NULL, {0}, {"--log-level=error"}}, {"log.level: error"}},

    /* Lists: sequences, and texts with or without brackets and quotes. */
    {{"adapters.required.cluster: [dns, a1]", {0}, {0}}, {"adapters.required.cluster: [\"dns\", \"a1\"]"}},
    {{"adapters.required.cluster:\n  - dns\n  - 'a1'\n", {0}, {0}}, {"adapters.required.cluster: [\"dns\", \"a1\"]"}},
    {{"adapters.required.cluster: dns, a1", {0}, {0}}, {"adapters.required.cluster: [\"dns\", \"a1\"]"}},
    {{"adapters.required.cluster: []", {0}, {0}}, {"adapters.required.cluster: []"}},
    {{"adapters.required.cluster: '1, 2'", {0}, {0}}, {"adapters.required.cluster: [\"1\", \"2\"]"}},
    {{NULL, {"HFD_ADAPTERS_REQUIRED_CLUSTER="}, {0}}, {"adapters.required.cluster: []"}},
    {{NULL, {"HFD_ADAPTERS_REQUIRED_CLUSTER=[]"}, {0}}, {"adapters.required.cluster: []"}},
    {{NULL, {"HFD_ADAPTERS_REQUIRED_CLUSTER=  [ dns ,a1 ] "}, {0}}, {"adapters.required.cluster: [\"dns\", \"a1\"]"}},
    {{NULL, {"HFD_ADAPTERS_REQUIRED_CLUSTER=[\"dns\",'a1']"}, {0}}, {"adapters.required.cluster: [\"dns\", \"a1\"]"}},
    {{NULL, {0}, {"--adapters-required-nodepool", "dns"}}, {"adapters.required.nodepool: [\"dns\"]"}},

    /* Any other text is kept. */
    {{"data: \"a\\_\\u20ac\\U0001f600\"", {0}, {0}}, {"data: \"a\xc2\xa0\xe2\x82\xac\xf0\x9f\x98\x80\""}},

    /* Addresses: IPv4, a name, IPv6 in brackets. */
    {{"listen: 0.0.0.0:0\nops_listen: '[::1]:65535'", {0}, {0}}, {"listen: \"0.0.0.0:0\"", "ops_listen: \"[::1]:65535\""}},
    {{"listen: localhost:80", {0}, {0}}, {"listen: \"localhost:80\""}},

    /* Nested maps, dotted keys and a mixture mean the same. */
    {{"driver:\n  deadline:\n    create: 45m\n", {0}, {0}}, {"driver.deadline.create: 45m"}},
    {{"driver:\n  deadline:\n    nodepool: {create: 5m}\n", {0}, {0}}, {"driver.deadline.create: 1h", "driver.deadline.nodepool.create: 5m"}},
    {{"driver.terminal_reasons: [\"Quota\", \"dns:NoZone:x\"]", {0}, {0}}, {"driver.terminal_reasons: [\"Quota\", \"dns:NoZone:x\"]"}},
    {{"driver: {deadline.create: 45m, deadline.update: 46m}", {0}, {0}}, {"driver.deadline.create: 45m", "driver.deadline.update: 46m"}},
    {{"driver.deadline: {create: 45m}\ndriver: {deadline: {update: 46m}}", {0}, {0}}, {"driver.deadline.create: 45m", "driver.deadline.update: 46m"}},
    /* `store` is a setting, and a section too. */
    {{"store: {readers: 3}", {0}, {0}}, {"store.readers: 3", "store: \"sqlite\""}},
    {{"store: sqlite\nstore.readers: 3", {0}, {0}}, {"store.readers: 3"}},
    /* PostgreSQL has no data folder; an empty one is none. A password is not shown. */
    {{"store: postgres://u@h1,h2:1/db\nstore.readers: 3", {0}, {0}}, {"store: \"postgres://u@h1,h2:1/db\"", "store.connect_timeout: 3s", "store.answer_timeout: 5s"}},
    {{"store: postgresql:///db?host=/run\nstore.password_file: /p", {"HFD_DATA="}, {0}}, {"store.password_file: \"/p\""}},
    /* The variable of an image is not used. */
    {{NULL, {"HFD_DATA=/data", "HFD_STORE=postgres://u@h/db"}, {0}}, {"data: \"\"", "store: \"postgres://u@h/db\""}},
    {{"data: /other", {"HFD_DATA=/data"}, {"--store=postgres://u@h/db"}}, {"data: \"\""}},
    /* A section of comments is empty. */
    {{"log:\n  # level: debug\ndriver:\n", {0}, {0}}, {"log.level: info"}},
    {{"", {0}, {0}}, {"log.level: info"}},
    {{"# nothing\n---\n", {0}, {0}}, {"log.level: info"}},
    {{"%YAML 1.1\n---\nlog.level: debug\n...\n", {0}, {0}}, {"log.level: debug"}},

    /* Maps: entries of the file in their order, the others behind them by name; a later source replaces an entry. */
    {{"driver.outputs.values:\n  z: dns:/a\n  b: 'dns:'\n", {"HFD_DRIVER_OUTPUTS_VALUES_API_URL=hypershift:/api~1url"}, {"--driver-outputs-values-Aa-1=dns:/x"}},
     {"driver.outputs.values.z: \"dns:/a\"\ndriver.outputs.values.b: \"dns:\"\ndriver.outputs.values.Aa-1: \"dns:/x\"\ndriver.outputs.values.api_url: \"hypershift:/api~1url\""}},
    {{"driver: {outputs: {secrets: {kubeconfig: 'a:/x'}}}", {"HFD_DRIVER_OUTPUTS_SECRETS_KUBECONFIG=b:/y"}, {0}}, {"driver.outputs.secrets.kubeconfig: \"b:/y\""}},
    {{"driver.outputs.values.n: 'a:/x'", {"HFD_DRIVER_OUTPUTS_VALUES_N=b:/y"}, {"--driver-outputs-values-n", "c:/z"}}, {"driver.outputs.values.n: \"c:/z\""}},
    {{"driver.outputs.values: {}", {0}, {0}}, {"driver.outputs.values: {}"}},
    /* Management clusters: the name is in the middle. */
    {{"hypershift: {kubeconfig: /a, management: {west: {kubeconfig: /w}, east.kubeconfig: /e}}", {"HFD_HYPERSHIFT_MANAGEMENT_NORTH_KUBECONFIG=/n"}, {"--hypershift-management-south-1-kubeconfig=in-cluster"}},
     {"hypershift.management.west.kubeconfig: \"/w\"\nhypershift.management.east.kubeconfig: \"/e\"\nhypershift.management.north.kubeconfig: \"/n\"\nhypershift.management.south-1.kubeconfig: \"in-cluster\""}},
    {{"events: {webhooks: {portal: {url: 'https://u:p@h.example:1/x?k=1', secret_file: /s, types: [states, reconcile], ca_file: /c}}}", {0}, {0}},
     {"events.webhooks.portal.url: \"https://***@h.example:1/x?***\"", "events.webhooks.portal.secret_file: \"/s\"", "events.webhooks.portal.types: \"states,reconcile\"", "events.webhooks.portal.ca_file: \"/c\""}},
    {{"events.webhooks.a.types: states", {"HFD_EVENTS_WEBHOOKS_A_URL=http://[::1]/", "HFD_EVENTS_WEBHOOKS_A_SECRET_FILE=/s"}, {"--events-webhooks-b-ca-file=/c"}},
     {"events.webhooks.a.url: \"http://[::1]/\"", "events.webhooks.a.secret_file: \"/s\"", "events.webhooks.a.types: \"states\"", "events.webhooks.b.ca_file: \"/c\""}},
    {{"hypershift.kubeconfig: /a\nhypershift.management.west.kubeconfig: /w", {"HFD_HYPERSHIFT_MANAGEMENT_WEST_KUBECONFIG=/x"}, {0}}, {"hypershift.management.west.kubeconfig: \"/x\""}},
    {{"hypershift.management: {}", {0}, {0}}, {"hypershift.management: {}"}},

    /* Later wins: default, file, environment, flag; and the last of two flags. */
    {{"log.level: debug", {0}, {0}}, {"log.level: debug"}},
    {{"log.level: debug", {"HFD_LOG_LEVEL=warn"}, {0}}, {"log.level: warn"}},
    {{"log.level: debug", {"HFD_LOG_LEVEL=warn"}, {"--log-level", "error"}}, {"log.level: error"}},
    {{NULL, {"HFD_LOG_LEVEL=warn"}, {"--log-level", "error", "--log-level=debug"}}, {"log.level: debug"}},
    {{"driver.types.cluster: [aaa]", {"HFD_DRIVER_TYPES_CLUSTER=b-3"}, {0}}, {"driver.types.cluster: [\"b-3\"]"}},
    /* The flag's file goes before the variable's, and an empty variable names none. */
    {{"log.level: debug", {"HFD_CONFIG=/nonexistent/x.yaml"}, {0}}, {"log.level: debug"}},
    {{NULL, {"HFD_CONFIG="}, {0}}, {"log.level: info"}},
    {{"events.amqp.url: amqps://u@h/%2Fv", {0}, {0}}, {"events.amqp.url: \"amqps://u@h/%2Fv\"", "events.amqp.exchange.cluster: \"hyperfleet-clusters\"", "events.amqp.exchange.nodepool: \"hyperfleet-nodepools\""}},
};

static const struct {
    struct sources from;
    const char *field;
    const char *says[3];
} bad[] = {
    /* Unknown names: each source says which, where, and what is near. */
    {{"\nlog.levl: info", {0}, {0}}, "log.levl", {":2: ", "\"log.levl\"", "did you mean log.level?"}},
    {{"driver: {deadlin: {create: 1h}}", {0}, {0}}, "driver.deadlin", {":1: ", "did you mean driver.deadline?"}},
    {{"driver: {output: {values: {a: 'b:/c'}}}", {0}, {0}}, "driver.output", {"did you mean driver.outputs?"}},
    {{"'': 1", {0}, {0}}, "", {"unknown setting \"\""}},
    {{"log.: 1", {0}, {0}}, "log.", {"unknown"}},
    {{"entirely_different: 1", {0}, {0}}, "entirely_different", {"hyperfleet-driver help"}},
    {{"driver: {\"deadline.create\\0x\": 1h}", {0}, {0}}, NULL, {"unknown setting \"driver.deadline.create?x\""}},
    {{NULL, {"HFD_LOG_LEVL=info"}, {0}}, "HFD_LOG_LEVL", {"environment", "did you mean HFD_LOG_LEVEL?"}},
    {{NULL, {"HFD_log_level=info"}, {0}}, "HFD_log_level", {"unknown variable"}},
    {{NULL, {"HFD_=info"}, {0}}, "HFD_", {"unknown variable"}},
    {{NULL, {"HFD_DRIVER_OUTPUT_VALUES_URL=a:/b"}, {0}}, NULL, {"did you mean HFD_DRIVER_OUTPUTS_VALUES_NAME?"}},
    {{NULL, {0}, {"--listne", "x"}}, "--listne", {"did you mean --listen?"}},
    {{NULL, {0}, {"--log.level=info"}}, "--log.level", {"did you mean --log-level?"}},
    {{NULL, {0}, {"serve"}}, "", {"unexpected argument \"serve\""}},
    {{NULL, {0}, {"--"}}, "", {"unexpected argument"}},
    {{NULL, {0}, {"--demo", "5"}}, "", {"unexpected argument \"5\"", "--demo=SECONDS"}},
    {{NULL, {0}, {"--listen"}}, "listen", {"--listen", "expected a value"}},
    {{NULL, {0}, {"--listen", "--demo"}}, "listen", {"--listen", "expected a value"}},
    {{NULL, {0}, {"--config"}}, "config", {"expected a value"}},
    {{NULL, {0}, {"--config="}}, "config", {"expected one file"}},
    {{"log.level: info", {0}, {"--config=/tmp/x"}}, "config", {"expected one file"}},

    /* Management clusters. */
    {{"hypershift: {kubeconfig: /a, management: {default: {kubeconfig: /w}}}", {0}, {0}}, "hypershift.management", {":1: hypershift.management.default.kubeconfig: ", "hypershift.kubeconfig"}},
    {{"hypershift: {management: {west: {kubeconfig: /w}}}", {0}, {0}}, "hypershift.management", {":1: hypershift.management: ", "expected hypershift.kubeconfig with it"}},
    {{"hypershift: {kubeconfig: /a, management: {west: {kubeconfg: /w}}}", {0}, {0}}, "hypershift.management.west.kubeconfg", {":1: ", "unknown setting"}},
    {{"hypershift: {kubeconfig: /a, management: {west: /w}}", {0}, {0}}, "hypershift.management.west", {":1: ", "expected a map"}},
    {{"hypershift: {kubeconfig: /a, management: {1st: {kubeconfig: /w}}}", {0}, {0}}, "hypershift.management", {":1: ", "expected a name"}},
    {{"events: {webhooks: {a: {url: 'ftp://secret'}}}", {0}, {0}}, "events.webhooks", {":1: events.webhooks.a.url: expected a URL: http:// or https://"}},
    {{"events: {webhooks: {a: {url: 'http://u:p@/x'}}}", {0}, {0}}, "events.webhooks", {":1: events.webhooks.a.url: expected a URL with a host name"}},
    {{"events: {webhooks: {a: {url: 'http://h/ x'}}}", {0}, {0}}, "events.webhooks", {":1: events.webhooks.a.url: expected a URL of printable ASCII"}},
    {{"events: {webhooks: {a: {url: [x]}}}", {0}, {0}}, "events.webhooks", {":1: ", "expected TEXT, got a list"}},
    {{"events: {webhooks: {a: {types: [states, other]}}}", {0}, {0}}, "events.webhooks", {":1: events.webhooks.a.types: expected a list of reconcile and states, got \"states,other\""}},
    {{"events: {webhooks: {a: {types: []}}}", {0}, {0}}, "events.webhooks", {":1: events.webhooks.a.types: ", "reconcile and states"}},
    {{"events: {webhooks: {a: {secret_file: ''}}}", {0}, {0}}, "events.webhooks", {":1: events.webhooks.a.secret_file: ", "expected a file"}},
    {{"events: {webhooks: {a: {uri: http://h}}}", {0}, {0}}, "events.webhooks.a.uri", {":1: ", "events.webhooks.NAME.url"}},
    {{"hypershift: {kubeconfig: /a, management: {west: {kubeconfig: ''}}}", {0}, {0}}, "hypershift.management", {":1: hypershift.management.west.kubeconfig: ", "in-cluster"}},
    {{"hypershift: {kubeconfig: /a, management: {west: {kubeconfig: /w}, west.kubeconfig: /v}}", {0}, {0}}, "hypershift.management", {":1: ", "west is given twice"}},
    {{NULL, {"HFD_HYPERSHIFT_MANAGEMENT=/w"}, {0}}, "hypershift.management", {"expected one entry at a time: HFD_HYPERSHIFT_MANAGEMENT_NAME_KUBECONFIG=FILE"}},
    {{"driver: {estimate.create: 15m, deadline.create: 5m}", {0}, {0}}, NULL, {"expected driver.estimate.create to be no more than driver.deadline.create, got 15m to 5m"}},
    {{"driver.estimate.delete: 2h", {0}, {0}}, "driver.estimate.delete", {":1: driver.estimate.delete: ", "no more than driver.deadline.delete, got 2h to 1h"}},

    /* Bad values: the place, the key, what was expected, what came. */
    {{"\n\nhttp:\n  body_max: 1023\n", {0}, {0}}, "http.body_max", {":4: http.body_max: ", "from 1KiB to 16MiB", "\"1023\""}},
    {{"http.body_max: 16777217", {0}, {0}}, "http.body_max", {"16MiB"}},
    {{"http.body_max: 1MB", {0}, {0}}, "http.body_max", {"\"1MB\""}},
    {{"http.body_max: MiB", {0}, {0}}, "http.body_max", {"\"MiB\""}},
    {{"http.body_max: 99999999999GiB", {0}, {0}}, "http.body_max", {"a size"}},
    {{NULL, {"HFD_HTTP_THREADS=65"}, {0}}, "http.threads", {"HFD_HTTP_THREADS: expected ", "0 to 64", "\"65\""}},
    {{NULL, {"HFD_HTTP_THREADS="}, {0}}, "http.threads", {"0 to 64"}},
    {{"http.threads: 0x1", {0}, {0}}, "http.threads", {"\"0x1\""}},
    {{"http.threads: 1.0", {0}, {0}}, "http.threads", {"\"1.0\""}},
    {{NULL, {0}, {"--driver-deadline-create=10"}}, "driver.deadline.create", {"--driver-deadline-create: expected ", "1s to 30d", "\"10\""}},
    {{"driver.deadline.create: 0s", {0}, {0}}, "driver.deadline.create", {"1s to 30d"}},
    {{"driver.deadline.create: 31d", {0}, {0}}, "driver.deadline.create", {"1s to 30d"}},
    {{"driver.terminal_reasons: [\"dns:\"]", {0}, {0}}, "driver.terminal_reasons", {"dns:QuotaExceeded", "\"dns:\""}},
    {{"driver.terminal_reasons: [\":Quota\"]", {0}, {0}}, "driver.terminal_reasons", {"\":Quota\""}},
    {{"log.level: loud", {0}, {0}}, "log.level", {"debug, info, warn or error", "\"loud\""}},
    {{"demo: maybe", {0}, {0}}, "demo", {"off, on", "\"maybe\""}},
    {{"demo: -1", {0}, {0}}, "demo", {"0s to 1d"}},
    {{"demo: 86401", {0}, {0}}, "demo", {"0s to 1d"}},
    {{"store: postgres", {0}, {0}}, "store", {"sqlite or postgres://", "\"postgres\""}},
    {{NULL, {"HFD_STORE=host=h password=geheim"}, {0}}, "store", {"sqlite or postgres://", "\"host=h password=...\""}},
    {{NULL, {0}, {"--store", "postgers://u:geheim@h/db"}}, "store", {"--store: ", "got \"postgers://...\""}},
    {{NULL, {0}, {"postgres://u:geheim@h/db"}}, "", {"unexpected argument \"postgres://...\""}},
    {{NULL, {0}, {"--store", "postgres://u:geheim@h/d\x01"}}, "store", {"control characters", "got \"postgres://...\""}},
    {{NULL, {0}, {"--store", "postgres://u:geh@eim@h/db"}}, "store", {"--store: ", "host names"}},
    {{NULL, {0}, {"--store", "postgres://u:***@h/db"}}, "store", {"in place of ***"}},
    {{"store: postgres://h/db\ndata: x", {0}, {0}}, "data", {":2: data: ", "no data folder"}},
    {{NULL, {"HFD_STORE=postgres://h/db"}, {"--data", "x"}}, "data", {"--data: ", "name keys and auth.tokens_file"}},
    {{NULL, {"HFD_DATA="}, {0}}, "data", {"HFD_DATA: ", "expected a path"}},
    {{"store.password_file: /p", {0}, {0}}, "store.password_file", {":1: ", "store: postgres://... with it"}},
    {{"store.password_file: /p\nstore: postgres://u:geheim@h/db", {0}, {0}}, "store.password_file", {":1: ", "without a password beside it"}},
    {{"store.patroni: h:8008", {0}, {0}}, "store.patroni", {"expected a URL"}},
    {{"store.answer_timeout: 0s", {0}, {0}}, "store.answer_timeout", {"1s to 5m"}},
    {{"store.connect_timeout: 301s", {0}, {0}}, "store.connect_timeout", {"1s to 5m"}},
    {{NULL, {0}, {"--backend", "hyperfleet.example"}}, "backend", {"embedded or the URL", "http:// or https://", "got \"hyperfleet.example\""}},
    {{NULL, {0}, {"--backend", "https://me:geheim@h/"}}, "backend", {"embedded or the URL", "without user and password"}},
    {{"backend: http://h/?q", {0}, {0}}, "backend", {"without query"}},
    {{"backend: http://h/", {0}, {"--demo"}}, "demo", {"--demo: expected off with a remote backend"}},
    {{"remote.cert_file: c", {0}, {0}}, "remote.cert_file", {":1: remote.cert_file: ", "both or none of"}},
    {{NULL, {"HFD_REMOTE_KEY_FILE=c"}, {0}}, "remote.key_file", {"HFD_REMOTE_KEY_FILE: ", "both or none of"}},
    {{"remote.identity: me", {0}, {0}}, "remote.identity", {":1: remote.identity: ", "expected a header"}},
    {{"remote.identity_header: Authorization", {0}, {0}}, "remote.identity_header", {"does not set itself", "Authorization"}},
    {{"remote.identity_header: 'X-A:'", {0}, {0}}, "remote.identity_header", {"a request header"}},
    {{NULL, {"HFD_REMOTE_IDENTITY=\xc3\xa4"}, {0}}, "remote.identity", {"printable ASCII"}},
    {{"remote.retry_min: 61s", {0}, {0}}, "remote.retry_min", {":1: remote.retry_min: ", "no more than remote.retry_max", "61s to 1m"}},
    {{"remote.retry_min: 2s", {0}, {"--remote-retry-max=1s"}}, "remote.retry_max", {"--remote-retry-max: expected ", "2s to 1s"}},
    {{"remote.answer_max: 1KiB", {0}, {0}}, "remote.answer_max", {"64KiB to 256MiB"}},
    {{"remote.in_flight_max: 0", {0}, {0}}, "remote.in_flight_max", {"1 to 256"}},
    {{"http.hosts: [driver.example, 'driver.example:443']", {0}, {0}}, "http.hosts", {"without a port", "\"driver.example:443\""}},
    {{"fleet.conditions: old", {0}, {0}}, "fleet.conditions", {"ready, reconciled or both", "\"old\""}},
    {{"events.amqp.url: amqp://u:geheim@h/", {0}, {0}}, "events.amqp.url", {":1: ", "without a password", "events.amqp.password_file"}},
    {{NULL, {"HFD_EVENTS_AMQP_URL=http://h/"}, {0}}, "events.amqp.url", {"HFD_EVENTS_AMQP_URL: ", "amqp://, or amqps://"}},
    {{"events.amqp.exchange.cluster: ''", {0}, {0}}, "events.amqp.exchange.cluster", {"1 to 127 letters", "\"\""}},
    {{"events.amqp.exchange.nodepool: amq.topic", {0}, {0}}, "events.amqp.exchange.nodepool", {"not begin with amq.", "\"amq.topic\""}},
    {{"events.amqp.exchange.nodepool: a/b", {0}, {0}}, "events.amqp.exchange.nodepool", {"- _ . :", "\"a/b\""}},
    {{"fleet.identity_header: 'X-A: b'", {0}, {0}}, "fleet.identity_header", {"a request header", "\"X-A: b\""}},
    {{NULL, {"HFD_FLEET_IDENTITY_HEADER=X-A\xc3\xa4"}, {0}}, "fleet.identity_header", {"a request header"}},
    {{"data: ''", {0}, {0}}, "data", {"a path"}},
    {{"data: \"a\\0b\"", {0}, {0}}, "data", {"control"}},
    {{"data: \"a\\nb\"", {0}, {0}}, "data", {"control"}},
    /* What a YAML file cannot show again: line breaks and marks of Unicode, bytes that are no UTF-8. */
    {{"data: \"a\\Nb\"", {0}, {0}}, "data", {"control"}},
    {{"data: \"a\\Lb\"", {0}, {0}}, "data", {"control"}},
    {{"data: \"a\\ufeffb\"", {0}, {0}}, "data", {"control"}},
    {{"data: \"a\\uffffb\"", {0}, {0}}, "data", {"control"}},
    {{NULL, {"HFD_DATA=a\xff"}, {0}}, "data", {"UTF-8", "\"a?\""}},
    {{NULL, {"HFD_DATA=a\x7f"}, {0}}, "data", {"control"}},
    {{"listen: 8000", {0}, {0}}, "listen", {"HOST:PORT", "\"8000\""}},
    {{"listen: ':8000'", {0}, {0}}, "listen", {"HOST:PORT"}},
    {{"listen: 'a b:8000'", {0}, {0}}, "listen", {"HOST:PORT"}},
    {{"listen: '::1:8000'", {0}, {0}}, "listen", {"[IPv6]:PORT"}},
    {{"listen: '[::g]:8000'", {0}, {0}}, "listen", {"[IPv6]:PORT"}},
    {{"listen: '[1:2]:8000'", {0}, {0}}, "listen", {"[IPv6]:PORT"}},
    {{"listen: '127.0.1:8000'", {0}, {0}}, "listen", {"HOST:PORT"}},
    {{"listen: '1.2.3.4.5:8000'", {0}, {0}}, "listen", {"HOST:PORT"}},
    {{"listen: '0001.2.3.4:8000'", {0}, {0}}, "listen", {"HOST:PORT"}},
    {{"listen: '1..3.4:8000'", {0}, {0}}, "listen", {"HOST:PORT"}},
    {{"listen: '127.0.0.300:8000'", {0}, {0}}, "listen", {"HOST:PORT"}},
    {{"listen: '127.0.0.1:65536'", {0}, {0}}, "listen", {"a port from 0 to 65535"}},
    {{"listen: '127.0.0.1:'", {0}, {0}}, "listen", {"a port"}},
    {{"ops_listen: '127.0.0.1:00000080'", {0}, {0}}, "ops_listen", {"a port"}},
    {{"driver.paths.cluster: api", {0}, {0}}, "driver.paths.cluster", {"one path segment"}},
    {{"driver.paths.cluster: a/b", {0}, {0}}, "driver.paths.cluster", {"one path segment"}},
    {{"driver.paths.cluster: nodepools", {0}, {0}}, "driver.paths.cluster", {":1: driver.paths.cluster: ", "\"nodepools\" for both"}},
    {{"driver.types.cluster: [aaa, bbb]\ndriver.types.nodepool: bbb", {0}, {0}}, "driver.types.nodepool", {":2: driver.types.nodepool: ", "got bbb for both"}},
    {{"driver.types.cluster: org/a", {0}, {0}}, "driver.types.cluster", {"\"org/a\""}},
    {{"driver.types.cluster: [aaa, ab]", {0}, {0}}, "driver.types.cluster", {"3 or more lower-case letters", "\"ab\""}},
    {{"driver.types.cluster: K8s-cluster", {0}, {0}}, "driver.types.cluster", {"lower-case", "\"K8s-cluster\""}},
    {{"driver.types.nodepool: node_pool", {0}, {0}}, "driver.types.nodepool", {"lower-case", "\"node_pool\""}},
    {{"driver.types.nodepool: [-aa]", {0}, {0}}, "driver.types.nodepool", {"lower-case", "\"-aa\""}},
    {{"driver.types.nodepool: [aa-]", {0}, {0}}, "driver.types.nodepool", {"lower-case", "\"aa-\""}},
    {{"driver.resource_overrides: cluster..region", {0}, {0}}, "driver.resource_overrides", {"dotted paths"}},
    {{"driver.resource_overrides: .cluster", {0}, {0}}, "driver.resource_overrides", {"dotted paths"}},
    {{"driver.resource_overrides: [cluster.name, clusters.spec]", {0}, {0}}, "driver.resource_overrides", {"nodepools", "clusters.spec"}},
    {{"keys: [a]", {0}, {0}}, "keys", {"expected TEXT, got a list"}},
    {{"keys: {a: b}", {0}, {0}}, "keys", {"got a map"}},
    {{"keys: ~", {0}, {0}}, "keys", {"got nothing"}},

    /* Lists of what is no list, and items that are no strings or no names. */
    {{"adapters.required.cluster: 5", {0}, {0}}, "adapters.required.cluster", {"expected a list", "\"5\""}},
    {{"adapters.required.cluster: true", {0}, {0}}, "adapters.required.cluster", {"expected a list"}},
    {{"adapters.required.cluster:", {0}, {0}}, "adapters.required.cluster", {"[] for an empty one"}},
    {{"adapters.required.cluster:\n- dns\n- 1e3\n", {0}, {0}}, "adapters.required.cluster", {":3: ", "strings", "\"1e3\" without quotes"}},
    {{"adapters.required.cluster: [null]", {0}, {0}}, "adapters.required.cluster", {"strings"}},
    {{"adapters.required.cluster: [[dns]]", {0}, {0}}, "adapters.required.cluster", {"got a list or a map"}},
    {{"adapters.required.cluster: {dns: 1}", {0}, {0}}, "adapters.required.cluster", {"got a map"}},
    {{"adapters.required.cluster: [Dns]", {0}, {0}}, "adapters.required.cluster", {"adapter names", "\"Dns\""}},
    {{"adapters.required.cluster: [-a]", {0}, {0}}, "adapters.required.cluster", {"adapter names"}},
    {{"adapters.required.cluster: [dns-2, dns2]", {0}, {0}}, "adapters.required.cluster", {"conditions differ", "\"dns2\""}},
    {{"adapters.required.cluster: [x, a-b, a--b]", {0}, {0}}, "adapters.required.cluster", {"conditions differ", "\"a--b\""}},
    {{"adapters.required.nodepool: [a, b, a]", {0}, {0}}, "adapters.required.nodepool", {"each item once", "\"a\""}},
    {{"adapters.required.cluster: [\"a\\0\"]", {0}, {0}}, "adapters.required.cluster", {"\"a?\""}},
    {{NULL, {"HFD_ADAPTERS_REQUIRED_CLUSTER=a,,b"}, {0}}, "adapters.required.cluster", {"empty item"}},
    {{NULL, {"HFD_ADAPTERS_REQUIRED_CLUSTER=a,"}, {0}}, "adapters.required.cluster", {"empty item"}},
    {{NULL, {"HFD_ADAPTERS_REQUIRED_CLUSTER=[a"}, {0}}, "adapters.required.cluster", {"a list"}},
    {{NULL, {"HFD_ADAPTERS_REQUIRED_CLUSTER=a b"}, {0}}, "adapters.required.cluster", {"\"a b\""}},
    {{NULL, {"HFD_ADAPTERS_REQUIRED_CLUSTER=]"}, {0}}, "adapters.required.cluster", {"a list"}},

    /* Maps: names and pointers are checked; the map as a whole has no text. */
    {{"driver.outputs.values: {1a: 'b:/c'}", {0}, {0}}, "driver.outputs.values", {"a name", "\"1a\""}},
    {{"driver.outputs.values: {a.b: 'b:/c'}", {0}, {0}}, "driver.outputs.values", {"a name", "\"a.b\""}},
    {{"driver.outputs.values: {a: 'b'}", {0}, {0}}, "driver.outputs.values", {":1: driver.outputs.values.a: ", "ADAPTER:/json/pointer", "\"b\""}},
    {{"driver.outputs.values: {a: 'b:c'}", {0}, {0}}, "driver.outputs.values", {"ADAPTER:/json/pointer"}},
    {{"driver.outputs.values: {a: 'B:/c'}", {0}, {0}}, "driver.outputs.values", {"ADAPTER:/json/pointer"}},
    {{"driver.outputs.values: {a: 'b:/~2'}", {0}, {0}}, "driver.outputs.values", {"ADAPTER:/json/pointer"}},
    {{"driver.outputs.values: {a: 'b:/~'}", {0}, {0}}, "driver.outputs.values", {"ADAPTER:/json/pointer"}},
    {{"driver.outputs.values: {a: ['b:/c']}", {0}, {0}}, "driver.outputs.values", {"got a list"}},
    {{"driver.outputs.values: ['b:/c']", {0}, {0}}, "driver.outputs.values", {"expected a map"}},
    {{NULL, {"HFD_DRIVER_OUTPUTS_VALUES=a"}, {0}}, "driver.outputs.values", {"HFD_DRIVER_OUTPUTS_VALUES_NAME=ADAPTER:/json/pointer"}},
    {{NULL, {"HFD_DRIVER_OUTPUTS_VALUES_=a:/b"}, {0}}, "driver.outputs.values", {"a name"}},

    /* A key is given once in a file, however it is spelled. */
    {{"log.level: info\nlog.level: warn", {0}, {0}}, "log.level", {":2: ", "given twice", ":1"}},
    {{"log: {level: info}\nlog.level: warn", {0}, {0}}, "log.level", {"given twice"}},
    {{"log: {level: info}\nlog: {}", {0}, {0}}, "log", {"given twice"}},
    {{"store: sqlite\nstore: {readers: 3}", {0}, {0}}, "store", {"given twice"}},
    {{"driver.outputs.values: {a: 'b:/c', a: 'b:/d'}", {0}, {0}}, "driver.outputs.values", {"a is given twice"}},
    {{"driver.outputs.values:\n  url: 'b:/c'\n  name: 'b:/c'", {0}, {0}}, "driver.outputs.values", {":3: driver.outputs.values.name: ", "another name", "\"name\""}},
    {{NULL, {"HFD_DRIVER_OUTPUTS_VALUES_CLUSTER_ID=b:/c"}, {0}}, "driver.outputs.values", {"HFD_DRIVER_OUTPUTS_VALUES_CLUSTER_ID: ", "another name"}},
    {{NULL, {0}, {"--driver-outputs-values-nodepools=b:/c"}}, "driver.outputs.values", {"another name", "\"nodepools\""}},

    /* What YAML has, and settings do not need. */
    {{"log.level: &a info", {0}, {0}}, "", {":1: ", "anchors"}},
    {{"log.level: *a", {0}, {0}}, "", {"aliases"}},
    {{"log.level: !!str info", {0}, {0}}, "", {"tags"}},
    {{"log.level: ! info", {0}, {0}}, "", {"tags"}},
    {{"!x {log.level: info}", {0}, {0}}, "", {"tags"}},
    {{"adapters.required.cluster: &a [dns]", {0}, {0}}, "", {"anchors"}},
    {{"log: &a {level: info}", {0}, {0}}, "", {"anchors"}},
    {{"%TAG ! tag:x,2000:\n---\nlog.level: info", {0}, {0}}, "", {"tags"}},
    {{"log.level: info\n---\nlog.level: info", {0}, {0}}, "", {":2: ", "one document"}},
    {{"<<: {log.level: info}", {0}, {0}}, "<<", {"unknown setting"}},
    {{"? [a]\n: b", {0}, {0}}, "", {"expected a key"}},
    {{"? {a: b}\n: b", {0}, {0}}, "", {"expected a key"}},
    {{"- a", {0}, {0}}, "", {"expected a map"}},
    {{"text", {0}, {0}}, "", {"expected a map"}},
    {{"log: info", {0}, {0}}, "log", {"expected a map"}},
    {{"log.level: info: c", {0}, {0}}, "", {":1: ", "not valid YAML"}},
    {{"log.level: \"info", {0}, {0}}, "", {"not valid YAML"}},
    {{"\tlog.level: info", {0}, {0}}, "", {"not valid YAML"}},
    {{"log.level: \xff", {0}, {0}}, "", {"UTF-8"}},
    {{"log.level: \x01", {0}, {0}}, "", {"UTF-8"}},
};
/* clang-format on */

static void settings_good_values_are_taken(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct hfd_settings *s = NULL;
        struct hfd_buf b;
        struct hfd_err err;
        hfd_slice text;

        if (load(&good[i].from, &s, &err) != HFD_OK)
            fail_msg("case %zu (%s): %s", i, good[i].lines[0], err.msg);
        text = show(s, i % 2 == 0, &b);
        for (size_t k = 0; k < 4 && good[i].lines[k] != NULL; k++) {
            if (!has_line(text, good[i].lines[k]))
                fail_msg("case %zu: no line %s in\n%.*s", i, good[i].lines[k], HFD_SLICE_FMT(text));
        }
        hfd_buf_fini(&b);
        hfd_settings_free(s);
    }
}

static void settings_bad_values_are_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct hfd_settings *s = (struct hfd_settings *)&dir;
        struct hfd_err err;
        hfd_rc rc = load(&bad[i].from, &s, &err);

        if (rc != HFD_INVALID || s != NULL)
            fail_msg("case %zu (%s): answered %s", i, bad[i].says[0], hfd_rc_name(rc));
        if (bad[i].field != NULL && strcmp(err.field, bad[i].field) != 0)
            fail_msg("case %zu: field %s in: %s", i, err.field, err.msg);
        if (strstr(err.msg, "geheim") != NULL)
            fail_msg("case %zu: a password in: %s", i, err.msg);
        for (size_t k = 0; k < 3 && bad[i].says[k] != NULL; k++) {
            if (strstr(err.msg, bad[i].says[k]) == NULL)
                fail_msg("case %zu: no %s in: %s", i, bad[i].says[k], err.msg);
        }
    }
}

/* A file with something of every type. */
static const struct sources rich = {
    "listen: '[::1]:0'\ndata: 'a \"b\" \\ #c: é'\ndemo: 7\nlog.level: warn\nhttp: {threads: 3, "
    "body_max: 5000}\n"
    "adapters.required: {cluster: [], nodepool: [x]}\ndriver.deadline.delete: 90s\n"
    "driver.outputs: {values: {b: 'x:/a~0b', a: 'y:'}, secrets: {k: 'x:/data/\"q\"'}}\n",
    {"HFD_DRIVER_TERMINAL_REASONS=One,Two"},
    {"--keys", "/k"},
};

/* Every setting of a rich file survives show and reload, and the second show equals the first. */
static void settings_show_reads_back(void **state)
{
    struct hfd_settings *s, *again;
    struct hfd_buf first, second;
    struct hfd_err err;
    hfd_slice text, repeated;
    char path[80];

    (void)state;
    assert_int_equal(load(&rich, &s, &err), HFD_OK);
    text = show(s, false, &first);
    (void)snprintf(path, sizeof(path), "%s/shown.yaml", dir);
    write_bytes(path, text.p, text.len);
    if (hfd_settings_load(2, (const char *const[]){"--config", path}, (const char *const[]){NULL},
                          &again, &err) != HFD_OK)
        fail_msg("%s", err.msg);

    assert_true(hfd_slice_eq(s->data, again->data));
    assert_true(hfd_slice_is(again->data, "a \"b\" \\ #c: é"));
    assert_int_equal(again->required_cluster.count, 0);
    assert_int_equal(again->output_values.count, 2);
    assert_true(hfd_slice_is(again->output_values.items[0].name, "b"));
    assert_true(hfd_slice_is(again->output_secrets.items[0].value, "x:/data/\"q\""));
    repeated = show(again, false, &second);
    assert_true(hfd_slice_eq(text, repeated));

    hfd_buf_fini(&first);
    hfd_buf_fini(&second);
    hfd_settings_free(s);
    hfd_settings_free(again);
}

/* `config show` has no password, and is refused as long as *** stands for it. */
static void a_password_is_not_shown(void **state)
{
    static const struct sources from = {NULL, {"HFD_STORE=postgres://u:geheim@h/d"}, {NULL}};
    struct hfd_settings *s, *again;
    struct hfd_buf b;
    struct hfd_err err;
    hfd_slice text;
    char path[80];

    (void)state;
    assert_int_equal(load(&from, &s, &err), HFD_OK);
    assert_true(hfd_slice_is(s->store, "postgres://u:geheim@h/d"));
    assert_true(hfd_settings_has_postgres(s));
    text = show(s, true, &b);
    assert_true(has_line(text, "store: \"postgres://u:***@h/d\""));
    assert_true(has_line(text, "data: \"\""));
    assert_null(memmem(text.p, text.len, "geheim", 6));
    (void)snprintf(path, sizeof(path), "%s/shown.yaml", dir);
    write_bytes(path, text.p, text.len);
    assert_int_equal(hfd_settings_load(2, (const char *const[]){"--config", path},
                                       (const char *const[]){NULL}, &again, &err),
                     HFD_INVALID);
    assert_string_equal(err.field, "store");
    hfd_buf_fini(&b);
    hfd_settings_free(s);
}

/* However little memory there is, loading fails cleanly; with a little more it succeeds. */
static void settings_without_memory_fail_cleanly(void **state)
{
    const char *const argv[] = {"--config", file_path};
    struct hfd_settings *s = NULL;
    struct hfd_err err;
    size_t steps = 0;
    hfd_rc rc = HFD_NOMEM;

    (void)state;
    write_bytes(file_path, rich.file, strlen(rich.file));
    for (size_t max_bytes = 0; rc == HFD_NOMEM; max_bytes += 48) {
        rc = hfd_settings_load_within(max_bytes, &(struct hfd_settings_given){2, argv, rich.env},
                                      &s, &err);
        assert_true(rc == HFD_OK || (rc == HFD_NOMEM && s == NULL));
        steps++;
    }
    assert_int_equal(rc, HFD_OK);
    assert_true(steps > 100);
    assert_int_equal(s->output_values.count, 2);
    hfd_settings_free(s);
}

/*
 * A value that the user chose differs from a default of the same value, and show names its source.
 */
static void settings_origin_is_kept(void **state)
{
    static const struct sources from = {"\nlisten: 127.0.0.1:8000\n",
                                        {"HFD_DATA=data", "HFD_DRIVER_OUTPUTS_VALUES_URL=a:/b"},
                                        {"--log-level=info"}};
    struct hfd_settings *s;
    struct hfd_buf b;
    struct hfd_err err;
    hfd_slice text;
    char line[160];

    (void)state;
    assert_int_equal(load(&from, &s, &err), HFD_OK);
    assert_true(hfd_settings_is_set(s, HFD_SETTING_listen));
    assert_true(hfd_settings_is_set(s, HFD_SETTING_data));
    assert_true(hfd_settings_is_set(s, HFD_SETTING_log_level));
    assert_false(hfd_settings_is_set(s, HFD_SETTING_ops_listen));
    assert_false(hfd_settings_is_set(s, HFD_SETTING_estimate_create_us));
    text = show(s, true, &b);
    (void)snprintf(line, sizeof(line), "listen: \"127.0.0.1:8000\" # %s:2", file_path);
    assert_true(has_line(text, line));
    assert_true(has_line(text, "data: \"data\" # HFD_DATA"));
    assert_true(
        has_line(text, "driver.outputs.values.url: \"a:/b\" # HFD_DRIVER_OUTPUTS_VALUES_URL"));
    assert_true(has_line(text, "log.level: info # --log-level"));
    assert_true(has_line(text, "ops_listen: \"127.0.0.1:8080\""));
    hfd_buf_fini(&b);
    hfd_settings_free(s);
}

/* The variable names the file when no flag does. */
static void settings_variable_names_the_file(void **state)
{
    struct hfd_settings *s;
    struct hfd_err err;
    char variable[96];

    (void)state;
    write_bytes(file_path, "log.level: debug\n", 17);
    (void)snprintf(variable, sizeof(variable), "HFD_CONFIG=%s", file_path);
    assert_int_equal(hfd_settings_load(0, NULL, (const char *const[]){variable, NULL}, &s, &err),
                     HFD_OK);
    assert_int_equal(s->log_level, HFD_LOG_DEBUG);
    hfd_settings_free(s);
}

/* A file that is not there, and a folder, are failures of reading, not of content. */
static void settings_unreadable_file_is_named(void **state)
{
    struct hfd_settings *s;
    struct hfd_err err;
    const char *none[] = {NULL};

    (void)state;
    assert_int_equal(
        hfd_settings_load(1, (const char *const[]){"--config=/nonexistent/x.yaml"}, none, &s, &err),
        HFD_IO);
    assert_non_null(strstr(err.msg, "/nonexistent/x.yaml"));
    assert_null(s);
    assert_int_equal(hfd_settings_load(2, (const char *const[]){"--config", dir}, none, &s, &err),
                     HFD_IO);
    assert_non_null(strstr(err.msg, dir));
}

struct filler {
    const char *head;
    const char *unit; /* repeated until the file has that many bytes */
    size_t bytes;
    const char *says;
};

/* Huge and deep files end early, with a reason. */
static void settings_hostile_sizes_are_refused(void **state)
{
    static const struct filler cases[] = {
        {"", "#########\n", 1048577, "larger than 1048576 bytes"},
        {"", "[", 1048576, "expected a map"},
        {"a: ", "[", 100000, "unknown setting"},
        {"log: ", "{", 100000, "expected a key"},
        {"adapters.required.cluster: ", "[", 100000, "got a list or a map"},
        {"adapters.required.cluster:\n", "- a\n", 4000, "at most 256 items"},
        {"keys: ", "x", 1000000, "at most 4096 bytes"},
        {"", "x", 1000000, "expected a map"},
        {"? ", "x", 1000000, "unknown setting"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *text = test_malloc(cases[i].bytes + 1);
        size_t at = strlen(cases[i].head);
        struct hfd_settings *s;
        struct hfd_err err;

        memcpy(text, cases[i].head, at);
        for (size_t k = 0; at < cases[i].bytes; k++)
            text[at++] = cases[i].unit[k % strlen(cases[i].unit)];
        text[at] = '\0';
        assert_int_equal(load(&(struct sources){.file = text}, &s, &err), HFD_INVALID);
        if (strstr(err.msg, cases[i].says) == NULL)
            fail_msg("case %zu: %s", i, err.msg);
        test_free(text);
    }
}

/*
 * A file of exactly the largest size is read; the map takes its 256th entry and refuses the next.
 */
static void settings_limits_are_exact(void **state)
{
    struct hfd_settings *s;
    struct hfd_err err;
    char *text = test_malloc(1048576 + 1);
    size_t at = 0;

    (void)state;
    memset(text, '#', 1048576);
    text[1048576] = '\0';
    assert_int_equal(load(&(struct sources){.file = text}, &s, &err), HFD_OK);
    hfd_settings_free(s);

    for (int i = 0; i < 257; i++) {
        if (i == 256) {
            assert_int_equal(load(&(struct sources){.file = text}, &s, &err), HFD_OK);
            assert_int_equal(s->output_values.count, 256);
            hfd_settings_free(s);
        }
        at += (size_t)snprintf(text + at, 1048576 - at, "driver.outputs.values.n%d: 'a:/b'\n", i);
    }
    assert_int_equal(load(&(struct sources){.file = text}, &s, &err), HFD_INVALID);
    assert_non_null(strstr(err.msg, "at most 256 entries"));
    test_free(text);
}

/* Help names every setting once in each form, so nothing of the table is left out. */
static void settings_help_is_complete(void **state)
{
#define KEY_(key, member, type, def, min, max, text, ...) {key, text},
    static const char *const rows[][2] = {HFD_SETTING_LIST(KEY_)};
#undef KEY_
    struct hfd_buf plain, table;

    (void)state;
    hfd_buf_init(&plain, 1 << 20);
    hfd_buf_init(&table, 1 << 20);
    hfd_settings_help(&plain, false);
    hfd_settings_help(&table, true);
    hfd_buf_addc(&plain, '\0');
    hfd_buf_addc(&table, '\0');
    for (size_t i = 0; i < HFD_SETTING_COUNT; i++) {
        char cell[96], flag[96];

        (void)snprintf(cell, sizeof(cell), "| `%s", rows[i][0]);
        assert_non_null(strstr(table.p, cell));
        assert_non_null(strstr(table.p, rows[i][1]));
        (void)snprintf(flag, sizeof(flag), "\n  --%s", rows[i][0]);
        for (char *c = flag + 5; *c != '\0'; c++)
            *c = *c == '.' || *c == '_' ? '-' : *c;
        assert_non_null(strstr(plain.p, i == 0 ? flag + 1 : flag));
        assert_non_null(strstr(plain.p, rows[i][1]));
        assert_null(strchr(rows[i][1], '|')); /* it would end a cell of the table */
    }
    hfd_buf_fini(&plain);
    hfd_buf_fini(&table);
}

static int make_dir(void **state)
{
    (void)state;
    if (mkdtemp(dir) == NULL)
        return -1;
    (void)snprintf(file_path, sizeof(file_path), "%s/hfd.yaml", dir);
    return 0;
}

static int remove_dir(void **state)
{
    char path[80];

    (void)state;
    (void)snprintf(path, sizeof(path), "%s/shown.yaml", dir);
    (void)unlink(path);
    (void)unlink(file_path);
    return rmdir(dir);
}

/* The manual's list of files has each setting whose text speaks of a file, once. */
static void settings_files_are_all_listed(void **state)
{
#define TEXT_(key, member, type, def, min, max, text, ...) text,
    static const char *const texts[] = {HFD_SETTING_LIST(TEXT_)};
#undef TEXT_

    (void)state;
    for (int which = 0; which < HFD_SETTING_COUNT; which++) {
        size_t listed = 0;

        for (size_t i = 0; i < hfd_setting_file_count; i++)
            listed += (int)hfd_setting_files[i].which == which;
        if (listed != (strstr(texts[which], "file") != NULL))
            fail_msg("%s: %zu times in the list", hfd_setting_key((enum hfd_setting)which), listed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_good_values_are_taken),
        cmocka_unit_test(settings_bad_values_are_named),
        cmocka_unit_test(settings_show_reads_back),
        cmocka_unit_test(a_password_is_not_shown),
        cmocka_unit_test(settings_without_memory_fail_cleanly),
        cmocka_unit_test(settings_origin_is_kept),
        cmocka_unit_test(settings_variable_names_the_file),
        cmocka_unit_test(settings_unreadable_file_is_named),
        cmocka_unit_test(settings_hostile_sizes_are_refused),
        cmocka_unit_test(settings_limits_are_exact),
        cmocka_unit_test(settings_help_is_complete),
        cmocka_unit_test(settings_files_are_all_listed),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
