/* See order.h. */
#include "handlers/client/order.h"

#include "driver/base/buf.h"
#include "driver/base/clock.h"
#include "driver/base/file.h"
#include "driver/base/foreign.h"
#include "driver/base/jsonx.h"
#include "driver/base/utf8.h"
#include "handlers/client/http.h"

#include <jansson.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* ---- state ---- */

/* The longest cookie: the limit of the Driver API. */
#define HFD_CLIENT_COOKIE_MAX_BYTES ((size_t)10240)
#define STATE_MAX_BYTES ((size_t)64 * 1024 * 1024)
#define SUFFIX_MAX 16
/* The share of one driver, so that it leaves room for others. */
#define DRIVER_MAX_BYTES ((size_t)8 * 1024 * 1024)
#define ENTRY_BYTES 16 /* quotes and the like */

hfd_rc hfd_client_state_find(const char *path, struct hfd_client_state *out, struct hfd_err *err)
{
    const char *home = getenv("XDG_STATE_HOME");
    int n;

    if (path != NULL)
        n = snprintf(out->path, sizeof(out->path), "%s", path);
    else if (home != NULL && home[0] == '/')
        n = snprintf(out->path, sizeof(out->path), "%s/hyperfleet-driver/cookies.json", home);
    else if ((home = getenv("HOME")) != NULL && home[0] == '/')
        n = snprintf(out->path, sizeof(out->path), "%s/.local/state/hyperfleet-driver/cookies.json",
                     home);
    else
        return hfd_fail(err, HFD_INVALID, "there is no home folder: expected --state FILE");
    if (n < 0 || (size_t)n >= sizeof(out->path))
        return hfd_fail(err, HFD_INVALID, "the path of the state file is too long");
    return HFD_OK;
}

static hfd_rc fail_errno(struct hfd_err *err, const char *what, const char *path)
{
    return hfd_fail(err, HFD_IO, "%s %s: %s", what, path, strerror(errno));
}

/* Reads the document; an empty one when there is no file. */
static hfd_rc load(const struct hfd_client_state *state, json_t **out, struct hfd_err *err)
{
    struct hfd_err why;
    struct hfd_buf b;
    hfd_rc rc;

    *out = NULL;
    hfd_buf_init(&b, STATE_MAX_BYTES);
    rc = hfd_file_read_own(state->path, "state file", &b, err);
    if (rc == HFD_NOT_FOUND) {
        *out = json_object();
        return *out != NULL ? HFD_OK : hfd_fail_nomem(err, "read the state file");
    }
    if (rc == HFD_OK && hfd_json_parse(hfd_buf_slice(&b), out, &why) != HFD_OK)
        rc = hfd_fail(err, HFD_INVALID, "state file %s: %s", state->path, why.msg);
    if (rc == HFD_OK && !json_is_object(*out)) {
        json_decref(*out);
        *out = NULL;
        rc = hfd_fail(err, HFD_INVALID, "state file %s: expected an object", state->path);
    }
    hfd_buf_fini(&b);
    return rc;
}

hfd_rc hfd_client_state_read(const struct hfd_client_state *state,
                             const struct hfd_client_resource *resource, struct hfd_buf *out,
                             struct hfd_err *err)
{
    json_t *doc, *cookie;
    hfd_rc rc = load(state, &doc, err);

    if (rc != HFD_OK)
        return rc;
    cookie = json_object_get(json_object_get(doc, resource->url), resource->id);
    if (json_string_length(cookie) > HFD_CLIENT_COOKIE_MAX_BYTES)
        rc = hfd_fail(err, HFD_INVALID, "state file %s: the cookie of %s has more than %zu bytes",
                      state->path, resource->id, HFD_CLIENT_COOKIE_MAX_BYTES);
    else
        hfd_buf_add(out, hfd_slice_of(json_string_value(cookie)));
    json_decref(doc);
    return out->rc == HFD_OK ? rc : hfd_fail_nomem(err, "read the state file");
}

/* Makes the folders above a file, for this user alone. */
static hfd_rc make_folders(const char *path, struct hfd_err *err)
{
    char folder[HFD_CLIENT_PATH_MAX];

    (void)snprintf(folder, sizeof(folder), "%s", path);
    for (char *p = strchr(folder + 1, '/'); p != NULL; p = strchr(p + 1, '/')) {
        *p = '\0';
        if (mkdir(folder, 0700) != 0 && errno != EEXIST)
            return fail_errno(err, "create", folder);
        *p = '/';
    }
    return HFD_OK;
}

