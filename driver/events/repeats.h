/*
 * Repeated events of clusters and nodepools whose adapters stay silent, by the rules of
 * HyperFleet's sentinel. The first comes 10 s after the last change of one that is not reconciled.
 * Then the pause doubles, up to 30 minutes. One that is reconciled has an event each 30 minutes. A
 * change of its conditions begins anew. So does a start of this program: nothing of this is stored.
 *
 * A thread looks for them while readers want them, and puts them on a board. Readers take them from
 * there. Thread: any, where nothing else is said.
 */
#ifndef HFD_EVENTS_REPEATS_H
#define HFD_EVENTS_REPEATS_H

#include "driver/base/bell.h"
#include "driver/base/clock.h"
#include "store/rows_due.h"
#include "store/store.h"

/** When one resource is repeated. Zeroed = it was not seen yet. */
struct hfd_repeat {
    uint64_t state; /* of its conditions and its last change */
    int64_t next_us, pause_us;
};

/** A resource, as it was read. */
struct hfd_repeat_look {
    uint64_t state;
    bool reconciled;
    int64_t since_us; /* of its last change */
    int64_t now_us;
};

/**
 * Decides if a resource is repeated now, and remembers it. Pure.
 * @return true: it is
 */
bool hfd_repeat_is_due(struct hfd_repeat *r, const struct hfd_repeat_look *look);

struct hfd_repeats;

struct hfd_repeats_parts {
    struct hfd_store *store;
    const struct hfd_clock *clock;
    struct hfd_bell *bell; /* woken when there are repeats */
    int64_t per_second;    /* the most */
};

/** Makes a board. @return NULL: memory is short */
struct hfd_repeats *hfd_repeats_new(void);
/** No reader is left. Accepts NULL. */
void hfd_repeats_free(struct hfd_repeats *repeats);
/**
 * Starts the thread. Accepts NULL, and does nothing.
 * @param parts  its pointers are borrowed until hfd_repeats_stop
 * @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_repeats_start(struct hfd_repeats *repeats,
                                        const struct hfd_repeats_parts *parts, struct hfd_err *err);
/** Ends the thread. Accepts NULL, and one that was not started. */
void hfd_repeats_stop(struct hfd_repeats *repeats);

/** A reader is there: the thread looks for the next minute. Accepts NULL. */
void hfd_repeats_want(struct hfd_repeats *repeats);
/**
 * Gives what came behind a place on the board, which moves on. The last 1,024 are
 * there. A reader begins at UINT64_MAX, with nothing. NULL: nothing comes.
 * @param rows  in mem; seq is that of the resource's last change, and at_us the time of the repeat
 * @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_repeats_read(struct hfd_repeats *repeats, uint64_t *place,
                                       struct hfd_arena *mem, struct hfd_due_page *rows,
                                       struct hfd_err *err);

#endif
