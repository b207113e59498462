/*
 * The settings: one table of key, type, default, range and text. Values come from a YAML file,
 * HFD_* variables and flags; the later of these wins. The table also makes --help and the manual's
 * page. Refuses unknown keys and bad values; the error names key, place and what was expected.
 * Settings are parsed once and never change; their strings live as long as they do. Thread:
 * start-up.
 */
#ifndef HFD_SETTINGS_H
#define HFD_SETTINGS_H

#include "driver/base/arena.h"
#include "driver/base/buf.h"
#include "driver/base/log.h"
#include "driver/base/pgurl.h"

struct hfd_list {
    hfd_slice *items;
    size_t count;
};

struct hfd_pair {
    hfd_slice name;
    hfd_slice value;
    hfd_slice origin; /* as in struct hfd_settings */
};

struct hfd_map {
    struct hfd_pair *items; /* in the order of the file, then by name */
    size_t count;
};

/* clang-format off */
/*
 * key, member, TYPE, default as text, min, max, text, check of the value or of each item (or none)
 *
 * TYPE: STR, I64, BYTES, LEVEL, LIST, DURATION (in microseconds), DEMO (off, on, or a time), MAP
 * (has keys below it: driver.outputs.values.NAME); FILES, TEXTS, LISTS (the same with an ending:
 * hypershift.management.NAME.kubeconfig; hfd_setting_suffix has the endings). min and max: the range; in seconds for DURATION
 * and DEMO. The flag is --key with '.' and '_' as '-'. The variable is HFD_ and the key in upper
 * case with '.' as '_'.
 */
