#include "store/postgres/connect.h"

#include "driver/base/check.h"
#include "driver/base/clock.h"
#include "driver/base/log.h"
#include "store/postgres/fail.h"
#include "store/postgres/password.h"

#include <poll.h>
#include <unistd.h>

#define CONNECT_US_DEFAULT (3 * HFD_US_PER_S)
#define TURN_US (HFD_US_PER_S / 4)  /* then the next host is asked, beside one that is silent */
#define AGAIN_US (HFD_US_PER_S / 2) /* then one that refused is asked again */
#define KEYWORDS_MAX 64
#define VALUE_BYTES_MAX 512

bool hfd_pg_list_item(hfd_slice list, unsigned at, hfd_slice *out)
{
    const bool one = list.len == 0 || memchr(list.p, ',', list.len) == NULL;

    for (unsigned i = 0; !one && i < at; i++) {
        const char *comma = memchr(list.p, ',', list.len);

        if (comma == NULL)
            return false;
        list.len -= (size_t)(comma + 1 - list.p);
        list.p = comma + 1;
    }
    *out = list;
    if (!one) {
        const char *comma = list.len > 0 ? memchr(list.p, ',', list.len) : NULL;

        out->len = comma != NULL ? (size_t)(comma - list.p) : list.len;
    }
    return true;
}

/* The keywords of one attempt to connect. */
struct attempt {
    const char *keys[KEYWORDS_MAX + 1];
    const char *values[KEYWORDS_MAX + 1];
    size_t count;
    char host[VALUE_BYTES_MAX], hostaddr[VALUE_BYTES_MAX], port[VALUE_BYTES_MAX];
    char password[HFD_PG_PASSWORD_MAX];
};

static void add(struct attempt *a, const char *key, const char *value)
{
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->keys[i], key) == 0) {
            a->values[i] = value;
            return;
        }
    if (a->count < KEYWORDS_MAX) {
        a->keys[a->count] = key;
        a->values[a->count++] = value;
    }
}

/* Sets a keyword to the item of this host. @return false: there is no such host */
static bool add_item(struct attempt *a, const PQconninfoOption *option, unsigned host, char *place)
{
    hfd_slice item;

    if (!hfd_pg_list_item(hfd_slice_of(option->val), host, &item) || item.len >= VALUE_BYTES_MAX)
        return false;
    (void)snprintf(place, VALUE_BYTES_MAX, "%.*s", HFD_SLICE_FMT(item));
    add(a, option->keyword, place);
    return true;
}

static bool add_option(struct attempt *a, const PQconninfoOption *option, unsigned host)
{
    if (option->val == NULL)
        return true;
    if (strcmp(option->keyword, "host") == 0)
        return add_item(a, option, host, a->host);
    if (strcmp(option->keyword, "hostaddr") == 0)
        return add_item(a, option, host, a->hostaddr);
    if (strcmp(option->keyword, "port") == 0)
        return add_item(a, option, host, a->port);
    add(a, option->keyword, option->val);
    return true;
}

/* Returns how many hosts the URL has. */
static unsigned count_hosts(const PQconninfoOption *options)
{
    unsigned most = 1;

    for (const PQconninfoOption *o = options; o->keyword != NULL; o++) {
        unsigned n = 1;

        if (o->val == NULL ||
            (strcmp(o->keyword, "host") != 0 && strcmp(o->keyword, "hostaddr") != 0))
            continue;
        for (const char *c = o->val; *c != '\0'; c++)
            n += *c == ',';
        most = n > most ? n : most;
    }
    return most;
}

/*
 * The server refused: words of its own come with a SQLSTATE that libpq does not give. A word of the
 * URL that libpq does not know is an "invalid sslmode value".
 */
static hfd_rc refused(const char *said, struct hfd_err *err)
{
    const bool ours =
        strstr(said, "password authentication failed") != NULL ||
        strstr(said, "no password supplied") != NULL ||
        (strncmp(said, "invalid ", 8) == 0 && strstr(said, " value: \"") != NULL) ||
        (strstr(said, "database \"") != NULL && strstr(said, "\" does not exist") != NULL) ||
        (strstr(said, "role \"") != NULL && strstr(said, "\" does not exist") != NULL);
    char line[200];

    hfd_pg_line(said, line, sizeof(line));
    return hfd_fail(err, ours ? HFD_INVALID : HFD_AWAY, "store: %s", line);
}