/* Replaces the file: the new one is whole before it has the name. */
static hfd_rc replace(const struct hfd_client_state *state, const json_t *doc, struct hfd_err *err)
{
    struct hfd_buf b;
    hfd_slice text;
    hfd_rc rc;

    hfd_buf_init(&b, STATE_MAX_BYTES);
    hfd_json_dump(&b, doc);
    rc = hfd_buf_finish(&b, &text, err);
    if (rc == HFD_OK)
        rc = hfd_file_replace(state->path, "state file", text, err);
    hfd_buf_fini(&b);
    return rc;
}

/* True for characters without controls. */
static bool is_text(hfd_slice s)
{
    for (size_t n; s.len > 0; s = (hfd_slice){s.p + n, s.len - n}) {
        n = hfd_utf8_len(s);
        if (n == 0 || (unsigned char)*s.p < ' ' || *s.p == 0x7f)
            return false;
    }
    return true;
}

/* Returns the bytes that a driver's resources take. */
static size_t size_of(const json_t *of_url)
{
    size_t n = 0;
    json_t *cookie;
    const char *id;

    json_object_foreach ((json_t *)(uintptr_t)of_url, id, cookie)
        n += strlen(id) + json_string_length(cookie) + ENTRY_BYTES;
    return n;
}

/* Checks a cookie of a driver, which is no reason to trust it. */
static hfd_rc check(const json_t *of_url, const struct hfd_client_resource *resource,
                    hfd_slice cookie, struct hfd_err *err)
{
    if (cookie.len > HFD_CLIENT_COOKIE_MAX_BYTES)
        return hfd_fail(err, HFD_LIMIT, "it has %zu bytes: expected at most %zu", cookie.len,
                        HFD_CLIENT_COOKIE_MAX_BYTES);
    if (!is_text(cookie))
        return hfd_fail(err, HFD_LIMIT, "it is no text: expected UTF-8 without controls");
    if (size_of(of_url) + strlen(resource->id) + cookie.len > DRIVER_MAX_BYTES)
        return hfd_fail(err, HFD_LIMIT,
                        "the state file has %zu MiB of cookies of this driver already: delete "
                        "resources, or give another file with --state",
                        DRIVER_MAX_BYTES / 1024 / 1024);
    return HFD_OK;
}

/*
 * Puts a cookie into the document, or takes it out. One that is not kept leaves the resource
 * there: as null, or with its older cookie.
 * @return HFD_OK, HFD_LIMIT: changed; HFD_NOMEM
 */
static hfd_rc change(json_t *doc, const struct hfd_client_resource *resource, hfd_slice cookie,
                     struct hfd_err *err)
{
    json_t *of_url = json_object_get(doc, resource->url), *value;
    hfd_rc rc;

    if (cookie.len == 0) {
        (void)json_object_del(of_url, resource->id);
        if (json_object_size(of_url) == 0)
            (void)json_object_del(doc, resource->url);
        return HFD_OK;
    }
    if (!json_is_object(of_url)) {
        of_url = json_object();
        if (json_object_set_new(doc, resource->url, of_url) != 0)
            return hfd_fail_nomem(err, "keep a cookie");
    }
    rc = check(of_url, resource, cookie, err);
    value = rc == HFD_OK ? json_stringn(cookie.p, cookie.len)
                         : json_incref(json_object_get(of_url, resource->id));
    if (value == NULL && rc != HFD_OK)
        value = json_null();
    return json_object_set_new(of_url, resource->id, value) == 0
               ? rc
               : hfd_fail_nomem(err, "keep a cookie");
}

/*
 * Stores a cookie; an empty one forgets the resource. It is on disk when this returns. A cookie is
 * not kept if it is no text, is too long, or has no room beside those of its driver. Then the
 * resource is stored without one, or keeps an older one.
 * @return as hfd_client_state_read; HFD_LIMIT: the cookie is not kept, and why
 */
static hfd_rc client_state_write(const struct hfd_client_state *state,
                                 const struct hfd_client_resource *resource, hfd_slice cookie,
                                 struct hfd_err *err)
{
    char lock[HFD_CLIENT_PATH_MAX + SUFFIX_MAX];
    json_t *doc = NULL;
    hfd_rc rc = make_folders(state->path, err), changed = HFD_OK;
    struct hfd_err flaw;
    int fd;