#define HFD_SETTING_LIST(X) \
 X("listen",                        listen,                      STR,      "127.0.0.1:8000", 0, 0, \
   "address and port of the Driver API and of /api/hyperfleet/v1; port 0 picks a free port; " \
   "or unix:/path of a socket", check_address) \
 X("ops_listen",                    ops_listen,                  STR,      "127.0.0.1:8080", 0, 0, \
   "address and port of /livez, /readyz, /metrics, /docs and /admin, or unix:/path", check_address) \
 X("data",                          data,                        STR,      "data", 0, 0, \
   "folder of the database and the key ring; none with PostgreSQL") \
 X("keys",                          keys,                        STR,      "", 0, 0, \
   "key ring file; empty: DATA/keys, created at the first start; with PostgreSQL it must be " \
   "named, and exist") \
 X("store",                         store,                       STR,      "sqlite", 0, 0, \
   "where state is stored: sqlite, or the URL of a PostgreSQL database for one or more replicas: " \
   "postgres://USER@HOST1:PORT,HOST2:PORT/DATABASE?sslmode=verify-full", check_store) \
 X("backend",                       backend,                     STR,      "embedded", 0, 0, \
   "embedded, or the URL of a remote HyperFleet API: https://hyperfleet.example/", check_backend) \
 X("demo",                          demo_us,                     DEMO,     "off", 0, 86400, \
   "built-in demo adapters that report success after this time (10s if no time is given); " \
   "no cluster is created") \
 X("log.level",                     log_level,                   LEVEL,    "info", 0, 0, \
   "lowest level that is logged: debug, info, warn or error") \
 X("log.format",                    log_format,                  STR,      "auto", 0, 0, \
   "form of the log: json, text, or auto (text on a terminal)", check_format) \
 X("http.threads",                  http_threads,                I64,      "0", 0, 64, \
   "event loop threads; 0: one per core") \
 X("http.body_max",                 http_body_max_bytes,         BYTES,    "1MiB", 1024, 16777216, \
   "largest request body; a larger one is answered with 413") \
 X("http.connections_max",          http_connections_max,        I64,      "4096", 1, 1000000, \
   "open connections; further ones wait") \
 X("http.in_flight_max",            http_in_flight_max,          I64,      "4096", 1, 1000000, \
   "requests in progress; further ones are answered with 503") \
 X("http.read_timeout",             http_read_timeout_us,        DURATION, "10s", 1, 3600, \
   "time to receive the head and the body of a request, and the first one of a connection") \
 X("http.idle_timeout",             http_idle_timeout_us,        DURATION, "75s", 1, 3600, \
   "time after which a connection is closed that has had an answer and sends no new request") \
 X("http.write_timeout",            http_write_timeout_us,       DURATION, "30s", 1, 3600, \
   "time without progress after which a slow client is disconnected") \
 X("http.drain_timeout",            http_drain_timeout_us,       DURATION, "20s", 0, 3600, \
   "time to finish open requests after SIGTERM") \
 X("http.hosts",                    http_hosts,                  LIST,     "[]", 0, 0, \
   "host names beside those of loopback under which clients and proxies reach the listeners; " \
   "a request to another name is answered with 421", check_host) \
 X("auth.networks",                 auth_networks,               LIST,     "[]", 0, 0, \
   "networks that callers come from, as 10.0.0.0/8 or 2001:db8::/32; others are answered with " \
   "403; unix: the clients of a Unix socket; empty: all", check_network) \
 X("auth.tokens_file",              auth_tokens_file,            STR,      "", 0, 0, \
   "file of the tokens, changed by `hyperfleet-driver token` and taken up by itself; empty: " \
   "DATA/tokens, with PostgreSQL none") \
 X("auth.operator_keys",            auth_operator_keys,          LIST,     "[]", 0, 0, \
   "PEM files with one or more public keys of Humanitec Operators; their JWT may do what the " \
   "scope driver may; read again when they change") \
 X("auth.issuers",                  auth_issuers,                STR,      "", 0, 0, \
   "YAML or JSON file of the issuers whose JWT are taken: issuer_url, jwk_cert_file or " \
   "jwk_cert_url, ca_file, audience, identity_claim, scopes") \
 X("insecure_no_auth",              insecure_no_auth,            BOOL,     "off", 0, 0, \
   "serve addresses other than loopback without authentication, for a test: everyone who " \
   "reaches them may do everything") \
 X("http.trusted_proxies",          http_trusted_proxies,        LIST,     "[]", 0, 0, \
   "addresses or networks of proxies whose X-Forwarded-For and fleet.identity_header count; " \
   "unix: the clients of a Unix socket", check_network) \
 X("http.socket_mode",              http_socket_mode,            STR,      "0660", 0, 0, \
   "mode of a Unix socket of listen or ops_listen", check_mode) \
 X("http.memory_max",               http_memory_max_bytes,       BYTES,    "256MiB", 16777216, 1099511627776, \
   "memory of requests and answers in progress, over all connections; what does not fit is " \
   "answered with 503") \
 X("tls.cert_file",                 tls_cert_file,               STR,      "", 0, 0, \
   "PEM file of the certificate of both listeners, with its chain; empty: no TLS; read again " \
   "when it changes") \
 X("tls.key_file",                  tls_key_file,                STR,      "", 0, 0, \
   "PEM file of its private key, not encrypted") \
 X("tls.client_ca_file",            tls_client_ca_file,          STR,      "", 0, 0, \
   "PEM file of the authorities whose client certificates the main listener demands; empty: " \
   "none is demanded") \
 X("store.password_file",           store_password_file,         STR,      "", 0, 0, \
   "file with the password of the PostgreSQL user; read at each connection; empty: the URL has " \
   "it, or none is needed") \
 X("store.connect_timeout",         store_connect_timeout_us,    DURATION, "3s", 1, 300, \
   "time to connect to one host of PostgreSQL") \
 X("store.answer_timeout",          store_answer_timeout_us,     DURATION, "5s", 1, 300, \
   "longest wait for one answer of PostgreSQL; then the connection is given up") \
 X("store.patroni",                 store_patroni,               STR,      "", 0, 0, \
   "URL of Patroni's REST API, which `doctor` asks for its version: http://HOST:8008/; empty: it " \
   "is not asked", check_url) \
 X("store.queue_max",               store_queue_max,             I64,      "4096", 1, 1000000, \
   "writes that wait for the disk; further ones are answered with 503") \
 X("store.readers",                 store_readers,               I64,      "2", 1, 64, \
   "threads that read lists, with PostgreSQL each with a connection; one more serves short lists " \
   "and single resources") \
 X("store.read_timeout",            store_read_timeout_us,       DURATION, "5s", 1, 3600, \
   "longest time of a list or search; one that takes longer is answered with 503") \
 X("adapters.required.cluster",     required_cluster,            LIST, \
   "[validation, dns, pullsecret, hypershift]", \
   0, 0, \
   "adapters that must report on a cluster", check_adapter) \
 X("adapters.required.nodepool",    required_nodepool,           LIST,     "[validation, hypershift]", 0, 0, \
   "adapters that must report on a nodepool", check_adapter) \
 X("adapters.pacemaker",            pacemaker,                   LIST,     "[]", 0, 0, \
   "adapters whose reports bring a PacemakerCluster document; each is required for a cluster as " \
   "long as that cluster has one; the first speaks through .../pacemaker", check_adapter) \
 X("fleet.conditions",              fleet_conditions,            STR,      "both", 0, 0, \
   "names of the aggregated conditions: ready (Ready, Available), reconciled (Reconciled, " \
   "LastKnownReconciled), or both", check_conditions) \
 X("events.watchers_max",           events_watchers_max,         I64,      "1000", 1, 100000, \
   "callers that wait for events or a resource, beside http.connections_max; one token has a quarter " \
   "at most; further ones are not held") \
 X("events.keep",                   events_keep_us,              DURATION, "24h", 60, 259200, \
   "time that the event of a removed cluster or nodepool is kept for callers that come late") \
 X("events.repeats_per_second",     events_repeats_per_second,   I64,      "50", 0, 10000, \
   "the most events a second that are repeated for adapters that stay silent; 0: none") \
 X("events.webhooks",               webhook_urls,                TEXTS,    "", 0, 0, \
   "URL that gets each event with POST; user and query may be secrets, and are not shown", check_hook_url) \
 X("events.webhooks",               webhook_secret_files,        FILES,    "", 0, 0, \
   "file with the secret that signs its events: whsec_ and the base64 of 24 to 64 random bytes", check_file) \
 X("events.webhooks",               webhook_types,               LISTS,    "", 0, 0, \
   "its events: reconcile, of clusters and nodepools that are due; states, of driver resources; " \
   "if it is not set, both", check_hook_types) \
 X("events.webhooks",               webhook_ca_files,            FILES,    "", 0, 0, \
   "PEM file of the authorities that may sign its certificate; if it is not set, those of the " \
   "system", check_file) \
 X("events.amqp.url",               events_amqp_url,             STR,      "", 0, 0, \
   "RabbitMQ broker that gets the events of clusters and nodepools: amqps://USER@HOST:PORT/VHOST; " \
   "empty: none", check_amqp) \
 X("events.amqp.password_file",     events_amqp_password_file,   STR,      "", 0, 0, \
   "file with the password of the user in events.amqp.url; read at each connection; empty: guest") \
 X("events.amqp.ca_file",           events_amqp_ca_file,         STR,      "", 0, 0, \
   "PEM file of the authorities that may sign the broker's certificate; empty: those of the system") \
 X("events.amqp.exchange.cluster",  events_amqp_exchange_cluster, STR,     "hyperfleet-clusters", 0, 0, \
   "exchange of the events of clusters; durable, of type topic; made if it is missing", check_exchange) \
 X("events.amqp.exchange.nodepool", events_amqp_exchange_nodepool, STR,    "hyperfleet-nodepools", 0, 0, \
   "exchange of the events of nodepools, likewise", check_exchange) \
 X("fleet.identity_header",         fleet_identity_header,       STR,      "", 0, 0, \
   "request header with the caller's name for created_by, updated_by and deleted_by; it " \
   "counts from http.trusted_proxies only; empty: none", check_header) \
 X("fleet.spec_schema",             fleet_spec_schema,           STR,      "", 0, 0, \
   "OpenAPI 3.0 file (YAML or JSON) with the schemas ClusterSpec and NodePoolSpec, which " \
   "every `spec` must match; empty: any object") \
 X("metrics.reconciliation_stuck_threshold", reconciliation_stuck_us, DURATION, "10m", 1, 2592000, \
   "a cluster or nodepool that is not reconciled for longer is counted by " \
   "hyperfleet_api_resource_pending_reconciliation_stuck") \
 X("remote.token_file",             remote_token_file,           STR,      "", 0, 0, \
   "file with the bearer token for the remote; read again when it changes and after a 401; " \
   "empty: no token") \
 X("remote.ca_file",                remote_ca_file,              STR,      "", 0, 0, \
   "PEM file of the authorities that may sign the remote's certificate; empty: those of the " \
   "system") \
 X("remote.cert_file",              remote_cert_file,            STR,      "", 0, 0, \
   "PEM file of the client certificate and its chain; empty: no client certificate") \
 X("remote.key_file",               remote_key_file,             STR,      "", 0, 0, \
   "PEM file of the private key of the client certificate, not encrypted") \
 X("remote.identity_header",        remote_identity_header,      STR,      "", 0, 0, \
   "request header that names the caller to the remote; empty: none", check_own_header) \
 X("remote.identity",               remote_identity,             STR,      "", 0, 0, \
   "value of remote.identity_header", check_header_value) \
 X("remote.connect_timeout",        remote_connect_timeout_us,   DURATION, "5s", 1, 300, \
   "time to connect to the remote, including TLS") \
 X("remote.timeout",                remote_timeout_us,           DURATION, "15s", 1, 3600, \
   "time for a whole request to the remote") \
 X("remote.in_flight_max",          remote_in_flight_max,        I64,      "16", 1, 256, \
   "resources processed with the remote at the same time, with one request each") \
 X("remote.per_second_max",         remote_per_second_max,       I64,      "50", 1, 10000, \
   "requests per second to the remote") \
 X("remote.answer_max",             remote_answer_max_bytes,     BYTES,    "16MiB", 65536, 268435456, \
   "largest response that is read from the remote") \
 X("remote.watch",                  remote_watch_us,             DURATION, "5s", 1, 3600, \
   "how often a resource is observed while an operation is in progress") \
 X("remote.fresh",                  remote_fresh_us,             DURATION, "2s", 1, 3600, \
   "a poll starts an observation if the last one is older than this") \
 X("remote.idle",                   remote_idle_us,              DURATION, "5m", 1, 86400, \
   "how often a resource is observed while no operation is in progress") \
 X("remote.retry_min",              remote_retry_min_us,         DURATION, "1s", 1, 3600, \
   "first pause after a failed pass; it doubles, with jitter") \
 X("remote.retry_max",              remote_retry_max_us,         DURATION, "60s", 1, 86400, \
   "longest pause after failed passes") \
 X("hypershift.kubeconfig",         hypershift_kubeconfig,       STR,      "", 0, 0, \
   "kubeconfig file of the management cluster, or in-cluster: the built-in HyperShift adapter " \
   "makes the clusters there; empty: no such adapter") \
 X("hypershift.management",         hypershift_management,       FILES,    "", 0, 0, \
   "kubeconfig file of a further management cluster, or in-cluster; spec.management of an order " \
   "chooses it by NAME, and hypershift.kubeconfig is named default", check_kubeconfig) \
 X("hypershift.namespace",          hypershift_namespace,        STR,      "clusters", 0, 0, \
   "namespace of HostedClusters and NodePools whose order names none; made if it is missing", check_namespace) \
 X("hypershift.release_image",      hypershift_release_image,    STR,      "", 0, 0, \
   "OpenShift release image of clusters whose order names none") \
 X("hypershift.base_domain",        hypershift_base_domain,      STR,      "", 0, 0, \
   "DNS domain of clusters whose order names none") \
 X("hypershift.pull_secret_file",   hypershift_pull_secret_file, STR,      "", 0, 0, \
   "file with the pull secret of clusters whose order brings none") \
 X("hypershift.nodeport_address",   hypershift_nodeport_address, STR,      "", 0, 0, \
   "address of the services of clusters on platforms None and Agent whose order has no services", check_node_address) \
 X("hypershift.list_secrets",       hypershift_list_secrets,     BOOL,     "off", 0, 0, \
   "also find Secrets of ours whose cluster is gone; the account needs the right to list Secrets") \
 X("hypershift.retry_min",          hypershift_retry_min_us,     DURATION, "5s", 1, 60, \
   "first pause after a failed call; it doubles up to 60 s. Also the pause between looks at what " \
   "is not ready, while changes are not watched") \
 X("hypershift.timeout",            hypershift_timeout_us,       DURATION, "30s", 1, 3600, \
   "time for one whole call to the API server of a management cluster") \
 X("hypershift.refusal_grace",      hypershift_refusal_grace_us, DURATION, "60s", 0, 86400, \
   "how long a condition of HyperShift that refuses an order has to hold until it counts, from " \
   "when it was first seen; 0s: at once") \
 X("hypershift.resync",             hypershift_resync_us,        DURATION, "10m", 1, 86400, \
   "how often each object on the management cluster is looked at, whatever happens") \
 X("driver.types.cluster",          types_cluster,               LIST,     "[hyperfleet-cluster]", 0, 0, \
   "resource types served as clusters; `org/` in front of a type is ignored", check_type) \
 X("driver.types.nodepool",         types_nodepool,              LIST,     "[hyperfleet-nodepool]", 0, 0, \
   "resource types served as nodepools; `org/` in front of a type is ignored", check_type) \
 X("driver.paths.cluster",          path_cluster,                STR,      "clusters", 0, 0, \
   "path prefix of clusters: /{driver}/{GUResID}", check_path) \
 X("driver.paths.nodepool",         path_nodepool,               STR,      "nodepools", 0, 0, \
   "path prefix of nodepools", check_path) \
 X("driver.resource_overrides",     resource_overrides,          LIST,     "[]", 0, 0, \
   "fields of driver.values that `resource` may override, as dotted paths: " \
   "cluster.spec.region; null and empty strings override nothing", check_dotted_path) \
 X("driver.protect_labels",         protect_labels,              LIST,     "[]", 0, 0, \
   "labels of an order that protect its resource from deletion, as key=value", check_label) \
 X("driver.terminal_reasons",       terminal_reasons,            LIST, \
   "[ValidationFailed, InvalidConfiguration, InvalidSpec, InvalidManifest, InvalidImage, " \
   "InvalidCredentials, InvalidPullSecret, UnsupportedVersion, UnsupportedRegion, " \
   "UnsupportedPlatform, QuotaExceeded, PermissionDenied, " \
   "UnsupportedHostedCluster, PlatformCredentialsNotFound, ApplyConflict, NotOurs]", \
   0, 0, \
   "reasons of Applied=False or Available=False that fail an operation with RES-104: REASON " \
   "of any adapter, ADAPTER:REASON of one", check_reason) \
 X("driver.drift",                  drift,                       STR,      "report", 0, 0, \
   "when others changed a resource in HyperFleet: report shows it, repair mends it as well, " \
   "ignore does nothing", check_drift) \
 X("driver.drift_ignore",           drift_ignore,                LIST,     "[]", 0, 0, \
   "fields that others may change, as nodepool.spec.replicas for an autoscaler: neither shown nor " \
   "mended, and kept by an order that does not change them", check_part_path) \
 X("driver.deadline.create",        deadline_create_us,          DURATION, "1h", 1, 2592000, \
   "time after which a creation fails with RES-105") \
 X("driver.deadline.update",        deadline_update_us,          DURATION, "1h", 1, 2592000, \
   "time after which an update fails with RES-105") \
 X("driver.deadline.delete",        deadline_delete_us,          DURATION, "1h", 1, 2592000, \
   "time after which a deletion fails with RES-105; the deletion itself continues") \
 X("driver.deadline.nodepool.create", deadline_nodepool_create_us, DURATION, "0s", 0, 2592000, \
   "driver.deadline.create for nodepool resources; 0s: the same as for clusters") \
 X("driver.deadline.nodepool.update", deadline_nodepool_update_us, DURATION, "0s", 0, 2592000, \
   "driver.deadline.update for nodepool resources; 0s: the same as for clusters") \
 X("driver.deadline.nodepool.delete", deadline_nodepool_delete_us, DURATION, "0s", 0, 2592000, \
   "driver.deadline.delete for nodepool resources; 0s: the same as for clusters") \
 X("driver.estimate.create",        estimate_create_us,          DURATION, "15m", 1, 2592000, \
   "expected duration of a creation; if it is not set, at most driver.deadline.create") \
 X("driver.estimate.update",        estimate_update_us,          DURATION, "10m", 1, 2592000, \
   "expected duration of an update; if it is not set, at most driver.deadline.update") \
 X("driver.estimate.delete",        estimate_delete_us,          DURATION, "10m", 1, 2592000, \
   "expected duration of a deletion; if it is not set, at most driver.deadline.delete") \
 X("driver.tombstone",              tombstone_us,                DURATION, "168h", 0, 31536000, \
   "time that the history of a removed resource is kept, for at most 10000 of them; 0s: it ends " \
   "with the resource") \
 X("driver.outputs.values",         output_values,               MAP,      "", 0, 0, \
   "additional output values: NAME: ADAPTER:/json/pointer into the data of the adapter's " \
   "report") \
 X("driver.outputs.secrets",        output_secrets,              MAP,      "", 0, 0, \
   "additional output secrets: NAME: ADAPTER:/json/pointer, usually into data.secrets") \
 X("driver.outputs.manifests",      output_manifests,            STR,      "", 0, 0, \
   "manifests of the output: ADAPTER:/json/pointer to an array of objects with location and data " \
   "in the data of the adapter's report; empty: none", check_rule)
