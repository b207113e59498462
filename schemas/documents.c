/* The embedded documents. See documents.h. */
#include "schemas/documents.h"

#include <pthread.h>

#include "driver/base/check.h"
#include "driver/base/jsonx.h"
#include "schemas/compile.h"
#include "schemas/documents_int.h"

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
