/* See documents.h. */
#include "schemas/documents.h"

#include "driver/base/check.h"
#include "driver/base/file.h"
#include "driver/base/jsonx.h"
#include "driver/base/yamlx.h"

#include <pthread.h>

/* ---- the embedded documents, which the build makes (embed.cmake) ---- */

extern const unsigned char hfd_input_json[];
extern const size_t hfd_input_json_len;
extern const unsigned char hfd_hypershift_json[];
extern const size_t hfd_hypershift_json_len;
extern const unsigned char hfd_openapi_json[];
extern const size_t hfd_openapi_json_len;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct hfd_schema *input;

hfd_slice hfd_schema_input_text(void)
{
    return (hfd_slice){(const char *)hfd_input_json, hfd_input_json_len};
}

static hfd_rc compile_text(hfd_slice text, hfd_slice at, struct hfd_schema **out,
                           struct hfd_err *err)
{
    json_t *doc;
    hfd_rc rc = hfd_json_parse(text, &doc, err);

    if (rc == HFD_OK)
        rc = hfd_schema_compile(doc, at, out, err);
    json_decref(doc);
    HFD_ASSERT(rc == HFD_OK || rc == HFD_NOMEM); /* the document is our own */
    return rc;
}

hfd_rc hfd_schema_input(const struct hfd_schema **out, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    pthread_mutex_lock(&lock);
    if (input == NULL)
        rc = compile_text(hfd_schema_input_text(), HFD_SLICE_NONE, &input, err);
    *out = input;
    pthread_mutex_unlock(&lock);
    return rc;
}

hfd_rc hfd_schema_hypershift(struct hfd_spec_schemas *out, struct hfd_err *err)
{
    const hfd_slice text = {(const char *)hfd_hypershift_json, hfd_hypershift_json_len};
    hfd_rc rc;

    *out = (struct hfd_spec_schemas){NULL, NULL};
    rc = compile_text(text, HFD_SLICE("/definitions/ClusterSpec"), &out->cluster, err);
    if (rc == HFD_OK)
        rc = compile_text(text, HFD_SLICE("/definitions/NodePoolSpec"), &out->nodepool, err);
    if (rc != HFD_OK)
        hfd_spec_schemas_free(out);
    return rc;
}

hfd_slice hfd_openapi_text(void)
{
    return (hfd_slice){(const char *)hfd_openapi_json, hfd_openapi_json_len};
}

/* ---- the operator's schemas ---- */

#define FILE_MAX_BYTES ((size_t)4 * 1024 * 1024)
#define PATH_SHOWN_MAX 100
#define COMPONENTS "/components/schemas/"

static hfd_rc compile_component(const json_t *doc, const char *path, const char *name,
                                struct hfd_schema **out, struct hfd_err *err)
{
    char pointer[64];
    struct hfd_err why;
    hfd_rc rc;

    (void)snprintf(pointer, sizeof(pointer), COMPONENTS "%s", name);
    if (!json_is_object(hfd_json_pointer(doc, hfd_slice_of(pointer))))
        return hfd_fail(err, HFD_INVALID, "%s: no schema components.schemas.%s", path, name);
    rc = hfd_schema_compile(doc, hfd_slice_of(pointer), out, &why);
    return rc == HFD_OK ? HFD_OK
                        : hfd_fail(err, rc, "%s: components.schemas.%s: %s", path, name, why.msg);
}

hfd_rc hfd_spec_schemas_load(const char *path, struct hfd_spec_schemas *out, struct hfd_err *err)
{
    const size_t len = strlen(path);
    const char *shown =
        len > PATH_SHOWN_MAX ? path + len - PATH_SHOWN_MAX : path; /* the end of a path says more */
    json_t *doc = NULL;
    struct hfd_buf b;
    hfd_rc rc;

    *out = (struct hfd_spec_schemas){NULL, NULL};
    hfd_buf_init(&b, FILE_MAX_BYTES);
    rc = hfd_file_read(path, "the schema of specs", &b, err);
    if (rc == HFD_OK)
        rc = hfd_yaml_parse(hfd_buf_slice(&b), shown, &doc, err);
    if (rc == HFD_OK)
        rc = compile_component(doc, shown, "ClusterSpec", &out->cluster, err);
    if (rc == HFD_OK)
        rc = compile_component(doc, shown, "NodePoolSpec", &out->nodepool, err);
    if (rc != HFD_OK)
        hfd_spec_schemas_free(out);
    json_decref(doc);
    hfd_buf_fini(&b);
    return rc;
}

void hfd_spec_schemas_free(struct hfd_spec_schemas *s)
{
    hfd_schema_free(s->cluster);
    hfd_schema_free(s->nodepool);
    *s = (struct hfd_spec_schemas){NULL, NULL};
}
