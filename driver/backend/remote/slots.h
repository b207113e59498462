/*
 * Passes side by side. One slot runs one pass. It asks the pass for a request, sends it when the
 * rate allows, and gives the answer to the writer. Then it asks again. While the writer has the
 * answer, the slot belongs to the writer. Thread: remote.
 */
#ifndef HFD_REMOTE_SLOTS_H
#define HFD_REMOTE_SLOTS_H

#include "driver/backend/remote/http.h"
#include "driver/backend/remote/work.h"
#include "driver/replica/keeper.h"
#include "store/store.h"

struct hfd_pass;
struct hfd_remote;

enum hfd_slot_state {
    HFD_SLOT_FREE,
    HFD_SLOT_ASK,      /* asks its pass for the next request */
    HFD_SLOT_READY,    /* its request waits for the rate */
    HFD_SLOT_SENT,     /* HTTP has its request */
    HFD_SLOT_ANSWERED, /* its answer waits for the store */
    HFD_SLOT_TAKING,   /* the writer takes its answer */
};

struct hfd_remote_slot {
    struct hfd_job job; /* first member */
    struct hfd_remote *remote;
    enum hfd_slot_state state;
    struct hfd_pass *pass;
    struct hfd_remote_call call; /* its request lives in the pass */
    int64_t order;               /* READY: the lowest is sent first */
    int64_t now_us;              /* TAKING: wall clock */
    bool taken;                  /* an answer of this pass was taken */
    struct hfd_hold hold;        /* of the shards of its work */
    bool lost;                   /* TAKING: the hold ended, and the answer was refused */
};

/** Returns whether a pass runs for this work. */
bool hfd_slots_run(const struct hfd_remote *r, const struct hfd_remote_work *work);
/** Begins a pass in a free slot. If that fails, sets the work aside. */
void hfd_slots_begin(struct hfd_remote *r, const struct hfd_remote_work *work);
/** Ends passes whose shards this replica does not hold any more. */
void hfd_slots_end_lost(struct hfd_remote *r);
/** Takes each slot as far as it goes without waiting. */
void hfd_slots_go_on(struct hfd_remote *r);
/** The slot whose request is sent next; NULL = none waits. */
struct hfd_remote_slot *hfd_slots_first_ready(struct hfd_remote *r);
/** Ends all requests. */
void hfd_slots_cut(struct hfd_remote *r);
/** Frees all passes. No job may be with the store. */
void hfd_slots_clear(struct hfd_remote *r);

#endif
