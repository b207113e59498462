/*
 * Follows the objects of one type: lists them, then reads the stream of changes. It begins anew
 * where the server says that too much was missed. It reports every object once after each list, so
 * a change is seen late, but never lost. Thread: the client's.
 */
#ifndef HFD_KUBE_WATCH_H
#define HFD_KUBE_WATCH_H

#include "driver/kube/client.h"

struct hfd_kube_watch;

/** Called for an object that is there, changed, or is gone. `object` is borrowed. */
typedef void hfd_kube_changed_fn(void *ctx, const json_t *object, bool gone);

struct hfd_kube_watch_config {
    struct hfd_kube_object objects; /* without a name */
    const char *selector;           /* of labels; NULL = all */
    hfd_kube_changed_fn *on_changed;
    void *ctx;
    int64_t stream_s; /* the server ends the stream after it; the next one begins where it ended */
};

/** @return HFD_OK, HFD_NOMEM */
HFD_MUST_CHECK hfd_rc hfd_kube_watch_new(struct hfd_kube *kube,
                                         const struct hfd_kube_watch_config *config,
                                         struct hfd_kube_watch **out, struct hfd_err *err);
/** Accepts NULL. */
void hfd_kube_watch_free(struct hfd_kube_watch *watch);

/**
 * Lists, or begins the stream, where that is due. hfd_kube_run and all calls read the stream. After
 * an answer or a failure the caller has to pause. A stream that ends soon after it began is a
 * failure too, however it ended.
 * @param answer  of a refused list or stream; empty otherwise
 * @return HFD_OK also if the server refused; else as the calls of client.h
 */
HFD_MUST_CHECK hfd_rc hfd_kube_watch_step(struct hfd_kube_watch *watch,
                                          struct hfd_kube_answer *answer, struct hfd_err *err);
/** True while a stream is being read. */
bool hfd_kube_watch_is_open(const struct hfd_kube_watch *watch);

/** True while a stream is being read that has lasted: trouble before it is over. */
bool hfd_kube_watch_is_sound(const struct hfd_kube_watch *watch);

/** One line of a stream. */
enum hfd_kube_event {
    HFD_KUBE_EVENT_CHANGED,
    HFD_KUBE_EVENT_GONE,
    HFD_KUBE_EVENT_BOOKMARK,
    HFD_KUBE_EVENT_EXPIRED, /* begin anew */
    HFD_KUBE_EVENT_ERROR,   /* the server ends the stream */
    HFD_KUBE_EVENT_BAD,     /* not an event */
};
/** Reads the type of an event. @param object  borrowed from doc; NULL without one */
enum hfd_kube_event hfd_kube_event_of(const json_t *doc, const json_t **object);

#endif
