/*
 * A client of one Kubernetes API server: calls that wait for their answer, and watches that run
 * beside them. HTTP/1.1 over kept connections, with deadlines and bounded answers. It
 * verifies certificates, and uses no redirects and no proxies. It knows no kind of object.
 * Thread: the one that opened it, unless said.
 */
#ifndef HFD_KUBE_CLIENT_H
#define HFD_KUBE_CLIENT_H

#include "driver/base/clock.h"
#include "driver/base/jsonx.h"
#include "driver/base/peer.h"
#include "driver/kube/access.h"

struct hfd_kube;

struct hfd_kube_config {
    const struct hfd_kube_access *access; /* borrowed until close; secrets are copied */
    const struct hfd_clock *clock;
    int64_t connect_timeout_us, timeout_us;
    size_t answer_max_bytes;
};

/** @return HFD_OK, HFD_INVALID or HFD_IO (a file of the access cannot be used), HFD_NOMEM */
HFD_MUST_CHECK hfd_rc hfd_kube_open(const struct hfd_kube_config *config, struct hfd_kube **out,
                                    struct hfd_err *err);
/** Ends the watches, and frees all. Accepts a pointer to NULL. */
void hfd_kube_close(struct hfd_kube **kube);
/** Why the thread of a client is woken. */
enum hfd_kube_wake {
    HFD_KUBE_NEWS,
    HFD_KUBE_RELOAD, /* the kubeconfig and its files are read again, changed or not. They are also
                        read again by themselves when they change */
    HFD_KUBE_STOP,   /* the present call ends, and each later one, with HFD_BUSY */
};
/** Ends the present hfd_kube_run. Thread: any. */
void hfd_kube_wake(struct hfd_kube *kube, enum hfd_kube_wake why);

/** A kind of object at the API server. */
struct hfd_kube_type {
    const char *group_version; /* "v1", "hypershift.openshift.io/v1beta1" */
    const char *kind, *plural;
    bool cluster_scoped;
};

/** An object, or with an empty name all of its type in a namespace (empty = in all). */
struct hfd_kube_object {
    const struct hfd_kube_type *type;
    hfd_slice namespace, name;
};

/** The kind of answer that a call asks for. */
enum hfd_kube_asked {
    HFD_KUBE_OBJECT,  /* a get or an apply: an object */
    HFD_KUBE_OBJECTS, /* a list */
    HFD_KUBE_REMOVAL  /* a deletion: an object or a Status */
};

/** An answer to a call; refusal.h finds out whose it is. Zeroed is empty. */
struct hfd_kube_answer {
    int status;             /* HTTP */
    json_t *doc;            /* NULL if the body is no JSON */
    int64_t retry_after_us; /* 0 = not said */
    enum hfd_kube_asked asked;
    bool empty;                   /* no body */
    bool no_route;                /* the API server's text for paths that it does not have */
    char type[HFD_PEER_TYPE_MAX]; /* of the body */
};

/** Frees the document. */
void hfd_kube_answer_fini(struct hfd_kube_answer *answer);

/*
 * The calls return HFD_OK if an answer came, whatever it is: refusal.h judges it. Else
 * HFD_TIMEOUT (no connection, no whole answer), HFD_TOO_LARGE, HFD_BUSY (stopped), HFD_NOMEM.
 */

/** Reads one object. */
HFD_MUST_CHECK hfd_rc hfd_kube_get(struct hfd_kube *kube, const struct hfd_kube_object *object,
                                   struct hfd_kube_answer *out, struct hfd_err *err);

struct hfd_kube_apply {
    struct hfd_kube_object object;
    const char *manager;
    bool dry_run;
    bool force;     /* also takes fields that others own */
    hfd_slice body; /* JSON: the object as its manager wants it */
};
/** Server-side apply. */
HFD_MUST_CHECK hfd_rc hfd_kube_apply(struct hfd_kube *kube, const struct hfd_kube_apply *apply,
                                     struct hfd_kube_answer *out, struct hfd_err *err);

/**
 * Deletes an object in the background. 200 means that the server has noted it, not that it is gone.
 * @param uid  the deletion holds for that object alone; empty = whatever has the name
 */
HFD_MUST_CHECK hfd_rc hfd_kube_delete(struct hfd_kube *kube, const struct hfd_kube_object *object,
                                      hfd_slice uid, struct hfd_kube_answer *out,
                                      struct hfd_err *err);

/** Called for each object of a list. @return false ends the list */
typedef bool hfd_kube_item_fn(void *ctx, const json_t *item);

struct hfd_kube_list {
    struct hfd_kube_object objects;
    const char *selector; /* of labels, without blanks; NULL = all */
    bool metadata_only;
    int64_t page_limit; /* objects in one answer */
    hfd_kube_item_fn *on_item;
    void *ctx;
};
/**
 * Lists objects page by page; a list of many pages is slowed down, and one without end is
 * HFD_TOO_LARGE. If a page's token has expired, begins again once: on_item may see an
 * object twice.
 * @param out      the last answer; with a status other than 200 the list is not whole
 * @param version  resource version of the list; NULL = not needed
 */
HFD_MUST_CHECK hfd_rc hfd_kube_list(struct hfd_kube *kube, const struct hfd_kube_list *list,
                                    char version[64], struct hfd_kube_answer *out,
                                    struct hfd_err *err);

/** Carries on with the watches for up to wait_us, or until hfd_kube_wake. */
void hfd_kube_run(struct hfd_kube *kube, int64_t wait_us);

/**
 * Writes the path of an object or a list, with its name escaped.
 * "/apis/apps/v1/namespaces/x/deployments/y"
 */
void hfd_kube_path(struct hfd_buf *b, const struct hfd_kube_object *object);

/*
 * A watch follows the objects of one type: lists them, then reads the stream of changes. It begins
 * anew where the server says that too much was missed. It reports every object once after each
 * list, so a change is seen late, but never lost.
 */

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
 * @return HFD_OK also if the server refused; else as the calls
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
