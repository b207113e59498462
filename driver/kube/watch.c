/* See watch.h. */
#include "driver/kube/watch.h"

#include <stdio.h>
#include <stdlib.h>

#include "driver/base/check.h"
#include "driver/kube/refusal.h"
#include "driver/kube/transfer.h"

#define PATH_MAX_BYTES 8192
#define PAGE_LIMIT 500
#define GRACE_US (30 * HFD_US_PER_S)
#define SOUND_US (10 * HFD_US_PER_S) /* a stream that ends sooner is a failure, however it ends */
/* Lines that tell of nothing: real servers send a bookmark a minute. */
#define IDLE_LINES_MAX 100

struct hfd_kube_watch {
    unsigned magic;
#define WATCH_MAGIC 0x77617463u
    struct hfd_kube *kube;
    struct hfd_kube_watch_config config;
    struct hfd_kube_transfer stream;
    struct hfd_buf line;
    int64_t began_us; /* mono: of the stream */
    unsigned era;     /* of the kubeconfig that it was opened with */
    int idle_lines;   /* bookmarks and empty lines of the stream, beyond one a second */
    const char *why;  /* this side ended the stream; static */
    bool listed;      /* version is that of what was read */
    bool expired;     /* begin with a list */
    bool too_old;     /* the stream's version was: 410 */
    bool forgiven;    /* that happened once since the last sound stream */
    char version[64];
};

enum hfd_kube_event hfd_kube_event_of(const json_t *doc, const json_t **object)
{
    static const struct {
        const char *type;
        enum hfd_kube_event event;
    } known[] = {
        {"ADDED", HFD_KUBE_EVENT_CHANGED}, {"MODIFIED", HFD_KUBE_EVENT_CHANGED},
        {"DELETED", HFD_KUBE_EVENT_GONE},  {"BOOKMARK", HFD_KUBE_EVENT_BOOKMARK},
        {"ERROR", HFD_KUBE_EVENT_ERROR},
    };
    const char *type = json_string_value(json_object_get(doc, "type"));
    enum hfd_kube_event event = HFD_KUBE_EVENT_BAD;

    *object = json_object_get(doc, "object");
    for (size_t i = 0; type != NULL && i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(known[i].type, type) == 0)
            event = known[i].event;
    if (*object == NULL)
        return HFD_KUBE_EVENT_BAD;
    if (event == HFD_KUBE_EVENT_ERROR &&
        json_integer_value(json_object_get(*object, "code")) == 410)
        return HFD_KUBE_EVENT_EXPIRED;
    return event;
}

/* ---- the stream ---- */

static void note_version(struct hfd_kube_watch *w, const json_t *object)
{
    const char *v =
        json_string_value(json_object_get(json_object_get(object, "metadata"), "resourceVersion"));

    if (v != NULL)
        (void)snprintf(w->version, sizeof(w->version), "%s", v);
}

static int64_t age_us(const struct hfd_kube_watch *w)
{
    return hfd_clock_mono_us(w->kube->config.clock) - w->began_us;
}

/* Ends the stream. */
static bool leave(struct hfd_kube_watch *w, const char *why)
{
    w->why = why;
    w->expired = true;
    return false;
}

/* A line without news. A server that sends nothing else is no watch. */
static bool take_idle_line(struct hfd_kube_watch *w)
{
    if (++w->idle_lines <= IDLE_LINES_MAX + age_us(w) / HFD_US_PER_S)
        return true;
    return leave(w, "it sends bookmarks or empty lines without end");
}

/* Returns whether the stream goes on. */
static bool take_event(struct hfd_kube_watch *w, const json_t *doc)
{
    const json_t *object;

    switch (hfd_kube_event_of(doc, &object)) {
    case HFD_KUBE_EVENT_CHANGED:
        w->config.on_changed(w->config.ctx, object, false);
        note_version(w, object);
        return true;
    case HFD_KUBE_EVENT_GONE:
        w->config.on_changed(w->config.ctx, object, true);
        note_version(w, object);
        return true;
    case HFD_KUBE_EVENT_BOOKMARK:
        note_version(w, object);
        return take_idle_line(w);
    case HFD_KUBE_EVENT_EXPIRED:
        w->too_old = true;
        return leave(w, "what it would begin with is too old");
    case HFD_KUBE_EVENT_ERROR:
        return leave(w, "the API server sent an error");
    case HFD_KUBE_EVENT_BAD:
        break;
    }
    return leave(w, "a line is no event");
}

