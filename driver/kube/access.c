/* See access.h. The form of a kubeconfig is "Config, v1" of the Kubernetes reference. */
#include "driver/kube/access.h"

#include <stdio.h>

#include "driver/base/file.h"
#include "driver/base/jsonx.h"
#include "driver/base/url.h"
#include "driver/base/yamlx.h"

#define FILE_MAX_BYTES ((size_t)1 << 20)

/* A kubeconfig at work. Messages begin with `path`. */
struct reading {
    const struct hfd_kubeconfig *config;
    struct hfd_arena *mem;
    struct hfd_err *err;
};

static hfd_rc fail_nomem(const struct reading *r)
{
    return hfd_fail_nomem(r->err, "read a kubeconfig");
}

static hfd_rc refuse(const struct reading *r, const char *entry, const char *what)
{
    return hfd_fail(r->err, HFD_INVALID, "%.100s: %s: %s", r->config->path, entry, what);
}

/* The member `kind` of the entry with that name in the list `list`, or NULL. */
static const json_t *named(const json_t *doc, const char *list, const char *kind, hfd_slice name)
{
    const json_t *entries = json_object_get(doc, list);

    for (size_t i = 0; i < json_array_size(entries); i++) {
        const json_t *entry = json_array_get(entries, i);

        if (hfd_slice_eq(hfd_json_text(entry, "name"), name))
            return json_object_get(entry, kind);
    }
    return NULL;
}

/* ---- credentials ---- */

/* A file of the kubeconfig: relative to its folder. */
static hfd_rc keep_path(const struct reading *r, hfd_slice file, const char **out)
{
    const char *slash = strrchr(r->config->path, '/');
    hfd_slice path;

    if (file.p[0] == '/' || slash == NULL)
        path = hfd_arena_dup(r->mem, file);
    else
        path = hfd_arena_printf(r->mem, "%.*s/%.*s", (int)(slash - r->config->path),
                                r->config->path, HFD_SLICE_FMT(file));
    *out = path.p;
    return path.p != NULL ? HFD_OK : fail_nomem(r);
}

/* Reads KEY-data in base64, or the path in KEY. */
static hfd_rc read_credential(const struct reading *r, const json_t *obj, const char *key,
                              struct hfd_kube_credential *out)
{
    const hfd_slice file = hfd_json_text(obj, key);
    char data_key[64];
    unsigned char *bytes;
    hfd_slice data;
    size_t len;

    (void)snprintf(data_key, sizeof(data_key), "%s-data", key);
    data = hfd_json_text(obj, data_key);
    if (data.len == 0)
        return file.len > 0 ? keep_path(r, file, &out->file) : HFD_OK;
    bytes = hfd_arena_alloc(r->mem, data.len + 1);
    if (bytes == NULL)
        return fail_nomem(r);
    if (hfd_base64_decode(data, bytes, data.len, &len) != HFD_OK)
        return refuse(r, data_key, "expected base64");
    bytes[len] = '\0';
    out->text = (hfd_slice){(const char *)bytes, len};
    return HFD_OK;
}

/* Entries that a user may have and that are refused: they would be ignored otherwise. */
static hfd_rc refuse_user(const struct reading *r, const json_t *user)
{
    static const struct {
        const char *key, *what;
    } refused[] = {
        {"exec", "this driver runs no credential plugins; use a token or a client certificate, for "
                 "example of a service account"},
        {"auth-provider", "this driver has no credential providers; use a token or a client "
                          "certificate, for example of a service account"},
        {"username", "expected a token or a client certificate; API servers take no passwords"},
        {"password", "expected a token or a client certificate; API servers take no passwords"},
        {"as", "this driver does not impersonate; use the credentials of that account"},
        {"as-groups", "this driver does not impersonate; use the credentials of that account"},
    };

    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        const json_t *v = json_object_get(user, refused[i].key);

        if (v != NULL && !json_is_null(v) && !(json_is_string(v) && json_string_length(v) == 0))
            return refuse(r, refused[i].key, refused[i].what);
    }
    return HFD_OK;
}

