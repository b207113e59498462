/* The operator's schemas of specs, from a file. Source: schemas/documents.h. */
#include "schemas/documents.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "driver/base/jsonx.h"
#include "tests/lib/tmpdir.h"

#define BOTH "openapi: 3.0.0\ncomponents:\n  schemas:\n"
#define POOL "    NodePoolSpec: {type: object}\n"

static hfd_rc load(const char *text, struct hfd_spec_schemas *out, struct hfd_err *err)
{
    char dir[TMPDIR_MAX], path[TMPDIR_MAX + 16];
    hfd_rc rc;
    FILE *f;

    tmpdir_make(dir);
    (void)snprintf(path, sizeof(path), "%s/spec.yaml", dir);
    f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
    rc = hfd_spec_schemas_load(path, out, err);
    tmpdir_remove(dir);
    return rc;
}

static bool fits(const struct hfd_schema *schema, const char *text)
{
    struct hfd_schema_use use = {.root = "spec"};
    struct hfd_violations found;
    struct hfd_arena mem;
    json_t *doc;
    hfd_rc rc;

    hfd_arena_init(&mem, 100000);
    assert_int_equal(hfd_json_parse(hfd_slice_of(text), &doc, NULL), HFD_OK);
    use.schema = schema;
    rc = hfd_schema_validate(&use, doc, &mem, &found, NULL);
    json_decref(doc);
    hfd_arena_fini(&mem);
    return rc == HFD_OK;
}

/* Both components are read, with their references, and are independent. */
static void spec_reads_both_components(void **state)
{
    struct hfd_spec_schemas s;
    struct hfd_err err = {0};

    (void)state;
    if (load(BOTH "    Region: {type: string, enum: [eu, us]}\n"
                  "    ClusterSpec:\n      type: object\n      required: [region]\n"
                  "      properties: {region: {$ref: '#/components/schemas/Region'}}\n"
                  "    NodePoolSpec: {type: object, properties: {replicas: {type: integer}}, "
                  "additionalProperties: false}\n",
             &s, &err) != HFD_OK)
        fail_msg("%s", err.msg);
    assert_true(fits(s.cluster, "{\"region\":\"eu\"}"));
    assert_false(fits(s.cluster, "{\"region\":\"xx\"}"));
    assert_false(fits(s.cluster, "{}"));
    assert_true(fits(s.nodepool, "{\"replicas\":3}"));
    assert_false(fits(s.nodepool, "{\"region\":\"eu\"}"));
    hfd_spec_schemas_free(&s);
    assert_null(s.cluster);
}

static const struct {
    const char *text, *says;
} bad[] = {
    {BOTH POOL, "spec.yaml: no schema components.schemas.ClusterSpec"},
    {BOTH "    ClusterSpec: {type: object}\n",
     "spec.yaml: no schema components.schemas.NodePoolSpec"},
    {BOTH POOL "    ClusterSpec: 3\n", "ClusterSpec"},
    {BOTH POOL "    ClusterSpec: {type: thing}\n",
     "components.schemas.ClusterSpec: schema keyword \"type\""},
    {BOTH POOL "    ClusterSpec: {$ref: '#/components/schemas/Nowhere'}\n", "Nowhere"},
    {BOTH POOL "    ClusterSpec: {type: object, minlength: 3}\n", "minlength"},
    {BOTH POOL "    ClusterSpec: [\n", "spec.yaml:"},
    {"", "no schema"},
};

/* A file that cannot be used is refused; the error names the file and the component. */
static void spec_refuses_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct hfd_spec_schemas s;
        struct hfd_err err = {0};

        assert_int_equal(load(bad[i].text, &s, &err), HFD_INVALID);
        assert_null(s.cluster);
        assert_null(s.nodepool);
        if (strstr(err.msg, bad[i].says) == NULL)
            fail_msg("\"%s\" does not say \"%s\"", err.msg, bad[i].says);
    }
}

/* A file that does not exist is refused, too. */
static void spec_of_no_file_fails(void **state)
{
    struct hfd_spec_schemas s;
    struct hfd_err err = {0};

    (void)state;
    assert_int_equal(hfd_spec_schemas_load("/nonexistent/spec.yaml", &s, &err), HFD_IO);
    assert_non_null(strstr(err.msg, "/nonexistent/spec.yaml"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spec_reads_both_components),
        cmocka_unit_test(spec_refuses_by_name),
        cmocka_unit_test(spec_of_no_file_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