/* clang-format on */

#define HFD_CTYPE_STR hfd_slice
#define HFD_CTYPE_I64 int64_t
#define HFD_CTYPE_BYTES int64_t
#define HFD_CTYPE_DURATION int64_t
#define HFD_CTYPE_LIST struct hfd_list
#define HFD_CTYPE_MAP struct hfd_map
#define HFD_CTYPE_FILES struct hfd_map
#define HFD_CTYPE_TEXTS struct hfd_map
#define HFD_CTYPE_LISTS struct hfd_map
#define HFD_CTYPE_DEMO int64_t
#define HFD_CTYPE_BOOL bool
#define HFD_CTYPE_LEVEL enum hfd_log_level
/* One name per row: HFD_SETTING_listen, HFD_SETTING_estimate_create_us, ... */
#define HFD_SETTING_ENUM_(key, member, ...) HFD_SETTING_##member,
enum hfd_setting {
    HFD_SETTING_LIST(HFD_SETTING_ENUM_) HFD_SETTING_COUNT
};
#undef HFD_SETTING_ENUM_

#define HFD_SETTING_MEMBER_(key, member, type, ...) HFD_CTYPE_##type member;
struct hfd_settings {
    HFD_SETTING_LIST(HFD_SETTING_MEMBER_)
    hfd_slice origin[HFD_SETTING_COUNT]; /* "hfd.yaml:3", "HFD_LISTEN", "--listen"; empty = the
                                            default holds */
    hfd_slice file;                      /* the file that was read; empty = none */
    hfd_slice links; /* variables that were ignored, as Kubernetes makes them: "HFD_PORT, ..." */
    hfd_slice unused_data; /* HFD_DATA beside a PostgreSQL store: images and charts set it */
    struct hfd_arena mem;  /* owns all of the above */
};
#undef HFD_SETTING_MEMBER_
/* demo_us: -1 = off */