    if (rc != HFD_OK)
        return rc;
    (void)snprintf(lock, sizeof(lock), "%s.lock", state->path);
    rc = hfd_file_open_own(lock, "lock file", O_RDWR | O_CREAT, &fd, err);
    if (rc == HFD_OK && flock(fd, LOCK_EX) != 0)
        rc = fail_errno(err, "lock", lock);
    if (rc == HFD_OK)
        rc = load(state, &doc, err);
    if (rc == HFD_OK)
        changed = change(doc, resource, cookie, &flaw);
    if (rc == HFD_OK && changed != HFD_NOMEM)
        rc = replace(state, doc, err);
    if (rc == HFD_OK && changed != HFD_OK)
        rc = hfd_fail(err, changed, "%s", flaw.msg);
    json_decref(doc);
    if (fd >= 0)
        (void)close(fd);
    return rc;
}

/* ---- progress ---- */

#define BAR_COLUMNS 20
#define COLUMNS_DEFAULT 100
#define COLUMNS_MIN 40
#define TEXT_MAX_BYTES 1024
#define LINE_MAX_BYTES ((size_t)4 * TEXT_MAX_BYTES)

/* How an operation is shown. */
struct view {
    const char *id;
    bool terminal; /* stderr is one */
    bool shown;    /* a line is on the terminal */
    int64_t began_us;
    char last[2100]; /* the news that was printed last: two texts */
};

/* A driver that gives no answer that counts. */
struct away {
    const char *what;  /* "cannot be reached", "answers 503" */
    const char *where; /* "http://x/: Could not connect to server" */
    int64_t for_us;
};

/* Adds a text of the driver, or of the caller. */
static void add_text(struct hfd_buf *b, const char *text)
{
    char line[TEXT_MAX_BYTES];

    hfd_buf_add(b, (hfd_slice){line, hfd_foreign_line(hfd_slice_of(text), sizeof(line), line)});
}

static void add_bar(struct hfd_buf *b, const struct hfd_progress_times *times)
{
    int64_t percent = times->total_us > 0 ? times->elapsed_us * 100 / times->total_us : 0;
    int64_t full;

    percent = percent > 99 ? 99 : percent;
    full = percent * BAR_COLUMNS / 100;
    hfd_buf_lit(b, "  [");
    for (int64_t i = 0; i < BAR_COLUMNS; i++)
        hfd_buf_addc(b, i < full ? '=' : i == full ? '>' : ' ');
    hfd_buf_addf(b, "] %lld %%  ", (long long)percent);
    hfd_buf_clock(b, times->elapsed_us);
    hfd_buf_lit(b, " of ~");
    hfd_buf_clock(b, times->total_us);
}

/* Cuts a text at a column. A character has as many columns as it has leading bytes: one. */
static void cut(struct hfd_buf *b, size_t columns)
{
    size_t at = 0, count = 0;

    while (at < b->len) {
        count += ((unsigned char)b->p[at] & 0xc0) != 0x80;
        if (count > columns)
            break;
        at++;
    }
    b->len = at;
}

void hfd_progress_line(struct hfd_buf *b, const json_t *hint,
                       const struct hfd_progress_times *times, size_t columns)
{
    const char *status = hfd_json_cstr(hint, "status");

    add_text(b, status[0] != '\0' ? status : "under way");
    if (times->total_us > 0)
        add_bar(b, times);
    if (hfd_json_cstr(hint, "message")[0] != '\0') {
        hfd_buf_lit(b, "  ");
        add_text(b, hfd_json_cstr(hint, "message"));
    }
    cut(b, columns);
}

static size_t terminal_columns(void)
{
    struct winsize size;

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return COLUMNS_DEFAULT;
    return size.ws_col > COLUMNS_MIN ? size.ws_col : COLUMNS_MIN;
}

/* The estimate is by the driver's clock; so is the present time. */
static struct hfd_progress_times times_of(const struct view *v, const json_t *hint)
{
    struct hfd_progress_times t = {.elapsed_us =
                                       hfd_clock_mono_us(&hfd_clock_system) - v->began_us};
    int64_t now_us, end_us;

    if (hfd_time_parse(hfd_slice_of(hfd_json_cstr(hint, "current_time")), &now_us, NULL) ==
            HFD_OK &&
        hfd_time_parse(hfd_slice_of(hfd_json_cstr(hint, "estimated_completion_time")), &end_us,
                       NULL) == HFD_OK &&
        end_us > now_us)
        t.total_us = t.elapsed_us + end_us - now_us;
    return t;
}

