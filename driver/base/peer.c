/* See peer.h. */
#include "driver/base/peer.h"

#include <stdio.h>

#include <curl/curl.h>

#include "driver/base/clock.h"

/* A proxy that asks for a day must not delay a deletion by a day. */
#define RETRY_AFTER_MAX_US (INT64_C(300) * HFD_US_PER_S)

bool hfd_peer_is_busy(int status)
{
    return status == 408 || status == 425 || status == 429 || (status >= 500 && status <= 599);
}

/* clang-format off */
static const struct {
    int from, to; /* of the status */
    enum hfd_peer_body body;
    enum hfd_peer_word word;
} table[] = {
    {200, 299, HFD_PEER_RESULT, HFD_PEER_DONE},
    {408, 408, HFD_PEER_ERROR,  HFD_PEER_LATER},
    {425, 425, HFD_PEER_ERROR,  HFD_PEER_LATER},
    {429, 429, HFD_PEER_ERROR,  HFD_PEER_LATER},
    {400, 499, HFD_PEER_ERROR,  HFD_PEER_DECIDES},
    {500, 599, HFD_PEER_ERROR,  HFD_PEER_LATER},
};
/* clang-format on */

enum hfd_peer_word hfd_peer_word_of(int status, enum hfd_peer_body body, bool may_be_empty)
{
    if (body == HFD_PEER_EMPTY && may_be_empty && status >= 200 && status <= 299)
        return HFD_PEER_DONE;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (status >= table[i].from && status <= table[i].to && body == table[i].body)
            return table[i].word;
    return HFD_PEER_FOREIGN;
}

void hfd_peer_describe(const struct hfd_peer_foreign *a, char *out, size_t size)
{
    const char *what = a->type != NULL && a->type[0] != '\0' ? a->type : "no content type";

    (void)snprintf(out, size, "an answer that is not %s: %d, %s", a->whose, a->status,
                   a->empty ? "no body" : what);
}

hfd_rc hfd_peer_retry_after(hfd_slice value, int64_t now_us, int64_t *out_us)
{
    char text[64];
    int64_t seconds;
    time_t at;

    *out_us = 0;
    while (value.len > 0 && (value.p[0] == ' ' || value.p[0] == '\t'))
        value = (hfd_slice){value.p + 1, value.len - 1};
    while (value.len > 0 && strchr(" \t\r\n", value.p[value.len - 1]) != NULL)
        value.len--;
    if (value.len == 0 || value.len >= sizeof(text) || memchr(value.p, '\0', value.len) != NULL)
        return HFD_INVALID;
    memcpy(text, value.p, value.len);
    text[value.len] = '\0';
    if (strspn(text, "0123456789") == value.len) {
        if (hfd_parse_i64(value, 0, INT64_MAX / HFD_US_PER_S, &seconds, NULL) != HFD_OK)
            seconds = RETRY_AFTER_MAX_US / HFD_US_PER_S; /* more than fits */
        *out_us = seconds * HFD_US_PER_S;
    } else {
        at = curl_getdate(text, NULL);
        if (at == -1 || strchr(text, ':') == NULL)
            return HFD_INVALID;
        *out_us = (int64_t)at * HFD_US_PER_S - now_us;
    }
    if (*out_us < 0)
        *out_us = 0;
    if (*out_us > RETRY_AFTER_MAX_US)
        *out_us = RETRY_AFTER_MAX_US;
    return HFD_OK;
}