static bool take_line(struct hfd_kube_watch *w)
{
    json_t *doc;
    bool more;

    if (w->line.len == 0)
        return take_idle_line(w);
    if (hfd_json_parse(hfd_buf_slice(&w->line), &doc, NULL) != HFD_OK)
        return leave(w, "a line is no event");
    more = take_event(w, doc);
    json_decref(doc);
    hfd_buf_reset(&w->line);
    return more;
}

static bool on_bytes(void *ctx, hfd_slice bytes)
{
    struct hfd_kube_watch *w = ctx;

    while (bytes.len > 0) {
        const char *end = memchr(bytes.p, '\n', bytes.len);
        const size_t len = end != NULL ? (size_t)(end - bytes.p) : bytes.len;

        hfd_buf_add(&w->line, (hfd_slice){bytes.p, len});
        if (w->line.rc != HFD_OK)
            return leave(w, "a line is too long");
        if (end != NULL && !take_line(w))
            return false;
        if (end == NULL)
            break;
        bytes = (hfd_slice){end + 1, bytes.len - len - 1};
    }
    return true;
}

static void add_selector(struct hfd_buf *b, const char *selector)
{
    hfd_buf_lit(b, "&labelSelector=");
    for (; *selector != '\0'; selector++) {
        if (hfd_is_alnum(*selector) || strchr("-_.~", *selector) != NULL)
            hfd_buf_addc(b, *selector);
        else
            hfd_buf_addf(b, "%%%02X", (unsigned char)*selector);
    }
}

static hfd_rc open_stream(struct hfd_kube_watch *w, struct hfd_err *err)
{
    struct hfd_buf path;
    hfd_rc rc;

    hfd_buf_init(&path, PATH_MAX_BYTES);
    hfd_kube_path(&path, &w->config.objects);
    hfd_buf_addf(&path, "?watch=1&allowWatchBookmarks=true&timeoutSeconds=%lld&resourceVersion=%s",
                 (long long)w->config.stream_s, w->version);
    if (w->config.selector != NULL)
        add_selector(&path, w->config.selector);
    w->era = w->kube->era;
    w->began_us = hfd_clock_mono_us(w->kube->config.clock);
    w->idle_lines = 0;
    w->why = NULL;
    w->too_old = false;
    w->stream = (struct hfd_kube_transfer){
        .kube = w->kube,
        .method = "GET",
        .asked = HFD_KUBE_OBJECTS,
        .timeout_us = w->config.stream_s * HFD_US_PER_S + GRACE_US,
        .on_bytes = on_bytes,
        .ctx = w,
    };
    hfd_buf_reset(&w->line);
    rc = hfd_buf_finish(&path, &w->stream.path, err);
    if (rc == HFD_OK)
        rc = hfd_kube_transfer_start(&w->stream, err);
    hfd_buf_fini(&path);
    return rc;
}

/*
 * Judges a stream that ended. One that lasted is sound, and the next one begins where it ended. Any
 * other is a failure: servers that end each stream at once would be asked without a pause.
 */
static hfd_rc judge_end(struct hfd_kube_watch *w, struct hfd_err *err)
{
    const struct hfd_kube_transfer *t = &w->stream;
    const bool sound = age_us(w) >= SOUND_US;
    const bool forgive = w->too_old && !w->forgiven;

    w->forgiven = !sound && (w->forgiven || w->too_old);
    if (w->why == NULL && t->answer.rc != HFD_OK)
        return hfd_kube_transfer_result(t, err);
    if (sound || forgive)
        return HFD_OK;
    if (w->why != NULL)
        return hfd_fail(err, HFD_TIMEOUT, "the watch was ended: %s", w->why);
    return hfd_fail(err, HFD_TIMEOUT, "the API server ended the watch after %lld ms (%d, %s)",
                    (long long)(age_us(w) / 1000), t->answer.status,
                    t->answer.type[0] != '\0' ? t->answer.type : "no content type");
}

