/*
 * The small parsers at the door: GUResID, RFC 3339, durations, integers, base64url. Each value that
 * a parser accepts can be written, and read back as the same value.
 */
#include "tests/fuzz/fuzz.h"

#include "driver/base/buf.h"
#include "driver/base/check.h"
#include "driver/base/clock.h"
#include "driver/core/driver.h"

#include <sodium.h>
#include <stdio.h>

static void guresid(hfd_slice text)
{
    struct hfd_err err;

    if (hfd_guresid_check(text, &err) == HFD_OK)
        HFD_ASSERT(text.len >= 1 && text.len <= HFD_GURESID_MAX &&
                   memchr(text.p, '/', text.len) == NULL);
}

static void rfc3339(hfd_slice text)
{
    char written[HFD_TIME_TEXT_MAX];
    struct hfd_err err;
    int64_t at_us, again_us;

    if (hfd_time_parse(text, &at_us, &err) != HFD_OK)
        return;
    hfd_slice back = {written, hfd_time_format(at_us, written)};
    HFD_ASSERT(back.len < sizeof(written));
    HFD_ASSERT(hfd_time_parse(back, &again_us, &err) == HFD_OK);
    HFD_ASSERT(again_us == at_us);
    back.len = hfd_time_format_s(at_us, written);
    HFD_ASSERT(hfd_time_parse(back, &again_us, &err) == HFD_OK);
    HFD_ASSERT(again_us <= at_us && at_us - again_us < HFD_US_PER_S);
}

static void numbers(hfd_slice text)
{
    char written[32];
    struct hfd_err err;
    int64_t value, again;

    if (hfd_parse_duration_us(text, &value, &err) == HFD_OK)
        HFD_ASSERT(value >= 0);
    if (hfd_parse_i64(text, INT64_MIN, INT64_MAX, &value, &err) != HFD_OK)
        return;
    snprintf(written, sizeof(written), "%lld", (long long)value);
    HFD_ASSERT(hfd_parse_i64(hfd_slice_of(written), value, value, &again, &err) == HFD_OK);
    HFD_ASSERT(again == value);
}

static void base64url(hfd_slice text)
{
    unsigned char bytes[512], again[512];
    char written[1024];
    size_t len, again_len;

    if (hfd_base64url_decode(text, bytes, sizeof(bytes), &len) != HFD_OK)
        return;
    (void)sodium_bin2base64(written, sizeof(written), bytes, len,
                            sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    HFD_ASSERT(hfd_base64url_decode(hfd_slice_of(written), again, sizeof(again), &again_len) ==
               HFD_OK);
    HFD_ASSERT(again_len == len && memcmp(again, bytes, len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hfd_slice text = {(const char *)data, size};

    guresid(text);
    rfc3339(text);
    numbers(text);
    base64url(text);
    return 0;
}
