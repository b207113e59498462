/*
 * The token and the certificates of the client, in guarded memory. Those that are files are read
 * again when they change. Thread: the client's.
 */
#ifndef HFD_KUBE_CREDENTIAL_H
#define HFD_KUBE_CREDENTIAL_H

#include <sys/stat.h>

#include "driver/base/secret.h"
#include "driver/kube/access.h"

enum hfd_kube_secret {
    HFD_KUBE_CA,
    HFD_KUBE_CERT,
    HFD_KUBE_KEY,
    HFD_KUBE_TOKEN,
    HFD_KUBE_SECRET_COUNT
};

struct hfd_kube_credentials {
    struct hfd_kube_secret_text {
        const char *file; /* NULL = none */
        struct stat seen; /* before the last attempt to read it */
        struct hfd_secret text;
    } of[HFD_KUBE_SECRET_COUNT];
};

/** @return HFD_OK, HFD_IO or HFD_INVALID (which file, why), HFD_NOMEM */
HFD_MUST_CHECK hfd_rc hfd_kube_credentials_open(struct hfd_kube_credentials *c,
                                                const struct hfd_kube_access *access,
                                                struct hfd_err *err);
void hfd_kube_credentials_close(struct hfd_kube_credentials *c);
/**
 * Reads changed files again. If one cannot be used, what was read before stays, and the log says
 * so, once for each change.
 * @param all  also reads files that have not changed
 */
void hfd_kube_credentials_refresh(struct hfd_kube_credentials *c, bool all);

#endif
