/*
 * The watch: events about clusters and nodepools that are due, to callers that wait for them. An
 * answer is held until there is an event (a long poll), or goes on without an end (Server-Sent
 * Events, as WHATWG's HTML has them).
 *
 * Each loop reads new events once for all its watchers. A watcher that is behind reads for itself
 * until it is not. Thread: loop, unless said.
 */
#ifndef HFD_HTTP_WATCH_API_H
#define HFD_HTTP_WATCH_API_H

#include "handlers/http/http.h"

struct hfd_loop;
struct hfd_watch_room;

hfd_handler_fn hfd_watch_api;

/** Opens the room of a loop. @param out  gives. @return HFD_OK, HFD_NOMEM */
HFD_MUST_CHECK hfd_rc hfd_watch_room_open(struct hfd_loop *loop, struct hfd_watch_room **out,
                                          struct hfd_err *err);
/** Accepts NULL. No caller waits, and no job is out. */
void hfd_watch_room_close(struct hfd_watch_room *room);
/** Gives watchers what is due at this time. Between two runs of the loop only. */
void hfd_watch_room_run(struct hfd_watch_room *room, int64_t now_us);
/** The same once a second: for callers that have gone, and streams that are quiet. */
void hfd_watch_room_sweep(struct hfd_watch_room *room, int64_t now_us);
/** Returns true while a job is out: the loop must not end. */
bool hfd_watch_room_is_busy(const struct hfd_watch_room *room);
/** Returns how long the loop may sleep, at most max_us. */
int64_t hfd_watch_room_wait_us(struct hfd_watch_room *room, int64_t now_us, int64_t max_us);

#endif
