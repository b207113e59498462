/*
 * All sentences of this folder that an app developer or an operator reads: messages of failed
 * operations, and what stands in the way of one. The result has no p if memory is short.
 *
 * A message is whole sentences. A trouble is part of the message of a deadline: it has no full
 * stop. Thread: writer.
 */
#ifndef HFD_REMOTE_WORDS_H
#define HFD_REMOTE_WORDS_H

#include "driver/backend/remote/take.h"

/* ---- messages ---- */

/** Another server of this driver made the HyperFleet resource. */
hfd_slice hfd_words_other_server(const struct hfd_take *t, const struct hfd_pass_part *part,
                                 hfd_slice id, hfd_slice owner);
/** The name belongs to a HyperFleet resource that is not of this driver resource. */
hfd_slice hfd_words_name_taken(const struct hfd_take *t, const struct hfd_pass_part *part,
                               hfd_slice id);
/** A name cannot change. */
hfd_slice hfd_words_other_name(const struct hfd_take *t, const struct hfd_pass_part *part,
                               hfd_slice id, hfd_slice name);
hfd_slice hfd_words_invalid(const struct hfd_take *t, const struct hfd_pass_part *part);
/** This HyperFleet has no PATCH or DELETE. */
hfd_slice hfd_words_unable(const struct hfd_take *t, const struct hfd_pass_part *part);
hfd_slice hfd_words_credentials(const struct hfd_take *t);
hfd_slice hfd_words_no_cluster(const struct hfd_take *t, hfd_slice cluster_id);

/* ---- troubles ---- */

/** "HyperFleet answered 503: ...", for an answer that is not good. */
hfd_slice hfd_words_answer(const struct hfd_take *t);
/** This HyperFleet cannot list by label. @param answer  of hfd_words_answer */
hfd_slice hfd_words_cannot_search(const struct hfd_take *t, enum hfd_kind kind, hfd_slice answer);
/** This HyperFleet cannot delete an orphan. */
hfd_slice hfd_words_cannot_delete(const struct hfd_take *t, enum hfd_kind kind);

#define HFD_WORDS_NO_LIST "HyperFleet answered with a document that is no list"
#define HFD_WORDS_BEHIND "HyperFleet answered with an earlier generation than before"
#define HFD_WORDS_ORPHAN_UNREADABLE "HyperFleet answered with a document that cannot be read"
#define HFD_WORDS_INHABITED "it was not deleted: a nodepool of a resource was made in it meanwhile"

#endif
