/*
 * Settings: one table (key, type, default, range, unit, text) read from a YAML file, HFD_*
 * environment and flags, later wins. The table generates --help, the README's table and `config
 * show`. An unknown key or a bad value is an error that names key, place and what was expected.
 * Parsed once into a const struct; strings live as long as it does. Thread: start-up.
 */
#ifndef HFD_SETTINGS_H
#define HFD_SETTINGS_H

#include "driver/base/arena.h"
#include "driver/base/buf.h"
#include "driver/base/log.h"

struct hfd_list {
    hfd_slice *items;
    size_t count;
};

struct hfd_pair {
    hfd_slice name;
    hfd_slice value;
    hfd_slice origin; /* as hfd_settings.origin */
};

struct hfd_map {
    struct hfd_pair *items; /* in the order of the file, then by name */
    size_t count;
};

/* clang-format off */
/*
 *  key, member, TYPE, default as text, min, max, "text"
 *  TYPE: STR, I64, BYTES, DURATION (stored as <member> in microseconds), LIST, MAP (keys below it: driver.outputs.values.NAME), DEMO (off, on, or seconds)
 *  min and max: for I64 and BYTES the range; for DURATION in seconds. Flag: --key with '.' and '_' as '-'. Environment: HFD_ + key in upper case with '_'.
 */
