/* Ids of HyperFleet resources. */
#include "driver/fleet/ksuid_int.h"

#include "driver/base/clock.h"

#define EPOCH_S INT64_C(1400000000) /* the KSUID epoch, 2014-05-13T16:53:20Z */
#define RANDOM_BYTES 16

void hfd_ksuid_digits(const unsigned char number[HFD_KSUID_BYTES], char out[HFD_KSUID_LEN])
{
    static const char alphabet[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    unsigned char rest[HFD_KSUID_BYTES];

    memcpy(rest, number, sizeof(rest));
    for (size_t digit = HFD_KSUID_LEN; digit-- > 0;) {
        unsigned carry = 0;

        for (size_t i = 0; i < HFD_KSUID_BYTES; i++) { /* long division by 62, byte by byte */
            carry = carry << 8 | rest[i];
            rest[i] = (unsigned char)(carry / 62);
            carry %= 62;
        }
        out[digit] = alphabet[carry];
    }
}

/* Times outside of the 32 bits count as the nearest one inside. */
static uint64_t seconds_of(int64_t now_us)
{
    const int64_t s = now_us / HFD_US_PER_S - EPOCH_S;

    if (s < 0)
        return 0;
    return s > UINT32_MAX ? UINT32_MAX : (uint64_t)s;
}

void hfd_ksuid_make(int64_t now_us, const struct hfd_rng *rng, char out[HFD_KSUID_LEN])
{
    unsigned char number[HFD_KSUID_BYTES];
    const uint64_t head = seconds_of(now_us) << 2; /* bits 154..120 of the number: the seconds, and two of the random bits */

    hfd_rng_bytes(rng, number + HFD_KSUID_BYTES - RANDOM_BYTES, RANDOM_BYTES);
    for (size_t i = 0; i < 4; i++)
        number[i] = (unsigned char)(head >> (32 - 8 * i));
    number[4] = (unsigned char)((head & 0xfc) | (number[4] & 3));
    hfd_ksuid_digits(number, out);
    out[0] = '2'; /* 154 bits are less than 62^26: this digit was 0 */
}