/* A line for a log: only news. */
static void print_news(struct view *v, const char *status, const char *message)
{
    struct hfd_buf news;

    hfd_buf_init(&news, sizeof(v->last));
    add_text(&news, status);
    hfd_buf_add(&news, hfd_slice_of(message[0] != '\0' ? ": " : ""));
    add_text(&news, message);
    hfd_buf_addc(&news, '\0');
    if (news.rc == HFD_OK && strcmp(news.p, v->last) != 0) {
        memcpy(v->last, news.p, news.len);
        hfd_buf_reset(&news);
        add_text(&news, v->id);
        (void)fprintf(stderr, "%.*s %s\n", HFD_SLICE_FMT(hfd_buf_slice(&news)), v->last);
    }
    hfd_buf_fini(&news);
}

/* The line of a terminal, written over the last one: b, which it frees. */
static void draw(struct view *v, struct hfd_buf *b)
{
    cut(b, terminal_columns() - 1);
    (void)fprintf(stderr, "\r%.*s\033[K", HFD_SLICE_FMT(hfd_buf_slice(b)));
    (void)fflush(stderr);
    v->shown = true;
    hfd_buf_fini(b);
}

/* Shows an answer. */
static void show_answer(struct view *v, const struct hfd_order_answer *a)
{
    struct hfd_progress_times times;
    struct hfd_buf b;

    if (a->http.status != 202 || !json_is_object(a->doc))
        return;
    if (!v->terminal) {
        print_news(v, hfd_json_cstr(a->doc, "status"), hfd_json_cstr(a->doc, "message"));
        return;
    }
    times = times_of(v, a->doc);
    hfd_buf_init(&b, LINE_MAX_BYTES);
    add_text(&b, v->id);
    hfd_buf_lit(&b, "  ");
    hfd_progress_line(&b, a->doc, &times, terminal_columns());
    draw(v, &b);
}

static void show_away(struct view *v, const struct away *a)
{
    struct hfd_buf b;

    hfd_buf_init(&b, LINE_MAX_BYTES);
    if (v->terminal) {
        add_text(&b, v->id);
        hfd_buf_addf(&b, "  %s for %lld s, tries on: ", a->what,
                     (long long)(a->for_us / HFD_US_PER_S));
        add_text(&b, a->where);
        draw(v, &b);
        return;
    }
    hfd_buf_addf(&b, "%s, tries on", a->what);
    hfd_buf_addc(&b, '\0');
    if (b.rc == HFD_OK)
        print_news(v, b.p, a->where);
    hfd_buf_fini(&b);
}

static void clear_line(struct view *v)
{
    if (v->shown)
        (void)fprintf(stderr, "\r\033[K");
    v->shown = false;
}

/* ---- order ---- */

#define WAIT_FIRST_US HFD_US_PER_S
#define WAIT_MAX_US (INT64_C(30) * HFD_US_PER_S)
#define AWAY_TRIES 10 /* polls without an answer in a row */
#define NEVER_HEARD_TRIES                                                                          \
    4 /* the same when none ever got one: a wrong URL is the usual mistake                         \
       */
#define ID_MAX_BYTES 1024
#define PREFER_S 50 /* more is lowered, and a request has a minute */
#define TERMINAL_PREFER_S 10

/* Adds a GUResID as a segment of a path. @return false when it is too long */
static bool encode(const char *id, char out[ID_MAX_BYTES])
{
    static const char digits[] = "0123456789ABCDEF";
    size_t n = 0;

    for (const char *p = id; *p != '\0'; p++) {
        if (n + 4 > ID_MAX_BYTES)
            return false;
        if (hfd_is_alnum(*p) || strchr("-._~", *p) != NULL) {
            out[n++] = *p;
            continue;
        }
        out[n++] = '%';
        out[n++] = digits[(unsigned char)*p >> 4];
        out[n++] = digits[(unsigned char)*p & 15];
    }
    out[n] = '\0';
    return true;
}

/* A cookie that cannot be kept is no failure: the driver has taken the request. */
static hfd_rc keep_cookie(const struct hfd_order_driver *driver,
                          const struct hfd_order_request *request, struct hfd_order_answer *a,
                          hfd_slice before, struct hfd_err *err)
{
    const struct hfd_client_resource resource = {driver->url, request->id};
    const bool gone = strcmp(request->method, "DELETE") == 0 && a->http.status == 204;
    hfd_slice cookie = hfd_http_header(&a->http, "Set-Humanitec-Driver-Cookie");
    struct hfd_err flaw;
    hfd_rc rc;

    if (gone)
        cookie = HFD_SLICE("");
    if (cookie.p == NULL || hfd_slice_eq(cookie, before))
        return HFD_OK;
    rc = client_state_write(driver->state, &resource, cookie, &flaw);
    if (rc == HFD_LIMIT) {
        (void)snprintf(a->cookie_flaw, sizeof(a->cookie_flaw), "%s", flaw.msg);
        return HFD_OK;
    }
    return rc == HFD_OK ? rc : hfd_fail(err, rc, "%s", flaw.msg);
}

