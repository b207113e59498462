/* See retry_after.h. */
#include "driver/backend/remote/retry_after.h"

#include "driver/base/clock.h"

#include <string.h>

#include <curl/curl.h>

/* A proxy that asks for a day must not delay a deletion by a day. */
#define RETRY_AFTER_MAX_US (INT64_C(600) * HFD_US_PER_S)

hfd_rc hfd_retry_after_parse(hfd_slice value, int64_t now_us, int64_t *out_us)
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
