/*
 * The text of created_by, updated_by and deleted_by, made from what a trusted proxy reports about
 * the caller. HyperFleet's clients expect it e-mail shaped. Pure. Source: driver/README.md,
 * decision
 * 7. Thread: any.
 */
#ifndef HFD_CORE_IDENTITY_H
#define HFD_CORE_IDENTITY_H

#include "driver/base/arena.h"

#define HFD_IDENTITY_MAX_BYTES 254 /* of an e-mail address: RFC 5321 */
#define HFD_IDENTITY_DOMAIN "hyperfleet.local"
#define HFD_IDENTITY_SYSTEM "system@" HFD_IDENTITY_DOMAIN

/**
 * NAME@DOMAIN stays as it is, NAME becomes NAME@hyperfleet.local. Any other text becomes the
 * system: nothing, too long, other than visible ASCII, more than one @. No request is refused for
 * it.
 * @param value  of the header, spaces around it trimmed; HFD_SLICE_NONE = there is none
 * @param out    static or in mem
 * @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_identity_make(hfd_slice value, struct hfd_arena *mem, hfd_slice *out,
                                        struct hfd_err *err);

#endif
