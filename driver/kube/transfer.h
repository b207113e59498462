/* One HTTP exchange of the client, for calls and watches. Thread: the client's. */
#ifndef HFD_KUBE_TRANSFER_H
#define HFD_KUBE_TRANSFER_H

#include <stdatomic.h>

#include <curl/curl.h>

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
    CURLM *multi;
    size_t transfers;
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

    CURL *easy; /* NULL = not under way */
    struct curl_slist *headers;
    struct hfd_buf answer;
    int64_t retry_after_us;
    size_t header_bytes;
    bool done, counted;
    CURLcode code;
    int status;
    char type[HFD_PEER_TYPE_MAX]; /* of the body */
    const char *refused;          /* why the rest is not read; static */
    char curl_says[CURL_ERROR_SIZE];
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
/** Carries on with all exchanges, and waits for up to wait_us for one to move. */
void hfd_kube_transfers_run(struct hfd_kube *kube, int64_t wait_us);

#endif
