/*
 * The way to a Kubernetes API server: its URL and credentials. They come from a kubeconfig file or
 * from the service account of a pod. Refuses what it cannot do as asked: plugins that run
 * programs, passwords, unverified certificates, proxies. Thread: start-up, unless said.
 */
#ifndef HFD_KUBE_ACCESS_H
#define HFD_KUBE_ACCESS_H

#include <sys/stat.h>

#include "driver/base/arena.h"
#include "driver/base/secret.h"

/** A credential: its text, or the file that holds it. Both empty = none. */
struct hfd_kube_credential {
    hfd_slice text;   /* PEM, or a token */
    const char *file; /* NULL = none; read again when it changes */
};

/** All texts live in the arena, and end with a NUL. */
struct hfd_kube_access {
    hfd_slice server; /* https://host:port, without a slash at its end */
    struct hfd_kube_credential ca, cert, key, token;
    hfd_slice namespace; /* of the context, or empty */
    const char *file;    /* the kubeconfig, read again when it changes; NULL = none */
    struct stat seen;    /* of it, before it was read */
};

/** A kubeconfig document, and where it comes from. */
struct hfd_kubeconfig {
    hfd_slice text;
    const char *path; /* for messages, and as the place of relative paths in it */
};

/**
 * Reads the current context of a kubeconfig (YAML or JSON).
 * @return HFD_OK, HFD_INVALID (which entry, what was expected), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_kubeconfig_parse(const struct hfd_kubeconfig *config,
                                           struct hfd_arena *mem, struct hfd_kube_access *out,
                                           struct hfd_err *err);

/** Reads and parses a kubeconfig file. @return as hfd_kubeconfig_parse, or HFD_IO */
HFD_MUST_CHECK hfd_rc hfd_kubeconfig_read(const char *path, struct hfd_arena *mem,
                                          struct hfd_kube_access *out, struct hfd_err *err);

/** The environment of a pod. */
struct hfd_kube_pod {
    const char *host, *port; /* KUBERNETES_SERVICE_HOST and _PORT; NULL or empty = not in a pod */
    const char *folder;      /* of the service account: token, ca.crt, namespace */
};

/** The folder where a pod has its service account. */
#define HFD_KUBE_POD_FOLDER "/var/run/secrets/kubernetes.io/serviceaccount"

/** Uses the service account of this pod. @return HFD_OK, HFD_INVALID, HFD_IO, HFD_NOMEM */
HFD_MUST_CHECK hfd_rc hfd_kube_in_cluster(const struct hfd_kube_pod *pod, struct hfd_arena *mem,
                                          struct hfd_kube_access *out, struct hfd_err *err);

#endif
