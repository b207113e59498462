/* See webhook.h. */
#include "driver/events/webhook.h"

#include "driver/base/check.h"
#include "driver/base/file.h"
#include "driver/base/http_client.h"

#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdlib.h>

#define ANSWER_MAX_BYTES ((size_t)4096)
#define SECRET_LEAD "whsec_"
#define SECRET_FILE_MAX_BYTES ((size_t)1024)
#define KEY_MIN_BYTES 24
#define KEY_MAX_BYTES 64
#define SIGNATURE_LEAD "v1,"
#define SIGNATURE_MAX                                                                              \
    (sizeof(SIGNATURE_LEAD) +                                                                      \
     sodium_base64_ENCODED_LEN(crypto_auth_hmacsha256_BYTES, sodium_base64_VARIANT_ORIGINAL))
#define STAMP_MAX 24
#define WAIT_US (HFD_US_PER_S / 5) /* a cut ends a wait sooner */

/* One event under way. */
struct attempt {
    struct hfd_http_call call;
    struct hfd_http_answer answer;
    char stamp[STAMP_MAX], signature[SIGNATURE_MAX];
};

struct hfd_webhook {
    const char *secret_file;
    struct hfd_http_server server;
    struct hfd_http_client *client;
    const struct hfd_clock *clock;
    atomic_bool is_cut;
    pthread_mutex_t lock;
    struct hfd_secret key; /* under lock; of KEY_MAX_BYTES */
    size_t key_len;        /* under lock */
    struct attempt attempts[HFD_SEND_EVENTS_MAX];
    size_t url_len;
    char url[]; /* ends with a NUL */
};

/* ---- the secret ---- */

static hfd_rc refuse_secret(const char *path, struct hfd_err *err)
{
    return hfd_fail(err, HFD_INVALID,
                    "%.150s: expected whsec_ and the base64 of %d to %d random bytes", path,
                    KEY_MIN_BYTES, KEY_MAX_BYTES);
}

/* Without the spaces and line ends around it. */
static hfd_slice trim(hfd_slice text)
{
    while (text.len > 0 && strchr(" \t\r\n", text.p[text.len - 1]) != NULL)
        text.len--;
    return hfd_slice_trim(text);
}

hfd_rc hfd_webhook_reload(struct hfd_webhook *w, struct hfd_err *err)
{
    unsigned char key[KEY_MAX_BYTES];
    hfd_slice text;
    struct hfd_buf b;
    size_t len = 0;
    hfd_rc rc;

    hfd_buf_init(&b, SECRET_FILE_MAX_BYTES);
    rc = hfd_file_read(w->secret_file, "secret file", &b, err);
    text = trim(hfd_buf_slice(&b));
    if (rc == HFD_OK && (!hfd_slice_starts(text, HFD_SLICE(SECRET_LEAD)) ||
                         hfd_base64_decode((hfd_slice){text.p + sizeof(SECRET_LEAD) - 1,
                                                       text.len - (sizeof(SECRET_LEAD) - 1)},
                                           key, sizeof(key), &len) != HFD_OK ||
                         len < KEY_MIN_BYTES))
        rc = refuse_secret(w->secret_file, err);
    if (rc == HFD_OK) {
        pthread_mutex_lock(&w->lock);
        memcpy(w->key.p, key, len);
        w->key_len = len;
        pthread_mutex_unlock(&w->lock);
    }
    sodium_memzero(key, sizeof(key));
    if (b.p != NULL)
        sodium_memzero(b.p, b.len);
    hfd_buf_fini(&b);
    return rc;
}

static void update(crypto_auth_hmacsha256_state *state, hfd_slice text)
{
    (void)crypto_auth_hmacsha256_update(state, (const unsigned char *)text.p, text.len);
}

/* Signs ID.TIMESTAMP.BODY. */
static void sign(struct hfd_webhook *w, struct attempt *a, const struct hfd_outgoing *event)
{
    unsigned char mac[crypto_auth_hmacsha256_BYTES];
    crypto_auth_hmacsha256_state state;

    (void)snprintf(
        a->stamp, sizeof(a->stamp), "%lld",
        (long long)((hfd_clock_wall_us(w->clock) + hfd_clock_skew_us(w->clock)) / HFD_US_PER_S));
    pthread_mutex_lock(&w->lock);
    (void)crypto_auth_hmacsha256_init(&state, w->key.p, w->key_len);
    pthread_mutex_unlock(&w->lock);
    update(&state, event->id);
    update(&state, HFD_SLICE("."));
    update(&state, hfd_slice_of(a->stamp));
    update(&state, HFD_SLICE("."));
    update(&state, event->body);
    (void)crypto_auth_hmacsha256_final(&state, mac);
    memcpy(a->signature, SIGNATURE_LEAD, sizeof(SIGNATURE_LEAD) - 1);
    sodium_bin2base64(a->signature + sizeof(SIGNATURE_LEAD) - 1,
                      sizeof(a->signature) - (sizeof(SIGNATURE_LEAD) - 1), mac, sizeof(mac),
                      sodium_base64_VARIANT_ORIGINAL);
    sodium_memzero(&state, sizeof(state));
}

