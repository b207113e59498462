/*
 * A POST whose answer never comes may still be carried out later, even after this process has
 * ended. The row of the work therefore has the time of the last such POST (unsure_us), written
 * before it is sent. Thread: writer, inside a transaction function.
 */
#ifndef HFD_REMOTE_CREATION_H
#define HFD_REMOTE_CREATION_H

#include "driver/backend/remote/take.h"

/* A POST without an answer may be carried out for this long. */
#define HFD_CREATION_UNSURE_US (60 * HFD_US_PER_S)

/** A POST comes next: sets the time in the row. */
void hfd_creation_announce(struct hfd_take *t);
/** The announced POST is not sent after all: sets the time back. */
void hfd_creation_withdraw(struct hfd_take *t);
/** A POST was sent: keeps the time if there was no answer, or if another POST comes next. */
void hfd_creation_conclude(struct hfd_take *t);
/** Returns whether a POST may still be carried out. */
bool hfd_creation_is_unsure(const struct hfd_take *t);
/** Returns whether a nodepool has to be created. @param but  not counted; may be NULL */
bool hfd_creation_is_left(const struct hfd_take *t, const struct hfd_pass_part *but);

#endif