static hfd_rc read_token(const struct reading *r, const json_t *user, struct hfd_kube_access *out)
{
    const hfd_slice file = hfd_json_text(user, "tokenFile"), token = hfd_json_text(user, "token");

    /* As kubectl does: the file wins, as its content changes. */
    if (file.len > 0)
        return keep_path(r, file, &out->token.file);
    if (token.len == 0)
        return HFD_OK;
    out->token.text = hfd_arena_dup(r->mem, token);
    return out->token.text.p != NULL ? HFD_OK : fail_nomem(r);
}

static hfd_rc read_user(const struct reading *r, const json_t *user, struct hfd_kube_access *out)
{
    hfd_rc rc = read_token(r, user, out);

    if (rc == HFD_OK)
        rc = read_credential(r, user, "client-certificate", &out->cert);
    if (rc == HFD_OK)
        rc = read_credential(r, user, "client-key", &out->key);
    return rc;
}

/* ---- the cluster ---- */

static hfd_rc refuse_cluster(const struct reading *r, const json_t *cluster)
{
    static const struct {
        const char *key, *what;
    } refused[] = {
        {"insecure-skip-tls-verify", "this driver verifies certificates; give the authority in "
                                     "certificate-authority-data"},
        {"proxy-url", "this driver uses no proxy"},
        {"tls-server-name", "expected a certificate for the host of the server's URL"},
    };

    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        const json_t *v = json_object_get(cluster, refused[i].key);

        if (json_is_true(v) || json_string_length(v) > 0)
            return refuse(r, refused[i].key, refused[i].what);
    }
    return HFD_OK;
}

static hfd_rc read_server(const struct reading *r, hfd_slice server, struct hfd_kube_access *out)
{
    struct hfd_err why;

    if (hfd_url_check(server, &why) != HFD_OK)
        return refuse(r, "server", why.msg);
    /* Without TLS the token can be read on the way: that is for tests on this machine. */
    if (hfd_slice_starts(server, HFD_SLICE("http://")) && !hfd_url_is_loopback(server))
        return refuse(r, "server", "expected https://, except for an address of this machine");
    while (server.len > 0 && server.p[server.len - 1] == '/')
        server.len--;
    out->server = hfd_arena_dup(r->mem, server);
    return out->server.p != NULL ? HFD_OK : fail_nomem(r);
}

static hfd_rc read_cluster(const struct reading *r, const json_t *cluster,
                           struct hfd_kube_access *out)
{
    hfd_rc rc = refuse_cluster(r, cluster);

    if (rc == HFD_OK)
        rc = read_server(r, hfd_json_text(cluster, "server"), out);
    if (rc == HFD_OK)
        rc = read_credential(r, cluster, "certificate-authority", &out->ca);
    return rc;
}

/* ---- the document ---- */

static hfd_rc read_document(const struct reading *r, const json_t *doc, struct hfd_kube_access *out)
{
    const hfd_slice name = hfd_json_text(doc, "current-context");
    const json_t *context, *cluster, *user;
    hfd_rc rc;

    if (!json_is_object(doc))
        return refuse(r, "the document", "expected a kubeconfig");
    if (name.len == 0)
        return refuse(r, "current-context", "expected the name of a context");
    context = named(doc, "contexts", "context", name);
    if (context == NULL)
        return refuse(r, "contexts", "expected an entry with the name of current-context");
    cluster = named(doc, "clusters", "cluster", hfd_json_text(context, "cluster"));
    if (cluster == NULL)
        return refuse(r, "clusters", "expected an entry with the name in the context");
    user = named(doc, "users", "user", hfd_json_text(context, "user"));
    if (user == NULL)
        return refuse(r, "users", "expected an entry with the name in the context");
    rc = refuse_user(r, user); /* first: a plugin needs other credentials */
    if (rc == HFD_OK)
        rc = read_cluster(r, cluster, out);
    if (rc == HFD_OK)
        rc = read_user(r, user, out);
    if (rc != HFD_OK)
        return rc;
    if ((out->cert.text.len > 0 || out->cert.file != NULL) !=
        (out->key.text.len > 0 || out->key.file != NULL))
        return refuse(r, "users", "expected client-certificate and client-key together");
    out->namespace = hfd_arena_dup(r->mem, hfd_json_text(context, "namespace"));
    return out->namespace.p != NULL ? HFD_OK : fail_nomem(r);
}

