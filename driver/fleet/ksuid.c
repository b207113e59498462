/* Ids of clusters and nodepools. See ksuid.h. */
#include "driver/fleet/ksuid_int.h"

#include "driver/base/clock.h"

#define EPOCH_US (INT64_C(1400000000) * HFD_US_PER_S) /* the KSUID epoch, 2014-05-13T16:53:20Z */
#define LAST_US (INT64_C(0x100000000) * HFD_US_PER_S - 1)
#define HEAD_BYTES 7
#define RANDOM_BYTES 11

#define BASE 36
#define LIMBS (HFD_KSUID_BYTES / 4)
#define GROUP_DIGITS 6
#define GROUP UINT32_C(2176782336) /* 36^6: one division gives six digits */

_Static_assert(LIMBS * 4 == HFD_KSUID_BYTES, "whole limbs");

/*
 * Divides in place, 32 bits at a time.
 * @return the remainder
 */
static uint32_t divide(uint32_t number[LIMBS], uint32_t by)
{
    uint64_t carry = 0;

    for (size_t i = 0; i < LIMBS; i++) {
        carry = carry << 32 | number[i];
        number[i] = (uint32_t)(carry / by);
        carry %= by;
    }
    return (uint32_t)carry;
}

void hfd_ksuid_digits(const unsigned char number[HFD_KSUID_BYTES], char out[HFD_KSUID_LEN])
{
    static const char alphabet[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    uint32_t rest[LIMBS], group = 0;

    for (size_t i = 0; i < LIMBS; i++)
        rest[i] = (uint32_t)number[4 * i] << 24 | (uint32_t)number[4 * i + 1] << 16 |
                  (uint32_t)number[4 * i + 2] << 8 | number[4 * i + 3];
    for (size_t done = 0; done < HFD_KSUID_LEN; done++) {
        if (done % GROUP_DIGITS == 0)
            group = divide(rest, GROUP);
        out[HFD_KSUID_LEN - 1 - done] = alphabet[group % BASE];
        group /= BASE;
    }
}

/*
 * Microseconds since the epoch. A time outside the 32 bits of seconds becomes the nearest one
 * inside.
 */
static uint64_t us_of(int64_t now_us)
{
    if (now_us < EPOCH_US)
        return 0;
    return (uint64_t)(now_us - EPOCH_US < LAST_US ? now_us - EPOCH_US : LAST_US);
}

void hfd_ksuid_make(int64_t now_us, const struct hfd_rng *rng, char out[HFD_KSUID_LEN])
{
    unsigned char number[HFD_KSUID_BYTES] = {0};
    unsigned char *bits = number + HFD_KSUID_BYTES - HEAD_BYTES - RANDOM_BYTES + 1;
    const uint64_t us = us_of(now_us);
    const uint64_t head = us / HFD_US_PER_S << 20 | us % HFD_US_PER_S; /* 32 bits, then 20 bits */
    const uint64_t above = head << 2; /* the last byte has two more bits, which are random */

    hfd_rng_bytes(rng, number + HFD_KSUID_BYTES - RANDOM_BYTES, RANDOM_BYTES);
    bits[HEAD_BYTES - 1] = (unsigned char)((above & 0xfc) | (bits[HEAD_BYTES - 1] & 0x03));
    for (size_t i = 0; i < HEAD_BYTES - 1; i++)
        bits[i] = (unsigned char)(above >> (8 * (HEAD_BYTES - 1 - i)));
    hfd_ksuid_digits(number, out);
    out[0] = '2'; /* 134 bits are less than 36^26: this digit was 0 */
}