hfd_rc hfd_order_send(const struct hfd_order_driver *driver,
                      const struct hfd_order_request *request, struct hfd_order_answer *out,
                      struct hfd_err *err)
{
    const struct hfd_client_resource resource = {driver->url, request->id};
    struct hfd_client_request r = {
        .method = request->method, .body = request->body, .stop = request->stop};
    char path[ID_MAX_BYTES], prefer[24];
    struct hfd_buf cookie;
    hfd_rc rc;

    *out = (struct hfd_order_answer){.doc = NULL};
    if (!encode(request->id, path))
        return hfd_fail(err, HFD_INVALID, "the GUResID is too long");
    r.path = path;
    hfd_buf_init(&cookie, HFD_CLIENT_COOKIE_MAX_BYTES);
    rc = hfd_client_state_read(driver->state, &resource, &cookie, err);
    if (rc == HFD_OK && cookie.len > 0)
        r.headers[0] = (struct hfd_http_header){"Humanitec-Driver-Cookie", hfd_buf_slice(&cookie)};
    (void)snprintf(prefer, sizeof(prefer), "wait=%d", request->prefer_s);
    if (request->prefer_s > 0)
        r.headers[1] = (struct hfd_http_header){"Prefer", hfd_slice_of(prefer)};
    if (request->if_match.len > 0)
        r.headers[2] = (struct hfd_http_header){"If-Match", request->if_match};
    if (rc == HFD_OK)
        hfd_client_send(driver->http, &r, &out->http, 1);
    if (rc == HFD_OK && out->http.status == 0)
        rc = hfd_fail(err, HFD_IO, "%s cannot be reached: %s", driver->url, out->http.why);
    if (rc == HFD_OK)
        rc = keep_cookie(driver, request, out, hfd_buf_slice(&cookie), err);
    if (rc == HFD_OK && out->http.body.len > 0 &&
        hfd_json_parse(hfd_buf_slice(&out->http.body), &out->doc, NULL) != HFD_OK)
        out->doc = NULL;
    hfd_buf_fini(&cookie);
    return rc;
}

/* Retry-After, or a second that grows to thirty; no time at all if the driver held its answer. */
static int64_t next_wait_us(const struct hfd_order_answer *a, int64_t last_us)
{
    int64_t s;

    if (a->http.status == 202 && hfd_http_header(&a->http, "Preference-Applied").len > 0)
        return 0;
    if (hfd_parse_i64(hfd_http_header(&a->http, "Retry-After"), 1, WAIT_MAX_US / HFD_US_PER_S, &s,
                      NULL) == HFD_OK)
        return s * HFD_US_PER_S;
    if (last_us == 0)
        return WAIT_FIRST_US;
    return last_us * 2 < WAIT_MAX_US ? last_us * 2 : WAIT_MAX_US;
}

/* 202: under way. 429 and 5xx pass. */
static bool goes_on(const struct hfd_order_answer *a)
{
    return a->http.status == 202 || a->http.status == 429 || a->http.status >= 500;
}

/* Keeps what is wrong with a cookie until the last answer. */
static void carry_flaw(struct hfd_order_answer *a, char flaw[sizeof(a->cookie_flaw)])
{
    if (a->cookie_flaw[0] == '\0')
        memcpy(a->cookie_flaw, flaw, sizeof(a->cookie_flaw));
    else
        memcpy(flaw, a->cookie_flaw, sizeof(a->cookie_flaw));
}

/* An operation that is followed, between two polls. */
struct poll {
    hfd_rc rc;
    bool known;       /* it is under way: a 202 said so */
    int tries;        /* polls without an answer in a row */
    int64_t since_us; /* the first poll in a row without a 202; 0 = the last one had it */
    int64_t wait_us;
    int prefer_s;              /* for how long the driver may hold the next answer */
    char what[32], where[512]; /* of struct away */
};

