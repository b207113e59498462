/* See amqpurl.h. libcurl takes it apart. Source: RabbitMQ URI Specification. */
#include "driver/base/amqpurl.h"

#include "driver/base/url.h"

#include <curl/curl.h>

#include <stdio.h>

#define PORT "5672"
#define TLS_PORT "5671"
#define URL_MAX 1024

/* Copies a part without its escapes; one that is absent is `without`. @return false: too long, or a
 * NUL */
static bool part(CURLU *url, CURLUPart which, const char *without, char out[HFD_AMQP_NAME_MAX])
{
    char *text = NULL;
    const CURLUcode code = curl_url_get(url, which, &text, CURLU_URLDECODE);
    const int len =
        snprintf(out, HFD_AMQP_NAME_MAX, "%s", text != NULL && text[0] != '\0' ? text : without);

    if (text != NULL)
        explicit_bzero(text, strlen(text));
    curl_free(text);
    return code != CURLUE_URLDECODE && len < HFD_AMQP_NAME_MAX;
}

static hfd_rc take_parts(CURLU *url, struct hfd_amqp_url *out, struct hfd_err *err)
{
    static const struct {
        CURLUPart which;
        const char *expected;
    } refused[] = {{CURLUPART_PASSWORD, "a URL without a password: write it into a file, and name "
                                        "that one in events.amqp.password_file"},
                   {CURLUPART_QUERY, "a URL without ? and #"},
                   {CURLUPART_FRAGMENT, "a URL without ? and #"}};
    char text[HFD_AMQP_NAME_MAX];
    int64_t port;

    (void)part(url, CURLUPART_SCHEME, "", text);
    out->tls = strcmp(text, "amqps") == 0;
    if (!out->tls && strcmp(text, "amqp") != 0)
        return hfd_fail(err, HFD_INVALID, "expected amqp://, or amqps:// for TLS");
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        const bool is_whole = part(url, refused[i].which, "", text);
        const bool is_there = !is_whole || text[0] != '\0';

        explicit_bzero(text, sizeof(text));
        if (is_there)
            return hfd_fail(err, HFD_INVALID, "expected %s", refused[i].expected);
    }
    if (!part(url, CURLUPART_HOST, "", out->host) || !hfd_host_is_valid(hfd_slice_of(out->host)) ||
        !part(url, CURLUPART_PORT, out->tls ? TLS_PORT : PORT, text) ||
        hfd_parse_i64(hfd_slice_of(text), 1, 65535, &port, NULL) != HFD_OK)
        return hfd_fail(err, HFD_INVALID,
                        "expected a host name or address, perhaps with a port from 1 to 65535");
    out->port = (int)port;
    /* As other clients read it, a path of "/" alone names no vhost: it is the one called "/". */
    if (!part(url, CURLUPART_USER, "guest", out->user) || !part(url, CURLUPART_PATH, "/", text))
        return hfd_fail(err, HFD_INVALID,
                        "expected a user and a vhost of at most 254 bytes, without a NUL");
    (void)snprintf(out->vhost, sizeof(out->vhost), "%s", text[1] != '\0' ? text + 1 : text);
    return HFD_OK;
}

hfd_rc hfd_amqp_url_parse(hfd_slice text, struct hfd_amqp_url *out, struct hfd_err *err)
{
    char copy[URL_MAX];
    CURLU *url = curl_url();
    hfd_rc rc;

    *out = (struct hfd_amqp_url){.tls = false};
    if (url == NULL)
        return hfd_fail_nomem(err, "parse a URL");
    (void)snprintf(copy, sizeof(copy), "%.*s", HFD_SLICE_FMT(text));
    if (text.len >= sizeof(copy) || hfd_url_authority(text).len == 0 ||
        curl_url_set(url, CURLUPART_URL, copy, CURLU_NON_SUPPORT_SCHEME) != CURLUE_OK)
        rc = hfd_fail(err, HFD_INVALID,
                      "expected the URL of a RabbitMQ broker: amqps://USER@HOST:PORT/VHOST");
    else
        rc = take_parts(url, out, err);
    explicit_bzero(copy, sizeof(copy));
    curl_url_cleanup(url);
    return rc;
}