/* Logs warnings of the server. Words about a schema that is being made would be noise. */
static void on_notice(void *ctx, const PGresult *notice)
{
    const char *severity = PQresultErrorField(notice, PG_DIAG_SEVERITY_NONLOCALIZED);
    char line[200];

    (void)ctx;
    if (severity == NULL || strcmp(severity, "WARNING") != 0)
        return;
    hfd_pg_line(PQresultErrorField(notice, PG_DIAG_MESSAGE_PRIMARY), line, sizeof(line));
    HFD_LOG(HFD_LOG_WARN, "postgresql", HFD_LOG_CSTR("text", line));
}

/* Fills in what an attempt is made with. @return false: the URL has no such host */
static bool fill(struct attempt *a, const struct hfd_db *db, const PQconninfoOption *options,
                 unsigned host)
{
    a->count = 0;
    a->host[0] = '\0';
    add(a, "target_session_attrs", "read-write");
    add(a, "application_name", "hyperfleet-driver");
    for (const PQconninfoOption *o = options; o->keyword != NULL; o++)
        if (!add_option(a, o, host))
            return false;
    add(a, "client_encoding", "UTF8");
    if (db->place.password_file != NULL)
        add(a, "password", a->password);
    a->keys[a->count] = NULL;
    a->values[a->count] = NULL;
    return true;
}

/* ---- all hosts ---- */

/* A host of the URL, in the order in which they are asked. */
struct host {
    PGconn *conn; /* NULL = it is not asked now */
    PostgresPollingStatusType wanted;
    int64_t ask_us;     /* mono: when it is asked next */
    int64_t until_us;   /* mono: when its attempt ends */
    bool asked, failed; /* once */
    struct hfd_err err;
};

struct reach {
    struct hfd_db *db;
    const PQconninfoOption *options;
    struct host *host;
    struct pollfd *polled;
    unsigned hosts;
    struct attempt attempt;
};

/* Ends the attempt. A silent host is not asked again, one that refused is. The next one begins. */
static void end_attempt(struct reach *r, struct host *h, int64_t again_us)
{
    PQfinish(h->conn); /* not connected: it has nothing to send */
    h->conn = NULL;
    h->failed = true;
    h->ask_us = again_us;
    for (unsigned i = 0; i < r->hosts; i++)
        if (!r->host[i].asked) {
            r->host[i].ask_us = 0;
            return;
        }
}

/* Goes on with an attempt. @return whether the host can be used */
static bool go_on(struct reach *r, struct host *h, int64_t now_us)
{
    if (PQstatus(h->conn) != CONNECTION_BAD)
        h->wanted = PQconnectPoll(h->conn);
    if (PQstatus(h->conn) == CONNECTION_OK && h->wanted == PGRES_POLLING_OK)
        return true;
    if (PQstatus(h->conn) == CONNECTION_BAD || h->wanted == PGRES_POLLING_FAILED) {
        (void)refused(PQerrorMessage(h->conn), &h->err);
        end_attempt(r, h, now_us + AGAIN_US);
    }
    return false;
}

static hfd_rc ask(struct reach *r, unsigned at, int64_t now_us, struct hfd_err *err)
{
    const int64_t wait_us = r->db->place.connect_timeout_us;
    struct host *h = &r->host[at];

    if (!fill(&r->attempt, r->db, r->options, (r->db->host + at) % r->hosts))
        return hfd_fail(err, HFD_INVALID,
                        "store: the URL has another number of ports than of hosts");
    h->conn = PQconnectStartParams(r->attempt.keys, r->attempt.values, 0);
    if (h->conn == NULL)
        return hfd_fail_nomem(err, "connect to PostgreSQL");
    (void)PQsetNoticeReceiver(h->conn, on_notice, NULL);
    h->asked = true;
    h->wanted = PGRES_POLLING_WRITING;
    h->until_us = now_us + (wait_us > 0 ? wait_us : CONNECT_US_DEFAULT);
    if (PQstatus(h->conn) == CONNECTION_BAD)
        (void)go_on(r, h, now_us);
    return HFD_OK;
}