/* Takes the answer to a poll. @return true when it is the last one */
static bool take_poll(struct poll *p, const char *url, const struct hfd_order_answer *a)
{
    const bool away = p->rc == HFD_IO && a->http.status == 0;

    p->tries = away ? p->tries + 1 : 0;
    if (p->rc == HFD_OK && a->http.status == 202) {
        p->known = true;
        p->since_us = 0;
        return false;
    }
    if (!away && (p->rc != HFD_OK || !goes_on(a)))
        return true;
    p->since_us = p->since_us != 0 ? p->since_us : hfd_clock_mono_us(&hfd_clock_system);
    (void)snprintf(p->what, sizeof(p->what), away ? "cannot be reached" : "answers %d",
                   a->http.status);
    (void)snprintf(p->where, sizeof(p->where), "%s%s%s", url, away ? ": " : "", a->http.why);
    return p->tries >= (p->known ? AWAY_TRIES : NEVER_HEARD_TRIES);
}

/* Waits for the next poll, and says meanwhile that the driver is away. */
static void wait_for_poll(const struct hfd_order_driver *driver, const struct poll *p,
                          const struct hfd_order_follow *follow, struct view *v)
{
    struct away away = {.what = p->what, .where = p->where};
    int64_t left_us = p->wait_us;

    while (left_us > 0 && *follow->stop == 0) {
        const int64_t piece_us = left_us < HFD_US_PER_S ? left_us : HFD_US_PER_S;

        away.for_us = hfd_clock_mono_us(&hfd_clock_system) - p->since_us;
        if (p->since_us != 0)
            show_away(v, &away);
        hfd_client_wait(driver->http, piece_us, follow->stop);
        left_us -= piece_us;
    }
}

/* Within the deadline of a command and that of a request. On a terminal the line is to move. */
static int prefer_s(const struct hfd_order_follow *follow, int64_t spent_us, bool terminal)
{
    const int64_t max_s = terminal ? TERMINAL_PREFER_S : PREFER_S;
    const int64_t left_s =
        follow->timeout_us > 0 ? (follow->timeout_us - spent_us) / HFD_US_PER_S : max_s;

    return (int)(left_s < max_s ? left_s : max_s);
}

/* A poll of what is known may be held, and is cut short by a signal: then 202 is still true. */
static hfd_rc send_poll(const struct hfd_order_driver *driver,
                        const struct hfd_order_request *request,
                        const struct hfd_order_follow *follow, const struct poll *p,
                        struct hfd_order_answer *out, struct hfd_err *err)
{
    struct hfd_order_request r = *request;
    hfd_rc rc;

    r.prefer_s = p->known ? p->prefer_s : 0;
    r.stop = p->known ? follow->stop : NULL;
    rc = hfd_order_send(driver, &r, out, err);
    if (rc != HFD_IO || !p->known || *follow->stop == 0)
        return rc;
    hfd_order_answer_fini(out);
    out->http.status = 202;
    return HFD_OK;
}

hfd_rc hfd_order_wait(const struct hfd_order_driver *driver,
                      const struct hfd_order_request *request,
                      const struct hfd_order_follow *follow, struct hfd_order_answer *out,
                      struct hfd_err *err)
{
    const int64_t began_us = hfd_clock_mono_us(&hfd_clock_system);
    struct poll p = {.known = follow->known, .wait_us = WAIT_FIRST_US / 2};
    struct view view = {
        .id = request->id, .terminal = isatty(STDERR_FILENO) == 1, .began_us = began_us};
    char flaw[sizeof(out->cookie_flaw)] = "";
    int64_t spent_us = 0;
    bool last, late;

    for (;;) {
        p.prefer_s = prefer_s(follow, spent_us, view.terminal);
        p.rc = send_poll(driver, request, follow, &p, out, err);
        carry_flaw(out, flaw);
        last = take_poll(&p, driver->url, out);
        if (p.rc == HFD_OK)
            show_answer(&view, out);
        p.wait_us = next_wait_us(out, p.wait_us);
        spent_us = hfd_clock_mono_us(&hfd_clock_system) - began_us;
        late = follow->timeout_us > 0 && spent_us + p.wait_us > follow->timeout_us;
        if (!last && !late)
            wait_for_poll(driver, &p, follow, &view);
        if (last || late || *follow->stop != 0)
            break;
        hfd_order_answer_fini(out);
    }
    clear_line(&view);
    if (!last && p.known && p.since_us != 0) {
        hfd_order_answer_fini(out);
        *out = (struct hfd_order_answer){
            .http = {.status = 202}, .away_us = hfd_clock_mono_us(&hfd_clock_system) - p.since_us};
        return HFD_OK;
    }
    return p.rc;
}
