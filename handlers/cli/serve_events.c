/* See serve_events.h. */
#include "handlers/cli/serve_events.h"

#include "driver/base/file.h"
#include "driver/base/log.h"
#include "handlers/cli/look.h"

#define BROKER "amqp" /* its name as a target */
#define MEM_MAX_BYTES ((size_t)1 << 20)
#define CA_MAX_BYTES ((size_t)4 << 20)

/* The entry of a map; NULL = it has none of that name. */
static const struct hfd_pair *find(const struct hfd_map *map, hfd_slice name)
{
    for (size_t i = 0; i < map->count; i++)
        if (hfd_slice_eq(map->items[i].name, name))
            return &map->items[i];
    return NULL;
}

/* Refuses the entry of a webhook. @param ending  of its key */
static hfd_rc refuse(const struct hfd_pair *entry, const char *ending, const char *why,
                     struct hfd_err *err)
{
    return hfd_fail_field(err, HFD_INVALID, "events.webhooks", "%.*s: events.webhooks.%.*s.%s: %s",
                          HFD_SLICE_FMT(entry->origin), HFD_SLICE_FMT(entry->name), ending, why);
}

/* Each webhook has a URL and a secret, and a name that is not the broker's. */
static hfd_rc check_whole(const struct hfd_settings *s, struct hfd_err *err)
{
    const struct {
        const struct hfd_map *map, *other;
        const char *ending, *lacks;
    } rules[] = {
        {&s->webhook_secret_files, &s->webhook_urls, "secret_file", "expected a url with it"},
        {&s->webhook_types, &s->webhook_urls, "types", "expected a url with it"},
        {&s->webhook_ca_files, &s->webhook_urls, "ca_file", "expected a url with it"},
        {&s->webhook_urls, &s->webhook_secret_files, "url", "expected a secret_file with it"},
    };

    for (size_t r = 0; r < sizeof(rules) / sizeof(rules[0]); r++)
        for (size_t i = 0; i < rules[r].map->count; i++)
            if (find(rules[r].other, rules[r].map->items[i].name) == NULL)
                return refuse(&rules[r].map->items[i], rules[r].ending, rules[r].lacks, err);
    if (find(&s->webhook_urls, HFD_SLICE(BROKER)) != NULL)
        return refuse(find(&s->webhook_urls, HFD_SLICE(BROKER)), "url",
                      "expected another name than " BROKER ", which is RabbitMQ's", err);
    return HFD_OK;
}

/* A remote HyperFleet sends reconcile events by itself. */
static void read_types(const struct hfd_settings *s, struct hfd_outbox_target *t)
{
    const struct hfd_pair *types = find(&s->webhook_types, t->name);
    const hfd_slice text = types != NULL ? types->value : HFD_SLICE("reconcile,states");

    t->streams[HFD_STREAM_RECONCILE] =
        !hfd_look_is_remote(s) && memmem(text.p, text.len, "reconcile", 9) != NULL;
    t->streams[HFD_STREAM_STATES] = memmem(text.p, text.len, "states", 6) != NULL;
}

static hfd_rc open_one(const struct hfd_settings *s, const struct hfd_pair *url,
                       const struct hfd_clock *clock, struct hfd_serve_target *out,
                       struct hfd_err *err)
{
    const struct hfd_pair *secret = find(&s->webhook_secret_files, url->name);
    const struct hfd_pair *ca = find(&s->webhook_ca_files, url->name);
    struct hfd_webhook_config config = {
        .url = url->value, .secret_file = secret->value.p, .clock = clock};
    struct hfd_err why;
    hfd_rc rc;

    if (ca != NULL) {
        struct hfd_buf b;

        hfd_buf_init(&b, CA_MAX_BYTES);
        rc = hfd_file_read(ca->value.p, "authorities", &b, &why);
        hfd_buf_fini(&b);
        if (rc != HFD_OK)
            return refuse(ca, "ca_file", why.msg, err);
        config.ca_file = ca->value.p;
    }
    rc = hfd_webhook_open(&config, &out->sender, &out->webhook, &why);
    if (rc == HFD_NOMEM)
        return hfd_fail_nomem(err, "open a webhook");
    return rc == HFD_OK ? rc : refuse(secret, "secret_file", why.msg, err);
}

/* The text of a file setting; NULL = it is not set. */
static const char *path_of(hfd_slice text)
{
    return text.len > 0 ? text.p : NULL;
}

/* Adds the broker behind the webhooks. A remote HyperFleet has its own. */
static hfd_rc open_broker(struct hfd_serve_events *h, const struct hfd_settings *s,
                          struct hfd_err *err)
{
    struct hfd_amqp_place *broker = &h->broker;
    hfd_rc rc;

