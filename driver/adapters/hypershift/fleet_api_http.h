/* Requests of fleet_api.h, and what their answers mean. Thread: the adapter's. */
#ifndef HFD_HYPERSHIFT_FLEET_API_HTTP_H
#define HFD_HYPERSHIFT_FLEET_API_HTTP_H

#include "driver/adapters/hypershift/fleet_api_int.h"

/** The answer to a request. */
struct hfd_hs_answer {
    int status;
    json_t *doc; /* of a good answer to GET; gives; NULL = none */
};

/**
 * Sends a request and waits for its answer.
 * @param mem  for the words of a refusal
 * @return HFD_OK, HFD_NOT_FOUND, HFD_INVALID (it refuses what was sent), HFD_IO (all else, with
 * words), HFD_BUSY (stopping), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_hs_api_exchange(struct hfd_hs_fleet_api *api,
                                          const struct hfd_remote_request *request,
                                          struct hfd_arena *mem, struct hfd_hs_answer *out,
                                          struct hfd_err *err);

/** The path of a resource with something behind it. p is NULL if memory is short. */
hfd_slice hfd_hs_api_path(const struct hfd_fleet_row *row, const char *rest, struct hfd_arena *mem);

#endif
