#include "store/postgres/connect.h"

#include "driver/base/check.h"
#include "driver/base/clock.h"
#include "driver/base/log.h"
#include "store/postgres/fail.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#define CONNECT_US_DEFAULT (3 * HFD_US_PER_S)
#define KEYWORDS_MAX 64
#define VALUE_BYTES_MAX 512
#define PASSWORD_BYTES_MAX 1024

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
    char password[PASSWORD_BYTES_MAX];
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

static hfd_rc read_password(const char *path, char out[PASSWORD_BYTES_MAX], struct hfd_err *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    ssize_t n = fd >= 0 ? read(fd, out, PASSWORD_BYTES_MAX - 1) : -1;
    const int why = errno;

    if (fd >= 0)
        (void)close(fd);
    if (n < 0)
        return hfd_fail(err, HFD_IO, "store.password_file: read %.100s: %s", path, strerror(why));
    while (n > 0 && (out[n - 1] == '\n' || out[n - 1] == '\r'))
        n--;
    out[n] = '\0';
    if (n == 0)
        return hfd_fail(err, HFD_INVALID, "store.password_file: %.100s holds no password", path);
    return HFD_OK;
}

static hfd_rc poll_once(PGconn *conn, PostgresPollingStatusType wanted, int64_t until_us)
{
    struct pollfd p = {.fd = PQsocket(conn),
                       .events = wanted == PGRES_POLLING_WRITING ? POLLOUT : POLLIN};
    const int64_t left_us = until_us - hfd_clock_mono_us(&hfd_clock_system);
    const int ready = left_us > 0 ? poll(&p, 1, (int)(left_us / 1000 + 1)) : 0;

    return ready > 0 || (ready < 0 && errno == EINTR) ? HFD_OK : HFD_TIMEOUT;
}

/* The server refused: words of its own come with a SQLSTATE that libpq does not give. */
static hfd_rc refused(const char *said, struct hfd_err *err)
{
    const bool ours =
        strstr(said, "password authentication failed") != NULL ||
        strstr(said, "no password supplied") != NULL ||
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

static hfd_rc reach_host(struct hfd_db *db, const struct attempt *a, struct hfd_err *err)
{
    const int64_t wait_us =
        db->place.connect_timeout_us > 0 ? db->place.connect_timeout_us : CONNECT_US_DEFAULT;
    const int64_t until_us = hfd_clock_mono_us(&hfd_clock_system) + wait_us;
    PostgresPollingStatusType wanted = PGRES_POLLING_WRITING;
    hfd_rc rc;

    db->conn = PQconnectStartParams(a->keys, a->values, 0);
    if (db->conn == NULL)
        return hfd_fail_nomem(err, "connect to PostgreSQL");
    (void)PQsetNoticeReceiver(db->conn, on_notice, NULL);
    while (PQstatus(db->conn) != CONNECTION_BAD && wanted != PGRES_POLLING_OK &&
           wanted != PGRES_POLLING_FAILED) {
        if (poll_once(db->conn, wanted, until_us) != HFD_OK)
            return hfd_fail(err, HFD_AWAY,
                            "store: PostgreSQL on %.60s does not answer within "
                            "store.connect_timeout",
                            a->host[0] != '\0' ? a->host : "the local socket");
        wanted = PQconnectPoll(db->conn);
    }
    rc = PQstatus(db->conn) == CONNECTION_OK ? HFD_OK : refused(PQerrorMessage(db->conn), err);
    if (rc == HFD_OK && PQsetnonblocking(db->conn, 1) != 0)
        rc = hfd_fail_nomem(err, "connect to PostgreSQL");
    return rc;
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

static hfd_rc reach_any(struct hfd_db *db, struct attempt *a, const PQconninfoOption *options,
                        struct hfd_err *err)
{
    const unsigned hosts = count_hosts(options);
    const unsigned first = db->host;
    hfd_rc rc = hfd_fail(err, HFD_INVALID, "store: the URL has more ports than hosts");

    HFD_ASSERT(hosts > 0);
    for (unsigned i = 0; i < hosts; i++) {
        db->host = (first + i) % hosts;
        if (!fill(a, db, options, db->host))
            return hfd_fail(err, HFD_INVALID,
                            "store: the URL has another number of ports than of hosts");
        rc = reach_host(db, a, err);
        if (rc == HFD_OK || rc == HFD_NOMEM)
            return rc;
        PQfinish(db->conn); /* not connected: it has nothing to send */
        db->conn = NULL;
    }
    db->host = (first + 1) % hosts;
    return rc;
}

hfd_rc hfd_pg_reach(struct hfd_db *db, struct hfd_err *err)
{
    PQconninfoOption *options = PQconninfoParse(db->place.url, NULL);
    struct attempt *a = calloc(1, sizeof(*a));
    hfd_rc rc = HFD_OK;

    if (a == NULL)
        rc = hfd_fail_nomem(err, "connect to PostgreSQL");
    else if (options == NULL) /* libpq's message may show the password */
        rc =
            hfd_fail(err, HFD_INVALID,
                     "store: this is no URL of PostgreSQL: expected postgres://USER@HOST/DATABASE");
    else if (db->place.password_file != NULL)
        rc = read_password(db->place.password_file, a->password, err);
    if (rc == HFD_OK)
        rc = reach_any(db, a, options, err);
    if (a != NULL)
        explicit_bzero(a, sizeof(*a));
    free(a);
    PQconninfoFree(options);
    return rc;
}
