/* The steps of the check, in their order. Thread: main. */
#ifndef HFD_CLIENT_CHECK_LIFE_H
#define HFD_CLIENT_CHECK_LIFE_H

#include "handlers/client/check_int.h"

/** Asks for a resource that does not exist. */
void hfd_check_absent(struct hfd_check *k);
/** Orders documents that are not valid. */
void hfd_check_garbage(struct hfd_check *k);
/** Creates, reads, updates and deletes a resource, then creates and deletes it again. */
void hfd_check_life(struct hfd_check *k);
/** Orders the update of a resource that does not exist. The clean-up deletes it. */
void hfd_check_by_update(struct hfd_check *k);

#endif