/* ---- sending ---- */

static bool start(struct hfd_webhook *w, struct attempt *a, const struct hfd_outgoing *event)
{
    sign(w, a, event);
    a->call = (struct hfd_http_call){
        .server = &w->server,
        .method = "POST",
        .url = {{w->url, w->url_len}},
        .headers = {{"Content-Type", HFD_SLICE("application/cloudevents+json")},
                    {"webhook-id", event->id},
                    {"webhook-timestamp", hfd_slice_of(a->stamp)},
                    {"webhook-signature", hfd_slice_of(a->signature)}},
        .body = event->body,
        .answer = &a->answer,
    };
    return hfd_http_call_start(w->client, &a->call);
}

/* An answer that breaks off behind its status was given. */
static hfd_rc judge(const struct attempt *a, struct hfd_outgoing *event, struct hfd_err *err)
{
    const struct hfd_http_answer *answer = &a->answer;

    event->sent = answer->status / 100 == 2;
    if (event->sent)
        return HFD_OK;
    if (hfd_http_call_is_open(&a->call))
        return hfd_fail(err, HFD_TIMEOUT, "it gives no answer within 10 s");
    if (answer->status != 0)
        return hfd_fail(err, HFD_TIMEOUT, "it answers %d%s", answer->status,
                        answer->status / 100 == 3 ? "; no redirect is followed" : "");
    return hfd_fail(err, HFD_TIMEOUT, "%s",
                    answer->meaning != NULL ? answer->meaning : answer->why);
}

static bool is_open(const struct hfd_webhook *w, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (hfd_http_call_is_open(&w->attempts[i].call))
            return true;
    return false;
}

static hfd_rc send_events(void *ctx, struct hfd_outgoing *events, size_t count, struct hfd_err *err)
{
    const int64_t until_us = hfd_clock_mono_us(&hfd_clock_system) + HFD_SEND_MAX_US;
    struct hfd_webhook *w = ctx;
    hfd_rc rc = HFD_OK;

    HFD_ASSERT(count <= HFD_SEND_EVENTS_MAX);
    if (w->client == NULL)
        rc = hfd_http_client_open(w->clock, HFD_SEND_EVENTS_MAX, &w->client, err);
    if (rc != HFD_OK)
        return rc;
    for (size_t i = 0; i < count; i++)
        (void)!start(w, &w->attempts[i], &events[i]); /* without memory it has no answer */
    while (!atomic_load(&w->is_cut) && is_open(w, count) &&
           hfd_clock_mono_us(&hfd_clock_system) < until_us)
        if (!hfd_http_client_run(w->client, WAIT_US))
            break;
    for (size_t i = 0; i < count; i++) {
        struct attempt *a = &w->attempts[i];
        const hfd_rc one = judge(a, &events[i], rc == HFD_OK ? err : NULL);

        rc = rc == HFD_OK ? one : rc;
        hfd_http_call_end(&a->call);
        hfd_http_answer_fini(&a->answer);
    }
    return rc;
}

void hfd_webhook_cut(struct hfd_webhook *w)
{
    atomic_store(&w->is_cut, true);
}

static void webhook_close(void *ctx)
{
    struct hfd_webhook *w = ctx;

    hfd_http_client_close(&w->client);
    hfd_secret_fini(&w->key);
    pthread_mutex_destroy(&w->lock);
    sodium_memzero(w->url, w->url_len);
    free(w);
}

hfd_rc hfd_webhook_open(const struct hfd_webhook_config *config, struct hfd_sender *sender,
                        struct hfd_webhook **out, struct hfd_err *err)
{
    struct hfd_webhook *w = calloc(1, sizeof(*w) + config->url.len + 1);
    hfd_rc rc;

    *out = NULL;
    if (w == NULL)
        return hfd_fail_nomem(err, "open a webhook");
    memcpy(w->url, config->url.p, config->url.len);
    w->url_len = config->url.len;
    w->secret_file = config->secret_file;
    w->clock = config->clock;
    w->server = (struct hfd_http_server){.connect_timeout_us = HFD_SEND_MAX_US,
                                         .timeout_us = HFD_SEND_MAX_US,
                                         .answer_max_bytes = ANSWER_MAX_BYTES,
                                         .ca_file = config->ca_file};
    pthread_mutex_init(&w->lock, NULL);
    rc = hfd_secret_init(&w->key, KEY_MAX_BYTES, err);
    if (rc == HFD_OK)
        rc = hfd_webhook_reload(w, err);
    if (rc != HFD_OK) {
        webhook_close(w);
        return rc;
    }
    *out = w;
    *sender = (struct hfd_sender){send_events, webhook_close, w};
    return HFD_OK;
}
