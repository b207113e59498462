/* See spec.h. */
#include "schemas/spec.h"

#include "driver/base/file.h"
#include "driver/base/jsonx.h"
#include "driver/base/yamlx.h"
#include "schemas/compile.h"

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
