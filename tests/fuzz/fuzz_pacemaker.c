/*
 * PacemakerCluster documents: an accepted one can be pruned, is accepted again as it was, parses,
 * and gets a verdict with conditions and events. A refused one names a rule for each violation.
 */
#include "tests/fuzz/fuzz.h"

#include "driver/base/check.h"
#include "driver/health/document.h"
#include "driver/health/verdict.h"

static void judge(const struct hfd_health_reading *given, bool stale, struct hfd_arena *mem)
{
    struct hfd_health_view view = {.text = given->text, .document = given->document};
    struct hfd_health_events events;
    struct hfd_condition conditions[2];
    struct hfd_buf b;
    hfd_slice out;

    HFD_ASSERT(hfd_health_judge(&given->document, stale, mem, &view.verdict, NULL) == HFD_OK);
    HFD_ASSERT(hfd_health_conditions(&view.verdict, stale, mem, conditions, NULL) == HFD_OK);
    HFD_ASSERT(hfd_health_events(NULL, &view.verdict, mem, &events, NULL) == HFD_OK);
    hfd_buf_init(&b, FUZZ_ARENA_BYTES);
    hfd_health_format(&b, &view);
    HFD_ASSERT(hfd_buf_finish(&b, &out, NULL) == HFD_OK);
    hfd_buf_fini(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hfd_health_reading first, again;
    struct hfd_arena mem;
    struct hfd_err err;
    json_t *doc;
    hfd_rc rc;

    if (hfd_json_parse((hfd_slice){(const char *)data, size}, &doc, &err) != HFD_OK)
        return 0;
    hfd_arena_init(&mem, FUZZ_ARENA_BYTES);
    rc = hfd_health_read(doc, "", &mem, &first, &err);
    if (rc == HFD_OK) {
        HFD_ASSERT(hfd_health_read(doc, "", &mem, &again, &err) == HFD_OK);
        HFD_ASSERT(hfd_slice_eq(first.text, again.text));
        judge(&first, false, &mem);
        judge(&first, true, &mem);
    } else if (rc == HFD_INVALID) {
        HFD_ASSERT(first.violations.count > 0);
        HFD_ASSERT(first.violations.count <= first.violations.total);
    }
    json_decref(doc);
    hfd_arena_fini(&mem);
    return 0;
}