/** When a running server reads a file of a setting again. */
enum hfd_setting_reads {
    HFD_READS_CHANGES, /* when it changes, and at SIGHUP */
    HFD_READS_HANGUP,  /* at SIGHUP */
    HFD_READS_USES,    /* each time that it is needed */
    HFD_READS_STARTS   /* at a start only: SIGHUP logs that it has changed */
};

/** A setting that names a file. */
struct hfd_setting_file {
    enum hfd_setting which;
    enum hfd_setting_reads reads;
    const char *more; /* for the manual; "" = nothing to add */
};
extern const struct hfd_setting_file hfd_setting_files[];
extern const size_t hfd_setting_file_count;

/** The key of a setting: "tls.cert_file". */
const char *hfd_setting_key(enum hfd_setting which);
/** The path in a setting of hfd_setting_files that is one text. */
hfd_slice hfd_setting_path(const struct hfd_settings *s, enum hfd_setting which);

/** The file of an installed program, if neither --config nor HFD_CONFIG names one. */
#define HFD_SETTINGS_FILE "/etc/hyperfleet-driver/hyperfleet-driver.yaml"

/**
 * Loads the settings: defaults, then a YAML file, then HFD_*, then flags. The file is --config
 * FILE, else HFD_CONFIG, else HFD_SETTINGS_FILE if the program is installed and it exists. A later
 * value replaces a list as a whole; maps are merged by name.
 * @param argv  the flags behind the command: --key VALUE, --key=VALUE; --demo takes a value with
 *              '=' only
 * @param env   NULL-terminated "K=V"; every HFD_* must be a setting
 * @param out   gives on HFD_OK; free with hfd_settings_free
 * @return HFD_OK, HFD_INVALID (err->field is the key; the message names file and line, variable or
 *         flag), HFD_IO, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_settings_load(int argc, const char *const *argv, const char *const *env,
                                        struct hfd_settings **out, struct hfd_err *err);
/** Frees settings; accepts NULL. */
void hfd_settings_free(struct hfd_settings *s);

/** Returns where the setting of a key was given: file and line, variable or flag; empty if nowhere.
 */
hfd_slice hfd_settings_origin(const struct hfd_settings *s, const char *key);

/** Returns true if a file, the environment or a flag gave the setting. */
static inline bool hfd_settings_is_set(const struct hfd_settings *s, enum hfd_setting which)
{
    return s->origin[which].len > 0;
}

/**
 * Says what a setting that is set lacks to have an effect: "hypershift.kubeconfig". Static.
 * @return NULL if it has one, or is not set
 */
const char *hfd_settings_lacks(const struct hfd_settings *s, enum hfd_setting which);

/** Returns true if `store` is the URL of a PostgreSQL database. Then there is no data folder. */
static inline bool hfd_settings_has_postgres(const struct hfd_settings *s)
{
    return hfd_pgurl_is(s->store);
}

/**
 * Fails with the place and the key of a setting in front of the message. For checks that need more
 * than one value.
 * @return HFD_INVALID; err->field is the key
 */
HFD_MUST_CHECK hfd_rc hfd_settings_refuse(const struct hfd_settings *s, enum hfd_setting which,
                                          struct hfd_err *err, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

#endif