/* Ends a stream that is done. A status other than 200 becomes the answer. */
static hfd_rc close_stream(struct hfd_kube_watch *w, struct hfd_kube_answer *answer,
                           struct hfd_err *err)
{
    struct hfd_kube_transfer *t = &w->stream;
    hfd_rc rc = HFD_OK;

    w->too_old = w->too_old || t->answer.status == 410;
    if (t->answer.rc == HFD_OK && t->answer.status != 200 &&
        (t->answer.status != 410 || w->forgiven))
        rc = hfd_kube_transfer_answer(t, answer, err);
    else
        rc = judge_end(w, err);
    /* An API server that cannot read the version answers 500: a list gives a new one. */
    w->expired = w->expired || w->too_old || t->answer.status != 200;
    hfd_kube_transfer_fini(t);
    return rc;
}

/* ---- the list ---- */

static bool on_item(void *ctx, const json_t *item)
{
    struct hfd_kube_watch *w = ctx;

    w->config.on_changed(w->config.ctx, item, false);
    return true;
}

static hfd_rc list(struct hfd_kube_watch *w, struct hfd_kube_answer *answer, struct hfd_err *err)
{
    const struct hfd_kube_list query = {.objects = w->config.objects,
                                        .selector = w->config.selector,
                                        .metadata_only = true,
                                        .page_limit = PAGE_LIMIT,
                                        .on_item = on_item,
                                        .ctx = w};
    hfd_rc rc = hfd_kube_list(w->kube, &query, w->version, answer, err);
    struct hfd_kube_refusal why;

    if (rc != HFD_OK)
        return rc;
    hfd_kube_judge(answer, &why);
    if (why.class != HFD_KUBE_DONE)
        return HFD_OK;
    hfd_kube_answer_fini(answer);
    if (w->version[0] == '\0')
        return hfd_fail(err, HFD_TIMEOUT, "the API server's list has no resource version");
    w->listed = true;
    w->expired = false;
    return HFD_OK;
}

/* ---- its life ---- */

hfd_rc hfd_kube_watch_new(struct hfd_kube *kube, const struct hfd_kube_watch_config *config,
                          struct hfd_kube_watch **out, struct hfd_err *err)
{
    struct hfd_kube_watch *w = calloc(1, sizeof(*w));

    *out = w;
    if (w == NULL)
        return hfd_fail_nomem(err, "watch objects in Kubernetes");
    w->magic = WATCH_MAGIC;
    w->kube = kube;
    w->config = *config;
    w->stream.kube = kube;
    hfd_buf_init(&w->line, kube->config.answer_max_bytes);
    return HFD_OK;
}

void hfd_kube_watch_free(struct hfd_kube_watch *w)
{
    if (w == NULL)
        return;
    HFD_CHECK_OBJ(w, WATCH_MAGIC);
    hfd_kube_transfer_fini(&w->stream);
    hfd_buf_fini(&w->line);
    w->magic = 0;
    free(w);
}

bool hfd_kube_watch_is_sound(const struct hfd_kube_watch *w)
{
    return hfd_kube_watch_is_open(w) && age_us(w) >= SOUND_US;
}

bool hfd_kube_watch_is_open(const struct hfd_kube_watch *w)
{
    return w->stream.began && !w->stream.done;
}

hfd_rc hfd_kube_watch_step(struct hfd_kube_watch *w, struct hfd_kube_answer *answer,
                           struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    HFD_CHECK_OBJ(w, WATCH_MAGIC);
    *answer = (struct hfd_kube_answer){0};
    if (w->stream.began && w->era != w->kube->era) { /* perhaps of another server */
        hfd_kube_transfer_fini(&w->stream);
        w->expired = true;
    }
    if (hfd_kube_watch_is_open(w))
        return HFD_OK;
    if (w->stream.began)
        rc = close_stream(w, answer, err);
    if (rc != HFD_OK || answer->status != 0)
        return rc;
    if (!w->listed || w->expired)
        rc = list(w, answer, err);
    return rc == HFD_OK && answer->status == 0 ? open_stream(w, err) : rc;
}