#define HFD_SETTING_LIST(X) \
 X("listen",                     listen,              STR,      "127.0.0.1:8000", 0, 0, "address and port of the driver contract and /api/hyperfleet/v1; port 0 picks one") \
 X("ops_listen",                 ops_listen,          STR,      "127.0.0.1:8080", 0, 0, "address and port of /livez, /readyz, /metrics and /admin") \
 X("data",                       data,                STR,      "data",           0, 0, "folder of the database and the key ring") \
 X("keys",                       keys,                STR,      "",               0, 0, "key ring file; empty: DATA/keys, made at the first start") \
 X("store",                      store,               STR,      "sqlite",         0, 0, "where state is kept: sqlite") \
 X("backend",                    backend,             STR,      "embedded",       0, 0, "the HyperFleet that is driven: embedded, or the URL of a remote one: https://hyperfleet.example/") \
 X("demo",                       demo_us,             DEMO,     "off",            0, 86400, "built-in demo adapters that report success after this time (10s when no time is given); no cluster is made") \
 X("log.level",                  log_level,           LEVEL,    "info",           0, 0, "debug, info, warn or error") \
 X("http.threads",               http_threads,        I64,      "0",              0, 64, "event loops; 0: one per core") \
 X("http.body_max",              http_body_max_bytes, BYTES,    "1MiB",        1024, 16777216, "largest request body; beyond it 413") \
 X("http.connections_max",       http_connections_max,I64,      "4096",           1, 1000000, "open connections; more wait for a place") \
 X("http.in_flight_max",         http_in_flight_max,  I64,      "4096",           1, 1000000, "requests being worked on; beyond it 503") \
 X("http.read_timeout",          http_read_timeout_us,DURATION, "10s",            1, 3600, "time for a request's head and body, and of an idle connection") \
 X("http.write_timeout",         http_write_timeout_us,DURATION,"30s",            1, 3600, "time without progress after which a slow reader is cut off") \
 X("http.drain_timeout",         http_drain_timeout_us,DURATION,"20s",            0, 3600, "time that SIGTERM gives open requests to finish") \
 X("store.queue_max",            store_queue_max,     I64,      "4096",           1, 1000000, "writes waiting for the disk; beyond it 503") \
 X("store.batch_max",            store_batch_max,     I64,      "1024",           1, 100000, "writes in one commit") \
 X("store.readers",              store_readers,       I64,      "2",              1, 64, "threads for lists") \
 X("adapters.required.cluster",  required_cluster,    LIST,     "[validation, dns, pullsecret, hypershift]", 0, 0, "adapters that must report on a cluster") \
 X("adapters.required.nodepool", required_nodepool,   LIST,     "[validation, hypershift]", 0, 0, "adapters that must report on a nodepool") \
 X("fleet.conditions",           fleet_conditions,    STR,      "ready",          0, 0, "names of the aggregated conditions: ready (Ready, Available), reconciled (Reconciled, LastKnownReconciled), or both") \
 X("fleet.identity_header",      fleet_identity_header, STR,    "",               0, 0, "request header that names the caller in created_by, updated_by and deleted_by; a trusted proxy must set it; empty: none") \
 X("fleet.spec_schema",          fleet_spec_schema,   STR,      "",               0, 0, "OpenAPI 3.0 file, YAML or JSON, whose components ClusterSpec and NodePoolSpec every `spec` must satisfy; empty: any object") \
 X("remote.token_file",          remote_token_file,   STR,      "",               0, 0, "file with the bearer token for the remote HyperFleet; read again when it changes and after a 401; empty: none is sent") \
 X("remote.ca_file",             remote_ca_file,      STR,      "",               0, 0, "PEM file of the authorities that the remote's certificate may come from; empty: the system's") \
 X("remote.cert_file",           remote_cert_file,    STR,      "",               0, 0, "PEM file of the client certificate, with its chain; empty: none is shown") \
 X("remote.key_file",            remote_key_file,     STR,      "",               0, 0, "PEM file of the client certificate's key, not encrypted") \
 X("remote.identity_header",     remote_identity_header, STR,   "",               0, 0, "request header that tells the remote who asks; empty: none is sent") \
 X("remote.identity",            remote_identity,     STR,      "",               0, 0, "value of remote.identity_header") \
 X("remote.connect_timeout",     remote_connect_timeout_us, DURATION, "5s",       1, 300, "time to reach the remote, with TLS") \
 X("remote.timeout",             remote_timeout_us,   DURATION, "15s",            1, 3600, "time for one request to the remote in all") \
 X("remote.in_flight_max",       remote_in_flight_max, I64,     "16",             1, 256, "resources that are worked on with the remote at the same time, each with one request") \
 X("remote.per_second_max",      remote_per_second_max, I64,    "50",             1, 10000, "requests a second to the remote, whatever there is to do") \
 X("remote.answer_max",          remote_answer_max_bytes, BYTES, "16MiB",     65536, 268435456, "largest answer that is read from the remote") \
 X("remote.watch",               remote_watch_us,     DURATION, "5s",             1, 3600, "how often a resource in progress is observed") \
 X("remote.fresh",               remote_fresh_us,     DURATION, "2s",             1, 3600, "a poll has its resource observed anew if the last observation is older") \
 X("remote.idle",                remote_idle_us,      DURATION, "5m",             1, 86400, "how often a settled resource is observed") \
 X("remote.retry_min",           remote_retry_min_us, DURATION, "1s",             1, 3600, "first pause after a failure of the remote; it doubles, with jitter") \
 X("remote.retry_max",           remote_retry_max_us, DURATION, "60s",            1, 86400, "longest pause after failures of the remote") \
 X("driver.types.cluster",       types_cluster,       LIST,     "[hyperfleet-cluster, k8s-cluster]", 0, 0, "resource types served as clusters, matched behind `org/`") \
 X("driver.types.nodepool",      types_nodepool,      LIST,     "[hyperfleet-nodepool]", 0, 0, "resource types served as nodepools") \
 X("driver.paths.cluster",       path_cluster,        STR,      "clusters",       0, 0, "path prefix /{driver}/{GUResID} of clusters") \
 X("driver.paths.nodepool",      path_nodepool,       STR,      "nodepools",      0, 0, "path prefix of nodepools") \
 X("driver.resource_overrides",  resource_overrides,  LIST,     "[]",             0, 0, "fields of driver.values that `resource` may override, as dotted paths: cluster.spec.region; null and empty text override nothing") \
 X("driver.terminal_reasons",    terminal_reasons,    LIST,     "[ValidationFailed, InvalidConfiguration, InvalidSpec, InvalidManifest, InvalidImage, InvalidCredentials, InvalidPullSecret, UnsupportedVersion, UnsupportedRegion, UnsupportedPlatform, QuotaExceeded, PermissionDenied, hypershift:UnsupportedHostedCluster, hypershift:PlatformCredentialsNotFound, hypershift:ApplyConflict]", 0, 0, "reasons of Applied=False or Available=False that end an operation with RES-104: REASON of any adapter, ADAPTER:REASON of one") \
 X("driver.deadline.create",     deadline_create_us,  DURATION, "1h",             1, 2592000, "after this time a creation has failed with RES-105") \
 X("driver.deadline.update",     deadline_update_us,  DURATION, "1h",             1, 2592000, "the same for an update") \
 X("driver.deadline.delete",     deadline_delete_us,  DURATION, "1h",             1, 2592000, "the same for a deletion, which goes on all the same") \
 X("driver.deadline.nodepool.create", deadline_nodepool_create_us, DURATION, "0s", 0, 2592000, "of nodepool resources; 0s: as driver.deadline.create") \
 X("driver.deadline.nodepool.update", deadline_nodepool_update_us, DURATION, "0s", 0, 2592000, "of nodepool resources; 0s: as driver.deadline.update") \
 X("driver.deadline.nodepool.delete", deadline_nodepool_delete_us, DURATION, "0s", 0, 2592000, "of nodepool resources; 0s: as driver.deadline.delete") \
 X("driver.estimate.create",     estimate_create_us,  DURATION, "15m",            1, 2592000, "expected duration of a creation") \
 X("driver.estimate.update",     estimate_update_us,  DURATION, "10m",            1, 2592000, "expected duration of an update") \
 X("driver.estimate.delete",     estimate_delete_us,  DURATION, "10m",            1, 2592000, "expected duration of a deletion") \
 X("driver.estimate.nodepool.create", estimate_nodepool_create_us, DURATION, "0s", 0, 2592000, "of nodepool resources; 0s: as driver.estimate.create") \
 X("driver.estimate.nodepool.update", estimate_nodepool_update_us, DURATION, "0s", 0, 2592000, "of nodepool resources; 0s: as driver.estimate.update") \
 X("driver.estimate.nodepool.delete", estimate_nodepool_delete_us, DURATION, "0s", 0, 2592000, "of nodepool resources; 0s: as driver.estimate.delete") \
 X("driver.outputs.values",      output_values,       MAP,      "",               0, 0, "further output values: NAME: ADAPTER:/json/pointer into the adapter's data") \
 X("driver.outputs.secrets",     output_secrets,      MAP,      "",               0, 0, "output secrets: NAME: ADAPTER:/json/pointer, usually into data.secrets")