    if (hfd_look_is_remote(s) || s->events_amqp_url.len == 0)
        return HFD_OK;
    *broker = (struct hfd_amqp_place){
        .password_file = path_of(s->events_amqp_password_file),
        .ca_file = path_of(s->events_amqp_ca_file),
        .exchanges = {[HFD_KIND_CLUSTER] = s->events_amqp_exchange_cluster,
                      [HFD_KIND_NODEPOOL] = s->events_amqp_exchange_nodepool}};
    rc = hfd_amqp_url_parse(s->events_amqp_url, &broker->url, err);
    if (rc == HFD_OK)
        rc = hfd_amqp_open(broker, &h->ways[h->count].sender, err);
    if (rc == HFD_OK)
        h->targets[h->count++] = (struct hfd_outbox_target){
            .name = HFD_SLICE(BROKER), .streams = {[HFD_STREAM_RECONCILE] = true}};
    return rc;
}

static hfd_rc open_all(struct hfd_serve_events *h, const struct hfd_settings *s,
                       const struct hfd_clock *clock, struct hfd_err *err)
{
    const struct hfd_map *urls = &s->webhook_urls;
    hfd_rc rc = check_whole(s, err);

    if (rc != HFD_OK)
        return rc;
    h->targets = hfd_arena_array(&h->mem, urls->count + 1, sizeof(*h->targets));
    h->ways = hfd_arena_array(&h->mem, urls->count + 1, sizeof(*h->ways));
    if (!hfd_look_is_remote(s))
        h->repeats = hfd_repeats_new();
    if (h->targets == NULL || h->ways == NULL || (h->repeats == NULL && !hfd_look_is_remote(s)))
        return hfd_fail_nomem(err, "open the targets of events");
    for (; rc == HFD_OK && h->count < urls->count; h->count += rc == HFD_OK) {
        h->targets[h->count].name = urls->items[h->count].name;
        read_types(s, &h->targets[h->count]);
        rc = open_one(s, &urls->items[h->count], clock, &h->ways[h->count], err);
    }
    return rc == HFD_OK ? open_broker(h, s, err) : rc;
}

hfd_rc hfd_serve_events_open(struct hfd_serve_events *h, const struct hfd_settings *s,
                             const struct hfd_clock *clock, struct hfd_err *err)
{
    hfd_rc rc;

    *h = (struct hfd_serve_events){.repeats_per_second = s->events_repeats_per_second};
    hfd_arena_init(&h->mem, MEM_MAX_BYTES);
    rc = open_all(h, s, clock, err);
    if (rc != HFD_OK)
        hfd_serve_events_close(h);
    return rc;
}

void hfd_serve_events_close(struct hfd_serve_events *h)
{
    for (size_t i = 0; h->ways != NULL && i < h->count; i++)
        if (h->ways[i].sender.close != NULL)
            h->ways[i].sender.close(h->ways[i].sender.ctx);
    h->count = 0;
    hfd_repeats_free(h->repeats);
    h->repeats = NULL;
    hfd_arena_fini(&h->mem);
}

hfd_rc hfd_serve_events_start(struct hfd_serve_events *h, const struct hfd_outbox_parts *parts,
                              struct hfd_err *err)
{
    const struct hfd_repeats_parts repeats = {parts->store, parts->clock, parts->bell,
                                              h->repeats_per_second};
    struct hfd_outbox_parts own = *parts;
    hfd_rc rc = hfd_outbox_forget_others(parts, h->targets, h->count, err);

    own.repeats = h->repeats;
    if (rc == HFD_OK && h->repeats_per_second > 0)
        rc = hfd_repeats_start(h->repeats, &repeats, err);
    for (size_t i = 0; rc == HFD_OK && i < h->count; i++) {
        struct hfd_serve_target *way = &h->ways[i];

        rc = hfd_outbox_start(&own, &h->targets[i], way->sender, &way->outbox, err);
        way->sender.close = NULL; /* the outbox closes it */
    }
    if (rc != HFD_OK)
        hfd_serve_events_stop(h);
    return rc;
}

void hfd_serve_events_stop(struct hfd_serve_events *h)
{
    for (size_t i = 0; i < h->count; i++)
        if (h->ways[i].outbox != NULL && h->ways[i].webhook != NULL)
            hfd_webhook_cut(h->ways[i].webhook);
    for (size_t i = 0; i < h->count; i++)
        hfd_outbox_stop(&h->ways[i].outbox);
    hfd_repeats_stop(h->repeats);
}

void hfd_serve_events_reload(struct hfd_serve_events *h)
{
    for (size_t i = 0; i < h->count; i++) {
        struct hfd_err err;

        if (h->ways[i].webhook != NULL && hfd_webhook_reload(h->ways[i].webhook, &err) != HFD_OK)
            HFD_LOG(HFD_LOG_WARN, "cannot read the secret of a webhook; the old one stays in use",
                    HFD_LOG_STR("target", h->targets[i].name), HFD_LOG_CSTR("reason", err.msg));
    }
}
