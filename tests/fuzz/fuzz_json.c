/*
 * Documents: what is accepted has a canonical form that is accepted again and is its own canonical
 * form.
 */
#include "tests/fuzz/fuzz.h"

#include "driver/base/check.h"
#include "driver/base/jsonx.h"

/** Writes v canonically into b; the bytes stay b's. */
static hfd_slice canonical(struct hfd_buf *b, const json_t *v)
{
    struct hfd_err err;
    hfd_slice out;

    hfd_buf_init(b, FUZZ_ARENA_BYTES);
    hfd_json_dump_for_store(b, v);
    HFD_ASSERT(hfd_buf_finish(b, &out, &err) == HFD_OK);
    return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hfd_buf first, second;
    struct hfd_err err;
    json_t *doc, *again;

    if (hfd_json_parse((hfd_slice){(const char *)data, size}, &doc, &err) != HFD_OK) {
        HFD_ASSERT(doc == NULL);
        return 0;
    }
    hfd_slice text = canonical(&first, doc);
    HFD_ASSERT(hfd_json_parse(text, &again, &err) == HFD_OK);
    HFD_ASSERT(hfd_slice_eq(text, canonical(&second, again)));
    hfd_json_pointer(doc, (hfd_slice){(const char *)data, size});
    json_decref(doc);
    json_decref(again);
    hfd_buf_fini(&first);
    hfd_buf_fini(&second);
    return 0;
}