/* clang-format on */

#define HFD_CTYPE_STR hfd_slice
#define HFD_CTYPE_I64 int64_t
#define HFD_CTYPE_BYTES int64_t
#define HFD_CTYPE_DURATION int64_t
#define HFD_CTYPE_LIST struct hfd_list
#define HFD_CTYPE_MAP struct hfd_map
#define HFD_CTYPE_DEMO int64_t
#define HFD_CTYPE_LEVEL enum hfd_log_level
/* One name per row: HFD_SETTING_listen, HFD_SETTING_estimate_create_us, ... */
#define HFD_SETTING_ENUM_(key, member, type, def, min, max, text) HFD_SETTING_##member,
enum hfd_setting {
    HFD_SETTING_LIST(HFD_SETTING_ENUM_) HFD_SETTING_COUNT
};
#undef HFD_SETTING_ENUM_

#define HFD_SETTING_MEMBER_(key, member, type, def, min, max, text) HFD_CTYPE_##type member;
struct hfd_settings {
    HFD_SETTING_LIST(HFD_SETTING_MEMBER_)
    hfd_slice origin[HFD_SETTING_COUNT]; /* "hfd.yaml:3", "HFD_LISTEN", "--listen"; empty = the
                                            default holds */
    struct hfd_arena mem;                /* owns all of the above */
};
#undef HFD_SETTING_MEMBER_
/* demo_us: -1 = off */

/**
 * Reads defaults, then the YAML file (--config FILE or HFD_CONFIG; libyaml; anchors, aliases and
 * tags refused; nested maps or dotted keys), then HFD_*, then flags. A value of a later source
 * replaces a list as a whole; maps are merged by name.
 * @param argv  flags behind the command: --key VALUE, --key=VALUE; --demo takes its value only with
 * '='
 * @param env   NULL-terminated "K=V"; every HFD_* must be a key
 * @return HFD_OK, HFD_INVALID (err->field is the key; the message names its place: file and line,
 * variable, or flag), HFD_IO, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_settings_load(int argc, const char *const *argv, const char *const *env,
                                        struct hfd_settings **out, struct hfd_err *err);
void hfd_settings_free(struct hfd_settings *s);

/** Where the setting of that key was given; empty: nowhere, or there is none. */
hfd_slice hfd_settings_origin(const struct hfd_settings *s, const char *key);

/** Whether a file, the environment or a flag gave the setting, be it the default's value. */
bool hfd_settings_is_set(const struct hfd_settings *s, enum hfd_setting which);

/**
 * Fails with where the setting was given, if it was, and its key in front: for what its value alone
 * could not tell. err->field is the key.
 * @return HFD_INVALID
 */
HFD_MUST_CHECK hfd_rc hfd_settings_refuse(const struct hfd_settings *s, enum hfd_setting which,
                                          struct hfd_err *err, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/** The rows for --help (plain text) or the README (a Markdown table). */
void hfd_settings_help(struct hfd_buf *b, bool markdown);
/**
 * Effective values as a YAML file with dotted keys; reading it back gives the same settings.
 * @param origins  adds where each was set, as a comment
 */
void hfd_settings_show(const struct hfd_settings *s, bool origins, struct hfd_buf *b);

#endif
