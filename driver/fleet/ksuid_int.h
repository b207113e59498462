/* The inside of ksuid.c, for its tests. */
#ifndef HFD_FLEET_KSUID_INT_H
#define HFD_FLEET_KSUID_INT_H

#include "driver/fleet/ksuid.h"

#define HFD_KSUID_BYTES 20

/** Formats a number below 36^27, most significant byte first, as 27 digits of base36. */
void hfd_ksuid_digits(const unsigned char number[HFD_KSUID_BYTES], char out[HFD_KSUID_LEN]);

#endif