hfd_rc hfd_kubeconfig_parse(const struct hfd_kubeconfig *config, struct hfd_arena *mem,
                            struct hfd_kube_access *out, struct hfd_err *err)
{
    const struct reading r = {config, mem, err};
    json_t *doc;
    hfd_rc rc;

    *out = (struct hfd_kube_access){.server = HFD_SLICE_NONE};
    rc = hfd_yaml_parse(config->text, config->path, &doc, err);
    if (rc != HFD_OK)
        return rc;
    rc = read_document(&r, doc, out);
    json_decref(doc);
    return rc;
}

hfd_rc hfd_kubeconfig_read(const char *path, struct hfd_arena *mem, struct hfd_kube_access *out,
                           struct hfd_err *err)
{
    struct hfd_buf b;
    hfd_rc rc;

    struct stat seen = {0};

    *out = (struct hfd_kube_access){.server = HFD_SLICE_NONE};
    (void)stat(path, &seen);
    hfd_buf_init(&b, FILE_MAX_BYTES);
    rc = hfd_file_read(path, "kubeconfig", &b, err);
    if (rc == HFD_OK)
        rc = hfd_kubeconfig_parse(&(struct hfd_kubeconfig){hfd_buf_slice(&b), path}, mem, out, err);
    out->seen = seen;
    out->file = hfd_arena_dup(mem, hfd_slice_of(path)).p;
    if (rc == HFD_OK && out->file == NULL)
        rc = hfd_fail_nomem(err, "read a kubeconfig");
    if (b.p != NULL)
        explicit_bzero(b.p, b.len);
    hfd_buf_fini(&b);
    return rc;
}

/* ---- in a pod ---- */

static hfd_rc pod_file(const struct hfd_kube_pod *pod, const char *name, struct hfd_arena *mem,
                       const char **out)
{
    *out = hfd_arena_printf(mem, "%s/%s", pod->folder, name).p;
    return *out != NULL ? HFD_OK : HFD_NOMEM;
}

static hfd_rc pod_namespace(const char *path, struct hfd_arena *mem, hfd_slice *out,
                            struct hfd_err *err)
{
    struct hfd_buf b;
    hfd_slice text;
    hfd_rc rc;

    hfd_buf_init(&b, 256);
    rc = hfd_file_read(path, "namespace of the service account", &b, err);
    if (rc == HFD_OK) {
        text = hfd_buf_slice(&b);
        while (text.len > 0 && text.p[text.len - 1] == '\n')
            text.len--;
        *out = hfd_arena_dup(mem, text);
        rc = out->p != NULL ? HFD_OK : hfd_fail_nomem(err, "read the service account");
    }
    hfd_buf_fini(&b);
    return rc;
}

hfd_rc hfd_kube_in_cluster(const struct hfd_kube_pod *pod, struct hfd_arena *mem,
                           struct hfd_kube_access *out, struct hfd_err *err)
{
    const char *namespace_file;
    bool v6;

    *out = (struct hfd_kube_access){.server = HFD_SLICE_NONE};
    if (pod->host == NULL || pod->host[0] == '\0' || pod->port == NULL || pod->port[0] == '\0')
        return hfd_fail(err, HFD_INVALID,
                        "in-cluster: this is no pod: KUBERNETES_SERVICE_HOST and "
                        "KUBERNETES_SERVICE_PORT are not set");
    v6 = strchr(pod->host, ':') != NULL;
    out->server = hfd_arena_printf(mem, "https://%s%s%s:%s", v6 ? "[" : "", pod->host,
                                   v6 ? "]" : "", pod->port);
    if (out->server.p == NULL || pod_file(pod, "token", mem, &out->token.file) != HFD_OK ||
        pod_file(pod, "ca.crt", mem, &out->ca.file) != HFD_OK ||
        pod_file(pod, "namespace", mem, &namespace_file) != HFD_OK)
        return hfd_fail_nomem(err, "read the service account");
    if (hfd_url_check(out->server, NULL) != HFD_OK)
        return hfd_fail(err, HFD_INVALID,
                        "in-cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are no "
                        "address");
    return pod_namespace(namespace_file, mem, &out->namespace, err);
}