/* Begins and ends attempts, by the time. @return not HFD_OK: nothing is left to try */
static hfd_rc take_turns(struct reach *r, int64_t now_us, struct hfd_err *err)
{
    unsigned failed = 0;

    for (unsigned i = 0; i < r->hosts; i++) {
        struct host *h = &r->host[i];
        hfd_rc rc = HFD_OK;

        if (h->conn == NULL && h->ask_us <= now_us)
            rc = ask(r, i, now_us, err);
        if (rc != HFD_OK)
            return rc;
        if (h->conn != NULL && h->until_us <= now_us) {
            (void)hfd_fail(&h->err, HFD_AWAY,
                           "store: PostgreSQL on %.60s does not answer within "
                           "store.connect_timeout",
                           PQhost(h->conn));
            end_attempt(r, h, INT64_MAX);
        }
        failed += h->failed;
    }
    if (failed < r->hosts)
        return HFD_OK;
    *err = r->host[r->hosts - 1].err;
    return err->rc;
}

/* Waits until an attempt goes on, or a time has come. */
static void wait_any(struct reach *r, int64_t now_us)
{
    int64_t until_us = INT64_MAX;

    for (unsigned i = 0; i < r->hosts; i++) {
        const struct host *h = &r->host[i];
        const int64_t due_us = h->conn != NULL ? h->until_us : h->ask_us;

        until_us = due_us < until_us ? due_us : until_us;
        r->polled[i] =
            (struct pollfd){.fd = h->conn != NULL ? PQsocket(h->conn) : -1,
                            .events = h->wanted == PGRES_POLLING_WRITING ? POLLOUT : POLLIN};
    }
    if (until_us > now_us)
        (void)poll(r->polled, r->hosts, (int)((until_us - now_us) / 1000 + 1));
    else
        (void)poll(r->polled, r->hosts, 0);
}

/* Takes the first host that can be used. @return whether there is one */
static bool take_any(struct reach *r)
{
    const int64_t now_us = hfd_clock_mono_us(&hfd_clock_system);

    for (unsigned i = 0; i < r->hosts; i++) {
        struct host *h = &r->host[i];

        if (h->conn == NULL || r->polled[i].revents == 0 || !go_on(r, h, now_us))
            continue;
        r->db->conn = h->conn;
        h->conn = NULL;
        r->db->host = (r->db->host + i) % r->hosts;
        return true;
    }
    return false;
}

static hfd_rc reach_any(struct reach *r, struct hfd_err *err)
{
    const int64_t began_us = hfd_clock_mono_us(&hfd_clock_system);
    hfd_rc rc;

    r->host = calloc(r->hosts, sizeof(*r->host));
    r->polled = calloc(r->hosts, sizeof(*r->polled));
    rc = r->host != NULL && r->polled != NULL ? HFD_OK
                                              : hfd_fail_nomem(err, "connect to PostgreSQL");
    for (unsigned i = 0; rc == HFD_OK && i < r->hosts; i++)
        r->host[i].ask_us = began_us + i * TURN_US;
    while (rc == HFD_OK) {
        const int64_t now_us = hfd_clock_mono_us(&hfd_clock_system);

        rc = take_turns(r, now_us, err);
        if (rc != HFD_OK)
            break;
        wait_any(r, now_us);
        if (take_any(r))
            break;
    }
    for (unsigned i = 0; r->host != NULL && i < r->hosts; i++)
        PQfinish(r->host[i].conn);
    if (rc == HFD_OK && PQsetnonblocking(r->db->conn, 1) != 0)
        rc = hfd_fail_nomem(err, "connect to PostgreSQL");
    free(r->host);
    free(r->polled);
    return rc;
}

hfd_rc hfd_pg_reach(struct hfd_db *db, struct hfd_err *err)
{
    PQconninfoOption *options = PQconninfoParse(db->place.url, NULL);
    struct reach *r = calloc(1, sizeof(*r));
    hfd_rc rc = HFD_OK;

    if (r == NULL)
        rc = hfd_fail_nomem(err, "connect to PostgreSQL");
    else if (options == NULL) /* libpq's message may show the password */
        rc =
            hfd_fail(err, HFD_INVALID,
                     "store: this is no URL of PostgreSQL: expected postgres://USER@HOST/DATABASE");
    else if (db->place.password_file != NULL)
        rc = hfd_pg_password_read(db->place.password_file, r->attempt.password, err);
    if (rc == HFD_OK) {
        r->db = db;
        r->options = options;
        r->hosts = count_hosts(options);
        rc = reach_any(r, err);
    }
    if (r != NULL)
        explicit_bzero(r, sizeof(*r));
    free(r);
    PQconninfoFree(options);
    return rc;
}
