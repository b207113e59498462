/* One HTTP exchange of the client, for calls and watches. Thread: the client's. */
#ifndef HFD_KUBE_TRANSFER_H
#define HFD_KUBE_TRANSFER_H

#include <stdatomic.h>

#include "driver/base/http_client.h"
#include "driver/kube/client.h"
#include "driver/kube/credential.h"

struct hfd_kube {
    unsigned magic;
#define HFD_KUBE_MAGIC 0x6b756265u
    struct hfd_kube_config config;  /* its access is the present one */
    struct hfd_kube_access present; /* of a kubeconfig that was read again; texts live in mem */
    struct hfd_arena mem;
    struct stat seen; /* of the kubeconfig, before the last attempt to read it */
    unsigned era;     /* counts the kubeconfigs that were read */
    struct hfd_kube_credentials credentials;
    struct hfd_http_server server; /* without the time of an exchange */
    struct hfd_http_client *client;
    bool refused_token; /* the server answered 401: the file may have a new token */
    atomic_bool stopped, woken, reload;
};

/** Set before hfd_kube_transfer_start; the rest belongs to the module. */
struct hfd_kube_transfer {
    struct hfd_kube *kube;
    const char *method; /* "GET", "PATCH", "DELETE" */
    enum hfd_kube_asked asked;
    hfd_slice path;           /* with its query; borrowed during start */
    const char *accept;       /* NULL = application/json */
    const char *content_type; /* of the body */
    hfd_slice body;           /* borrowed until the end */
    int64_t timeout_us;       /* of the whole exchange */
    /* Takes bytes of a 200 as they come; false ends the exchange. NULL = they become `answer`. */
    bool (*on_bytes)(void *ctx, hfd_slice bytes);
    void *ctx;

    bool began, done, counted; /* began: until it is freed */
    struct hfd_http_server server;
    struct hfd_http_call call;
    struct hfd_http_answer answer;
};

/**
 * Reads the kubeconfig and the files of credentials again, if they have changed. A file
 * that cannot be used is logged, and what was read before stays in use.
 */
void hfd_kube_refresh(struct hfd_kube *kube);
/** Sends the request. @return HFD_OK, HFD_NOMEM, HFD_BUSY (stopped) */
HFD_MUST_CHECK hfd_rc hfd_kube_transfer_start(struct hfd_kube_transfer *t, struct hfd_err *err);
/** Ends it, if it is under way, and frees what it has. Accepts one that was never started. */
void hfd_kube_transfer_fini(struct hfd_kube_transfer *t);
/** Takes the answer of one that is done, whatever it is. @return HFD_OK, HFD_NOMEM */
HFD_MUST_CHECK hfd_rc hfd_kube_transfer_answer(const struct hfd_kube_transfer *t,
                                               struct hfd_kube_answer *out, struct hfd_err *err);
/** Makes the failure of one that is done and has no whole answer. @return HFD_OK if it has one */
HFD_MUST_CHECK hfd_rc hfd_kube_transfer_result(const struct hfd_kube_transfer *t,
                                               struct hfd_err *err);
#endif
